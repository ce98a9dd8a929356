package sqlite

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

const (
	// maxPruned is how many writes one operation reads to prune them: callers wait as long as for
	// a batch.
	maxPruned = 64

	// maxChanges is how many changes one operation deletes: small adjacent rows, some
	// milliseconds.
	maxChanges = 1000
)

// Prune implements [ledger.Maintenance]. It also deletes refused entries of the outbox, as long after
// they were enqueued as tombstones after they were settled. Free pages are reused; the file does
// not shrink. It fails with [ledger.ErrClock] when the clock is too far before the newest entry.
func (l *Ledger) Prune(ctx context.Context, p ledger.Prune) (ledger.Pruned, error) {
	sweep := func(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
		var next driver.Sweep // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			next, err = t.sweep(p, at)
			return err
		})
		if err != nil {
			return at, err
		}
		return next, nil
	}
	return driver.Prune(p, driver.Pruning{
		Retained: func() ([]driver.Retained, time.Time, error) { return l.retained(ctx) },
		Sweep:    sweep,
		Refused: func(p ledger.Prune) error {
			return l.writer.do(ctx, func(t *tx) error { return t.forgetRefused(p) })
		},
		Documents: func(p ledger.Prune, most int) (int, error) { return l.pruneDocuments(ctx, p, most) },
		Changes:   func() (int, error) { return l.pruneChanges(ctx) },
	})
}

// retained returns the tenants and destinations with writes that may become tombstones: one index
// read for each, however many writes it has.
func (l *Ledger) retained(ctx context.Context) (all []driver.Retained, now time.Time, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, at time.Time) error {
		now = at
		s, err := l.statement(conn, "next_compactable_party")
		if err != nil {
			return err
		}
		for last, more := (driver.Retained{}), true; more; {
			more = false
			s.BindText(1, last.Tenant)
			s.BindText(2, last.Destination)
			err := each(l.path, s, func() error {
				last = driver.Retained{Tenant: s.ColumnText(0), Destination: s.ColumnText(1), Oldest: time.Unix(0, s.ColumnInt64(2))}
				all, more = append(all, last), true
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, now, err
}

func (t *tx) sweep(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
	now, err := t.trust()
	if err != nil {
		return at, err
	}
	rows, at, err := t.sweepable(p, at, now)
	if err != nil {
		return at, err
	}
	unsealed, all, err := t.unsealedWrites()
	if err != nil || all {
		at.Ended = at.Ended || all
		return at, err
	}
	holds, err := t.holds()
	if err != nil {
		return at, err
	}
	var compacted []int64
	for _, r := range rows {
		if at.Done == at.AtMost {
			break
		}
		if unsealed[r.n] {
			continue
		}
		if p.DryRun {
			if at, err = t.count(p, at, r, now, holds, unsealed); err != nil {
				return at, err
			}
			continue
		}
		ripe, err := t.ripe(p, r, now, holds)
		switch {
		case err != nil:
			return at, err
		case !ripe:
			continue
		case at.Tombstones:
			err = errors.Join(t.insertMark(p.Forgotten(r.rec, now), nil), t.forget(r))
		default:
			err = t.compact(p, r, now)
			compacted = append(compacted, r.n)
		}
		if err != nil {
			return at, err
		}
		at.Done++
	}
	return at, t.removeTerms(at.Retained.Tenant, compacted)
}

// count counts a row if it would be pruned.
func (t *tx) count(p ledger.Prune, at driver.Sweep, r row, now time.Time, holds ledger.Holds, unsealed map[int64]bool) (driver.Sweep, error) {
	relatives, unread, err := t.relatives(r)
	if _, held := holds.On(r.rec, relatives...); err != nil || unread != "" || held {
		return at, err
	}
	if !r.rec.Tombstone {
		ripe, err := t.ripe(p, r, now, holds)
		if err != nil || !ripe {
			return at, err
		}
	}
	forgets, err := p.ForgetsAlso(r.rec, now, func(other ledger.Record) (bool, error) {
		of, found, err := t.write(other.ID)
		if err != nil || !found || unsealed[of.n] {
			return false, err
		}
		return t.ripe(p, of, now, holds)
	}, relatives...)
	if err != nil || at.Tombstones && !forgets {
		return at, err
	}
	if !at.Tombstones && forgets {
		at.Forgotten++
	}
	at.Done++
	at.Bytes += r.rec.Contents()
	t.eventsSize.BindInt64(1, r.n)
	return at, each(t.path, t.eventsSize, func() error { at.Bytes += t.eventsSize.ColumnInt64(0); return nil })
}

// sweepable returns the next rows to read. A row that cannot be read is left alone.
func (t *tx) sweepable(p ledger.Prune, at driver.Sweep, now time.Time) (rows []row, next driver.Sweep, err error) {
	s, seen := t.tombstones, 0
	if !at.Tombstones {
		s = t.compactable
		s.BindText(5, at.Retained.Tenant)
		s.BindText(6, at.Retained.Destination)
	}
	s.BindInt64(1, at.Key)
	s.BindInt64(2, at.N)
	bindTime(s, 3, at.Until(p, now))
	s.BindInt64(4, maxPruned)
	err = each(t.path, s, func() error {
		seen++
		const settledAt = 22
		at.N, at.Key = s.ColumnInt64(0), s.ColumnInt64(settledAt)
		r, err := scan(s, 0)
		switch {
		case err != nil && ofOneRow(err):
			at.Left.Leave(r.rec.ID, err)
			return nil
		case err == nil:
			rows = append(rows, r)
		}
		return err
	})
	at.Ended = seen < maxPruned
	return rows, at, err
}

// ripe reports whether a row may be pruned now. A write with an unreadable relative is kept.
func (t *tx) ripe(p ledger.Prune, r row, now time.Time, holds ledger.Holds) (bool, error) {
	relatives, unread, err := t.relatives(r)
	if err != nil || unread != "" {
		return false, err
	}
	if _, held := holds.On(r.rec, relatives...); held {
		return false, nil
	}
	if r.rec.Tombstone {
		return p.Forgets(r.rec, now, relatives...), nil
	}
	if !p.Compacts(r.rec, now, relatives...) {
		return false, nil
	}
	followed, err := t.isFollowed(r)
	return !followed, err
}

// relatives returns the write that this one compensates and the one that compensates it, where
// they exist. Unread is one that cannot be read.
func (t *tx) relatives(r row) (relatives []ledger.Record, unread ledger.ID, err error) {
	for _, id := range []ledger.ID{r.rec.Parent, r.rec.Child} {
		if id == "" {
			continue
		}
		other, found, err := t.write(id)
		switch {
		case unreadable(err) != "" || errors.Is(err, ledger.ErrVersion):
			return nil, id, nil
		case err != nil:
			return nil, "", err
		case found:
			relatives = append(relatives, other.rec)
		}
	}
	return relatives, "", nil
}

// isFollowed reports whether another write waits for this one.
func (t *tx) isFollowed(r row) (followed bool, err error) {
	t.followed.BindText(1, string(r.rec.ID))
	err = each(t.path, t.followed, func() error { followed = true; return nil })
	return followed, err
}

func (t *tx) compact(p ledger.Prune, r row, now time.Time) error {
	r.rec = ledger.Compact(r.rec)
	if err := t.insertMark(p.Compacted(r.rec, now)); err != nil {
		return err
	}
	if err := t.updateWrite(&r); err != nil {
		return err
	}
	return errors.Join(t.onRow(t.clear, r.n), t.onRow(t.clearEvents, r.n))
}

func (t *tx) forget(r row) error {
	t.wrote = true
	delete(t.remembered, r.rec.ID)
	if err := t.writeSearch(t.deleteSearch, r.n, r.rec); err != nil {
		return err
	}
	return t.onRow(t.deleteWrite, r.n) // deletes its events too
}

// onRow runs a statement on one row.
func (t *tx) onRow(s *sqlite.Stmt, n int64) error {
	s.BindInt64(1, n)
	return exec(t.path, s)
}

func (t *tx) forgetRefused(p ledger.Prune) error {
	now, err := t.trust()
	if err != nil {
		return err
	}
	holds, err := t.holds()
	if err != nil {
		return err
	}
	bindTime(t.deleteRefused, 1, now.Add(-p.Remember))
	t.deleteRefused.BindInt64(2, int64(p.Limit))
	t.deleteRefused.BindText(3, list(holds.Tenants()))
	err = exec(t.path, t.deleteRefused)
	t.wrote = t.wrote || t.conn.Changes() > 0
	return err
}

// documentSweep is the position of a sweep through finished documents, and how many it has
// deleted.
type documentSweep struct {
	updated, n int64 // of the last document that was read
	done, most int
	ended      bool
}

// pruneDocuments deletes at most that many documents.
func (l *Ledger) pruneDocuments(ctx context.Context, p ledger.Prune, most int) (int, error) {
	at := documentSweep{updated: math.MinInt64, most: most}
	for !at.ended && at.done < at.most {
		var next documentSweep // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			next, err = t.sweepDocuments(p, at)
			return err
		})
		if err != nil {
			return at.done, err
		}
		at = next
	}
	return at.done, nil
}

// doneDocument is the part of a finished document that pruning needs.
type doneDocument struct {
	n, updated int64
	document   ledger.Document
}

func (t *tx) sweepDocuments(p ledger.Prune, at documentSweep) (documentSweep, error) {
	now, err := t.trust()
	if err != nil {
		return at, err
	}
	until := now.Add(-p.Remember)
	documents, err := t.doneDocuments(at, until)
	if err != nil {
		return at, err
	}
	holds, err := t.holds()
	if err != nil {
		return at, err
	}
	at.ended = len(documents) < maxPruned
	budget := min(maxPruned, at.most-at.done) // of this operation
	for _, d := range documents {
		if _, held := holds.OfTenant(d.document.Tenant); held {
			at.updated, at.n = d.updated, d.n
			continue
		}
		gone, whole, err := t.forgetWithCollection(p, d, now, budget)
		if err != nil {
			return at, err
		}
		at.done, budget = at.done+gone, budget-gone
		if !whole { // the next operation continues with its collection
			at.ended = false
			return at, nil
		}
		at.updated, at.n = d.updated, d.n
	}
	return at, nil
}

func (t *tx) doneDocuments(at documentSweep, until time.Time) (documents []doneDocument, err error) {
	s := t.doneDocument
	s.BindInt64(1, at.updated)
	s.BindInt64(2, at.n)
	bindTime(s, 3, until)
	s.BindInt64(4, maxPruned)
	err = each(t.path, s, func() error {
		documents = append(documents, doneDocument{n: s.ColumnInt64(0), updated: s.ColumnInt64(4),
			document: ledger.Document{Tenant: s.ColumnText(1), ID: s.ColumnText(2), Collection: s.ColumnText(3)}})
		return nil
	})
	return documents, err
}

// forgetWithCollection deletes a document, and before it the collection that it covers, at most
// that many in all. Whole says that nothing more is left of it.
func (t *tx) forgetWithCollection(p ledger.Prune, d doneDocument, now time.Time, most int) (gone int, whole bool, err error) {
	until := now.Add(-p.Remember)
	var marks, cover []*ledger.Mark
	if d.document.Covers() {
		inUse := false
		t.inUse.BindText(1, d.document.Tenant)
		t.inUse.BindText(2, d.document.Collection)
		bindTime(t.inUse, 3, until)
		if err := each(t.path, t.inUse, func() error { inUse = true; return nil }); err != nil || inUse {
			return 0, true, err
		}
		t.deleteMembers.BindText(1, d.document.Tenant)
		t.deleteMembers.BindText(2, d.document.Collection)
		t.deleteMembers.BindInt64(3, d.n)
		t.deleteMembers.BindInt64(4, int64(most))
		if marks, gone, err = t.dropped(t.deleteMembers, p, now); err != nil {
			return 0, false, err
		}
	}
	if gone < most {
		t.deleteDocument.BindInt64(1, d.n)
		if cover, _, err = t.dropped(t.deleteDocument, p, now); err != nil {
			return gone, false, err
		}
		gone, whole = gone+1, true
	}
	t.wrote = t.wrote || gone > 0
	for _, m := range append(marks, cover...) {
		if err := t.insertMark(m, nil); err != nil {
			return gone, whole, err
		}
	}
	return gone, whole, nil
}

// pruneChanges deletes changes that are too old to be followed, and what is too old to be kept
// for a sealer.
func (l *Ledger) pruneChanges(ctx context.Context) (int, error) {
	in := func(forget func(*tx, int) (int, error)) (int, error) {
		return driver.PruneChanges(maxChanges, func(most int) (deleted int, err error) {
			err = l.writer.do(ctx, func(t *tx) (err error) {
				deleted, err = forget(t, most)
				return err
			})
			if err != nil { // else it is read only when it is done
				return 0, err
			}
			return deleted, nil
		})
	}
	if _, err := in((*tx).forgetUnsealed); err != nil {
		return 0, err
	}
	return in((*tx).forgetChanges)
}

// forgetChanges deletes the oldest changes, up to the limit and the first that may still be
// wanted. A change with a future time was written before the clock was corrected, and must not
// keep all later ones for ever.
func (t *tx) forgetChanges(most int) (gone int, err error) {
	now, err := t.trust()
	if err != nil {
		return 0, err
	}
	last, wanted := int64(0), false
	t.oldChanges.BindInt64(1, int64(most))
	err = each(t.path, t.oldChanges, func() error {
		at := time.Unix(0, t.oldChanges.ColumnInt64(1))
		if wanted = wanted || now.Sub(at) < ledger.ChangesKept && !at.After(now); !wanted {
			last = t.oldChanges.ColumnInt64(0)
			gone++
		}
		return nil
	})
	if err != nil || gone == 0 {
		return 0, err
	}
	t.wrote = true
	return gone, t.onRow(t.deleteChanges, last)
}
