package sql_test

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestSQLite runs the suite on SQLite through database/sql.
func TestSQLite(t *testing.T) {
	t.Run("unique", func(t *testing.T) { sqliteConformance(t, true) })
	t.Run("not unique", func(t *testing.T) { sqliteConformance(t, false) })
}

func sqliteConformance(t *testing.T, unique bool) {
	lacks := map[string]string{
		string(fault.Throttled):      "no driver says how long to wait",
		connectortest.LacksNullField: "a column is NULL or has a value; it is never missing",
	}
	writes := []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	if unique {
		writes = append(writes, intent.Upsert)
		lacks[string(fault.DuplicateBehindOurBack)] = "SQLite lets no second row under a unique key appear"
	}
	connectortest.Run(t, connectortest.Harness{
		Open:     func(t *testing.T) *connectortest.Fixture { return newFile(t, unique).fixture() },
		Writes:   writes,
		Lacks:    lacks,
		RealTime: true,
		Variants: map[fault.Kind][]string{fault.UnreadableRead: {"error", "cut"}},
	})
}

// file is a SQLite database with a driver that misbehaves.
type file struct {
	*sql.Connector
	t           *testing.T
	path, stale string // stale is as the file was when nothing was in it
	admin       *stdsql.DB
	writes      *stdsql.DB

	mu          sync.Mutex
	write, read fault.Kind
	how         string
	commits     int
	gone        chan struct{} // closed when the write under way has come back
}

func newFile(t *testing.T, unique bool) *file {
	t.Helper()
	dir := t.TempDir()
	f := &file{t: t, path: filepath.Join(dir, "now.db"), stale: filepath.Join(dir, "then.db"), gone: make(chan struct{})}
	table := sql.Table{Name: "orders", Key: []string{"order_id"}, ID: "id", Stamp: "stamp", Version: "version", Whole: true, Unique: unique,
		Columns: []sql.Column{{Name: "id", Type: sql.Integer}, {Name: "order_id"}, {Name: "amount", Type: sql.Numeric}, {Name: "note"}, {Name: "open", Type: sql.Bool}, {Name: "meta", Type: sql.JSON}}}
	constraint := ""
	if unique {
		constraint = "UNIQUE"
	}
	for _, path := range []string{f.path, f.stale} {
		db, err := stdsql.Open("sqlite", at(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"PRAGMA journal_mode = WAL", `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL ` + constraint + `,
			amount NUMERIC, note TEXT, open BOOLEAN, meta TEXT, stamp TEXT, version INTEGER NOT NULL DEFAULT 1)`, "CREATE TABLE effects (order_id TEXT)"} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if path == f.path {
			f.admin = db
			t.Cleanup(func() { _ = db.Close() })
		} else if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	writes, reads := stdsql.OpenDB(source{f, true}), stdsql.OpenDB(source{f, false})
	f.writes = writes
	for _, db := range []*stdsql.DB{writes, reads} {
		db.SetMaxIdleConns(0) // each call gets the faults with a connection of its own
		t.Cleanup(func() { _ = db.Close() })
	}
	var err error
	f.Connector, err = sql.New(sql.Options{DB: writes, ReadDB: reads, Dialect: sql.SQLite(), Tables: map[string]sql.Table{"order": table}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func at(path string) string {
	return "file:" + path + "?_pragma=busy_timeout(5000)&_txlock=immediate"
}

func (f *file) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	f.mu.Lock()
	gone := make(chan struct{})
	f.gone = gone
	f.mu.Unlock()
	defer func() {
		close(gone)
		f.mu.Lock()
		f.write = ""
		f.mu.Unlock()
	}()
	return f.Connector.Write(ctx, r)
}

func (f *file) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	defer f.wellAgain()
	return f.Connector.Read(ctx, q)
}

func (f *file) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	defer f.wellAgain()
	return f.Connector.List(ctx, s)
}

func (f *file) wellAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = ""
}

func (f *file) takeFault(writes bool) (fault.Kind, string, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if writes {
		return f.write, f.how, f.gone
	}
	return f.read, f.how, f.gone
}

func (f *file) exec(q string, args ...any) {
	if _, err := f.admin.ExecContext(context.Background(), q, args...); err != nil {
		f.t.Errorf("%s: %v", q, err)
	}
}

// source opens connections for writes or for reads.
type source struct {
	f      *file
	writes bool
}

func (s source) Driver() driver.Driver { return &sqlite.Driver{} }

// Connect makes temporary triggers on connections for writes: the table effects contains only
// what the connector did.
func (s source) Connect(context.Context) (driver.Conn, error) {
	kind, _, _ := s.f.takeFault(s.writes)
	path := s.f.path
	switch kind {
	case fault.Unreachable:
		return nil, errors.New("no such host")
	case fault.LaggingRead:
		path = s.f.stale
	}
	inner, err := (&sqlite.Driver{}).Open(at(path))
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, source: s}
	if s.writes {
		for event, row := range map[string]string{"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"} {
			err := c.run("CREATE TEMP TRIGGER effect_" + event + " AFTER " + event + " ON main.orders BEGIN INSERT INTO effects VALUES (" + row + ".order_id); END")
			if err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

type conn struct {
	driver.Conn
	source
}

func (c *conn) run(q string) error {
	_, err := c.Conn.(driver.ExecerContext).ExecContext(context.Background(), q, nil)
	return err
}

// QueryContext is every statement of the connector.
func (c *conn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	kind, how, _ := c.f.takeFault(c.writes)
	switch {
	case kind == fault.Refused:
		return nil, errors.New("constraint failed")
	case kind == fault.HangingRead:
		<-ctx.Done()
		return nil, ctx.Err()
	case kind == fault.UnreadableRead && how == "error":
		return nil, errors.New("disk I/O error")
	case kind == fault.UnreadableRead:
		return cutRows{}, nil
	case kind == fault.DroppedField, kind == fault.NormalisedField:
		args = alter(kind, strings.HasPrefix(q, "UPDATE"), args)
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

// alter is what a database does with the note that it is given.
func alter(kind fault.Kind, update bool, args []driver.NamedValue) []driver.NamedValue {
	altered := append([]driver.NamedValue(nil), args...)
	for i, a := range altered {
		text, _ := a.Value.(string)
		if text != "Changed" && text != note {
			continue
		}
		switch {
		case kind == fault.NormalisedField:
			altered[i].Value = strings.ToUpper(text)
		case update:
			altered[i].Value = note
		default:
			altered[i].Value = nil
		}
	}
	return altered
}

type cutRows struct{}

func (cutRows) Columns() []string         { return make([]string, 8) }
func (cutRows) Close() error              { return nil }
func (cutRows) Next([]driver.Value) error { return io.ErrUnexpectedEOF }

// BeginTx has no context: a remote server does not know that a client has gone, and commits late.
func (c *conn) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(context.Background(), o)
	return &transaction{tx, c}, err
}

type transaction struct {
	driver.Tx
	c *conn
}

// stuck: COMMIT fails and the transaction stays open.
const stuck = fault.Kind("stuck")

var errCut = errors.New("connection reset")

// Commit is where a write can be lost.
func (tx *transaction) Commit() error {
	kind, _, gone := tx.c.f.takeFault(true)
	tx.c.f.mu.Lock()
	tx.c.f.commits++
	tx.c.f.write = ""
	tx.c.f.mu.Unlock()
	switch kind {
	case fault.PhantomSuccess:
		return tx.Rollback()
	case stuck:
		return errCut
	case fault.DroppedBefore:
		return errors.Join(errCut, tx.Rollback())
	case fault.LostAnswer, fault.BadGateway:
		return errors.Join(errCut, tx.Tx.Commit())
	case fault.LateCommit:
		<-gone
	case fault.DuplicateBehindOurBack:
		err := tx.c.run(`INSERT INTO orders (order_id, amount, note, open, meta, stamp) SELECT order_id, amount, note, open, meta, stamp FROM orders WHERE id = (SELECT max(id) FROM orders);
			DELETE FROM effects WHERE rowid = (SELECT max(rowid) FROM effects)`)
		return errors.Join(err, tx.Tx.Commit())
	}
	return tx.Tx.Commit()
}

const note = " Two Words "

func (f *file) order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "order", Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("Order-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"amount": json.Number("10.50"), "note": note, "open": true, "meta": map[string]any{"a": []any{json.Number("1")}}}
	case intent.Update:
		in.Expect = intent.Fields{"note": "Changed", "open": false}
	case intent.Upsert:
		in.Expect = intent.Fields{"note": "Set", "amount": json.Number("30")}
	}
	return in
}

func (f *file) set(v fault.Kind, how string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.how = how; v {
	case fault.LaggingRead, fault.UnreadableRead, fault.HangingRead:
		f.read = v
	case fault.Rollback:
		go func() {
			for range 500 {
				res, err := f.admin.Exec("DELETE FROM orders")
				if err != nil {
					return
				}
				if n, _ := res.RowsAffected(); n > 0 {
					return
				}
				<-time.After(20 * time.Millisecond)
			}
		}()
	default:
		f.write = v
	}
	return nil
}

func (f *file) records(key intent.Fields) []connectors.Record {
	f.t.Helper()
	rows, err := f.admin.Query("SELECT id, version, coalesce(stamp, ''), order_id, amount, note, open, meta FROM orders WHERE order_id = ? ORDER BY id", key["order_id"])
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []connectors.Record
	for rows.Next() {
		var r connectors.Record
		var orderID string
		var amount stdsql.NullFloat64
		var noted, meta *string
		var open *bool
		if err := rows.Scan(&r.Ref, &r.Version, &r.Stamp, &orderID, &amount, &noted, &open, &meta); err != nil {
			f.t.Fatal(err)
		}
		fields := intent.Fields{"order_id": orderID, "note": noted, "open": open, "meta": meta, "amount": nil}
		if amount.Valid {
			fields["amount"] = amount.Float64
		}
		if meta != nil {
			fields["meta"] = json.RawMessage(*meta)
		}
		if r.Fields, err = intent.Normalize(fields); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func (f *file) fixture() *connectortest.Fixture {
	return &connectortest.Fixture{
		Connector: f,
		Profile:   f.Profiles()["order"],
		Intent:    f.order,
		Near: func(n int) []intent.WriteIntent {
			var all []intent.WriteIntent
			for i, id := range []string{fmt.Sprintf("order-%03d", n), fmt.Sprintf("Order-%03d0", n), fmt.Sprintf(" Order-%03d", n), fmt.Sprintf("Order-%03d ", n), "Order-%"} {
				in := f.order(intent.Create, 100+i)
				in.Key["order_id"] = id
				all = append(all, in)
			}
			return all
		},
		Set: f.set,
		Seed: func(w intent.WriteIntent) {
			meta, _ := json.Marshal(w.Expect["meta"])
			f.exec("INSERT INTO orders (order_id, amount, note, open, meta) VALUES (?, ?, ?, ?, ?)", w.Key["order_id"], string(w.Expect["amount"].(json.Number)), w.Expect["note"], w.Expect["open"], string(meta))
		},
		Change: func(key intent.Fields) {
			f.exec("UPDATE orders SET note = 'theirs', version = version + 1 WHERE order_id = ?", key["order_id"])
		},
		Records: f.records,
		Effects: func(key intent.Fields) (n int) {
			if err := f.admin.QueryRow("SELECT count(*) FROM effects WHERE order_id = ?", key["order_id"]).Scan(&n); err != nil {
				f.t.Fatal(err)
			}
			return n
		},
		Sends: func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.commits
		},
		Same: same,
	}
}

// A table that does not exist is not one that cannot be read now.
func TestMistypedTable(t *testing.T) {
	f := newFile(t, true)
	in := intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"note": "x"}}
	if _, err := f.admin.Exec("ALTER TABLE orders RENAME TO ordres"); err != nil {
		t.Fatal(err)
	}
	_, err := f.Read(t.Context(), connectors.Query{Intent: in})
	if !errors.Is(err, connectors.ErrNoTarget) || !strings.Contains(err.Error(), "no such table: orders") {
		t.Errorf("%v, want no such table", err)
	}
}
