package sql_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
)

// TestKeyAsStored: a key that the column, a trigger or an index changes could never be found
// again: the row would be there, read as absent, and be written once more.
func TestKeyAsStored(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `
		CREATE TABLE rounded (id bigserial PRIMARY KEY, k numeric(10,2));
		CREATE TABLE second (id bigserial PRIMARY KEY, k timestamptz(0));
		CREATE TABLE short (id bigserial PRIMARY KEY, k varchar(3));
		CREATE TABLE lowered (id bigserial PRIMARY KEY, k text);
		CREATE FUNCTION lowers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := lower(NEW.k); RETURN NEW; END $$;
		CREATE TRIGGER lowers BEFORE INSERT OR UPDATE ON lowered FOR EACH ROW EXECUTE FUNCTION lowers();
		CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE folded (id bigserial PRIMARY KEY, k text); CREATE UNIQUE INDEX ON folded (k COLLATE folding); INSERT INTO folded (k) VALUES ('ABC');
		GRANT ALL ON rounded, second, short, lowered, folded TO writer; GRANT SELECT ON rounded, second, short, lowered, folded TO reader;
		GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO writer`); err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]struct {
		typ        sql.Type
		good, bad  any
		write      intent.WriteType
		rows, fine int
	}{
		"rounded": {sql.Numeric, json.Number("1.50"), json.Number("1.005"), intent.Create, 0, 1},
		"second":  {sql.Timestamp, "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05.7Z", intent.Create, 0, 1},
		"short":   {sql.Text, "ab ", "ab    ", intent.Create, 0, 1},
		"lowered": {sql.Text, "abc", "Abc", intent.Create, 0, 1},
		"folded":  {sql.Text, "x", "abc", intent.Upsert, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			table := sql.Table{Name: name, ID: "id", Key: []string{"k"}, Unique: name == "folded", Version: sql.XMin,
				Columns: []sql.Column{{Name: "id", Type: sql.Integer}, {Name: "k", Type: given.typ}}}
			d := newBench(t, table, false, nil)
			in := intent.WriteIntent{Kind: "order", Write: given.write, Key: intent.Fields{"k": given.bad}, Expect: intent.Fields{"k": given.bad}}
			_, err := d.Write(t.Context(), connectors.Request{Intent: in})
			fate(t, err, connectors.FateRefused, "it could not be queried")
			if !errors.Is(err, sql.ErrKeyChanged) {
				t.Errorf("error %v, want ErrKeyChanged", err)
			}
			count := func(want int) {
				t.Helper()
				var n int
				if err := c.admin.QueryRow(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil || n != want {
					t.Errorf("%d rows (%v), want %d", n, err, want)
				}
			}
			count(given.rows)
			in.Key, in.Expect = intent.Fields{"k": given.good}, intent.Fields{"k": given.good}
			if _, err := d.Write(t.Context(), connectors.Request{Intent: in}); err != nil {
				t.Error(err)
			}
			count(given.fine)
		})
	}
}

// TestSettingsOfRoles: roles can have settings of their own; none of them makes one server look
// like two, or changes a text.
func TestSettingsOfRoles(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE ROLE abroad LOGIN; GRANT ALL ON unique_orders, faults, effects TO abroad; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO abroad;
		ALTER ROLE abroad SET TimeZone = 'Asia/Kolkata'; ALTER ROLE abroad SET DateStyle = 'German'; ALTER ROLE abroad SET client_encoding = 'LATIN1';
		ALTER ROLE abroad SET synchronous_commit = 'off'; ALTER ROLE abroad SET default_transaction_isolation = 'serializable'`); err != nil {
		t.Fatal(err)
	}
	d := newBench(t, uniqueTable(), false, func(o *sql.Options) { o.DSN = strings.Replace(o.DSN, "user=writer", "user=abroad", 1) })
	r := d.request(intent.Create, 1, nil)
	r.Intent.Expect["note"] = "żółw é"
	if _, err := d.Connector.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	o, err := d.Read(t.Context(), connectors.Query{Intent: r.Intent, Stamp: r.Stamp})
	if err != nil || o.Strength != connectors.Strong || len(o.Records) != 1 {
		t.Errorf("%d rows, %q (%v); want 1, strong", len(o.Records), o.Strength, err)
	}
	if all := d.records(d.key(1)); len(all) != 1 || all[0].Fields["note"] != "żółw é" {
		t.Errorf("stored is %v, want the note as it was given", all)
	}
}

// TestOldPrimaryAsked: after a failover, writes lead to the new primary while open connections
// lead to the old one, which still runs. It does not know of the write: that is no absence.
func TestOldPrimaryAsked(t *testing.T) {
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
	address := newProxy(t, old.Addr())
	c, err := sql.New(sql.Options{
		DSN:    dsn(address.port(), "postgres", "w"),
		Tables: map[string]sql.Table{"t": {Name: "t", Columns: []sql.Column{{Name: "k"}, {Name: "v"}}, Key: []string{"k"}, Unique: true}},
	})
	must(err)
	t.Cleanup(c.Close)
	in := intent.WriteIntent{Kind: "t", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"v": "x"}}
	if o, err := c.Read(t.Context(), connectors.Query{Intent: in}); err != nil || o.Strength != connectors.Strong {
		t.Fatalf("%q, %v; want a strong read before it", o.Strength, err)
	}
	must(promoted.Promote())
	address.mu.Lock()
	address.target = promoted.Addr()
	address.mu.Unlock()
	if _, err := c.Write(t.Context(), connectors.Request{Intent: in}); err != nil {
		t.Fatal(err)
	}
	if o, err := c.Read(t.Context(), connectors.Query{Intent: in}); err == nil && o.Strength == connectors.Strong && len(o.Records) != 1 {
		t.Errorf("%d rows, strong; want none of the old primary's answers to be strong", len(o.Records))
	}
}

// TestWaitingForStandbys: a commit that waits for a standby which is down is invisible, and is
// applied when the standby is back. No horizon of ours limits that, so nothing is sent.
func TestWaitingForStandbys(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Exec("postgres", "CREATE TABLE t (id bigserial PRIMARY KEY, k text); CREATE ROLE w LOGIN; GRANT ALL ON t, t_id_seq TO w"))
	must(s.Exec("postgres", "CREATE TABLE waits ()"))
	must(s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'gone'"))
	must(s.Exec("postgres", "SELECT pg_reload_conf()"))
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	must(err)
	defer func() { _ = conn.Close(context.Background()) }()
	// Commits wait as soon as the checkpointer has read the setting, which no query shows.
	go func() {
		for err := error(nil); err == nil; {
			err = s.Exec("postgres", "INSERT INTO waits DEFAULT VALUES")
		}
	}()
	for waits := false; !waits; {
		must(conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')").Scan(&waits))
	}
	p := newProxy(t, s.Addr())
	for horizon, want := range map[time.Duration]connectors.Fate{0: connectors.FateRefused, time.Hour: connectors.FateUnknown, -1: connectors.FateUnknown} {
		c, err := sql.New(sql.Options{DSN: dsn(p.port(), "w", "w"), SendTimeout: 2 * time.Second, Horizon: horizon,
			Tables: map[string]sql.Table{"t": {Name: "t", ID: "id", Columns: []sql.Column{{Name: "id", Type: sql.Integer}, {Name: "k"}}, Key: []string{"k"}}}})
		must(err)
		_, err = c.Write(t.Context(), connectors.Request{Intent: intent.WriteIntent{Kind: "t", Write: intent.Create,
			Key: intent.Fields{"k": fmt.Sprint(horizon)}, Expect: intent.Fields{"k": fmt.Sprint(horizon)}}})
		fate(t, err, want, fmt.Sprintf("the horizon is %v", horizon))
		c.Close()
	}
}

// TestNoTransaction: a statement that a proxy ran outside a transaction is applied, whatever
// comes after it.
func TestNoTransaction(t *testing.T) {
	d := newBench(t, plainTable(), false, nil)
	d.writes.arm(wireNoBegin)
	_, err := d.Connector.Write(t.Context(), d.request(intent.Create, 1, nil))
	fate(t, err, connectors.FateUnknown, "it was not in a transaction")
	if n := len(d.records(d.key(1))); n != 1 {
		t.Errorf("%d rows, want 1, or the test proves nothing", n)
	}
}

// TestViewsAreWeak: what is no table can hide rows, so that it never shows
// absence.
func TestViewsAreWeak(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE behind (id bigserial PRIMARY KEY, k text, gone boolean NOT NULL DEFAULT true);
		CREATE VIEW present AS SELECT id, k FROM behind WHERE NOT gone; GRANT ALL ON behind, present, behind_id_seq TO writer; GRANT SELECT ON present TO reader`); err != nil {
		t.Fatal(err)
	}
	table := sql.Table{Name: "present", ID: "id", Key: []string{"k"}, Columns: []sql.Column{{Name: "id", Type: sql.Integer}, {Name: "k"}}}
	in := intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"k": "1"}}
	d, settling := newBench(t, table, false, nil), newBench(t, table, false, func(o *sql.Options) { o.Settle = time.Nanosecond })
	if _, err := d.Write(t.Context(), connectors.Request{Intent: in}); err != nil {
		t.Fatal(err)
	}
	if o, err := d.Read(t.Context(), connectors.Query{Intent: in}); err != nil || o.Strength != connectors.Weak {
		t.Errorf("%d rows, %q (%v); want none, weak", len(o.Records), o.Strength, err)
	}
	if _, err := settling.Read(t.Context(), connectors.Query{Intent: in}); !errors.Is(err, sql.ErrBehind) {
		t.Errorf("with a settle time the read says %v, want ErrBehind", err)
	}
}

// TestColumnNames: no column's name is taken for the row.
func TestColumnNames(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE names (k text PRIMARY KEY, r jsonb, t jsonb);
		GRANT ALL ON names TO writer; GRANT SELECT ON names TO reader`); err != nil {
		t.Fatal(err)
	}
	d := newBench(t, sql.Table{Name: "names", Key: []string{"k"}, Unique: true, Columns: []sql.Column{{Name: "k"}, {Name: "r", Type: sql.JSON}, {Name: "t", Type: sql.JSON}}}, false, nil)
	row := map[string]any{"k": "1", "r": nil, "t": "forged"}
	in := intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"r": row, "t": "true"}}
	if _, err := d.Write(t.Context(), connectors.Request{Intent: in}); err != nil {
		t.Fatal(err)
	}
	o, err := d.Read(t.Context(), connectors.Query{Intent: in})
	if err != nil || len(o.Records) != 1 || o.Records[0].Fields["t"] != "true" {
		t.Errorf("%v (%v); want the row itself, and not what its column r says", o.Records, err)
	}
}

// TestPartitions: rows that move between partitions are the same rows; xmin is not available
// there, and Probe reports so.
func TestPartitions(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE moves (id bigserial, k text, place int) PARTITION BY LIST (place);
		CREATE TABLE moves1 PARTITION OF moves FOR VALUES IN (1); CREATE TABLE moves2 PARTITION OF moves FOR VALUES IN (2);
		GRANT ALL ON moves, moves_id_seq TO writer; GRANT SELECT ON moves TO reader`); err != nil {
		t.Fatal(err)
	}
	table := sql.Table{Name: "moves", ID: "id", Key: []string{"k"}, Columns: []sql.Column{{Name: "id", Type: sql.Integer}, {Name: "k"}, {Name: "place", Type: sql.Integer}}}
	d := newBench(t, table, false, nil)
	in := intent.WriteIntent{Kind: "order", Key: intent.Fields{"k": "1"}}
	in.Write, in.Expect = intent.Create, intent.Fields{"place": json.Number("1")}
	if _, err := d.Write(t.Context(), connectors.Request{Intent: in}); err != nil {
		t.Fatal(err)
	}
	before, err := d.Read(t.Context(), connectors.Query{Intent: in})
	if err != nil || len(before.Records) != 1 {
		t.Fatalf("%v, %v", before.Records, err)
	}
	in.Write, in.Expect = intent.Update, intent.Fields{"place": json.Number("2")}
	if _, err := d.Write(t.Context(), connectors.Request{Intent: in, Before: &before}); err != nil {
		t.Error(err)
	}
	after, err := d.Read(t.Context(), connectors.Query{Intent: in})
	if err != nil || len(after.Records) != 1 || after.Records[0].Ref != before.Records[0].Ref {
		t.Errorf("%v, %v; want the row, moved", after.Records, err)
	}
	if err := d.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	table.Version = sql.XMin
	if err := newBench(t, table, false, nil).Probe(t.Context()); !errors.Is(err, sql.ErrTable) {
		t.Errorf("probe says %v, want ErrTable", err)
	}
}

// TestRequireAtTheWrite: another actor's change between the read and the write is not
// overwritten, even if the table has no version.
func TestRequireAtTheWrite(t *testing.T) {
	table := uniqueTable()
	table.Version = ""
	d := newBench(t, table, false, nil)
	d.wrote(intent.Create, 1, nil)
	before, err := d.Read(t.Context(), d.query(intent.Create, 1))
	if err != nil {
		t.Fatal(err)
	}
	undo, err := d.Invert(d.request(intent.Create, 1, nil).Intent, &connectors.Observation{}, before)
	if err != nil {
		t.Fatal(err)
	}
	d.exec("UPDATE unique_orders SET note = 'theirs' WHERE order_id = $1", d.key(1)["order_id"])
	_, err = d.Write(t.Context(), connectors.Request{Intent: undo, Stamp: "rb-undo", Before: &before})
	conflict(t, err, "the row is no longer as the undo requires")
	d.exec("UPDATE unique_orders SET note = $2 WHERE order_id = $1", d.key(1)["order_id"], before.Records[0].Fields["note"])
	if _, err = d.Write(t.Context(), connectors.Request{Intent: undo, Stamp: "rb-undo", Before: &before}); err != nil {
		t.Errorf("the undo of the row as it was: %v", err)
	}
}
