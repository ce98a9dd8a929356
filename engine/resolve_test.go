package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// The decision of a reviewer who does not wait is in force all the same.
func TestDecisionOfAReviewerWhoDoesNotWait(t *testing.T) {
	for _, word := range []engine.Word{engine.WordDeny, engine.WordApprove} {
		t.Run(string(word), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				w := order("A-1", intent.Create)
				w.Risk = intent.RiskApprove
				held := b.do(w)
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := b.engine.Resolve(gone, w.Tenant, held.ID, engine.Decision{Word: word, By: "ada", Reason: "seen"}); err != nil {
					t.Fatal(err)
				}
				b.engine.Close()
				if got := b.state(held.ID); got.State == ledger.Held {
					t.Errorf("%s%s", got.Phase(), b.life(held.ID))
				}
			})
		})
	}
}

// fencedAppend is a ledger in which another worker is always faster.
type fencedAppend struct{ ledger.Ledger }

func (fencedAppend) Append(context.Context, ledger.ID, int64, ...ledger.Event) (ledger.Record, error) {
	return ledger.Record{}, ledger.ErrFenced
}

// A decision that was not recorded returns no outcome.
func TestLateDecisionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		held := b.do(w)
		e := b.engineOn(fencedAppend{b.ledger}, b.world.Destination(), nil)
		if out, err := e.Resolve(t.Context(), w.Tenant, held.ID, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "seen"}); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("%+v, error %v", out, err)
		}
	})
}

// brokenGet is a ledger that cannot be read any more.
type brokenGet struct {
	ledger.Ledger
	broken bool
}

func (l *brokenGet) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if l.broken {
		return ledger.Record{}, ledger.ErrUnavailable
	}
	return l.Ledger.Get(ctx, tenant, id)
}

func (l *brokenGet) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	rec, err := l.Ledger.Append(ctx, id, fence, events...)
	l.broken = true
	return rec, err
}

// A ledger that fails after the send leaves the caller with an error that states what is known
// of the effect, wherever it fails.
func TestLedgerThatFailsInTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		e := b.engineOn(&brokenGet{Ledger: b.ledger}, b.world.Destination(), &engine.Options{Patience: time.Millisecond})
		out, err := e.Do(t.Context(), order("A-1", intent.Create))
		var known *engine.Error
		if !errors.As(err, &known) || known.Known != engine.KnownNothing || !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%+v, error %v", out, err)
		}
	})
}

// behind is a ledger whose first response is one event old, as for a process that read just
// before another one changed the write.
type behind struct {
	ledger.Ledger
	asked bool
}

func (l *behind) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	rec, err := l.Ledger.Get(ctx, tenant, id)
	if !l.asked {
		l.asked, rec.Seq = true, rec.Seq-1
	}
	return rec, err
}

// The state that the reviewer saw is compared with the write once it is leased.
func TestDecisionIsComparedInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		held := b.do(w)
		e := b.engineOn(&behind{Ledger: b.ledger}, b.world.Destination(), nil)
		d := approves("ada")
		d.Seq = b.state(held.ID).Seq - 1
		if out, err := e.Resolve(t.Context(), "acme", held.ID, d); !errors.Is(err, engine.ErrChanged) || len(b.world.Calls()) != 0 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A decision makes the saga of its write due, and the worker that has the saga reads
// again: it may have read the write before the decision.
func TestADecisionMakesItsSagaDue(t *testing.T) {
	for name, c := range map[string]struct {
		due     time.Duration
		never   bool
		version int64
		want    time.Duration
	}{
		"it rests":      {due: 5 * time.Minute, version: 2},
		"it is in hand": {due: -time.Second, version: 2, want: -time.Second},
		"it is over":    {never: true, version: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				w := order("A-1", intent.Create)
				w.Risk = intent.RiskApprove
				id := b.asked(w).ID
				now := time.Now()
				p := ledger.Document{Tenant: b.state(id).Tenant, Kind: ledger.SagaKind, ID: b.state(id).Workflow, Body: []byte("{}")}
				if !c.never {
					p.Due = now.Add(c.due)
				}
				if _, err := b.ledger.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}}); err != nil {
					t.Fatal(err)
				}
				b.resolve(id, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "seen"})
				got, err := b.ledger.Document(t.Context(), p.Tenant, p.Kind, p.ID)
				if err != nil || got.Version != c.version || got.Due.IsZero() != c.never || !c.never && !got.Due.Equal(now.Add(c.want)) {
					t.Errorf("error %v, version %d, due %s after now; want version %d, due %s", err, got.Version, got.Due.Sub(now), c.version, c.want)
				}
			})
		})
	}
}
