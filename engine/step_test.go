package engine_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Each status has the one thing that a workflow engine can do with it.
func TestStep(t *testing.T) {
	approve := &engine.Options{Risks: []policies.RiskRule{{Tool: "orders.create"}}}
	decide := func(word engine.Word) func(*bench, ledger.ID) {
		return func(b *bench, id ledger.ID) {
			reviewer := engine.As(context.Background(), engine.Principal{Name: "ann", Role: engine.RoleReviewer})
			if _, err := b.engine.Resolve(reviewer, "acme", id, engine.Decision{Word: word, By: "ann", Reason: "checked with the customer"}); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		opts   *engine.Options
		fault  orders.Fault
		limit  time.Duration
		then   func(*bench, ledger.ID) // before a second attempt
		status ledger.Status
		next   engine.Next
		waits  [2]time.Duration
	}{
		"verified":        {status: ledger.Verified, next: engine.NextResult},
		"the answer lost": {fault: orders.Fault{Kind: orders.LostAnswer}, status: ledger.Verified, next: engine.NextResult},
		"refused":         {fault: orders.Fault{Kind: orders.Refused, How: "422"}, status: ledger.NotApplied, next: engine.NextFail},
		"too late":        {fault: orders.Fault{Kind: orders.Throttled, Delay: 30 * time.Second}, limit: time.Second, status: ledger.InProgress, next: engine.NextLater, waits: [2]time.Duration{20 * time.Second, 40 * time.Second}},
		"held":            {opts: approve, status: ledger.StatusHeld, next: engine.NextDecision, waits: [2]time.Duration{10 * time.Second, 13 * time.Second}},
		"held for hours":  {opts: approve, then: func(*bench, ledger.ID) { time.Sleep(5 * time.Hour) }, status: ledger.StatusHeld, next: engine.NextDecision, waits: [2]time.Duration{time.Hour, 75 * time.Minute}},
		"approved":        {opts: approve, then: decide(engine.WordApprove), status: ledger.Verified, next: engine.NextResult},
		"denied":          {opts: approve, then: decide(engine.WordDeny), status: ledger.Denied, next: engine.NextFail},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), c.opts)
				if c.fault.Kind != "" {
					c.fault.Times = 1
					b.set(c.fault)
				}
				ctx := t.Context()
				if c.limit > 0 {
					limited, cancel := context.WithTimeout(ctx, c.limit)
					defer cancel()
					ctx = limited
				}
				s, err := b.engine.Step(ctx, order("A-1", intent.Create), 1)
				if c.then != nil {
					c.then(b, s.Outcome.ID)
					s, err = b.engine.Step(ctx, order("A-1", intent.Create), 2)
				}
				if err != nil || s.Outcome.Status != c.status || s.Next != c.next || s.After < c.waits[0] || s.After > c.waits[1] {
					t.Errorf("got %s, %s after %s, %v%s", s.Outcome.Status, s.Next, s.After, err, b.life(s.Outcome.ID))
				}
			})
		})
	}
}

func TestStepsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench, *intent.WriteIntent)
		is     error
		next   engine.Next
	}{
		"invalid":             {func(_ *bench, w *intent.WriteIntent) { w.Workflow = "" }, intent.ErrInvalid, engine.NextFail},
		"unknown destination": {func(_ *bench, w *intent.WriteIntent) { w.Destination = "shop" }, connectors.ErrUnknownDestination, engine.NextFail},
		"another request under the name": {func(b *bench, w *intent.WriteIntent) {
			b.do(*w)
			w.Expect["currency"] = "EUR"
		}, ledger.ErrDigestMismatch, engine.NextFail},
		"another request under the operation": {func(b *bench, w *intent.WriteIntent) {
			w.IdempotencyKey = "order:1"
			b.do(*w)
			w.Workflow, w.Expect = "wf-2", intent.Fields{"currency": "EUR"}
		}, ledger.ErrBlocked, engine.NextFail},
		"the engine is closed": {func(b *bench, _ *intent.WriteIntent) { b.engine.Close() }, engine.ErrClosed, engine.NextRetry},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				w := order("A-1", intent.Create)
				c.change(b, &w)
				if s, err := b.engine.Step(t.Context(), w, 1); !errors.Is(err, c.is) || s.Next != c.next || s.After != 0 {
					t.Errorf("got %s, %v", s.Next, err)
				}
				if errors.Is(c.is, engine.ErrClosed) {
					return // a closed engine still records
				}
				if id, next, err := b.engine.Record(t.Context(), w); !errors.Is(err, c.is) || next != c.next || id != "" {
					t.Errorf("recorded: got %q, %s, %v", id, next, err)
				}
			})
		})
	}
}

// A message is recorded without waiting, and once: also where a copy has another name.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		w.IdempotencyKey = "order:1"
		first, next, err := b.engine.Record(t.Context(), w)
		if err != nil || next != engine.NextResult || len(b.world.Effects()) != 0 {
			t.Fatalf("got %s, %v; %d effects", next, err, len(b.world.Effects()))
		}
		for _, workflow := range []string{w.Workflow, "wf-2"} {
			w.Workflow = workflow
			if id, next, err := b.engine.Record(t.Context(), w); id != first || next != engine.NextResult || err != nil {
				t.Errorf("%s: got %s, %s, %v; want %s", workflow, id, next, err, first)
			}
		}
	})
}

// A repeated attempt under another name sends nothing, where the first one's write is known.
func TestChangedIdentities(t *testing.T) {
	other := func(w *intent.WriteIntent) { w.Workflow, w.Expect["currency"] = "wf-2", "EUR" }
	renamed := func(w *intent.WriteIntent) { w.Workflow = "wf-2" }
	for name, c := range map[string]struct {
		change  func(*intent.WriteIntent)
		attempt int
		later   time.Duration
		changed bool
		refused bool // the first one, by the destination
	}{
		"a run ID in the name":        {renamed, 2, time.Minute, true, false},
		"a counter in the step":       {func(w *intent.WriteIntent) { w.Step = "7" }, 3, 11 * time.Hour, true, false},
		"the first had no effect":     {renamed, 2, time.Minute, false, true},
		"the same name":               {func(*intent.WriteIntent) {}, 2, 0, false, false},
		"a first attempt":             {renamed, 1, 0, false, false},
		"an engine without a count":   {renamed, 0, 0, false, false},
		"another request":             {other, 2, 0, false, false},
		"another tool":                {func(w *intent.WriteIntent) { renamed(w); w.Tool = "orders.import" }, 2, 0, false, false},
		"the day after":               {renamed, 2, 24 * time.Hour, false, false},
		"the operation has a name":    {func(w *intent.WriteIntent) { renamed(w); w.IdempotencyKey = "order:1" }, 2, 0, false, false},
		"a first write of the record": {func(w *intent.WriteIntent) { renamed(w); w.Key = intent.Fields{"order_id": "A-2"} }, 2, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				first := order("A-1", intent.Update)
				if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, ""); err != nil {
					t.Fatal(err)
				}
				if c.refused {
					b.set(orders.Fault{Kind: orders.Refused, How: "422", Times: 1})
				}
				made := b.do(first)
				time.Sleep(c.later)
				w := order("A-1", intent.Update)
				c.change(&w)
				s, err := b.engine.Step(t.Context(), w, c.attempt)
				if errors.Is(err, engine.ErrIdentityChanged) != c.changed {
					t.Fatalf("got %s, %v", s.Next, err)
				}
				var known *engine.Error
				if c.changed && (s.Next != engine.NextFail || !errors.As(err, &known) || known.Known != engine.KnownNotApplied ||
					!strings.Contains(err.Error(), string(made.ID)) || !strings.Contains(err.Error(), "idempotency_key")) {
					t.Errorf("got %s, %v", s.Next, err)
				}
			})
		})
	}
}

// Where a key is missing, it is unknown whether another write requests the same: nothing is sent, and an
// attempt of a process that has the key decides.
func TestChangedIdentityWithoutTheKey(t *testing.T) {
	for key, next := range map[string]engine.Next{"k1": engine.NextFail, "k2": engine.NextRetry} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options(), nil)
			with := func(key string) *engine.Engine {
				return b.engineOn(b.ledger, b.world.Destination(), &engine.Options{Vault: vaultOf(t, key)})
			}
			w := order("A-1", intent.Create)
			w.Payload, w.Sensitive = intent.Fields{"note": "PIN 4711"}, []string{"/note"}
			b.engine = with("k1")
			b.do(w)
			b.engine, w.Workflow = with(key), "wf-2"
			s, err := b.engine.Step(t.Context(), w, 2)
			if s.Next != next || errors.Is(err, engine.ErrIdentityChanged) != (key == "k1") || errors.Is(err, ledger.ErrNoKey) != (key == "k2") || len(b.world.Effects()) != 1 {
				t.Errorf("%s: got %s, %v with %d effects", key, s.Next, err, len(b.world.Effects()))
			}
		})
	}
}

// Two engines, or two runs of one, never share a name by accident.
func TestWorkflowName(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, parts := range [][]string{
		{"temporal", "default", "order-1"}, {"river", "default", "order-1"}, {"temporal", "default/order-1"}, {"temporal", "default%2Forder-1"},
		{"temporal", "default", "Größe 1"}, {"temporal", "default", " order-1"}, {"temporal", "default", long}, {"temporal", "default", long + "y"},
		{"temporal", long, "order-1"}, {"temporal", "default", "a\x00b"}, {"temporal", "default", "#1"},
	} {
		name := engine.WorkflowName(parts[0], parts[1:]...)
		if earlier, there := seen[name]; there {
			t.Errorf("%q and %s have the name %q", parts, earlier, name)
		}
		seen[name] = fmt.Sprintf("%q", parts)
		w := order("A-1", intent.Create)
		w.Workflow = name
		if err := w.Validate(); err != nil || !regexp.MustCompile(`^(temporal|river):`).MatchString(name) {
			t.Errorf("%q: %q, %v", parts, name, err)
		}
		if got := engine.WorkflowParts(parts[0], name); !slices.Equal(got, parts[1:]) && (got != nil || len(strings.Join(parts, "")) < 300) {
			t.Errorf("%q has the parts %q; want %q", name, got, parts[1:])
		}
	}
	for _, name := range []string{"", "temporal", "temporal:", "temporal:a/", "temporal:%zz", "temporal:a%2fb", "temporal:#1", "river:a", "order-1"} {
		if got := engine.WorkflowParts("temporal", name); got != nil {
			t.Errorf("%q has the parts %q; it is no name of Temporal", name, got)
		}
	}
	for _, parts := range [][]string{{""}, {"", "a"}, {"temporal"}, {"temporal", "default", ""}} {
		if name := engine.WorkflowName(parts[0], parts[1:]...); name != "" {
			t.Errorf("%q: %q; all such runs would share it", parts, name)
		}
	}
}
