package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// sell enqueues updates of one record in order, through connections that are cut. Its own table
// records what was committed.
func sell(l *postgres.Ledger, record string, updates int) {
	for n := 0; n < updates; {
		try(l, record, n, false)
		try(l, record, n, true)
		for {
			var sold bool
			err := l.Pool().QueryRow(context.Background(), "SELECT EXISTS (SELECT 1 FROM orders WHERE record = $1 AND n = $2)", record, n).Scan(&sold)
			if err == nil {
				if sold {
					n++
				}
				break
			}
		}
	}
}

// try is one transaction of sell, which may fail anywhere.
func try(l *postgres.Ledger, record string, n int, commit bool) {
	ctx := context.Background()
	tx, err := l.Pool().Begin(ctx)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback(ctx) }()
	_, err = tx.Exec(ctx, "INSERT INTO orders VALUES ($1, $2)", record, n)
	if err == nil {
		_, err = postgres.Enqueue(ctx, tx, about(record, n))
	}
	if err == nil && commit {
		_ = tx.Commit(ctx)
	}
}

// deliver claims and settles until the expected number of writes is settled.
func deliver(t *testing.T, l *postgres.Ledger, name string, settled *atomic.Int64, all int64, cut func()) {
	ctx := context.Background()
	for settled.Load() < all {
		recs, err := l.Claim(ctx, ledger.Claim{Owner: name, LeaseFor: 300 * time.Millisecond, Limit: 3})
		if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("claim: %v", err)
			return
		}
		for _, rec := range recs {
			_, err := l.Append(ctx, rec.ID, rec.Fence, whole...)
			if errors.Is(err, ledger.ErrUnsure) {
				var after ledger.Record
				for after, err = l.Get(ctx, rec.Tenant, rec.ID); errors.Is(err, ledger.ErrUnavailable); {
					after, err = l.Get(ctx, rec.Tenant, rec.ID)
				}
				if after.State != ledger.Settled || after.Fence != rec.Fence {
					continue
				}
			}
			switch {
			case err == nil:
				if n := settled.Add(1); n%10 == 0 {
					cut()
				}
			case !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrFenced):
				t.Errorf("append: %v", err)
			}
		}
	}
}

// Many workers take in what many callers enqueue, while all their connections are cut again and
// again: every committed write exists once, in the order of its record, and no other does.
func TestOutboxUnderFire(t *testing.T) {
	const records, updates = 4, 12
	d := fresh(t)
	first, second := d.open(nil), d.open(nil)
	d.exec("CREATE TABLE orders (record TEXT, n INT, PRIMARY KEY (record, n))")
	cut := func() {
		_ = d.server.Exec(d.name, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	var wg sync.WaitGroup
	var settled atomic.Int64
	for r := range records {
		wg.Go(func() { sell(first, fmt.Sprint("r", r), updates) })
	}
	for i, l := range []*postgres.Ledger{first, first, second, second} {
		wg.Go(func() { deliver(t, l, fmt.Sprint("worker ", i), &settled, records*updates, cut) })
	}
	wg.Wait()
	ctx := context.Background()
	all, err := first.List(ctx, ledger.Filter{Tenant: "acme", Limit: 1000})
	if err != nil || len(all) != records*updates {
		t.Errorf("%d writes, error %v; want %d", len(all), err, records*updates)
	}
	for r := range records {
		var before ledger.Record
		for n := range updates {
			rec, err := first.Get(ctx, "acme", idOf(about(fmt.Sprint("r", r), n)))
			must(t, err)
			if rec.Settlement != ledger.Verified || rec.FirstSend.Before(before.SettledAt) {
				t.Errorf("record %d: update %d is %s, sent %s; the one before was settled %s", r, n, rec.Phase(), rec.FirstSend, before.SettledAt)
			}
			before = rec
		}
	}
	if s, err := first.QueueStats(ctx); err != nil || s.Outbox != 0 || len(s.Queues) != 0 || len(s.Refused) != 0 {
		t.Errorf("stats %+v, error %v", s, err)
	}
}
