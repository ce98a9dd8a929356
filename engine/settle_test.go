package engine_test

import (
	"context"
	"errors"
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

// undecidable is a destination of which nothing can be concluded: it declares no horizon, and
// the response is lost before anything is applied.
func undecidable(t *testing.T) (*bench, engine.Outcome) {
	o := orders.Plain.Options()
	o.Horizon = connectors.Bound{}
	b := newBench(t, o, nil)
	b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
	out := b.do(order("A-1", intent.Create))
	if out.Status != ledger.StatusReview {
		t.Fatalf("%+v, want review%s", out, b.life(out.ID))
	}
	return b, out
}

func TestReviewerDecides(t *testing.T) {
	cases := map[string]struct {
		decision engine.Decision
		want     ledger.Status
		records  int
		reason   string
	}{
		"accept":  {engine.Decision{Word: engine.WordAccept}, ledger.Accepted, 0, "a reviewer takes responsibility"},
		"abandon": {engine.Decision{Word: engine.WordAbandon}, ledger.Abandoned, 0, "a reviewer gives it up"},
		"retry":   {engine.Decision{Word: engine.WordRetry}, ledger.StatusReview, 0, "the table does not allow a repeat, also by a reviewer"},
		"force":   {engine.Decision{Word: engine.WordRetry, Force: true}, ledger.Verified, 1, "a reviewer vouches that it is not there"},
		"undo":    {engine.Decision{Word: engine.WordCompensate}, ledger.StatusReview, 0, "there is nothing to undo, and the intent does not say it may be"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, out := undecidable(t)
				c.decision.By, c.decision.Reason = "ada", "checked the order system"
				got, err := b.engine.Resolve(t.Context(), "acme", out.ID, c.decision)
				if err != nil || got.Status != c.want {
					t.Errorf("%+v, %v; want %s: %s%s", got, err, c.want, c.reason, b.life(out.ID))
				}
				if n := len(b.world.Records("A-1")); n != c.records {
					t.Errorf("%d records, want %d: %s", n, c.records, c.reason)
				}
			})
		})
	}
}

func TestForcedRetryReadsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := undecidable(t)
		if _, err := b.world.Seed(asStored("A-1"), order("A-1", intent.Create).Stamp()); err != nil {
			t.Fatal(err)
		}
		got, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, Force: true, By: "ada", Reason: "it is not there"})
		if err != nil || got.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%+v, %v with %d records; the reviewer was wrong and the read says so%s", got, err, len(b.world.Records("A-1")), b.life(out.ID))
		}
	})
}

func TestDecisionsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := undecidable(t)
		before, _ := b.ledger.Events(t.Context(), "acme", out.ID)
		for name, c := range map[string]struct {
			tenant string
			d      engine.Decision
			want   error
		}{
			"no name":        {"acme", engine.Decision{Word: engine.WordAccept, Reason: "x"}, nil},
			"no reason":      {"acme", engine.Decision{Word: engine.WordAccept, By: "ada"}, nil},
			"unknown word":   {"acme", engine.Decision{Word: "shrug", By: "ada", Reason: "x"}, engine.ErrNotWaiting},
			"not held":       {"acme", engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "x"}, engine.ErrNotWaiting},
			"another tenant": {"evil", engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "x"}, ledger.ErrNotFound},
		} {
			_, err := b.engine.Resolve(t.Context(), c.tenant, out.ID, c.d)
			if err == nil || (c.want != nil && !errors.Is(err, c.want)) {
				t.Errorf("%s: error %v, want %v", name, err, c.want)
			}
		}
		after, _ := b.ledger.Events(t.Context(), "acme", out.ID)
		if len(after) != len(before) {
			t.Errorf("refused decisions left %d events", len(after)-len(before))
		}
	})
}

func TestLaterReadSettlesReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := undecidable(t)
		if _, err := b.world.Seed(asStored("A-1"), order("A-1", intent.Create).Stamp()); err != nil {
			t.Fatal(err)
		}
		b.work(2 * time.Hour)
		if got := b.state(out.ID); got.Settlement != ledger.Verified || got.Sends != 1 {
			t.Errorf("%s after %d sends; it landed late and a later read shows it%s", got.Phase(), got.Sends, b.life(out.ID))
		}
	})
}

// work runs a worker for a while.
func (b *bench) work(d time.Duration) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	// Days of polling every 5 s for outside changes would show nothing new.
	if err := runWorker(ctx, b.engine, &engine.WorkOptions{Idle: min(max(5*time.Second, d/2000), 30*time.Second)}); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) state(id ledger.ID) ledger.Record {
	b.t.Helper()
	rec, err := b.ledger.Get(context.Background(), "acme", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return rec
}

func TestMismatchIsUndoneWhereAsked(t *testing.T) {
	undo := func(w intent.WriteIntent) intent.WriteIntent {
		w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
		return w
	}
	cases := map[string]struct {
		write intent.WriteType
		on    orders.Fault
		also  []orders.Fault
		want  ledger.Status
	}{
		"create":                     {intent.Create, orders.Fault{}, nil, ledger.Compensated},
		"update":                     {intent.Update, orders.Fault{}, nil, ledger.Compensated},
		"create, undo's answer lost": {intent.Create, orders.Fault{}, []orders.Fault{{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpDelete}, Times: 1}}, ledger.Compensated},
		"create, undo refused":       {intent.Create, orders.Fault{}, []orders.Fault{{Kind: orders.Refused, Ops: []orders.Op{orders.OpDelete}}}, ledger.StatusReview},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				if c.write == intent.Update {
					if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR"}, ""); err != nil {
						t.Fatal(err)
					}
				}
				b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.Op(c.write)}, Field: "currency", Times: 1})
				for _, f := range c.also {
					b.set(f)
				}
				out := b.do(undo(order("A-1", c.write)))
				if out.Status != c.want {
					t.Fatalf("%+v%s", out, b.life(out.ID))
				}
				left := b.world.Records("A-1")
				switch {
				case c.want != ledger.Compensated:
				case c.write == intent.Create && len(left) != 0:
					t.Errorf("%d records left", len(left))
				case c.write == intent.Update && (len(left) != 1 || left[0].AmountCents() != 5):
					t.Errorf("not as before: %+v", left)
				}
				child := b.state(b.state(out.ID).Child)
				if child.Parent != out.ID || (c.want == ledger.Compensated) != (child.Settlement == ledger.Verified) {
					t.Errorf("the undoing is %s, parent %q", child.Phase(), child.Parent)
				}
			})
		})
	}
}

func TestMismatchGoesToReviewByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
		out := b.do(order("A-1", intent.Create))
		if out.Status != ledger.StatusReview || !strings.Contains(string(out.Mismatches), "/currency") || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%+v with mismatches %s", out, out.Mismatches)
		}
	})
}

func TestPendingRecheckDetectsLateChanges(t *testing.T) {
	recheck := connectors.Within(time.Hour)
	cases := map[string]struct {
		fault  orders.Fault
		class  orders.Class
		bound  connectors.Bound
		first  ledger.Status
		reopen bool
		reason string
	}{
		"nothing happens":      {orders.Fault{Kind: orders.LostAnswer, Times: 1}, orders.Plain, recheck, ledger.Verified, false, "the outcome stays"},
		"a duplicate appears":  {orders.Fault{Kind: orders.DuplicateByOthers, Delay: time.Minute, Times: 1}, orders.Plain, recheck, ledger.Verified, true, "two where one was declared"},
		"the effect is undone": {orders.Fault{Kind: orders.Rollback, Delay: time.Minute, Times: 1}, orders.Plain, recheck, ledger.Verified, true, "verified, and gone"},
		"a lost send lands after its horizon": {orders.Fault{Kind: orders.LateCommit, Delay: 2 * time.Minute, Times: 1}, orders.Plain, connectors.Within(0),
			ledger.Verified, true, "the repeat was allowed, and the first came after all"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := c.class.Options()
				o.Recheck = c.bound
				b := newBench(t, o, nil)
				b.set(c.fault)
				out := b.do(order("A-1", intent.Create))
				if out.Status != c.first {
					t.Fatalf("%+v%s", out, b.life(out.ID))
				}
				b.work(3 * time.Hour)
				if got := b.state(out.ID); (got.State == ledger.Review) != c.reopen {
					t.Errorf("after the recheck: %s; %s%s", got.Phase(), c.reason, b.life(out.ID))
				}
			})
		})
	}
}

// breaking is a ledger whose appends fail from one call on, as a full disk or
// a dead process makes them.
type breaking struct {
	ledger.Ledger
	mu    sync.Mutex
	after int
}

var errDisk = errors.New("no space left on device")

func (b *breaking) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	b.mu.Lock()
	b.after--
	broken := b.after < 0
	b.mu.Unlock()
	if broken {
		return ledger.Record{}, errors.Join(ledger.ErrUnavailable, errDisk)
	}
	return b.Ledger.Append(ctx, id, fence, events...)
}

func TestLedgerThatFailsAfterTheSendLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		var reg connectors.Registry
		if err := reg.Register("orders", b.world.Destination()); err != nil {
			t.Fatal(err)
		}
		first := engine.New(&breaking{Ledger: b.ledger}, &reg, nil)
		defer first.Close()
		_, err := first.Do(t.Context(), order("A-1", intent.Create))
		var known *engine.Error
		if !errors.As(err, &known) || known.Known != engine.KnownNothing || !errors.Is(err, errDisk) {
			t.Fatalf("error %v; want one that says that it is unknown, and why", err)
		}
		out, err := b.engine.Do(t.Context(), order("A-1", intent.Create))
		if writes, _ := b.world.Count(); err != nil || out.Status != ledger.Verified || writes != 1 {
			t.Errorf("after the lease: %+v, %v, %d sends%s", out, err, writes, b.life(out.ID))
		}
	})
}

// frozen is a connector whose first Write blocks before it reaches the destination, as in a
// stopped process.
type frozen struct {
	connectors.Connector
	once sync.Once
	fate time.Duration
}

func (f *frozen) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	f.once.Do(func() { time.Sleep(f.fate) })
	return f.Connector.Write(context.WithoutCancel(ctx), r)
}

func TestLateResultOfAFencedWorkerIsKeptAsEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		d := b.world.Destination()
		d.Connector = &frozen{Connector: d.Connector, fate: 10 * time.Minute}
		var reg connectors.Registry
		if err := reg.Register("orders", d); err != nil {
			t.Fatal(err)
		}
		stopped := engine.New(b.ledger, &reg, nil)
		defer stopped.Close()
		w := order("A-1", intent.Create)
		go func() { _, _ = stopped.Do(t.Context(), w) }() // its response is the other's; the evidence is what counts
		time.Sleep(5 * time.Minute)
		out := b.do(w)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if out.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%+v with %d records%s", out, len(b.world.Records("A-1")), b.life(out.ID))
		}
		if !strings.Contains(b.life(out.ID), string(ledger.EvLate)) {
			t.Errorf("no late evidence%s", b.life(out.ID))
		}
	})
}

func TestWriteWhoseDestinationIsGoneIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.Unreachable, Times: 3})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := b.engine.Do(ctx, order("A-1", intent.Create))
		if err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", out, err)
		}
		b.engine.Close()
		unregistered := engine.New(b.ledger, new(connectors.Registry), nil)
		defer unregistered.Close()
		time.Sleep(time.Minute)
		if _, err := unregistered.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.state(out.ID); got.State == ledger.Settled || got.Due.IsZero() || !strings.Contains(got.Reason, "orders") {
			t.Errorf("%s, due %v, reason %q; want it put back with the name of what is missing", got.Phase(), got.Due, got.Reason)
		}
		b.engine = b.newEngine(nil)
		b.work(time.Hour)
		if got := b.state(out.ID); got.Settlement != ledger.Verified {
			t.Errorf("with the destination registered again: %s%s", got.Phase(), b.life(out.ID))
		}
	})
}

func TestRecheckThatCannotBeMadeEndsInReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		out := b.do(order("A-1", intent.Create))
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		b.work(30 * 24 * time.Hour)
		got := b.state(out.ID)
		if got.State != ledger.Review || !strings.Contains(got.Reason, "recheck") {
			t.Errorf("%s: %s", got.Phase(), got.Reason)
		}
		if got.Seq > 300 {
			t.Errorf("%d events in a month in which nothing could be read", got.Seq)
		}
	})
}
