package eval_test

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// seeded is a log of orders in which so many of each problem are seeded.
type seeded struct {
	rows, each int
	problems   map[int]string // of rows
}

var seededProblems = []string{"missing", "altered", "duplicated"}

func newSeeded(seed uint64, rows, each int) seeded {
	s := seeded{rows, each, map[int]string{}}
	for i, row := range rand.New(rand.NewPCG(seed, 7)).Perm(rows)[:each*len(seededProblems)] {
		s.problems[row] = seededProblems[i/each]
	}
	return s
}

// world gives the records that are at the destination.
func (s seeded) world(there func(id string, cents int) error) error {
	var all []error
	for i := range s.rows {
		id, cents := fmt.Sprintf("A-%07d", i), i
		switch s.problems[i] {
		case "missing":
			continue
		case "altered":
			cents++
		case "duplicated":
			all = append(all, there(id, cents))
		}
		all = append(all, there(id, cents))
	}
	for i := range s.each {
		all = append(all, there(fmt.Sprintf("F-%07d", i), 1))
	}
	return errors.Join(all...)
}

// csv writes the log.
func (s seeded) csv(tb testing.TB, path string, written time.Time) eval.Log {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	to := bufio.NewWriter(f)
	_, _ = fmt.Fprintln(to, "written,order,cents,agent")
	for i := range s.rows {
		_, _ = fmt.Fprintf(to, "%s,A-%07d,%d.0,\"a, b\"\n", written.UTC().Format(time.RFC3339), i, i)
	}
	if err := errors.Join(to.Flush(), f.Close()); err != nil {
		tb.Fatal(err)
	}
	return eval.Log{Name: path, Rows: eval.Rows(path), Destination: "orders", Kind: "order", Key: []string{"order"}, At: "written",
		Map: map[string]string{"order_id": "order", "amount_cents": "cents"}, Types: map[string]string{"cents": "number"}}
}

var namedKey = regexp.MustCompile(`[AF]-\d+`)

// reconcile fails unless the findings are exactly those seeded: precision and recall are 1.
func (s seeded) reconcile(tb testing.TB, l eval.Log, reg *connectors.Registry) eval.Reconciliation {
	tb.Helper()
	want, got := map[string]string{}, map[string]string{}
	for row, problem := range s.problems {
		want[fmt.Sprintf("A-%07d", row)] = problem
	}
	for i := range s.each {
		want[fmt.Sprintf("F-%07d", i)] = "foreign"
	}
	r, err := eval.Reconcile(tb.Context(), l, reg, eval.Options{OnFinding: func(_ string, _ bool, n eval.Named) {
		key := namedKey.FindString(n.Name + n.Says)
		if got[key] != "" {
			tb.Errorf("%s is %s and %s", key, got[key], n.Problem)
		}
		got[key] = n.Problem
		if row := map[bool]int{true: 0, false: 2}[n.Problem == "foreign"]; row > 0 {
			_, _ = fmt.Sscanf(key, "A-%d", &row)
			if line := fmt.Sprintf("%s:%d", filepath.Base(l.Name), row+2); n.Declared != line {
				tb.Errorf("%s is said to be of %s, want %s", key, n.Declared, line)
			}
		}
	}})
	if err != nil {
		tb.Fatal(err)
	}
	if !maps.Equal(got, want) {
		for key := range want {
			if got[key] != want[key] {
				tb.Errorf("%s is %q, want %s", key, got[key], want[key])
				break
			}
		}
		tb.Errorf("%d findings, want %d\n%s", len(got), len(want), r.Text())
	}
	if r.Missing != s.each || r.Altered != s.each || r.Duplicated != s.each || r.Foreign != s.each || r.NotChecked != 0 || r.Rows != s.rows ||
		r.Matched != s.rows-3*s.each || r.Fields["/amount_cents"] != s.each || r.ForeignUnchecked != "" || r.Verdict() != eval.VerdictWrong || len(r.Findings) != min(50, 4*s.each) {
		tb.Errorf("%+v", r)
	}
	return r
}

const (
	fewRows, fewEach   = 20_000, 1000
	manyRows, manyEach = 1_000_000, 1000
)

// TestReconcileFake: reads lag, a page of the list fails, and a bulk read fails.
func TestReconcileFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Lagging.Options()
		o.Bulk = true
		s, seed := newStage(t, o), newSeeded(1, fewRows, fewEach)
		if err := seed.world(func(id string, cents int) error { s.there(id, cents, ""); return nil }); err != nil {
			t.Fatal(err)
		}
		l := seed.csv(t, filepath.Join(s.dir, "log.csv"), time.Now())
		l.At = "" // each row may have been written just now: the reads wait until it shows
		for _, nth := range []int{700, 1900} {
			if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead, How: "502", Nth: nth}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead, How: "cut", Skip: 3000, Times: 1}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r := seed.reconcile(t, l, s.registry())
		if waited := time.Since(began); waited < orders.DefaultLag || r.Lists < 2 || r.Reads < 3*fewEach {
			t.Errorf("after %v, by %d lists and %d reads", waited, r.Lists, r.Reads)
		}
	})
}

// broken is a table whose list breaks off in the middle, once.
type broken struct {
	*sql.Connector
	after int
}

func (c *broken) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	each := s.Each
	s.Each = func(r connectors.Listed) error {
		if c.after--; c.after == 0 {
			return errors.New("the connection was lost")
		}
		return each(r)
	}
	return c.Connector.List(ctx, s)
}

// seededTable is a SQLite table with the records, beside a log in CSV.
func seededTable(tb testing.TB, seed seeded) (eval.Log, *connectors.Registry) {
	tb.Helper()
	dir := tb.TempDir()
	db, err := stdsql.Open("sqlite", filepath.Join(dir, "orders.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, order_id TEXT, amount_cents INTEGER); CREATE INDEX o ON orders (order_id)"); err != nil {
		tb.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		tb.Fatal(err)
	}
	insert, err := tx.Prepare("INSERT INTO orders (order_id, amount_cents) VALUES (?, ?)")
	if err != nil {
		tb.Fatal(err)
	}
	err = seed.world(func(id string, cents int) error { _, err := insert.Exec(id, cents); return err })
	if err := errors.Join(err, tx.Commit()); err != nil {
		tb.Fatal(err)
	}
	c, err := sql.New(sql.Options{DB: db, Dialect: sql.SQLite(), ReadYourWrites: true, Tables: map[string]sql.Table{"order": {
		Name: "orders", Key: []string{"order_id"}, ID: "id",
		Columns: []sql.Column{{Name: "id", Type: sql.Integer, ReadOnly: true}, {Name: "order_id"}, {Name: "amount_cents", Type: sql.Integer}},
	}}})
	if err != nil {
		tb.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: &broken{c, seed.rows / 2}, Profiles: c.Profiles()}); err != nil {
		tb.Fatal(err)
	}
	return seed.csv(tb, filepath.Join(dir, "log.csv"), time.Now().Add(-time.Hour)), &reg
}

func TestReconcileTable(t *testing.T) {
	seed := newSeeded(2, fewRows, fewEach)
	l, reg := seededTable(t, seed)
	if r := seed.reconcile(t, l, reg); r.Lists != 2 {
		t.Errorf("%d lists, want a second one after the first broke off", r.Lists)
	}
}

// BenchmarkReconcile is of a million rows, with a thousand of each problem.
func BenchmarkReconcile(b *testing.B) {
	seed := newSeeded(3, manyRows, manyEach)
	l, reg := seededTable(b, seed)
	for b.Loop() {
		r := seed.reconcile(b, l, reg)
		b.ReportMetric(r.Took.Seconds(), "s")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(peakKB())/1024, "peak-MB")
}

// reconcile compares a log, given as text, with the orders of a stage.
func (s *stage) reconcile(name, text string, change func(*eval.Log)) (eval.Reconciliation, error) {
	s.Helper()
	path := s.write(name, text)
	l := eval.Log{Name: path, Rows: eval.Rows(path), Destination: "orders", Kind: "order", Key: []string{"order_id"}, Patience: time.Second}
	if change != nil {
		change(&l)
	}
	return eval.Reconcile(s.Context(), l, s.registry(), eval.Options{})
}

// summary is a reconciliation in one line.
func summary(r eval.Reconciliation) string {
	return fmt.Sprintf("matched %d, missing %d, altered %d, duplicated %d, foreign %d, not checked %d, %q", r.Matched, r.Missing, r.Altered, r.Duplicated, r.Foreign, r.NotChecked, r.Verdict())
}

// TestReconcileDoubt: what could not be read, or may not show yet, is not missing.
func TestReconcileDoubt(t *testing.T) {
	row := func(id string, age time.Duration, cents int) string {
		return fmt.Sprintf(`{"order_id":%q,"amount_cents":%d,"at":%q}`+"\n", id, cents, time.Now().Add(-age).UTC().Format(time.RFC3339Nano))
	}
	at := func(l *eval.Log) { l.At = "at" }
	for name, c := range map[string]struct {
		options func(*orders.Options)
		world   func(*stage)
		log     func() string
		change  func(*eval.Log)
		want    string
		foreign string
		reason  string
	}{
		"all is there": {nil, func(s *stage) { s.there("A-1", 100, "") }, func() string { return row("A-1", time.Hour, 100) }, at,
			`matched 1, missing 0, altered 0, duplicated 0, foreign 0, not checked 0, "passed"`, "", "as in the log"},
		"written just now": {nil, func(s *stage) { s.there("A-3", 1, "") }, func() string { return row("A-1", time.Hour, 1) + row("A-2", 0, 1) + row("A-3", 0, 100) }, at,
			`matched 0, missing 1, altered 0, duplicated 0, foreign 0, not checked 2, "wrong"`, "", "A-2 and A-3 may not show yet, A-1 would"},
		"all just now": {nil, func(*stage) {}, func() string { return row("A-2", 0, 1) }, at,
			`matched 0, missing 0, altered 0, duplicated 0, foreign 0, not checked 1, ""`, "", "so nothing is known"},
		"two there just now": {nil, func(s *stage) { s.there("A-1", 1, ""); s.there("A-1", 1, "") }, func() string { return row("A-1", 0, 1) }, at,
			`matched 0, missing 0, altered 0, duplicated 1, foreign 0, not checked 0, "wrong"`, "", "what shows is there"},
		"age unknown": {nil, func(*stage) {}, func() string { return row("A-1", time.Hour, 100) }, func(l *eval.Log) { l.Map = map[string]string{"amount_cents": "amount_cents"} },
			`matched 0, missing 0, altered 0, duplicated 0, foreign 0, not checked 1, ""`, "reads may lag by 2s, which have not passed since the last send and are more than patience allows", "patience is below the settle time"},
		"reads fail": {nil, func(s *stage) {
			if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead}); err != nil {
				s.Fatal(err)
			}
		}, func() string { return row("A-1", time.Hour, 100) }, at,
			`matched 0, missing 0, altered 0, duplicated 0, foreign 0, not checked 1, ""`, "500 Internal Server Error", "an error is no absence"},
		"no settle time": {func(o *orders.Options) { o.Settle = connectors.Bound{} }, func(*stage) {}, func() string { return row("A-1", time.Hour, 100) }, at,
			`matched 0, missing 0, altered 0, duplicated 0, foreign 0, not checked 1, ""`, "declares no settle time", "weak reads prove nothing"},
		"foreign not asked for": {nil, func(s *stage) { s.there("A-1", 100, ""); s.there("B-1", 1, "") }, func() string { return row("A-1", time.Hour, 100) },
			func(l *eval.Log) { l.At, l.NoForeign = "at", true },
			`matched 1, missing 0, altered 0, duplicated 0, foreign 0, not checked 0, "passed"`, "", "and the text says so"},
		"no list": {nil, func(s *stage) { s.there("A-1", 100, "") }, func() string { return row("A-1", time.Hour, 100) },
			func(l *eval.Log) { l.At, l.Within = "at", intent.Fields{"box": "x"} },
			`matched 1, missing 0, altered 0, duplicated 0, foreign 0, not checked 0, ""`, "this cannot be listed", "foreign ones are not known"},
		"a repeated key": {nil, func(s *stage) { s.there("A-1", 2, "") }, func() string { return row("A-1", 2*time.Hour, 1) + row("A-1", time.Hour, 2) }, at,
			`matched 1, missing 0, altered 0, duplicated 0, foreign 0, not checked 0, "passed"`, "", "the later one counts"},
		"foreign in time": {nil, func(s *stage) {
			s.there("A-1", 100, "")
			s.there("B-1", 1, "")
			<-time.After(time.Hour)
			s.there("C-1", 1, "")
		},
			func() string { return row("A-1", time.Hour, 100) }, func(l *eval.Log) { l.At, l.From = "at", time.Now().Add(-time.Minute) },
			`matched 1, missing 0, altered 0, duplicated 0, foreign 1, not checked 0, "wrong"`, "", "B-1 is older"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Lagging.Options()
				if c.options != nil {
					c.options(&o)
				}
				s := newStage(t, o)
				c.world(s)
				<-time.After(orders.DefaultLag)
				r, err := s.reconcile("log.jsonl", c.log(), c.change)
				if err != nil {
					t.Fatal(err)
				}
				if got := summary(r); got != c.want || (c.foreign == "") != (r.ForeignUnchecked == "") || !strings.Contains(r.ForeignUnchecked, c.foreign) {
					t.Errorf("%s, foreign %q; want %s, %q: %s\n%s", got, r.ForeignUnchecked, c.want, c.foreign, c.reason, r.Text())
				}
				if asked := !strings.Contains(r.Text(), "not checked: --foreign=false"); asked == (name == "foreign not asked for") {
					t.Errorf("asked %t:\n%s", asked, r.Text())
				}
			})
		})
	}
}

// TestReconcileValues: values are those of the log; only a type that is named changes one.
func TestReconcileValues(t *testing.T) {
	const csv = "\ufefforder_id,amount_cents,paid,tags,note,count\nA-1,100,true,\"[\"\"a\"\",1]\",,7\n"
	types := map[string]string{"amount_cents": "number", "paid": "boolean", "tags": "json"}
	for name, c := range map[string]struct {
		log     string
		change  func(*eval.Log)
		altered map[string]int
		reason  string
	}{
		"typed":        {csv, func(l *eval.Log) { l.Types, l.Empty = types, "null" }, nil, "all as there"},
		"empty text":   {csv, func(l *eval.Log) { l.Types = types }, map[string]int{"/note": 1}, "empty is not null"},
		"empty skip":   {csv, func(l *eval.Log) { l.Types, l.Empty = types, "skip" }, nil, "not compared"},
		"no types":     {csv, func(l *eval.Log) { l.Empty = "null" }, map[string]int{"/amount_cents": 1, "/paid": 1, "/tags": 1}, "text is no number"},
		"text, number": {`{"order_id":"A-1","c":7}`, func(l *eval.Log) { l.Map, l.Types = map[string]string{"count": "c"}, map[string]string{"c": "text"} }, nil, "7 is \"7\" there"},
		"a place":      {`{"order_id":"A-1","a":{"b":"7"}}`, func(l *eval.Log) { l.Map = map[string]string{"count": "/a/b"} }, nil, "within an object"},
		"volatile":     {`{"order_id":"A-1","updated_at":"x"}`, nil, nil, "the destination changes it by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			if _, err := s.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": json.Number("100"), "paid": true, "tags": []any{"a", json.Number("1")}, "note": nil, "count": "7"}, ""); err != nil {
				t.Fatal(err)
			}
			file := "log.jsonl"
			if c.log == csv {
				file = "log.CSV"
			}
			r, err := s.reconcile(file, c.log, c.change)
			if err != nil || !reflect.DeepEqual(r.Fields, c.altered) || (r.Verdict() == eval.VerdictPassed) != (c.altered == nil) {
				t.Errorf("%v, altered %v, want %v: %s\n%s", err, r.Fields, c.altered, c.reason, r.Text())
			}
			if noted := strings.Contains(r.Text(), "Note: /updated_at is not compared"); noted != (name == "volatile") {
				t.Errorf("noted %t:\n%s", noted, r.Text())
			}
		})
	}
}

// TestReconcileBadLogs: a bad log is refused, with the line and the column.
func TestReconcileBadLogs(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		change     func(*eval.Log)
		want       []string
	}{
		"no number":      {"a.csv", "order_id,amount_cents\nA-1,1\nA-2,1 EUR\n", func(l *eval.Log) { l.Types = map[string]string{"amount_cents": "number"} }, []string{"a.csv:3: amount_cents: is no number"}},
		"an empty one":   {"a.csv", "order_id,amount_cents\nA-1,\n", func(l *eval.Log) { l.Types = map[string]string{"amount_cents": "number"} }, []string{"a.csv:2: amount_cents: is no number", "--empty null or skip"}},
		"no key":         {"a.csv", "order_id,amount_cents\n,1\n", nil, []string{"a.csv:2: order_id: is missing or empty; the row has amount_cents, order_id"}},
		"no such column": {"a.csv", "order_id,amount_cents\nA-1,1\n", func(l *eval.Log) { l.Map = map[string]string{"amount_cents": "amount"} }, []string{"a.csv: amount: is a column that no row has"}},
		"no time":        {"a.csv", "order_id,at\nA-1,yesterday\n", func(l *eval.Log) { l.At = "at" }, []string{"a.csv:2: at: is no time; want one such as 2026-02-01T12:00:00Z"}},
		"two columns":    {"a.csv", "order_id,order_id\nA-1,1\n", nil, []string{"a.csv:1: order_id: is the name of two columns"}},
		"cells":          {"a.csv", "order_id,x\nA-1,1\nA-2\n", nil, []string{"a.csv:3: is no CSV: wrong number of fields"}},
		"quotes":         {"a.csv", "order_id,x\nA-1,\"1\nA-2,2\n", nil, []string{"is no CSV"}},
		"empty file":     {"a.csv", "", nil, []string{"a.csv: cannot be read: EOF; want a header and rows"}},
		"no rows":        {"a.csv", "order_id\n", nil, []string{"a.csv: has no rows"}},
		"no objects":     {"a.jsonl", "{\"order_id\":\"A-1\"}\n7\n", nil, []string{"a.jsonl:2: is no object"}},
		"no destination": {"a.jsonl", "{\"order_id\":\"A-1\"}\n", func(l *eval.Log) { l.Destination = "erp" }, []string{`unknown destination "erp"; registered: hook, orders`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			_, err := s.reconcile(c.file, c.text, c.change)
			if !errors.Is(err, eval.ErrInvalid) {
				t.Fatalf("%v, want that it is invalid", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
			if n := len(s.world.Calls()); n != 0 {
				t.Errorf("%d calls were made", n)
			}
			if left, err := filepath.Glob(filepath.Join(os.TempDir(), "readback-reconcile-*")); err != nil || slices.ContainsFunc(left, func(path string) bool { return strings.Contains(path, s.dir) }) {
				t.Errorf("%v, %v are left", err, left)
			}
		})
	}
}

// TestReconcileIsRedacted: neither a sensitive key nor a sensitive value is in a finding.
func TestReconcileIsRedacted(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.there("A-1", 770077007, "")
	s.there("B-1", 1, "")
	p := s.world.Connector().Profiles()[orders.Kind]
	p.Sensitive = []string{"/order_id", "/amount_cents"}
	path := s.write("log.jsonl", `{"order_id":"A-1","amount_cents":880088008}`)
	r, err := eval.Reconcile(t.Context(), eval.Log{Name: path, Rows: eval.Rows(path), Destination: "orders", Kind: "order", Key: []string{"order_id"}}, s.registered(s.world.Connector(), p), eval.Options{})
	all, errJSON := json.Marshal(r)
	if err != nil || errJSON != nil || r.Altered != 1 || r.Foreign != 1 {
		t.Fatalf("%v, %v\n%s", err, errJSON, r.Text())
	}
	// Long numbers: the name of the folder and the times have short ones by chance.
	for _, leak := range []string{"A-1", "B-1", "770077007", "880088008"} {
		if strings.Contains(r.Text()+string(all), leak) {
			t.Errorf("%s is shown:\n%s\n%s", leak, r.Text(), all)
		}
	}
}

// TestPatienceOfALongList: the patience begins when something fails, however long the list took.
func TestPatienceOfALongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		tries := 0
		conn := listsOnly{s.world.Connector(), func(ctx context.Context, scope connectors.Scope) (connectors.Listing, error) {
			<-time.After(time.Hour)
			if tries++; tries == 1 {
				return connectors.Listing{}, errors.New("the connection was lost")
			}
			return s.world.Connector().List(ctx, scope)
		}}
		if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead, Nth: 1, Key: "A-2"}); err != nil {
			t.Fatal(err)
		}
		path := s.write("log.jsonl", `{"order_id":"A-1"}`+"\n"+`{"order_id":"A-2"}`)
		l := eval.Log{Name: path, Rows: eval.Rows(path), Destination: "orders", Kind: "order", Key: []string{"order_id"}, Patience: time.Second}
		r, err := eval.Reconcile(t.Context(), l, s.registered(conn, s.world.Connector().Profiles()[orders.Kind]), eval.Options{})
		if err != nil || summary(r) != `matched 1, missing 1, altered 0, duplicated 0, foreign 0, not checked 0, "wrong"` || tries != 2 || r.Reads != 2 {
			t.Errorf("%v, %d lists, %d reads\n%s", err, tries, r.Reads, r.Text())
		}
	})
}
