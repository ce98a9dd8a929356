package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

var _ ledger.Surveyor = (*Ledger)(nil)

// Survey implements [ledger.Surveyor]. What it lists is not all of one moment. A
// damaged row that nobody has met yet counts as what its columns say; those that
// wait for a person, whom nobody else meets, are looked at here, up to
// [maxLooked].
func (l *Ledger) Survey(ctx context.Context) (s ledger.Survey, err error) {
	if err := l.queues(ctx, &s); err != nil {
		return ledger.Survey{}, err
	}
	err = l.read(ctx, l.sql["outbox"], nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			var ns int64
			err := r.Scan(&s.Outbox, &ns)
			s.Oldest = at(ns)
			return struct{}{}, err
		})
		return err
	})
	if err == nil {
		s.Refused, err = l.listed(ctx, "refused")
	}
	if err == nil {
		s.Damaged, err = l.listed(ctx, "broken")
	}
	if err == nil {
		s.Damaged, err = l.damagedWaiting(ctx, s.Damaged)
	}
	if err != nil {
		return ledger.Survey{}, err
	}
	return s, nil
}

func (l *Ledger) queues(ctx context.Context, into *ledger.Survey) error {
	return l.read(ctx, l.sql["survey"], nil, func(rows pgx.Rows) error {
		into.Queues = nil
		var s state
		for rows.Next() {
			var q ledger.Queue
			var due, created int64
			err := rows.Scan(append(s.dest(), &q.Tenant, &q.Destination, (*string)(&q.State), &q.Count,
				&q.Due, &q.Leased, &q.Orphaned, &q.Behind, &due, &created)...)
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

func (l *Ledger) listed(ctx context.Context, statement string) (found []ledger.Refused, err error) {
	err = l.read(ctx, l.sql[statement], []any{int64(maxListed)}, func(rows pgx.Rows) error {
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

// damagedWaiting adds the damaged rows of those that wait for a person.
func (l *Ledger) damagedWaiting(ctx context.Context, found []ledger.Refused) ([]ledger.Refused, error) {
	rows, err := l.rows(ctx, "survey_persons", int64(maxLooked))
	for _, r := range rows {
		if reason := unreadable(r.unread); reason != "" && len(found) < maxListed {
			found = append(found, ledger.Refused{Tenant: r.rec.Tenant, ID: r.rec.ID, Reason: reason, At: r.rec.Created})
		}
	}
	return found, err
}
