package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// reader follows a ledger.
type reader struct {
	l        *postgres.Ledger
	q        ledger.Following
	received []ledger.Change
}

// catchUp follows until nothing more comes.
func (r *reader) catchUp() error {
	for {
		changes, next, err := r.l.Follow(context.Background(), r.q)
		if err != nil {
			return err
		}
		if r.received, r.q.After = append(r.received, changes...), next; len(changes) == 0 {
			return nil
		}
	}
}

// workflows returns those that were published as settled, in order.
func (r *reader) workflows(of map[ledger.ID]string) (names []string) {
	for _, c := range r.received {
		names = append(names, of[c.ID])
	}
	return names
}

// stalled makes the transaction that publishes a write wait, after it took its number, until it
// is released.
func (d *database) stalled(id ledger.ID) (release func()) {
	d.t.Helper()
	d.exec(fmt.Sprintf(`CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
		CREATE TRIGGER stall AFTER INSERT ON ledger_unpublished FOR EACH ROW WHEN (NEW.write = '%s') EXECUTE FUNCTION stall()`, id))
	conn, err := pgx.Connect(context.Background(), d.dsn())
	must(d.t, err)
	_, err = conn.Exec(context.Background(), "SELECT pg_advisory_lock(7)")
	must(d.t, err)
	return func() { must(d.t, conn.Close(context.Background())) }
}

// waits until that many transactions wait for a lock.
func (d *database) waits(l *postgres.Ledger, n int) {
	d.t.Helper()
	for range 30_000 {
		var waiting int
		must(d.t, l.Pool().QueryRow(context.Background(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting))
		if waiting >= n {
			return
		}
	}
	d.t.Fatal("no caller waits")
}

// A change whose transaction took its number first and was committed last reaches followers that
// had passed that number by then, and later followers get it in the same place.
func TestCommitsOutOfOrder(t *testing.T) {
	d := fresh(t)
	l, other := d.open(nil), d.open(nil)
	of, recs := map[ledger.ID]string{}, map[string]ledger.Record{}
	for _, name := range []string{"first", "second", "third"} {
		rec, _, err := l.Reserve(t.Context(), reservation(t, asked(name)))
		must(t, err)
		of[rec.ID], recs[name] = name, rec
	}
	release := d.stalled(recs["first"].ID)
	settle := func(l *postgres.Ledger, name string) error {
		_, err := l.Append(t.Context(), recs[name].ID, recs[name].Fence, settling...)
		return err
	}
	stalled := make(chan error)
	go func() { stalled <- settle(other, "first") }()
	d.waits(l, 1)
	must(t, settle(l, "second"))
	early := &reader{l: l}
	must(t, early.catchUp())
	if diff := cmp.Diff([]string{"second"}, early.workflows(of)); diff != "" {
		t.Fatalf("before the first was committed (-want +got):\n%s", diff)
	}
	release()
	must(t, <-stalled)
	must(t, settle(l, "third"))
	late := &reader{l: other}
	for _, r := range []*reader{early, late} {
		must(t, r.catchUp())
		if diff := cmp.Diff([]string{"second", "first", "third"}, r.workflows(of)); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
	}
}

// A transaction that runs for long, in any database of the server, does not delay followers.
func TestLongTransactionsDelayNoOther(t *testing.T) {
	d, elsewhere := fresh(t), fresh(t)
	l := d.open(nil)
	for _, where := range []*database{d, elsewhere} {
		blocker := begin(t, where.open(nil))
		_, err := blocker.Exec(t.Context(), "CREATE TABLE unfinished (n INT)")
		must(t, err)
	}
	must(t, pair(l, reservation(t, asked("w"))))
	r := &reader{l: l}
	if err := r.catchUp(); err != nil || len(r.received) != 1 {
		t.Errorf("got %d, error %v", len(r.received), err)
	}
}

// Another session keeps the lock under which changes are numbered: followers get what is
// numbered, and do not wait for the rest.
func TestFollowWhileLocked(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("w1"))))
	r := &reader{l: l}
	must(t, r.catchUp())
	blocker := begin(t, l)
	_, err := blocker.Exec(t.Context(), "UPDATE ledger_published SET last = last")
	must(t, err)
	must(t, pair(l, reservation(t, asked("w2"))))
	r.q.After = ""
	if err := r.catchUp(); err != nil || len(r.received) != 2 { // the first one, twice
		t.Errorf("got %d, error %v", len(r.received), err)
	}
	must(t, blocker.Rollback(t.Context()))
	if err := r.catchUp(); err != nil || len(r.received) != 3 {
		t.Errorf("got %d, error %v; want the second one now", len(r.received), err)
	}
}

// publishedAll follows from the beginning, and compares the changes with the events of the writes that
// were made.
func publishedAll(t *testing.T, l *postgres.Ledger, settled []string) []ledger.Change {
	t.Helper()
	r := &reader{l: l}
	must(t, r.catchUp())
	count := map[ledger.ID]int{}
	for _, c := range r.received {
		count[c.ID]++
	}
	for _, name := range settled {
		if id := reservation(t, asked(name)).Record.ID; count[id] != 1 {
			t.Errorf("%s was published %d times", name, count[id])
		}
	}
	for id := range count {
		rec, err := l.Get(t.Context(), "acme", id)
		if must(t, err); rec.State != ledger.Settled || count[id] != 1 {
			t.Errorf("%s is %s, and was published %d times", rec.Workflow, rec.Phase(), count[id])
		}
	}
	return r.received
}

// Several processes write, each commit in its own time, while several others follow: all get
// everything, once, in one order.
func TestFollowTogether(t *testing.T) {
	d := fresh(t)
	d.open(nil)
	d.exec(`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(random() * 0.02); RETURN NEW; END $$;
		CREATE TRIGGER dawdle AFTER INSERT ON ledger_unpublished FOR EACH ROW EXECUTE FUNCTION dawdle()`)
	const writers, each = 8, 25
	var wrote, read sync.WaitGroup
	var done atomic.Bool
	readers := make([]*reader, 3)
	for i := range readers {
		readers[i] = &reader{l: d.open(nil), q: ledger.Following{Limit: 1 + 7*i}}
		read.Go(func() {
			for !done.Load() {
				if err := readers[i].catchUp(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var names []string
	for g := range writers {
		l := d.open(nil)
		for i := range each {
			names = append(names, fmt.Sprint("w", g, "-", i))
		}
		wrote.Go(func() {
			for i := range each {
				if err := pair(l, reservation(t, asked(fmt.Sprint("w", g, "-", i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wrote.Wait()
	done.Store(true)
	read.Wait()
	all := publishedAll(t, d.open(nil), names)
	for i, r := range readers {
		must(t, r.catchUp())
		if diff := cmp.Diff(all, r.received); diff != "" {
			t.Errorf("reader %d differs from one who came later (-later +reader):\n%s", i, diff)
		}
	}
}

// The database is killed meanwhile. Earlier changes keep their places afterwards, and nothing is
// left out.
func TestDatabaseKilledWhileFollowing(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	reported := map[string]string{}
	readers := []*reader{{l: l}, {l: d.open(nil), q: ledger.Following{Limit: 3}}}
	for round := range 2 {
		var wg sync.WaitGroup
		for _, r := range readers {
			wg.Go(func() {
				err := error(nil)
				for err == nil {
					err = r.catchUp()
				}
				if !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("follow: error %v, want unavailable", err)
				}
			})
		}
		storm(t, l, fmt.Sprint("r", round), reported, func() { must(t, s.Kill()) })
		wg.Wait()
		must(t, s.Recover())
	}
	maps.DeleteFunc(reported, func(_, word string) bool { return word != "settled" })
	all := publishedAll(t, l, slices.Collect(maps.Keys(reported)))
	for i, r := range readers {
		must(t, r.catchUp())
		if diff := cmp.Diff(all, r.received); diff != "" {
			t.Errorf("reader %d differs from one who came later (-later +reader):\n%s", i, diff)
		}
	}
}

// Another process is notified of a change.
func TestNotifiedByOtherProcesses(t *testing.T) {
	d := fresh(t)
	here, there := d.open(nil), d.open(nil)
	changed, woken := there.Changed(t.Context()), there.Woken(t.Context())
	awaitSignal(t, changed, "the first read")
	awaitSignal(t, woken, "the first read")
	d.listens(here)
	must(t, pair(here, reservation(t, asked("w1"))))
	awaitSignal(t, changed, "settled in another process")
	select {
	case <-woken:
		t.Error("workers were woken by what is settled")
	default:
	}
}

// A history of a week is counted from an index, and pruning reads no more than it deletes.
func TestOldChanges(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("w"))))
	old, young := time.Now().Add(-8*24*time.Hour).UnixNano(), time.Now().Add(-time.Hour).UnixNano()
	d.exec(fmt.Sprintf(`INSERT INTO ledger_unpublished (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
		SELECT CASE WHEN i <= 2500 THEN %d ELSE %d END, 'acme', i::text, 1, 'settled', 'verified', '', 1, 1, FALSE FROM generate_series(1, 5000) AS i`, old, young))
	d.exec("UPDATE ledger_unpublished SET at = " + fmt.Sprint(old) + " WHERE write LIKE 'wr_%'")
	did, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: time.Hour})
	if err != nil || did.Changes != 2501 {
		t.Errorf("%d changes were pruned, error %v; want 2501", did.Changes, err)
	}
	r := &reader{l: l, q: ledger.Following{Limit: 1000}}
	if err := r.catchUp(); err != nil || len(r.received) != 2500 {
		t.Errorf("got %d, error %v; want 2500", len(r.received), err)
	}
}
