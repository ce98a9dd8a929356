package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
)

// setStandby changes a setting of the shared standby for one test.
func setStandby(t *testing.T, c *cluster, name, value string) {
	t.Helper()
	change := func(q string) {
		if err := errors.Join(c.standby.Exec("postgres", q), c.standby.Exec("postgres", "SELECT pg_reload_conf()")); err != nil {
			t.Fatal(err)
		}
	}
	change("ALTER SYSTEM SET " + name + " = '" + value + "'")
	t.Cleanup(func() { change("ALTER SYSTEM RESET " + name) })
}

func impatient(settle time.Duration) func(o *sql.Options) {
	return func(o *sql.Options) { o.StandbyWait, o.Settle = 150*time.Millisecond, settle }
}

// TestPausedStandby: a paused standby never shows absence, however long the wait, with or without
// a settle time.
func TestPausedStandby(t *testing.T) {
	d := newBench(t, uniqueTable(), true, impatient(0))
	settling := newBench(t, uniqueTable(), true, impatient(time.Nanosecond))
	if err := errors.Join(d.c.standby.CaughtUp(d.c.primary), d.pause()); err != nil {
		t.Fatal(err)
	}
	d.wrote(intent.Create, 1, nil)
	q := d.query(intent.Create, 1)
	_, err := settling.Read(t.Context(), q)
	if !errors.Is(err, sql.ErrBehind) {
		t.Errorf("with a settle time that has passed, the read says %v, want ErrBehind", err)
	}
	if _, declared := d.Profiles()["order"].Settle.Declared(); declared {
		t.Error("a settle time is declared, and no standby keeps one")
	}
	o, err := d.Read(t.Context(), q) // and the standby continues
	if err != nil || len(o.Records) != 0 || o.Strength != connectors.Weak || o.Independent != connectors.OwnCall {
		t.Errorf("the read finds %d rows, %q, %q (%v); want none, weak, and no more than a call of its own", len(o.Records), o.Strength, o.Independent, err)
	}
	if err := d.c.standby.CaughtUp(d.c.primary); err != nil {
		t.Fatal(err)
	}
	patient := newBench(t, uniqueTable(), true, nil)
	if o, err := patient.Read(t.Context(), q); err != nil || len(o.Records) != 1 || o.Strength != connectors.Strong || o.Path != "standby" || o.Independent != connectors.OtherServer {
		t.Errorf("after it went on: %d rows, %q by %q, %q (%v); want 1, strong, by the standby, at another server", len(o.Records), o.Strength, o.Path, o.Independent, err)
	}
}

// TestPositionBeforeCommit: a position taken inside the transaction is reached
// by a standby that does not show the row. The connector's is not.
func TestPositionBeforeCommit(t *testing.T) {
	d := newBench(t, uniqueTable(), true, impatient(0))
	if err := d.c.standby.CaughtUp(d.c.primary); err != nil {
		t.Fatal(err)
	}
	setStandby(t, d.c, "recovery_min_apply_delay", "1min") // holds commits alone
	standby, err := pgx.Connect(t.Context(), d.c.standby.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = standby.Close(context.Background()) }()
	// A commit that the standby replays before it has read the setting is shown: the next is held.
	reached, shown, n := false, 1, 0
	for end := time.Now().Add(10 * time.Second); shown != 0 && time.Now().Before(end); {
		n++
		var inside string
		tx, err := d.c.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "INSERT INTO unique_orders (order_id) VALUES ($1)", d.key(n)["order_id"]); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tx.QueryRow(t.Context(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&inside), tx.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		for reached = false; !reached && time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if err := standby.QueryRow(t.Context(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", inside).Scan(&reached); err != nil {
				t.Fatal(err)
			}
		}
		if err := standby.QueryRow(t.Context(), "SELECT count(*) FROM unique_orders WHERE order_id = $1", d.key(n)["order_id"]).Scan(&shown); err != nil {
			t.Fatal(err)
		}
	}
	if !reached || shown != 0 {
		t.Fatalf("the position inside is reached: %t, with %d rows; want it reached with none, or the test proves nothing", reached, shown)
	}
	if o, err := d.Read(t.Context(), d.query(intent.Create, n)); err != nil || o.Strength == connectors.Strong {
		t.Errorf("the connector finds %d rows, %q (%v); want it weak: the commit is not there yet", len(o.Records), o.Strength, err)
	}
}

// TestRecoveryConflict: a read that a standby cancelled does not show absence.
func TestRecoveryConflict(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE held (k text PRIMARY KEY, stamp text);
		CREATE VIEW slow AS SELECT k, pg_sleep(20)::text AS nap, stamp FROM held; INSERT INTO held VALUES ('1', '');
		GRANT SELECT ON slow, held TO reader, writer`); err != nil {
		t.Fatal(err)
	}
	if err := c.standby.CaughtUp(c.primary); err != nil {
		t.Fatal(err)
	}
	setStandby(t, c, "max_standby_streaming_delay", "0")
	d := newBench(t, sql.Table{Name: "slow", Columns: []sql.Column{{Name: "k"}, {Name: "nap"}}, Key: []string{"k"}, Unique: true}, true, nil)
	done := make(chan error, 1)
	go func() {
		o, err := d.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Kind: "order", Key: intent.Fields{"k": "1"}}})
		if err == nil {
			err = errors.New("no error, and " + strings.Repeat("a row ", len(o.Records)))
		}
		done <- err
	}()
	conn, err := pgx.Connect(t.Context(), c.standby.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for active := false; !active; <-time.After(10 * time.Millisecond) {
		select {
		case err := <-done:
			t.Fatalf("the read has ended before anything was in its way: %v", err)
		default:
		}
		if err := conn.QueryRow(t.Context(), "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'reads'").Scan(&active); err != nil {
			t.Fatal(err)
		}
	}
	d.exec("ALTER TABLE held ADD COLUMN more text")
	if err := <-done; err == nil || !strings.Contains(err.Error(), "40001") {
		t.Errorf("the cancelled read says %v, want the error 40001", err)
	}
}

// TestFailover: numbers of log positions mean another thing after a promotion.
func TestFailover(t *testing.T) {
	old := pgtest.Start(t, pgtest.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(old.Exec("postgres", "CREATE TABLE t (k text PRIMARY KEY, v text)"))
	promoted, err := old.Standby(pgtest.StandbyOptions{})
	must(err)
	left, err := old.Standby(pgtest.StandbyOptions{}) // keeps following the old one
	must(err)
	writes, reads := newProxy(t, old.Addr()), newProxy(t, left.Addr())
	c, err := sql.New(sql.Options{
		DSN: dsn(writes.port(), "postgres", "w"), ReadDSN: dsn(reads.port(), "postgres", "r"), StandbyWait: 5 * time.Second,
		Tables: map[string]sql.Table{"t": {Name: "t", Columns: []sql.Column{{Name: "k"}, {Name: "v"}}, Key: []string{"k"}, Unique: true}},
	})
	must(err)
	t.Cleanup(c.Close)
	q := connectors.Query{Intent: intent.WriteIntent{Kind: "t", Key: intent.Fields{"k": "1"}}}
	lead := func(p *proxy, s *pgtest.Server) {
		p.mu.Lock()
		p.target = s.Addr()
		p.mu.Unlock()
		p.cutAll()
	}
	read := func(want connectors.Strength, way connectors.Independence, isError bool, why string) {
		t.Helper()
		var o connectors.Observation
		var err error
		for range 4 { // connections that were cut are noticed when they are used
			o, err = c.Read(t.Context(), q)
		}
		if isError != errors.Is(err, sql.ErrElsewhere) || o.Strength != want || o.Independent != way {
			t.Errorf("%s: strength %q, independent %q, error %v; want %q, %q, an error: %t", why, o.Strength, o.Independent, err, want, way, isError)
		}
	}
	read(connectors.Strong, connectors.OtherServer, false, "one history")
	must(promoted.Promote())
	must(promoted.Exec("postgres", "INSERT INTO t VALUES ('1', 'new')"))
	must(old.Exec("postgres", "CREATE TABLE filler AS SELECT generate_series(1, 20000)")) // far ahead in numbers
	must(left.CaughtUp(old))
	lead(writes, promoted)
	read(connectors.Weak, connectors.OwnCall, false, "writes go to the new primary, and the standby follows the old one")
	lead(reads, promoted)
	read(connectors.Strong, connectors.OwnCall, false, "both lead to the new primary")
	lead(reads, old)
	read(connectors.Weak, connectors.OwnCall, true, "two servers that both take writes")
	lead(writes, old)
	read(connectors.Weak, connectors.OwnCall, false, "a primary that was replaced, as was seen")
}
