package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// stalling is the ledger access of a process that stalls right after a commit: the first
// Reserve, or the n-th announcement.
type stalling struct {
	ledger.Ledger
	reserve time.Duration // after the reservation
	lease   time.Duration // the lease by the ledger's clock, which is fast; 0 for as requested
	then    func(ledger.Record)
	broken  bool // Get fails from then on

	mu      sync.Mutex
	stalled bool
}

func (s *stalling) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	asked := r.LeaseFor
	if s.lease > 0 {
		r.LeaseFor = s.lease
	}
	rec, fresh, err := s.Ledger.Reserve(ctx, r)
	rec.LeaseFor = asked
	if err == nil && fresh {
		time.Sleep(s.reserve)
		s.mu.Lock()
		s.stalled = true
		s.mu.Unlock()
		if s.then != nil {
			s.then(rec)
		}
	}
	return rec, fresh, err
}

func (s *stalling) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled && s.broken {
		return ledger.Record{}, errors.Join(ledger.ErrUnavailable, errDisk)
	}
	return s.Ledger.Get(ctx, tenant, id)
}

// takeOver is another process that continues the write.
func (b *bench) takeOver(rec ledger.Record) {
	out, err := b.newEngine(nil).Wait(context.Background(), "acme", rec.ID, false)
	if err != nil || out.Status != ledger.Verified {
		b.t.Errorf("the other process: %+v, %v%s", out, err, b.life(rec.ID))
	}
}

// A worker that lost its lease to another one reports it, in the log and to the observer.
func TestALostLeaseIsLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		var log strings.Builder
		var lost atomic.Int64
		slow := &stalling{Ledger: b.ledger, reserve: 5 * time.Second, lease: 2 * time.Second, then: b.takeOver}
		frozen := b.engineOn(slow, b.world.Destination(), &engine.Options{Observer: func(a engine.Activity) {
			if a.Kind == engine.ActivityFailed && errors.Is(a.Err, ledger.ErrFenced) {
				lost.Add(1)
			}
		}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		_, _ = frozen.Do(t.Context(), order("A-1", intent.Create)) // its result is the other's
		frozen.Close()
		if text := log.String(); lost.Load() != 1 || !strings.Contains(text, "the lease was lost") || !strings.Contains(text, "write=wr_") {
			t.Errorf("counted %d, logged %s; want the lost lease once in both", lost.Load(), text)
		}
	})
}

// A process that stalled between the announcement and the send does not send what another one
// has taken over and finished.
func TestFrozenBeforeTheSendIsPrevented(t *testing.T) {
	for name, c := range map[string]struct {
		class   orders.Class
		stalled time.Duration
		lease   bool // the other process waits for the lease
		reason  string
	}{
		"past its lease":                   {orders.Plain, 10 * time.Minute, true, "its own clock says so"},
		"short of its lease, and overtook": {orders.Unique, 5 * time.Second, false, "only the ledger can say so"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				other := b.newEngine(nil)
				slow := &stalling{Ledger: b.ledger, reserve: c.stalled}
				if !c.lease {
					slow.lease, slow.then = c.stalled/2, b.takeOver
				}
				frozen := b.engineOn(slow, b.world.Destination(), nil)
				w := order("A-1", intent.Create)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = frozen.Do(t.Context(), w) // its result is the other's
				}()
				if c.lease {
					time.Sleep(2 * time.Minute)
					if out, err := other.Do(t.Context(), w); err != nil || out.Status != ledger.Verified {
						t.Errorf("the other process: %+v, %v%s", out, err, b.life(out.ID))
					}
				}
				<-done
				id := ledger.IDOf(w.StructuralKey())
				if writes, _ := b.world.Count(); writes != 1 || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%d sends, want the other's alone: %s%s", writes, c.reason, b.life(id))
				}
				if life := b.life(id); !strings.Contains(life, string(ledger.EvLate)) {
					t.Errorf("no evidence of what the frozen one had in hand%s", life)
				}
			})
		})
	}
}

// A worker that cannot ask the ledger does not send: the write continues when the ledger is
// back.
func TestFrozenWithoutALedgerDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		slow := &stalling{Ledger: b.ledger, reserve: 5 * time.Second, broken: true}
		sends := 0
		d := b.world.Destination()
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) {
			sends++
			slow.mu.Lock()
			defer slow.mu.Unlock()
			if slow.broken {
				t.Error("sent while the ledger could not show the owner of the write")
			}
		}}
		e := b.engineOn(slow, d, nil)
		time.AfterFunc(5500*time.Millisecond, func() {
			slow.mu.Lock()
			defer slow.mu.Unlock()
			slow.broken = false
		})
		out, err := e.Do(t.Context(), order("A-1", intent.Create))
		if err != nil || out.Status != ledger.Verified || sends != 1 {
			t.Errorf("%+v, %v after %d sends%s", out, err, sends, b.life(out.ID))
		}
	})
}

// A process that stalled inside the connector cannot be prevented from sending. Where nothing
// at the destination stops the duplicate, the recheck finds it.
func TestStalledSendIsDetectedByTheRecheck(t *testing.T) {
	for name, c := range map[string]struct {
		stalled time.Duration
		worked  time.Duration
	}{
		"minutes": {5 * time.Minute, time.Hour},
		"hours":   {9 * time.Hour, 30 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				d := b.world.Destination()
				d.Connector = &frozen{Connector: d.Connector, fate: c.stalled}
				stopped := b.engineOn(b.ledger, d, nil)
				w := order("A-1", intent.Create)
				go func() { _, _ = stopped.Do(context.Background(), w) }() // its result is the other's
				time.Sleep(2 * time.Minute)
				out := b.do(w)
				if out.Status != ledger.Verified || out.Sends != 2 || len(b.world.Records("A-1")) != 1 {
					t.Fatalf("taken over: %+v with %d records%s", out, len(b.world.Records("A-1")), b.life(out.ID))
				}
				b.work(c.worked)
				got := b.state(out.ID)
				if n := len(b.world.Records("A-1")); n != 2 || got.State != ledger.Review || got.Verdict != "duplicated" {
					t.Errorf("%d records; %s, %s; want the double found%s", n, got.Phase(), got.Verdict, b.life(out.ID))
				}
			})
		})
	}
}
