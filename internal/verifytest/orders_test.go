package verifytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/fakes/orders/orderstest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// onOrders returns a harness on the simulated destination whose profile allows some differences,
// so that each comparison rule is covered.
func onOrders(o orders.Options) Harness {
	h := Harness{Suite: connectortest.Harness{
		Writes:   []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete},
		Variants: map[fault.Kind][]string{fault.DuplicateBehindOurBack: orders.Forms[orders.DuplicateByOthers]},
		Lacks:    map[string]string{},
	}}
	h.Suite.Open = func(t *testing.T) *connectortest.Fixture { return openOrders(t, o) }
	if o.Unique {
		h.Suite.Lacks[string(fault.DuplicateBehindOurBack)] = "order_id is unique"
	}
	return h
}

func openOrders(t *testing.T, o orders.Options) *connectortest.Fixture {
	t.Helper()
	w := orderstest.World(t, o)
	c := w.Connector()
	p := c.Profiles()[orders.Kind]
	p.Compare = map[string]intent.Comparison{
		"/note":      {{Name: intent.RuleTrim}, {Name: intent.RuleUnescape}, {Name: intent.RuleFold}},
		"/text":      {{Name: intent.RuleCRLF}},
		"/rich":      {{Name: intent.RuleText}},
		"/weight":    {{Name: intent.RuleNumeric, Tolerance: "0.005"}},
		"/code":      {{Name: intent.RuleString}},
		"/due":       {{Name: intent.RuleTime, Precision: "1s"}},
		"/labels":    {{Name: intent.RuleFold}, {Name: intent.RuleSet}},
		"/left_open": {{Name: intent.RuleEmpty}},
	}
	f := orderstest.Fixture(t, w, c, p, 1)
	f.Intent, f.Near = order, nil
	f.Set = func(v fault.Kind, how string) error {
		delay := map[fault.Kind]time.Duration{fault.LaggingRead: time.Second, fault.Rollback: time.Second}[v]
		return w.Set(orders.Fault{Kind: v, Times: 1, Delay: delay, How: how, Field: fieldFor(v)})
	}
	f.Put = func(fields intent.Fields, stamp string) error {
		_, err := w.Seed(fields, stamp)
		return err
	}
	f.Alter = func(key, fields intent.Fields) error {
		_, err := w.Edit(w.Records(key["order_id"].(string))[0].ID, fields)
		return err
	}
	f.Change = func(key intent.Fields) {
		if err := f.Alter(key, intent.Fields{"currency": "chf"}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// fieldFor returns a field that is compared exactly.
func fieldFor(v fault.Kind) string {
	if v == fault.NormalisedField || v == fault.DroppedField {
		return "status"
	}
	return ""
}

func order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: orders.Kind, Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("order-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"status": "new", "amount_cents": json.Number(fmt.Sprint(1000 + n)), "currency": "eur", "paid": true,
			"customer": map[string]any{"name": "Ada", "since": json.Number("1815"), "tags": []any{"a", "b"}},
			"note":     "two words", "text": "one\ntwo\n", "rich": "plain words", "weight": json.Number("1.5"), "code": json.Number("17"),
			"due": "2026-01-02T03:04:05Z", "labels": []any{"x", "y"}, "left_open": "",
		}
	case intent.Update:
		in.Expect = intent.Fields{"status": "paid", "customer": map[string]any{"name": "Grace"}}
		in.Absent = []string{"/paid"}
	case intent.Upsert:
		in.Expect = intent.Fields{"status": "set", "amount_cents": json.Number("3000")}
	}
	return in
}

// options returns those of every class, plain and with all features.
func options() map[string]orders.Options {
	all := map[string]orders.Options{}
	for _, class := range orders.Classes() {
		all[string(class)] = class.Options()
		rich := class.Options()
		rich.Versions, rich.StampUpdates = true, true
		all[string(class)+"/rich"] = rich
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
