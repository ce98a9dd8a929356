package reviewui

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/saga"
)

// byHeader trusts the identity in a request's headers.
type byHeader struct{}

func (byHeader) Resolve(r *http.Request) (access.Identity, error) {
	if r.Header.Get("X-Role") == "" {
		return access.Identity{}, access.ErrUnknown
	}
	return access.Identity{Tenant: r.Header.Get("X-Tenant"), Name: r.Header.Get("X-Name"), Role: engine.Role(r.Header.Get("X-Role")), Via: cmp.Or(r.Header.Get("X-Via"), "dev")}, nil
}

// person is a user who sends requests.
type person struct{ tenant, name, role string }

var (
	operator = person{"acme", "olga", "operator"}
	reviewer = person{"acme", "rita", "reviewer"}
	auditor  = person{"acme", "anton", "auditor"}
	agent    = person{"acme", "bot-7", "agent"}
	outsider = person{"other", "otto", "operator"}
)

// shop is a review UI over a real service, with a simulated order destination.
type shop struct {
	http.Handler
	service *service.Service
	world   *orders.World
	ledger  *ledger.Memory
	gate    *gate.Gate
}

// shopToken is what the forms of every page carry.
const shopToken = "form-token-of-the-session"

func formToken(*http.Request) string { return shopToken }

func newShop(t *testing.T) *shop {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	book := ledger.NewMemory()
	e := engine.New(book, &reg, nil)
	t.Cleanup(e.Close)
	gate := gate.New(book, &gate.Options{Risks: []policies.RiskRule{{}}}) // each step is held
	o := service.New(service.Parts{Writes: e, Ledger: book, Registry: &reg, Steps: gate, Sagas: saga.New(book, e, nil), Types: map[string]string{"orders": "simulated"}})
	return &shop{New(o, &Options{Who: byHeader{}, FormToken: formToken, Version: "test"}), o, world, book, gate}
}

func order(id string, change func(*intent.WriteIntent)) intent.WriteIntent {
	w := intent.WriteIntent{Workflow: "run-1", Step: "charge-" + id, Tool: "charge", Destination: "orders", Kind: orders.Kind, CorrelationID: "corr-1",
		Write: intent.Create, Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "EUR"}}
	if change != nil {
		change(&w)
	}
	return w
}

// write carries an intent out for the agent.
func (s *shop) write(t *testing.T, w intent.WriteIntent, faults ...orders.Fault) ledger.ID {
	t.Helper()
	for _, f := range faults {
		if err := s.world.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.service.Submit(t.Context(), access.Identity{Tenant: "acme", Name: agent.name, Role: engine.RoleAgent}, w, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return out.ID
}

// held is a write that waits for approval, review one that a reviewer must settle.
func (s *shop) held(t *testing.T, id string) ledger.ID {
	t.Helper()
	return s.write(t, order(id, func(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }))
}

func (s *shop) review(t *testing.T, id string) ledger.ID {
	t.Helper()
	return s.write(t, order(id, nil), orders.Fault{Kind: orders.DroppedField, Key: id, Field: "currency"})
}

// record is a write as the ledger has it.
func (s *shop) record(t *testing.T, id ledger.ID) ledger.Record {
	t.Helper()
	r, err := s.ledger.Get(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer is a page that came back.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Page   *html.Node
}

func (p person) send(t *testing.T, h http.Handler, method, path string, form url.Values, change ...func(*http.Request)) answer {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if p.role != "" {
		r.Header.Set("X-Tenant", p.tenant)
		r.Header.Set("X-Name", p.name)
		r.Header.Set("X-Role", p.role)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	page, err := html.Parse(strings.NewReader(a.Body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	a.Page = page
	return a
}

func (p person) get(t *testing.T, h http.Handler, path string, change ...func(*http.Request)) answer {
	t.Helper()
	return p.send(t, h, http.MethodGet, path, nil, change...)
}

// all are the elements of a page that fit.
func (a answer) all(fits func(*html.Node) bool) []*html.Node {
	var found []*html.Node
	for n := range a.Page.Descendants() {
		if n.Type == html.ElementNode && fits(n) {
			found = append(found, n)
		}
	}
	return found
}

func tag(name string) func(*html.Node) bool { return func(n *html.Node) bool { return n.Data == name } }

func byID(id string) func(*html.Node) bool {
	return func(n *html.Node) bool { v, ok := attr(n, "id"); return ok && v == id }
}

func class(name string) func(*html.Node) bool {
	return func(n *html.Node) bool {
		v, _ := attr(n, "class")
		return strings.Contains(" "+v+" ", " "+name+" ")
	}
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// text is the visible text of an element.
func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (a answer) text() string { return text(a.Page) }

// form are the fields of the form that sends to a path, as a browser would send them
// unchanged.
func (a answer) form(t *testing.T, action string) url.Values {
	t.Helper()
	for _, f := range a.all(tag("form")) {
		method, _ := attr(f, "method")
		if to, _ := attr(f, "action"); to != action || method != "post" {
			continue
		}
		values := url.Values{}
		for n := range f.Descendants() {
			name, ok := attr(n, "name")
			kind, _ := attr(n, "type")
			if n.Type != html.ElementNode || !ok || kind == "radio" || kind == "checkbox" || n.Data == "button" {
				continue
			}
			value, _ := attr(n, "value")
			if n.Data == "textarea" {
				value = text(n)
			}
			values.Set(name, value)
		}
		return values
	}
	t.Fatalf("no form sends to %s", action)
	return nil
}
