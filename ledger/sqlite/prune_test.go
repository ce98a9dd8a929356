package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// More writes than one transaction reads were settled at one moment, and cannot be pruned yet.
// They do not block the next one, nor keep the sweep busy for ever.
func TestPrunePastMany(t *testing.T) {
	c := newClock()
	l := open(t, file(t), &sqlite.Options{Now: c.now})
	for i := range sqlite.MaxPruned + 6 {
		parent := reserve(t, l, fmt.Sprint("parent", i))
		undo := asked(fmt.Sprint("undo", i))
		undo.Compensates = string(parent.ID)
		done(t, l, reservation(t, undo))
	}
	ripe := done(t, l, reservation(t, asked("ripe")))
	c.move(2 * time.Hour)
	did, err := l.Prune(context.Background(), ledger.Prune{Keep: time.Hour, Remember: 24 * time.Hour})
	if err != nil || did.Compacted != 1 {
		t.Fatalf("pruned %+v, error %v; want one compacted", did, err)
	}
	if rec, err := l.Get(context.Background(), "acme", ripe.ID); err != nil || !rec.Tombstone {
		t.Errorf("the ripe one: %+v, error %v", rec, err)
	}
	if left, err := l.Read("SELECT count(*) FROM ledger_events WHERE write = (SELECT n FROM ledger_writes WHERE tombstone)"); err != nil || left[0] != "0" {
		t.Errorf("%v events of it are left, error %v", left, err)
	}
}

// done is a write that was sent and verified.
func done(t *testing.T, l *sqlite.Ledger, res ledger.Reservation) ledger.Record {
	t.Helper()
	rec, _, err := l.Reserve(context.Background(), res)
	must(t, err)
	events := []ledger.Event{{Kind: ledger.EvSent}, {Kind: ledger.EvRead, Evidence: []byte(`{"seen":true}`)}, {Kind: ledger.EvSettled, Settlement: ledger.Verified}}
	if rec.State == ledger.Queued {
		events = append([]ledger.Event{{Kind: ledger.EvAnnounced}}, events...)
	}
	rec, err = l.Append(context.Background(), rec.ID, rec.Fence, events...)
	must(t, err)
	return rec
}
