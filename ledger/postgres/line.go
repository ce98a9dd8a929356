package postgres

import (
	"github.com/readback-go/readback/ledger"
)

// Of a line the head has nobody before it and the tail nobody behind it; the
// columns followed and behind say so, and unique indexes hold that there is one
// of each. Whoever comes to stand behind the tail marks it first, and so waits
// for whatever is changing it, or makes that wait. A write that was not marked
// when it left its line, in a statement that looked at the mark, has left
// nobody behind.

// tail is the last write of a line, which is marked as followed, or the zero
// row. Of one that cannot be read only the id is known: enough to wait behind
// it.
func (t *tx) tail(keyDigest string) (row, error) {
	if keyDigest == "" {
		return row{}, nil
	}
	last, found, err := t.one("tail", keyDigest)
	if unreadable(err) != "" {
		err = nil
	}
	if err == nil && found {
		err = t.look() // it may have waited
	}
	return last, err
}

// hurry brings the look at the last one in line forward, now that another
// write waits behind it.
func (t *tx) hurry(last row) error {
	hurried, events, changed := ledger.Hurry(last.rec, clamp(t.now, last.rec))
	if !changed {
		return nil
	}
	_, err := t.store(goneOn(last, hurried, events))
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
		events = ledger.JoinBehind(events, last.rec.ID)
	}
	if err := t.look(); err != nil { // the lock may have kept it waiting
		return ledger.Record{}, err
	}
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

// joined sees to the one before a write that has just joined its line, behind
// the last there was.
func (t *tx) joined(last row, rec ledger.Record) error {
	switch {
	case last.n == 0:
		return nil
	case rec.Behind != last.rec.ID: // it came and went in one step
		return t.exec("untail", string(last.rec.ID))
	}
	return t.hurry(last)
}

// leave lets the one behind a write go that has left its line. One that cannot
// be read must not hold up the write that ends: it is marked, and finds its turn
// when it is claimed by its name, once it is mended.
//
// The one behind it may be leaving as well, and be waited for: then it is found
// to stand there no more, and who stands there now is seen by another look.
func (t *tx) leave(left row) error {
	gone := left.rec
	next, found, err := t.one("next", string(gone.ID))
	for look := 0; err == nil && !found && left.followed && look < maxTries; look++ {
		next, found, err = t.one("next", string(gone.ID))
	}
	if reason := unreadable(err); reason != "" {
		return t.exec("damage", string(next.rec.ID), reason)
	}
	if err != nil {
		return err
	}
	if !found {
		if gone.Behind != "" {
			return t.exec("untail", string(gone.Behind))
		}
		return nil
	}
	if err := t.look(); err != nil {
		return err
	}
	return t.freed(next, gone)
}

func (t *tx) freed(next row, gone ledger.Record) error {
	rec, events, err := ledger.Free(next.rec, gone, clamp(t.now, next.rec))
	if err != nil {
		return err
	}
	_, err = t.store(goneOn(next, rec, events))
	return err
}

// caughtUp lets a write go whose line went on while its row could not be read:
// it waits for one that is gone, and nobody is at the head.
func (t *tx) caughtUp(id ledger.ID) error {
	have, found, err := t.one("lock", string(id))
	if err != nil || !found || have.rec.Behind == "" {
		return err
	}
	before, found, err := t.one("lock", string(have.rec.Behind))
	if err != nil || found && before.rec.InLine() {
		return err
	}
	var headless bool
	err = t.pgx.QueryRow(t.ctx, t.l.sql["headless"], t.l.args(have.rec.KeyDigest)...).Scan(&headless)
	if err != nil || !headless {
		return err
	}
	if err := t.look(); err != nil {
		return err
	}
	return t.freed(have, ledger.Record{ID: have.rec.Behind})
}
