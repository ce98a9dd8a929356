package command

import (
	stdsql "database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// reconciled is a shop with three orders, of which a log has one as it is.
func reconciled(t *testing.T) (*place, func(args ...string) []string) {
	t.Helper()
	p := newPlace(t, orders.Plain.Options())
	for id, cents := range map[string]string{"A-1": "100", "A-2": "5", "F-1": "1"} {
		if _, err := p.world.Seed(intent.Fields{"order_id": id, "amount_cents": json.Number(cents)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	p.write("log.csv", "id,cents,at\nA-1,100,2026-01-01T00:00:00Z\nA-2,200,2026-01-01T00:00:00Z\nA-3,300,2026-01-01T00:00:00Z\n")
	return p, func(args ...string) []string {
		return append([]string{"reconcile", "--destination", "orders", "--kind", "order", "--key", "id", "--map", "order_id=id", "--map", "amount_cents=cents"}, args...)
	}
}

// TestReconcile: the summary, the findings in both forms, and the exit codes.
func TestReconcile(t *testing.T) {
	p, args := reconciled(t)
	log, jsonl, table := filepath.Join(p.dir, "log.csv"), filepath.Join(p.dir, "found.jsonl"), filepath.Join(p.dir, "found.csv")
	csv := []string{log, "--type", "cents=number", "--at", "at"}
	r := p.want(exitAttention, p.run(args(append(csv, "--findings", jsonl)...)...))
	says(t, r, "matched 1", "missing 1", "altered 1 /amount_cents 1", "foreign 1",
		`orders/order {"order_id":"A-2"}: /amount_cents is 5, want 200 (log.csv:3)`, `its key is {"order_id":"F-1"}`, "WRONG: the world is not as declared")
	p.want(exitAttention, p.run(args(append(csv, "--findings", table)...)...))
	for path, want := range map[string][]string{
		jsonl: {`"says":"0 there, 1 declared","declared":"log.csv:4","problem":"missing"}`, `"problem":"altered","fields":["/amount_cents"]}`, `"problem":"foreign"}`},
		table: {"problem,name,says,declared,fields,refs\n", `missing,"orders/order {""order_id"":""A-3""}","0 there, 1 declared",log.csv:4,,null`, `/amount_cents,"[""ord_`},
	} {
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), "\n") != 3+strings.Count(path, ".csv") {
			t.Errorf("%v, want a line for each of three findings:\n%s", err, text)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("there is no %s in\n%s", w, text)
			}
		}
	}
	var answer struct {
		Rows, Matched, Missing, Exit int
		Verdict                      string
	}
	r = p.want(exitAttention, p.run(append([]string{"--json"}, args(csv...)...)...))
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || answer.Rows != 3 || answer.Matched != 1 || answer.Missing != 1 || answer.Exit != exitAttention || answer.Verdict != "wrong" {
		t.Errorf("%v, %+v", err, answer)
	}
	p.write("right.jsonl", `{"id":"A-1","cents":100}`)
	right := filepath.Join(p.dir, "right.jsonl")
	p.want(exitVerified, p.run(args(right, "--foreign=false")...))
	p.want(exitAttention, p.run(args(right, "--within", "box=x")...))
	says(t, p.want(exitInvalid, p.run(args(log, "--type", "at=number")...)), "at: is a column that no row has, or that is not used", "Nothing was checked")
}

// TestReconcileQuery: rows come from a database, and a query changes none of it.
func TestReconcileQuery(t *testing.T) {
	p, args := reconciled(t)
	path := filepath.Join(p.dir, "a log#1.db") // its name is one, escaped
	db, err := stdsql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err = db.Exec("CREATE TABLE log (id TEXT, cents INTEGER); INSERT INTO log VALUES ('A-1', 100), ('A-3', 300)"); err != nil {
		t.Fatal(err)
	}
	says(t, p.want(exitAttention, p.run(args("--source", path, "--query", "SELECT id, cents FROM log ORDER BY id")...)),
		"query (2 rows", "matched 1", "missing 1", "foreign 2", "(query:2)")
	for _, query := range []string{"DELETE FROM log RETURNING id, cents", "SELECT id, cents FROM log; DELETE FROM log"} {
		p.want(exitFailed, p.run(args("--source", path, "--query", query)...))
	}
	p.want(exitFailed, p.run(args("--source", path, "--query", "SELECT id, id FROM log")...))
	var n int
	if err := db.QueryRow("SELECT count(*) FROM log").Scan(&n); err != nil || n != 2 {
		t.Errorf("%v, %d rows are left", err, n)
	}
	says(t, p.want(exitUsage, p.run(args("--source", "orders", "--query", "SELECT 1")...)), "takes no queries")
	says(t, p.want(exitUsage, p.run(args("--source", "nowhere", "--query", "SELECT 1")...)), "is no destination and no file")
}

// TestReconcileUsage: a wrong flag is named, and nothing is read.
func TestReconcileUsage(t *testing.T) {
	p, args := reconciled(t)
	log := filepath.Join(p.dir, "log.csv")
	for want, wrong := range map[string][]string{
		"want --destination, --kind and --key":          {"reconcile", log},
		"want a file, or --query and --source":          args(),
		"want --query and --source together":            args("--query", "SELECT 1"),
		"--type cents=cent; want text":                  args(log, "--type", "cents=cent"),
		"--map amount; want NAME=VALUE":                 args(log, "--map", "amount"),
		"--map order_id=x; want NAME=VALUE, each name":  args(log, "--map", "order_id=x"),
		"--empty is zero; want null or skip":            args(log, "--empty", "zero"),
		`--from is "today"; want a time`:                args(log, "--from", "today"),
		"--until is before --from":                      args(log, "--from", "2026-02-01T00:00:00Z", "--until", "2026-01-01T00:00:00Z"),
		"--patience is 0s":                              args(log, "--patience", "0s"),
		"which the evaluation reads and which would be": args(log, "--findings", log),
	} {
		says(t, p.want(exitUsage, p.run(wrong...)), want)
	}
	if n := len(p.world.Calls()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}
