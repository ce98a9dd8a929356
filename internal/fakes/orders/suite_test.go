package orders_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/fakes/orders/orderstest"
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
					Variants: orderstest.Variants(),
					Lacks:    orderstest.Lacks(o),
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
			without, forms := orderstest.Lacks(o), orderstest.Variants()
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

// The names that the tests of this package have for them.
var (
	newWorld = orderstest.World
	order    = orderstest.Intent
)

func fixture(t *testing.T, w *orders.World, c *orders.Connector) *connectortest.Fixture {
	return orderstest.Fixture(t, w, c, c.Profiles()[orders.Kind], 1)
}

// TestFaultNames: the harness passes the suite's names on.
func TestFaultNames(t *testing.T) {
	for _, v := range connectortest.Kinds() {
		if v != fault.HangingRead && !slices.Contains(orders.FaultKinds(), v) {
			t.Errorf("the destination has no fault %q, which the suite asks for", v)
		}
	}
}
