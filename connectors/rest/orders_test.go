package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/fakes/orders/orderstest"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/readbacktest/fault"
)

// when is a text where something is so.
func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

// ordersFile declares the simulated destination as written from its documentation alone.
func ordersFile(o orders.Options) string {
	key := when(o.Window > 0, "\n        idempotency: {header: Idempotency-Key, window: "+o.Window.String()+", replay: {header: Idempotent-Replayed, equals: \"true\"}}")
	guard := when(o.Versions, "\n        condition: {headers: {If-Match: '\"{version}\"'}}")
	strength := "strength: weak"
	if len(o.Lags) == 0 {
		strength = "strength: strong, strong_if: {header: Read-Source, equals: primary}"
	}
	settle, _ := o.Settle.Declared()
	return `
declaration: 1
name: orders
system: Orders
base_url: http://127.0.0.1:1
probe: {path: /orders, query: {order_id: probe}, must: [{path: "$.orders", exists: true}]}
kinds:
  order:
    key: [order_id]
    writes:
      create:
        method: POST
        path: /orders
        body: {order: {"...": "{fields}", order_id: "{key.order_id}"}, stamp: "{stamp}"}` + key + when(o.Unique, "\n        unique: true") + `
        ref: $.id
        version: $.version
      update:
        method: PATCH
        path: /orders/{ref}
        needs: ref
        body: {order: {"...": "{fields}"}, stamp: "{stamp}", unset: "{absent}"}` + key + guard + `
        ref: $.id
        version: {header: ETag}
      delete:
        method: DELETE
        path: /orders/{ref}
        needs: ref
        unique: true` + key + guard + `
        answers: [{status: [404, 410], means: conflict}]` + when(o.Unique, `
      upsert:
        method: PUT
        path: /orders/by-key/{key.order_id}
        body: {order: {"...": "{fields}", order_id: "{key.order_id}"}, stamp: "{stamp}", unset: "{absent}"}`+key+guard+when(o.Versions, `
        unique: true`)+`
        ref: $.id`) + `
    reads:
      - {name: list, by: key, ` + strength + `, path: /orders, query: {order_id: "{key.order_id}"}, records: "$.orders[*]", paging: {next: $.next, query: after}, max_pages: 50}` +
		when(o.Stamps, `
      - {name: stamped, by: stamp, `+strength+`, path: /orders, query: {stamp: "{stamp}"}, records: "$.orders[*]", paging: {next: $.next, query: after}, max_pages: 50}`) + `
      - {name: get, by: ref, ` + strength + `, path: "/orders/{ref}", record: $, absent: [404], absent_where: {path: $.error, equals: not_found}}` +
		when(o.Bulk, `
      - {name: bulk, by: [key], bulk: 50, `+strength+`, method: POST, path: /bulk, body: {questions: {"[...]": {order_id: "{key.order_id}"}}}, records: "$.orders[*]"}`) + `
    list: {name: all, ` + strength + `, path: /orders/all, query: {from: "{from?}", until: "{until?}"}, records: "$.orders[*]", paging: {next: $.next, query: after}, changed: $.order.updated_at}
    record:
      ref: $.id
      version: $.version` + when(o.Stamps, `
      stamp: {path: $.stamp}`) + `
      fields: {"...": $.order}
    undo: {create: delete, update: update, delete: create}
    profile:
      stamped: ` + fmt.Sprint(o.Stamps) + `
      stamps_updates: ` + fmt.Sprint(o.Stamps && o.StampUpdates) + `
      settle: ` + settle.String() + `
      horizon: 30s
      volatile: [/updated_at]
    sample:
      key: {order_id: "sample-{sample}"}
      create: {amount_cents: 100, note: "readback sample {sample}"}
      update: {note: "readback sample {sample}, changed"}
`
}

func ordersWrites(o orders.Options) []intent.WriteType {
	all := []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	if o.Unique {
		all = append(all, intent.Upsert)
	}
	return all
}

// TestOrders runs the suite in fake time for every class of destination, bare
// and with everything on that the class leaves off.
func TestOrders(t *testing.T) {
	for _, class := range orders.Classes() {
		bare, rich, stampless := class.Options(), class.Options(), class.Options()
		rich.Versions, rich.StampUpdates, rich.Bulk = true, true, true
		stampless.Stamps = false
		for name, o := range map[string]orders.Options{"bare": bare, "rich": rich, "stampless": stampless} {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				connectortest.Run(t, connectortest.Harness{
					Open: func(t *testing.T) *connectortest.Fixture {
						w := orderstest.World(t, o)
						h := withBulk(orders.Handler(w))
						refuse := new(atomic.Bool)
						return ordersFixture(t, w, o, refuse, rest.Options{Transport: wire.Transport(h, dials(refuse))})
					},
					Writes:   ordersWrites(o),
					Variants: orderstest.Variants(),
					Lacks:    orderstest.Lacks(o),
				})
			})
		}
	}
}

// TestALoginOfReadsInTheSuite: what says that it has another login was made with it, and the write was not.
func TestALoginOfReadsInTheSuite(t *testing.T) {
	o := orders.Native.Options()
	o.Bulk = true
	d, err := rest.Load([]byte(strings.Replace(ordersFile(o), "\nprobe:", "\nauth: {bearer: {secret: writer}}\nread_auth: {bearer: {secret: reader}}\nprobe:", 1)), "orders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]func(context.Context) (string, error){}
	for _, name := range d.Secrets() {
		secrets[name] = func(context.Context) (string, error) { return "hunter2-" + name, nil }
	}
	connectortest.Run(t, connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			w, refuse := orderstest.World(t, o), new(atomic.Bool)
			h := withBulk(orders.Handler(w))
			var writes, reads atomic.Int64
			counted := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer hunter2-reader" {
					if r.Method == http.MethodGet || r.URL.Path == "/bulk" {
						reads.Add(1)
					} else {
						writes.Add(1)
					}
				}
				h.ServeHTTP(rw, r)
			})
			c, err := rest.New(d, rest.Options{Secrets: secrets, Transport: wire.Transport(counted, dials(refuse))})
			if err != nil {
				t.Fatal(err)
			}
			f := ordersFixtureOf(t, w, refuse, c)
			f.Elsewhere = func() (int, int) { return int(writes.Load()), int(reads.Load()) }
			return f
		},
		Writes:   ordersWrites(o),
		Variants: orderstest.Variants(),
		Lacks:    orderstest.Lacks(o),
	})
}

// TestOrdersOverHTTP runs the suite in real time over a real network.
func TestOrdersOverHTTP(t *testing.T) {
	o := orders.Native.Options()
	o.Versions = true
	lacks, forms := orderstest.Lacks(o), orderstest.Variants()
	forms[fault.UnreadableRead] = slices.DeleteFunc(forms[fault.UnreadableRead], func(how string) bool { return how == "cut" })
	lacks[string(fault.Unreachable)] = "a server cannot refuse connections that it has taken"
	connectortest.Run(t, connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			w := orderstest.World(t, o)
			server := httptest.NewServer(orders.Handler(w))
			t.Cleanup(server.Close)
			transport := http.DefaultTransport.(*http.Transport).Clone()
			t.Cleanup(transport.CloseIdleConnections)
			return ordersFixture(t, w, o, new(atomic.Bool), rest.Options{BaseURL: server.URL, Transport: transport})
		},
		Writes: ordersWrites(o), Variants: forms, Lacks: lacks, RealTime: true,
	})
}

// dials refuses one connection if the fault is on.
func dials(refuse *atomic.Bool) func(*http.Request) bool {
	return func(*http.Request) bool { return !refuse.Swap(false) }
}

// withBulk adds a bulk read in a shape of its own: one list for all questions.
func withBulk(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bulk" {
			h.ServeHTTP(rw, r)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path = "/orders/lookup"
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, inner)
		var pages struct {
			Answers []struct {
				Orders []json.RawMessage `json:"orders"`
			} `json:"answers"`
		}
		if rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &pages) != nil {
			rw.WriteHeader(rec.Code)
			return
		}
		var all bytes.Buffer
		for _, a := range pages.Answers {
			for _, o := range a.Orders {
				if all.Len() > 0 {
					all.WriteByte(',')
				}
				all.Write(o)
			}
		}
		maps.Copy(rw.Header(), rec.Header())
		rw.Header().Del("Content-Length")
		_, _ = fmt.Fprintf(rw, `{"orders":[%s]}`, all.String())
	})
}

func ordersConnector(t *testing.T, o orders.Options, ro rest.Options) *rest.Connector {
	t.Helper()
	text := ordersFile(o)
	d := loadOnce(t, text, func() (*rest.Declaration, error) { return rest.Load([]byte(text), "orders.yaml") })
	c, err := rest.New(d, ro)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ordersFixture(t *testing.T, w *orders.World, o orders.Options, refuse *atomic.Bool, ro rest.Options) *connectortest.Fixture {
	return ordersFixtureOf(t, w, refuse, ordersConnector(t, o, ro))
}

func ordersFixtureOf(t *testing.T, w *orders.World, refuse *atomic.Bool, c *rest.Connector) *connectortest.Fixture {
	f := orderstest.Fixture(t, w, c, c.Profiles()[orders.Kind], 2) // by key and by stamp
	set := f.Set
	f.Set = func(v fault.Kind, how string) error {
		if v == fault.Unreachable {
			refuse.Store(true)
			return nil
		}
		return set(v, how)
	}
	return f
}

func ordersOptions() orders.Options { return orders.Plain.Options() }
