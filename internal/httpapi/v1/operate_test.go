package v1

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
)

func TestFindingWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		one := b.submit(order("A-1", func(w *intent.WriteIntent) { w.CorrelationID = "c-1" }))
		time.Sleep(time.Hour)
		noon := time.Now().UTC().Format(time.RFC3339)
		two := b.submit(order("A-2", held))
		three := b.submit(order("A-3", func(w *intent.WriteIntent) { w.Workflow, w.IdempotencyKey = "run-2", "wire-1" }))
		digest := into[Account](b.ask(auditor, "GET", writePath(two.ID, "/record"), "")).Write.KeyDigest
		tests := map[string]struct {
			query string
			want  []ledger.ID
		}{
			"all":               {"", []ledger.ID{three.ID, two.ID, one.ID}},
			"the oldest first":  {"oldest=true", []ledger.ID{one.ID, two.ID, three.ID}},
			"a state":           {"state=held", []ledger.ID{two.ID}},
			"a status":          {"status=held&status=review", []ledger.ID{two.ID}},
			"settled as":        {"status=verified", []ledger.ID{three.ID, one.ID}},
			"nothing under way": {"status=in_progress", nil},
			"a workflow":        {"workflow=run-2", []ledger.ID{three.ID}},
			"a correlation":     {"correlation_id=c-1", []ledger.ID{one.ID}},
			"an operation":      {"idempotency_key=wire-1", []ledger.ID{three.ID}},
			"a fingerprint":     {"key_digest=" + digest, []ledger.ID{two.ID}},
			"a business key":    {"destination=orders&kind=order&key=" + url.QueryEscape(`{"order_id":"A-1"}`), []ledger.ID{one.ID}},
			"another one":       {"destination=orders&kind=order&key=" + url.QueryEscape(`{"order_id":"A-7"}`), nil},
			"since":             {"since=" + noon, []ledger.ID{three.ID, two.ID}},
			"until":             {"until=" + noon, []ledger.ID{one.ID}},
			"both filters":      {"state=held&workflow=run-2", nil},
			"an order number":   {"q=a-2", []ledger.ID{two.ID}},
			"its beginning":     {"q=A-", []ledger.ID{three.ID, two.ID, one.ID}},
			"a beginning held":  {"q=A-&state=held", []ledger.ID{two.ID}},
			"no beginning":      {"q=-2", nil},
		}
		for name, test := range tests {
			page := into[Writes](b.ask(auditor, "GET", "/v1/writes?"+test.query, "").want(200))
			var got []ledger.ID
			for _, w := range page.Writes {
				got = append(got, w.ID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
		for query, want := range map[string][]string{"q=a-3": {"/key/order_id"}, "q=run-2": {"workflow"}, "q=wire": {"idempotency_key"}, "q=" + string(three.ID): {"id"}, "workflow=run-2": nil} {
			if got := into[Writes](b.ask(auditor, "GET", "/v1/writes?"+query, "").want(200)).Writes; len(got) != 1 || got[0].ID != three.ID || !slices.Equal(got[0].Matched, want) {
				t.Errorf("%s: %+v, want one, matched by %v", query, got, want)
			}
		}
		var walked []ledger.ID
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			q := url.Values{"limit": {"1"}}
			if after != "" {
				q.Set("after", after)
			}
			page := into[Writes](b.ask(auditor, "GET", "/v1/writes?"+q.Encode(), "").want(200))
			for _, w := range page.Writes {
				walked = append(walked, w.ID)
			}
			if after = page.Next; pages > 5 {
				t.Fatal("the pages do not end")
			}
		}
		if !slices.Equal(walked, []ledger.ID{three.ID, two.ID, one.ID}) {
			t.Errorf("page by page %v", walked)
		}
	})
}

func TestQueriesThatAreRefused(t *testing.T) {
	tests := map[string]struct{ target, field string }{
		"a filter that is spelt wrong": {"/v1/writes?stat=held", "stat"},
		"a state of none":              {"/v1/writes?state=open", "state"},
		"a limit of nothing":           {"/v1/writes?limit=0", "limit"},
		"a limit twice":                {"/v1/writes?limit=1&limit=2", "limit"},
		"a time of none":               {"/v1/writes?since=yesterday", "since"},
		"an empty workflow":            {"/v1/writes?workflow=", "workflow"},
		"a query of nothing":           {"/v1/writes?q=", "q"},
		"a query of spaces":            {"/v1/writes?q=%20%09", "q"},
		"a NUL":                        {"/v1/writes?workflow=%00", "workflow"},
		"no UTF-8":                     {"/v1/writes?workflow=%ff", "workflow"},
		"a cursor of none":             {"/v1/writes?after=x", "after"},
		"a key alone":                  {"/v1/writes?key={}", "key"},
		"a kind alone":                 {"/v1/writes?kind=order", "kind"},
		"a key that is no object":      {"/v1/writes?destination=orders&kind=order&key=7", "key"},
		"a key with a name twice":      {"/v1/writes?destination=orders&kind=order&key=" + url.QueryEscape(`{"a":1,"a":2}`), "key"},
		"a time backwards":             {"/v1/history?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "since"},
		"too many spans":               {"/v1/history?since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&step=1m", "step"},
		"a step backwards":             {"/v1/history?step=-1h", "step"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			if p := b.ask(auditor, "GET", test.target, "").problem(invalidRequest); p.Field != test.field {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestStopsHoldSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		all := into[Stops](b.ask(operator, "POST", "/v1/stops", `{"destination":"orders","reason":"it is down"}`).want(200))
		if len(all.Stops) != 1 || !all.Stops[0].Active || all.Stops[0].Everybody || all.Stops[0].Log[0].By != "operator-1" {
			t.Errorf("%+v", all)
		}
		d := into[Destinations](b.ask(agent, "GET", "/v1/destinations", "").want(200))
		if len(d.Destinations) != 1 || len(d.Destinations[0].Stops) != 1 || d.Destinations[0].Type != "simulated" || len(d.Destinations[0].Kinds) != 1 {
			t.Errorf("%+v", d)
		}
		if other := into[Stops](b.ask(outsider, "GET", "/v1/stops", "").want(200)); len(other.Stops) != 0 {
			t.Errorf("%+v", other)
		}
		if e := into[service.StopEffect](b.ask(operator, "GET", "/v1/stops/preview?destination=orders", "").want(200)); e.Destination != "orders" || len(e.Writes) == 0 {
			t.Errorf("the preview of a stop: %+v", e)
		}
		b.ask(operator, "GET", "/v1/stops/preview?destination=nowhere", "").problem(unknownDestination)
		b.ask(agent, "GET", "/v1/stops/preview", "").problem(forbidden)
		b.ask(operator, "POST", "/v1/stops/release", `{"tool":"charge","reason":"it is up"}`).problem(notStopped)
		b.ask(operator, "POST", "/v1/stops/release", `{"destination":"nowhere","reason":"it is up"}`).problem(unknownDestination)
		b.ask(operator, "POST", "/v1/stops", `{"destination":"nowhere","reason":"it is up"}`).problem(unknownDestination)
		all = into[Stops](b.ask(operator, "POST", "/v1/stops/release", `{"destination":"orders","reason":"it is up"}`).want(200))
		if all.Stops[0].Active || len(all.Stops[0].Log) != 2 {
			t.Errorf("%+v", all)
		}
		b.ask(agent, "GET", "/v1/stops", "").want(200)
	})
}

// A profile shows what is never sent again, and how long a record may be undecided.
func TestProfileShowsWhatIsNotRepeated(t *testing.T) {
	p := profileOf(connectors.Profile{NeverRepeat: []intent.WriteType{intent.Create}, Open: connectors.Within(time.Hour)})
	if len(p.NeverRepeat) != 1 || p.NeverRepeat[0] != intent.Create || p.Open == nil || *p.Open != 3600 {
		t.Errorf("%+v", p)
	}
}

// A destination's response is for people.
func TestAgentsDoNotGetTheDestinationsAnswer(t *testing.T) {
	why := service.Destination{Name: "orders", PauseWhy: "429: key sk-1 is over its limit"}
	why.Breaker.Why = "502: <html>"
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		for who, shown := range map[string]bool{agent: false, auditor: true} {
			one, _ := b.tokens.Resolve(&http.Request{Header: http.Header{"Authorization": {"Bearer " + who}}})
			c := &call{api: b.inside, who: one}
			got := c.destination(why)
			if (got.PauseWhy != "") != shown || (got.Breaker.Why != "") != shown {
				t.Errorf("%s: %+v", who, got)
			}
		}
	})
}

func TestSagas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		a := b.ask(agent, "POST", "/v1/sagas", plan("trip-1", "A-1")).want(202)
		if got := a.Header.Get("Location"); got != "/v1/sagas/trip-1" {
			t.Errorf("Location %q", got)
		}
		b.ask(agent, "POST", "/v1/sagas", plan("trip-1", "A-1")).want(202)
		b.ask(agent, "POST", "/v1/sagas", plan("trip-1", "A-2")).problem(otherPlan)
		back := into[saga.Saga](b.ask(operator, "POST", "/v1/sagas/trip-1/cancel", `{"reason":"not wanted"}`).want(200))
		if back.State != saga.Undoing {
			t.Errorf("%+v", back)
		}
		b.work()
		b.ask(agent, "POST", "/v1/sagas", plan("trip-2", "A-2")).want(202)
		time.Sleep(time.Minute)
		if s := into[saga.Saga](b.ask(agent, "GET", "/v1/sagas/trip-2", "").want(200)); s.State != saga.Done {
			t.Errorf("%+v", s)
		}
		b.ask(agent, "POST", "/v1/sagas", plan("trip-2", "A-2")).want(200)
		b.ask(operator, "POST", "/v1/sagas/trip-2/cancel", `{"reason":"too late"}`).problem(tooLate)
		b.ask(operator, "POST", "/v1/sagas/trip-2/close", `{"reason":"it is done"}`).problem(notWaiting)
		all := into[Sagas](b.ask(auditor, "GET", "/v1/sagas?state=done&limit=10", "").want(200))
		if len(all.Sagas) != 1 || all.Sagas[0].ID != "trip-2" {
			t.Errorf("%+v", all)
		}
		if p := b.ask(agent, "POST", "/v1/sagas", `{"id":"x","steps":[]}`).problem(invalidSaga); p.Field != "/steps" {
			t.Errorf("%+v", p)
		}
		far := strings.Replace(plan("trip-3", "A-3"), `"orders"`, `"nowhere"`, 1)
		if p := b.ask(agent, "POST", "/v1/sagas", far).problem(invalidSaga); !strings.HasPrefix(p.Field, "/steps/0") {
			t.Errorf("%+v", p)
		}
	})
}

func TestSagaIsClosedByAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.work()
		if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": json.Number("5")}, ""); err != nil {
			t.Fatal(err)
		}
		b.ask(agent, "POST", "/v1/sagas", plan("trip-1", "A-1")).want(202)
		time.Sleep(time.Minute)
		in := into[Inbox](b.ask(reviewer, "GET", "/v1/inbox", "").want(200))
		if len(in.Writes) != 1 || len(in.Sagas) != 1 {
			t.Fatalf("%s", validJSON(t, in))
		}
		b.ask(reviewer, "POST", writePath(in.Writes[0].Write.ID, "/decision"), `{"word":"abandon","reason":"it is another actor's"}`, "Prefer: wait=10").want(200)
		time.Sleep(time.Minute)
		s := into[saga.Saga](b.ask(operator, "POST", "/v1/sagas/trip-1/close", `{"reason":"seen to"}`).want(200))
		if s.State != saga.Closed {
			t.Errorf("%+v", s)
		}
	})
}

func TestYieldLetsTheOperationGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		key := func(w *intent.WriteIntent) { w.IdempotencyKey = "wire-1" }
		one := b.submit(order("A-1", key))
		none := b.submit(order("A-2"))
		b.ask(operator, "POST", writePath(none.ID, "/yield"), `{"reason":"it has no key"}`).problem(notWaiting)
		b.ask(operator, "POST", writePath(one.ID, "/yield"), `{"reason":"it was for a test"}`).want(200)
		again := order("A-3", key, func(w *intent.WriteIntent) { w.Workflow = "run-2" })
		b.ask(agent, "POST", "/v1/writes", asJSON(again), "Prefer: wait=60").want(200)
		if !into[Account](b.ask(auditor, "GET", writePath(one.ID, "/record"), "")).Yielded {
			t.Error("the record does not say so")
		}
	})
}

func TestHistoryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.submit(order("A-1"))
		b.submit(order("A-2", held))
		time.Sleep(time.Second)
		h := into[History](b.ask(auditor, "GET", "/v1/history?step=15m", "").want(200))
		settled, heldOnes := 0, 0
		for _, s := range h.Spans {
			settled += s.Settled[ledger.Verified]
			heldOnes += s.Held
		}
		if settled != 1 || heldOnes != 1 || h.Step != "15m0s" {
			t.Errorf("%+v", h)
		}
	})
}

func TestReviewIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := b.inReview("A-1")
		in := into[Inbox](b.ask(reviewer, "GET", "/v1/inbox", "").want(200))
		if len(in.Writes) != 1 || in.Writes[0].Write.ID != out.ID {
			t.Errorf("%+v", in)
		}
		for name, body := range map[string]string{
			"no reason": `{"word":"accept"}`, "an empty one": `{"word":"accept","reason":" "}`, "another word": `{"word":"maybe","reason":"x"}`,
			"an own name": `{"word":"accept","reason":"x","by":"boss"}`, "a NUL": `{"word":"accept","reason":"x\u0000"}`,
			"null": `{"word":"accept","reason":null}`, "a number": `{"word":"accept","reason":7}`, "too long": `{"word":"accept","reason":"` + strings.Repeat("x", maxReason+1) + `"}`,
		} {
			if p := b.ask(reviewer, "POST", writePath(out.ID, "/decision"), body).problem(invalidRequest); p.Field == "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
		after := into[engine.Outcome](b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"accept","reason":"it is right so"}`).want(200))
		if after.Status != ledger.Accepted {
			t.Errorf("%+v", after)
		}
	})
}

// A server without a part reports that, and does not fail otherwise.
func TestWithoutAPart(t *testing.T) {
	var reg connectors.Registry
	l := ledger.NewMemory()
	e := engine.New(l, &reg, nil)
	t.Cleanup(e.Close)
	b := newBench(t, orders.Native.Options(), nil)
	b.inside = newAPI(service.New(service.Parts{Writes: e, Ledger: l, Registry: &reg}), &Options{Who: b.tokens})
	b.api = b.inside.handler()
	for _, r := range routes() {
		if r.optional {
			b.ask(r.may(), r.method, r.target(), r.right()).problem(unsupported)
		}
	}
}

// The digest of a business key needs the digest key of the ledger, which is sealed: a
// server that cannot open it finds nothing by a business key, and reports that; all else
// is listed.
func TestFindingByABusinessKeyNeedsTheDigestKey(t *testing.T) {
	vault, err := redact.New([]redact.Key{{ID: "k1", Secret: bytes.Repeat([]byte("k"), redact.KeySize)}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, b := filepath.Join(t.TempDir(), "ledger.db"), newBench(t, orders.Native.Options(), nil)
	serve := func(keys ledger.Keys) ledger.Ledger {
		l, err := sqlite.Open(t.Context(), path, &sqlite.Options{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		b.inside = newAPI(service.New(service.Parts{Writes: b.engine, Ledger: l, Registry: &connectors.Registry{}}), &Options{Who: b.tokens, Closing: b.closing, Version: "test"})
		b.api = b.inside.handler()
		return l
	}
	rec, err := ledger.NewRecord(order("A-1", func(w *intent.WriteIntent) { w.Tenant = "acme" }))
	if err == nil {
		rec, _, err = serve(vault).Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "w", LeaseFor: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	found := func(query string) {
		t.Helper()
		if page := into[Writes](b.ask(auditor, "GET", "/v1/writes?"+query, "").want(200)); len(page.Writes) != 1 || page.Writes[0].ID != rec.ID {
			t.Errorf("%s: %+v, want the write", query, page)
		}
	}
	byKey, byDigest := "destination=orders&kind=order&key="+url.QueryEscape(`{"order_id":"A-1"}`), "key_digest="+url.QueryEscape(rec.KeyDigest)
	found(byKey)
	serve(nil)
	a := b.ask(auditor, "GET", "/v1/writes?"+byKey, "")
	if p := a.problem(unavailable); p.Detail != "" || p.Known != "" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	found(byDigest)
	found("")
}
