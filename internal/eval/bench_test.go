package eval_test

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the destination's driver

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
)

// evaluates is set in the environment of the process that evaluates: its memory is
// measured, and not that of the process that makes the files.
const evaluates = "READBACK_EVAL_BENCH"

func TestMain(m *testing.M) {
	dir := os.Getenv(evaluates)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := evaluateTable(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measured is what that process prints.
type measured struct {
	Report eval.Report
	Millis int64
	PeakKB int64
}

// evaluateTable evaluates what makeTable made.
func evaluateTable(dir string) error {
	began := time.Now()
	f, err := eval.Load(filepath.Join(dir, "checks.yaml"))
	if err != nil {
		return err
	}
	reg, done, err := table(filepath.Join(dir, "orders.db"))
	if err != nil {
		return err
	}
	defer done()
	r, err := eval.Run(context.Background(), f, reg, eval.Options{})
	if err != nil {
		return err
	}
	m := measured{Report: r, Millis: time.Since(began).Milliseconds(), PeakKB: peakKB()}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// peakKB is the most memory that this process has had; 0 where the system does not say.
func peakKB() (kb int64) {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
			_, _ = fmt.Sscan(after, &kb)
		}
	}
	return kb
}

// table is a destination that is one table of a SQLite file.
func table(path string) (*connectors.Registry, func(), error) {
	db, err := stdsql.Open("sqlite", path)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = db.Close() }
	c, err := sql.New(sql.Options{DB: db, Dialect: sql.SQLite(), ReadYourWrites: true, Tables: map[string]sql.Table{"order": {
		Name: "orders", Key: []string{"order_id"}, ID: "order_id", Stamp: "stamp", Unique: true,
		Columns: []sql.Column{{Name: "order_id"}, {Name: "amount_cents", Type: sql.Integer}, {Name: "note"}},
	}}})
	if err != nil {
		done()
		return nil, nil, err
	}
	var reg connectors.Registry
	return &reg, done, reg.Register("orders", connectors.Destination{Connector: c, Profiles: c.Profiles()})
}

const tableChecks = `evaluation: 1
name: many
workflow: {name: wf, writes: writes.jsonl}
checks:
  exactly: true
  expected: true
  verified: true
  unaccounted: [{destination: orders, kind: order, of: all}]
  undeclared: [{destination: orders, kind: order}]
`

// makeTable makes an export of settled writes and the table that they left, of which
// the last row is another one than declared.
func makeTable(tb testing.TB, dir string, keys int) {
	tb.Helper()
	try := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	try(os.WriteFile(filepath.Join(dir, "checks.yaml"), []byte(tableChecks), 0o600))
	db, err := stdsql.Open("sqlite", filepath.Join(dir, "orders.db"))
	try(err)
	defer func() { try(db.Close()) }()
	_, err = db.Exec("CREATE TABLE orders (order_id TEXT PRIMARY KEY, amount_cents INTEGER, note TEXT, stamp TEXT)")
	try(err)
	tx, err := db.Begin()
	try(err)
	row, err := tx.Prepare("INSERT INTO orders VALUES (?, ?, ?, ?)")
	try(err)
	out, err := os.Create(filepath.Join(dir, "writes.jsonl"))
	try(err)
	to := bufio.NewWriter(out)
	enc := json.NewEncoder(to)
	for i := range keys {
		in := declared(intent.Create, fmt.Sprintf("order-%07d", i), i)
		in.Expect = intent.Fields{"amount_cents": json.Number(fmt.Sprint(i)), "note": "as ordered"}
		r, err := ledger.NewRecord(in)
		try(err)
		r.State, r.Settlement, r.Sends, r.Reads = ledger.Settled, ledger.Verified, 1, 1
		r.Created = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		try(enc.Encode(r))
		amount := i
		if i == keys-1 {
			amount++
		}
		_, err = row.Exec(in.Key["order_id"], amount, "as ordered", in.Stamp())
		try(err)
	}
	try(to.Flush())
	try(out.Close())
	try(tx.Commit())
}

// BenchmarkEvaluate evaluates a table with one wrong row, in a process of its own.
// READBACK_BENCH_ROWS is the number of keys.
func BenchmarkEvaluate(b *testing.B) {
	for _, keys := range []int{storebench.Small, storebench.Histories(b)} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			dir := b.TempDir()
			makeTable(b, dir, keys)
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), self)
				cmd.Env = append(os.Environ(), evaluates+"="+dir)
				cmd.Stderr = os.Stderr
				text, err := cmd.Output()
				if err != nil {
					b.Fatal(err)
				}
				var m measured
				if err := json.Unmarshal(text, &m); err != nil {
					b.Fatal(err)
				}
				if r := m.Report; r.Declared != keys || r.Effects != keys || r.Lists != 1 || r.Reads != 1 || r.Verdict() != eval.VerdictWrong {
					b.Fatalf("%d declared, %d found by %d reads and %d lists: %s", r.Declared, r.Effects, r.Reads, r.Lists, r.Text())
				}
				used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				b.ReportMetric(float64(used.Microseconds())/float64(keys), "cpu-µs/key")
				b.ReportMetric(float64(m.Millis)/1000, "s")
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(m.PeakKB)/1024, "peak-MB")
			}
		})
	}
}
