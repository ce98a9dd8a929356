package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

func batches(within time.Duration) *engine.Options {
	return &engine.Options{Verify: []policies.Verification{{Mode: policies.Batch, Within: within}}}
}

// A write that a batch reads is unverified until then: no caller waits for it, and no caller
// gets verified.
func TestUnverifiedUntilABatchRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(), batches(time.Hour))
		out := b.do(order("A-1", intent.Create))
		writes, reads := b.world.Count()
		if out.Status != ledger.Unverified || writes != 1 || reads != 0 || out.Ref != "" {
			t.Fatalf("%+v after %d sends, %d reads; want unverified without a read%s", out, writes, reads, b.life(out.ID))
		}
		if in := time.Until(out.AskAfter); out.AskAgain != engine.AgainLater || in <= 0 || in > time.Hour {
			t.Errorf("ask again %q in %s, want within the hour", out.AskAgain, in)
		}
		if again := b.do(order("A-1", intent.Create)); again.Status != ledger.Unverified || !again.Replayed {
			t.Errorf("asked again: %+v", again)
		}
		b.work(time.Hour + time.Minute)
		if again := b.do(order("A-1", intent.Create)); again.Status != ledger.Verified || again.Reads != 1 {
			t.Errorf("after the batch: %+v%s", again, b.life(out.ID))
		}
	})
}

// A write without a successful response, or that must not wait, is read at once.
func TestReadsThatAreNeverDeferred(t *testing.T) {
	for name, c := range map[string]struct {
		fault  orders.FaultKind
		change func(*connectors.Profile)
		risk   intent.Risk
		want   ledger.Status
		reason string
	}{
		"lost":         {orders.LostAnswer, nil, "", ledger.Verified, "it is unknown what became of it"},
		"dropped":      {orders.DroppedBefore, nil, "", ledger.Verified, "nor here; and the second send may make a duplicate"},
		"refused":      {orders.Refused, nil, "", ledger.NotApplied, "there is nothing to read later"},
		"throttled":    {orders.Throttled, nil, "", ledger.Verified, "its second send is no first one"},
		"irreversible": {"", func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} }, "", ledger.Verified, "it cannot be taken back"},
		"approved":     {"", nil, intent.RiskApprove, ledger.Verified, "a reviewer had to approve it"},
		"answered":     {"", nil, "", ledger.Unverified, "all others are put off"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, fresh(), nil)
				d := b.world.Destination()
				p := d.Profiles[orders.Kind]
				if c.change != nil {
					c.change(&p)
				}
				d.Profiles = map[string]connectors.Profile{orders.Kind: p}
				b.engine = b.engineOn(b.ledger, d, batches(time.Hour))
				if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Times: 1})
				}
				w := order("A-1", intent.Create)
				w.Risk = c.risk
				out := b.do(w)
				if c.risk != "" {
					var err error
					if out, err = b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "fine"}); err != nil {
						t.Fatal(err)
					}
				}
				if out.Status != c.want {
					t.Errorf("%s, want %s: %s%s", out.Status, c.want, c.reason, b.life(out.ID))
				}
			})
		})
	}
}

// A batch shows what a read at once would have shown. But for a record that is gone after an
// hour, the actor that removed it is unknown.
func TestBatchFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		fault orders.Fault
		class orders.Class
		want  ledger.Status
	}{
		"a field was dropped": {orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1}, orders.Plain, ledger.StatusReview},
		"phantom success":     {orders.Fault{Kind: orders.PhantomSuccess, Times: 1}, orders.Native, ledger.StatusReview},
		"a double":            {orders.Fault{Kind: orders.DuplicateByOthers, Times: 1}, orders.Plain, ledger.StatusReview},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), batches(time.Hour))
				b.set(c.fault)
				first := b.do(order("A-1", intent.Create))
				b.work(2 * time.Hour)
				if out := b.do(order("A-1", intent.Create)); first.Status != ledger.Unverified || out.Status != c.want {
					t.Errorf("%s, then %s; want unverified, then %s%s", first.Status, out.Status, c.want, b.life(out.ID))
				}
			})
		})
	}
}

// A write queued behind a postponed one does not wait for the batch, whether it arrived later
// or during the send.
func TestAWaitingCallerExpeditesTheRead(t *testing.T) {
	for name, c := range map[string]struct {
		took, after time.Duration
	}{"came later": {0, time.Minute}, "came meanwhile": {time.Minute, 10 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				d := b.world.Destination()
				once := sync.Once{}
				d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { once.Do(func() { time.Sleep(min(c.took, 20*time.Second)) }) }}
				b.engine = b.engineOn(b.ledger, d, batches(time.Hour))
				go b.work(30 * time.Minute)
				var wg sync.WaitGroup
				wg.Go(func() { b.do(wish("A-1", 0, intent.Upsert)) })
				time.Sleep(c.after)
				began := time.Now()
				out := b.do(wish("A-1", 1, intent.Upsert))
				wg.Wait()
				first := b.state(ledger.IDOf(wish("A-1", 0, "upsert").StructuralKey()))
				if out.Sends != 1 || time.Since(began) > time.Minute || first.Settlement != ledger.Verified {
					t.Errorf("%+v after %s; the first is %s%s%s", out, time.Since(began), first.Phase(), b.life(first.ID), b.life(out.ID))
				}
			})
		})
	}
}

// Postponed writes are read together, in few calls.
func TestBatchesReadInBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := fresh()
		o.Bulk = true
		b := newBench(t, o, nil)
		d := b.world.Destination()
		d.Connector = distant{d.Connector}
		b.engine = b.engineOn(b.ledger, d, batches(time.Hour))
		const writes = 500
		for n := range writes {
			if out := b.do(order(fmt.Sprint("A-", n), intent.Create)); out.Status != ledger.Unverified {
				t.Fatalf("%+v", out)
			}
		}
		b.work(90 * time.Minute)
		calls := 0
		for _, op := range b.ops() {
			if op == orders.OpRead {
				calls++
			}
		}
		for n := range writes {
			if got := b.state(ledger.IDOf(order(fmt.Sprint("A-", n), intent.Create).StructuralKey())); got.Settlement != ledger.Verified {
				t.Fatalf("%s%s", got.Phase(), b.life(got.ID))
			}
		}
		if calls > writes/8 {
			t.Errorf("%d calls for %d writes", calls, writes)
		}
	})
}

// distant is a destination with a delay.
type distant struct{ connectors.Connector }

const way = 20 * time.Millisecond

func (d distant) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	time.Sleep(way)
	return d.Connector.Read(ctx, q)
}

func (d distant) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	time.Sleep(way)
	return d.Connector.(connectors.BulkReader).ReadMany(ctx, qs)
}

// Where no worker runs, a caller that asks when the read is due has it made.
func TestACallerMakesAnOverdueRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(), batches(time.Hour))
		b.do(order("A-1", intent.Create))
		time.Sleep(61 * time.Minute)
		if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || out.Reads != 1 {
			t.Errorf("%+v%s", out, b.life(out.ID))
		}
	})
}

// A read that could not be expedited changes nothing in the outcome.
func TestAFailedExpediteIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		d := b.world.Destination()
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { time.Sleep(10 * time.Second) }}
		b.engine = b.engineOn(noClaim{b.ledger}, d, batches(time.Hour))
		time.AfterFunc(5*time.Second, func() { b.enqueue(wish("A-1", 1, intent.Upsert)) })
		if out := b.do(wish("A-1", 0, intent.Upsert)); out.Status != ledger.Unverified {
			t.Errorf("%+v%s", out, b.life(out.ID))
		}
	})
}

// noClaim is a ledger that leases nothing.
type noClaim struct{ ledger.Ledger }

func (noClaim) Claim(context.Context, ledger.Claim) ([]ledger.Record, error) {
	return nil, ledger.ErrUnavailable
}
