package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// drafting is a connector whose write is two calls: a draft, and its sending.
type drafting struct {
	connectors.Connector
	drafts, sent int
	asked        []string // what reads were told of the draft
}

func (d *drafting) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if len(r.Prepared) == 0 {
		d.drafts++
		if err := r.Keep(ctx, fmt.Append(nil, "draft ", d.drafts)); err != nil {
			return connectors.Receipt{}, connectors.NotSent(err)
		}
	} else if string(r.Prepared) != "draft 1" {
		return connectors.Receipt{}, connectors.Refused("", fmt.Errorf("there is no %s", r.Prepared))
	}
	d.sent++
	return d.Connector.Write(ctx, r)
}

func (d *drafting) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if d.sent > 0 {
		d.asked = append(d.asked, string(q.Prepared))
	}
	return d.Connector.Read(ctx, q)
}

// A repeat uses what the first call of the first send made, and reads know of it.
func TestWhatTheFirstCallMadeIsKept(t *testing.T) {
	for name, kind := range map[string]orders.FaultKind{"throttled": orders.Throttled, "lost": orders.DroppedBefore, "phantom": orders.PhantomSuccess} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				dest := b.world.Destination()
				d := &drafting{Connector: dest.Connector}
				dest.Connector = d
				b.engine = b.engineOn(b.ledger, dest, nil)
				b.set(orders.Fault{Kind: kind, Times: 2})
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || d.drafts != 1 || d.sent != 3 {
					t.Fatalf("%+v with %d drafts, sent %d times%s", out, d.drafts, d.sent, b.life(out.ID))
				}
				for _, q := range d.asked {
					if q != "draft 1" {
						t.Errorf("a read was told of %q", q)
					}
				}
			})
		})
	}
}

// unkept is a ledger that cannot record what the first call made.
type unkept struct{ ledger.Ledger }

func (l unkept) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	for _, e := range events {
		if e.Kind == ledger.EvPrepared {
			return ledger.Record{}, errors.New("the disk is full")
		}
	}
	return l.Ledger.Append(ctx, id, fence, events...)
}

// What cannot be recorded is not used: the call that has the effect is not made.
func TestWhatCannotBeKeptIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		dest := b.world.Destination()
		d := &drafting{Connector: dest.Connector}
		dest.Connector = d
		e := b.engineOn(unkept{b.ledger}, dest, nil)
		_, err := e.Do(t.Context(), order("A-1", intent.Create))
		if err == nil || d.sent != 0 || d.drafts != 1 {
			t.Errorf("%v with %d drafts, sent %d times; want an error and nothing sent", err, d.drafts, d.sent)
		}
		if n := len(b.world.Records("A-1")); n != 0 {
			t.Errorf("%d orders", n)
		}
	})
}

// A process dies between the calls, or after both: the next one sends the same draft.
func TestTheNextProcessSendsTheSameDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		open := func() *drafting {
			dest := b.world.Destination()
			d := &drafting{Connector: dest.Connector}
			dest.Connector = d
			b.engine = b.engineOn(b.ledger, dest, nil)
			return d
		}
		first := open()
		b.set(orders.Fault{Kind: orders.Unreachable, Times: 1000})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := b.engine.Do(ctx, order("A-1", intent.Create))
		b.engine.Close() // the caller's deadline ends its wait, not the engine's work
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || first.drafts != 1 {
			t.Fatalf("%+v, %v with %d drafts", out, err, first.drafts)
		}
		b.world.Clear()
		second := open()
		work, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		go func() { _ = runWorker(work, b.engine, nil) }()
		out, err = b.engine.Wait(work, "acme", out.ID, false)
		b.engine.Close()
		if err != nil || out.Status != ledger.Verified || second.drafts != 0 || second.sent == 0 {
			t.Errorf("%+v, %v with %d further drafts, sent %d times", out, err, second.drafts, second.sent)
		}
	})
}

// tooMuch is a connector whose first call makes more than can be kept.
type tooMuch struct {
	connectors.Connector
	sent int
}

func (d *tooMuch) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if err := r.Keep(ctx, make([]byte, connectors.MaxPrepared+1)); err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	d.sent++
	return d.Connector.Write(ctx, r)
}

// What is too large to be kept is not sent, and the write is known not to be applied.
func TestWhatIsTooLargeToKeepIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		dest := b.world.Destination()
		d := &tooMuch{Connector: dest.Connector}
		dest.Connector = d
		b.engine = b.engineOn(b.ledger, dest, nil)
		out := b.do(order("A-1", intent.Create))
		if out.Status != ledger.NotApplied || d.sent != 0 || len(b.world.Records("A-1")) != 0 {
			t.Errorf("%+v, sent %d times%s", out, d.sent, b.life(out.ID))
		}
	})
}
