package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/readback-go/readback/ledger"
)

// ending is a context that ends when it is checked for the second time: after a call began, and
// before it is answered.
type ending struct {
	context.Context
	end   context.CancelFunc
	asked int
}

func (e *ending) Err() error {
	if e.asked++; e.asked == 2 {
		e.end()
	}
	return e.Context.Err()
}

// The cache of this process refuses no call, not even one that is just being cancelled: another
// process has changed the write, and neither its fence nor its state are what they were.
func TestStaleMemoryRefusesNothing(t *testing.T) {
	d := fresh(t)
	here, elsewhere := d.open(nil), d.open(nil)
	for name, c := range map[string]struct {
		reason string
		change func(t *testing.T, rec ledger.Record) ledger.Record
		events []ledger.Event
	}{
		"fence": {"it was claimed elsewhere", func(t *testing.T, rec ledger.Record) ledger.Record {
			got, err := elsewhere.Claim(t.Context(), ledger.Claim{Tenant: rec.Tenant, ID: rec.ID, Owner: "elsewhere", Early: true})
			must(t, err)
			return got[0]
		}, []ledger.Event{{Kind: ledger.EvDeferred}}},
		"state": {"it was announced elsewhere", func(t *testing.T, rec ledger.Record) ledger.Record {
			rec, err := elsewhere.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvAnnounced})
			must(t, err)
			return rec
		}, []ledger.Event{{Kind: ledger.EvSent}}},
	} {
		t.Run(name, func(t *testing.T) {
			res := reservation(t, asked(name))
			res.Owner, res.LeaseFor, res.Events = "", 0, nil
			rec, _, err := here.Reserve(t.Context(), res)
			must(t, err)
			rec = c.change(t, rec)
			live, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err = here.Append(&ending{Context: live, end: cancel}, rec.ID, rec.Fence, c.events...)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}
