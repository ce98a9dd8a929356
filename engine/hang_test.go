package engine_test

import (
	"context"
	"errors"
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

// hanging is a destination that answers no send or no read until it is released, or the call is
// ended.
type hanging struct {
	connectors.Connector
	sends, reads chan struct{} // closed: they are answered
	sent, read   func()        // each send, and each read, calls it first
	ended        chan struct{} // gets a value with each ended send
}

func (h *hanging) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if h.sent != nil {
		h.sent()
	}
	select {
	case <-h.sends:
	case <-ctx.Done():
		h.ended <- struct{}{}
		return connectors.Receipt{}, ctx.Err()
	}
	return h.Connector.Write(ctx, r)
}

func (h *hanging) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if h.read != nil {
		h.read()
	}
	select {
	case <-h.reads:
	case <-ctx.Done():
		return connectors.Observation{}, ctx.Err()
	}
	return h.Connector.Read(ctx, q)
}

func (h *hanging) Prepare(ctx context.Context, _ connectors.Request) ([]byte, error) {
	select {
	case <-h.reads:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return []byte("built"), nil
}

// unprepared is a connector without Prepare.
type unprepared struct{ connectors.Connector }

// hang has the bench's destination hang in sends or reads, and returns its profile too: a send
// may take two minutes, a read one.
func (b *bench) hang(sends, reads bool) (*hanging, connectors.Destination) {
	b.t.Helper()
	d := b.world.Destination()
	h := &hanging{Connector: d.Connector, sends: make(chan struct{}), reads: make(chan struct{}), ended: make(chan struct{}, 10)}
	if !sends {
		close(h.sends)
	}
	if !reads {
		close(h.reads)
	}
	d.Connector = unprepared{h}
	for kind, p := range d.Profiles {
		p.SendTimeout, p.ReadTimeout = 2*time.Minute, time.Minute
		d.Profiles[kind] = p
	}
	return h, d
}

// waitingGuard permits nothing until its time is over or the caller leaves.
type waitingGuard struct {
	engine.Unguarded
	d time.Duration
}

func (g waitingGuard) Enter(ctx context.Context, _ ledger.Record) (func(engine.Sent), *engine.Hold) {
	select {
	case <-time.After(g.d):
	case <-ctx.Done():
	}
	return nil, &engine.Hold{Rule: "busy", Reason: "as many sends as may be are under way", For: time.Second}
}

// A caller waits as long as it wants to, and not longer: whatever hangs, the response comes
// when the wait is over, and the write is recorded then.
func TestAWaitIsKeptToTheSecond(t *testing.T) {
	type set struct {
		destination func(b *bench) connectors.Destination
		opts        engine.Options
		before      func(b *bench)
		same        bool // the write is recorded before
	}
	hangs := func(sends, reads bool) func(b *bench) connectors.Destination {
		return func(b *bench) connectors.Destination { _, d := b.hang(sends, reads); return d }
	}
	for name, c := range map[string]set{
		"the send hangs":     {destination: hangs(true, false)},
		"the pre-state read": {destination: hangs(false, true)},
		"what builds it hangs": {destination: func(b *bench) connectors.Destination {
			h, d := b.hang(false, true)
			d.Connector = h
			return d
		}},
		"the read after the send": {destination: func(b *bench) connectors.Destination {
			h, d := b.hang(false, false)
			h.sent = func() { h.reads = make(chan struct{}) }
			return d
		}},
		"a guard waits": {opts: engine.Options{Guards: waitingGuard{d: time.Minute}}},
		"another writes the record": {destination: hangs(true, false), before: func(b *bench) {
			if _, err := b.engine.Do(b.unwaiting(), call(order("A-1", intent.Create), 7)); err != nil {
				b.t.Fatal(err)
			}
			synctest.Wait()
		}},
		"another process has it": {same: true, before: func(b *bench) {
			_, d := b.hang(true, false)
			e := b.engineOn(b.ledger, d, nil)
			if _, err := e.Do(b.unwaiting(), order("A-1", intent.Create)); err != nil {
				b.t.Fatal(err)
			}
			synctest.Wait()
		}},
	} {
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			for _, worked := range []bool{false, true} {
				t.Run(name+"/"+wait.String()+map[bool]string{true: ", with workers"}[worked], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t, orders.Plain.Options(), nil)
						d := b.world.Destination()
						if c.destination != nil {
							d = c.destination(b)
						}
						opts := c.opts
						b.engine = b.engineOn(b.ledger, d, &opts)
						if worked {
							b.working()
						}
						if c.before != nil {
							c.before(b)
						}
						for _, how := range []string{"asked", "asked again", "read"} {
							if how == "read" && wait == 0 {
								continue // that is the ledger's response
							}
							ctx, cancel := context.WithTimeout(t.Context(), wait)
							began := time.Now()
							out, err := engine.Outcome{}, error(nil)
							if how == "read" {
								out, err = b.engine.Wait(ctx, "acme", ledger.IDOf(order("A-1", intent.Create).StructuralKey()), true)
							} else {
								out, err = b.engine.Do(ctx, order("A-1", intent.Create))
							}
							cancel()
							if took := time.Since(began); err != nil || out.Status != ledger.InProgress || took != wait {
								t.Fatalf("%s: %s, %v after %s; want in progress after %s", how, out.Status, err, took, wait)
							}
							if got := b.state(out.ID); out.Replayed != (c.same || how != "asked") || got.ID != out.ID {
								t.Errorf("%s: replayed %t; %s", how, out.Replayed, got.Phase())
							}
						}
					})
				})
			}
		}
	}
}

// unwaiting returns the context of a caller that does not wait.
func (b *bench) unwaiting() context.Context {
	ctx, cancel := context.WithCancel(b.t.Context())
	cancel()
	return ctx
}

// working runs a worker until the test ends.
func (b *bench) working() {
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.engine.Work(ctx, nil) }) // it returns nil
	b.t.Cleanup(func() { cancel(); wg.Wait() })
	synctest.Wait()
}

// A reviewer waits no longer than they want to for the effect of a decision.
func TestADecisionIsAnsweredWhileTheSendHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		_, d := b.hang(false, true)
		b.engine = b.engineOn(b.ledger, d, nil)
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		held := b.do(w)
		for _, wait := range []time.Duration{2 * time.Second, 0} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			began := time.Now()
			out, err := engine.Outcome{}, error(nil)
			if wait > 0 {
				out, err = b.engine.Resolve(ctx, "acme", held.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "fine"})
			} else {
				out, err = b.engine.Do(ctx, w)
			}
			cancel()
			if took := time.Since(began); err != nil || out.Status != ledger.InProgress || took != wait {
				t.Errorf("%+v, %v after %s; want in progress after %s", out, err, took, wait)
			}
		}
	})
}

// A caller that leaves while its send hangs frees its place: others are served, the send is not
// cut off, and a worker settles the write by its real result.
func TestACallerThatLeftHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		h, d := b.hang(true, false)
		var sends atomic.Int32
		h.sent = func() { sends.Add(1) }
		b.engine = b.engineOn(b.ledger, d, &engine.Options{MaxInFlight: 1})
		b.working()
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var out engine.Outcome
		wg.Go(func() {
			var err error
			if out, err = b.engine.Do(ctx, order("A-1", intent.Create)); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		if _, err := b.engine.Do(t.Context(), order("A-2", intent.Create)); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v while the caller waits, want %v", err, ledger.ErrFull)
		}
		leave()
		wg.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if next, err := b.engine.Do(short, order("A-2", intent.Create)); err != nil || next.Status != ledger.InProgress {
			t.Errorf("after it left: %s, %v; want the next caller's write recorded", next.Status, err)
		}
		time.Sleep(30 * time.Second)
		close(h.sends)
		time.Sleep(time.Minute)
		if got := b.state(out.ID); got.Settlement != ledger.Verified || got.Sends != 1 || sends.Load() != 2 || len(h.ended) != 0 || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s after %d sends, %d in all, %d were cut, records %v; want verified after its one send%s",
				got.Phase(), got.Sends, sends.Load(), len(h.ended), b.world.Records("A-1"), b.life(out.ID))
		}
	})
}

// A write of which nothing has been sent, and whose caller left, waits in the queue and in no
// goroutine: a worker of any process continues it.
func TestAWriteWhoseCallerLeftContinuesFromTheQueue(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				h, d := b.hang(false, true)
				var reads atomic.Int32
				h.read = func() { reads.Add(1) }
				b.engine = b.engineOn(b.ledger, d, nil)
				busy, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = b.engine.Work(busy, &engine.WorkOptions{Parallel: 1, Grace: 5 * time.Minute}) }) // it returns nil
				synctest.Wait()                                                                                     // it works
				if _, err := b.engine.Do(b.unwaiting(), order("A-0", intent.Create)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // the worker has it, and hangs in its read
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				out, err := b.engine.Do(ctx, order("A-1", intent.Create))
				want := int32(1) // the worker's
				if wait > 0 {
					want = 2
				}
				if got := b.state(out.ID); err != nil || got.State != ledger.Queued || got.Owner != "" || reads.Load() != want {
					t.Errorf("%v; %s by %q after %d reads, want queued and without owner after %d%s", err, got.Phase(), got.Owner, reads.Load(), want, b.life(out.ID))
				}
				elsewhere := b.newEngine(nil)
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := elsewhere.Work(ctx, nil); err != nil {
					t.Fatal(err)
				}
				if got := b.state(out.ID); got.Settlement != ledger.Verified || got.Sends != 1 {
					t.Errorf("%s%s", got.Phase(), b.life(out.ID))
				}
				end()
				wg.Wait()
			})
		})
	}
}

// Callers that do not wait fill the queue of their destination, and no more than that.
func TestCallersThatDoNotWaitAreRefusedWhenTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.engine = b.engineOn(b.ledger, b.world.Destination(), &engine.Options{MaxQueued: 2, Guards: closedGate{}})
		b.working()
		for n, id := range []string{"A-0", "A-1", "A-2", "A-0"} {
			out, err := b.engine.Do(b.unwaiting(), order(id, intent.Create))
			if full := n == 2; errors.Is(err, ledger.ErrFull) != full || !full && (err != nil || out.Status != ledger.InProgress || out.Replayed != (n == 3)) {
				t.Errorf("write %d: %+v, %v; want two recorded, one refused, and the outcome of the first again", n, out, err)
			}
		}
	})
}

// A caller that does not wait has its write recorded, in one commit, without a read: it takes
// no lease from the workers, and leaves no event in the write's lifecycle.
func TestACallerThatDoesNotWaitOnlyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.engine = b.engineOn(b.ledger, b.world.Destination(), &engine.Options{Guards: closedGate{}})
		b.working()
		before := b.ledger.Commits()
		out, err := b.engine.Do(b.unwaiting(), order("A-1", intent.Create))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := b.engine.Do(b.unwaiting(), order("A-1", intent.Create)); err != nil {
				t.Error(err)
			}
			if _, err := b.engine.Wait(b.unwaiting(), "acme", out.ID, true); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := b.ledger.Commits() - before; n != 1 {
			t.Errorf("%d commits, want one%s", n, b.life(out.ID))
		}
	})
}

// No more work is begun for callers that have left, and no pause is waited out: the write waits
// in the ledger.
func TestAWriteWhoseCallerLeftPausesInTheLedger(t *testing.T) {
	for _, how := range []string{"asked", "read"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Lagging.Options()
				b := newBench(t, o, nil)
				b.set(orders.Fault{Kind: orders.LaggingRead, Delay: 5 * time.Minute})
				h, d := b.hang(true, false)
				b.engine = b.engineOn(b.ledger, d, &engine.Options{Patience: time.Minute})
				busy, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = b.engine.Work(busy, &engine.WorkOptions{Parallel: 1}) }) // it returns nil
				synctest.Wait()
				b.enqueue(order("A-0", intent.Create))
				time.Sleep(time.Minute / 2) // the worker has it, and hangs in its send
				synctest.Wait()
				h.sends = make(chan struct{})
				close(h.sends)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var out engine.Outcome
				var err error
				if how == "asked" {
					out, err = b.engine.Do(ctx, order("A-1", intent.Create))
				} else {
					out, err = b.engine.Wait(ctx, "acme", b.enqueue(order("A-1", intent.Create)), true)
				}
				synctest.Wait()
				if got := b.state(out.ID); err != nil || got.State != ledger.Checking || got.Owner != "" || got.Sends != 1 {
					t.Errorf("%v; %s by %q, want it checked, and without owner until a worker takes it%s", err, got.Phase(), got.Owner, b.life(out.ID))
				}
				end()
				wg.Wait()
			})
		})
	}
}
