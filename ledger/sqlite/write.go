package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

const (
	// maxRemembered writes of at most maxRememberedSize bytes of raw messages are kept decoded
	// between two transactions: some megabytes, and more than are in flight in one process.
	maxRemembered     = 1024
	maxRememberedSize = 4 << 10
)

// Reserve implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the clock is too far
// before the newest entry.
func (l *Ledger) Reserve(ctx context.Context, res ledger.Reservation) (ledger.Record, bool, error) {
	var rec *ledger.Record // read only when do reports that it is done: it may still be written after
	var fresh bool
	var err error
	if res.Record, err = l.keeping.Digests.OfRecord(res.Record); err != nil {
		return ledger.Record{}, false, err
	}
	queue := func(t *tx) (string, error) { return t.enqueued(res.Record.KeyDigest) }
	err = l.inOrder(ctx, queue, func(t *tx) (err error) {
		rec, fresh, err = t.reserve(res)
		return err
	})
	if err != nil {
		return ledger.Record{}, false, err
	}
	return *rec, fresh, nil
}

// Claim implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the clock is too far
// before the newest entry.
func (l *Ledger) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	var recs []ledger.Record
	more := false
	queue := func(t *tx) (string, error) { return t.enqueuedAs(c.ID) }
	err = l.inOrder(ctx, queue, func(t *tx) (err error) {
		if more, err = t.admitSome(); err == nil {
			recs, err = t.claim(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if more {
		l.writer.notifier.Notify()
	}
	return recs, nil
}

// Append implements [ledger.Ledger]. It still works when the clock is before the newest entry, so
// that what was sent can be settled.
func (l *Ledger) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	var rec *ledger.Record
	err := l.writer.do(ctx, func(t *tx) (err error) {
		rec, err = t.append(id, fence, events)
		return err
	})
	if err != nil {
		return ledger.Record{}, err
	}
	return *rec, nil
}

func (t *tx) reserve(res ledger.Reservation) (*ledger.Record, bool, error) {
	now, err := t.trust()
	if err != nil {
		return nil, false, err
	}
	have, found, err := t.write(res.Record.ID)
	if err != nil {
		return nil, false, err
	}
	if found {
		same := have.rec
		same.Now = now
		return &same, false, ledger.Same(same, res) // Reserve drops the record when there is an error
	}
	if err := t.unblocked(res, now); err != nil {
		return nil, false, err
	}
	last, err := t.last(res.Record.KeyDigest)
	if err != nil {
		return nil, false, err
	}
	if res.Precheck != nil {
		since, err := t.recordedSince(res.Record, res.Precheck.Newest)
		if err != nil {
			return nil, false, err
		}
		if since {
			res.Events = nil
		}
	}
	rec, events, err := ledger.BeginInto(t.stamped[:0], res, last.rec.ID, now)
	if err != nil {
		return nil, false, err
	}
	r := &row{rec: rec}
	if rec.InQueue() {
		r.place = last.place + 1
	}
	if err := t.insertWrite(r); err != nil {
		return nil, false, err
	}
	if err := t.insertEvents(r.n, rec.Identity(), rec, events); err != nil {
		return nil, false, err
	}
	if rec.QueuedBehind != "" {
		err = t.expedite(last, now)
	}
	return &r.rec, true, err
}

// unblocked returns an error if another write of the same business operation blocks this one.
func (t *tx) unblocked(res ledger.Reservation, now time.Time) error {
	r := res.Record
	if r.IdempotencyKey == "" || r.Parent != "" { // as Blocks does
		return nil
	}
	since := earliest
	if res.Window > 0 {
		since = now.Add(-res.Window)
	}
	for _, key := range []string{r.IdempotencyKey, ledger.ErasedKey(r.Tenant, r.Tool, r.IdempotencyKey)} {
		t.operation.BindText(1, r.Tenant)
		t.operation.BindText(2, r.Tool)
		t.operation.BindText(3, key)
		bindTime(t.operation, 4, since)
		t.operation.BindText(5, r.Workflow)
		err := each(t.path, t.operation, func() error {
			prior, err := scan(t.operation, 0)
			if err == nil && ledger.Blocks(prior.rec, res, now) {
				prior.rec.Now = now
				err = ledger.BlockedBy(prior.rec, res)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) append(id ledger.ID, fence int64, events []ledger.Event) (*ledger.Record, error) {
	have, found, err := t.write(id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	}
	now, next := t.stamp(), have
	var before row // in the queue, when the events put the write into one
	if ledger.Joins(have.rec, events) {
		if before, err = t.last(have.rec.KeyDigest); err != nil {
			return nil, err
		}
		next.place, events = before.place+1, ledger.QueueBehind(events, before.rec.ID)
	}
	var stamped []ledger.Event
	if next.rec, stamped, err = ledger.AdvanceInto(t.stamped[:0], have.rec, fence, events, now); err != nil {
		return nil, err
	}
	if err := t.updateWrite(&next); err != nil {
		return nil, err
	}
	if err := t.addTerms(have.n, have.rec.Tenant, ledger.NewTerms(have.rec, next.rec)); err != nil {
		return nil, err
	}
	if err := t.insertEvents(have.n, have.rec, next.rec, stamped); err != nil {
		return nil, err
	}
	if next.rec.QueuedBehind != "" && have.rec.QueuedBehind == "" {
		return &next.rec, t.expedite(before, now)
	}
	return &next.rec, t.free(have, next.rec, now)
}

// write reads a write by its id.
func (t *tx) write(id ledger.ID) (r row, found bool, err error) {
	if kept := t.remembered[id]; kept != nil {
		return *kept, true, nil
	}
	t.find.BindText(1, string(id))
	err = each(t.path, t.find, func() (err error) {
		found = true
		r, err = scan(t.find, 0)
		return err
	})
	return r, found, err
}

// remember keeps what was written: most writes are settled soon after they were reserved, by the
// same process, and need not be decoded again.
func (t *tx) remember(r *row) {
	t.wakes = t.wakes || ledger.Wakes(r.rec)
	size := len(r.rec.Intent)
	for _, raw := range driver.Raws(&r.rec) {
		size += len(*raw)
	}
	if size > maxRememberedSize {
		delete(t.remembered, r.rec.ID)
		return
	}
	if len(t.remembered) >= maxRemembered {
		clear(t.remembered)
	}
	t.remembered[r.rec.ID] = r
}

// insertWrite inserts a write, and sets its number.
func (t *tx) insertWrite(w *row) (err error) {
	r := &w.rec
	if t.body, err = driver.Encode(t.body[:0], *r); err != nil {
		return err
	}
	t.wrote = true
	s := t.insert
	s.BindText(1, string(r.ID))
	s.BindText(2, r.Tenant)
	s.BindText(3, r.Tool)
	s.BindText(4, r.StructuralKey)
	s.BindText(5, r.IdempotencyKey)
	bindTime(s, 6, r.Created)
	bindRaw(s, 7, r.Intent)
	bindSome(s, 8, r.KeyDigest)
	bindSome(s, 9, r.StepOf())
	bindChanging(s, 10, w, t.body)
	if err := exec(t.path, s); err != nil {
		return err
	}
	w.n = t.conn.LastInsertRowID()
	t.remember(w)
	if err := t.writeSearch(t.insertSearch, w.n, *r); err != nil {
		return err
	}
	return t.addTerms(w.n, r.Tenant, ledger.Terms(*r))
}

// updateWrite writes what changed about a write. One that has left its queue gives up its place.
func (t *tx) updateWrite(r *row) (err error) {
	if t.body, err = driver.Encode(t.body[:0], r.rec); err != nil {
		return err
	}
	if !r.rec.InQueue() {
		r.place = 0
	}
	t.wrote = true
	t.remember(r)
	t.update.BindInt64(1, r.n)
	bindChanging(t.update, 2, r, t.body)
	return exec(t.path, t.update)
}

// bindChanging binds the fields that change during the lifetime of a write, from a parameter on.
func bindChanging(s *sqlite.Stmt, from int, r *row, body []byte) {
	c := columnsOf(r.rec)
	s.BindText(from, c.state)
	if c.dueSet {
		s.BindInt64(from+1, c.due)
	} else {
		s.BindNull(from + 1)
	}
	s.BindInt64(from+2, c.leaseUntil)
	s.BindInt64(from+3, c.fence)
	s.BindInt64(from+4, c.seq)
	bindRaw(s, from+5, body)
	for i, raw := range driver.Raws(&r.rec) {
		bindRaw(s, from+6+i, *raw)
	}
	s.BindText(from+10, c.destination)
	if r.place == 0 {
		s.BindNull(from + 11)
	} else {
		s.BindInt64(from+11, r.place)
	}
	bindSome(s, from+12, c.queuedBehind)
	if c.settledAt == 0 {
		s.BindNull(from + 13)
	} else {
		s.BindInt64(from+13, c.settledAt)
	}
	s.BindBool(from+14, c.tombstone)
	s.BindBool(from+15, c.blocks)
	bindSome(s, from+16, c.waits)
}

// insertEvents stores events of a write, and publishes them.
func (t *tx) insertEvents(n int64, before, after ledger.Record, events []ledger.Event) (err error) {
	defer func() { // the buffer is used again, and what they refer to is not kept
		clear(events)
		t.stamped = events
	}()
	for _, e := range events {
		if t.body, err = driver.EncodeEvent(t.body[:0], e); err != nil {
			return err
		}
		t.event.BindInt64(1, n)
		t.event.BindInt64(2, e.Seq)
		bindRaw(t.event, 3, t.body)
		bindRaw(t.event, 4, e.Evidence)
		bindRaw(t.event, 5, e.Mismatches)
		if err := exec(t.path, t.event); err != nil {
			return err
		}
	}
	if err := t.insertRun(n, after, events); err != nil {
		return err
	}
	return t.publish(before, after, events)
}
