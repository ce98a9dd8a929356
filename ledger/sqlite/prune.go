package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/done.sql
var sqlDone string

//go:embed sql/followed.sql
var sqlFollowed string

//go:embed sql/clear.sql
var sqlClear string

//go:embed sql/clear_events.sql
var sqlClearEvents string

//go:embed sql/forget.sql
var sqlForget string

//go:embed sql/forget_refused.sql
var sqlForgetRefused string

var _ ledger.Pruner = (*Ledger)(nil)

// Prune implements [ledger.Pruner]. It forgets entries of the outbox that were
// refused as well, as long after they were enqueued as tombstones after they
// were settled. The pages that become free are used again; the file does not
// shrink. It fails with [ledger.ErrClock] when the clock stands too far before
// the newest entry.
func (l *Ledger) Prune(ctx context.Context, p ledger.Prune) (ledger.Pruned, error) {
	step := func(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
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
	did, err := driver.Prune(p, step, func(p ledger.Prune) error {
		return l.writer.do(ctx, func(t *tx) error { return t.forgetRefused(p) })
	})
	if _, unread := errors.AsType[*ledger.UnreadError](err); err != nil && !unread {
		return did, err
	}
	p, _ = p.Checked() // driver.Prune has refused what is wrong with it
	var failed, also error
	did.Papers, failed = l.prunePapers(ctx, p, p.Limit-did.Buried-did.Forgotten)
	did.Changes, also = l.pruneChanges(ctx)
	return did, cmp.Or(failed, also, err)
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
	for _, r := range rows {
		if at.Done == at.AtMost {
			break
		}
		if unsealed[r.n] || t.chronicle && r.n > t.found.writes { // or is not found yet
			continue
		}
		ripe, err := t.ripe(p, r, now)
		switch {
		case err != nil:
			return at, err
		case !ripe:
			continue
		case at.Tombstones:
			err = errors.Join(t.leaveMark(p.Forgotten(r.rec, now), nil), t.forget(r))
		default:
			err = t.bury(p, r, now)
		}
		if err != nil {
			return at, err
		}
		at.Done++
	}
	return at, nil
}

// sweepable is the next rows to be looked at. One that cannot be read is left
// alone.
func (t *tx) sweepable(p ledger.Prune, at driver.Sweep, now time.Time) (rows []row, next driver.Sweep, err error) {
	until := now.Add(-p.Keep)
	if at.Tombstones {
		until = now.Add(-p.Remember)
	}
	s, seen := t.settled, 0
	s.BindBool(1, at.Tombstones)
	s.BindInt64(2, at.Key)
	s.BindInt64(3, at.N)
	bindTime(s, 4, until)
	s.BindInt64(5, maxPruned)
	err = each(t.path, s, func() error {
		seen++
		const settledAt, created = 22, 6
		if at.N, at.Key = s.ColumnInt64(0), s.ColumnInt64(settledAt); s.ColumnIsNull(settledAt) {
			at.Key = s.ColumnInt64(created)
		}
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

// ripe says whether a row's time has come. What is about a relative that cannot
// be read is kept.
func (t *tx) ripe(p ledger.Prune, r row, now time.Time) (bool, error) {
	var relatives []ledger.Record
	for _, id := range []ledger.ID{r.rec.Parent, r.rec.Child} {
		if id == "" {
			continue
		}
		other, found, err := t.write(id)
		switch {
		case unreadable(err) != "" || errors.Is(err, ledger.ErrVersion):
			return false, nil
		case err != nil:
			return false, err
		case found:
			relatives = append(relatives, other.rec)
		}
	}
	if r.rec.Tombstone {
		return p.Forgets(r.rec, now, relatives...), nil
	}
	if !p.Buries(r.rec, now, relatives...) {
		return false, nil
	}
	followed := false
	t.followed.BindText(1, string(r.rec.ID))
	err := each(t.path, t.followed, func() error { followed = true; return nil })
	return !followed, err
}

func (t *tx) bury(p ledger.Prune, r row, now time.Time) error {
	r.rec = ledger.Bury(r.rec)
	if t.chronicle {
		if err := t.leaveMark(p.Buried(r.rec, now)); err != nil {
			return err
		}
	}
	if err := t.updateWrite(r); err != nil {
		return err
	}
	return errors.Join(t.onRow(t.clear, r.n), t.onRow(t.clearEvents, r.n))
}

func (t *tx) forget(r row) error {
	t.wrote = true
	delete(t.remembered, r.rec.ID)
	if err := t.nameWorkflow(t.forgetWorkflow, r.n, r.rec); err != nil {
		return err
	}
	return t.onRow(t.forgetWrite, r.n) // its events go with it
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
	bindTime(t.forgetEntries, 1, now.Add(-p.Remember))
	t.forgetEntries.BindInt64(2, int64(p.Limit))
	err = exec(t.path, t.forgetEntries)
	t.wrote = t.wrote || t.conn.Changes() > 0
	return err
}
