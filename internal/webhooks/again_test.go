package webhooks_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

// A notice that is made again after the write continued has other words; the first one is
// kept, and later changes are notified.
func TestANoticeThatWouldSayMoreNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		broken := false
		f := &faulty{Memory: b.ledger, setNote: func(ledger.Note) error {
			if broken {
				return errBroken
			}
			return nil
		}}
		defer b.live(b.sender(f, webhooks.Hook{Name: "ops"}))()
		set := func(to bool) {
			f.mu.Lock()
			broken = to
			f.mu.Unlock()
		}
		b.do(order("A-0"))
		time.Sleep(time.Second)
		set(true) // the notice is made, and the cursor not kept
		held := order("A-1")
		held.Risk = intent.RiskApprove
		out := b.do(held)
		time.Sleep(5 * time.Second)
		if got := b.hooks["ops"].notices(); !slices.Contains(got, "write.held A-1") {
			t.Fatalf("%v; want the notice before the cursor", got)
		}
		if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "yes"}); err != nil {
			t.Fatal(err)
		}
		set(false)
		time.Sleep(time.Hour)
		got := b.hooks["ops"].notices()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"write.held A-1", "write.settled A-0", "write.settled A-1"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
