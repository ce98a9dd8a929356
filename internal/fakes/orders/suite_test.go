package orders_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/readbacktest/fault"
)

var allWrites = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}

// TestConnector runs the suite in fake time for every class, and for each of
// them once with everything on that a class leaves off.
func TestConnector(t *testing.T) {
	for _, class := range orders.Classes() {
		bare := class.Options()
		rich := class.Options()
		rich.Versions, rich.StampUpdates, rich.Bulk = true, true, true
		stampless := class.Options()
		stampless.Stamps = false
		for name, o := range map[string]orders.Options{"bare": bare, "rich": rich, "stampless": stampless} {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				connectortest.Run(t, connectortest.Harness{
					Open: func(t *testing.T) *connectortest.Fixture {
						w := newWorld(t, o)
						return fixture(t, w, w.Connector())
					},
					Writes:   allWrites,
					Variants: variants(),
					Lacks:    lacks(o),
				})
			})
		}
	}
}

// TestConnectorOverHTTP runs the suite in real time over a real network.
func TestConnectorOverHTTP(t *testing.T) {
	for name, class := range map[string]orders.Class{"native": orders.Native, "plain": orders.Plain} {
		t.Run(name, func(t *testing.T) {
			o := class.Options()
			o.Versions = true
			without, forms := lacks(o), variants()
			// A read on a kept connection that is cut is made again by net/http,
			// as it may be.
			forms[fault.UnreadableRead] = slices.DeleteFunc(forms[fault.UnreadableRead], func(how string) bool { return how == "cut" })
			without[string(fault.Unreachable)] = "a server cannot refuse connections that it has taken"
			connectortest.Run(t, connectortest.Harness{
				Open: func(t *testing.T) *connectortest.Fixture {
					w := newWorld(t, o)
					server := httptest.NewServer(orders.Handler(w))
					t.Cleanup(server.Close)
					transport := http.DefaultTransport.(*http.Transport).Clone()
					t.Cleanup(transport.CloseIdleConnections)
					c, err := orders.NewConnector(server.URL, o, transport)
					if err != nil {
						t.Fatal(err)
					}
					return fixture(t, w, c)
				},
				Writes:   allWrites,
				Variants: forms,
				Lacks:    without,
				RealTime: true,
			})
		})
	}
}

func newWorld(t *testing.T, o orders.Options) *orders.World {
	t.Helper()
	w, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func variants() map[fault.Kind][]string {
	v := map[fault.Kind][]string{}
	for _, kind := range []orders.FaultKind{orders.NormalisedField, orders.UnreadableRead, orders.DuplicateByOthers} {
		v[kind] = orders.Forms[kind]
	}
	return v
}

func lacks(o orders.Options) map[string]string {
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

func fixture(t *testing.T, w *orders.World, c *orders.Connector) *connectortest.Fixture {
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	orderID := func(key intent.Fields) string { return key["order_id"].(string) }
	return &connectortest.Fixture{
		Connector: c,
		Profile:   c.Profiles()[orders.Kind],
		Intent:    order,
		Near:      near,
		NullField: "customer",
		Set: func(v fault.Kind, how string) error {
			f := orders.Fault{Kind: v, Times: 1, Delay: delays[v], How: how}
			if v == fault.HangingRead {
				f.Kind, f.How = orders.UnreadableRead, "hang"
			}
			return w.Set(f)
		},
		Seed: func(in intent.WriteIntent) {
			_, err := w.Seed(merge(in.Key, in.Expect, in.Payload), "")
			must(err)
		},
		Change: func(key intent.Fields) {
			_, err := w.Edit(w.Records(orderID(key))[0].ID, intent.Fields{"note": "another actor's"})
			must(err)
		},
		Records: func(key intent.Fields) []connectors.Record {
			var found []connectors.Record
			for _, o := range w.Records(orderID(key)) {
				found = append(found, connectors.Record{Ref: o.ID, Version: fmt.Sprint(o.Version), Stamp: o.Stamp, Fields: o.Fields})
			}
			return found
		},
		Effects: func(key intent.Fields) int { return w.Changes(orderID(key)) },
		Sends: func() int {
			writes, _ := w.Count()
			return writes
		},
	}
}

func order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: orders.Kind, Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("Order-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"amount_cents": json.Number(fmt.Sprint(1000 + n)),
			"currency":     "eur",
			"customer":     map[string]any{"name": "Ada", "tags": []any{"a", "b"}},
			"note":         " Two Words ",
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

func near(n int) []intent.WriteIntent {
	id := fmt.Sprintf("Order-%03d", n)
	return connectortest.Near(order, "order_id", "order-001", id[:len(id)-1], id+"0", " "+id, id+" ", id+"%", "Order_001", "Order-01", "1", "Ordér-001")
}

func merge(parts ...intent.Fields) intent.Fields {
	all := intent.Fields{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// TestFaultNames: the harness passes the suite's names on.
func TestFaultNames(t *testing.T) {
	for _, v := range connectortest.Kinds() {
		if v != fault.HangingRead && !slices.Contains(orders.FaultKinds(), v) {
			t.Errorf("the destination has no fault %q, which the suite asks for", v)
		}
	}
}
