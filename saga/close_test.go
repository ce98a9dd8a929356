package saga_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// stranded is a saga that goes neither on nor back by itself.
func stranded(t *testing.T) *bench {
	b := newBench(t, orders.Unique.Options(), nil)
	b.set(orders.Fault{Kind: orders.Refused, Key: "M-1"})
	b.begin(four())
	b.want(b.run(time.Hour), saga.Review)
	return b
}

// A reviewer closes a handled saga, and it makes no further move.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := stranded(t)
		s, err := b.runner.Close(t.Context(), "acme", "saga-1", "ada", "the mail was sent by hand")
		if err != nil || s.State != saga.Closed || s.Closed == nil || s.Closed.By != "ada" || s.Closed.Reason != "the mail was sent by hand" {
			t.Fatalf("%v %+v", err, s)
		}
		if !strings.Contains(s.Reason, "ada") || !strings.Contains(s.Reason, `step "mail"`) || !s.Next.IsZero() {
			t.Error(s.Reason)
		}
		if p := b.document(); !p.Done || p.State != "closed" {
			t.Errorf("%s, done %t", p.State, p.Done)
		}
		version := b.document().Version
		b.want(b.run(time.Hour), saga.Closed)
		b.want(b.resume(time.Hour), saga.Closed)
		if s, err := b.runner.Close(t.Context(), "acme", "saga-1", "eve", "again"); err != nil || s.Closed.By != "ada" {
			t.Errorf("closed again: %v %+v", err, s.Closed)
		}
		if err := b.cancel("ada"); !errors.Is(err, saga.ErrTooLate) {
			t.Errorf("cancelled: %v", err)
		}
		if s, err := b.runner.Begin(t.Context(), four()); err != nil || s.State != saga.Closed {
			t.Errorf("begun again: %v %s", err, s.State)
		}
		if b.document().Version != version {
			t.Error("it was changed")
		}
		b.there("CTP")
	})
}

func TestWhoMayClose(t *testing.T) {
	for name, tt := range map[string]struct {
		who        engine.Principal
		by, reason string
		want       error
	}{
		"an agent":          {engine.Principal{Name: "bot", Role: engine.RoleAgent}, "bot", "x", engine.ErrForbidden},
		"in another's name": {engine.Principal{Name: "rita", Role: engine.RoleReviewer}, "ada", "x", engine.ErrForbidden},
		"no name":           {engine.Principal{}, "", "x", saga.ErrIncomplete},
		"for no reason":     {engine.Principal{}, "ada", "", saga.ErrIncomplete},
		"a long name":       {engine.Principal{}, strings.Repeat("a", 256), "x", saga.ErrIncomplete},
		"a reviewer":        {engine.Principal{Name: "rita", Role: engine.RoleReviewer}, "rita", "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := stranded(t)
				_, err := b.runner.Close(engine.As(t.Context(), tt.who), "acme", "saga-1", tt.by, tt.reason)
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if closed := b.get().State == saga.Closed; closed != (tt.want == nil) {
					t.Errorf("closed: %t", closed)
				}
			})
		})
	}
}

// A saga that can still continue, or waits for another decision, is not closed.
func TestTooEarlyToClose(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*bench, *saga.Plan)
		runs   time.Duration
		says   string
	}{
		"not begun": {nil, 0, "is running"},
		"done":      {nil, time.Hour, "is done"},
		"held":      {func(_ *bench, p *saga.Plan) { p.Steps[0].Intent.Risk = intent.RiskApprove }, time.Minute, "waits for approval"},
		"in review": {func(b *bench, _ *saga.Plan) {
			b.set(orders.Fault{Kind: orders.DroppedField, Key: "P-1", Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
		}, time.Hour, "a reviewer must decide about step"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := newBench(t, orders.Unique.Options(), nil), four()
				if tt.change != nil {
					tt.change(b, &p)
				}
				b.begin(p)
				if tt.runs > 0 {
					b.run(tt.runs)
				}
				version := b.document().Version
				_, err := b.runner.Close(t.Context(), "acme", "saga-1", "ada", "enough of it")
				if !errors.Is(err, saga.ErrNotWaiting) || !strings.Contains(err.Error(), tt.says) || b.document().Version != version {
					t.Errorf("%v, version %d after %d", err, b.document().Version, version)
				}
			})
		})
	}
}

// A saga is not closed while a write is open, whatever else it waits for.
func TestOpenWriteIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[2].Intent.Risk = intent.RiskApprove
		b.begin(p)
		b.run(time.Minute)
		b.reopen(0)
		b.decide(0, engine.WordAbandon)
		b.want(b.run(time.Minute), saga.Review, ledger.Abandoned, ledger.Verified, ledger.StatusHeld)
		if _, err := b.runner.Close(t.Context(), "acme", "saga-1", "ada", "to test"); !errors.Is(err, saga.ErrNotWaiting) || !strings.Contains(err.Error(), `step "pay"`) {
			t.Errorf("the pivot is held: %v", err)
		}
		b.decide(2, engine.WordDeny)
		if _, err := b.runner.Close(t.Context(), "acme", "saga-1", "ada", "to test"); err != nil {
			t.Error(err)
		}
	})
}

// reopen has a later read send the write of a step to review.
func (b *bench) reopen(step int) {
	b.t.Helper()
	rec, err := b.ledger.Get(b.t.Context(), "acme", b.get().Steps[step].WriteID)
	if err == nil {
		_, err = b.ledger.Append(b.t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvEscalated, Rule: "recheck", Reason: "it is gone"})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
