package sql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// cluster is the server that the tests of this package share, and one standby
// of it.
type cluster struct {
	primary, standby *pgtest.Server
	admin            *pgxpool.Pool
}

const applyDelay = 5 * time.Millisecond

var shared = sync.OnceValues(func() (*cluster, error) {
	s, err := pgtest.Open(pgtest.Options{Settings: map[string]string{"wal_writer_delay": "20ms"}})
	if err != nil {
		return nil, err
	}
	c := &cluster{primary: s}
	opened = c
	if err := s.Exec("postgres", schema); err != nil {
		return nil, err
	}
	if c.standby, err = s.Standby(pgtest.StandbyOptions{ApplyDelay: applyDelay}); err != nil {
		return nil, err
	}
	c.admin, err = pgxpool.New(context.Background(), s.DSN("postgres"))
	return c, err
})

var opened *cluster

func TestMain(m *testing.M) {
	code := m.Run()
	if opened != nil {
		if opened.admin != nil {
			opened.admin.Close()
		}
		if err := opened.primary.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// schema has the faults of a table: triggers that drop, alter, undo or repeat writes. The effects
// of the connector are in the table effects, written in the same transaction.
const schema = `
CREATE ROLE writer LOGIN;
CREATE ROLE reader LOGIN;
GRANT pg_read_all_stats TO reader;
CREATE TABLE unique_orders (id bigserial PRIMARY KEY, order_id text NOT NULL UNIQUE, amount numeric(12,2), note text,
	customer jsonb, tags text[], at timestamptz, stamp text);
CREATE INDEX ON unique_orders (stamp);
CREATE TABLE orders (id bigserial PRIMARY KEY, order_id text NOT NULL, amount numeric(12,2), note text,
	customer jsonb, tags text[], at timestamptz, stamp text, version integer NOT NULL DEFAULT 1);
CREATE INDEX ON orders (order_id);
CREATE INDEX ON orders (stamp);
CREATE TABLE faults (name text, run text);
CREATE TABLE effects (order_id text, op text);
CREATE FUNCTION armed(n text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF pg_trigger_depth() > 1 THEN RETURN false; END IF;
	DELETE FROM faults WHERE name = n AND run = current_setting('application_name');
	RETURN FOUND;
END $$;
CREATE FUNCTION before_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF armed('refused') THEN RAISE EXCEPTION 'a rule of the shop' USING ERRCODE = '23514'; END IF;
	IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
	IF armed('dropped') THEN
		IF TG_OP = 'INSERT' THEN NEW.note := NULL; ELSE NEW.note := OLD.note; END IF;
	END IF;
	IF armed('normalised') THEN NEW.note := upper(NEW.note); END IF;
	RETURN NEW;
END $$;
CREATE FUNCTION after_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('application_name') NOT LIKE 'under-test-%' OR pg_trigger_depth() > 1 THEN RETURN NULL; END IF;
	IF armed('phantom') THEN
		IF TG_OP = 'INSERT' THEN EXECUTE format('DELETE FROM %I WHERE id = $1', TG_TABLE_NAME) USING NEW.id;
		ELSIF TG_OP = 'DELETE' THEN EXECUTE format('INSERT INTO %I SELECT ($1).*', TG_TABLE_NAME) USING OLD;
		ELSE EXECUTE format('UPDATE %I SET amount = ($1).amount, note = ($1).note, customer = ($1).customer, tags = ($1).tags, at = ($1).at, stamp = ($1).stamp WHERE id = ($1).id', TG_TABLE_NAME) USING OLD;
		END IF;
		RETURN NULL;
	END IF;
	INSERT INTO effects VALUES (COALESCE(NEW.order_id, OLD.order_id), TG_OP);
	IF armed('duplicate') THEN
		EXECUTE format('INSERT INTO %I (order_id, amount, note, customer, tags, at, stamp) SELECT ($1).order_id, ($1).amount, ($1).note, ($1).customer, ($1).tags, ($1).at, ($1).stamp', TG_TABLE_NAME) USING NEW;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER before_write BEFORE INSERT OR UPDATE OR DELETE ON unique_orders FOR EACH ROW EXECUTE FUNCTION before_write();
CREATE TRIGGER after_write AFTER INSERT OR UPDATE OR DELETE ON unique_orders FOR EACH ROW EXECUTE FUNCTION after_write();
CREATE TRIGGER before_write BEFORE INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION before_write();
CREATE TRIGGER after_write AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION after_write();
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO writer;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
`

// columns are those of both tables.
func columns() []sql.Column {
	return []sql.Column{
		{Name: "id", Type: sql.Integer}, {Name: "order_id"}, {Name: "amount", Type: sql.Numeric}, {Name: "note"},
		{Name: "customer", Type: sql.JSON}, {Name: "tags", Type: sql.Array}, {Name: "at", Type: sql.Timestamp},
	}
}

func uniqueTable() sql.Table {
	return sql.Table{Name: "unique_orders", Columns: columns(), Key: []string{"order_id"}, Unique: true, ID: "id",
		Stamp: "stamp", Version: sql.XMin, Whole: true}
}

func plainTable() sql.Table {
	return sql.Table{Name: "orders", Columns: columns(), Key: []string{"order_id"}, ID: "id",
		Stamp: "stamp", StampUpdates: true, Version: "version", Whole: true}
}

func need(t *testing.T) *cluster {
	t.Helper()
	c, err := shared()
	pgtest.Need(t, err)
	return c
}

func dsn(port int, user, app string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres sslmode=disable application_name=%s", port, user, app)
}

// bench is one connector with a proxy in front of the primary for writes and one in front of the
// primary or the standby for reads.
type bench struct {
	*sql.Connector
	t             *testing.T
	c             *cluster
	table         string
	writes, reads *proxy
	resume        atomic.Bool
	run           string
}

var runs atomic.Int64

func newBench(t *testing.T, table sql.Table, onStandby bool, change func(o *sql.Options)) *bench {
	t.Helper()
	c := need(t)
	d := &bench{t: t, c: c, table: pgx.Identifier{table.Name}.Sanitize(), run: fmt.Sprint(runs.Add(1))}
	d.writes, d.reads = newProxy(t, c.primary.Addr()), newProxy(t, c.primary.Addr())
	if onStandby {
		d.reads.target = c.standby.Addr()
	}
	o := sql.Options{
		DSN: dsn(d.writes.port(), "writer", d.app()), ReadDSN: dsn(d.reads.port(), "reader", "reads"),
		Tables: map[string]sql.Table{"order": table}, StandbyWait: time.Second,
	}
	if change != nil {
		change(&o)
	}
	var err error
	if d.Connector, err = sql.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// Write and Read end the fault that was set for them.
func (d *bench) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	defer func() {
		d.writes.arm(wireNone)
		d.exec("DELETE FROM faults WHERE run = $1", d.app())
	}()
	return d.Connector.Write(ctx, r)
}

func (d *bench) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	defer d.wellAgain()
	return d.Connector.Read(ctx, q)
}

// List ends it as Read does.
func (d *bench) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	defer d.wellAgain()
	return d.Connector.List(ctx, s)
}

func (d *bench) wellAgain() {
	d.reads.arm(wireNone)
	if d.resume.Swap(false) {
		if err := d.c.standby.Resume(); err != nil {
			d.t.Error(err)
		}
	}
}

// app is the name of the connection, by which triggers select it.
func (d *bench) app() string { return "under-test-" + d.run }

func (d *bench) exec(q string, args ...any) {
	if _, err := d.c.admin.Exec(context.Background(), q, args...); err != nil {
		d.t.Errorf("%s: %v", q, err)
	}
}

// set switches a fault of the suite on.
func (d *bench) set(v fault.Kind, variant string) error {
	wire := map[fault.Kind]string{
		"lost-answer": wireLost, "dropped-before": wireDropped, "late-commit": wireLate, "unreachable": wireDown,
	}
	switch w, ok := wire[v]; {
	case ok:
		d.writes.arm(w)
	case v == "bad-gateway":
		d.writes.arm("code:" + variant)
	case v == "phantom-success" && variant == "wire":
		d.writes.arm(wirePhantom)
	case v == "unreadable-read":
		d.reads.arm(variant)
	case v == "hanging-read":
		d.reads.arm(wireHang)
	case v == "lagging-read":
		return d.pause()
	case v == "rollback":
		go d.rollBack()
	default:
		names := map[fault.Kind]string{"phantom-success": "phantom", "dropped-field": "dropped",
			"normalised-field": "normalised", "duplicate-behind-our-back": "duplicate", "refused": "refused"}
		if names[v] == "" {
			return fmt.Errorf("no such fault")
		}
		d.exec("INSERT INTO faults VALUES ($1, $2)", names[v], d.app())
	}
	return nil
}

// pause stops the standby, and makes sure that the primary is ahead of it.
func (d *bench) pause() error {
	d.resume.Store(true)
	if err := d.c.standby.Exec("postgres", "SELECT pg_wal_replay_pause()"); err != nil {
		return err
	}
	d.exec("INSERT INTO effects VALUES ('log')")
	return d.c.standby.Pause()
}

// rollBack removes the row that appears, some time after.
func (d *bench) rollBack() {
	for range 500 {
		tag, err := d.c.admin.Exec(context.Background(), "DELETE FROM "+d.table+" WHERE order_id = $1", d.key(1)["order_id"])
		if err != nil || tag.RowsAffected() > 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (d *bench) key(n int) intent.Fields {
	return intent.Fields{"order_id": fmt.Sprintf("Order-%s-%03d", d.run, n)}
}

// records reads the store in a way of its own.
func (d *bench) records(key intent.Fields) []connectors.Record {
	d.t.Helper()
	version := "xmin"
	if !strings.Contains(d.table, "unique") {
		version = "version"
	}
	rows, err := d.c.admin.Query(context.Background(), `SELECT id::text, `+version+`::text, coalesce(stamp, ''), order_id, amount::text, note, customer, tags, at
		FROM `+d.table+` WHERE order_id = $1 ORDER BY id`, key["order_id"])
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	var all []connectors.Record
	for rows.Next() {
		var r connectors.Record
		var orderID string
		var amount, note *string
		var customer map[string]any
		var tags []string
		var at *time.Time
		if err := rows.Scan(&r.Ref, &r.Version, &r.Stamp, &orderID, &amount, &note, &customer, &tags, &at); err != nil {
			d.t.Fatal(err)
		}
		f := intent.Fields{"order_id": orderID, "amount": amount, "note": note, "customer": customer, "tags": tags, "at": at, "id": json.Number(r.Ref)}
		if amount != nil {
			f["amount"] = json.Number(*amount)
		}
		if r.Fields, err = intent.Normalize(f); err != nil {
			d.t.Fatal(err)
		}
		for _, name := range []string{"customer", "tags"} { // nil maps become empty ones
			if (name == "customer" && customer == nil) || (name == "tags" && tags == nil) {
				r.Fields[name] = nil
			}
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return all
}

func (d *bench) effects(key intent.Fields) (n int) {
	d.t.Helper()
	if err := d.c.admin.QueryRow(context.Background(), "SELECT count(*) FROM effects WHERE order_id = $1", key["order_id"]).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}
