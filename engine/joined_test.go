package engine

import (
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Two reads that become one event change a record as two events do.
func TestTwoReadsAsOneEvent(t *testing.T) {
	var reads []ledger.Event
	for _, verdict := range []string{"unavailable", "stale"} {
		for _, effect := range []bool{false, true} {
			for _, unproven := range []bool{false, true} {
				for _, calls := range []int{0, 2, 5} {
					reads = append(reads, ledger.Event{Kind: ledger.EvRead, Verdict: verdict, Effect: effect, Unproven: unproven, Calls: calls})
				}
			}
		}
	}
	now := time.Unix(1, 0)
	after := func(events ...ledger.Event) [4]any {
		r := ledger.Record{State: ledger.Checking}
		for _, e := range events {
			var err error
			if r, err = ledger.Apply(r, e, now); err != nil {
				t.Fatal(err)
			}
		}
		return [4]any{r.Reads, r.EffectSeen, r.Unproven, r.Unverified}
	}
	joined := 0
	for _, a := range reads {
		for _, b := range reads {
			if !sameRead(a, b) {
				continue
			}
			joined++
			for _, c := range reads {
				one, each := []ledger.Event{together(a, b)}, []ledger.Event{a, b}
				if sameRead(one[0], c) {
					one = []ledger.Event{together(one[0], c)}
				} else {
					one = append(one, c)
				}
				if got, want := after(one...), after(append(each, c)...); got != want {
					t.Fatalf("%+v, %+v and %+v: %v as one event, want %v", a, b, c, got, want)
				}
			}
		}
	}
	if joined != 72 { // each of eight kinds of reads with itself, whatever the calls
		t.Errorf("%d pairs are one event", joined)
	}
}
