package lag_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// everySecond is a fixed poll.
type everySecond struct{}

func (everySecond) Next(lag.Key, time.Duration, int) (time.Duration, bool) {
	return time.Second, true
}
func (everySecond) Seen(lag.Key, time.Duration, time.Duration) {}

// through carries writes through an engine before a destination whose reads lag, and returns what
// each of them cost, the first ones left out.
func through(t *testing.T, know engine.Lag, behind time.Duration, learn, writes int) *tally {
	t.Helper()
	o := orders.Unique.Options()
	o.Lags, o.Settle = []time.Duration{behind}, connectors.Within(4*behind+10*time.Second)
	if behind == 0 {
		o.Lags, o.Settle = nil, connectors.Within(0)
	}
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	// Beyond the patience a write waits in the ledger, and what is measured is how often its
	// waiters read it there.
	e := engine.New(ledger.NewMemory(), &reg, &engine.Options{Lag: know})
	defer e.Close()
	all, r := new(tally), rand.New(rand.NewPCG(1, 7))
	for i := range learn + writes {
		id := fmt.Sprint("A-", i)
		began := time.Now()
		out, err := e.Do(t.Context(), intent.WriteIntent{
			Tenant: "acme", Workflow: "wf", Step: id, Tool: "orders.create", Destination: "orders", Kind: orders.Kind,
			Write: intent.Create, Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"currency": "USD"},
		})
		if err != nil || out.Status != ledger.Verified {
			t.Fatalf("%+v, %v", out, err)
		}
		if i >= learn {
			all.add(out.Reads, time.Since(began), behind)
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	}
	return all
}

// TestEngineReadsBackCheaply prints the numbers that docs/operate/deploy.md shows. It runs in
// virtual time, so they measure only the paces.
func TestEngineReadsBackCheaply(t *testing.T) {
	for _, behind := range []time.Duration{0, 50 * ms, 300 * ms, 2000 * ms} {
		t.Run(behind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				book := lag.New(ledger.NewMemory(), nil)
				learned := through(t, book, behind, 100, 100)
				if err := book.Close(); err != nil {
					t.Error(err)
				}
				for name, other := range map[string]*tally{
					"learned":           learned,
					"standard pace":     through(t, nil, behind, 0, 50),
					"poll every second": through(t, everySecond{}, behind, 0, 50),
				} {
					t.Logf("%-18s %.2f reads/write (median %.0f), %.2f × the lag, verified after %.0f ms", name,
						mean(other.reads), median(other.reads), mean(other.over), 1000*mean(other.times))
				}
				if mean(learned.reads) > 1.3 || median(learned.reads) > 1 || mean(learned.over) > 1.3 {
					t.Errorf("%.2f reads a write (median %v), %.2f × the lag; want at most 1.3, 1 and 1.3",
						mean(learned.reads), median(learned.reads), mean(learned.over))
				}
			})
		})
	}
}
