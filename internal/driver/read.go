package driver

import (
	"fmt"

	"github.com/readback-go/readback/ledger"
)

// States is every state: a listing of all reads each.
var States = []ledger.State{
	ledger.Held, ledger.Queued, ledger.Delegated, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Review, ledger.Settled,
}

// Complete returns the events of a write, or an error where there is a gap in them. Those of a
// tombstone were pruned.
func Complete(r ledger.Record, events []ledger.Event) ([]ledger.Event, error) {
	if r.Tombstone {
		return events, nil
	}
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			return nil, fmt.Errorf("%w: write %s: event %d is missing", ledger.ErrCorrupt, r.ID, i+1)
		}
	}
	if got := int64(len(events)); got != r.Seq {
		return nil, fmt.Errorf("%w: write %s: %d events of %d", ledger.ErrCorrupt, r.ID, got, r.Seq)
	}
	return events, nil
}
