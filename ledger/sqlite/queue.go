package sqlite

import (
	"time"

	"github.com/readback-go/readback/ledger"
)

// last returns the last write in a queue, or the zero row. Of one that cannot be read only the id
// and the place are known: enough to queue behind it.
func (t *tx) last(keyDigest string) (last row, err error) {
	if keyDigest == "" {
		return row{}, nil
	}
	t.lastInQueue.BindText(1, keyDigest)
	err = each(t.path, t.lastInQueue, func() error {
		last, err = scan(t.lastInQueue, 0)
		if reason := unreadable(err); reason != "" {
			return nil
		}
		return err
	})
	return last, err
}

// maxSince bounds how many lots one reservation reads: some tens of microseconds.
const maxSince = 16 * lot

// recordedSince reports whether a write with the same key digest is newer than a number. It
// queries the index of key digests for each lot of numbers since. Where there are too many lots,
// the answer is yes, which costs one more read of the destination.
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

// expedite brings forward the read of the last write in the queue, now that another write waits
// behind it.
func (t *tx) expedite(last row, now time.Time) error {
	expedited, events, changed := ledger.Expedite(last.rec, now)
	if !changed {
		return nil
	}
	before := last.rec
	last.rec = expedited
	if err := t.updateWrite(&last); err != nil {
		return err
	}
	return t.insertEvents(last.n, before, last.rec, events)
}

// free frees the next write after one that left its queue. A write that cannot be read must not
// block the one that ends: it is marked, and caught up when it is claimed by its id after a
// repair.
func (t *tx) free(gone row, after ledger.Record, now time.Time) error {
	if !ledger.Left(gone.rec, after) {
		return nil
	}
	var next row
	found, reason := false, ""
	t.nextInQueue.BindText(1, gone.rec.KeyDigest)
	t.nextInQueue.BindInt64(2, gone.place)
	err := each(t.path, t.nextInQueue, func() (err error) {
		found = true
		next, err = scan(t.nextInQueue, 0)
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

// freed returns a freed write in its new state.
func (t *tx) freed(next row, gone ledger.Record, now time.Time) (row, error) {
	rec, events, err := ledger.Free(next.rec, gone, now)
	if err != nil {
		return next, err
	}
	before := next.rec
	next.rec = rec
	if err := t.updateWrite(&next); err != nil {
		return next, err
	}
	return next, t.insertEvents(next.n, before, rec, events)
}

// caughtUp returns a write whose queue moved on while its row could not be read: the write that
// it waits for may be gone.
func (t *tx) caughtUp(r row, now time.Time) (row, error) {
	if r.rec.QueuedBehind == "" || r.place == 0 {
		return r, nil
	}
	var before ledger.ID
	t.beforeInQueue.BindText(1, r.rec.KeyDigest)
	t.beforeInQueue.BindInt64(2, r.place)
	err := each(t.path, t.beforeInQueue, func() error {
		before = ledger.ID(t.beforeInQueue.ColumnText(0))
		return nil
	})
	if err != nil || before == r.rec.QueuedBehind {
		return r, err
	}
	return t.freed(r, ledger.Record{ID: r.rec.QueuedBehind, QueuedBehind: before}, now)
}
