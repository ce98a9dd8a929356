package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// bench is one engine on a ledger in memory with one simulated destination.
type bench struct {
	t      *testing.T
	world  *orders.World
	ledger *ledger.Memory
	engine *engine.Engine
}

func newBench(t *testing.T, o orders.Options, opts *engine.Options) *bench {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, ledger: ledger.NewMemory()}
	b.engine = b.newEngine(opts)
	return b
}

// newEngine returns another engine on the same ledger and destination, like another process's.
func (b *bench) newEngine(opts *engine.Options) *engine.Engine {
	b.t.Helper()
	var reg connectors.Registry
	if err := reg.Register("orders", b.world.Destination()); err != nil {
		b.t.Fatal(err)
	}
	e := engine.New(b.ledger, &reg, opts)
	b.t.Cleanup(e.Close)
	return e
}

func (b *bench) set(f orders.Fault) {
	b.t.Helper()
	if err := b.world.Set(f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) do(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Do(context.Background(), w)
	if err != nil {
		b.t.Fatalf("Do: %v", err)
	}
	return out
}

// life prints every event of a write, for failures.
func (b *bench) life(id ledger.ID) string {
	events, err := b.ledger.Events(context.Background(), "acme", id)
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, e := range events {
		text += fmt.Sprintf("\n  %2d %s %-12s %s%s %s/%s", e.Seq, e.At.Format("15:04:05.000"), e.Kind, e.Fate, e.Verdict, e.Rule, e.Reason)
	}
	return text
}

func order(id string, write intent.WriteType) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "wf-1", Step: "pay " + id, Tool: "orders." + string(write),
		Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": id}, Write: write,
	}
	if write != intent.Delete {
		w.Expect = intent.Fields{"amount_cents": jsonNumber(1999), "currency": "USD"}
	}
	return w
}

func TestHappyPath(t *testing.T) {
	for _, class := range orders.Classes() {
		for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			t.Run(string(class)+"/"+string(write), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, class.Options(), nil)
					if write == intent.Update || write == intent.Delete {
						if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, ""); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Minute)
					}
					out := b.do(order("A-1", write))
					if out.Status != ledger.Verified || out.Sends != 1 {
						t.Errorf("outcome %+v%s", out, b.life(out.ID))
					}
				})
			})
		}
	}
}

func TestLostAnswerIsReadBackNotSentAgain(t *testing.T) {
	for _, class := range orders.Classes() {
		for _, kind := range []orders.FaultKind{orders.LostAnswer, orders.BadGateway, orders.DroppedBefore, orders.LateCommit, orders.PhantomSuccess} {
			t.Run(string(class)+"/"+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, class.Options(), nil)
					b.set(orders.Fault{Kind: kind, Times: 1})
					out := b.do(order("A-1", intent.Create))
					if out.Status != ledger.Verified {
						t.Errorf("outcome %+v%s", out, b.life(out.ID))
					}
					if testing.Verbose() {
						t.Log(b.life(out.ID))
					}
					if got := len(b.world.Records("A-1")); got != 1 {
						t.Errorf("%d records%s", got, b.life(out.ID))
					}
				})
			})
		}
	}
}
