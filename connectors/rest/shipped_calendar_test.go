package rest_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
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

const team = "team@example.com"

func calendar() (api, *fakerest.Calendar) {
	c := fakerest.NewCalendar("ya29", team, berlin())
	a := api{
		fake: c.Fake, name: "google-calendar-events", kind: "event", collection: "events",
		options: rest.Options{
			Parameters: map[string]string{"calendar": team},
			Secrets:    secrets(map[string]string{"token": "ya29"}),
		},
		intent: event, near: nearEvents, record: eventRecord,
		traits: traits{lacks: map[string]string{
			string(fault.LaggingRead):            "events are read by id alone, which does not lag",
			string(fault.DuplicateBehindOurBack): "there is one event under an id",
			connectortest.LacksFindStamp:         "the id is the key: no event of ours can have another",
		}},
	}
	a.put = func(f intent.Fields, stamp string) error { return putEvent(c, f, stamp) }
	a.alter = func(o fakerest.Object, f intent.Fields) error {
		c.Edit("events", o.Text("id"), func(o fakerest.Object) { setEvent(o, f) })
		return nil
	}
	return a, c
}

func event(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "event", Write: w, Key: intent.Fields{"id": fmt.Sprintf("booking%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"summary": fmt.Sprintf("Meet Ada, %d", n), "location": fmt.Sprintf("Room %d", n), "attendees": []any{"Grace@Example.com", "ada@example.com"},
			"start": map[string]any{"dateTime": "2030-06-01T10:00:00Z"},
			"end":   map[string]any{"dateTime": "2030-06-01T11:00:00Z"},
		}
		in.Payload = intent.Fields{"invite": []any{
			map[string]any{"email": "Grace@Example.com"}, map[string]any{"email": "ada@example.com", "optional": true},
		}}
	case intent.Update:
		in.Expect = intent.Fields{"summary": "Meet Grace", "location": "Room 2", "start": map[string]any{"dateTime": "2030-06-01T10:30:00Z"}}
	}
	return in
}

func nearEvents(n int) []intent.WriteIntent {
	id := fmt.Sprintf("booking%03d", n)
	return connectortest.Near(event, "id", id+"0", id[:len(id)-1], "b"+id, "booking"+fmt.Sprint(n), "o"+id[1:])
}

// eventRecord shows an event as the declaration should.
func eventRecord(o fakerest.Object) (connectors.Record, bool) {
	if o == nil || o.Text("status") == "cancelled" {
		return connectors.Record{}, false
	}
	f := intent.Fields(o.Shown())
	addresses := []any{}
	listed, _ := o["attendees"].([]any)
	for _, a := range listed {
		addresses = append(addresses, a.(map[string]any)["email"])
	}
	f["attendees"] = addresses
	return connectors.Record{Ref: o.Text("id"), Version: o.Text("etag"), Stamp: eventStamp(o), Fields: f}, true
}

func eventStamp(o fakerest.Object) string {
	extended, _ := o["extendedProperties"].(map[string]any)
	private, _ := extended["private"].(map[string]any)
	stamp, _ := private["readback"].(string)
	return stamp
}

func putEvent(c *fakerest.Calendar, f intent.Fields, stamp string) error {
	id := fmt.Sprint(f["id"])
	for _, o := range c.Now("events") {
		if o.Text("id") == id {
			return errors.New("there is one event under an id")
		}
	}
	c.Put("events", func(fakerest.View) (string, fakerest.Object) {
		o := fakerest.Object{"kind": "calendar#event", "status": "confirmed", "etag": `"1"`}
		setEvent(o, f)
		delete(o, "invite")
		if stamp != "" {
			o["extendedProperties"] = map[string]any{"private": map[string]any{"readback": stamp}}
		}
		return id, o
	})
	return nil
}

func setEvent(o fakerest.Object, f intent.Fields) {
	for name, v := range f {
		o[name] = v
		if name == "start" || name == "end" {
			o[name] = inBerlin(v)
		}
		if list, ok := v.([]any); ok && name == "attendees" {
			var all []any
			for _, email := range list {
				all = append(all, map[string]any{"email": strings.ToLower(fmt.Sprint(email)), "responseStatus": "needsAction"})
			}
			slices.SortFunc(all, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			o[name] = all
		}
	}
	o["etag"] = fmt.Sprintf(`"%d"`, time.Now().UnixNano())
}

// inBerlin is a time as the calendar keeps it.
func inBerlin(v any) any {
	at, _ := v.(map[string]any)
	text, _ := at["dateTime"].(string)
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return v
	}
	return map[string]any{"dateTime": instant.In(berlin()).Format(time.RFC3339), "timeZone": "Europe/Berlin"}
}

func berlin() *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return zone
}

func calendarSuite() connectortest.Harness {
	return suite(func() api { a, _ := calendar(); return a }, intent.Create, intent.Update, intent.Delete)
}

func TestCalendar(t *testing.T) { connectortest.Run(t, calendarSuite()) }

func TestCalendarDeclared(t *testing.T) {
	a, _ := calendar()
	declared(t, a)
}

func TestCalendarAudit(t *testing.T) {
	audit(t, calendarSuite(),
		verifytest.Difference{
			Name: "zone", Reason: "times come back in the calendar's zone",
			Stored: func(w *intent.WriteIntent) {
				w.Expect["start"] = map[string]any{"dateTime": "2030-06-01T05:00:00-05:00"}
			},
		},
		verifytest.Difference{
			Name: "attendees", Reason: "attendees are a set of addresses, in lower case",
			Declared: func(w *intent.WriteIntent) { w.Expect["attendees"] = []any{"ADA@example.com", "grace@example.com"} },
		},
		verifytest.Difference{
			Name: "answered", Reason: "an attendee accepts",
			After: func(f *connectortest.Fixture, w intent.WriteIntent) {
				if err := f.Alter(w.Key, intent.Fields{"sequence": fakerest.Number(3), "hangoutLink": "https://meet.google.com/x"}); err != nil {
					panic(err)
				}
			},
		},
		verifytest.Difference{
			Name: "sanitised", Reason: "markup of a description is cleaned, its words stay",
			Stored: func(w *intent.WriteIntent) {
				w.Expect["description"] = "<p style=\"x\">Bring <b>papers</b></p><script>alert(1)</script>\r\n"
			},
			Declared: func(w *intent.WriteIntent) { w.Expect["description"] = "<p style=\"x\">Bring <b>papers</b></p>\r\n" },
		},
	)
}

func TestCalendarAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind     fault.Kind
		how      string
		write    intent.WriteType
		want     connectors.Fate
		wait     time.Duration
		conflict bool
		reason   string
	}{
		"rate":            {fault.Throttled, "rateLimitExceeded", intent.Create, connectors.FateThrottled, 0, false, "403 with its reason"},
		"user rate":       {fault.Throttled, "userRateLimitExceeded", intent.Update, connectors.FateThrottled, 0, false, "403 with its reason"},
		"quota":           {fault.Throttled, "quotaExceeded", intent.Delete, connectors.FateThrottled, 0, false, "403 with its reason"},
		"too many":        {fault.Throttled, "", intent.Create, connectors.FateThrottled, time.Second, false, "429"},
		"forbidden":       {fault.Refused, "403", intent.Create, connectors.FateRefused, 0, false, "403 for lack of permission"},
		"no calendar":     {fault.Refused, "404", intent.Create, connectors.FateRefused, 0, false, "404 for lack of a calendar"},
		"expired":         {fault.Refused, "401", intent.Delete, connectors.FateLogin, 0, false, "the token ran out"},
		"bad time":        {fault.Refused, "", intent.Update, connectors.FateRefused, 0, false, "400"},
		"cut off, create": {fault.LostAnswer, "", intent.Create, connectors.FateUnknown, 0, false, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			a, cal := calendar()
			con, _ := a.connector(t)
			if c.write != intent.Create {
				if _, err := a.send(t, con, event(intent.Create, 1), 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := cal.Set(fault.Fault{Kind: c.kind, How: c.how}.Once()); err != nil {
				t.Fatal(err)
			}
			_, err := a.send(t, con, event(c.write, 1), 1)
			checkFate(t, err, c.want, c.wait, c.conflict, c.reason)
		})
	}
}

// TestCalendarKeepsIDs: a deleted event is gone for a reader, and its id is not
// free.
func TestCalendarKeepsIDs(t *testing.T) {
	a, cal := calendar()
	con, p := a.connector(t)
	made := event(intent.Create, 1)
	if _, err := a.send(t, con, made, 1); err != nil {
		t.Fatal(err)
	}
	if v := judged(t, a, con, p, event(intent.Delete, 1)); v != verify.Verified {
		t.Errorf("the delete is %s, want verified: the event can be read as cancelled only", v)
	}
	again := made
	again.Tool = "later"
	_, err := a.send(t, con, again, 1)
	checkFate(t, err, connectors.FateRefused, 0, true, "an id is not given twice, even when its event is gone")
	if o, err := con.Read(t.Context(), a.query(again, "")); err != nil || len(o.Records) != 0 {
		t.Errorf("%+v, %v; want no record: the event is cancelled", o.Records, err)
	}
	if events := cal.Now("events"); len(events) != 1 {
		t.Errorf("%d events, want the cancelled one", len(events))
	}
	in := whole(a, event(intent.Delete, 1))
	before := connectors.Observation{Records: []connectors.Record{{Ref: "booking001", Version: "*"}}}
	_, err = con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 2, Before: &before})
	checkFate(t, err, connectors.FateRefused, 0, true, "410 to a repeated delete is evidence that the first one landed")
}

// TestCalendarCollision: Google may not see that an id exists. There is one event then, and the
// losing write must not be verified.
func TestCalendarCollision(t *testing.T) {
	a, cal := calendar()
	con, p := a.connector(t)
	ours, theirs := whole(a, event(intent.Create, 1)), whole(a, event(intent.Create, 1))
	theirs.Workflow = "wf-2"
	cal.Overlook(1)
	for i, in := range []intent.WriteIntent{ours, theirs} {
		if i == 1 {
			cal.Overlook(1)
		}
		if _, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: &connectors.Observation{}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(cal.Now("events")); n != 1 {
		t.Fatalf("%d events under one id, want 1", n)
	}
	for in, want := range map[*intent.WriteIntent]bool{&ours: false, &theirs: true} {
		o, err := con.Read(t.Context(), connectors.Query{Intent: *in, Stamp: in.Stamp()})
		if err != nil {
			t.Fatal(err)
		}
		c := verify.Case{Intent: *in, Profile: p, Stamp: in.Stamp(), Before: &connectors.Observation{Strength: connectors.Strong}, Seen: o}
		if j := verify.Judge(c); (j.Verdict == verify.Verified) != want {
			t.Errorf("workflow %s gets %s, want verified: %v", in.Workflow, j.Verdict, want)
		}
	}
	if d, ok := p.Recheck.Declared(); !ok || d == 0 {
		t.Error("no recheck is declared: what was verified may be overwritten a moment later")
	}
}

// TestCalendarRepeat: a lost answer and a repeat leave one event.
func TestCalendarRepeat(t *testing.T) {
	a, cal := calendar()
	con, _ := a.connector(t)
	in := event(intent.Create, 1)
	if err := cal.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.send(t, con, in, 1); connectors.FateOf(err) != connectors.FateUnknown {
		t.Fatalf("%v, want the fate unknown", err)
	}
	_, err := a.send(t, con, in, 2)
	checkFate(t, err, connectors.FateRefused, 0, true, "the second one meets the first")
	if n := len(cal.Now("events")); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// TestCalendarNoAccess: "no such event" and "no such calendar for you" are the
// same answer, and only one of them is absence.
func TestCalendarNoAccess(t *testing.T) {
	a, _ := calendar()
	a.options.Parameters = map[string]string{"calendar": "boss@example.com"}
	con, _ := a.connector(t)
	if o, err := con.Read(t.Context(), a.query(event(intent.Create, 1), "")); err == nil {
		t.Errorf("a calendar that is hidden says %d records, want an error", len(o.Records))
	}
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe is content with a calendar that cannot be seen")
	}
}

// TestCalendarStampStays: no update takes an event from the write that made it,
// and none is sent a field that this declaration does not know.
func TestCalendarStampStays(t *testing.T) {
	a, _ := calendar()
	con, _ := a.connector(t)
	if _, err := a.send(t, con, event(intent.Create, 1), 1); err != nil {
		t.Fatal(err)
	}
	was := a.under(event(intent.Create, 1).Key)[0].Stamp
	in := event(intent.Update, 1)
	in.Expect["extendedProperties"] = map[string]any{"private": map[string]any{"readback": "rb-of-another-actor"}}
	if _, err := a.send(t, con, in, 1); err != nil {
		t.Fatal(err)
	}
	if now := a.under(in.Key)[0].Stamp; now != was {
		t.Errorf("the stamp is %q, and was %q", now, was)
	}
	in.Payload = intent.Fields{"recurrence": []any{"RRULE:FREQ=DAILY"}}
	_, err := a.send(t, con, in, 1)
	checkFate(t, err, connectors.FateRefused, 0, false, "a payload field that no request names would be lost")
}

// TestCalendarNotifiesNoAttendee: no write has mail sent, and none leaves its
// condition out.
func TestCalendarNotifiesNoAttendee(t *testing.T) {
	a, cal := calendar()
	con, p := a.connector(t)
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Delete} {
		in := whole(a, event(w, 1))
		before, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if err != nil {
			t.Fatal(err)
		}
		r := connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: &before, Conditional: slices.Contains(p.Conditional, w)}
		if _, err := con.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range cal.Calls() {
		if call.Write && !strings.Contains(call.Path, "sendUpdates=none") {
			t.Errorf("%s %s may send mail", call.Method, call.Path)
		}
		if match := call.Header.Get("If-Match"); call.Write && (match == "") != (call.Method == "POST") {
			t.Errorf("%s with If-Match %q", call.Method, match)
		}
	}
}
