//go:build unix

package gate_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The gate on a real PostgreSQL: a crowd at one step, and the life of one.
func TestOnPostgreSQL(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"fsync": "off"}})
	name, err := s.CreateDatabase()
	if err != nil {
		t.Fatal(err)
	}
	open := func() gate.Store {
		l, err := postgres.Open(t.Context(), s.DSN(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	t.Run("crowd", func(t *testing.T) { crowded(t, open) })
	t.Run("life", func(t *testing.T) { life(t, open()) })
}

// life is a step that is held, approved, leased, lost, leased again and completed, and another
// workflow with the same operation.
func life(t *testing.T, s gate.Store) {
	b := benchOn(t, s, func(o *gate.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	one, two := b.begin(), b.begin()
	held(b)
	r := keyed(map[string]any{"odd": "\u0000 < ü \u2028", "large": 9007199254740993})
	r.LeaseSeconds = 1
	if got := b.ask(one, "transfer", r); got.Decision != gate.RequireApproval {
		t.Fatalf("%+v", got)
	}
	same(t, "the operation", b.operation(one, "transfer").State, ledger.Held)
	if _, err := b.gate.Approve(t.Context(), alice, one, "transfer", why); err != nil {
		t.Fatal(err)
	}
	first := b.ask(one, "transfer", r)
	same(t, "after the approval", []any{first.Decision, first.LeaseGranted, first.Fence}, []any{gate.Allow, true, int64(1)})
	b.rules.says = gate.Allow
	other := b.ask(two, "transfer", r)
	if other.Decision != gate.Block || other.Prior == nil || other.PriorWorkflowID != one {
		t.Fatalf("another workflow: %+v", other)
	}
	var again gate.GateResponse
	for again = b.ask(one, "transfer", r); !again.LeaseGranted; again = b.ask(one, "transfer", r) {
		<-time.After(50 * time.Millisecond) // the clock is the database's
	}
	same(t, "after the lease", again.Fence, int64(2))
	if _, err := b.gate.CompleteStep(t.Context(), agent, one, "transfer", gate.CompleteRequest{IdempotencyKey: r.IdempotencyKey, Fence: 1}); asError(t, err).Code != gate.StaleFence {
		t.Errorf("a stale fence: %v", err)
	}
	b.complete(one, "transfer", gate.CompleteRequest{IdempotencyKey: r.IdempotencyKey, Fence: 2, Output: raw(map[string]any{"odd": "\u0000"})})
	rec := b.operation(one, "transfer")
	same(t, "the operation", []any{rec.State, rec.Settlement}, []any{ledger.Settled, ledger.Reported})
	r.IncludePriorOutput = true
	done := b.ask(one, "transfer", r)
	same(t, "what it put out", string(done.RetryContext.PriorOutput), `{"odd":"\u0000"}`)
	if got := b.ask(two, "transfer", r); got.Decision != gate.Block || got.PriorOutcome == nil {
		t.Errorf("another workflow, afterwards: %+v", got)
	}
	b.end(one, b.gate.Complete)
}
