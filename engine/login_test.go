package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// expired is a connector whose credentials the destination refuses.
type expired struct {
	connectors.Connector
	sends, reads atomic.Bool
	refused      atomic.Int64
}

// refuse takes a moment, in which other calls can begin.
func (e *expired) refuse() error {
	time.Sleep(100 * time.Millisecond)
	e.refused.Add(1)
	return connectors.LoginRefused("401", errors.New("the destination answered 401 Unauthorized"))
}

func (e *expired) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if e.sends.Load() {
		return connectors.Receipt{}, e.refuse()
	}
	return e.Connector.Write(ctx, r)
}

func (e *expired) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if e.reads.Load() {
		return connectors.Observation{}, e.refuse()
	}
	return e.Connector.Read(ctx, q)
}

// A destination whose credentials are refused, by a send or by a read, fetches them again:
// rotated credentials need no restart.
func TestARefusedLoginFetchesCredentialsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		class        orders.Class
		sends, reads bool
	}{
		"a send":                {orders.Unique, true, false},
		"a read before it":      {orders.Plain, false, true},
		"a read after the send": {orders.Unique, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				d := b.world.Destination()
				conn := &expired{Connector: d.Connector}
				d.Connector, d.LoginRefused = conn, func() { conn.sends.Store(false); conn.reads.Store(false) }
				b.engine = b.engineOn(b.ledger, d, &engine.Options{})
				conn.sends.Store(c.sends)
				conn.reads.Store(c.reads)
				id := b.enqueue(order("A-1", intent.Create))
				b.work(time.Hour)
				if rec := b.state(id); rec.Settlement != ledger.Verified || conn.refused.Load() != 1 {
					t.Errorf("%s after %d refusals; want it verified after one%s", rec.Phase(), conn.refused.Load(), b.life(id))
				}
			})
		})
	}
}

// expiring lets the login of the destination expire as the test requires, with or without
// guards.
func (b *bench) expiring(opts engine.Options, guarded bool) *expired {
	b.t.Helper()
	d := b.world.Destination()
	conn := &expired{Connector: d.Connector}
	d.Connector = conn
	if guarded {
		var reg connectors.Registry
		if err := reg.Register("orders", d); err != nil {
			b.t.Fatal(err)
		}
		g := guards.New(b.ledger, &reg, nil)
		b.t.Cleanup(func() { _ = g.Close() })
		opts.Guards = g
	}
	b.engine = b.engineOn(b.ledger, d, &opts)
	return conn
}

// A refused login concerns the destination and not the write: for a day and a half every write
// waits, with few attempts, and all are sent once the login works.
func TestARefusedLoginHoldsTheQueue(t *testing.T) {
	const writes = 20
	hours := int64(36 / need.OneIn(6))
	for name, c := range map[string]struct {
		class        orders.Class
		sends, reads bool
		guarded      bool
		most         int64 // refused calls
	}{
		"sends":                        {orders.Unique, true, false, true, hours*12 + 40},
		"reads before the send":        {orders.Plain, false, true, true, hours*12 + 40},
		"both":                         {orders.Plain, true, true, true, hours*12 + 40},
		"sends, without guards":        {orders.Unique, true, false, false, writes * (hours*12 + 40)},
		"reads before, without guards": {orders.Plain, false, true, false, writes * (hours*12 + 40)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				conn := b.expiring(engine.Options{}, c.guarded)
				conn.sends.Store(c.sends)
				conn.reads.Store(c.reads)
				var ids []ledger.ID
				for n := range writes {
					ids = append(ids, b.enqueue(order(fmt.Sprint("A-", n), intent.Create)))
				}
				b.work(time.Duration(hours) * time.Hour)
				for _, id := range ids {
					if rec := b.state(id); rec.State == ledger.Settled || rec.State == ledger.Review || rec.Sends != rec.Unsent {
						t.Fatalf("%s, %d sends of which %d unsent; want it to wait and its budget untouched%s", rec.Phase(), rec.Sends, rec.Unsent, b.life(id))
					}
				}
				if n := conn.refused.Load(); n > c.most {
					t.Errorf("%d calls met the refused login, want at most %d: one probe at a time", n, c.most)
				}
				conn.sends.Store(false)
				conn.reads.Store(false)
				b.work(12 * time.Minute)
				for _, id := range ids {
					if rec := b.state(id); rec.Settlement != ledger.Verified {
						t.Errorf("the login works again and %s%s", rec.Phase(), b.life(id))
					}
				}
				if n := len(b.world.Effects()); n != writes {
					t.Errorf("%d effects, want %d", n, writes)
				}
			})
		})
	}
}

// The login is refused when a lost send is read back. The write waits, the destination is held,
// and both continue when the login works again.
func TestALoginRefusedAtAReadAfterASendHoldsTheQueue(t *testing.T) {
	for name, kind := range map[string]orders.FaultKind{"applied": orders.LostAnswer, "not applied": orders.DroppedBefore} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				conn := b.expiring(engine.Options{}, true)
				conn.reads.Store(true)
				b.set(orders.Fault{Kind: kind, Ops: []orders.Op{orders.OpCreate}, Times: 1})
				began := time.Now()
				first := b.enqueue(order("A-1", intent.Create))
				b.work(time.Minute)
				second := b.enqueue(order("A-2", intent.Create))
				b.work(12 * time.Hour)
				if out := engine.OutcomeOf(b.state(first)); out.Status != ledger.InProgress || out.WaitsFor != engine.WaitsLogin || out.Sends != 1 {
					t.Errorf("%+v%s", out, b.life(first))
				}
				if out := engine.OutcomeOf(b.state(second)); out.Status != ledger.InProgress || out.WaitsFor != engine.WaitsLogin {
					t.Errorf("%+v%s", out, b.life(second))
				}
				s, err := guards.Status(t.Context(), b.ledger)
				if err != nil || len(s.Destinations) != 1 || s.Destinations[0].Breaker.Login.Sub(began).Abs() > time.Minute {
					t.Errorf("%+v, %v; want since when the login is refused", s, err)
				}
				conn.reads.Store(false)
				b.work(12 * time.Minute)
				for _, id := range []ledger.ID{first, second} {
					if rec := b.state(id); rec.Settlement != ledger.Verified {
						t.Errorf("the login works again and %s%s", rec.Phase(), b.life(id))
					}
				}
				if n := len(b.world.Effects()); n != 2 {
					t.Errorf("%d effects, want 2", n)
				}
				if s, err = guards.Status(t.Context(), b.ledger); err != nil || len(s.Destinations) != 1 || !s.Destinations[0].Breaker.Login.IsZero() {
					t.Errorf("%+v, %v; want the login to work", s, err)
				}
			})
		})
	}
}

// The deadline of an intent counts while the login is refused: its caller no
// longer wants the write.
func TestTheDeadlineCountsWhileTheLoginIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, How: "401"})
		w := order("A-1", intent.Create)
		w.Deadline = time.Now().Add(time.Hour)
		id := b.enqueue(w)
		b.work(2 * time.Hour)
		if rec := b.state(id); rec.Settlement != ledger.NotApplied {
			t.Errorf("%s, want not applied%s", rec.Phase(), b.life(id))
		}
	})
}

// noTarget is a destination whose table was mistyped.
type noTarget struct{ connectors.Connector }

func (noTarget) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{}, fmt.Errorf("%w: relation \"ordres\" does not exist (42P01)", connectors.ErrNoTarget)
}

// A mistyped table ends the write at once, with the destination's own message: nothing was
// sent, and reading again does not help.
func TestAMistypedTableEndsTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		d.Connector = noTarget{d.Connector}
		b.engine = b.engineOn(b.ledger, d, nil)
		began := time.Now()
		out := b.do(order("A-1", intent.Create))
		if took := time.Since(began); out.Status != ledger.NotApplied || out.Sends != 0 || took > time.Second ||
			!strings.Contains(out.Text, `relation "ordres" does not exist (42P01)`) {
			t.Errorf("after %s: %+v%s", took, out, b.life(out.ID))
		}
	})
}

// Without a read before the create, the destination refuses it: that ends the write as well,
// although nothing can be read there.
func TestAMistypedTableEndsACreateWithoutAPreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(), nil)
		b.set(orders.Fault{Kind: orders.Refused, How: "404"})
		d := b.world.Destination()
		d.Connector = noTarget{d.Connector}
		b.engine = b.engineOn(b.ledger, d, nil)
		began := time.Now()
		out := b.do(order("A-1", intent.Create))
		if took := time.Since(began); out.Status != ledger.NotApplied || out.Sends != 1 || took > time.Second || out.Refusal == nil {
			t.Errorf("after %s: %+v%s", took, out, b.life(out.ID))
		}
	})
}

// failing fails the next reads with 503.
type failing struct {
	*expired
	left atomic.Int64
}

func (f *failing) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if !f.reads.Load() && f.left.Add(-1) >= 0 {
		return connectors.Observation{}, errors.New("503")
	}
	return f.expired.Read(ctx, q)
}

// Reads whose login was refused do not count as failed: a 503 after them is the first, and the
// write does not go to a reviewer.
func TestRefusedLoginsUseUpNoChances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		d := b.world.Destination()
		conn := &failing{expired: &expired{Connector: d.Connector}}
		conn.reads.Store(true)
		conn.left.Store(1)
		d.Connector = conn
		b.engine = b.engineOn(b.ledger, d, nil)
		id := b.enqueue(order("A-1", intent.Create))
		b.work(12 * time.Hour)
		conn.reads.Store(false)
		b.work(5*time.Minute + 5*time.Second)
		events, err := b.ledger.Events(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == ledger.EvEscalated {
				t.Errorf("a reviewer was asked: %s", e.Reason)
			}
		}
	})
}

// The credentials expire before many answered writes are read in a batch. One read at a
// time tries the refused login: more could lock the account.
func TestRefusedReadsAfterSendsAreFew(t *testing.T) {
	const writes, hours = 20, 12
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		conn := b.expiring(*batches(time.Hour), true)
		for n := range writes {
			b.enqueue(order(fmt.Sprint("A-", n), intent.Create))
		}
		b.work(time.Minute)
		conn.reads.Store(true)
		b.work(hours * time.Hour)
		if n := conn.refused.Load(); n > hours*12+40 {
			t.Errorf("%d calls met the refused login, want at most %d: one probe at a time", n, hours*12+40)
		}
	})
}

// A read of a write in review meets a refused login and opens the breaker. The reviewer accepts
// the write, so that no read follows, and the operator renews the credentials. Writes that are
// read in a batch an hour later are sent all the same.
func TestABatchIsSentWhenTheLoginWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Rollback, o.Recheck = connectors.Bound{}, connectors.Bound{}
		b := newBench(t, o, nil)
		conn := b.expiring(*batches(time.Hour), true)
		b.set(orders.Fault{Kind: orders.PhantomSuccess, Ops: []orders.Op{orders.OpCreate}, Times: 1})
		first := b.enqueue(order("A-1", intent.Create))
		b.work(62 * time.Minute)
		if rec := b.state(first); rec.State != ledger.Review {
			t.Fatalf("setup: %s%s", rec.Phase(), b.life(first))
		}
		conn.reads.Store(true)
		b.work(70 * time.Minute)
		if _, err := b.engine.Resolve(context.Background(), "acme", first, engine.Decision{Word: engine.WordAccept, By: "ana", Reason: "seen"}); err != nil {
			t.Fatal(err)
		}
		conn.reads.Store(false)
		b.work(10 * time.Minute)
		s, err := guards.Status(t.Context(), b.ledger)
		if err != nil {
			t.Fatal(err)
		}
		if s.Destinations[0].Breaker.Login.IsZero() {
			t.Fatal("setup: the breaker is closed")
		}
		var ids []ledger.ID
		for n := range 100 {
			ids = append(ids, b.enqueue(order(fmt.Sprint("B-", n), intent.Create)))
		}
		b.work(40 * time.Minute)
		sent := 0
		for _, id := range ids {
			sent += b.state(id).Sends
		}
		if sent < 100 {
			t.Errorf("%d of 100 sent in 40 min, all answered", sent)
		}
	})
}

// The login is refused when a recheck is due, and for longer than a failed recheck is
// repeated. The recheck is made when the login works; the outcome is not withdrawn.
func TestARecheckWaitsForTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(2 * time.Hour)
		b := newBench(t, o, nil)
		conn := b.expiring(engine.Options{}, false)
		out := b.do(order("A-1", intent.Create))
		conn.reads.Store(true)
		b.work(100 * time.Hour)
		if rec := b.state(out.ID); rec.Settlement != ledger.Verified || rec.Due.IsZero() {
			t.Errorf("%s, recheck due %s; want it to wait%s", rec.Phase(), rec.Due, b.life(out.ID))
		}
		conn.reads.Store(false)
		b.work(time.Hour)
		if rec := b.state(out.ID); rec.Settlement != ledger.Verified || !rec.Due.IsZero() {
			t.Errorf("%s, recheck due %s; want none left%s", rec.Phase(), rec.Due, b.life(out.ID))
		}
	})
}
