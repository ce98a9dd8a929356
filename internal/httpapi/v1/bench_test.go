package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// bench is the API over a service with all its parts: an engine on a ledger in memory,
// and a simulated order destination.
type bench struct {
	t       *testing.T
	world   *orders.World
	shop    *shop
	ledger  *book
	engine  *engine.Engine
	runner  *saga.Runner
	gate    *gate.Gate
	tokens  *tokens
	closing chan struct{}
	inside  *api
	api     http.Handler
	late    bool // bodies do not arrive in time
}

// book is a ledger that can be broken.
type book struct {
	*ledger.Memory
	mu  sync.Mutex
	err error // of every reservation and read
	all error // of what needs all partitions
}

func (b *book) breaks(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *book) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *book) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	if err := b.broken(); err != nil {
		return ledger.Record{}, false, err
	}
	return b.Memory.Reserve(ctx, r)
}

func (b *book) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if err := b.broken(); err != nil {
		return ledger.Record{}, err
	}
	return b.Memory.Get(ctx, tenant, id)
}

func (b *book) Follow(ctx context.Context, q ledger.Following) ([]ledger.Change, string, error) {
	if err := b.broken(); err != nil {
		return nil, "", err
	}
	return b.Memory.Follow(ctx, q)
}

func (b *book) Latest(ctx context.Context) (string, error) {
	if b.all != nil {
		return "", b.all
	}
	return b.Memory.Latest(ctx)
}

// tokens knows callers by their token, which is role@tenant, or role:name@tenant.
type tokens struct {
	mu      sync.Mutex
	err     error
	revoked map[string]bool
	made    map[string]string // tokens that are as another one since
}

func (d *tokens) Resolve(r *http.Request) (access.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return access.Identity{}, d.err
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if other := d.made[token]; other != "" {
		token = other
	}
	who, tenant, ok := strings.Cut(token, "@")
	role, name, named := strings.Cut(who, ":")
	if !named {
		name = role + "-1"
	}
	if !ok || d.revoked[token] {
		return access.Identity{}, access.ErrNoCredentials
	}
	return access.Identity{Tenant: tenant, Name: name, Role: engine.Role(role), Via: "token", ID: "t-" + name}, nil
}

func (d *tokens) fails(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *tokens) revoke(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revoked = map[string]bool{token: true}
}

func (d *tokens) makes(token, other string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = map[string]string{token: other}
}

// The callers.
const (
	agent    = "agent@acme"
	reviewer = "reviewer@acme"
	operator = "operator@acme"
	auditor  = "auditor@acme"
	outsider = "operator@umbrella"
)

// shop is the destination. Its reads wait until reads is closed, or they are ended.
type shop struct {
	*orders.Connector
	reads chan struct{}
}

func (s *shop) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	select {
	case <-s.reads:
		return s.Connector.Read(ctx, q)
	case <-ctx.Done():
		return connectors.Observation{}, ctx.Err()
	}
}

func newBench(t *testing.T, o orders.Options, change func(*Options)) *bench {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	reads := make(chan struct{})
	close(reads)
	shop := &shop{Connector: world.Connector(), reads: reads}
	if err := reg.Register("orders", connectors.Destination{Connector: shop, Profiles: shop.Profiles()}); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, shop: shop, ledger: &book{Memory: ledger.NewMemory()}, tokens: &tokens{}, closing: make(chan struct{})}
	b.engine = engine.New(b.ledger, &reg, nil)
	t.Cleanup(b.engine.Close)
	b.gate = gate.New(b.ledger.Memory, nil)
	b.runner = saga.New(b.ledger, b.engine, nil)
	opts := &Options{Who: b.tokens, Closing: b.closing, Version: "test", Receipts: newSigned(t, b.ledger, &reg)}
	if change != nil {
		change(opts)
	}
	b.inside = newAPI(service.New(service.Parts{Writes: b.engine, Ledger: b.ledger, Registry: &reg, Steps: b.gate, Sagas: b.runner,
		Types: map[string]string{"orders": "simulated"}}), opts)
	b.api = b.inside.handler()
	return b
}

func (b *bench) set(f orders.Fault) {
	b.t.Helper()
	if err := b.world.Set(f); err != nil {
		b.t.Fatal(err)
	}
}

// work has a worker run until the end of the test.
func (b *bench) work() {
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.engine.Work(ctx, nil) })
	wg.Go(func() { _ = b.runner.Work(ctx) })
	b.t.Cleanup(func() { cancel(); wg.Wait() })
}

// answered is a response.
type answered struct {
	t      *testing.T
	Status int
	Header http.Header
	Body   []byte
}

// into reads the body.
func into[T any](a answered) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.Body)
	}
	return v
}

func (a answered) want(status int) answered {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// problem is the response as a problem of this kind.
func (a answered) problem(k *kind) Problem {
	a.t.Helper()
	a.want(k.status)
	p := into[Problem](a)
	if p.Type != k.uri() || p.Title != k.title || p.Status != k.status {
		a.t.Fatalf("problem %+v, want %s", p, k.name)
	}
	return p
}

// ask calls the API; its response must match the document. Headers are "Name: value".
func (b *bench) ask(who, method, target, body string, headers ...string) answered {
	b.t.Helper()
	return b.askIn(b.t.Context(), who, method, target, body, headers...)
}

func (b *bench) askIn(ctx context.Context, who, method, target, body string, headers ...string) answered {
	b.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		r.Header.Add(name, value)
	}
	if b.late {
		r.Body = io.NopCloser(iotest.ErrReader(os.ErrDeadlineExceeded))
	}
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	a := answered{b.t, w.Code, w.Header(), bytes.Clone(w.Body.Bytes())}
	agrees(b.t, r, a)
	return a
}

// order is an intent to create an order.
func order(id string, change ...func(*intent.WriteIntent)) intent.WriteIntent {
	w := intent.WriteIntent{Workflow: "run-1", Step: "charge-" + id, Tool: "charge", Destination: "orders", Kind: orders.Kind,
		Write: intent.Create, Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "EUR"}}
	for _, each := range change {
		each(&w)
	}
	return w
}

func held(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }

func unnamed(w *intent.WriteIntent) { w.Workflow, w.Step = "", "" }

// asJSON is an intent as a caller writes it, without the members left out.
func asJSON(w intent.WriteIntent) string {
	text, err := json.Marshal(w)
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	for _, name := range []string{"tenant", "workflow"} {
		if m[name] == "" {
			delete(m, name)
		}
	}
	if err == nil {
		text, err = json.Marshal(m)
	}
	if err != nil {
		panic(err)
	}
	return string(text)
}

// submit submits an order and waits for it.
func (b *bench) submit(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	return into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(w), "Prefer: wait=60"))
}

// inReview submits a write that goes to review: it was sent, and a foreign order has the
// key.
func (b *bench) inReview(id string) engine.Outcome {
	b.t.Helper()
	if _, err := b.world.Seed(intent.Fields{"order_id": id, "amount_cents": json.Number("5")}, ""); err != nil {
		b.t.Fatal(err)
	}
	out := b.submit(order(id))
	if out.Status != ledger.StatusReview {
		b.t.Fatalf("outcome %+v, want one in review", out)
	}
	return out
}

func writePath(id ledger.ID, more string) string { return "/v1/writes/" + string(id) + more }

// aMoment is long enough for everything that needs no time.
const aMoment = time.Millisecond

var errBroken = errors.New("a disk with secrets in its name is broken")

func unavailableLedger() error { return fmt.Errorf("%w: %w", ledger.ErrUnavailable, errBroken) }

func nativeOptions() orders.Options { return orders.Native.Options() }

func readAll(t *testing.T, r *http.Response) []byte {
	t.Helper()
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
