package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const tenant = "acme"

var (
	agent = gate.Caller{Tenant: tenant, Name: "agent-1", Role: engine.RoleAgent}
	alice = gate.Caller{Tenant: tenant, Name: "alice", Role: engine.RoleReviewer}
	bob   = gate.Caller{Tenant: tenant, Name: "bob", Role: engine.RoleReviewer}
)

// bench is a gate on a ledger in memory that counts its commits.
type bench struct {
	t     *testing.T
	store *counting
	gate  *gate.Gate
	rules *rules
	dest  *destination
}

// counting counts commits.
type counting struct {
	gate.Store
	commits atomic.Int64
	before  func(ledger.Batch) error // called before each commit
}

func (c *counting) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	if c.before != nil {
		if err := c.before(f); err != nil {
			return ledger.Committed{}, err
		}
	}
	did, err := c.Store.Commit(ctx, f)
	if err == nil {
		c.commits.Add(1)
	}
	return did, err
}

// rules returns a preset answer, and records what it was asked.
type rules struct {
	mu    sync.Mutex
	says  gate.Decision
	fails error
	asked []gate.Facts
}

func (r *rules) Decide(_ context.Context, f gate.Facts) (gate.Ruling, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, f)
	return gate.Ruling{Decision: r.says, Reason: "the rules say " + string(r.says),
		Matched: []gate.PolicyMatch{{PolicyID: "p1", PolicyName: "first", Action: string(r.says)}}}, r.fails
}

// destination is a destination with one effect.
type destination struct {
	mu     sync.Mutex
	result engine.ReadResult
	fails  error
	slow   time.Duration
	cases  []engine.ReadBackCase
}

func (d *destination) ReadBack(ctx context.Context, _ intent.WriteIntent, c engine.ReadBackCase) (engine.ReadResult, error) {
	d.mu.Lock()
	slow, found, fails := d.slow, d.result, d.fails // the state when the read begins
	d.cases = append(d.cases, c)
	d.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return engine.ReadResult{}, ctx.Err()
	}
	return found, fails
}

func (d *destination) set(l engine.ReadResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result = l
}

func (d *destination) reads() []engine.ReadBackCase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]engine.ReadBackCase(nil), d.cases...)
}

func newBench(t *testing.T, change func(*gate.Options)) *bench {
	t.Helper()
	return benchOn(t, ledger.NewMemory(), change)
}

func benchOn(t *testing.T, s gate.Store, change func(*gate.Options)) *bench {
	t.Helper()
	b := &bench{t: t, store: &counting{Store: s}, rules: &rules{says: gate.Allow}, dest: &destination{}}
	o := &gate.Options{Rules: b.rules, Reader: b.dest, BaseURL: "https://gate.example/api/v1", ReviewUI: "https://gate.example", Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(o)
	}
	b.gate = gate.New(b.store, o)
	return b
}

func (b *bench) begin() string {
	b.t.Helper()
	made, err := b.gate.Create(b.t.Context(), agent, gate.CreateRequest{WorkflowName: "payout"})
	if err != nil {
		b.t.Fatal(err)
	}
	return made.WorkflowID
}

type asking = gate.GateRequest

func call() asking { return asking{StepType: "tool_call"} }

func (b *bench) ask(wf, step string, r asking) gate.GateResponse {
	b.t.Helper()
	got, err := b.gate.Gate(b.t.Context(), agent, wf, step, r)
	if err != nil {
		b.t.Fatalf("gate of %s: %v", step, err)
	}
	return got
}

func (b *bench) refused(wf, step string, r asking) *gate.Error {
	b.t.Helper()
	got, err := b.gate.Gate(b.t.Context(), agent, wf, step, r)
	if err == nil {
		b.t.Fatalf("gate of %s was not refused: %+v", step, got)
	}
	return asError(b.t, err)
}

func asError(t *testing.T, err error) *gate.Error {
	t.Helper()
	var e *gate.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no error of the gate", err)
	}
	return e
}

func (b *bench) complete(wf, step string, r gate.CompleteRequest) *gate.Verification {
	b.t.Helper()
	seen, err := b.gate.CompleteStep(b.t.Context(), agent, wf, step, r)
	if err != nil {
		b.t.Fatalf("complete of %s: %v", step, err)
	}
	return seen
}

// operation is the write of a step's business operation.
func (b *bench) operation(wf, step string) ledger.Record {
	b.t.Helper()
	rec, err := b.store.Get(b.t.Context(), tenant, ledger.IDOf(intent.StepKey(tenant, wf, step)))
	if err != nil {
		b.t.Fatal(err)
	}
	return rec
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// order is an intent without the names that the step gives it.
var order = raw(map[string]any{"tool": "orders.create", "destination": "shop", "kind": "order", "key": map[string]any{"number": "A-1"},
	"write": "create", "expect": map[string]any{"amount": 10}})

var errBoom = errors.New("boom")

func (b *bench) view(wf string) gate.View {
	b.t.Helper()
	v, err := b.gate.Get(b.t.Context(), agent, wf)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

type ending = func(context.Context, gate.Caller, string, string) (gate.Ended, error)

func (b *bench) end(wf string, how ending) gate.Ended {
	b.t.Helper()
	got, err := how(b.t.Context(), agent, wf, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func replaced(text json.RawMessage, from, to string) json.RawMessage {
	return json.RawMessage(strings.Replace(string(text), from, to, 1))
}
