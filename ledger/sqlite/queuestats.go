package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

const (
	// maxListed bounds the lists of queue stats, as package ledger promises.
	maxListed = 100

	// maxCounted is how many writes in review queue stats read to find damaged ones: more than
	// reviewers have to decide, and some milliseconds.
	maxCounted = 500
)

// QueueStats implements [ledger.Maintenance]. A damaged row that was not read before counts
// as its columns say. Writes in review, which no worker reads, are checked here, up to
// [maxCounted].
func (l *Ledger) QueueStats(ctx context.Context) (s ledger.QueueStats, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) (err error) {
		s.Now = now
		if s.Queues, err = l.queues(conn, s.Now); err != nil {
			return err
		}
		if s.Outbox, s.Oldest, err = l.waiting(conn); err != nil {
			return err
		}
		if s.Oldest.After(s.Now) { // its time is from the caller's clock
			s.Oldest = s.Now
		}
		if s.Refused, err = l.named(conn, "refused_entries"); err != nil {
			return err
		}
		if s.Damaged, err = l.named(conn, "damaged_writes"); err != nil {
			return err
		}
		s.Damaged, err = l.damagedWaiting(conn, s.Damaged)
		return err
	})
	return s, err
}

func (l *Ledger) queues(conn *sqlite.Conn, now time.Time) (queues []ledger.Queue, err error) {
	s, err := l.statement(conn, "queue_stats")
	if err != nil {
		return nil, err
	}
	bindTime(s, 1, now)
	err = each(l.path, s, func() error {
		q := ledger.Queue{
			Tenant: s.ColumnText(0), Destination: s.ColumnText(1), State: ledger.State(s.ColumnText(2)), Count: s.ColumnInt(3),
			Due: s.ColumnInt(4), Leased: s.ColumnInt(5), Orphaned: s.ColumnInt(6), Waiting: s.ColumnInt(7),
			OldestDue: moment(s, 8), OldestCreated: moment(s, 9), Bytes: s.ColumnInt64(10),
		}
		i := slices.IndexFunc(queues, func(o ledger.Queue) bool { return byName(o, q) == 0 })
		if i < 0 {
			queues = append(queues, q)
			return nil
		}
		queues[i] = merged(queues[i], q)
		return nil
	})
	slices.SortFunc(queues, byName)
	return queues, err
}

// Waiting implements [ledger.Ledger].
func (l *Ledger) Waiting(ctx context.Context, tenant string, before [ledger.WaitAges]time.Time) (found []ledger.Waiting, more bool, err error) {
	if err := ledger.CheckWaiting(tenant); err != nil {
		return nil, false, err
	}
	err = l.readNow(ctx, func(conn *sqlite.Conn, _ time.Time) error {
		s, err := l.statement(conn, "waiting")
		if err != nil {
			return err
		}
		s.BindText(1, tenant)
		for i, t := range before {
			bindTime(s, 2+i, t)
		}
		s.BindInt64(5, ledger.MaxWaits+1)
		return each(l.path, s, func() error {
			if more = len(found) == ledger.MaxWaits; more {
				return nil
			}
			kind, err := ledger.ParseWaitKind(s.ColumnText(0))
			one := ledger.Waiting{WaitKind: kind, Count: s.ColumnInt(1)}
			for i := range one.Older {
				one.Older[i] = s.ColumnInt(2 + i)
			}
			found = append(found, one)
			return err
		})
	})
	if err != nil {
		return nil, false, err
	}
	return found, more, nil
}

func byName(a, b ledger.Queue) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.State, b.State))
}

// merged returns the sum of a queue's part with a due time and its part without one.
func merged(q, other ledger.Queue) ledger.Queue {
	q.Count += other.Count
	q.Bytes += other.Bytes
	q.Leased += other.Leased
	q.Waiting += other.Waiting
	if other.OldestCreated.Before(q.OldestCreated) {
		q.OldestCreated = other.OldestCreated
	}
	return q
}

func (l *Ledger) waiting(conn *sqlite.Conn) (count int, oldest time.Time, err error) {
	s, err := l.statement(conn, "outbox_size")
	if err != nil {
		return 0, time.Time{}, err
	}
	err = each(l.path, s, func() error {
		count, oldest = s.ColumnInt(0), moment(s, 1)
		return nil
	})
	return count, oldest, err
}

// damagedWaiting adds the damaged rows among the writes in review.
func (l *Ledger) damagedWaiting(conn *sqlite.Conn, found []ledger.Refused) ([]ledger.Refused, error) {
	s, err := l.statement(conn, "held_or_in_review")
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, maxCounted)
	rows, err := l.more(nil, s)
	for _, r := range rows {
		if reason := unreadable(r.unread); reason != "" && len(found) < maxListed {
			found = append(found, ledger.Refused{Tenant: r.rec.Tenant, ID: r.rec.ID, Reason: reason, At: r.rec.Created})
		}
	}
	return found, err
}

func (l *Ledger) named(conn *sqlite.Conn, query string) (found []ledger.Refused, err error) {
	s, err := l.statement(conn, query)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, maxListed)
	err = each(l.path, s, func() error {
		found = append(found, ledger.Refused{
			Tenant: s.ColumnText(0), ID: ledger.ID(s.ColumnText(1)), Reason: s.ColumnText(2), At: moment(s, 3),
		})
		return nil
	})
	return found, err
}

// moment returns the time in a column, zero for NULL.
func moment(s *sqlite.Stmt, col int) time.Time {
	if s.ColumnIsNull(col) {
		return time.Time{}
	}
	return time.Unix(0, s.ColumnInt64(col)).UTC()
}
