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

// A write that was pruned or erased leaves none of the texts by which it was found, not even one
// that no search returns.
func TestNoTermIsLeft(t *testing.T) {
	c := newClock()
	l := open(t, file(t), &sqlite.Options{Now: c.now})
	pruned := done(t, l, reservation(t, asked("pruned")))
	c.move(2 * time.Hour)
	erased := done(t, l, reservation(t, asked("erased")))
	kept := done(t, l, reservation(t, asked("kept")))
	terms := func(r ledger.Record) string {
		got, err := l.Read(fmt.Sprintf("SELECT count(*) FROM ledger_terms WHERE n = (SELECT n FROM ledger_writes WHERE id = '%s')", r.ID))
		must(t, err)
		return got[0]
	}
	for _, r := range []ledger.Record{pruned, erased, kept} {
		if terms(r) == "0" {
			t.Fatalf("write %s has no terms", r.ID)
		}
	}
	_, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: 24 * time.Hour})
	must(t, err)
	_, err = l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{{Tenant: "acme", Kind: ledger.ErasureKind, ID: "er_1", Body: []byte(`{}`)}}})
	must(t, err)
	did, err := l.Erase(t.Context(), ledger.Erasing{Tenant: "acme", Erasure: "er_1", Writes: []ledger.ID{erased.ID}})
	if err != nil || did.Writes != 1 {
		t.Fatalf("erased %+v, error %v", did, err)
	}
	if terms(pruned) != "0" || terms(erased) != "0" || terms(kept) == "0" {
		t.Errorf("%s terms of the pruned write are left, %s of the erased one, and %s of the other", terms(pruned), terms(erased), terms(kept))
	}
}
