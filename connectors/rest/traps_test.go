package rest_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// traps are systems whose answers have been read wrongly: fields in an order of chance, a 404 without
// a body, a search that also finds what quotes the key, errors that are answered with 200.
var traps = map[string]destination{
	"rt/ticket": {
		secrets: map[string]string{"token": "rt-token"}, collection: fakerest.RTTickets,
		open: func() *fakerest.Fake { return fakerest.NewRT(fakerest.RTOptions{Seed: 1}).Fake },
		record: func(o fakerest.Object) (connectors.Record, bool) {
			custom := map[string]any{}
			all, _ := o["CustomFields"].([]any)
			for _, f := range all {
				custom[fmt.Sprint(dig(f, "name"))] = dig(f, "values", 0)
			}
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": custom["Order"], "amount": custom["Amount"], "subject": unstamped(o["Subject"])}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) {
			f.Put(fakerest.RTTickets, func(now fakerest.View) (string, fakerest.Object) {
				id := 9_000_000 + now.Next()
				return fmt.Sprint(id), fakerest.Object{"id": fakerest.Number(id), "Subject": fmt.Sprint(w.Expect["subject"], " ", w.Key["order"]), "Status": "new", "CustomFields": []any{
					map[string]any{"id": "1", "name": "Amount", "values": []any{w.Expect["amount"]}},
					map[string]any{"id": "2", "name": "Order", "values": []any{anothers(w, taken)}}}}
			})
		},
	},
	"redmine/issue": {
		secrets: map[string]string{"token": "redmine-key"}, collection: fakerest.RedmineIssues, traits: traits{spoils: "subject"},
		open: func() *fakerest.Fake {
			return fakerest.NewRedmine(fakerest.RedmineOptions{Fields: []string{"Order", "Amount"}}).Fake
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			custom := map[string]any{}
			all, _ := o["custom_fields"].([]any)
			for _, f := range all {
				custom[fmt.Sprint(dig(f, "id"))] = dig(f, "value")
			}
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": custom["1"], "amount": custom["2"], "subject": o["subject"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) { // closed, if taken
			f.Put(fakerest.RedmineIssues, func(now fakerest.View) (string, fakerest.Object) {
				id := 9_000_000 + now.Next()
				o := fakerest.Object{"id": fakerest.Number(id), "subject": w.Expect["subject"], "description": w.Key["order"], "closed_on": nil, "custom_fields": []any{
					map[string]any{"id": 2, "name": "Amount", "value": w.Expect["amount"]}, map[string]any{"id": 1, "name": "Order", "value": anothers(w, taken)}}}
				if taken {
					o["closed_on"] = "2026-01-01T00:00:00Z"
				}
				return fmt.Sprint(id), o
			})
		},
	},
	"gitea/issue": {
		secrets: map[string]string{"token": "gitea-token"}, collection: fakerest.GiteaIssues, traits: traits{spoils: "title"},
		open: func() *fakerest.Fake { return fakerest.NewGitea(fakerest.GiteaOptions{}).Fake },
		record: func(o fakerest.Object) (connectors.Record, bool) {
			order, amount := marked(o["body"])
			return connectors.Record{Ref: fmt.Sprint(o["number"]), Fields: intent.Fields{"order": order, "amount": amount, "subject": o["title"]}}, true
		},
		// An issue with a comment that quotes ours, and one that quotes it itself; with our mark if taken.
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) {
			g := &fakerest.Gitea{Fake: f}
			mark := fmt.Sprintf("<!-- readback:x %s -->\n%s", w.Key["order"], w.Expect["amount"])
			g.Seed(fmt.Sprint(w.Expect["subject"]), "See below.", mark, nil)
			if !taken {
				mark = "> " + mark
			}
			g.Seed(fmt.Sprint(w.Expect["subject"]), mark, "", nil)
		},
	},
	"soap/order": {
		secrets: map[string]string{"token": "soap-token"}, collection: fakerest.SOAPOrders,
		open: func() *fakerest.Fake { return fakerest.NewSOAP(fakerest.SOAPOptions{Seed: 1}).Fake },
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": o["reference"], "amount": o["amount"], "subject": o["subject"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) {
			f.Put(fakerest.SOAPOrders, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprint(9_000_000 + now.Next())
				return id, fakerest.Object{"id": id, "reference": anothers(w, taken), "subject": w.Expect["subject"], "amount": w.Expect["amount"], "note": "by hand"}
			})
		},
	},
	// Each session ends after some requests, whatever they are.
	"odoo/order": {
		secrets: map[string]string{"password": "odoo-hunter2"}, collection: fakerest.OdooOrders,
		open: func() *fakerest.Fake {
			o := fakerest.NewOdoo()
			o.Last(40) // more than are made at once: a session that ends again before a repeat is an error
			return o.Fake
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": o["x_ref"], "amount": o["x_amount"], "subject": o["x_subject"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) {
			f.Put(fakerest.OdooOrders, func(now fakerest.View) (string, fakerest.Object) {
				id := 9_000_000 + now.Next()
				return fmt.Sprint(id), fakerest.Object{"id": fakerest.Number(id), "x_ref": anothers(w, taken), "x_subject": w.Expect["subject"], "x_amount": w.Expect["amount"], "x_stamp": false}
			})
		},
	},
	"desk/ticket": {
		secrets: map[string]string{"password": "desk-hunter2"}, collection: fakerest.DeskTickets, traits: traits{renews: true},
		open: func() *fakerest.Fake {
			d := fakerest.NewDesk()
			d.Last(40) // likewise
			return d.Fake
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": o["order"], "amount": o["amount"], "subject": o["subject"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) {
			f.Put(fakerest.DeskTickets, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprint(9_000_000 + now.Next())
				return id, fakerest.Object{"id": id, "order": anothers(w, taken), "subject": w.Expect["subject"], "amount": w.Expect["amount"]}
			})
		},
	},
	"tryton/sale": {
		secrets: map[string]string{"token": "cm9ib3Q6MTp0b2tlbg=="}, collection: "sale.sale",
		open: func() *fakerest.Fake { return fakerest.NewTryton(fakerest.TrytonOptions{}).Fake },
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"order": o["reference"], "amount": o["total"], "subject": unstamped(o["description"])}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, _ int, taken bool) { // not active, if taken
			f.Put("sale.sale", func(now fakerest.View) (string, fakerest.Object) {
				id := 9_000_000 + now.Next()
				return fmt.Sprint(id), fakerest.Object{"id": fakerest.Number(id), "active": !taken, "party": w.Key["order"],
					"reference": anothers(w, taken), "description": w.Expect["subject"], "total": w.Expect["amount"]}
			})
		},
	},
}

// anothers is the key of another actor's record: ours if it is taken.
func anothers(w intent.WriteIntent, taken bool) any {
	if taken {
		return w.Key["order"]
	}
	return fmt.Sprint(w.Key["order"], "-too")
}

func unstamped(v any) string {
	s, _ := v.(string)
	return regexp.MustCompile(` \[rb-[a-z2-7]{32}\]$`).ReplaceAllString(s, "")
}

// trap is one of them, with what they have in common.
func trap(name string) destination {
	d := traps[name]
	_, d.kind, _ = strings.Cut(name, "/")
	d.trap, d.lag = true, 50*time.Second
	d.create = func(n int) intent.WriteIntent {
		return intent.WriteIntent{Key: intent.Fields{"order": fmt.Sprintf("order-%03d", n)}, Expect: intent.Fields{"subject": "Printer <&> \"2\"", "amount": "12.50"}}
	}
	return d
}

// TestTraps creates a record in each: a lost answer makes no second one, and a refusal is one. Then it
// makes the writes of a campaign, as of a shipped declaration.
func TestTraps(t *testing.T) {
	for name := range traps {
		t.Run(name, func(t *testing.T) {
			d := trap(name)
			for kind, want := range map[fault.Kind]ledger.Status{"": ledger.Verified, fault.LostAnswer: ledger.Verified, fault.DroppedBefore: ledger.Verified,
				fault.Throttled: ledger.Verified, fault.Refused: ledger.NotApplied} {
				synctest.Test(t, func(t *testing.T) { d.meets(t, name, kind, want) })
			}
			var sum tally
			synctest.Test(t, func(t *testing.T) { sum.clean = d.calm(t, name) })
			d.campaigns(t, name, &sum)
			t.Logf("%+v", sum)
		})
	}
}

// meets makes one create that meets a fault, beside what another actor wrote.
func (d destination) meets(t *testing.T, name string, kind fault.Kind, want ledger.Status) {
	f := d.open()
	con, _ := d.api(name, f).connector(t)
	if err := con.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := d.write(name, 1)
	d.other(f, w, 1, false)
	before := len(f.Now(d.collection))
	if kind != "" {
		if err := f.Set(fault.Fault{Kind: kind, Times: 1}); err != nil {
			t.Fatal(err)
		}
	}
	e := d.engine(t, name, f)
	if _, err := e.Do(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		time.Sleep(20 * time.Minute)
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	out, err := e.Do(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	made, wanted := len(f.Now(d.collection))-before, 0
	if want == ledger.Verified {
		wanted = 1
	}
	if out.Status != want || made != wanted {
		t.Errorf("after %q the write is %s (%s) and made %d records; want %s and %d", kind, out.Status, out.Text, made, want, wanted)
	}
}

// TestTwoUnderOneRef has a list without pages that shows two records with the ref of one: they are two.
func TestTwoUnderOneRef(t *testing.T) {
	s := fakerest.NewSheets(fakerest.SheetsOptions{})
	for range 2 {
		s.Seed(-1, []any{"order-1", "", "Ada"}, fakerest.Object{"metadataId": 1, "metadataKey": "readback", "metadataValue": "order-1", "visibility": "DOCUMENT"})
	}
	con, err := rest.New(shippedDeclaration(t, "google-sheets-rows"), rest.Options{Parameters: map[string]string{"spreadsheet": "sheet1"},
		Secrets: secrets(map[string]string{"token": "ya29.readback"}), Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	o, err := con.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Tenant: "acme", Destination: "google-sheets-rows", Kind: "row", Write: intent.Create,
		Key: intent.Fields{"A": "order-1"}, Expect: intent.Fields{"C": "Ada"}}})
	if err != nil || len(o.Records) != 2 {
		t.Errorf("%d records, %v; want two", len(o.Records), err)
	}
}

// TestPickedOfSeveralValues reads a custom field with two values where one is declared: an error.
func TestPickedOfSeveralValues(t *testing.T) {
	text, err := os.ReadFile("testdata/traps/rt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := rest.Load(text, "rt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := fakerest.NewRT(fakerest.RTOptions{}).Fake
	f.Put(fakerest.RTTickets, func(fakerest.View) (string, fakerest.Object) {
		return "7", fakerest.Object{"id": 7, "Subject": "Printer", "Status": "new", "CustomFields": []any{map[string]any{"id": "2", "name": "Order", "values": []any{"order-1", "order-2"}}}}
	})
	con, err := rest.New(d, rest.Options{Secrets: secrets(map[string]string{"token": "rt-token"}), Transport: f.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := con.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Tenant: "acme", Destination: "rt", Kind: "ticket", Write: intent.Create,
		Key: intent.Fields{"order": "order-1"}}}); err == nil || !strings.Contains(err.Error(), "has 2 values") {
		t.Errorf("%+v, %v; want an error", o, err)
	}
}
