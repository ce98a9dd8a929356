package sql_test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
)

func TestOptions(t *testing.T) {
	good := func() sql.Options {
		return sql.Options{DSN: "postgres://writer@localhost/shop", Tables: map[string]sql.Table{"order": uniqueTable()}}
	}
	table := func(change func(t *sql.Table)) func(o *sql.Options) {
		return func(o *sql.Options) {
			t := uniqueTable()
			change(&t)
			o.Tables["order"] = t
		}
	}
	for name, c := range map[string]struct {
		change func(o *sql.Options)
		names  string // "" for none
		reason string
	}{
		"good":                    {func(*sql.Options) {}, "", "nothing is wrong"},
		"a socket":                {func(o *sql.Options) { o.DSN = "host=/var/run/postgresql user=u" }, "", "it does not leave the machine"},
		"TLS":                     {func(o *sql.Options) { o.DSN = "postgres://u@db.example.org/shop?sslmode=verify-full" }, "", "it is protected"},
		"no TLS":                  {func(o *sql.Options) { o.DSN = "postgres://u@db.example.org/shop" }, "without TLS", "sslmode=prefer falls back to none"},
		"no TLS for reads":        {func(o *sql.Options) { o.ReadDSN = "host=replica.example.org user=u sslmode=disable" }, "ReadDSN", "reads have secrets too"},
		"no TLS on purpose":       {func(o *sql.Options) { o.DSN, o.Plaintext = "postgres://u@db/shop", true }, "", "the operator allows it"},
		"one host without TLS":    {func(o *sql.Options) { o.DSN = "host=localhost,db.example.org user=u sslmode=disable" }, "db.example.org", "each host counts"},
		"password in URL":         {func(o *sql.Options) { o.DSN = "postgres://u:secret@localhost/shop" }, "password", "it would be in configuration files"},
		"password in pairs":       {func(o *sql.Options) { o.DSN = "host=localhost password = secret" }, "password", "likewise"},
		"password in parameters":  {func(o *sql.Options) { o.DSN = "postgres://localhost/shop?password=secret" }, "password", "likewise"},
		"nonsense":                {func(o *sql.Options) { o.DSN = "port=abc" }, "DSN", "it is no connection string"},
		"nothing":                 {func(o *sql.Options) { o.DSN = "" }, "DSN and DB", "one of the two"},
		"both":                    {func(o *sql.Options) { o.DB = &stdsql.DB{} }, "DSN and DB", "one of the two"},
		"no tables":               {func(o *sql.Options) { o.Tables = nil }, "Tables", "nothing to write to"},
		"negative":                {func(o *sql.Options) { o.ReadTimeout = -1 }, "ReadTimeout", "not a duration"},
		"no name":                 {table(func(t *sql.Table) { t.Name = "" }), "name", "no table"},
		"a name that is cut":      {table(func(t *sql.Table) { t.Stamp = strings.Repeat("s", 64) }), "stamp", "PostgreSQL cuts names in silence"},
		"a column twice":          {table(func(t *sql.Table) { t.Columns = append(t.Columns, t.Columns[0]) }), "twice", "which of the two"},
		"no key":                  {table(func(t *sql.Table) { t.Key = nil }), "key", "nothing to query by"},
		"a key that is no column": {table(func(t *sql.Table) { t.Key = []string{"nope"} }), "nope", "no type is known"},
		"a key of JSON":           {table(func(t *sql.Table) { t.Key = []string{"customer"} }), "customer", "JSON has no equality to query by"},
		"no name for rows":        {table(func(t *sql.Table) { t.Unique, t.ID = false, "" }), "id", "two rows could not be distinguished"},
		"an id that is no column": {table(func(t *sql.Table) { t.ID = "nope" }), "id", "no type is known"},
		"the stamp as a column":   {table(func(t *sql.Table) { t.Stamp = "note" }), "stamp", "an intent could write it"},
		"stamps without a stamp":  {table(func(t *sql.Table) { t.Stamp, t.StampUpdates = "", true }), "stamp", "nowhere to write it"},
		"the version as a column": {table(func(t *sql.Table) { t.Version = "amount" }), "version", "an intent could write it"},
		"an unknown type":         {table(func(t *sql.Table) { t.Columns[1].Type = "varchar" }), "varchar", "no comparison is defined"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(&o)
			conn, err := sql.New(o)
			if conn != nil {
				conn.Close()
			}
			switch {
			case c.names == "" && err != nil:
				t.Errorf("%v; %s", err, c.reason)
			case c.names != "" && (!errors.Is(err, sql.ErrOptions) || !strings.Contains(err.Error(), c.names)):
				t.Errorf("error %v, want ErrOptions that names %q: %s", err, c.names, c.reason)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	c, err := sql.New(sql.Options{DSN: "host=localhost", Tables: map[string]sql.Table{"unique": uniqueTable(), "plain": plainTable()}})
	if err != nil {
		t.Fatal(err)
	}
	u, p := c.Profiles()["unique"], c.Profiles()["plain"]
	all := []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	if !slices.Equal(u.Writes, all) || !slices.Equal(u.Unique, all) || len(p.Unique) > 0 || slices.Contains(p.Writes, intent.Upsert) {
		t.Errorf("writes %v, unique %v with a unique key; %v, %v without", u.Writes, u.Unique, p.Writes, p.Unique)
	}
	if _, declared := u.Settle.Declared(); declared {
		t.Error("a settle time is declared by itself")
	}
	if h, declared := u.Horizon.Declared(); !declared || h != u.SendFor()*2 {
		t.Errorf("horizon %v, want a send's time for the COMMIT to arrive and 30 s for it to be done", h)
	}
	byKey := uniqueTable()
	byKey.ID, byKey.Whole = "", false
	c, err = sql.New(sql.Options{DSN: "host=localhost", Tables: map[string]sql.Table{"t": byKey}})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Profiles()["t"]; slices.Contains(p.Unique, intent.Delete) || len(p.Undo) > 0 {
		t.Errorf("unique %v, undo %v; want no delete without an id (a key is given again), and no undo of half a row", p.Unique, p.Undo)
	}
}

// TestProbe: each wrong declaration is found, and a right one is not.
func TestProbe(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE probed (id bigint GENERATED ALWAYS AS IDENTITY, k text, p text, d text, v varchar(9), n int, ts timestamptz, stamp text, ver bigint);
		CREATE UNIQUE INDEX ON probed (k) INCLUDE (n); CREATE UNIQUE INDEX ON probed (p) WHERE n > 0; CREATE UNIQUE INDEX ON probed (lower(v));
		ALTER TABLE probed ADD UNIQUE (d) DEFERRABLE; GRANT ALL ON probed TO writer; GRANT SELECT ON probed TO reader;
		CREATE TABLE parent (k text UNIQUE); CREATE TABLE child () INHERITS (parent); GRANT SELECT ON parent TO writer, reader`); err != nil {
		t.Fatal(err)
	}
	text := func(names ...string) (all []sql.Column) {
		for _, n := range names {
			all = append(all, sql.Column{Name: n})
		}
		return all
	}
	unique := func(key string) sql.Table {
		return sql.Table{Name: "probed", Columns: text("k", "p", "d", "v"), Key: []string{key}, Unique: true, Stamp: "stamp", Version: "ver"}
	}
	with := func(c ...sql.Column) sql.Table {
		t := unique("k")
		t.Columns = append(t.Columns, c...)
		return t
	}
	for name, c := range map[string]struct {
		table sql.Table
		names string
	}{
		"right":               {with(sql.Column{Name: "id", Type: sql.Integer, ReadOnly: true}), ""},
		"no table":            {sql.Table{Name: "nope", Columns: text("k"), Key: []string{"k"}, Unique: true}, "no table"},
		"no column":           {with(sql.Column{Name: "nope"}), "nope"},
		"another type":        {with(sql.Column{Name: "ts", Type: sql.LocalTime}), "ts"},
		"filled by itself":    {with(sql.Column{Name: "id", Type: sql.Integer}), "ReadOnly"},
		"partial index":       {unique("p"), "unique"},
		"index of expression": {unique("v"), "unique"},
		"deferrable":          {unique("d"), "unique"},
		"not whole":           {func() sql.Table { t := with(); t.Whole = true; return t }(), "Whole"},
		"no stamp":            {func() sql.Table { t := with(); t.Stamp = "nope"; return t }(), "nope"},
		"a version of times":  {func() sql.Table { t := with(); t.Version = "ts"; return t }(), "ts"},
		"children":            {sql.Table{Name: "parent", Columns: text("k"), Key: []string{"k"}, Unique: true}, "inherit"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newBench(t, c.table, false, nil)
			err := d.Probe(t.Context())
			if (c.names == "") != (err == nil) || (err != nil && (!errors.Is(err, sql.ErrTable) || !strings.Contains(err.Error(), c.names))) {
				t.Errorf("probe says %v, want ErrTable that names %q", err, c.names)
			}
		})
	}
	t.Run("synchronous standbys", func(t *testing.T) {
		d := newBench(t, uniqueTable(), false, nil)
		change := func(q string) {
			if err := errors.Join(c.primary.Exec("postgres", q), c.primary.Exec("postgres", "SELECT pg_reload_conf()")); err != nil {
				t.Error(err)
			}
		}
		change("ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'")
		defer change("ALTER SYSTEM RESET synchronous_standby_names")
		d.eventually("the setting counts", "SELECT current_setting('synchronous_standby_names') <> ''")
		if err := d.Probe(t.Context()); !errors.Is(err, sql.ErrTable) || !strings.Contains(err.Error(), "Horizon") {
			t.Errorf("probe says %v, want the horizon asked for", err)
		}
	})
}

func TestSample(t *testing.T) {
	table := uniqueTable()
	c, err := sql.New(sql.Options{DSN: "host=localhost", Tables: map[string]sql.Table{"order": table}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sample("order", intent.Create, "a1"); !errors.Is(err, sql.ErrSample) {
		t.Errorf("without values: %v, want ErrSample", err)
	}
	table.Sample = sql.Sample{Create: intent.Fields{"note": "a sample of readback"}, Update: intent.Fields{"note": "changed"}}
	if c, err = sql.New(sql.Options{DSN: "host=localhost", Tables: map[string]sql.Table{"order": table}}); err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for _, name := range []string{"a1", "a2"} {
		for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			in, err := c.Sample("order", w, name)
			in.Tenant, in.Workflow, in.Tool, in.Destination = "t", "w", "x", "d"
			if err != nil || in.Validate() != nil {
				t.Errorf("%s: %v, %v; want an intent that is valid", w, err, in.Validate())
			}
			seen[in.Key["order_id"]] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("two names have the keys %v, want one each", seen)
	}
	if _, err := c.Sample("order", intent.Create, "a'b"); !errors.Is(err, sql.ErrSample) {
		t.Errorf("a name that is none: %v, want ErrSample", err)
	}
}

// TestStuckCommit: a connection whose COMMIT failed is not used again: the
// transaction may still be open on it.
func TestStuckCommit(t *testing.T) {
	f := newFile(t, true)
	f.writes.SetMaxIdleConns(1)
	f.write = stuck
	_, err := f.Write(t.Context(), connectors.Request{Intent: f.order(intent.Create, 1), Stamp: "rb-1"})
	fate(t, err, connectors.FateUnknown, "no driver says which errors of COMMIT are certain")
	if _, err := f.Write(t.Context(), connectors.Request{Intent: f.order(intent.Create, 2), Stamp: "rb-2"}); err != nil {
		t.Errorf("the next write says %v; it needs a connection of its own", err)
	}
	if n := len(f.records(f.order(intent.Create, 1).Key)); n != 0 {
		t.Errorf("%d rows of the write that was not committed", n)
	}
}

// TestBusyCommit: the next user of a connection must not commit what SQLite temporarily refused
// to.
func TestBusyCommit(t *testing.T) {
	path := "file:" + filepath.Join(t.TempDir(), "x.db") // a rollback journal: COMMIT waits for readers
	open := func() *stdsql.DB {
		db, err := stdsql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db, other := open(), open()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES ('0', '')"} {
		if _, err := other.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	c, err := sql.New(sql.Options{DB: db, ReadDB: other, Dialect: sql.SQLite(), Tables: map[string]sql.Table{"t": {Name: "t", Columns: []sql.Column{{Name: "k"}, {Name: "v"}}, Key: []string{"k"}, Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	reading, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	in := intent.WriteIntent{Kind: "t", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"v": "x"}}
	_, err = c.Write(context.Background(), connectors.Request{Intent: in})
	fate(t, err, connectors.FateUnknown, "no driver says which errors of COMMIT are certain")
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	in.Key = intent.Fields{"k": "2"}
	if _, err := c.Write(context.Background(), connectors.Request{Intent: in}); err != nil {
		t.Errorf("the next write says %v; it needs a connection of its own", err)
	}
	if err := other.QueryRow("SELECT count(*) FROM t WHERE k = '1'").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows of the write that was not committed (%v)", n, err)
	}
}
