package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// whileLocked makes a call while another session has locked what it needs, and does something
// when the call waits, before that session releases the lock without a change.
func whileLocked(t *testing.T, blocker pgx.Tx, call func() error, then func()) {
	t.Helper()
	result := make(chan error)
	go func() { result <- call() }()
	for waiting := 0; waiting == 0; {
		select {
		case err := <-result:
			t.Fatalf("the call ended before it waited: %v", err)
		default:
		}
		must(t, blocker.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))").Scan(&waiting))
	}
	then()
	must(t, blocker.Rollback(t.Context()))
	must(t, <-result)
}

// waited are changes that find what they need locked: what the other session locks, and the call
// that waits for it.
var waited = map[string]struct {
	reason string
	lock   func(t *testing.T, l *postgres.Ledger, blocker pgx.Tx, res ledger.Reservation)
	call   func(l *postgres.Ledger, res ledger.Reservation) error
}{
	"an append": {
		"another actor has the row locked",
		func(t *testing.T, l *postgres.Ledger, blocker pgx.Tx, res ledger.Reservation) {
			early := res
			early.Events = nil
			_, _, err := l.Reserve(t.Context(), early)
			must(t, err)
			_, err = blocker.Exec(t.Context(), "SELECT FROM ledger_writes FOR UPDATE")
			must(t, err)
		},
		func(l *postgres.Ledger, res ledger.Reservation) error {
			_, err := l.Append(context.Background(), res.Record.ID, 1, res.Events...)
			return err
		},
	},
	"a reservation": {
		"another actor may be just making the same write",
		func(t *testing.T, l *postgres.Ledger, blocker pgx.Tx, res ledger.Reservation) {
			query, args := l.Reserving(t, res)
			_, err := blocker.Exec(t.Context(), query, args...)
			must(t, err)
		},
		func(l *postgres.Ledger, res ledger.Reservation) error {
			_, _, err := l.Reserve(context.Background(), res)
			return err
		},
	},
	"a batch": {
		"another actor has the write locked, and not the document",
		func(t *testing.T, l *postgres.Ledger, blocker pgx.Tx, res ledger.Reservation) {
			early := res
			early.Events = nil
			file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}, Reserve: &early})
			_, err := blocker.Exec(t.Context(), "SELECT FROM ledger_writes FOR UPDATE")
			must(t, err)
		},
		func(l *postgres.Ledger, res ledger.Reservation) error {
			_, err := l.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{page("acme", "p", 1)},
				Append: []ledger.Appending{{ID: res.Record.ID, Fence: 1, Events: res.Events}}})
			return err
		},
	},
	"a claim": {
		"another actor has the row locked",
		func(t *testing.T, l *postgres.Ledger, blocker pgx.Tx, res ledger.Reservation) {
			res.Owner, res.LeaseFor = "", 0
			_, _, err := l.Reserve(t.Context(), res)
			must(t, err)
			_, err = blocker.Exec(t.Context(), "SELECT FROM ledger_writes FOR UPDATE")
			must(t, err)
		},
		func(l *postgres.Ledger, res ledger.Reservation) error {
			lent, err := l.Claim(context.Background(), ledger.Claim{Owner: "w", LeaseFor: res.LeaseFor, Tenant: "acme", ID: res.Record.ID, Early: true})
			if err == nil && len(lent) != 1 {
				err = errors.New("nothing was lent")
			}
			return err
		},
	},
}

// The time that is written with a change is that of the change, and not from before it waited for
// a lock: leases and horizons begin with it.
func TestChangesThatWaitedCountFromThen(t *testing.T) {
	for name, c := range waited {
		t.Run(name, func(t *testing.T) {
			d := fresh(t).movable()
			l := d.open(nil)
			res := reservation(t, asked("w"))
			blocker := begin(t, d.open(nil))
			c.lock(t, l, blocker, res)
			whileLocked(t, blocker, func() error { return c.call(l, res) }, func() { d.move(2 * res.LeaseFor) })
			rec, err := l.Get(t.Context(), "acme", res.Record.ID)
			must(t, err)
			if rec.State != ledger.Sending || !rec.LeaseUntil.After(rec.Now) || name != "a claim" && !rec.LastSend.After(rec.Now) {
				t.Errorf("%s: %s, the lease ends at %s, the send at %s, and it is %s", c.reason, rec.State, rec.LeaseUntil, rec.LastSend, rec.Now)
			}
		})
	}
}

// A transaction that takes longer than its time is valid is made smaller: repeated unchanged, it
// would take as long again.
func TestLateTransactionsAreMadeSmaller(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	var all []ledger.Reservation
	for i := range 5 {
		all = append(all, reservation(t, asked(fmt.Sprint("w", i))))
	}
	blocker := begin(t, d.open(nil))
	query, args := l.Reserving(t, all[3])
	_, err := blocker.Exec(t.Context(), query, args...)
	must(t, err)
	before := l.Stats().Commits
	whileLocked(t, blocker, func() error {
		made, err := l.ReserveTogether(all...)
		if made != len(all) {
			t.Errorf("%d of %d were made", made, len(all))
		}
		return err
	}, func() {
		d.move(time.Minute)
		l.ForgetClock() // an estimate that is still valid costs a transaction that finds the clock moved
	})
	// A half that is late again, on a busy machine, is halved as well.
	if commits := int(l.Stats().Commits - before); commits < 2 || commits == len(all) {
		t.Errorf("%d transactions, want two halves", commits)
	}
}
