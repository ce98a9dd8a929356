package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// gate is a scripted guard that counts.
type gate struct {
	engine.Unguarded

	mu      sync.Mutex
	holds   []engine.Hold // one for each of the next calls
	held    int
	inside  int
	became  []connectors.Fate
	twice   bool
	asked   []ledger.Record
	entered func(n int) // after the n-th permitted send
}

func (g *gate) Enter(_ context.Context, rec ledger.Record) (func(engine.Sent), *engine.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, rec)
	if len(g.holds) > 0 {
		h := g.holds[0]
		g.holds = g.holds[1:]
		g.held++
		return nil, &h
	}
	g.inside++
	if g.entered != nil {
		g.entered(g.inside)
	}
	once := false
	return func(s engine.Sent) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.twice, once = g.twice || once, true
		g.inside--
		g.became = append(g.became, s.Fate)
	}, nil
}

// check: every send has left, none left twice, and their fates are as wanted.
func (g *gate) check(t *testing.T, want ...connectors.Fate) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside != 0 || g.twice {
		t.Errorf("%d are inside, left twice: %t", g.inside, g.twice)
	}
	if diff := cmp.Diff(want, g.became); diff != "" {
		t.Errorf("what became of the sends (-want +got):\n%s", diff)
	}
}

func guarded(g engine.Guards) *engine.Options { return &engine.Options{Guards: g} }

const (
	unsent   = connectors.FateNotSent
	answered = connectors.FateAnswered
	unknown  = connectors.FateUnknown
)

func TestHappyPathWithGuardsCostsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		b := newBench(t, fresh(), guarded(g))
		out := b.do(order("A-1", intent.Create))
		writes, reads := b.world.Count()
		if commits := b.ledger.Commits(); out.Status != ledger.Verified || commits != 2 || writes != 1 || reads != 1 {
			t.Errorf("%s with %d commits, %d sends, %d reads; want verified with 2, 1, 1%s", out.Status, commits, writes, reads, b.life(out.ID))
		}
		g.check(t, answered)
	})
}

// A held send is put back, and sent when the guard permits it: the first send, and every
// repeat.
func TestHeldSendsArePutBack(t *testing.T) {
	hold := engine.Hold{Rule: "rate", Reason: "too many", For: 10 * time.Second}
	for name, c := range map[string]struct {
		class  orders.Class
		holds  int
		fault  orders.FaultKind
		became []connectors.Fate
		reads  int
		reason string
	}{
		"first":                  {orders.Unique, 3, "", []connectors.Fate{answered}, 1, "nothing of it is sent or read meanwhile"},
		"first, with pre-state":  {orders.Plain, 3, "", []connectors.Fate{answered}, 2, "the state before is read once, when it may be sent"},
		"never held":             {orders.Plain, 0, "", []connectors.Fate{answered}, 2, "nothing changes"},
		"throttled, then sent":   {orders.Unique, 0, orders.Throttled, []connectors.Fate{connectors.FateThrottled, answered}, 1, "the guard hears it"},
		"lost, then sent again":  {orders.Unique, 0, orders.DroppedBefore, []connectors.Fate{unknown, answered}, 2, "the guard hears it"},
		"unreachable, then sent": {orders.Unique, 0, orders.Unreachable, []connectors.Fate{unsent, answered}, 1, "the guard hears it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				for range c.holds {
					g.holds = append(g.holds, hold)
				}
				b := newBench(t, c.class.Options(), guarded(g))
				if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Times: 1, Ops: []orders.Op{orders.OpCreate}})
				}
				began := time.Now()
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || out.Reads != c.reads || g.held != c.holds {
					t.Errorf("%s with %d reads, held %d times; want verified, %d and %d: %s%s", out.Status, out.Reads, g.held, c.reads, c.holds, c.reason, b.life(out.ID))
				}
				if waited := time.Since(began); waited < time.Duration(c.holds)*hold.For {
					t.Errorf("sent after %s, held for %d times %s", waited, c.holds, hold.For)
				}
				g.check(t, c.became...)
			})
		})
	}
}

func TestHeldRepeatIsPutBackWhereItIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		g.entered = func(int) {
			if len(g.asked) == 1 {
				g.holds = []engine.Hold{{Rule: "stopped", Reason: "ada stopped it", For: time.Minute}}
			}
		}
		b := newBench(t, orders.Unique.Options(), guarded(g))
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		out, err := b.engine.Do(ctx, order("A-1", intent.Create))
		got := b.state(out.ID)
		if err != nil || out.Status != ledger.InProgress || got.State != ledger.Checking || got.Rule != "stopped" || got.Reason != "ada stopped it" || got.Owner != "" {
			t.Errorf("%+v, %v; %s by %q/%q of %q%s", out, err, got.Phase(), got.Rule, got.Reason, got.Owner, b.life(out.ID))
		}
		if out = b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || out.Sends != 2 {
			t.Errorf("released: %+v%s", out, b.life(out.ID))
		}
		g.check(t, unknown, answered) // the repeated question reached no guard
	})
}

// A stop may come during a long read: the guard is asked again.
func TestGuardsAreAskedAgainAfterALongRead(t *testing.T) {
	for name, c := range map[string]struct {
		took time.Duration
		want int
	}{"at once": {0, 1}, "long": {time.Second, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				d := b.world.Destination()
				d.Connector = &spy{Connector: d.Connector, read: func() { time.Sleep(c.took) }}
				g := &gate{}
				b.engine = b.engineOn(b.ledger, d, guarded(g))
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || len(g.asked) != c.want {
					t.Errorf("%s, asked %d times, want %d", out.Status, len(g.asked), c.want)
				}
				g.check(t, append(make([]connectors.Fate, 0), []connectors.Fate{unsent, answered}[2-c.want:]...)...)
			})
		})
	}
}

func TestCompensatingWritesAreGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		b := newBench(t, orders.Plain.Options(), guarded(g))
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		w := order("A-1", intent.Create)
		w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
		g.entered = func(int) {
			if len(g.asked) == 1 {
				g.holds = []engine.Hold{{Rule: "rate", Reason: "too many", For: time.Minute}, {Rule: "rate", Reason: "too many", For: time.Minute}}
			}
		}
		began := time.Now()
		out := b.do(w)
		if out.Status != ledger.Compensated || g.held != 2 || time.Since(began) < 2*time.Minute {
			t.Errorf("%s, held %d times, after %s%s", out.Status, g.held, time.Since(began), b.life(out.ID))
		}
		if last := g.asked[len(g.asked)-1]; last.Parent != out.ID {
			t.Errorf("the guard was asked about %+v, want the undoing of %s", last, out.ID)
		}
		g.check(t, answered, answered)
	})
}

// reserving is a ledger whose Reserve and appends can fail.
type reserving struct {
	ledger.Ledger
	err   error
	after error // fails after it was done
}

func (r *reserving) Reserve(ctx context.Context, res ledger.Reservation) (ledger.Record, bool, error) {
	if r.err != nil {
		return ledger.Record{}, false, r.err
	}
	rec, fresh, err := r.Ledger.Reserve(ctx, res)
	if r.after != nil {
		return ledger.Record{}, false, r.after
	}
	return rec, fresh, err
}

// A guard is notified of the fate of each permitted send, once, on every path.
func TestLeaveIsGivenBackOnEveryPath(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench, l *reserving, d *connectors.Destination)
		became  []connectors.Fate
		reason  string
	}{
		"reservation fails": {func(_ *bench, l *reserving, _ *connectors.Destination) { l.err = ledger.ErrUnavailable }, []connectors.Fate{unsent}, "nothing was announced"},
		"reservation unsure": {func(_ *bench, l *reserving, _ *connectors.Destination) {
			l.after = errors.Join(ledger.ErrUnavailable, ledger.ErrUnsure)
		}, []connectors.Fate{unsent}, "what may be announced is not sent"},
		"replayed":       {func(b *bench, _ *reserving, _ *connectors.Destination) { b.do(order("A-1", intent.Create)) }, nil, "it was sent before, and no guard is asked"},
		"behind another": {func(b *bench, _ *reserving, _ *connectors.Destination) { b.ahead("A-1") }, []connectors.Fate{unsent}, "it is queued"},
		"connector panics": {func(_ *bench, _ *reserving, d *connectors.Destination) {
			d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { panic("boom") }}
		}, []connectors.Fate{unknown}, "it is unknown"},
		"commits fail after": {func(_ *bench, l *reserving, _ *connectors.Destination) { l.Ledger = &breaking{Ledger: l.Ledger} }, []connectors.Fate{answered}, "it was sent all the same"},
		"fenced before": {func(b *bench, l *reserving, _ *connectors.Destination) {
			l.Ledger = &stalling{Ledger: l.Ledger, reserve: 4 * time.Second, lease: 2 * time.Second, then: b.takeOver}
		}, []connectors.Fate{unsent}, "another worker has it"},
		"reading panics": {func(_ *bench, _ *reserving, d *connectors.Destination) {
			d.Connector = &spy{Connector: d.Connector, read: func() { panic("boom") }}
		}, []connectors.Fate{answered}, "the send was before"},
		"the meter goes wild": {func(_ *bench, l *reserving, _ *connectors.Destination) { l.Ledger = panicking{l.Ledger} }, []connectors.Fate{unsent}, "whatever panics"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				b := newBench(t, fresh(), nil)
				l, d := &reserving{Ledger: b.ledger}, b.world.Destination()
				c.prepare(b, l, &d)
				e := b.engineOn(l, d, guarded(g))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _ = e.Do(ctx, order("A-1", intent.Create)) // the guard is what counts
				e.Close()
				if len(g.became) < len(c.became) {
					t.Errorf("%s", c.reason)
				}
				if len(c.became) == 0 && len(g.asked) > 0 {
					t.Errorf("asked %d times: %s", len(g.asked), c.reason)
				}
				g.became = g.became[:min(len(g.became), len(c.became))]
				g.check(t, c.became...)
			})
		})
	}
}

type panicking struct{ ledger.Ledger }

func (panicking) Reserve(context.Context, ledger.Reservation) (ledger.Record, bool, error) {
	panic("boom")
}

// ahead adds another open write at the head of an order's queue.
func (b *bench) ahead(id string) ledger.ID {
	b.t.Helper()
	w := order(id, intent.Upsert)
	w.Workflow = "wf-ahead"
	rec, err := ledger.NewRecord(w)
	if err != nil {
		b.t.Fatal(err)
	}
	if rec, _, err = b.ledger.Reserve(b.t.Context(), ledger.Reservation{Record: rec}); err != nil || rec.QueuedBehind != "" {
		b.t.Fatalf("%+v, %v", rec, err)
	}
	return rec.ID
}

// A write of a stopped destination waits, whichever worker takes it up, and its events stay
// few.
func TestWhatIsStoppedLeavesFewEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), guarded(&closedGate{}))
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		id, err := b.engine.Enqueue(t.Context(), order("A-1", intent.Create))
		if err != nil {
			t.Fatal(err)
		}
		b.work(24 * time.Hour)
		got := b.state(id)
		if got.State != ledger.Queued || got.Sends != 0 || got.Seq > 3 {
			t.Errorf("%s with %d sends and %d events%s", got.Phase(), got.Sends, got.Seq, b.life(id))
		}
		if !strings.Contains(got.Phase(), "queued") {
			t.Errorf("%s", got.Phase())
		}
	})
}

// closedGate holds everything.
type closedGate struct{ engine.Unguarded }

func (closedGate) Enter(context.Context, ledger.Record) (func(engine.Sent), *engine.Hold) {
	return nil, &engine.Hold{Rule: "stopped", Reason: "all is stopped"}
}
func (closedGate) Paused() []string { return []string{"orders"} }

// fullGate permits every send and holds the reads that no leave of a send covers.
type fullGate struct {
	gate
	full  bool
	reads int // in progress
	asked []ledger.State
}

func (g *fullGate) EnterRead(_ context.Context, rec ledger.Record) (func(engine.Sent), *engine.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, rec.State)
	if g.full {
		return nil, &engine.Hold{Rule: "busy", Reason: "as many calls as may be are under way", For: 10 * time.Second}
	}
	g.reads++
	return func(engine.Sent) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reads--
	}, nil
}

func (g *fullGate) fill(full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.full = full
}

func (*fullGate) Confirmed(ledger.Record)             {}
func (*fullGate) LoginRefused(ledger.Record, string)  {}
func (*fullGate) LoginAccepted(ledger.Record)         {}
func (*fullGate) ReadHeld(ledger.Record) *engine.Hold { return nil }

// A read without a free call is made later, and has no effect: it is not a failed read, and
// changes nothing that is known of the write.
func TestReadsThatAreHeldAreMadeLater(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(b *bench, g *fullGate) ledger.ID
		state ledger.State
		waits engine.Waiting
		end   ledger.Status
	}{
		"after the send": {func(b *bench, g *fullGate) ledger.ID {
			g.fill(true)
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
			defer cancel()
			out, err := b.engine.Do(ctx, order("A-1", intent.Create))
			if err != nil {
				b.t.Fatal(err)
			}
			return out.ID
		}, ledger.Checking, engine.WaitsBusy, ledger.Verified},
		"a recheck": {func(b *bench, g *fullGate) ledger.ID {
			out := b.do(order("A-1", intent.Create))
			time.Sleep(time.Hour)
			g.fill(true)
			return out.ID
		}, ledger.Settled, "", ledger.Verified},
		"in review": {func(b *bench, g *fullGate) ledger.ID {
			b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
			out := b.do(order("A-1", intent.Create))
			g.fill(true)
			return out.ID
		}, ledger.Review, "", ledger.StatusReview},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &fullGate{}
				o := orders.Plain.Options()
				o.Recheck = connectors.Within(time.Hour)
				b := newBench(t, o, guarded(g))
				id := c.begin(b, g)
				before := b.state(id)
				b.work(2*time.Minute + 5*time.Second) // ends between two reads: a read that begins while the worker closes is put off for that
				got := b.state(id)
				asked := len(g.asked)
				if got.State != c.state || got.Reads != before.Reads || got.Reason != before.Reason || got.Rule != before.Rule || got.Unproven != before.Unproven || asked < 3 || g.asked[asked-1] != c.state {
					t.Errorf("%s after %d reads, by %q/%q; it was %s after %d, by %q/%q; %d times asked%s", got.Phase(), got.Reads, got.Rule, got.Reason,
						before.Phase(), before.Reads, before.Rule, before.Reason, asked, b.life(id))
				}
				if out := engine.OutcomeOf(got); out.WaitsFor != c.waits {
					t.Errorf("it waits for %q, want %q", out.WaitsFor, c.waits)
				}
				g.fill(false)
				b.work(5 * time.Minute)
				if got = b.state(id); got.Status() != c.end || got.Reads <= before.Reads || g.reads != 0 {
					t.Errorf("%s after %d reads, %d under way; want %s after another%s", got.Phase(), got.Reads, g.reads, c.end, b.life(id))
				}
			})
		})
	}
}
