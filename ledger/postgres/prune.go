package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxPruned is how many writes one transaction reads to prune them, and keeps locked
	// meanwhile.
	maxPruned = 128

	// recordsKept is how long the record of a transaction is kept (record_transaction). It is
	// wanted for half a minute.
	recordsKept = 24 * time.Hour
)

// Prune implements [ledger.Maintenance]. It also deletes refused entries of the outbox, as long after
// they were enqueued as tombstones after they were settled. Any number of workers may do it at
// once. It fails with [ledger.ErrClock] when the clock is too far before the newest entry.
func (l *Ledger) Prune(ctx context.Context, p ledger.Prune) (ledger.Pruned, error) {
	sweep := func(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
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
	retained := func() (all []driver.Retained, now time.Time, err error) {
		err = l.within(ctx, func(t *tx) (err error) {
			all, err = t.retained()
			now = t.now
			return err
		})
		return all, now, err
	}
	refused := func(p ledger.Prune) error {
		return l.within(ctx, func(t *tx) error {
			holds, err := t.holds()
			if err != nil {
				return err
			}
			if err := t.exec("forget_transactions", nanos(t.now.Add(-recordsKept))); err != nil {
				return err
			}
			return t.exec("delete_refused", nanos(t.now.Add(-p.Remember)), int64(p.Limit), holds.Tenants())
		})
	}
	return driver.Prune(p, driver.Pruning{
		Retained: retained, Sweep: sweep, Refused: refused,
		Documents: func(p ledger.Prune, most int) (int, error) { return l.pruneDocuments(ctx, p, most) },
		Changes:   func() (int, error) { return l.pruneChanges(ctx) },
	})
}

// retained returns the tenants and destinations with writes that may become tombstones.
func (t *tx) retained() (all []driver.Retained, err error) {
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("compactable_parties"), nil, func(rows pgx.Rows) error {
		for rows.Next() {
			var of driver.Retained
			var oldest int64
			if err := rows.Scan(&of.Tenant, &of.Destination, &oldest); err != nil {
				return err
			}
			of.Oldest = at(oldest)
			all = append(all, of)
		}
		return rows.Err()
	})
	return all, err
}

func (t *tx) sweep(p ledger.Prune, at driver.Sweep) (driver.Sweep, error) {
	s, err := t.l.stateIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	if err != nil {
		return at, err
	}
	sealing, err := t.held()
	if err != nil {
		return at, err
	}
	rows, at, err := t.sweepable(p, at)
	if err != nil {
		return at, err
	}
	if rows, at.Ended, err = t.sealedOf(rows, at.Ended, sealing); err != nil {
		return at, err
	}
	if p.DryRun {
		return t.count(p, at, rows, sealing)
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
	return at, t.compact(p, rows)
}

// count counts the rows that would be pruned.
func (t *tx) count(p ledger.Prune, at driver.Sweep, rows []row, sealing bool) (driver.Sweep, error) {
	var err error
	if !at.Tombstones {
		if rows, err = t.ripe(p, rows); err != nil {
			return at, err
		}
	}
	forgets, err := t.forgetsAlso(p, rows, sealing)
	if err != nil {
		return at, err
	}
	var numbers []int64
	for _, r := range rows {
		if at.Tombstones && !forgets[r.rec.ID] {
			continue
		}
		if !at.Tombstones && forgets[r.rec.ID] {
			at.Forgotten++
		}
		at.Done++
		at.Bytes += r.rec.Contents()
		numbers = append(numbers, r.n)
	}
	var size int64
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("events_size"), []any{numbers}, func(rows pgx.Rows) (err error) {
		size, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	})
	at.Bytes += size
	return at, err
}

// forgetsAlso returns those of some rows, which are tombstones or will be, that are deleted when
// all is pruned.
func (t *tx) forgetsAlso(p ledger.Prune, rows []row, sealing bool) (forgets map[ledger.ID]bool, err error) {
	holds, err := t.holds()
	if err != nil {
		return nil, err
	}
	all, err := t.surroundings(rows)
	if err != nil {
		return nil, err
	}
	var others []row
	for _, of := range all {
		others = append(others, of.rows...)
	}
	if others, _, err = t.sealedOf(others, false, sealing); err != nil {
		return nil, err
	}
	if others, err = t.ripe(p, others); err != nil {
		return nil, err
	}
	ripe, forgets := map[ledger.ID]bool{}, map[ledger.ID]bool{}
	for _, r := range others {
		ripe[r.rec.ID] = true
	}
	for i, r := range rows {
		if _, held := holds.On(r.rec, all[i].relatives...); held {
			continue
		}
		forgets[r.rec.ID], _ = p.ForgetsAlso(r.rec, t.now, func(other ledger.Record) (bool, error) { return ripe[other.ID], nil }, all[i].relatives...)
	}
	return forgets, nil
}

// sealedOf returns those rows that have no unsealed events, where a sealer has begun. Where too
// much is not sealed the sweep ends.
func (t *tx) sealedOf(rows []row, ended, sealing bool) (sealed []row, end bool, err error) {
	if !sealing {
		return rows, ended, nil
	}
	unsealed, all, err := t.unsealedWrites()
	if err != nil || all {
		return nil, true, err
	}
	for _, r := range rows {
		if !unsealed[r.n] {
			sealed = append(sealed, r)
		}
	}
	return sealed, ended, nil
}

// sweepable returns the next rows to read, locked. A row that cannot be read is left alone.
func (t *tx) sweepable(p ledger.Prune, from driver.Sweep) (rows []row, next driver.Sweep, err error) {
	next, seen := from, 0
	query, args := "tombstones", []any{from.Key, from.N, nanos(from.Until(p, t.now)), maxPruned}
	if !from.Tombstones {
		query, args = "compactable", append(args, from.Retained.Tenant, from.Retained.Destination)
	}
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text(query), args, func(got pgx.Rows) error {
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

// ripe returns those rows that may be pruned now. A write with an unreadable relative is kept.
func (t *tx) ripe(p ledger.Prune, rows []row) (ripe []row, err error) {
	holds, err := t.holds()
	if err != nil {
		return nil, err
	}
	all, err := t.surroundings(rows)
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		of := all[i]
		_, held := holds.On(r.rec, of.relatives...)
		if !held && (r.rec.Tombstone && p.Forgets(r.rec, t.now, of.relatives...) || p.Compacts(r.rec, t.now, of.relatives...) && !of.followed) {
			ripe = append(ripe, r)
		}
	}
	return ripe, nil
}

// surrounding is what must be done before a write can be pruned: the write that it compensates
// and the one that compensates it, where they exist, and whether another write waits for it.
type surrounding struct {
	relatives []ledger.Record
	rows      []row // of the relatives that can be read
	followed  bool
}

// surroundings returns those of some rows, in their order.
func (t *tx) surroundings(rows []row) (all []surrounding, err error) {
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
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("queued_behind"), []any{ids}, func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, id := range found {
			followed[id] = true
		}
		return err
	})
	for _, r := range rows {
		of := surrounding{followed: followed[string(r.rec.ID)]}
		for _, id := range []ledger.ID{r.rec.Parent, r.rec.Child} {
			if other, ok := relatives[id]; ok {
				of.relatives = append(of.relatives, other.rec)
				if other.rec.ID != "" {
					of.rows = append(of.rows, other)
				}
			}
		}
		all = append(all, of)
	}
	return all, err
}

// relatives returns the existing ones of some writes. One that cannot be read is the zero record,
// which is not done.
func (t *tx) relatives(ids []string) (found map[ledger.ID]row, err error) {
	found = make(map[ledger.ID]row)
	if len(ids) == 0 {
		return found, nil
	}
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("find_rows"), []any{ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRow(rows)
			switch {
			case unreadable(err) != "" || errors.Is(err, ledger.ErrVersion):
				found[r.rec.ID] = row{}
			case err != nil:
				return err
			default:
				found[r.rec.ID] = r
			}
		}
		return rows.Err()
	})
	return found, err
}

func (t *tx) compact(p ledger.Prune, rows []row) error {
	var marks []*ledger.Mark
	var ids, bodies []string
	var fences, numbers []int64
	for _, r := range rows {
		rec := ledger.Compact(r.rec)
		body, err := encode(rec)
		if err != nil {
			return err
		}
		mark, err := p.Compacted(rec, t.now)
		if err != nil {
			return err
		}
		marks = append(marks, mark)
		ids, bodies, fences, numbers = append(ids, string(rec.ID)), append(bodies, body), append(fences, rec.Fence), append(numbers, r.n)
	}
	if err := t.mark(marks...); err != nil {
		return err
	}
	if err := t.exec("compact", ids, bodies, fences); err != nil {
		return err
	}
	if err := t.removeTerms(rows[0].rec.Tenant, numbers); err != nil {
		return err
	}
	return t.exec("delete_events", numbers)
}

// removeTerms deletes all terms of some writes of a tenant.
func (t *tx) removeTerms(tenant string, numbers []int64) error {
	lots := make(map[int64][]int64)
	for _, n := range numbers {
		lots[n/ledger.TermLot] = append(lots[n/ledger.TermLot], n)
	}
	for _, lot := range slices.Sorted(maps.Keys(lots)) {
		if err := t.exec("delete_terms", lot, tenant, lots[lot]); err != nil {
			return err
		}
	}
	return nil
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
	if err := t.exec("delete_search", tenants, workflows, numbers); err != nil {
		return err
	}
	if err := t.exec("delete_events", numbers); err != nil {
		return err
	}
	return t.exec("delete_writes", ids)
}
