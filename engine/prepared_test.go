package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// preparing is a connector whose requests depend on the time at which they were built, as a
// mail's Date does.
type preparing struct {
	connectors.Connector
	mu    sync.Mutex
	built int
	sent  []string
	fail  error
	size  int
	panic bool
	empty bool
}

func (p *preparing) Prepare(_ context.Context, r connectors.Request) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.built++
	if p.panic {
		panic("cannot")
	}
	if p.empty {
		return nil, nil
	}
	if p.size > 0 {
		return make([]byte, p.size), p.fail
	}
	return fmt.Appendf(nil, "%s %s #%d", r.Stamp, time.Now().Format(time.RFC3339Nano), p.built), p.fail
}

func (p *preparing) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	p.mu.Lock()
	p.sent = append(p.sent, string(r.Prepared))
	p.mu.Unlock()
	return p.Connector.Write(ctx, r)
}

func (b *bench) preparing(opts *engine.Options) (*preparing, *engine.Engine) {
	d := b.world.Destination()
	p := &preparing{Connector: d.Connector}
	d.Connector = p
	return p, b.engineOn(b.ledger, d, opts)
}

func TestEverySendIsWhatWasPreparedBeforeTheFirst(t *testing.T) {
	for name, kind := range map[string]orders.FaultKind{
		"refused":     orders.Throttled,
		"unreachable": orders.Unreachable,
		"lost":        orders.DroppedBefore,
		"phantom":     orders.PhantomSuccess,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				p, e := b.preparing(nil)
				b.engine = e
				b.set(orders.Fault{Kind: kind, Times: 2})
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.Verified || len(p.sent) != 3 {
					t.Fatalf("%+v with %d sends%s", out, len(p.sent), b.life(out.ID))
				}
				if p.sent[0] == "" || p.sent[1] != p.sent[0] || p.sent[2] != p.sent[0] {
					t.Errorf("sent %q; want three times the same", p.sent)
				}
			})
		})
	}
}

// A reviewer approves a held write, the process that announced it dies, another one continues:
// one text.
func TestPreparedSurvivesApprovalAndCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		first, e := b.preparing(nil)
		b.engine = e
		w := order("A-1", intent.Create)
		w.Risk = intent.RiskApprove
		out := b.do(w)
		if out.Status != ledger.StatusHeld || first.built != 0 {
			t.Fatalf("%+v, built %d; want it held and nothing built", out, first.built)
		}
		b.set(orders.Fault{Kind: orders.Unreachable, Times: 1000})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := e.Resolve(ctx, "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "fine"}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		e.Close()
		rec, err := b.ledger.Get(context.Background(), "acme", out.ID)
		if err != nil || len(rec.Prepared) == 0 || len(first.sent) == 0 {
			t.Fatalf("%v, prepared %q, sent %q", err, rec.Prepared, first.sent)
		}
		b.world.Clear()
		second, e := b.preparing(nil)
		b.engine = e
		work, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		go func() { _ = runWorker(work, e, nil) }()
		out, err = e.Wait(work, "acme", out.ID, false)
		if err != nil || out.Status != ledger.Verified {
			t.Fatalf("%+v, %v%s", out, err, b.life(out.ID))
		}
		all := slices.Compact(slices.Concat(first.sent, second.sent))
		if second.built != 0 || len(all) != 1 || len(second.sent) == 0 {
			t.Errorf("built again %d times, sent %q; want one text", second.built, all)
		}
	})
}

func TestWhatCannotBePreparedIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*preparing)
		says string
	}{
		"an error":  {func(p *preparing) { p.fail = errors.New("/expect/to: is no address") }, "/expect/to: is no address"},
		"nothing":   {func(p *preparing) { p.empty = true }, "prepared nothing"},
		"a panic":   {func(p *preparing) { p.panic = true }, "panicked"},
		"too large": {func(p *preparing) { p.size = connectors.MaxPrepared + 1 }, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				p, e := b.preparing(nil)
				c.set(p)
				b.engine = e
				out := b.do(order("A-1", intent.Create))
				if out.Status != ledger.NotApplied || !strings.Contains(out.Text, c.says) || len(p.sent) != 0 {
					t.Errorf("%+v, %d sends; want not applied because of %q", out, len(p.sent), c.says)
				}
			})
		})
	}
}
