package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

var _ ledger.Pruner = (*Ledger)(nil)

// Prune implements [ledger.Pruner]. It forgets entries of the outbox that were
// refused as well, as long after they were enqueued as tombstones after they
// were settled. Any number of workers may do it at once. It fails with
// [ledger.ErrClock] when the clock stands too far before the newest entry.
func (l *Ledger) Prune(ctx context.Context, p ledger.Prune) (ledger.Pruned, error) {
	step := func(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
		var next driver.Sweep // read only when it is done
		err := l.within(ctx, func(t *tx) (err error) {
			next, err = t.sweep(p, at)
			return err
		})
		if err != nil {
			return at, err
		}
		return next, nil
	}
	did, err := driver.Prune(p, step, func(p ledger.Prune) error {
		return l.within(ctx, func(t *tx) error {
			return t.exec("forget_refused", nanos(t.now.Add(-p.Remember)), int64(p.Limit))
		})
	})
	if err != nil && !errors.As(err, new(*ledger.UnreadError)) {
		return did, err
	}
	p, _ = p.Checked() // as it was there
	var failed, also error
	did.Papers, failed = l.prunePapers(ctx, p, p.Limit-did.Buried-did.Forgotten)
	did.Changes, also = l.pruneChanges(ctx)
	return did, cmp.Or(failed, also, err)
}

func (t *tx) sweep(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
	s, err := t.l.lookIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	if err != nil {
		return at, err
	}
	if err := t.exec("chronicle_hold"); err != nil {
		return at, err
	}
	rows, at, err := t.sweepable(p, at)
	if err != nil {
		return at, err
	}
	if rows, at.Ended, err = t.sealedOf(rows, at.Ended); err != nil {
		return at, err
	}
	if rows, err = t.ripe(p, rows); err != nil {
		return at, err
	}
	if rows = rows[:min(len(rows), at.AtMost-at.Done)]; len(rows) == 0 {
		return at, nil
	}
	at.Done += len(rows)
	if at.Tombstones {
		return at, t.forget(p, rows)
	}
	return at, t.bury(p, rows)
}

// sealedOf is those of some rows which were found, and of which all events are sealed,
// where that is remembered. Where very much is not sealed the sweep ends.
func (t *tx) sealedOf(rows []row, ended bool) (sealed []row, end bool, err error) {
	unsealed, all, err := t.unsealedWrites()
	if err != nil || all {
		return nil, true, err
	}
	foundTo, err := t.foundTo()
	if err != nil {
		return nil, true, err
	}
	for _, r := range rows {
		if !unsealed[r.n] && string(r.rec.ID) <= foundTo {
			sealed = append(sealed, r)
		}
	}
	return sealed, ended, nil
}

// sweepable is the next rows to be looked at, locked. One that cannot be read
// is left alone.
func (t *tx) sweepable(p ledger.Prune, from driver.Sweep) (rows []row, next driver.Sweep, err error) {
	until := t.now.Add(-p.Keep)
	if from.Tombstones {
		until = t.now.Add(-p.Remember)
	}
	next, seen := from, 0
	args := []any{from.Tombstones, from.Key, from.N, nanos(until), maxPruned}
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["done"], args, func(got pgx.Rows) error {
		for got.Next() {
			seen++
			r, err := scanRow(got)
			if err != nil && !ofOneRow(err) {
				return err
			}
			next.Key, next.N = nanos(r.rec.SettledAt), r.n
			if err != nil {
				next.Left.Leave(r.rec.ID, err)
				continue
			}
			rows = append(rows, r)
		}
		return got.Err()
	})
	next.Ended = seen < maxPruned
	return rows, next, err
}

// ripe is those of some rows whose time has come. What is about a relative that
// cannot be read is kept.
func (t *tx) ripe(p ledger.Prune, rows []row) (ripe []row, err error) {
	var ids, related []string
	for _, r := range rows {
		ids = append(ids, string(r.rec.ID))
		for _, id := range []ledger.ID{r.rec.Parent, r.rec.Child} {
			if id != "" {
				related = append(related, string(id))
			}
		}
	}
	relatives, err := t.relatives(related)
	if err != nil {
		return nil, err
	}
	followed := map[string]bool{}
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["followed"], []any{ids}, func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, id := range found {
			followed[id] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		var of []ledger.Record
		for _, id := range []ledger.ID{r.rec.Parent, r.rec.Child} {
			if other, ok := relatives[id]; ok {
				of = append(of, other)
			}
		}
		if r.rec.Tombstone && p.Forgets(r.rec, t.now, of...) || p.Buries(r.rec, t.now, of...) && !followed[string(r.rec.ID)] {
			ripe = append(ripe, r)
		}
	}
	return ripe, nil
}

// relatives are those of some writes that are there. One that cannot be read
// is the zero record, which is not done.
func (t *tx) relatives(ids []string) (found map[ledger.ID]ledger.Record, err error) {
	found = make(map[ledger.ID]ledger.Record)
	if len(ids) == 0 {
		return found, nil
	}
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["relatives"], []any{ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRow(rows)
			switch {
			case unreadable(err) != "" || errors.Is(err, ledger.ErrVersion):
				found[r.rec.ID] = ledger.Record{}
			case err != nil:
				return err
			default:
				found[r.rec.ID] = r.rec
			}
		}
		return rows.Err()
	})
	return found, err
}

func (t *tx) bury(p ledger.Prune, rows []row) error {
	var marks []*ledger.Mark
	var ids, bodies []string
	var fences, numbers []int64
	for _, r := range rows {
		rec := ledger.Bury(r.rec)
		body, err := encode(rec)
		if err != nil {
			return err
		}
		mark, err := p.Buried(rec, t.now)
		if err != nil {
			return err
		}
		marks = append(marks, mark)
		ids, bodies, fences, numbers = append(ids, string(rec.ID)), append(bodies, body), append(fences, rec.Fence), append(numbers, r.n)
	}
	if err := t.mark(marks...); err != nil {
		return err
	}
	if err := t.exec("bury", ids, bodies, fences); err != nil {
		return err
	}
	return t.exec("forget_events", numbers)
}

func (t *tx) forget(p ledger.Prune, rows []row) error {
	var marks []*ledger.Mark
	var ids, tenants, workflows []string
	var numbers []int64
	for _, r := range rows {
		ids, numbers = append(ids, string(r.rec.ID)), append(numbers, r.n)
		marks = append(marks, p.Forgotten(r.rec, t.now))
		tenants, workflows = append(tenants, r.rec.Tenant), append(workflows, r.rec.Workflow)
	}
	if err := t.mark(marks...); err != nil {
		return err
	}
	if err := t.exec("forget_search", tenants, workflows, numbers); err != nil {
		return err
	}
	if err := t.exec("forget_events", numbers); err != nil {
		return err
	}
	return t.exec("forget", ids)
}
