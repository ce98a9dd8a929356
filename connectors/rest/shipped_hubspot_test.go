package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/verifytest"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// hubSpot is one of the two kinds of contacts: by e-mail address, or by a
// property of one's own.
func hubSpot(kind string) (api, *fakerest.HubSpot) {
	h := fakerest.NewHubSpot("pat-na1", nil, []string{"readback_key", "readback_stamp"})
	key := map[string]string{"contact": "email", "keyed-contact": "readback_key"}[kind]
	a := api{
		unlisted: "the declaration has none: reads ask for one record by a unique value, and the search lags",
		fake:     h.Fake, name: "hubspot-contacts", kind: kind, collection: "contacts",
		options: rest.Options{Secrets: secrets(map[string]string{"token": "pat-na1"})},
		intent:  func(w intent.WriteType, n int) intent.WriteIntent { return contact(kind, key, w, n) },
		near:    func(n int) []intent.WriteIntent { return nearContacts(kind, key, n) },
		record:  contactRecord,
		traits: traits{lacks: map[string]string{
			string(fault.LaggingRead):            "contacts are read by id or unique value alone, which does not lag",
			string(fault.DuplicateBehindOurBack): "e-mail addresses and keys are unique",
		}},
	}
	a.put = func(f intent.Fields, stamp string) error { return putContact(h, key, f, stamp) }
	a.alter = func(o fakerest.Object, f intent.Fields) error {
		h.Edit("contacts", o.Text("id"), func(o fakerest.Object) { setContact(o, f) })
		return nil
	}
	return a, h
}

func contact(kind, key string, w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: kind, Write: w, Key: intent.Fields{key: contactKey(key, n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"firstname": "Ada", "lastname": fmt.Sprintf("Lovelace the %dth", n), "jobtitle": fmt.Sprintf("analyst %d", n)}
		in.Payload = intent.Fields{"city": "London"}
	case intent.Update:
		in.Expect = intent.Fields{"firstname": "Augusta", "lastname": "King"}
	case intent.Upsert:
		in.Expect = intent.Fields{"firstname": "Countess", "phone": "+44 20 7946 0000"}
	}
	return in
}

func contactKey(key string, n int) string {
	if key == "email" {
		return fmt.Sprintf("ada+%03d@example.com", n)
	}
	return fmt.Sprintf("cust-%03d", n)
}

func nearContacts(kind, key string, n int) []intent.WriteIntent {
	id := contactKey(key, n)
	in := func(w intent.WriteType, n int) intent.WriteIntent { return contact(kind, key, w, n) }
	return connectortest.Near(in, key, id+"0", "x"+id, id+".uk", "ada"+id, strings.Replace(id, "0", "%30", 1), id[:2]+"á"+id[3:])
}

// contactRecord shows a contact as the declaration should.
func contactRecord(o fakerest.Object) (connectors.Record, bool) {
	properties, ok := o["properties"].(map[string]any)
	if !ok {
		return connectors.Record{}, false
	}
	stamp, _ := properties["readback_stamp"].(string)
	return connectors.Record{Ref: o.Text("id"), Version: o.Text("updatedAt"), Stamp: stamp, Fields: intent.Fields(properties)}, true
}

// putContact stores a contact as another actor would. HubSpot keeps unique properties unique.
func putContact(h *fakerest.HubSpot, key string, f intent.Fields, stamp string) error {
	for _, o := range h.Now("contacts") {
		r, _ := contactRecord(o)
		if r.Fields[key] == f[key] || (stamp != "" && r.Stamp == stamp) {
			return errors.New("the key and the stamp are unique")
		}
	}
	h.Put("contacts", func(now fakerest.View) (string, fakerest.Object) {
		id := fmt.Sprint(100 + now.Next())
		o := fakerest.Object{"id": id, "archived": false, "properties": map[string]any{"hs_object_id": id}}
		setContact(o, f)
		if stamp != "" {
			setContact(o, intent.Fields{"readback_stamp": stamp})
		}
		return id, o
	})
	return nil
}

func setContact(o fakerest.Object, f intent.Fields) {
	for name, v := range f {
		o["properties"].(map[string]any)[name] = v
	}
	o["updatedAt"] = time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
}

func hubSpotSuite(kind string) connectortest.Harness {
	return suite(func() api { a, _ := hubSpot(kind); return a }, intent.Create, intent.Update, intent.Upsert, intent.Delete)
}

func TestHubSpot(t *testing.T) {
	for _, kind := range []string{"contact", "keyed-contact"} {
		t.Run(kind, func(t *testing.T) { connectortest.Run(t, hubSpotSuite(kind)) })
	}
}

func TestHubSpotDeclared(t *testing.T) {
	for _, kind := range []string{"contact", "keyed-contact"} {
		a, _ := hubSpot(kind)
		declared(t, a)
	}
}

func TestHubSpotAudit(t *testing.T) {
	for _, kind := range []string{"contact", "keyed-contact"} {
		t.Run(kind, func(t *testing.T) {
			audit(t, hubSpotSuite(kind),
				verifytest.Difference{
					Name: "e-mail", Reason: "addresses lose capitals and blanks",
					Stored: func(w *intent.WriteIntent) {
						if kind == "keyed-contact" {
							w.Expect["email"] = " Ada.Lovelace@Example.COM "
						}
					},
				},
				verifytest.Difference{
					Name: "number", Reason: "every value is text",
					Stored:   func(w *intent.WriteIntent) { w.Expect["annualrevenue"] = json.Number("1000") },
					Declared: func(w *intent.WriteIntent) { w.Expect["annualrevenue"] = json.Number("1000") },
				},
				verifytest.Difference{
					Name: "empty", Reason: "empty text is no value",
					Stored:   func(w *intent.WriteIntent) { w.Expect["phone"] = "" },
					Declared: func(w *intent.WriteIntent) { w.Expect["phone"] = "" },
				},
				verifytest.Difference{
					Name: "added", Reason: "HubSpot changes properties that the intent does not name",
					After: func(f *connectortest.Fixture, w intent.WriteIntent) {
						if err := f.Alter(w.Key, intent.Fields{"hs_lead_status": "NEW"}); err != nil {
							panic(err)
						}
					},
				},
			)
		})
	}
}

// TestHubSpotAnswers: what each answer of HubSpot means.
func TestHubSpotAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind     fault.Kind
		how      string
		want     connectors.Fate
		wait     time.Duration
		conflict bool
		reason   string
	}{
		"ten seconds": {kind: fault.Throttled, how: "TEN_SECONDLY_ROLLING", want: connectors.FateThrottled, reason: "429 without a time"},
		"day":         {kind: fault.Throttled, how: "DAILY", want: connectors.FateThrottled, reason: "429 of the daily policy"},
		"with a time": {kind: fault.Throttled, want: connectors.FateThrottled, wait: time.Second, reason: "429 with Retry-After"},
		"locked":      {kind: fault.Refused, how: "423", want: connectors.FateRefused, reason: "a large job runs"},
		"expired":     {kind: fault.Refused, how: "401", want: connectors.FateLogin, reason: "the token ran out"},
		"invalid":     {kind: fault.Refused, want: connectors.FateRefused, reason: "a 400 that speaks of no other contact"},
	} {
		t.Run(name, func(t *testing.T) {
			a, h := hubSpot("contact")
			con, _ := a.connector(t)
			if err := h.Set(fault.Fault{Kind: c.kind, How: c.how}.Once()); err != nil {
				t.Fatal(err)
			}
			_, err := a.send(t, con, a.intent(intent.Create, 1), 1)
			checkFate(t, err, c.want, c.wait, c.conflict, c.reason)
			if n := len(h.Effects()); n != 0 {
				t.Errorf("%d effects, want none", n)
			}
		})
	}
}

// checkFate compares the fate of an error with the expected one.
func checkFate(t *testing.T, err error, want connectors.Fate, wait time.Duration, conflict bool, reason string) {
	t.Helper()
	var e *connectors.Error
	if !errors.As(err, &e) {
		e = &connectors.Error{}
	}
	if connectors.FateOf(err) != want || e.RetryAfter != wait || e.Conflict != conflict {
		t.Errorf("%v: %q, wait %v, conflict %v; want %q, %v, %v: %s", err, connectors.FateOf(err), e.RetryAfter, e.Conflict, want, wait, conflict, reason)
	}
}

// TestHubSpotTaken: a taken unique value is a conflict in every form of the answer, and the other
// contact does not change.
func TestHubSpotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		theirs intent.Fields
		write  intent.WriteType
		reason string
	}{
		"e-mail":             {"contact", intent.Fields{"email": "ada+001@example.com"}, intent.Create, "409, with the other one's id in the text"},
		"capitals":           {"contact", intent.Fields{"email": "ADA+001@EXAMPLE.com"}, intent.Create, "letter case does not count there"},
		"second address":     {"contact", intent.Fields{"email": "x@example.com", "hs_additional_emails": "ada+001@example.com"}, intent.Create, "one of its further addresses"},
		"key":                {"keyed-contact", intent.Fields{"readback_key": "cust-001"}, intent.Create, "400, recognized by its text"},
		"key, other letters": {"keyed-contact", intent.Fields{"readback_key": "CUST-001"}, intent.Create, "letter case does not count there"},
		"e-mail of another":  {"keyed-contact", intent.Fields{"readback_key": "cust-002", "email": "ada@example.com"}, intent.Create, "another unique value than the key"},
		"upsert":             {"keyed-contact", intent.Fields{"readback_key": "cust-002", "email": "ada@example.com"}, intent.Upsert, "a 207 is no success"},
	} {
		t.Run(name, func(t *testing.T) {
			a, h := hubSpot(c.kind)
			con, _ := a.connector(t)
			h.Put("contacts", func(now fakerest.View) (string, fakerest.Object) {
				o := fakerest.Object{"id": "7", "properties": map[string]any{"hs_object_id": "7"}}
				setContact(o, c.theirs)
				return "7", o
			})
			in := whole(a, a.intent(c.write, 1))
			if c.kind == "keyed-contact" {
				in.Expect["email"] = "ada@example.com"
			}
			_, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 2, Before: &connectors.Observation{}})
			checkFate(t, err, connectors.FateRefused, 0, true, c.reason)
			if n := len(h.Effects()); n != 1 {
				t.Errorf("%d effects, want that of another actor alone", n)
			}
		})
	}
}

// TestHubSpotLooseMatches: if HubSpot returns a contact without exactly the key, the read never
// reports absence.
func TestHubSpotLooseMatches(t *testing.T) {
	for name, c := range map[string]struct {
		theirs intent.Fields
		reason string
	}{
		"capitals":       {intent.Fields{"email": "ADA+001@EXAMPLE.com"}, "the same address in other letters"},
		"second address": {intent.Fields{"email": "x@example.com", "hs_additional_emails": "ada+001@example.com"}, "an address beside the first"},
	} {
		t.Run(name, func(t *testing.T) {
			a, h := hubSpot("contact")
			con, _ := a.connector(t)
			h.Put("contacts", func(now fakerest.View) (string, fakerest.Object) {
				o := fakerest.Object{"id": "7", "properties": map[string]any{"hs_object_id": "7"}}
				setContact(o, c.theirs)
				return "7", o
			})
			if o, err := con.Read(t.Context(), a.query(a.intent(intent.Create, 1), "")); err == nil && len(o.Records) == 0 {
				t.Errorf("the read says that there is nothing: %s", c.reason)
			}
		})
	}
}

// TestHubSpotReads: the search is never used, every read requests properties, and a property that
// is not unique cannot be queried.
func TestHubSpotReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, h := hubSpot("contact")
		con, _ := a.connector(t)
		h.SetLag(30 * time.Second)
		in := a.intent(intent.Create, 1)
		if _, err := a.send(t, con, in, 1); err != nil {
			t.Fatal(err)
		}
		o, err := con.Read(t.Context(), a.query(in, ""))
		if err != nil || len(o.Records) != 1 || o.Strength != connectors.Strong {
			t.Fatalf("%+v, %v; want the contact at once, strongly", o, err)
		}
		for _, call := range h.Calls() {
			if strings.Contains(call.Path, "/search") || (call.Method == "GET" && !strings.Contains(call.Path, "properties=")) {
				t.Errorf("%s %s: neither the search nor a read of default properties may be asked", call.Method, call.Path)
			}
		}
	})
	loose := fakerest.NewHubSpot("pat-na1", []string{"readback_key", "readback_stamp"}, nil)
	a, _ := hubSpot("keyed-contact")
	a.fake = loose.Fake
	con, _ := a.connector(t)
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe is content with a stamp property that is not unique")
	}
	if o, err := con.Read(t.Context(), a.query(a.intent(intent.Create, 1), "")); err == nil {
		t.Errorf("a lookup by a property that is not unique says %d records, want an error", len(o.Records))
	}
}

// TestHubSpotAddress: an address in other letters and with blanks is the same
// contact, and what it looks like there is right.
func TestHubSpotAddress(t *testing.T) {
	a, _ := hubSpot("contact")
	con, p := a.connector(t)
	in := a.intent(intent.Create, 1)
	in.Key = intent.Fields{"email": "Ada.Lovelace@Example.COM"}
	if v := judged(t, a, con, p, in); v != verify.Verified {
		t.Errorf("the create is %s, want verified", v)
	}
	again := in
	again.Tool = "later"
	o, err := con.Read(t.Context(), a.query(again, ""))
	if err != nil || len(o.Records) != 1 {
		t.Errorf("%+v, %v; want the contact under its address", o.Records, err)
	}
}

// TestHubSpotStampStays: no update takes a contact from the write that made it.
func TestHubSpotStampStays(t *testing.T) {
	a, _ := hubSpot("contact")
	con, _ := a.connector(t)
	made := a.intent(intent.Create, 1)
	if _, err := a.send(t, con, made, 1); err != nil {
		t.Fatal(err)
	}
	was := a.under(made.Key)[0].Stamp
	in := a.intent(intent.Update, 1)
	in.Payload = intent.Fields{"readback_stamp": "rb-of-another-actor"}
	if _, err := a.send(t, con, in, 1); err != nil {
		t.Logf("refused: %v", err)
	}
	if now := a.under(made.Key)[0].Stamp; now != was {
		t.Errorf("the stamp is %q, and was %q", now, was)
	}
}

// TestHubSpotNotFound: a 404 that does not speak of an object is no absence.
func TestHubSpotNotFound(t *testing.T) {
	a, _ := hubSpot("contact")
	elsewhere := fakerest.NewGitHub(fakerest.GitHubOptions{Token: "pat-na1"})
	a.fake = elsewhere.Fake
	con, _ := a.connector(t)
	if o, err := con.Read(t.Context(), a.query(a.intent(intent.Create, 1), "")); err == nil {
		t.Errorf("an API that does not know the path says %d records, want an error", len(o.Records))
	}
}

// TestHubSpotStage: a lifecycle stage that did not move is seen.
func TestHubSpotStage(t *testing.T) {
	a, _ := hubSpot("contact")
	con, p := a.connector(t)
	made := a.intent(intent.Create, 1)
	made.Expect["lifecyclestage"] = "customer"
	if _, err := a.send(t, con, made, 1); err != nil {
		t.Fatal(err)
	}
	back := whole(a, a.intent(intent.Update, 1))
	back.Expect = intent.Fields{"lifecyclestage": "lead"}
	if j := judged(t, a, con, p, back); j == verify.Verified {
		t.Error("the update is verified, though HubSpot left the stage as it was")
	}
	if !slices.Contains(p.Unique, intent.Create) || slices.Contains(p.Unique, intent.Update) || len(p.Conditional) > 0 {
		t.Errorf("unique %v, conditional %v: want creates unique, no update, and nothing conditional", p.Unique, p.Conditional)
	}
}

// judged sends a write and returns the verdict of a read.
func judged(t *testing.T, a api, con connectors.Connector, p connectors.Profile, in intent.WriteIntent) verify.Verdict {
	t.Helper()
	in = whole(a, in)
	before, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: &before})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp(), Ref: receipt.Ref})
	if err != nil {
		t.Fatal(err)
	}
	return verify.Judge(verify.Case{Intent: in, Profile: p, Stamp: in.Stamp(), Before: &before, Seen: seen}).Verdict
}
