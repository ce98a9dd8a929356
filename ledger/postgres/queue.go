package postgres

import (
	"github.com/readback-go/readback/ledger"
)

// The head of a queue has no write before it and the tail none behind it. The columns followed
// and behind say so, and unique indexes ensure that there is one of each. A write that joins
// behind the tail marks it first, and so waits for a running change of it, or makes that wait. A
// write that was not marked when it left its queue, in a statement that read the mark, has left
// no write behind.

// tail returns the last write of a queue, which is marked as followed, or the zero row. Of one
// that cannot be read only the id is known: enough to queue behind it.
func (t *tx) tail(keyDigest string) (row, error) {
	if keyDigest == "" {
		return row{}, nil
	}
	last, _, err := t.one("tail", keyDigest)
	if unreadable(err) != "" {
		err = nil
	}
	return last, err
}

// expedite brings forward the read of the last write in the queue, now that another write waits
// behind it.
func (t *tx) expedite(last row) error {
	t.present()
	expedited, events, changed := ledger.Expedite(last.rec, clamp(t.now, last.rec))
	if !changed {
		return nil
	}
	_, err := t.store(goneOn(last, expedited, events))
	return err
}

// append is Append for a row that this transaction has locked.
func (t *tx) append(have row, fence int64, events []ledger.Event) (ledger.Record, error) {
	var last row
	var err error
	if ledger.Joins(have.rec, events) {
		if last, err = t.tail(have.rec.KeyDigest); err != nil {
			return ledger.Record{}, err
		}
		events = ledger.QueueBehind(events, last.rec.ID)
	}
	t.present() // the lock may have delayed it
	rec, stamped, err := ledger.Advance(have.rec, fence, events, clamp(t.now, have.rec))
	if err != nil {
		return ledger.Record{}, err
	}
	stored, err := t.store(goneOn(have, rec, stamped))
	if err == nil {
		err = t.joined(last, rec)
	}
	if err == nil && ledger.Left(have.rec, rec) {
		err = t.leave(have)
	}
	return stored.rec, err
}

// joined updates the write before one that has just joined its queue, behind the previous last
// one.
func (t *tx) joined(last row, rec ledger.Record) error {
	switch {
	case last.n == 0:
		return nil
	case rec.QueuedBehind != last.rec.ID: // it joined and left in one step
		return t.exec("untail", string(last.rec.ID))
	}
	return t.expedite(last)
}

// leave frees the write that was queued behind one that left its queue. A write that cannot be
// read must not block the one that ends: it is marked, and caught up when it is claimed by its id
// after a repair.
//
// The next write may be leaving as well, and be waited for. Then it is no longer there, and a
// second read returns the one that is there now.
func (t *tx) leave(left row) error {
	gone := left.rec
	next, found, err := t.one("next", string(gone.ID))
	for try := 0; err == nil && !found && left.followed && try < maxTries; try++ {
		next, found, err = t.one("next", string(gone.ID))
	}
	if reason := unreadable(err); reason != "" {
		return t.exec("mark_damaged", string(next.rec.ID), reason)
	}
	if err != nil {
		return err
	}
	if !found {
		if gone.QueuedBehind != "" {
			return t.exec("untail", string(gone.QueuedBehind))
		}
		return nil
	}
	return t.freed(next, gone)
}

func (t *tx) freed(next row, gone ledger.Record) error {
	t.present()
	rec, events, err := ledger.Free(next.rec, gone, clamp(t.now, next.rec))
	if err != nil {
		return err
	}
	_, err = t.store(goneOn(next, rec, events))
	return err
}

// caughtUp frees a write whose queue moved on while its row could not be read: it waits for a
// write that is gone, and the queue has no head.
func (t *tx) caughtUp(id ledger.ID) error {
	have, found, err := t.one("lock", string(id))
	if err != nil || !found || have.rec.QueuedBehind == "" {
		return err
	}
	before, found, err := t.one("lock", string(have.rec.QueuedBehind))
	if err != nil || found && before.rec.InQueue() {
		return err
	}
	var headless bool
	err = t.pgx.QueryRow(t.ctx, t.l.sql.Text("headless"), t.l.args(have.rec.KeyDigest)...).Scan(&headless)
	if err != nil || !headless {
		return err
	}
	return t.freed(have, ledger.Record{ID: have.rec.QueuedBehind})
}
