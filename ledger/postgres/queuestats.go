package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxListed bounds the lists of queue stats, as package ledger promises.
	maxListed = 100

	// maxReviewRead is how many writes in review queue stats read to find damaged ones: more than
	// reviewers have to decide, and some milliseconds.
	maxReviewRead = 500
)

// QueueStats implements [ledger.Maintenance]. Its lists are not all from one moment. A
// damaged row that was not read before counts as its columns say. Writes in review, which no
// worker reads, are checked here, up to [maxReviewRead].
func (l *Ledger) QueueStats(ctx context.Context) (s ledger.QueueStats, err error) {
	if err := l.queues(ctx, &s); err != nil {
		return ledger.QueueStats{}, err
	}
	err = l.read(ctx, l.sql.Text("outbox_size"), nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			var ns int64
			err := r.Scan(&s.Outbox, &ns)
			s.Oldest = at(ns)
			return struct{}{}, err
		})
		return err
	})
	if err == nil {
		s.Refused, err = l.listed(ctx, "refused_entries")
	}
	if err == nil {
		s.Damaged, err = l.listed(ctx, "damaged_writes")
	}
	if err == nil {
		s.Damaged, err = l.damagedWaiting(ctx, s.Damaged)
	}
	if err != nil {
		return ledger.QueueStats{}, err
	}
	return s, nil
}

func (l *Ledger) queues(ctx context.Context, into *ledger.QueueStats) error {
	return l.read(ctx, l.sql.Text("queue_stats"), nil, func(rows pgx.Rows) error {
		into.Queues = nil
		var s state
		for rows.Next() {
			var q ledger.Queue
			var due, created int64
			err := rows.Scan(append(s.dest(), &q.Tenant, &q.Destination, (*string)(&q.State), &q.Count,
				&q.Due, &q.Leased, &q.Orphaned, &q.Waiting, &due, &created, &q.Bytes)...)
			if err != nil {
				return err
			}
			if q.Count > 0 {
				q.OldestDue, q.OldestCreated = at(due), at(created)
				into.Queues = append(into.Queues, q)
			}
		}
		into.Now = at(s.now)
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
}

// Waiting implements [ledger.Ledger].
func (l *Ledger) Waiting(ctx context.Context, tenant string, before [ledger.WaitAges]time.Time) (found []ledger.Waiting, more bool, err error) {
	if err := ledger.CheckWaiting(tenant); err != nil {
		return nil, false, err
	}
	args := []any{tenant}
	for _, t := range before {
		args = append(args, nanos(t))
	}
	err = l.read(ctx, l.sql.Text("waiting"), append(args, int64(ledger.MaxWaits+1)), func(rows pgx.Rows) error {
		found, more = nil, false
		var s state
		for rows.Next() {
			var text string
			var one ledger.Waiting
			if err := rows.Scan(append(s.dest(), &text, &one.Count, &one.Older[0], &one.Older[1], &one.Older[2])...); err != nil {
				return err
			}
			if one.Count == 0 {
				continue
			}
			if more = len(found) == ledger.MaxWaits; more {
				break
			}
			if one.WaitKind, err = ledger.ParseWaitKind(text); err != nil {
				return err
			}
			found = append(found, one)
		}
		return cmp.Or(rows.Err(), l.usable(s))
	})
	if err != nil {
		return nil, false, err
	}
	return found, more, nil
}

func (l *Ledger) listed(ctx context.Context, statement string) (found []ledger.Refused, err error) {
	err = l.read(ctx, l.sql.Text(statement), []any{int64(maxListed)}, func(rows pgx.Rows) error {
		found = nil
		for rows.Next() {
			var r ledger.Refused
			var ns int64
			if err := rows.Scan(&r.Tenant, (*string)(&r.ID), &r.Reason, &ns); err != nil {
				return err
			}
			r.At = at(ns)
			found = append(found, r)
		}
		return rows.Err()
	})
	return found, err
}

// damagedWaiting adds the damaged rows among the writes in review.
func (l *Ledger) damagedWaiting(ctx context.Context, found []ledger.Refused) ([]ledger.Refused, error) {
	rows, err := l.rows(ctx, "held_or_in_review", int64(maxReviewRead))
	for _, r := range rows {
		if reason := unreadable(r.unread); reason != "" && len(found) < maxListed {
			found = append(found, ledger.Refused{Tenant: r.rec.Tenant, ID: r.rec.ID, Reason: reason, At: r.rec.Created})
		}
	}
	return found, err
}
