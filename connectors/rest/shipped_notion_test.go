package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
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

const dataSource = "11111111-2222-4333-8444-555555555555"

func notion(o fakerest.NotionOptions) (api, *fakerest.Notion) {
	n := fakerest.NewNotion(o)
	return api{
		fake: n.Fake, name: "notion-pages", kind: "page", collection: fakerest.Pages,
		list: "/v1/data_sources/" + dataSource + "/query", lookups: 2, change: intent.Fields{"notes": "by hand"},
		options: rest.Options{
			Parameters: map[string]string{"data_source": dataSource},
			Secrets:    secrets(map[string]string{"token": "notion-token"}),
		},
		intent: pageIntent, near: pageNear, record: pageRecord,
		put: func(f intent.Fields, stamp string) error {
			given := pageProperties(f)
			if stamp != "" {
				given["Stamp"] = map[string]any{"rich_text": pageText(stamp)}
			}
			_, err := n.SeedPage(given)
			return err
		},
		alter: func(o fakerest.Object, f intent.Fields) error {
			return n.EditPage(o.Text("id"), pageProperties(f))
		},
	}, n
}

func pageText(v any) any {
	return []any{map[string]any{"text": map[string]any{"content": fmt.Sprint(v)}}}
}

// pageProperties writes fields as a request of Notion's does.
func pageProperties(f intent.Fields) map[string]any {
	given := map[string]any{}
	for name, v := range f {
		text := pageText(v)
		if nothing(v) {
			text = []any{}
		}
		switch name {
		case "key":
			given["Intent key"] = map[string]any{"rich_text": text}
		case "name":
			given["Name"] = map[string]any{"title": text}
		case "notes":
			given["Notes"] = map[string]any{"rich_text": text}
		case "status":
			given["Status"] = map[string]any{"select": nil}
			if !nothing(v) {
				given["Status"] = map[string]any{"select": map[string]any{"name": v}}
			}
		case "amount":
			given["Amount"] = map[string]any{"number": v}
		case "due":
			given["Due"] = map[string]any{"date": nil}
			if !nothing(v) {
				given["Due"] = map[string]any{"date": map[string]any{"start": v}}
			}
		case "done":
			given["Done"] = map[string]any{"checkbox": v}
		}
	}
	return given
}

// pageRecord shows a page as the declaration should.
func pageRecord(o fakerest.Object) (connectors.Record, bool) {
	if o == nil || o["in_trash"] == true {
		return connectors.Record{}, false
	}
	properties := o["properties"].(map[string]any)
	inside := func(name string, members ...string) any {
		v := properties[name]
		for _, m := range members {
			object, _ := v.(map[string]any)
			v = object[m]
		}
		return v
	}
	return connectors.Record{
		Ref: o.Text("id"), Version: o.Text("last_edited_time"), Stamp: fakerest.PageText(o, "Stamp"),
		Fields: intent.Fields{
			"key": fakerest.PageText(o, "Intent key"), "name": fakerest.PageText(o, "Name"), "notes": fakerest.PageText(o, "Notes"),
			"status": inside("Status", "select", "name"), "amount": inside("Amount", "number"),
			"due": inside("Due", "date", "start"), "done": inside("Done", "checkbox"),
		},
	}, true
}

func pageIntent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "page", Write: w, Key: intent.Fields{"key": fmt.Sprintf("Deal %03d, Ltd.", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"name": fmt.Sprintf("Deal %d with a rather long name", n), "notes": "Two lines,\nof which this is one.", "status": "Open",
			"amount": json.Number("1200.5"), "due": "2026-12-24T18:00:00Z", "done": false,
		}
	case intent.Update:
		in.Expect = intent.Fields{"amount": json.Number("1300"), "status": "Won", "name": "A deal"}
	}
	return in
}

func pageNear(n int) []intent.WriteIntent {
	id := fmt.Sprintf("Deal %03d, Ltd.", n)
	return connectortest.Near(pageIntent, "key", strings.ToUpper(id), id[:len(id)-1], id+"0", " "+id, id+" ", "Deal 001", `Deal "001"`, "Déal 001, Ltd.", "%")
}

func pageSuite() connectortest.Harness {
	return suite(func() api { a, _ := notion(fakerest.NotionOptions{}); return a }, intent.Create, intent.Update, intent.Delete)
}

func TestNotion(t *testing.T) { connectortest.Run(t, pageSuite()) }

func TestNotionDeclared(t *testing.T) {
	a, _ := notion(fakerest.NotionOptions{})
	declared(t, a)
	less, _ := notion(fakerest.NotionOptions{Properties: map[string]string{"Name": "title", "Intent key": "rich_text"}})
	con, _ := less.connector(t)
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe accepts a data source without a property for the stamp")
	}
}

func TestNotionAudit(t *testing.T) {
	audit(t, pageSuite(),
		verifytest.Difference{
			Name: "zones", Reason: "a date comes back with milliseconds and an offset",
			Declared: func(w *intent.WriteIntent) { w.Expect["due"] = "2026-12-24T19:00:00+01:00" },
		},
		verifytest.Difference{
			Name: "long text", Reason: "text comes back in runs, however long",
			Stored:   func(w *intent.WriteIntent) { w.Expect["notes"] = strings.Repeat("ab cé\n", 333) },
			Declared: func(w *intent.WriteIntent) { w.Expect["notes"] = strings.Repeat("ab cé\n", 333) },
		},
		verifytest.Difference{
			Name: "numbers", Reason: "a number is what it is worth",
			Declared: func(w *intent.WriteIntent) { w.Expect["amount"] = json.Number("1200.50") },
		},
	)
}

// TestNotionAnswers: what each refusal means.
func TestNotionAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind   fault.Kind
		how    string
		fate   connectors.Fate
		wait   time.Duration
		reason string
	}{
		"rate limited": {fault.Throttled, "429", connectors.FateThrottled, 7 * time.Second, "429 with Retry-After"},
		"overloaded":   {fault.Throttled, "529", connectors.FateThrottled, 7 * time.Second, "529 was not applied"},
		"without time": {fault.Throttled, "529-bare", connectors.FateThrottled, 0, "529 need not say for how long"},
		"collision":    {fault.Throttled, "409", connectors.FateThrottled, 0, "conflict_error says that nothing was written, not that the page exists"},
		"invalid":      {fault.Refused, "400", connectors.FateRefused, 0, "validation"},
		"not shared":   {fault.Refused, "404", connectors.FateRefused, 0, "404: not shared"},
		"gateway":      {fault.BadGateway, "504", connectors.FateUnknown, 0, "a gateway's answer says nothing about the API"},
		"error":        {fault.BadGateway, "500", connectors.FateUnknown, 0, "500 can have been applied"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, n := notion(fakerest.NotionOptions{})
				con, _ := a.connector(t)
				if err := n.Set(fault.Fault{Kind: c.kind, Times: 1, How: c.how, Delay: 7 * time.Second}); err != nil {
					t.Fatal(err)
				}
				_, err := a.send(t, con, pageIntent(intent.Create, 1), 2)
				var e *connectors.Error
				if connectors.FateOf(err) != c.fate || errors.As(err, &e) && (e.RetryAfter != c.wait || e.Conflict) {
					t.Errorf("%v (%+v), want %q after %v and no conflict: %s", err, e, c.fate, c.wait, c.reason)
				}
			})
		})
	}
}

// TestNotionNotShared: an integration without access also gets 404. That is never absence.
func TestNotionNotShared(t *testing.T) {
	a, _ := notion(fakerest.NotionOptions{NotShared: true})
	con, _ := a.connector(t)
	in := pageIntent(intent.Create, 1)
	for _, ref := range []string{"", "00000000-0000-4000-8000-000000000001"} {
		if o, err := con.Read(t.Context(), a.query(in, ref)); err == nil {
			t.Errorf("with the ref %q the read says %d records, want an error", ref, len(o.Records))
		}
	}
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe is content")
	}
}

// TestNotionTrash: a page in the trash is gone, for every query, and frees the key.
func TestNotionTrash(t *testing.T) {
	a, n := notion(fakerest.NotionOptions{})
	con, _ := a.connector(t)
	in := pageIntent(intent.Create, 1)
	receipt, err := a.send(t, con, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.send(t, con, pageIntent(intent.Delete, 1), 1); err != nil {
		t.Fatal(err)
	}
	o, err := con.Read(t.Context(), a.query(in, receipt.Ref))
	if err != nil || len(o.Records) != 0 {
		t.Errorf("%+v, %v; want nothing", o.Records, err)
	}
	if pages := n.Now(fakerest.Pages); len(pages) != 1 || pages[0]["in_trash"] != true {
		t.Errorf("%v, want the page in the trash", pages)
	}
}

// TestNotionPages: many pages of an answer, keys in other letters among them.
func TestNotionPages(t *testing.T) {
	a, n := notion(fakerest.NotionOptions{})
	con, _ := a.connector(t)
	in := pageIntent(intent.Create, 1)
	key := fmt.Sprint(in.Key["key"])
	for range 130 {
		if _, err := n.SeedPage(map[string]any{"Intent key": map[string]any{"rich_text": pageText(strings.ToUpper(key))}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.SeedPage(map[string]any{"Intent key": map[string]any{"rich_text": pageText(key)}}); err != nil {
		t.Fatal(err)
	}
	o, err := con.Read(t.Context(), a.query(in, ""))
	if err != nil || len(o.Records) != 1 {
		t.Fatalf("%d records, %v; want the one from the second page with this very key", len(o.Records), err)
	}
	for range 900 {
		if _, err := n.SeedPage(map[string]any{"Intent key": map[string]any{"rich_text": pageText(strings.ToUpper(key))}}); err != nil {
			t.Fatal(err)
		}
	}
	if o, err := con.Read(t.Context(), a.query(in, "")); err == nil {
		t.Errorf("a query cut at its limit says %d records, want an error", len(o.Records))
	}
}

// TestNotionValues: what is not written is not sent, and what cannot be is
// refused with nothing written.
func TestNotionValues(t *testing.T) {
	for name, c := range map[string]struct {
		expect intent.Fields
		fate   connectors.Fate
		reason string
	}{
		"name alone": {intent.Fields{"name": "x"}, connectors.FateAnswered, "properties that are not named stay away"},
		"empty text": {intent.Fields{"name": "x", "notes": ""}, connectors.FateAnswered, "no runs at all"},
		"comma":      {intent.Fields{"name": "x", "status": "a,b"}, connectors.FateRefused, "no commas in options"},
		"too long":   {intent.Fields{"name": "x", "notes": strings.Repeat("x", 2001)}, connectors.FateRefused, "2000 characters"},
		"unknown":    {intent.Fields{"name": "x", "colour": "red"}, connectors.FateRefused, "a property that the declaration does not have"},
		"wrong type": {intent.Fields{"name": "x", "amount": "12"}, connectors.FateRefused, "a number is no text"},
	} {
		t.Run(name, func(t *testing.T) {
			a, n := notion(fakerest.NotionOptions{})
			con, p := a.connector(t)
			in := pageIntent(intent.Create, 1)
			in.Expect = c.expect
			_, err := a.send(t, con, in, 1)
			if connectors.FateOf(err) != c.fate {
				t.Fatalf("%v, want %q: %s", err, c.fate, c.reason)
			}
			if c.fate != connectors.FateAnswered {
				if len(n.Effects()) > 0 {
					t.Errorf("%d effects, want none: %s", len(n.Effects()), c.reason)
				}
				return
			}
			if j := a.judge(t, con, p, in); j.Verdict != verify.Verified {
				t.Errorf("%s: %s %v: %s", j.Verdict, j.Reason, j.Mismatches, c.reason)
			}
		})
	}
}
