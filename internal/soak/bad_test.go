//go:build unix

package soak

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// hear reads until the child prints a line that contains the text.
func (p *process) hear(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(p.next(t), text) {
	}
}

// queue puts a write into the ledger, for any worker.
func (s *scene) queue(w intent.WriteIntent) ledger.ID {
	s.t.Helper()
	rec, err := ledger.NewRecord(w)
	s.must(err)
	_, _, err = s.book.Reserve(s.ctx, ledger.Reservation{Record: rec})
	s.must(err)
	return rec.ID
}

// once checks that each of the records was written exactly once.
func (s *scene) once(records ...string) {
	s.t.Helper()
	want := map[string][]int{}
	for _, record := range records {
		want[record] = []int{1}
	}
	if diff := cmp.Diff(want, s.applied()); diff != "" {
		s.t.Errorf("the destination applied (-want +got):\n%s", diff)
	}
}

// TestOutboxRowDamagedByHand: an unreadable entry is refused with its reason, and everything else
// continues.
func TestOutboxRowDamagedByHand(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	bad := changeID("bad", 1)
	s.enqueue(change("bad", 1), change("good", 1))
	s.must(s.server.Exec(s.name, "UPDATE ledger_outbox SET intent = '{' WHERE id = '"+string(bad)+"'"))
	deaf(s.worker())
	s.enqueue(change("later", 1))
	s.verified(changeID("good", 1))
	s.verified(changeID("later", 1))
	_, err := s.book.Get(s.ctx, tenant, bad)
	var refused *ledger.RefusedError
	if !errors.As(err, &refused) || refused.Reason == "" {
		t.Errorf("the damaged entry: %v; want that it is refused, and why", err)
	}
	stats, err := s.book.QueueStats(s.ctx)
	s.must(err)
	if len(stats.Refused) != 1 || stats.Refused[0].ID != bad || stats.Outbox != 0 {
		t.Errorf("the stats show %+v and %d in the outbox", stats.Refused, stats.Outbox)
	}
	t.Log(err, refused)
	s.once("good", "later")
}

// TestLedgerRowDamagedByHand: a due write with an unreadable row is skipped and listed, and
// everything else continues. So does the write when an operator has repaired its row.
func TestLedgerRowDamagedByHand(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	bad := s.queue(change("bad", 1))
	good := s.queue(change("good", 1))
	s.must(s.server.Exec(s.name, "CREATE TABLE kept AS SELECT id, body FROM ledger_writes; UPDATE ledger_writes SET body = '{' WHERE id = '"+string(bad)+"'"))
	deaf(s.worker())
	s.verified(good)
	s.enqueue(change("later", 1))
	s.verified(changeID("later", 1))
	stats, err := s.book.QueueStats(s.ctx)
	s.must(err)
	if len(stats.Damaged) != 1 || stats.Damaged[0].ID != bad || stats.Damaged[0].Reason == "" {
		t.Errorf("the stats show as damaged %+v; want %s", stats.Damaged, bad)
	}
	if _, err := s.book.Get(s.ctx, tenant, bad); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("the damaged row: %v; want that the ledger is corrupt", err)
	}
	s.once("good", "later")
	s.must(s.server.Exec(s.name, "UPDATE ledger_writes w SET body = kept.body, damaged = NULL FROM kept WHERE w.id = kept.id AND w.body = '{'"))
	s.verified(bad)
	s.once("bad", "good", "later")
}

// TestDatabaseReadOnlyForAWhile: nothing is lost and nothing is sent twice
// while nothing can be recorded.
func TestDatabaseReadOnlyForAWhile(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	w := s.worker()
	s.enqueue(change("before", 1))
	s.verified(changeID("before", 1))
	s.readOnly("on")
	s.enqueue(change("while", 1)) // which insists on writing; the worker does not
	w.hear(t, "cannot be worked on")
	conn, err := pgx.Connect(s.ctx, s.dsn)
	s.must(err)
	err = pgx.BeginFunc(s.ctx, conn, func(tx pgx.Tx) error {
		_, err := postgres.Enqueue(s.ctx, tx, change("refused", 1))
		return err
	})
	if err == nil {
		t.Error("enqueued into a database that is read-only")
	}
	t.Log(err)
	s.must(conn.Close(s.ctx))
	s.readOnly("off")
	deaf(w)
	s.enqueue(change("after", 1))
	s.verified(changeID("while", 1))
	s.verified(changeID("after", 1))
	s.once("before", "while", "after")
}

// readOnly makes the database read-only, or not, for every connection.
func (s *scene) readOnly(on string) {
	s.t.Helper()
	s.must(s.server.Exec("postgres", "ALTER DATABASE "+s.name+" SET default_transaction_read_only = "+on))
	s.must(s.server.Exec("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+s.name+"'"))
}

// TestOutOfConnectionsForAWhile: the same, while the database takes no more
// connections.
func TestOutOfConnectionsForAWhile(t *testing.T) {
	const most = 14
	s := newScene(t, pgtest.Options{Settings: map[string]string{"max_connections": strconv.Itoa(most), "superuser_reserved_connections": "0"}})
	w := s.worker()
	s.enqueue(change("before", 1))
	s.verified(changeID("before", 1))
	s.queue(change("while", 1))
	free := s.hog(most)
	w.hear(t, "cannot be worked on")
	if _, err := s.book.Get(s.ctx, tenant, changeID("while", 1)); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a look-up without a connection: %v; want that the ledger is unavailable", err)
	} else {
		t.Log(err)
	}
	free()
	deaf(w)
	s.enqueue(change("after", 1))
	s.verified(changeID("while", 1))
	s.verified(changeID("after", 1))
	s.once("before", "while", "after")
}

// hog takes all connections there are, including most of those of others, until it must release
// them. It counts its own: a connection that is just being opened is not visible yet.
func (s *scene) hog(most int) (free func()) {
	s.t.Helper()
	var all []*pgx.Conn
	dsn := s.server.DSN("postgres") + " application_name=hog"
	free = func() {
		if len(all) == 0 {
			return
		}
		ctx := context.WithoutCancel(s.ctx)
		for _, conn := range all[1:] {
			_ = conn.Close(ctx) // it is of no further use
		}
		for left := len(all); left > 1; { // a server process ends a moment after its connection
			s.must(all[0].QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hog'`).Scan(&left))
		}
		_ = all[0].Close(ctx)
		all = nil
	}
	s.t.Cleanup(free)
	for len(all) < most {
		conn, err := pgx.Connect(s.ctx, dsn)
		if err == nil {
			all = append(all, conn)
			continue
		}
		var full *pgconn.PgError
		if !errors.As(err, &full) || full.Code != "53300" || len(all) == 0 {
			s.t.Fatal(err)
		}
		_, err = all[0].Exec(s.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND application_name <> 'hog'`)
		s.must(err)
	}
	return free
}

// TestDestinationRemovedForAWhile: writes for a destination that is unknown to every worker wait
// for it, and report so; the others continue.
func TestDestinationRemovedForAWhile(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	elsewhere := func(record string) intent.WriteIntent {
		w := change(record, 1)
		w.Destination = "elsewhere"
		return w
	}
	w := s.worker("SOAK_DESTINATIONS=elsewhere")
	s.enqueue(change("a", 1), elsewhere("b"), change("c", 1))
	deaf(w)
	s.verified(changeID("b", 1))
	for _, record := range []string{"a", "c"} {
		rec := s.until(changeID(record, 1), "put back", func(r ledger.Record) bool { return r.Rule == "unworkable" })
		if rec.State != ledger.Queued || rec.Due.IsZero() || !strings.Contains(rec.Reason, `"orders"`) {
			t.Errorf("%s: %s, due %s: %s; want that it waits for a destination that it names", record, rec.Phase(), rec.Due, rec.Reason)
		}
		t.Log(rec.Reason)
	}
	s.enqueue(elsewhere("d"))
	s.verified(changeID("d", 1))
	s.must(w.in.Close())
	deaf(s.worker("SOAK_DESTINATIONS=elsewhere orders"))
	s.enqueue(change("e", 1))
	for _, record := range []string{"a", "c"} {
		s.expedite(changeID(record, 1)) // else in a minute
		s.verified(changeID(record, 1))
	}
	s.verified(changeID("e", 1))
	s.once("a", "b", "c", "d", "e")
}
