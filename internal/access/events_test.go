package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/access/accesstest"
	"github.com/readback-go/readback/ledger"
)

// diary is a ledger of events that can fail, hang before it writes, and hang after it.
type diary struct {
	*ledger.Memory
	down, hangs, late atomic.Bool
}

func (d *diary) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	if d.hangs.Load() {
		<-ctx.Done()
	}
	if d.down.Load() || d.hangs.Load() {
		return ledger.Committed{}, ledger.ErrUnavailable
	}
	committed, err := d.Memory.Commit(ctx, f)
	if d.late.Load() {
		<-ctx.Done()
		return ledger.Committed{}, ledger.ErrUnsure
	}
	return committed, err
}

// kept are the events in the ledger, the oldest first, as "event count name address
// action reason".
func (d *diary) kept(t *testing.T, tenant string) (all []string) {
	t.Helper()
	found, _, err := d.FindDocuments(t.Context(), ledger.DocumentQuery{Tenant: tenant, Kind: access.EventKind, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Backward(found) {
		var e struct {
			access.Event
			Count int `json:"count"`
		}
		if err := json.Unmarshal(f.Body, &e); err != nil || !f.Done || f.Collection != f.ID || f.State != e.Event.Event {
			t.Errorf("%+v, %v", f, err)
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(e.Event.Event, " ", e.Count, " ", e.Name, " ", e.Address, " ", e.Action, " ", e.Reason)), " "))
	}
	return all
}

func TestEventsOfLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := &diary{Memory: ledger.NewMemory()}, &bytes.Buffer{}
		events := access.NewEvents(d, "acme", slog.New(slog.NewJSONHandler(log, nil)), time.Now)
		w := newWorld(t, func(o *access.LoginOptions) { o.Events = events })
		b := w.browser()
		b.login()
		b.send("POST", "/logout", url.Values{})
		_, secret := w.as(engine.RoleReviewer, time.Hour)
		b.paste(secret)
		b.paste(unknownToken(t))
		_, state, _ := strings.Cut(b.toCallback(""), "state=")
		b.open("GET", "/login/callback?code=made-up&state="+state, nil)
		w.provider.Has(accesstest.Down)
		b.open("GET", b.toCallback(accesstest.Down), nil) // does not depend on credentials
		w.provider.Has("")
		b = w.browser()
		b.login()
		time.Sleep(10 * time.Minute)
		w.provider.Has(accesstest.LoggedOut)
		b.open("GET", "/login?next=/inbox", nil)
		events.Flush(t.Context(), true)
		want := []string{
			"login 2 alice@example.com 192.0.2.1",
			"logout 1 alice@example.com 192.0.2.1",
			"login 1 Ben 192.0.2.1",
			"login_refused 1 192.0.2.1 not logged in: the token is not known",
			`login_refused 1 192.0.2.1 not logged in: the provider's answer proves nothing: it refuses the code with status 400, "invalid_grant"`,
			`session_ended 1 alice@example.com 192.0.2.1 not logged in: the provider of logins refuses: "login_required"`,
		}
		if diff := cmp.Diff(want, d.kept(t, "acme")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := strings.Count(log.String(), `"msg":"security event","security":"`); n != len(want) || strings.Contains(log.String(), secret) || strings.Contains(log.String(), "made-up") {
			t.Errorf("%d lines of the log:\n%s", n, log.String())
		}
	})
}

// Uses and refusals of each API are recorded in one place.
func TestEventsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{Memory: ledger.NewMemory()}
		events := access.NewEvents(d, "acme", nil, time.Now)
		tokens := access.NewTokens(newFlaky(), nil)
		_, secret := create(t, tokens, bot)
		who := events.Recording(tokens)
		h := events.Around(access.Watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, err := who.Resolve(r)
			if err == nil {
				err = id.May(access.Submit)
			}
			if err == nil && r.Method == http.MethodPut {
				err = id.May(access.Decide)
			}
			status, _ := access.Refused(err)
			if err == nil {
				status = http.StatusOK
				time.Sleep(3 * time.Second) // its credentials are checked again
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte("x"))
		}), who))
		go func() { _ = events.Work(t.Context()) }()
		for range 10 {
			ask(h, with(secret))
			for _, path := range []string{"/v1/writes/wr_1/decision", "/v1/writes/wr_2/decision", "/api/v1/workflows/run-1/steps", "/writes/wr_1"} {
				r := with(secret)
				r.Method, r.URL.Path = http.MethodPut, path
				ask(h, r)
			}
			ask(h, with("bad"))
			ask(h, httptest.NewRequest("GET", "/", nil)) // says nothing
		}
		events.Refused(access.Identity{Tenant: "acme", Name: "model", Role: engine.RoleAgent}, "wire", fmt.Errorf("beyond the scope: %w", access.ErrForbidden))
		events.Refused(access.Identity{Tenant: "acme", Name: "model", Role: engine.RoleAgent}, "wire", ledger.ErrUnavailable)
		time.Sleep(70 * time.Minute)
		count := map[string]int{}
		for _, one := range d.kept(t, "acme") {
			var n int
			event, rest, _ := strings.Cut(one, " ")
			number, rest, _ := strings.Cut(rest, " ")
			if _, err := fmt.Sscan(number, &n); err != nil {
				t.Fatal(err)
			}
			count[event+" "+rest] += n
		}
		want := map[string]int{
			"token_used billing bot 192.0.2.1":                                          50,
			"forbidden billing bot 192.0.2.1 PUT /v1/writes":                            20,
			"forbidden billing bot 192.0.2.1 PUT /api/v1/workflows":                     10,
			"forbidden billing bot 192.0.2.1 PUT /writes":                               10,
			"credentials_refused 192.0.2.1 not logged in: this is no token of readback": 10,
			"forbidden model tool wire":                                                 1,
		}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := len(d.kept(t, "acme")); n > 12 {
			t.Errorf("%d documents; want equal events together:\n%s", n, strings.Join(d.kept(t, "acme"), "\n"))
		}
	})
}

// A flood of unknown callers does not fill the ledger, and hides no event of known ones.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{Memory: ledger.NewMemory()}
		events := access.NewEvents(d, "acme", nil, time.Now)
		go func() { _ = events.Work(t.Context()) }()
		for minute := range 10 {
			for i := range 5000 {
				events.Record(access.Event{Event: access.EventCredentialRefused, Address: fmt.Sprintf("10.%d.%d.%d:1", minute, i/250, i%250), Reason: strings.Repeat("x", 10_000)})
			}
			time.Sleep(time.Minute)
		}
		events.Record(access.Event{Event: access.EventLogin, Tenant: "umbrella", Name: "eve"})
		time.Sleep(time.Minute)
		all := d.kept(t, "acme")
		if len(all) > 10*22 || len(all) < 10*20 {
			t.Errorf("%d documents of ten minutes", len(all))
		}
		if i := slices.IndexFunc(all, func(one string) bool { return len(one) > 1000 }); i >= 0 {
			t.Errorf("%d bytes", len(all[i]))
		}
		if got := d.kept(t, "umbrella"); !slices.Equal(got, []string{"login 1 eve"}) {
			t.Errorf("%q", got)
		}
	})
}

// What the ledger does not take now is written later, once.
func TestEventsWaitForTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := &diary{Memory: ledger.NewMemory()}, &bytes.Buffer{}
		d.down.Store(true)
		events := access.NewEvents(d, "acme", slog.New(slog.NewTextHandler(log, nil)), time.Now)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = events.Work(ctx) }()
		for i := range 3 {
			events.Record(access.Event{Event: access.EventLogin, Name: fmt.Sprint("person ", i)})
			time.Sleep(10 * time.Second)
		}
		d.down.Store(false)
		d.hangs.Store(true) // then each is in the log all the same
		events.Record(access.Event{Event: access.EventLogin, Name: "person 3"})
		time.Sleep(20 * time.Second)
		events.Record(access.Event{Event: access.EventLogin, Name: "person 4"})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if !strings.Contains(log.String(), `name="person 4"`) {
			t.Error("while the ledger hangs an event is not in the log")
		}
		d.hangs.Store(false)
		d.late.Store(true) // it is not written again
		time.Sleep(time.Minute)
		d.late.Store(false)
		events.Record(access.Event{Event: access.EventLogout, Name: "person 0"})
		end() // what is left is written
		<-done
		if want := []string{"login 1 person 0", "login 1 person 1", "login 1 person 2", "login 1 person 3", "login 1 person 4", "logout 1 person 0"}; !slices.Equal(d.kept(t, "acme"), want) {
			t.Errorf("%q, want %q", d.kept(t, "acme"), want)
		}
		if n := strings.Count(log.String(), "security=login "); n != 5 {
			t.Errorf("%d lines about logins", n)
		}
	})
}

// One caller whose events are many, and many callers of one kind, hide no event of others.
func TestEventsOfOneCallerHideNoOthers(t *testing.T) {
	for name, flood := range map[string]func(events *access.Events, i int){
		"tools that are made up": func(events *access.Events, i int) {
			events.Refused(access.Identity{Tenant: "acme", Name: "model", Role: engine.RoleAgent, Via: "token", ID: "t1"}, fmt.Sprint("tool ", i), access.ErrForbidden)
		},
		"calls that are repeated": func(events *access.Events, i int) {
			events.Record(access.Event{Event: access.EventReplayed, Tenant: "acme", Name: "model", Write: fmt.Sprint("wr_", i)})
		},
		"many places": func(events *access.Events, i int) {
			events.Record(access.Event{Event: access.EventTokenUsed, Tenant: "acme", Name: "model", Via: "token", Address: fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)})
		},
		"many tokens": func(events *access.Events, i int) {
			events.Record(access.Event{Event: access.EventTokenUsed, Tenant: "acme", Name: "model", Via: "token", Credentials: fmt.Sprint("t", i)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{Memory: ledger.NewMemory()}
				events := access.NewEvents(d, "acme", nil, time.Now)
				go func() { _ = events.Work(t.Context()) }()
				for i := range 1200 {
					flood(events, i)
				}
				events.Record(access.Event{Event: access.EventLogin, Tenant: "umbrella", Name: "eve"})
				events.Refused(access.Identity{Tenant: "umbrella", Name: "eve", Role: engine.RoleReviewer}, "wire", access.ErrForbidden)
				time.Sleep(10 * time.Second)
				if got := d.kept(t, "umbrella"); !slices.Equal(got, []string{"login 1 eve", "forbidden 1 eve tool wire"}) {
					t.Errorf("%q", got)
				}
				if all := d.kept(t, "acme"); name != "many tokens" && (len(all) > 101 || !strings.Contains(all[len(all)-1], " model ")) {
					t.Errorf("%d documents about one caller; the last: %s", len(all), all[len(all)-1])
				}
				time.Sleep(3 * time.Hour) // finished entries are evicted
				flood(events, 9999)
				time.Sleep(10 * time.Second)
				if all := d.kept(t, "acme"); strings.Contains(all[len(all)-1], "together") {
					t.Errorf("%s", all[len(all)-1])
				}
			})
		})
	}
}
