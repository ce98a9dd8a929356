package simulated_test

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
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/intent"
)

var allWrites = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}

// TestConnector runs the suite in fake time for every class, and for each of
// them once with everything on that a class leaves off.
func TestConnector(t *testing.T) {
	for _, class := range simulated.Classes() {
		bare := class.Options()
		rich := class.Options()
		rich.Versions, rich.StampUpdates, rich.Bulk = true, true, true
		stampless := class.Options()
		stampless.Stamps = false
		for name, o := range map[string]simulated.Options{"bare": bare, "rich": rich, "stampless": stampless} {
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
	for name, class := range map[string]simulated.Class{"native": simulated.Native, "plain": simulated.Plain} {
		t.Run(name, func(t *testing.T) {
			o := class.Options()
			o.Versions = true
			without, forms := lacks(o), variants()
			// A read on a kept connection that is cut is made again by net/http,
			// as it may be.
			forms[connectortest.UnreadableRead] = slices.DeleteFunc(forms[connectortest.UnreadableRead], func(how string) bool { return how == "cut" })
			without[string(connectortest.Unreachable)] = "a server cannot refuse connections that it has taken"
			connectortest.Run(t, connectortest.Harness{
				Open: func(t *testing.T) *connectortest.Fixture {
					w := newWorld(t, o)
					server := httptest.NewServer(simulated.Handler(w))
					t.Cleanup(server.Close)
					transport := http.DefaultTransport.(*http.Transport).Clone()
					t.Cleanup(transport.CloseIdleConnections)
					c, err := simulated.NewConnector(server.URL, o, transport)
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

func newWorld(t *testing.T, o simulated.Options) *simulated.World {
	t.Helper()
	w, err := simulated.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func variants() map[connectortest.Vice][]string {
	v := map[connectortest.Vice][]string{}
	for _, vice := range []simulated.Vice{simulated.NormalisedField, simulated.UnreadableRead, simulated.DuplicateBehindOurBack} {
		v[connectortest.Vice(vice)] = simulated.Hows(vice)
	}
	return v
}

func lacks(o simulated.Options) map[string]string {
	l := map[string]string{}
	if o.Unique {
		l[string(connectortest.DuplicateBehindOurBack)] = "order_id is unique, no second record can appear"
	}
	return l
}

// delays of vices that happen later than the answer.
var delays = map[connectortest.Vice]time.Duration{
	connectortest.LateCommit:             50 * time.Millisecond,
	connectortest.LaggingRead:            100 * time.Millisecond,
	connectortest.DuplicateBehindOurBack: 50 * time.Millisecond,
	connectortest.Rollback:               50 * time.Millisecond,
	connectortest.Throttled:              time.Second,
}

func fixture(t *testing.T, w *simulated.World, c *simulated.Connector) *connectortest.Fixture {
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	orderID := func(key intent.Fields) string { return key["order_id"].(string) }
	return &connectortest.Fixture{
		Connector: c,
		Profile:   c.Profiles()[simulated.Kind],
		Intent:    order,
		Near:      near,
		NullField: "customer",
		Set: func(v connectortest.Vice, how string) error {
			f := simulated.Fault{Vice: simulated.Vice(v), Times: 1, Delay: delays[v], How: how}
			if v == connectortest.HangingRead {
				f.Vice, f.How = simulated.UnreadableRead, "hang"
			}
			return w.Set(f)
		},
		Seed: func(in intent.WriteIntent) {
			_, err := w.Seed(merge(in.Key, in.Expect, in.Payload), "")
			must(err)
		},
		Change: func(key intent.Fields) {
			_, err := w.Edit(w.Records(orderID(key))[0].ID, intent.Fields{"note": "somebody else's"})
			must(err)
		},
		Records: func(key intent.Fields) []connectors.Record {
			var found []connectors.Record
			for _, o := range w.Records(orderID(key)) {
				found = append(found, connectors.Record{Ref: o.ID, Version: fmt.Sprint(o.Version), Stamp: o.Stamp, Fields: o.Fields})
			}
			return found
		},
		Effects: func(key intent.Fields) int {
			n := 0
			for _, e := range w.Effects() {
				if e.By == simulated.ByRequest && e.Applied() && e.OrderID == orderID(key) {
					n++
				}
			}
			return n
		},
		Sends: func() int {
			writes, _ := w.Count()
			return writes
		},
	}
}

func order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: simulated.Kind, Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("Order-%03d", n)}}
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
	var all []intent.WriteIntent
	for i, other := range []string{"order-001", id[:len(id)-1], id + "0", " " + id, id + " ", id + "%", "Order_001", "Order-01", "1", "Ordér-001"} {
		in := order(intent.Create, 100+i)
		in.Key["order_id"] = other
		all = append(all, in)
	}
	return all
}

func merge(parts ...intent.Fields) intent.Fields {
	all := intent.Fields{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// TestViceNames: the harness passes the suite's names on.
func TestViceNames(t *testing.T) {
	for _, v := range connectortest.Vices() {
		if v != connectortest.HangingRead && !slices.Contains(simulated.Vices(), simulated.Vice(v)) {
			t.Errorf("the destination has no vice %q, which the suite asks for", v)
		}
	}
}
