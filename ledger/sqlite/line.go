package sqlite

import (
	"time"

	"github.com/readback-go/readback/ledger"
)

// last is the last write in a line, or the zero row. Of one that cannot be
// read only the id and the place are known: enough to wait behind it.
func (t *tx) last(keyDigest string) (last row, err error) {
	if keyDigest == "" {
		return row{}, nil
	}
	t.lastInLine.BindText(1, keyDigest)
	err = each(t.path, t.lastInLine, func() error {
		last, err = scan(t.lastInLine, 0)
		if reason := unreadable(err); reason != "" {
			return nil
		}
		return err
	})
	return last, err
}

// maxSince bounds how many lots one reservation asks: some tens of microseconds.
const maxSince = 16 * lot

// recordedSince reports whether a write with the same key digest is newer than a
// number. The index of key digests is asked for each lot of numbers since. Where
// there are too many of those, the answer is yes, which costs one more read.
func (t *tx) recordedSince(r ledger.Record, newest int64) (since bool, err error) {
	if r.KeyDigest == "" {
		return false, nil
	}
	var last int64
	err = each(t.path, t.extent, func() error {
		last = t.extent.ColumnInt64(1)
		return nil
	})
	if since = last-newest > maxSince; since {
		return since, err
	}
	for of := newest / lot; err == nil && !since && of <= last/lot; of++ {
		t.since.BindInt64(1, of)
		t.since.BindText(2, r.KeyDigest)
		t.since.BindText(3, r.Tenant)
		t.since.BindInt64(4, newest)
		err = each(t.path, t.since, func() error {
			since = true
			return nil
		})
	}
	return since, err
}

// hurry brings the look at the last one in line forward, now that another
// write waits behind it.
func (t *tx) hurry(last row, now time.Time) error {
	hurried, events, changed := ledger.Hurry(last.rec, now)
	if !changed {
		return nil
	}
	before := last.rec
	last.rec = hurried
	if err := t.updateWrite(last); err != nil {
		return err
	}
	return t.insertEvents(last.n, before, last.rec, events)
}

// free lets the one behind a write go, when that has left its line. One that
// cannot be read must not hold up the write that ends: it is marked, and finds
// its turn when it is claimed by its name, once it is mended.
func (t *tx) free(gone row, after ledger.Record, now time.Time) error {
	if !ledger.Left(gone.rec, after) {
		return nil
	}
	var next row
	found, reason := false, ""
	t.nextInLine.BindText(1, gone.rec.KeyDigest)
	t.nextInLine.BindInt64(2, gone.place)
	err := each(t.path, t.nextInLine, func() (err error) {
		found = true
		next, err = scan(t.nextInLine, 0)
		if reason = unreadable(err); reason != "" {
			return nil
		}
		return err
	})
	switch {
	case err != nil, !found:
		return err
	case reason != "":
		return t.markDamaged(next.n, reason)
	}
	_, err = t.freed(next, gone.rec, now)
	return err
}

// freed is a write that was let go, as it is now.
func (t *tx) freed(next row, gone ledger.Record, now time.Time) (row, error) {
	rec, events, err := ledger.Free(next.rec, gone, now)
	if err != nil {
		return next, err
	}
	before := next.rec
	next.rec = rec
	if err := t.updateWrite(next); err != nil {
		return next, err
	}
	return next, t.insertEvents(next.n, before, rec, events)
}

// caughtUp is a write whose line went on while its row could not be read: what
// it says to wait for may be gone.
func (t *tx) caughtUp(r row, now time.Time) (row, error) {
	if r.rec.Behind == "" || r.place == 0 {
		return r, nil
	}
	var before ledger.ID
	t.beforeInLine.BindText(1, r.rec.KeyDigest)
	t.beforeInLine.BindInt64(2, r.place)
	err := each(t.path, t.beforeInLine, func() error {
		before = ledger.ID(t.beforeInLine.ColumnText(0))
		return nil
	})
	if err != nil || before == r.rec.Behind {
		return r, err
	}
	return t.freed(r, ledger.Record{ID: r.rec.Behind, Behind: before}, now)
}
