package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const workflowEvaluation = `evaluation: 1
name: orders
workflow: {name: wf-1, writes: writes.json}
checks:
  exactly: true
  expected: true
  verified: true
  unaccounted: [{destination: orders, kind: order, of: all}]
  undeclared: [{destination: orders, kind: order}]
rates:
  least: 1
  compare: {retries: {}, reads_per_write: {}}
`

// exported submits some orders and exports them, as a user would.
func exported(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, orders.Plain.Options())
	for n := range 3 {
		p.submit(exitVerified, order(fmt.Sprintf("o-%d", n), ""))
	}
	p.write("writes.json", p.want(0, p.run("--json", "list")).out)
	p.write("checks.yaml", workflowEvaluation)
	return p
}

// TestEvalNeedsNoLedger: the world is read with nothing but destinations, and the
// ledger may be gone.
func TestEvalNeedsNoLedger(t *testing.T) {
	p := exported(t)
	if err := os.Remove(p.ledger); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	p.write("readback.yaml", strings.Replace(string(text), "ledger: readback.db\n", "", 1))
	xml := filepath.Join(p.dir, "report.xml")
	r := p.want(exitVerified, p.run("eval", filepath.Join(p.dir, "checks.yaml"), "--tier", "1", "--junit", xml))
	says(t, r, "3 keys declared, 3 records found", "PASSED")
	if _, err := os.Stat(p.ledger); err == nil {
		t.Error("an evaluation made a ledger")
	}
	if report, err := os.ReadFile(xml); err != nil || !strings.Contains(string(report), `<testcase name="undeclared" classname="tier1"`) {
		t.Errorf("%v\n%s", err, report)
	}
	if n := len(p.world.Effects()); n != 3 {
		t.Errorf("%d effects, want those of the submits alone", n)
	}
}

// TestEvalExits: each result has an exit code of its own.
func TestEvalExits(t *testing.T) {
	p := exported(t)
	checks, base := filepath.Join(p.dir, "checks.yaml"), filepath.Join(p.dir, "baseline.json")
	p.want(exitAttention, p.run("eval", checks)) // rates are to be compared, and with nothing
	p.want(exitVerified, p.run("eval", checks, "--record", base))
	p.want(exitVerified, p.run("eval", checks, "--baseline", base))
	says(t, p.want(exitVerified, p.run("eval", checks, "--tier", "2", "--baseline", base)), "Tier 2")

	text, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	p.write("old.json", strings.Replace(string(text), `"baseline": 1`, `"baseline": 9`, 1))
	says(t, p.want(exitAttention, p.run("eval", checks, "--baseline", filepath.Join(p.dir, "old.json"))), "is of version 9; want 1", "Nothing was compared")
	p.write("better.json", `{"baseline":1,"evaluation":"orders","taken":"2026-01-01T00:00:00Z","rates":{"retries":{"cases":0,"of":100},"reads_per_write":{"cases":0,"of":3,"values":"0x3"}}}`)
	p.want(exitAttention, p.run("eval", checks, "--baseline", filepath.Join(p.dir, "better.json")))

	if _, err := p.world.Seed(intent.Fields{"order_id": "o-1"}, ""); err != nil {
		t.Fatal(err)
	}
	r := p.want(exitAttention, p.run("--json", "eval", checks, "--tier", "1"))
	var report struct {
		Verdict string `json:"verdict"`
		Exit    int    `json:"exit"`
		Checks  []struct {
			Name, Result string
			Wrong        int
		} `json:"checks"`
	}
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || report.Verdict != "wrong" || report.Exit != exitAttention || len(report.Checks) != 5 || report.Checks[0].Wrong != 1 {
		t.Errorf("%v, %+v\n%s", err, report, r)
	}
	says(t, p.want(exitAttention, p.run("eval", checks, "--record", base)), "nothing was recorded", "WRONG: the world is not as declared")
	if again, err := os.ReadFile(base); err != nil || string(again) != string(text) {
		t.Errorf("%v; the baseline is another one:\n%s", err, again)
	}

	p.write("checks.yaml", strings.ReplaceAll(workflowEvaluation, "destination: orders", "destination: erp"))
	says(t, p.want(exitInvalid, p.run("eval", checks)), `checks.yaml:8: checks.unaccounted[0].destination: unknown destination "erp"; registered: orders`, "Nothing was checked")
	p.want(exitUsage, p.run("eval", checks, "--tier", "3"))
	p.want(exitUsage, p.run("eval", checks, "--snapshot", "x", "--junit", "y"))
	p.want(exitUsage, p.run("eval"))
}

// TestEvalOfWhatCannotBeReached: it does not count as passed.
func TestEvalOfWhatCannotBeReached(t *testing.T) {
	p := exported(t)
	p.configure("http://127.0.0.1:1", "")
	p.write("checks.yaml", strings.Replace(workflowEvaluation, "name: orders\n", "name: orders\npatience: 300ms\n", 1))
	says(t, p.want(exitAttention, p.run("eval", filepath.Join(p.dir, "checks.yaml"), "--tier", "1")), "NOT CHECKED", "it could not be read")
}

// TestEvalSnapshot: changes that no intent asked for are detected.
func TestEvalSnapshot(t *testing.T) {
	p := exported(t)
	p.write("checks.yaml", `evaluation: 1
name: orders
run: {effects: [{destination: orders, kind: order, key: {order_id: o-1}, expect: {amount_cents: 5}}]}
checks: {collateral: {snapshot: before.jsonl, scopes: [{destination: orders, kind: order}]}}
`)
	checks := filepath.Join(p.dir, "checks.yaml")
	p.want(0, p.run("eval", checks, "--snapshot", filepath.Join(p.dir, "before.jsonl")))
	edit := func(id string, fields intent.Fields) {
		t.Helper()
		if _, err := p.world.Edit(p.world.Records(id)[0].ID, fields); err != nil {
			t.Fatal(err)
		}
	}
	edit("o-1", intent.Fields{"amount_cents": json.Number("5")})
	p.want(exitVerified, p.run("eval", checks))
	edit("o-2", intent.Fields{"currency": "EUR"})
	says(t, p.want(exitAttention, p.run("eval", checks)), `/currency is "EUR", want "USD"`)
}

// TestEvalFindings: the file has each finding, whatever the report names.
func TestEvalFindings(t *testing.T) {
	p := exported(t)
	for _, id := range []string{"o-1", "o-9"} {
		if _, err := p.world.Seed(intent.Fields{"order_id": id}, ""); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(p.dir, "findings.jsonl")
	p.want(exitAttention, p.run("eval", filepath.Join(p.dir, "checks.yaml"), "--tier", "1", "--findings", file))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"check":"exactly","result":"fail","name":"orders/order {\"order_id\":\"o-1\"}`,
		`{"check":"unaccounted","result":"fail","name":"orders/order ord_000005","says":"it was not declared; its key is {\"order_id\":\"o-9\"}"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	p.want(exitUsage, p.run("eval", "x", "--snapshot", "y", "--findings", file))
	p.want(exitUsage, p.run("eval", "x", "--tier", "2", "--findings", file))
}

// TestEvalOutputsAreNoInputs: an evaluation does not overwrite a file that it reads,
// under any path, and refuses before anything is done.
func TestEvalOutputsAreNoInputs(t *testing.T) {
	p := exported(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	p.write("effects.jsonl", `{"destination":"orders","kind":"order","key":{"order_id":"o-1"}}`)
	p.write("run.yaml", "evaluation: 1\nname: orders\nrun: {file: effects.jsonl}\nchecks: {exactly: true}\n")
	p.write("opinions.jsonl", `{"by":"model","says":"fine"}`)
	p.write("checks.yaml", workflowEvaluation+"opinions: [opinions.jsonl]\n")
	if err := os.Symlink(at("writes.json"), at("link")); err != nil {
		t.Fatal(err)
	}
	p.want(exitVerified, p.run("eval", at("checks.yaml"), "--record", at("baseline.json")))
	calls := len(p.world.Calls())
	for _, args := range [][]string{
		{"checks.yaml", "--findings", "checks.yaml"}, {"checks.yaml", "--findings", "writes.json"}, {"checks.yaml", "--findings", "link"},
		{"checks.yaml", "--junit", "opinions.jsonl"}, {"checks.yaml", "--record", "writes.json"}, {"run.yaml", "--snapshot", "effects.jsonl"},
		{"checks.yaml", "--findings", "baseline.json", "--baseline", "baseline.json"}, {"checks.yaml", "--findings", filepath.Base(p.config)},
	} {
		out := at(args[2])
		before, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		args[0], args[2] = at(args[0]), out
		if len(args) > 4 {
			args[4] = at(args[4])
		}
		says(t, p.want(exitUsage, p.run(append([]string{"eval"}, args...)...)), args[1]+" is "+out+", which the evaluation reads")
		if after, err := os.ReadFile(out); err != nil || string(after) != string(before) {
			t.Errorf("%v: %v, the file is now %q", args, err, after)
		}
	}
	if n := len(p.world.Calls()); n != calls {
		t.Errorf("the destination was asked %d times", n-calls)
	}
	p.want(exitVerified, p.run("eval", at("checks.yaml"), "--baseline", at("baseline.json"), "--record", at("baseline.json")))
}

// TestEvalProgress: a long evaluation reports its progress, at most every few seconds.
func TestEvalProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		say, end := (&app{stderr: &out}).progress()
		say("listing orders/order", 1, 0)
		<-time.After(lineEvery)
		say("listing orders/order", 2000, 0)
		say("listing orders/order", 3000, 0)
		<-time.After(lineEvery)
		say("reading", 1000, 4000)
		end()
		if want := "readback: listing orders/order: 2000\nreadback: reading: 1000 of 4000\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
