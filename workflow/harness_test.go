package workflow_test

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
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
)

const tenant = "acme"

var (
	agent = workflow.Caller{Tenant: tenant, Name: "agent-1", Role: engine.RoleAgent}
	alice = workflow.Caller{Tenant: tenant, Name: "alice", Role: engine.RoleReviewer}
	bob   = workflow.Caller{Tenant: tenant, Name: "bob", Role: engine.RoleReviewer}
)

// bench is a gate on a ledger in memory that counts its commits.
type bench struct {
	t     *testing.T
	store *counting
	gate  *workflow.Gate
	rules *rules
	look  *destination
}

// counting counts the filings that were done.
type counting struct {
	workflow.Store
	filed  atomic.Int64
	before func(ledger.Filing) error // is called before each filing
}

func (c *counting) File(ctx context.Context, f ledger.Filing) (ledger.Filed, error) {
	if c.before != nil {
		if err := c.before(f); err != nil {
			return ledger.Filed{}, err
		}
	}
	did, err := c.Store.File(ctx, f)
	if err == nil {
		c.filed.Add(1)
	}
	return did, err
}

// rules answers as it is told, and keeps what it was asked.
type rules struct {
	mu    sync.Mutex
	says  workflow.Decision
	fails error
	asked []workflow.Facts
}

func (r *rules) Decide(_ context.Context, f workflow.Facts) (workflow.Ruling, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, f)
	return workflow.Ruling{Decision: r.says, Reason: "the rules say " + string(r.says),
		Matched: []workflow.PolicyMatch{{PolicyID: "p1", PolicyName: "first", Action: string(r.says)}}}, r.fails
}

// destination is a world of one effect.
type destination struct {
	mu    sync.Mutex
	found engine.Looked
	fails error
	slow  time.Duration
	cases []engine.LookCase
}

func (d *destination) Look(ctx context.Context, _ intent.WriteIntent, c engine.LookCase) (engine.Looked, error) {
	d.mu.Lock()
	slow, found, fails := d.slow, d.found, d.fails // as it is when the look begins
	d.cases = append(d.cases, c)
	d.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return engine.Looked{}, ctx.Err()
	}
	return found, fails
}

func (d *destination) set(l engine.Looked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = l
}

func (d *destination) looks() []engine.LookCase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]engine.LookCase(nil), d.cases...)
}

func newBench(t *testing.T, change func(*workflow.Options)) *bench {
	t.Helper()
	return benchOn(t, ledger.NewMemory(), change)
}

func benchOn(t *testing.T, s workflow.Store, change func(*workflow.Options)) *bench {
	t.Helper()
	b := &bench{t: t, store: &counting{Store: s}, rules: &rules{says: workflow.Allow}, look: &destination{}}
	o := &workflow.Options{Rules: b.rules, Look: b.look, BaseURL: "https://gate.example/api/v1", Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(o)
	}
	b.gate = workflow.New(b.store, o)
	return b
}

func (b *bench) begin() string {
	b.t.Helper()
	made, err := b.gate.Create(b.t.Context(), agent, workflow.CreateRequest{WorkflowName: "payout"})
	if err != nil {
		b.t.Fatal(err)
	}
	return made.WorkflowID
}

type asking = workflow.GateRequest

func call() asking { return asking{StepType: "tool_call"} }

func (b *bench) ask(wf, step string, r asking) workflow.GateResponse {
	b.t.Helper()
	got, err := b.gate.Gate(b.t.Context(), agent, wf, step, r)
	if err != nil {
		b.t.Fatalf("gate of %s: %v", step, err)
	}
	return got
}

func (b *bench) refused(wf, step string, r asking) *workflow.Error {
	b.t.Helper()
	got, err := b.gate.Gate(b.t.Context(), agent, wf, step, r)
	if err == nil {
		b.t.Fatalf("gate of %s was not refused: %+v", step, got)
	}
	return asError(b.t, err)
}

func asError(t *testing.T, err error) *workflow.Error {
	t.Helper()
	var e *workflow.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no error of the gate", err)
	}
	return e
}

func (b *bench) complete(wf, step string, r workflow.CompleteRequest) *workflow.Verification {
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

func (b *bench) view(wf string) workflow.View {
	b.t.Helper()
	v, err := b.gate.Get(b.t.Context(), agent, wf)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

type ending = func(context.Context, workflow.Caller, string, string) (workflow.Ended, error)

func (b *bench) end(wf string, how ending) workflow.Ended {
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
