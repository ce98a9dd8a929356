package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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

func zendesk(o fakerest.ZendeskOptions) (api, *fakerest.Zendesk) {
	z := fakerest.NewZendesk(o)
	return api{
		fake: z.Fake, name: "zendesk-tickets", kind: "ticket", collection: fakerest.Tickets, list: "/api/v2/tickets.json",
		options: rest.Options{
			Parameters: map[string]string{"subdomain": "acme", "email": "agent@example.com"},
			Secrets:    secrets(map[string]string{"token": "zendesk-token"}),
		},
		intent: zendeskIntent, near: zendeskNear, record: zendeskRecord,
		put: func(f intent.Fields, stamp string) error {
			o := z.SeedTicket(fmt.Sprint(f["external_id"]), nil)
			if err := zendeskAlter(z, o, f); err != nil || stamp == "" {
				return err
			}
			return zendeskAlter(z, z.Now(fakerest.Tickets)[len(z.Now(fakerest.Tickets))-1], intent.Fields{"tags": append(anyOf(f["tags"]), stamp)})
		},
		alter:  func(o fakerest.Object, f intent.Fields) error { return zendeskAlter(z, o, f) },
		change: intent.Fields{"type": "task"},
		traits: traits{lacks: map[string]string{connectortest.LacksFindStamp: "tickets can be listed by external id alone; by tag only the search finds them, which lags"}},
	}, z
}

// zendeskAlter changes a ticket as another actor would: a second later, since the times of tickets
// are of whole seconds.
func zendeskAlter(z *fakerest.Zendesk, o fakerest.Object, f intent.Fields) error {
	z.Edit(fakerest.Tickets, fmt.Sprint(o["id"]), func(o fakerest.Object) {
		o["updated_at"] = time.Now().Add(time.Second).UTC().Format(time.RFC3339)
		for name, v := range f {
			if name == "tags" {
				v = append(fakerest.Tags(stringsOf(v)), zendeskOwn(o)...)
			}
			if name != "id" {
				o[name] = v
			}
		}
	})
	return nil
}

func anyOf(list any) []any {
	items, _ := list.([]any)
	return slices.Clone(items)
}

var zendeskStamp = regexp.MustCompile(`^rb-[a-z2-7]{32}$`)

func zendeskOwn(o fakerest.Object) []any {
	own := []any{}
	for _, tag := range stringsOf(o["tags"]) {
		if zendeskStamp.MatchString(tag) {
			own = append(own, tag)
		}
	}
	return own
}

// zendeskRecord shows a ticket as the declaration should.
func zendeskRecord(o fakerest.Object) (connectors.Record, bool) {
	if o == nil {
		return connectors.Record{}, false
	}
	r := connectors.Record{Ref: fmt.Sprint(o["id"]), Version: o.Text("updated_at"), Fields: intent.Fields{}}
	for _, name := range []string{"id", "external_id", "subject", "description", "priority", "type", "status", "requester_id", "assignee_id", "group_id"} {
		r.Fields[name] = o[name]
	}
	tags := []any{}
	for _, tag := range stringsOf(o["tags"]) {
		if zendeskStamp.MatchString(tag) {
			r.Stamp = tag
			continue
		}
		tags = append(tags, tag)
	}
	r.Fields["tags"] = tags
	return r, true
}

func zendeskIntent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "ticket", Write: w, Key: intent.Fields{"external_id": fmt.Sprintf("case-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"subject": fmt.Sprintf("Printer %d on fire", n), "description": "Since noon.\n\nIt smokes.", "priority": "high", "tags": []any{"hardware", "vip"},
		}
	case intent.Update:
		in.Expect = intent.Fields{"subject": "Printer was on fire", "priority": "low", "tags": []any{"hardware"}}
	}
	return in
}

func zendeskNear(n int) []intent.WriteIntent {
	id := fmt.Sprintf("case-%03d", n)
	return connectortest.Near(zendeskIntent, "external_id", strings.ToUpper(id), id[:len(id)-1], id+"0", "case/001", "case_001", "001", "Case-001")
}

func zendeskSuite() connectortest.Harness {
	return suite(func() api { a, _ := zendesk(fakerest.ZendeskOptions{}); return a }, intent.Create, intent.Update, intent.Delete)
}

func TestZendesk(t *testing.T) { connectortest.Run(t, zendeskSuite()) }

func TestZendeskDeclared(t *testing.T) {
	a, _ := zendesk(fakerest.ZendeskOptions{})
	declared(t, a)
	c, _ := a.connector(t)
	if err := a.fake.Set(fault.Fault{Kind: fault.UnreadableRead, How: "empty"}.Once()); err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); err == nil {
		t.Error("the probe is content with a user who has no id, as an unknown caller has")
	}
}

func TestZendeskAudit(t *testing.T) {
	audit(t, zendeskSuite(),
		verifytest.Difference{
			Name: "tags", Reason: "tags are kept in lower case and in order",
			Declared: func(w *intent.WriteIntent) { w.Expect["tags"] = []any{"VIP", "Hardware"} },
		},
		verifytest.Difference{
			Name: "trimmed", Reason: "text is trimmed, and line ends become LF",
			Stored: func(w *intent.WriteIntent) {
				w.Expect["subject"], w.Expect["description"] = fmt.Sprintf(" %s", w.Expect["subject"]), "Since noon.\r\n\r\nIt smokes.\r\n"
			},
		},
		verifytest.Difference{
			Name: "triggers", Reason: "what a trigger sets afterwards is no change of the update's",
			Write: intent.Update,
			Stored: func(w *intent.WriteIntent) {
				delete(w.Expect, "tags")
			},
			Declared: func(w *intent.WriteIntent) { delete(w.Expect, "tags") },
			After: func(f *connectortest.Fixture, w intent.WriteIntent) {
				if err := f.Alter(w.Key, intent.Fields{"status": "open", "tags": []any{"hardware", "vip", "routed"}, "group_id": json.Number("78")}); err != nil {
					panic(err)
				}
			},
		},
	)
}

// TestZendeskKey: the header is honoured on create, compares what is sent, and
// forgets after its window.
func TestZendeskKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, z := zendesk(fakerest.ZendeskOptions{})
		con, _ := a.connector(t)
		in := zendeskIntent(intent.Create, 1)
		first, err := a.send(t, con, in, 1)
		if err != nil || first.Replay {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := a.send(t, con, in, 2)
		if err != nil || !again.Replay || again.Ref != first.Ref {
			t.Errorf("%+v, %v; want the first answer again, marked as a replay", again, err)
		}
		other := zendeskIntent(intent.Create, 1)
		other.Expect["subject"] = "Something else"
		var e *connectors.Error
		if _, err := a.send(t, con, other, 2); !errors.As(err, &e) || !e.Conflict {
			t.Errorf("%v; want a conflict: the key was used, so an earlier send landed", err)
		}
		if n := a.effects(in.Key); n != 1 {
			t.Errorf("%d tickets, want 1", n)
		}
		for _, call := range z.Calls() {
			key := call.Header.Get("Idempotency-Key")
			if call.Write && (key == "" || strings.ContainsAny(key, `"`)) {
				t.Errorf("%s was sent with the key %q, want the key as it is, without quotes", call.Method, key)
			}
		}
		<-time.After(2*time.Hour + time.Second)
		if _, err := a.send(t, con, in, 3); err != nil || a.effects(in.Key) != 2 {
			t.Errorf("%v, %d tickets; the fake should have forgotten the key", err, a.effects(in.Key))
		}
		o, err := con.Read(t.Context(), a.query(in, first.Ref))
		if err != nil || len(o.Records) != 2 {
			t.Errorf("%d records, %v; external ids are not unique, and both must be seen", len(o.Records), err)
		}
	})
}

// TestZendeskKeyNowhereElse: Go's transport sends a request with the header a
// second time by itself.
func TestZendeskKeyNowhereElse(t *testing.T) {
	a, z := zendesk(fakerest.ZendeskOptions{})
	con, _ := a.connector(t)
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Delete} {
		if _, err := a.send(t, con, zendeskIntent(w, 1), 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range z.Calls() {
		if call.Method != "POST" && call.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s %s carries an Idempotency-Key, which only creating honours", call.Method, call.Path)
		}
		if strings.Contains(call.Path, "/search") {
			t.Errorf("%s: the search was asked", call.Path)
		}
	}
}

// TestZendeskTriggers: a trigger's tag appears seconds after the write. An intent that expects
// tags exactly then mismatches; one that only sends them does not.
func TestZendeskTriggers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *intent.WriteIntent)
		want   verify.Verdict
		reason string
	}{
		"expected": {func(*intent.WriteIntent) {}, verify.Mismatched, "the tags are others than declared"},
		"sent": {func(w *intent.WriteIntent) {
			w.Payload = intent.Fields{"tags": w.Expect["tags"]}
			delete(w.Expect, "tags")
		}, verify.Verified, "tags that are not expected do not count"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, z := zendesk(fakerest.ZendeskOptions{TriggerTag: "routed"})
				con, p := a.connector(t)
				in := zendeskIntent(intent.Create, 1)
				c.change(&in)
				if _, err := a.send(t, con, in, 1); err != nil {
					t.Fatal(err)
				}
				<-time.After(3 * time.Second)
				if got := fmt.Sprint(z.Now(fakerest.Tickets)[0]["tags"]); !strings.Contains(got, "routed") {
					t.Fatalf("the trigger has not come: %s", got)
				}
				j := a.judge(t, con, p, in)
				if j.Verdict != c.want {
					t.Errorf("%s (%s %v), want %s: %s", j.Verdict, j.Reason, j.Mismatches, c.want, c.reason)
				}
			})
		})
	}
}

// TestZendeskKeys: an external id that the list would read as two is turned
// down; so are fields that the write cannot carry.
func TestZendeskKeys(t *testing.T) {
	for _, id := range []string{"a,b", "", "a b", "é"} {
		a, z := zendesk(fakerest.ZendeskOptions{})
		con, _ := a.connector(t)
		in := zendeskIntent(intent.Create, 1)
		in.Key = intent.Fields{"external_id": id}
		if _, err := a.send(t, con, in, 1); connectors.FateOf(err) != connectors.FateNotSent {
			t.Errorf("%q: %v, want not sent", id, err)
		}
		if _, err := con.Read(t.Context(), a.query(in, "")); err == nil {
			t.Errorf("%q: a read that cannot be exact says nothing is wrong", id)
		}
		if writes, reads := z.Count(); writes+reads > 0 {
			t.Errorf("%q: %d requests arrived", id, writes+reads)
		}
	}
	for name, c := range map[string]struct {
		write  intent.WriteType
		field  string
		reason string
	}{
		"description": {intent.Update, "description", "the first comment cannot be changed"},
		"comment":     {intent.Update, "comment", "a comment would be added by every repeat"},
		"stamp stamp": {intent.Create, "safe_update", "only the connector makes writes conditional"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := zendesk(fakerest.ZendeskOptions{})
			con, _ := a.connector(t)
			if _, err := a.send(t, con, zendeskIntent(intent.Create, 1), 1); err != nil {
				t.Fatal(err)
			}
			in := zendeskIntent(c.write, 1)
			in.Payload = intent.Fields{c.field: "x"}
			_, err := a.send(t, con, in, 1)
			if connectors.FateOf(err) != connectors.FateRefused || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%v, want it not sent, and the field named: %s", err, c.reason)
			}
		})
	}
}

// TestZendeskByID: a ticket by its id is read strongly, and its own tags stay.
func TestZendeskByID(t *testing.T) {
	a, z := zendesk(fakerest.ZendeskOptions{})
	con, _ := a.connector(t)
	theirs := z.SeedTicket("x", fakerest.Object{"subject": "theirs", "tags": []any{"a"}})
	in := intent.WriteIntent{Write: intent.Update, Key: intent.Fields{"id": theirs["id"]}, Expect: intent.Fields{"priority": "low", "tags": []any{"a", "b"}}}
	o, err := con.Read(t.Context(), a.query(in, ""))
	if err != nil || len(o.Records) != 1 || o.Strength != connectors.Strong {
		t.Fatalf("%+v, %v; want the ticket, read strongly", o, err)
	}
	if _, err := a.send(t, con, in, 1); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(z.Now(fakerest.Tickets)[0]["tags"]); got != "[a b]" {
		t.Errorf("tags %s, want those that were asked for", got)
	}
	in.Key["id"] = json.Number("999")
	if o, err := con.Read(t.Context(), a.query(in, "")); err != nil || len(o.Records) != 0 {
		t.Errorf("%v, %v; want nothing, the API says that there is no such record", o, err)
	}
}

// TestZendeskWrongAddress: an address that does not exist also answers 404. Nothing is absent
// there.
func TestZendeskWrongAddress(t *testing.T) {
	a, _ := zendesk(fakerest.ZendeskOptions{})
	a.options.BaseURL = "https://acme.zendesk.com/elsewhere"
	con, _ := a.connector(t)
	for _, key := range []intent.Fields{{"id": json.Number("1")}, {"external_id": "x"}} {
		in := intent.WriteIntent{Write: intent.Update, Key: key, Expect: intent.Fields{"priority": "low"}}
		if o, err := con.Read(t.Context(), a.query(in, "1")); err == nil {
			t.Errorf("%v: %d records, want an error", key, len(o.Records))
		}
	}
}
