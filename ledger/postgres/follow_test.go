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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// reader follows a ledger.
type reader struct {
	l     *postgres.Ledger
	q     ledger.Following
	heard []ledger.Change
}

// catchUp follows until nothing more comes.
func (r *reader) catchUp() error {
	for {
		changes, next, err := r.l.Follow(context.Background(), r.q)
		if err != nil {
			return err
		}
		if r.heard, r.q.After = append(r.heard, changes...), next; len(changes) == 0 {
			return nil
		}
	}
}

// workflows are those of which was heard that they are settled, in order.
func (r *reader) workflows(of map[ledger.ID]string) (names []string) {
	for _, c := range r.heard {
		names = append(names, of[c.ID])
	}
	return names
}

// stalled makes the transaction that tells of a write wait, with its number, until
// it is let go.
func (d *database) stalled(id ledger.ID) (release func()) {
	d.t.Helper()
	d.exec(fmt.Sprintf(`CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
		CREATE TRIGGER stall AFTER INSERT ON ledger_untold FOR EACH ROW WHEN (NEW.write = '%s') EXECUTE FUNCTION stall()`, id))
	conn, err := pgx.Connect(context.Background(), d.dsn())
	must(d.t, err)
	_, err = conn.Exec(context.Background(), "SELECT pg_advisory_lock(7)")
	must(d.t, err)
	return func() { must(d.t, conn.Close(context.Background())) }
}

// waits until so many transactions wait for a lock.
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
	d.t.Fatal("nobody waits")
}

// A change whose transaction took its number first and was committed last is told
// to those who had gone past that number by then, and in the same place to those
// who come later.
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

// A transaction that runs for long, in whatever database of the server, holds up
// nobody who follows.
func TestLongTransactionsHoldNobodyUp(t *testing.T) {
	d, elsewhere := fresh(t), fresh(t)
	l := d.open(nil)
	for _, where := range []*database{d, elsewhere} {
		person := begin(t, where.open(nil))
		_, err := person.Exec(t.Context(), "CREATE TABLE unfinished (n INT)")
		must(t, err)
	}
	must(t, pair(l, reservation(t, asked("w"))))
	r := &reader{l: l}
	if err := r.catchUp(); err != nil || len(r.heard) != 1 {
		t.Errorf("heard %d, error %v", len(r.heard), err)
	}
}

// Somebody keeps the lock under which changes get their place: who follows hears
// what has one, and does not wait for the rest.
func TestFollowWhileLocked(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("w1"))))
	r := &reader{l: l}
	must(t, r.catchUp())
	person := begin(t, l)
	_, err := person.Exec(t.Context(), "UPDATE ledger_told SET last = last")
	must(t, err)
	must(t, pair(l, reservation(t, asked("w2"))))
	r.q.After = ""
	if err := r.catchUp(); err != nil || len(r.heard) != 2 { // the first one, twice
		t.Errorf("heard %d, error %v", len(r.heard), err)
	}
	must(t, person.Rollback(t.Context()))
	if err := r.catchUp(); err != nil || len(r.heard) != 3 {
		t.Errorf("heard %d, error %v; want the second one now", len(r.heard), err)
	}
}

// toldAll follows from the begin, and holds what is told against the events of the
// writes that were made.
func toldAll(t *testing.T, l *postgres.Ledger, settled []string) []ledger.Change {
	t.Helper()
	r := &reader{l: l}
	must(t, r.catchUp())
	count := map[ledger.ID]int{}
	for _, c := range r.heard {
		count[c.ID]++
	}
	for _, name := range settled {
		if id := reservation(t, asked(name)).Record.ID; count[id] != 1 {
			t.Errorf("%s was told %d times", name, count[id])
		}
	}
	for id := range count {
		rec, err := l.Get(t.Context(), "acme", id)
		if must(t, err); rec.State != ledger.Settled || count[id] != 1 {
			t.Errorf("%s is %s, and was told %d times", rec.Workflow, rec.Phase(), count[id])
		}
	}
	return r.heard
}

// Many write from several processes, each commit in its own time, while several
// follow, each from a process of its own: all hear everything, once, in one order.
func TestFollowTogether(t *testing.T) {
	d := fresh(t)
	d.open(nil)
	d.exec(`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(random() * 0.02); RETURN NEW; END $$;
		CREATE TRIGGER dawdle AFTER INSERT ON ledger_untold FOR EACH ROW EXECUTE FUNCTION dawdle()`)
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
	all := toldAll(t, d.open(nil), names)
	for i, r := range readers {
		must(t, r.catchUp())
		if diff := cmp.Diff(all, r.heard); diff != "" {
			t.Errorf("reader %d differs from one who came later (-later +reader):\n%s", i, diff)
		}
	}
}

// The database is killed in the middle of it. What was told before is told in the
// same places afterwards, and nothing is left out.
func TestDatabaseKilledWhileFollowing(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	told := map[string]string{}
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
		storm(t, l, fmt.Sprint("r", round), told, func() { must(t, s.Kill()) })
		wg.Wait()
		must(t, s.Recover())
	}
	maps.DeleteFunc(told, func(_, word string) bool { return word != "settled" })
	all := toldAll(t, l, slices.Collect(maps.Keys(told)))
	for i, r := range readers {
		must(t, r.catchUp())
		if diff := cmp.Diff(all, r.heard); diff != "" {
			t.Errorf("reader %d differs from one who came later (-later +reader):\n%s", i, diff)
		}
	}
}

// Another process hears that something happened.
func TestToldByOthers(t *testing.T) {
	d := fresh(t)
	here, there := d.open(nil), d.open(nil)
	told, woken := there.Told(t.Context()), there.Woken(t.Context())
	hears(t, told, "the first look")
	hears(t, woken, "the first look")
	d.listens(here)
	must(t, pair(here, reservation(t, asked("w1"))))
	hears(t, told, "settled in another process")
	select {
	case <-woken:
		t.Error("workers were woken by what is settled")
	default:
	}
}

// What the version before holds is found after the upgrade, but for the words of a
// row that cannot be read; nothing of it is told.
func TestUpgradeFinds(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	ids := map[string]ledger.ID{}
	for _, name := range []string{"one", "two", "torn"} {
		w := asked(name)
		w.CorrelationID = `a "trace" \ of ünïcode`
		res := reservation(t, w)
		ids[name] = res.Record.ID
		must(t, pair(l, res))
	}
	d.exec(fmt.Sprintf(`UPDATE ledger_writes SET body = 'x' || body WHERE id = '%s';
		DROP TABLE ledger_untold, ledger_changes, ledger_told, ledger_search;
		UPDATE ledger_meta SET version = 2, compatible_from = 2`, ids["torn"]))
	l = d.open(nil)
	one, err := l.Get(t.Context(), "acme", ids["one"])
	must(t, err)
	for name, c := range map[string]struct {
		s    ledger.Search
		want []ledger.ID
	}{
		"correlation": {ledger.Search{CorrelationID: `a "trace" \ of ünïcode`}, []ledger.ID{ids["two"], ids["one"]}},
		"workflow":    {ledger.Search{Workflow: "one"}, []ledger.ID{ids["one"]}},
		"operation":   {ledger.Search{IdempotencyKey: one.IdempotencyKey}, []ledger.ID{ids["one"]}},
		"key":         {ledger.Search{KeyDigest: one.KeyDigest}, []ledger.ID{ids["one"]}},
	} {
		c.s.Tenant = "acme"
		found, err := l.Find(t.Context(), c.s)
		must(t, err)
		var got []ledger.ID
		for _, r := range found.Records {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("by its %s (-want +got):\n%s", name, diff)
		}
	}
	r := &reader{l: l}
	if err := r.catchUp(); err != nil || len(r.heard) != 0 {
		t.Errorf("heard %d, error %v", len(r.heard), err)
	}
	if _, known, err := l.Version(t.Context()); err != nil || known != 5 {
		t.Errorf("version %d, error %v", known, err)
	}
	var needs int
	must(t, l.Pool().QueryRow(t.Context(), "SELECT compatible_from FROM ledger_meta").Scan(&needs))
	if needs != 3 {
		t.Errorf("a program needs to know version %d, want 3: an older one tells nothing", needs)
	}
}

// A history of a week is counted from an index, and pruning looks at no more than
// it forgets.
func TestOldChanges(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("w"))))
	old, young := time.Now().Add(-8*24*time.Hour).UnixNano(), time.Now().Add(-time.Hour).UnixNano()
	d.exec(fmt.Sprintf(`INSERT INTO ledger_untold (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
		SELECT CASE WHEN i <= 2500 THEN %d ELSE %d END, 'acme', i::text, 1, 'settled', 'verified', '', 1, 1, FALSE FROM generate_series(1, 5000) AS i`, old, young))
	d.exec("UPDATE ledger_untold SET at = " + fmt.Sprint(old) + " WHERE write LIKE 'wr_%'")
	did, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: time.Hour})
	if err != nil || did.Changes != 2501 {
		t.Errorf("%d changes were pruned, error %v; want 2501", did.Changes, err)
	}
	r := &reader{l: l, q: ledger.Following{Limit: 1000}}
	if err := r.catchUp(); err != nil || len(r.heard) != 2500 {
		t.Errorf("heard %d, error %v; want 2500", len(r.heard), err)
	}
}
