package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

// The database is killed during the work. Everything reported as done exists afterwards, nothing
// reported as not applied does, and ErrUnsure was returned only where it was true.
func TestDatabaseKilled(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	reported := map[string]string{}
	for round := range 3 {
		storm(t, l, fmt.Sprint("r", round), reported, func() { must(t, s.Kill()) })
		must(t, s.Recover())
		tries := 0
		must(t, untilReached(func() error {
			tries++
			return pair(l, reservation(t, asked(fmt.Sprint("after ", round, " ", tries))))
		}))
	}
	unsure := 0
	for workflow, word := range reported {
		rec, err := l.Get(t.Context(), "acme", reservation(t, asked(workflow)).Record.ID)
		there := err == nil
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Fatal(err)
		}
		switch {
		case word == "unsure":
			unsure++
			continue
		case there != (word != "not reserved"), word == "settled" && rec.State != ledger.Settled, word == "not settled" && rec.State == ledger.Settled:
			t.Errorf("%s was %s, now there: %v, %s", workflow, word, there, rec.State)
		}
		if there {
			follows(t, l, rec)
		}
	}
	t.Logf("%d writes were reported, of %d nothing was known", len(reported), unsure)
}

// untilReached repeats a call of a server that was killed and recovered: each connection that the
// pool (16 by default) kept from before reports the end of its server once.
func untilReached(call func() error) error {
	err := call()
	for range 16 {
		if !errors.Is(err, ledger.ErrUnavailable) {
			break
		}
		err = call()
	}
	return err
}

// storm reserves and settles until the database fails, which is triggered when a hundred writes
// are settled.
func storm(t *testing.T, l *postgres.Ledger, name string, reported map[string]string, breakDown func()) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	enough, settled := make(chan struct{}), 0
	say := func(workflow, word string, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
		case !errors.Is(err, ledger.ErrUnavailable):
			t.Errorf("%s: error %v, want unavailable", workflow, err)
		case errors.Is(err, ledger.ErrUnsure):
			word = "unsure"
		default:
			word = "not " + word
		}
		if reported[workflow] = word; word == "settled" {
			if settled++; settled == 100 {
				close(enough)
			}
		}
		return err == nil
	}
	for g := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				workflow := fmt.Sprint(name, "-", g, "-", i)
				rec, _, err := l.Reserve(context.Background(), reservation(t, asked(workflow)))
				if !say(workflow, "reserved", err) {
					return
				}
				if _, err = l.Append(context.Background(), rec.ID, rec.Fence, settling...); !say(workflow, "settled", err) {
					return
				}
			}
		})
	}
	<-enough
	breakDown()
	wg.Wait()
}

// follows checks whether a record follows from its events.
func follows(t *testing.T, l *postgres.Ledger, rec ledger.Record) {
	t.Helper()
	events, err := l.Events(context.Background(), rec.Tenant, rec.ID)
	must(t, err)
	again, err := ledgertest.Replay(rec, events)
	must(t, err)
	lease := cmpopts.IgnoreFields(ledger.Record{}, "Owner", "LeaseUntil", "LeaseFor", "Fence", "Now")
	if diff := cmp.Diff(again, rec, lease); diff != "" {
		t.Errorf("a record does not follow from its events (-events +record):\n%s", diff)
	}
}

// The wait for the disk was turned off. What was reported as done exists all the same when the
// database dies at once.
func TestSynchronousCommit(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"synchronous_commit": "off", "wal_writer_delay": "10s"}})
	d := freshOn(t, s)
	l := d.open(nil)
	var recs []ledger.Record
	for i := range 3 {
		rec, _, err := l.Reserve(t.Context(), reservation(t, asked(fmt.Sprint("w", i))))
		must(t, err)
		recs = append(recs, rec)
	}
	must(t, pair(l, reservation(t, asked("last"))))
	got, err := l.Claim(t.Context(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Tenant: "acme", ID: deferredNow(t, l, recs[0]).ID})
	if err != nil || len(got) != 1 {
		t.Fatalf("claimed %d, error %v", len(got), err)
	}
	must(t, s.Kill())
	must(t, s.Recover())
	last, err := l.Get(t.Context(), "acme", reservation(t, asked("last")).Record.ID)
	if err != nil || last.State != ledger.Settled {
		t.Errorf("settled, now %s, error %v", last.State, err)
	}
	if rec, err := l.Get(t.Context(), "acme", got[0].ID); err != nil || rec.Fence != got[0].Fence {
		t.Errorf("fence %d, lent with %d, error %v", rec.Fence, got[0].Fence, err)
	}
}

// TestSynchronousCommitOfEachTransaction: a transaction of the ledger commits with
// on or remote_apply, whatever the role's default is: with local and remote_write
// a commit is acknowledged that a failover to a synchronous standby loses. A
// deferred trigger runs at the commit and records the setting.
func TestSynchronousCommitOfEachTransaction(t *testing.T) {
	for setting, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		t.Run(setting, func(t *testing.T) {
			d := fresh(t)
			d.exec(fmt.Sprintf("ALTER DATABASE %q SET synchronous_commit = %s", d.name, setting))
			l := d.open(nil)
			d.exec(`CREATE TABLE committed_with (setting TEXT);
				CREATE FUNCTION record_setting() RETURNS trigger LANGUAGE plpgsql AS
					$$ BEGIN INSERT INTO committed_with VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
				CREATE CONSTRAINT TRIGGER record_setting AFTER INSERT OR UPDATE ON ledger_writes
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION record_setting()`)
			rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w1")))
			must(t, err)
			deferredNow(t, l, rec)
			_, err = l.Claim(t.Context(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Tenant: "acme", ID: rec.ID})
			must(t, err)
			var commits int
			var settings []string
			must(t, l.Pool().QueryRow(t.Context(), "SELECT count(*), array_agg(DISTINCT setting) FROM committed_with").Scan(&commits, &settings))
			if commits < 3 || !slices.Equal(settings, []string{want}) {
				t.Errorf("%d commits with %q; want at least 3, all with %q", commits, settings, want)
			}
		})
	}
}

// deferredNow makes a write due.
func deferredNow(t *testing.T, l *postgres.Ledger, rec ledger.Record) ledger.Record {
	t.Helper()
	rec, err := l.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent}, ledger.Event{Kind: ledger.EvDeferred})
	must(t, err)
	return rec
}

// The database's clock jumps back. Nothing begins until it is right again. What was begun can be
// ended, and its times stay in order.
func TestClockBack(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w1")))
	must(t, err)
	d.move(-2 * time.Minute)
	for _, l := range []*postgres.Ledger{l, d.open(nil)} {
		for _, name := range []string{"reserve", "claim", "claim by name"} {
			if err := calls(t, l, rec)[name](); !errors.Is(err, ledger.ErrClock) {
				t.Errorf("%s: error %v, want the clock", name, err)
			}
		}
	}
	settled, err := l.Append(t.Context(), rec.ID, rec.Fence, settling...)
	if err != nil || settled.Updated.Before(rec.Updated) {
		t.Errorf("settled at %s after %s, error %v", settled.Updated, rec.Updated, err)
	}
	follows(t, l, settled)
	reset := d.open(&postgres.Options{ResetClock: true})
	must(t, pair(reset, reservation(t, asked("other1")))) // what was refused was not recorded
	d.move(-30 * time.Second)
	must(t, pair(l, reservation(t, asked("w4"))))
}

// Two ledgers of one database, as in two processes: of the workflows that begin one operation at
// once one does it, also after one that failed.
func TestOneOperation(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)}
	for round := range 20 {
		key := fmt.Sprint("invoice ", round)
		named := func(workflow string) ledger.Reservation {
			w := asked(fmt.Sprint(key, workflow))
			w.IdempotencyKey = key
			return reservation(t, w)
		}
		if round%2 == 1 { // an earlier one failed, or is too old
			rec, _, err := ledgers[0].Reserve(t.Context(), named("first"))
			must(t, err)
			_, err = ledgers[0].Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent},
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied})
			must(t, err)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		won, begin := 0, make(chan struct{})
		for i := range 8 {
			res := named(fmt.Sprint("w", i))
			wg.Go(func() {
				<-begin
				_, fresh, err := ledgers[i%2].Reserve(context.Background(), res)
				mu.Lock()
				defer mu.Unlock()
				if fresh {
					won++
				} else if !errors.Is(err, ledger.ErrBlocked) {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
		if won != 1 {
			t.Errorf("round %d: %d own the operation", round, won)
		}
	}
}

// A row that was damaged by hand stops nothing else, is named, and works again after a repair.
func TestDamagedRow(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	var recs []ledger.Record
	for i := range 3 {
		rec, _, err := l.Reserve(t.Context(), reservation(t, asked(fmt.Sprint("w", i))))
		must(t, err)
		recs = append(recs, deferredNow(t, l, rec))
	}
	d.exec(fmt.Sprintf("CREATE TABLE saved AS SELECT * FROM ledger_writes; UPDATE ledger_writes SET body = '{' WHERE id = '%s'", recs[0].ID))
	lent, err := l.Claim(t.Context(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Limit: 10})
	if err != nil || len(lent) != 2 {
		t.Fatalf("lent %d, error %v; want the other two", len(lent), err)
	}
	if _, err := d.open(nil).Get(t.Context(), "acme", recs[0].ID); !errors.Is(err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), string(recs[0].ID)) {
		t.Errorf("get: error %v, want one that names the write", err)
	}
	d.exec("UPDATE ledger_writes AS w SET body = s.body, damaged = NULL FROM saved AS s WHERE s.id = w.id AND w.body = '{'")
	lent, err = l.Claim(t.Context(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Limit: 10})
	if err != nil || len(lent) != 1 || lent[0].ID != recs[0].ID {
		t.Errorf("lent %d, error %v; want the one that was mended", len(lent), err)
	}
}

// A write of a newer program is left to newer programs, and nothing else is.
func TestRowOfANewerProgram(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	for i := range 2 {
		rec, _, err := l.Reserve(t.Context(), reservation(t, asked(fmt.Sprint("w", i))))
		must(t, err)
		deferredNow(t, l, rec)
	}
	newer := reservation(t, asked("w0")).Record.ID
	d.exec(fmt.Sprintf(`UPDATE ledger_writes SET body = '{"newer":1,' || substr(body, 2) WHERE id = '%s'`, newer))
	lent, err := l.Claim(t.Context(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Limit: 10})
	if err != nil || len(lent) != 1 || lent[0].ID == newer {
		t.Fatalf("lent %d, error %v; want the other one", len(lent), err)
	}
	d.exec(fmt.Sprintf(`UPDATE ledger_writes SET body = '{' || substr(body, 12) WHERE id = '%s'`, newer)) // the newer program
	d.move(time.Minute)
	lent, err = l.Claim(t.Context(), ledger.Claim{Owner: "three", LeaseFor: time.Hour, Limit: 10})
	if err != nil || len(lent) != 1 || lent[0].ID != newer {
		t.Errorf("lent %d, error %v; want what was left to the newer program, as soon as it can be read", len(lent), err)
	}
}

// No statement scans or sorts settled writes or a backlog. Scans are statements that are meant to
// read everything, in a check of the whole ledger or in a move of a tenant.
var scans = []string{"tenants", "lock_partition", "own_present", "leased"}

func TestQueryPlans(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("w"))))
	d.exec(`INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent,
			state, due, settled_at, seq, body, owner, lease_until, lease_for, fence, holds)
		SELECT 'wr_' || substr(k, 1, 32), 'acme', 'payments', 'tool', k, k, k, i, '{}', s, CASE s WHEN 'settled' THEN NULL ELSE i END,
			CASE s WHEN 'settled' THEN i END, 2, '{}', '', 0, 0, 1, TRUE
		FROM (SELECT i, encode(sha256(i::text::bytea), 'hex') AS k, CASE WHEN i % 10 = 0 THEN 'checking' ELSE 'settled' END AS s FROM generate_series(1, 30000) AS i) AS x;
		INSERT INTO ledger_events (write, seq, body) SELECT n, s, '{}' FROM ledger_writes, generate_series(1, 2) AS s WHERE id <> '` + string(reservation(t, asked("w")).Record.ID) + `';
		INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, state, due, done, body, version, created, updated, position)
		SELECT (i % 100)::text, (i % 3)::text, i::text, (i / 10)::text, (i % 7)::text, i::text, (i % 11)::text, CASE WHEN i % 100 = 0 THEN i END, i % 5 = 0, '{}', 1, i, i, i FROM generate_series(1, 30000) AS i;
		INSERT INTO ledger_search SELECT n, id, tenant, i.i::text, i.i::text, key_digest FROM ledger_writes JOIN generate_series(1, 30000) AS i ON i.i = n;
		INSERT INTO ledger_terms SELECT n / 4096, tenant, '=' || n, n, id FROM ledger_writes;
		INSERT INTO ledger_changes SELECT i, i, (i % 100)::text, i::text, 1, 'settled', 'verified', '', 1, 1, FALSE FROM generate_series(1, 30000) AS i;
		INSERT INTO ledger_unpublished (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved) SELECT at, tenant, write, seq, kind, settlement, destination, sends, reads, saved FROM ledger_changes;
		ANALYZE`)
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	for name, query := range postgres.Statements {
		for _, table := range []string{"ledger_writes", "ledger_events", "ledger_documents", "ledger_changes", "ledger_unpublished", "ledger_search", "ledger_terms"} {
			if name == "guard" || name == "meta_table" || strings.Contains(query, "LOCK TABLE") || slices.Contains(scans, name) || !strings.Contains(query, table) || name == "queue_stats" || name == "held_or_in_review" {
				continue
			}
			plan := generic(t, conn, query)
			for _, n := range plan.all() {
				if n.Type == "Seq Scan" && n.Table == table {
					t.Errorf("%s walks all of %s: %+v", name, table, plan)
				}
			}
			if plan.Cost > 100_000 {
				t.Errorf("%s: cost %.0f: the database would compile it each time: %+v", name, plan.Cost, plan)
			}
		}
	}
}
