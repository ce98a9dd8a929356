// Package orderstest has what a conformance suite needs to know of the simulated order system,
// whichever connector reaches it.
package orderstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/readbacktest/fault"
)

// World is a new order system.
func World(t *testing.T, o orders.Options) *orders.World {
	t.Helper()
	w, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Variants are the forms of the faults that have several.
func Variants() map[fault.Kind][]string {
	v := map[fault.Kind][]string{}
	for _, kind := range []orders.FaultKind{orders.NormalisedField, orders.UnreadableRead, orders.DuplicateByOthers} {
		v[kind] = orders.Forms[kind]
	}
	return v
}

// Lacks are the faults that such a system cannot have, and why.
func Lacks(o orders.Options) map[string]string {
	l := map[string]string{}
	if o.Unique {
		l[string(fault.DuplicateBehindOurBack)] = "order_id is unique, no second record can appear"
	}
	return l
}

// delays of faults that happen later than the answer.
var delays = map[fault.Kind]time.Duration{
	fault.LateCommit:             50 * time.Millisecond,
	fault.LaggingRead:            100 * time.Millisecond,
	fault.DuplicateBehindOurBack: 50 * time.Millisecond,
	fault.Rollback:               50 * time.Millisecond,
	fault.Throttled:              time.Second,
}

// Fixture is a system that a connector reaches, which makes a read of so many requests.
func Fixture(t *testing.T, w *orders.World, c connectors.Connector, p connectors.Profile, requests int) *connectortest.Fixture {
	id := func(key intent.Fields) string { return key["order_id"].(string) }
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	return &connectortest.Fixture{
		Connector: c,
		Profile:   p,
		Intent:    Intent,
		Near:      Near,
		NullField: "customer",
		Set: func(v fault.Kind, how string) error {
			f := orders.Fault{Kind: v, Times: 1, Delay: delays[v], How: how}
			switch v {
			case fault.HangingRead:
				f.Kind, f.How = orders.UnreadableRead, "hang"
			case fault.LaggingRead:
				f.Times = requests
			}
			return w.Set(f)
		},
		Seed: func(in intent.WriteIntent) {
			all := intent.Fields{}
			for _, part := range []intent.Fields{in.Key, in.Expect, in.Payload} {
				maps.Copy(all, part)
			}
			_, err := w.Seed(all, "")
			must(err)
		},
		Change: func(key intent.Fields) {
			_, err := w.Edit(w.Records(id(key))[0].ID, intent.Fields{"note": "another actor's"})
			must(err)
		},
		Records: func(key intent.Fields) []connectors.Record {
			var found []connectors.Record
			for _, o := range w.Records(id(key)) {
				found = append(found, connectors.Record{Ref: o.ID, Version: fmt.Sprint(o.Version), Stamp: o.Stamp, Fields: o.Fields})
			}
			return found
		},
		Effects: func(key intent.Fields) int { return w.Changes(id(key)) },
		Sends: func() int {
			writes, _ := w.Count()
			return writes
		},
	}
}

// Intent is the nth write of a type.
func Intent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: orders.Kind, Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("Order-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"amount_cents": json.Number(fmt.Sprint(1000 + n)), "currency": "eur", "note": " Two \"Words\" {{ ",
			"customer": map[string]any{"name": "Ada", "tags": []any{"a", "b"}},
		}
		in.Payload = intent.Fields{"channel": "test"}
	case intent.Update:
		in.Expect = intent.Fields{"note": " Changed ", "amount_cents": json.Number("2000"), "customer": map[string]any{"name": "Grace"}}
		in.Absent = []string{"/currency"}
	case intent.Upsert:
		in.Expect = intent.Fields{"note": "set", "amount_cents": json.Number("3000")}
	}
	return in
}

// Near are writes whose keys look like that of the nth.
func Near(n int) []intent.WriteIntent {
	id := fmt.Sprintf("Order-%03d", n)
	return connectortest.Near(Intent, "order_id", strings.ToLower(id), id[:len(id)-1], id+"0", " "+id, id+" ", id+"%", "Order_001", "Order-01", "1", "Ordér-001", id+"&stamp=x")
}
