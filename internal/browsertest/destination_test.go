package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// names are the destinations, in the order of the configuration.
var names = []string{"billing", "crm", "orders", "tickets", "wiki"}

// destination is a simulated one that this process serves; its world is the
// oracle. Orders are told apart by tests through their ids.
type destination struct {
	*orders.World
	url   string
	class orders.Class

	mu    sync.Mutex
	after map[string]func(orders.Order) intent.Fields
}

// openDestinations serves one destination of each class, and one that says of
// itself where its records are.
func (s *site) openDestinations() (map[string]*destination, error) {
	classes := map[string]orders.Class{"billing": orders.Native, "crm": orders.Lagging, "orders": orders.Plain, "tickets": orders.Unique, "wiki": orders.Plain}
	all := map[string]*destination{}
	for name, class := range classes {
		o := class.Options()
		if class == orders.Lagging {
			o.Lags = []time.Duration{150 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond}
		}
		w, err := orders.New(o)
		if err != nil {
			return nil, err
		}
		d := &destination{World: w, class: class, after: map[string]func(orders.Order) intent.Fields{}}
		port, err := s.serve(d)
		if err != nil {
			return nil, err
		}
		d.url, all[name] = "http://127.0.0.1:"+port, d
	}
	return all, nil
}

func (d *destination) settings(name string) string {
	if name == "wiki" {
		return fmt.Sprintf("  wiki: {type: rest, declaration: links.yaml, base_url: %q, tenants: ['*']}\n", d.url)
	}
	return fmt.Sprintf("  %s: {type: simulated, url: %q, class: %s, tenants: ['*']}\n", name, d.url, d.class)
}

// meddle has somebody else change an order as soon as it is made, before anybody
// can read it: to the fields that change returns, where nil stands for null.
func (d *destination) meddle(orderID string, change func(orders.Order) intent.Fields) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after[orderID] = change
}

// ServeHTTP serves the world, and what somebody else does to it in between.
func (d *destination) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	orders.Handler(d.World).ServeHTTP(answer, r)
	if r.Method == http.MethodPost {
		d.mu.Lock()
		defer d.mu.Unlock()
		for id, change := range d.after {
			for _, o := range d.Records(id) {
				if _, err := d.Edit(o.ID, change(o)); err != nil {
					panic(err)
				}
				delete(d.after, id)
			}
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // who is gone needs no answer
}

// fault switches a vice on for one order.
func (d *destination) fault(t *testing.T, f orders.Fault) {
	t.Helper()
	if err := d.Set(f); err != nil {
		t.Fatal(err)
	}
}
