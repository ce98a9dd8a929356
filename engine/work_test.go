package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// waitingSend is a connector whose sends block until they are released, or cut off.
type waitingSend struct {
	connectors.Connector
	mu     sync.Mutex
	inside int
	most   int
	took   time.Duration
}

func (s *waitingSend) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	s.mu.Lock()
	s.inside++
	s.most = max(s.most, s.inside)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inside--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return connectors.Receipt{}, ctx.Err()
	}
	return s.Connector.Write(ctx, r)
}

// two is an engine with a slow destination and a fast one; the slow one is of another world.
func two(t *testing.T, took time.Duration, opts *engine.Options) (b *bench, slow *waitingSend, far *orders.World) {
	t.Helper()
	b = newBench(t, orders.Unique.Options(), nil)
	far, err := orders.New(orders.Unique.Options())
	if err != nil {
		t.Fatal(err)
	}
	d := far.Destination()
	slow = &waitingSend{Connector: d.Connector, took: took}
	d.Connector = slow
	var reg connectors.Registry
	if err := errors.Join(reg.Register("orders", b.world.Destination()), reg.Register("slow", d)); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, opts)
	t.Cleanup(b.engine.Close)
	return b, slow, far
}

func slowOrder(n int) intent.WriteIntent {
	w := order(fmt.Sprint("S-", n), intent.Create)
	w.Destination = "slow"
	return w
}

// A slow destination takes no more than its share, however much is queued for it and however
// long.
func TestASlowDestinationDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, slow, _ := two(t, 25*time.Second, nil)
		for n := range 300 {
			b.enqueue(slowOrder(n))
		}
		ctx, cancel := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- b.engine.Work(ctx, &engine.WorkOptions{Parallel: 16}) }()
		time.Sleep(5 * time.Second)
		for n := range 40 {
			id := b.enqueue(order(fmt.Sprint("A-", n), intent.Create))
			for out, err := range b.engine.Subscribe(t.Context(), "acme", id) {
				if err != nil || out.Status != ledger.Verified {
					t.Fatalf("%+v, %v%s", out, err, b.life(id))
				}
				if waited := out.Settled.Sub(out.Created); waited > 2*time.Second {
					t.Errorf("write %d took %s beside a slow destination", n, waited)
				}
			}
		}
		slow.mu.Lock()
		if slow.most != 8 {
			t.Errorf("the slow destination had %d of 16 slots, want half", slow.most)
		}
		slow.mu.Unlock()
		cancel()
		if err := <-worked; err != nil {
			t.Error(err)
		}
	})
}

func TestWorkerWithOneSlotWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		for n := range 5 {
			b.enqueue(order(fmt.Sprint("A-", n), intent.Create))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.engine.Work(ctx, &engine.WorkOptions{Parallel: 1}); err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			if got := len(b.world.Records(fmt.Sprint("A-", n))); got != 1 {
				t.Errorf("order %d: %d records", n, got)
			}
		}
	})
}

// An ending worker hands back the work that it has not begun, lets calls in progress end within
// its grace, and cuts off and records the rest.
func TestWorkerHandsBack(t *testing.T) {
	for name, c := range map[string]struct {
		took, grace time.Duration
		within      time.Duration
		sent        string
		reason      string
	}{
		"in time":  {10 * time.Second, 0, 10 * time.Second, "answered", "sends and reads under way end"},
		"too long": {25 * time.Second, 5 * time.Second, 6 * time.Second, "", "what is cut off has an unknown fate, and that is recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _, far := two(t, c.took, nil)
				var ids []ledger.ID
				for n := range 30 {
					ids = append(ids, b.enqueue(slowOrder(n)))
				}
				ctx, cancel := context.WithCancel(t.Context())
				worked := make(chan error)
				go func() { worked <- b.engine.Work(ctx, &engine.WorkOptions{Parallel: 16, Grace: c.grace}) }()
				time.Sleep(time.Second)
				cancel()
				began := time.Now()
				if err := <-worked; err != nil || time.Since(began) > c.within {
					t.Errorf("%v after %s; want it ended within %s", err, time.Since(began), c.within)
				}
				sent := 0
				for _, id := range ids {
					got := b.state(id)
					if got.Owner != "" || got.State == ledger.Sending {
						t.Errorf("%s is left in the hands of %q%s", got.Phase(), got.Owner, b.life(id))
					}
					if got.Sends > 0 {
						sent++
						if got.LastFate != c.sent {
							t.Errorf("fate %q, want %q: %s%s", got.LastFate, c.sent, c.reason, b.life(id))
						}
					}
				}
				if sent != 8 {
					t.Errorf("%d were sent, want the 8 that were under way", sent)
				}
				next := b.newEngineLike(far)
				nextCtx, end := context.WithTimeout(t.Context(), 10*time.Minute)
				defer end()
				if err := next.Work(nextCtx, nil); err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					if got := b.state(id); got.Settlement != ledger.Verified {
						t.Errorf("the next worker: %s%s", got.Phase(), b.life(id))
					}
				}
				for n := range 30 {
					if got := len(far.Records(fmt.Sprint("S-", n))); got != 1 {
						t.Errorf("order %d: %d records", n, got)
					}
				}
			})
		})
	}
}

// newEngineLike returns an engine on both destinations without their slowness.
func (b *bench) newEngineLike(far *orders.World) *engine.Engine {
	var reg connectors.Registry
	if err := errors.Join(reg.Register("orders", b.world.Destination()), reg.Register("slow", far.Destination())); err != nil {
		b.t.Fatal(err)
	}
	e := engine.New(b.ledger, &reg, nil)
	b.t.Cleanup(e.Close)
	return e
}

// ailing is a ledger that is unusable for a while.
type ailing struct {
	*ledger.Memory
	mu    sync.Mutex
	ill   bool
	asked int
}

func (a *ailing) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.ill {
		return nil, errors.Join(ledger.ErrUnavailable, errDisk)
	}
	return a.Memory.Claim(ctx, c)
}

func TestWorkerOutlastsItsLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		id := b.enqueue(order("A-1", intent.Create))
		ill := &ailing{Memory: b.ledger, ill: true}
		b.engine = b.engineOn(ill, b.world.Destination(), nil)
		time.AfterFunc(10*time.Minute, func() {
			ill.mu.Lock()
			defer ill.mu.Unlock()
			ill.ill = false
			if ill.asked > 300 || ill.asked < 60 {
				t.Errorf("asked %d times in ten minutes, want once in some seconds", ill.asked)
			}
		})
		b.work(11 * time.Minute)
		if got := b.state(id); got.Settlement != ledger.Verified {
			t.Errorf("%s%s", got.Phase(), b.life(id))
		}
	})
}

// A write that no process here can work on is put back with the reason, ever more rarely, and
// blocks nothing else. It continues when its destination is back.
func TestWritesOfARemovedDestinationWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, slow, far := two(t, 5*time.Minute, nil)
		var ids []ledger.ID
		for n := range 40 {
			ids = append(ids, b.enqueue(slowOrder(n)))
		}
		slow.took = 0
		checked, err := b.engine.Do(t.Context(), slowOrder(100))
		if err != nil {
			t.Fatal(err)
		}
		b.engine = b.newEngine(nil) // without the slow one
		other := b.enqueue(order("A-1", intent.Create))
		b.work(24 * time.Hour)
		if got := b.state(other); got.Settlement != ledger.Verified || got.SettledAt.Sub(got.Created) > 10*time.Second {
			t.Errorf("another destination: %s after %s%s", got.Phase(), got.SettledAt.Sub(got.Created), b.life(other))
		}
		for _, id := range ids {
			got := b.state(id)
			if got.State != ledger.Queued || got.Rule != "unworkable" || !strings.Contains(got.Reason, `"slow"`) || got.Seq > 200 || got.Due.IsZero() {
				t.Fatalf("%s by %q: %q with %d events, due %s%s", got.Phase(), got.Rule, got.Reason, got.Seq, got.Due, b.life(id))
			}
		}
		b.engine = b.newEngineLike(far)
		b.work(15 * time.Minute)
		for _, id := range append(ids, checked.ID) {
			if got := b.state(id); got.Settlement != ledger.Verified {
				t.Errorf("registered again: %s%s", got.Phase(), b.life(id))
			}
		}
	})
}

// A process without the destination puts a write back for minutes. A caller whose process has it does not
// wait for that.
func TestCallerOfAPutBackWriteDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		id := b.enqueue(order("A-1", intent.Create))
		unregistered := engine.New(b.ledger, new(connectors.Registry), nil)
		defer unregistered.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := unregistered.Work(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if out, err := unregistered.Wait(ctx, "acme", id, true); err != nil || out.Status != ledger.InProgress {
			t.Errorf("without the destination: %s, %v%s", out.Status, err, b.life(id))
		}
		began, seq := time.Now(), b.state(id).Seq
		out := b.do(order("A-1", intent.Create))
		if took := time.Since(began); out.Status != ledger.Verified || took > time.Second || seq > 3 {
			t.Errorf("%s after %v, put back %d times%s", out.Status, took, seq, b.life(id))
		}
	})
}

// A recheck that was put back keeps to its pause: the rule of an outcome stays through pauses without one.
func TestPutBackRecheckIsNotEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		unregistered := engine.New(b.ledger, new(connectors.Registry), nil)
		defer unregistered.Close()
		time.Sleep(time.Until(b.state(out.ID).Due) + time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := unregistered.Work(ctx, nil); err != nil {
			t.Fatal(err)
		}
		before := b.state(out.ID)
		if before.State != ledger.Settled || before.Rule != "unworkable" || !before.Due.After(time.Now()) {
			t.Fatalf("setup: %s, %s%s", before.Phase(), before.Rule, b.life(out.ID))
		}
		if _, _, err := b.engine.WorkOn(t.Context(), "acme", out.ID); err != nil {
			t.Fatal(err)
		}
		if after := b.state(out.ID); after.Seq != before.Seq {
			t.Errorf("continued before it was due%s", b.life(out.ID))
		}
	})
}

// An announced write of a removed destination is taken over all the same: what is known about
// it is recorded, and it waits.
func TestAnnouncedWriteOfARemovedDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		dying := b.engineOn(&breaking{Ledger: b.ledger}, b.world.Destination(), nil)
		if _, err := dying.Do(t.Context(), order("A-1", intent.Create)); err == nil {
			t.Fatal("it should have died")
		}
		id := ledger.IDOf(order("A-1", intent.Create).StructuralKey())
		unregistered := engine.New(b.ledger, new(connectors.Registry), nil)
		defer unregistered.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if err := unregistered.Work(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if got := b.state(id); got.State != ledger.Checking || !got.Unknown || got.Seq > 200 {
			t.Fatalf("%s, unknown %t, %d events%s", got.Phase(), got.Unknown, got.Seq, b.life(id))
		}
		b.work(time.Hour)
		if got := b.state(id); got.Settlement != ledger.Verified || got.Sends != 1 {
			t.Errorf("registered again: %s after %d sends%s", got.Phase(), got.Sends, b.life(id))
		}
	})
}

// While the undo of a write takes long, the lease on the write is kept.
func TestLeaseIsKeptWhileAnUndoingTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		d := b.world.Destination()
		d.Connector = &delete25{Connector: d.Connector}
		p := d.Profiles[orders.Kind]
		p.ReadTimeout = 10 * time.Minute
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		e := b.engineOn(b.ledger, d, &engine.Options{Slack: time.Second})
		w := order("A-1", intent.Create)
		w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = b.engine.Work(ctx, nil) }() // it returns nil, and takes unowned writes
		out, err := e.Do(t.Context(), w)
		if got := b.state(out.ID); err != nil || out.Status != ledger.Compensated || got.Fence != 1 {
			t.Errorf("%+v, %v; %d changes of hands%s", out, err, got.Fence-1, b.life(out.ID))
		}
	})
}

// delete25 is slow to delete, and to show the state before and after.
type delete25 struct {
	connectors.Connector
	undoing bool
}

func (d *delete25) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if r.Intent.Write == intent.Delete {
		time.Sleep(25 * time.Second)
	}
	return d.Connector.Write(ctx, r)
}

func (d *delete25) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if d.undoing {
		time.Sleep(9 * time.Minute)
	}
	return d.Connector.Read(ctx, q)
}

func (d *delete25) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	d.undoing = true
	return d.Connector.(connectors.Inverter).Invert(w, before, after)
}

// crammed is a ledger with the given number of outbox entries.
type crammed struct {
	*ledger.Memory
	mu      sync.Mutex
	entries int
	surveys int
}

func (c *crammed) QueueStats(ctx context.Context) (ledger.QueueStats, error) {
	s, err := c.Memory.QueueStats(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Outbox = c.entries
	c.surveys++
	return s, err
}

func TestWorkersCloseAndOpenTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		l := &crammed{Memory: b.ledger}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			e := b.engineOn(l, b.world.Destination(), nil)
			wg.Go(func() {
				if err := e.Work(ctx, &engine.WorkOptions{MaxOutbox: 100}); err != nil {
					t.Error(err)
				}
			})
		}
		for _, c := range []struct {
			entries int
			full    bool
		}{{100, false}, {101, true}, {85, true}, {79, false}, {99, false}, {1000, true}, {0, false}} {
			l.mu.Lock()
			l.entries = c.entries
			l.mu.Unlock()
			time.Sleep(30 * time.Second)
			found, _, err := l.Notes(ctx, ledger.FullNote)
			if err != nil || (len(found) > 0) != c.full {
				t.Errorf("%d entries: %v, %v; want full %t", c.entries, found, err, c.full)
			}
		}
		if l.surveys > 60 {
			t.Errorf("%d surveys in 210 s by five workers, want about one in five seconds", l.surveys)
		}
		cancel()
		wg.Wait()
	})
}

func TestWorkersPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		var ids []ledger.ID
		for n := range 25 {
			ids = append(ids, b.do(order(fmt.Sprint("A-", n), intent.Create)).ID)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Hour)
		defer cancel()
		if err := b.engine.Work(ctx, &engine.WorkOptions{Idle: 10 * time.Second, Retention: ledger.Prune{Keep: time.Hour, Remember: 100 * time.Hour, Limit: 10}}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if got := b.state(id); !got.Tombstone {
				t.Fatalf("%s is kept after four hours", got.Phase())
			}
		}
		if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || !out.Replayed {
			t.Errorf("asked again: %+v", out)
		}
	})
}

// lastClaim is a ledger that ends a worker with the first claim that leases something.
type lastClaim struct {
	*ledger.Memory
	end context.CancelFunc
}

func (l lastClaim) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	lent, err := l.Memory.Claim(ctx, c)
	if len(lent) > 0 {
		l.end()
	}
	return lent, err
}

// Claimed work that was not begun is handed back at once, unchanged.
func TestWhatIsNotBegunIsHandedBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		dying := b.engineOn(&breaking{Ledger: b.ledger}, b.world.Destination(), nil)
		if _, err := dying.Do(t.Context(), order("A-9", intent.Create)); err == nil {
			t.Fatal("it should have died after its send")
		}
		ids := []ledger.ID{ledger.IDOf(order("A-9", intent.Create).StructuralKey())}
		time.Sleep(5 * time.Minute)
		for n := range 3 {
			ids = append(ids, b.enqueue(order(fmt.Sprint("A-", n), intent.Create)))
		}
		calls := len(b.world.Calls())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := b.engineOn(lastClaim{b.ledger, cancel}, b.world.Destination(), nil)
		began := time.Now()
		if err := e.Work(ctx, nil); err != nil || time.Since(began) > time.Second || len(b.world.Calls()) != calls {
			t.Errorf("%v after %s and %d calls; want nothing begun", err, time.Since(began), len(b.world.Calls())-calls)
		}
		for n, id := range ids {
			got := b.state(id)
			if got.Owner != "" || got.Due.After(time.Now()) || (n > 0) != (got.State == ledger.Queued) || (n == 0) != got.Unknown {
				t.Errorf("%s in the hands of %q, due %s%s", got.Phase(), got.Owner, got.Due, b.life(id))
			}
		}
	})
}
