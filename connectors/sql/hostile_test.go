package sql_test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
)

// hostile are names and values that want to be more than that.
var hostile = []string{
	`"; DROP TABLE victims; --`, `'; DROP TABLE victims; --`, `$1`, `a"b'c\d`, `x) VALUES ('1'); DROP TABLE victims; --`, `{"a":1}`, `NULL`, `*/ DROP TABLE victims /*`, "line\nbreak", `%s ? :name @p1`,
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// TestInjection: every name of a table and every value of an intent is what it
// is, and nothing else.
func TestInjection(t *testing.T) {
	for n, name := range hostile {
		kind := sql.Table{Name: fmt.Sprint(n, name), Key: []string{"k" + name}, Unique: true, Stamp: "s" + name, Version: "v" + name, Whole: true,
			Columns: []sql.Column{{Name: "k" + name}, {Name: "c" + name}, {Name: "j" + name, Type: sql.JSON}}}
		ddl := func(json string) string {
			return fmt.Sprintf("CREATE TABLE %s (%s text PRIMARY KEY, %s text, %s %s, %s text, %s integer)", quoted(kind.Name), quoted("k"+name), quoted("c"+name), quoted("j"+name), json, quoted("s"+name), quoted("v"+name))
		}
		t.Run(fmt.Sprintf("PostgreSQL/%d", n), func(t *testing.T) {
			c := need(t)
			if err := c.primary.Exec("postgres", ddl("jsonb")+"; CREATE TABLE IF NOT EXISTS victims (); GRANT ALL ON ALL TABLES IN SCHEMA public TO writer; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"); err != nil {
				t.Fatal(err)
			}
			d := newBench(t, kind, false, nil)
			if err := d.Probe(t.Context()); err != nil {
				t.Error(err)
			}
			inject(t, d.Connector, name, true)
			d.exec("SELECT 1 FROM victims")
		})
		t.Run(fmt.Sprintf("SQLite/%d", n), func(t *testing.T) {
			db, err := stdsql.Open("sqlite", at(filepath.Join(t.TempDir(), "x.db")))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			for _, q := range []string{ddl("text"), "CREATE TABLE victims (x)"} {
				if _, err := db.Exec(q); err != nil {
					t.Fatal(err)
				}
			}
			c, err := sql.New(sql.Options{DB: db, Dialect: sql.SQLite(), ReadYourWrites: true, Tables: map[string]sql.Table{"order": kind}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Probe(t.Context()); err != nil {
				t.Error(err)
			}
			inject(t, c, name, false)
			if _, err := db.Exec("SELECT 1 FROM victims"); err != nil {
				t.Error(err)
			}
		})
	}
}

// inject takes a row through its lifetime with a hostile value everywhere.
func inject(t *testing.T, c *sql.Connector, name string, merges bool) {
	t.Helper()
	for i, value := range hostile {
		key := fmt.Sprint(i, value)
		stamp := "rb-" + value
		in := intent.WriteIntent{Kind: "order", Key: intent.Fields{"k" + name: key}}
		read := func() connectors.Observation {
			o, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: stamp})
			if err != nil {
				t.Fatalf("%q: %v", value, err)
			}
			return o
		}
		for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			before := read()
			in.Write, in.Absent = w, nil
			in.Expect = intent.Fields{"c" + name: value + string(w)}
			if w == intent.Create || merges {
				in.Expect["j"+name] = map[string]any{value: map[string]any{value: value}, "gone" + value: true}
			}
			if w == intent.Update && merges {
				in.Expect["j"+name] = map[string]any{value: map[string]any{"more" + value: string(w)}}
				in.Absent = []string{string(intent.Pointer("").AppendToken("j" + name).AppendToken("gone" + value))}
			}
			r := connectors.Request{Intent: in, Stamp: stamp, Before: &before, Conditional: w != intent.Create}
			if w == intent.Delete {
				in.Expect = nil
			}
			if _, err := c.Write(t.Context(), r); err != nil {
				t.Fatalf("%s of %q: %v", w, value, err)
			}
			after := read()
			if w == intent.Delete {
				if len(after.Records) != 0 {
					t.Errorf("after the delete of %q there are %v", value, after.Records)
				}
				continue
			}
			if len(after.Records) != 1 || after.Records[0].Fields["c"+name] != value+string(w) || after.Records[0].Stamp != stamp {
				t.Fatalf("after the %s of %q there are %v", w, value, after.Records)
			}
			if w == intent.Update && merges {
				want := map[string]any{value: map[string]any{value: value, "more" + value: string(w)}}
				if diff := cmp.Diff(want, after.Records[0].Fields["j"+name]); diff != "" {
					t.Errorf("after the update the JSON is (-want +got)\n%s", diff)
				}
			}
		}
	}
}

// TestReadsCannotWrite: neither the role nor the transaction lets a read change
// anything, even where a function of the table would.
func TestReadsCannotWrite(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE touched (n int); CREATE TABLE base (k text PRIMARY KEY, stamp text); INSERT INTO base VALUES ('1');
		CREATE FUNCTION touch() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO touched VALUES (1); RETURN 'x'; END $$;
		CREATE VIEW touching AS SELECT k, touch() AS v FROM base; GRANT SELECT ON touching, base TO reader, writer`); err != nil {
		t.Fatal(err)
	}
	d := newBench(t, sql.Table{Name: "touching", Columns: []sql.Column{{Name: "k"}, {Name: "v"}}, Key: []string{"k"}, Unique: true}, false, nil)
	_, err := d.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Kind: "order", Key: intent.Fields{"k": "1"}}})
	if err == nil || !strings.Contains(err.Error(), "25006") {
		t.Errorf("a read that writes says %v, want the error 25006", err)
	}
	reading := newBench(t, uniqueTable(), false, func(o *sql.Options) { o.DSN = dsn(c.port(t), "reader", "w") })
	_, err = reading.Connector.Write(t.Context(), reading.request(intent.Create, 1, nil))
	fate(t, err, connectors.FateRefused, "the role that reads may not write")
	if err := d.Probe(t.Context()); !errors.Is(err, sql.ErrTable) {
		t.Errorf("probe of a view says %v, want ErrTable: a view can hide rows", err)
	}
}

func (c *cluster) port(t *testing.T) (port int) {
	t.Helper()
	if _, err := fmt.Sscanf(c.primary.Addr(), "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}

// TestHiddenIsNotAbsent: a row that a policy hides, or that is in the table of the other role's
// search path, is not absent.
func TestHiddenIsNotAbsent(t *testing.T) {
	c := need(t)
	if err := c.primary.Exec("postgres", `CREATE TABLE secret (k text PRIMARY KEY, stamp text); INSERT INTO secret VALUES ('1');
		ALTER TABLE secret ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON secret TO writer USING (true);
		CREATE ROLE elsewhere LOGIN; CREATE SCHEMA other; CREATE TABLE other.unique_orders (LIKE unique_orders); GRANT USAGE ON SCHEMA other TO elsewhere;
		GRANT SELECT ON other.unique_orders TO elsewhere; ALTER ROLE elsewhere SET search_path = other;
		GRANT SELECT ON secret TO reader, writer`); err != nil {
		t.Fatal(err)
	}
	d := newBench(t, sql.Table{Name: "secret", Columns: []sql.Column{{Name: "k"}}, Key: []string{"k"}, Unique: true}, false, nil)
	o, err := d.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Kind: "order", Key: intent.Fields{"k": "1"}}})
	if err == nil {
		t.Errorf("with the row hidden the read finds %d rows, want an error", len(o.Records))
	}
	d = newBench(t, uniqueTable(), false, func(o *sql.Options) { o.ReadDSN = dsn(c.port(t), "elsewhere", "r") })
	d.wrote(intent.Create, 1, nil)
	if o, err := d.Read(t.Context(), d.query(intent.Create, 1)); !errors.Is(err, sql.ErrElsewhere) {
		t.Errorf("by another search path the read finds %d rows (%v), want ErrElsewhere", len(o.Records), err)
	}
	t.Cleanup(func() {
		_, _ = c.admin.Exec(context.Background(), "DROP SCHEMA other CASCADE")
	})
}

// TestInexactKey: a collation that treats two texts as equal makes neither a match nor absence.
func TestInexactKey(t *testing.T) {
	db, err := stdsql.Open("sqlite", at(filepath.Join(t.TempDir(), "x.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, v TEXT); INSERT INTO t VALUES ('ABC', 'x')"); err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[sql.Type]error{sql.Text: sql.ErrInexact, sql.CaseFold: nil} {
		c, err := sql.New(sql.Options{DB: db, Dialect: sql.SQLite(), Tables: map[string]sql.Table{"t": {Name: "t", Columns: []sql.Column{{Name: "k", Type: typ}, {Name: "v"}}, Key: []string{"k"}, Unique: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := c.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Kind: "t", Key: intent.Fields{"k": "abc"}}}); !errors.Is(err, want) {
			t.Errorf("a %s key that matches another spelling: %d rows, %v; want %v", typ, len(o.Records), err, want)
		}
	}
}
