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

// engineOn returns an engine with another connector or ledger.
func (b *bench) engineOn(l ledger.Ledger, d connectors.Destination, opts *engine.Options) *engine.Engine {
	b.t.Helper()
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		b.t.Fatal(err)
	}
	e := engine.New(l, &reg, opts)
	b.t.Cleanup(e.Close)
	return e
}

func call(w intent.WriteIntent, n int) intent.WriteIntent { w.Call = n; return w }

// The caller got "not applied" and called again; then the first send arrives after all, beside
// the second.
func TestLateArrivalBesideASecondCallIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{Budget: 1})
		b.set(orders.Fault{Kind: orders.LateCommit, Delay: 10 * time.Minute, Times: 1})
		first := b.do(order("A-1", intent.Create))
		if first.Status != ledger.NotApplied {
			t.Fatalf("%+v%s", first, b.life(first.ID))
		}
		second := b.do(call(order("A-1", intent.Create), 1))
		b.work(100 * time.Hour)
		got, other := b.state(first.ID), b.state(second.ID)
		if len(b.world.Records("A-1")) != 2 {
			t.Fatal("setup")
		}
		if got.State != ledger.Review && other.State != ledger.Review {
			t.Errorf("duplicate unreported: first %s, second %s%s%s", got.Phase(), other.Phase(), b.life(first.ID), b.life(second.ID))
		}
	})
}

// The caller got "not applied" and may have acted on it: a later read of a late effect does not
// close that by itself.
func TestAContradictedWriteStaysInReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), &engine.Options{Budget: 1})
		b.set(orders.Fault{Kind: orders.LateCommit, Delay: 5 * time.Minute, Times: 1})
		first := b.do(order("A-1", intent.Create))
		if first.Status != ledger.NotApplied {
			t.Fatalf("%+v%s", first, b.life(first.ID))
		}
		b.work(100 * time.Hour)
		if got := b.state(first.ID); got.State != ledger.Review {
			t.Errorf("%s%s", got.Phase(), b.life(first.ID))
		}
	})
}

func TestReadsThatMustAgreeDoSoAlsoLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Lagging.Options()
		o.Lags = []time.Duration{20 * time.Second}
		o.Settle = connectors.Within(20 * time.Second)
		o.ConfirmReads = 2
		b := newBench(t, o, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		out, err := b.engine.Do(ctx, order("A-1", intent.Create))
		if err != nil || out.Status != ledger.Verified {
			t.Errorf("%+v, %v%s", out, err, b.life(out.ID)[:2000])
		}
	})
}

func TestReadsThatMustAgreeSettleReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Horizon = connectors.Bound{}
		o.ConfirmReads = 2
		b := newBench(t, o, nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		if _, err := b.world.Seed(asStored("A-1"), order("A-1", intent.Create).Stamp()); err != nil {
			t.Fatal(err)
		}
		b.work(100 * time.Hour)
		if got := b.state(out.ID); got.Settlement != ledger.Verified {
			t.Errorf("%s", got.Phase())
		}
	})
}

// unsure commits and reports that it does not know.
type unsure struct {
	ledger.Ledger
	mu      sync.Mutex
	reserve int // how many reservations are answered so
}

func (u *unsure) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	rec, fresh, err := u.Ledger.Reserve(ctx, r)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reserve--; u.reserve >= 0 && err == nil {
		return ledger.Record{}, false, errors.Join(ledger.ErrUnavailable, ledger.ErrUnsure)
	}
	return rec, fresh, err
}

func TestUnsureReservationIsNotCalledNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		e := b.engineOn(&unsure{Ledger: b.ledger, reserve: 1}, b.world.Destination(), nil)
		_, err := e.Do(t.Context(), order("A-1", intent.Create))
		b.work(time.Hour)
		var known *engine.Error
		if n := len(b.world.Records("A-1")); !errors.As(err, &known) || known.Known == engine.KnownNotApplied && n > 0 {
			t.Errorf("error %v, and %d records", err, n)
		}
	})
}

// down is a ledger that records nothing, and may not be readable either.
type down struct {
	ledger.Ledger
	unreadable bool
}

var errDown = errors.Join(ledger.ErrUnavailable, errors.New("connection refused"))

func (d down) Reserve(context.Context, ledger.Reservation) (ledger.Record, bool, error) {
	return ledger.Record{}, false, errDown
}

func (d down) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if d.unreadable {
		return ledger.Record{}, errDown
	}
	return d.Ledger.Get(ctx, tenant, id)
}

func (d down) QueueStats(context.Context) (ledger.QueueStats, error) {
	return ledger.QueueStats{}, errDown
}

// Only a ledger that does not hold the write can prove that nothing was sent: an earlier call,
// of this process or another one, may have caused a send.
func TestAnUnreachableLedger(t *testing.T) {
	for name, c := range map[string]struct {
		sent, unreadable bool
		want             string
	}{
		"a first call, which finds nothing": {false, false, engine.KnownNotApplied},
		"a first call, which cannot read":   {false, true, engine.KnownNothing},
		"a repeat, which finds the first":   {true, false, engine.KnownNothing},
		"a repeat, which cannot read":       {true, true, engine.KnownNothing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				w := order("A-1", intent.Create)
				if c.sent {
					b.do(w)
				}
				for how, ask := range map[string]func(e *engine.Engine) error{
					"Do":      func(e *engine.Engine) error { _, err := e.Do(t.Context(), w); return err },
					"Enqueue": func(e *engine.Engine) error { _, err := e.Enqueue(t.Context(), w); return err },
				} {
					if how == "Enqueue" && c.sent && !c.unreadable {
						continue // it was recorded, and nothing else was requested
					}
					err := ask(b.engineOn(down{b.ledger, c.unreadable}, b.world.Destination(), nil))
					var known *engine.Error
					if !errors.As(err, &known) || known.Known != c.want || !errors.Is(err, ledger.ErrUnavailable) {
						t.Errorf("%s: error %v; want %s", how, err, c.want)
					}
				}
			})
		})
	}
}

func TestQueuedWriteIsNotCalledNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 2})
		e := b.engineOn(&breaking{Ledger: b.ledger}, b.world.Destination(), nil)
		_, err := e.Do(t.Context(), order("A-1", intent.Create))
		b.work(time.Hour)
		var known *engine.Error
		if n := len(b.world.Records("A-1")); !errors.As(err, &known) || known.Known == engine.KnownNotApplied && n > 0 {
			t.Errorf("error %v, and %d records", err, n)
		}
	})
}

func TestRetryBesideAnothersRecordIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Stamps = false
		b := newBench(t, o, nil)
		if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, ""); err != nil {
			t.Fatal(err)
		}
		out := b.do(order("A-1", intent.Create))
		if out.Status != ledger.StatusReview {
			t.Fatalf("%+v", out)
		}
		got, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, By: "ada", Reason: "again"})
		if n := len(b.world.Records("A-1")); n != 1 {
			t.Errorf("%s, %v: %d records under the key%s", got.Status, err, n, b.life(out.ID))
		}
	})
}

func TestRetryWhenAnothersRecordIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		seeded, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "note": "theirs"}, "")
		if err != nil {
			t.Fatal(err)
		}
		out := b.do(order("A-1", intent.Create))
		if err := b.world.Remove(seeded.ID); err != nil {
			t.Fatal(err)
		}
		got, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, By: "ada", Reason: "it is out of the way"})
		if err != nil || got.Status != ledger.Verified {
			t.Errorf("%s %s %v%s", got.Status, got.Mismatches, err, b.life(out.ID))
		}
	})
}

// stuck never answers the writes of slow steps before its time is up.
type stuck struct{ connectors.Connector }

func (s stuck) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if strings.Contains(r.Intent.Step, "slow") {
		<-ctx.Done()
	}
	return s.Connector.Write(ctx, r)
}

func TestSlowWriteHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.SendTimeout = 10 * time.Minute
		b := newBench(t, o, nil)
		held := func(id string) ledger.ID {
			w := order(id, intent.Create)
			w.Risk = intent.RiskApprove
			out := b.do(w)
			return out.ID
		}
		slow, quick := held("slow"), held("quick")
		d := b.world.Destination()
		d.Connector = stuck{d.Connector}
		approve := func(id ledger.ID) { // approved by a process that dies at once
			rec := b.state(id)
			claimed, err := b.ledger.Claim(t.Context(), ledger.Claim{Owner: "x", LeaseFor: time.Millisecond, Tenant: rec.Tenant, ID: id, Early: true})
			if err != nil || len(claimed) != 1 {
				t.Fatal(err)
			}
			if _, err := b.ledger.Append(t.Context(), id, claimed[0].Fence, ledger.Event{Kind: ledger.EvApproved, By: "ada", Reason: "x"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		e := b.engineOn(b.ledger, d, nil)
		approve(slow)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = runWorker(ctx, e, nil) }()
		time.Sleep(2 * time.Second)
		approve(quick)
		time.Sleep(time.Minute)
		if got := b.state(quick); got.State != ledger.Settled {
			t.Errorf("%s after a minute: it waits for another write's send", got.Phase())
		}
		cancel()
		time.Sleep(time.Hour)
	})
}

// boastful answers with names that are too long to store.
type boastful struct{ connectors.Connector }

func (b boastful) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := b.Connector.Write(ctx, r)
	receipt.Ref, receipt.URL, receipt.Code = strings.Repeat("r", 1<<20), strings.Repeat("u", 1<<20), strings.Repeat("2", 1<<20)
	return receipt, err
}

func TestWhatADestinationSaysIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		d.Connector = boastful{d.Connector}
		out, err := b.engineOn(b.ledger, d, nil).Do(t.Context(), order("A-1", intent.Create))
		if err != nil || out.Status != ledger.Verified || out.Ref != b.world.Records("A-1")[0].ID {
			t.Errorf("%s, ref %.40q, %v", out.Status, out.Ref, err)
		}
		events, err := b.ledger.Events(t.Context(), "acme", out.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if n := len(e.Ref) + len(e.URL) + len(e.Code); n > 1<<16 {
				t.Errorf("%s keeps %d bytes of names", e.Kind, n)
			}
		}
	})
}

func TestLongHorizonLeavesFewEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Horizon = connectors.Within(24 * time.Hour)
		b := newBench(t, o, nil)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		events, err := b.ledger.Events(t.Context(), "acme", out.ID)
		if err != nil || out.Status != ledger.Verified || out.Sends != 2 || len(events) > 500 {
			t.Errorf("%s after %d sends, %d events, %v", out.Status, out.Sends, len(events), err)
		}
	})
}

// A process that does not know a destination leaves its writes to those that do: a decision that it cannot
// carry out takes no lease.
func TestADecisionWhereTheDestinationIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		id := b.enqueue(w)
		b.work(0)
		before := b.state(id)
		other := engine.New(b.ledger, &connectors.Registry{}, nil)
		defer other.Close()
		_, err := other.Resolve(t.Context(), before.Tenant, id, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "the invoice is right"})
		if after := b.state(id); !errors.Is(err, connectors.ErrUnknownDestination) || after.Fence != before.Fence || after.Seq != before.Seq {
			t.Errorf("error %v, fence %d and %d, events %d and %d; want that nothing changed", err, before.Fence, after.Fence, before.Seq, after.Seq)
		}
		b.resolve(id, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "the invoice is right"})
	})
}
