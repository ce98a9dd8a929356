package eval_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// TestProblems: an error names its line, its place, and what is accepted.
func TestProblems(t *testing.T) {
	const run = head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}}]}\n"
	for name, c := range map[string]struct {
		checks string
		files  map[string]string
		says   []string
		reason string
	}{
		"nothing":                      {"", nil, []string{"checks.yaml: is empty; want checks"}, "an empty file is no evaluation"},
		"another version":              {"evaluation: 2\nname: x\nrun: {effects: [{destination: orders, kind: order, key: {order_id: A}}]}\nchecks: {exactly: true}\n", nil, []string{"evaluation: is 2; want 1"}, "it may mean something else"},
		"no name":                      {"evaluation: 1\nrun: {effects: [{destination: orders, kind: order, key: {order_id: A}}]}\nchecks: {exactly: true}\n", nil, []string{"name: is missing"}, "reports and baselines have it"},
		"a member misspelt":            {run + "checks: {exacly: true}\n", nil, []string{"checks.yaml:4: checks.exacly: is not known; did you mean exactly?"}, "a check that is not made must not look made"},
		"no checks":                    {run, nil, []string{"checks: is missing; want what is to be checked"}, "it would check nothing"},
		"checks of nothing":            {run + "checks: {exactly: false}\n", nil, []string{"checks.yaml:4: checks: asks for nothing"}, "it would check nothing"},
		"two subjects":                 {run + "workflow: {name: w, writes: w.json}\nchecks: {exactly: true}\n", nil, []string{"names 2 of run, workflow and window"}, "what was declared?"},
		"no subject":                   {head + "checks: {exactly: true}\n", nil, []string{"names 0 of run, workflow and window"}, "what was declared?"},
		"unknown destination":          {head + "run: {effects: [{destination: ordres, kind: order, key: {order_id: A}}]}\nchecks: {exactly: true}\n", nil, []string{`checks.yaml:3: destination: unknown destination "ordres"; registered: hook, orders`}, "nothing was checked"},
		"unknown kind":                 {head + "run: {effects: [{destination: orders, kind: ordre, key: {order_id: A}}]}\nchecks: {exactly: true}\n", nil, []string{`checks.yaml:3: kind: unknown destination: "orders" has no kind "ordre"; it has: order`}, "nothing was checked"},
		"unknown field of key":         {head + "run: {effects: [{destination: orders, kind: order, key: {id_of_order: A}}]}\nchecks: {exactly: true}\n", nil, []string{"checks.yaml:3: key.id_of_order: orders are found by order_id alone"}, "it cannot be read for it"},
		"unknown scope":                {run + "checks:\n  unaccounted:\n    - {destination: nowhere, kind: order}\n", nil, []string{`checks.yaml:6: checks.unaccounted[0].destination: unknown destination "nowhere"`}, "nobody can list it"},
		"scope of what":                {run + "checks: {unaccounted: [{destination: orders, kind: order, of: mine}]}\n", nil, []string{`of: is "mine"; want ours`}, "which records?"},
		"undeclared of all":            {run + "checks: {undeclared: [{destination: orders, kind: order, of: all}]}\n", nil, []string{"only ours can be meant"}, "a stamp is ours"},
		"effect misspelt":              {head + "run: {effects: [{destination: orders, kind: order, keey: {order_id: A}}]}\nchecks: {exactly: true}\n", nil, []string{"checks.yaml:3: keey: is not known; did you mean key?"}, "an effect without a key is none"},
		"effect without a key":         {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", map[string]string{"e.jsonl": "\n{\"destination\":\"orders\",\"kind\":\"order\"}\n"}, []string{"e.jsonl:2: key: is missing; want the business key"}, "it cannot be read for it"},
		"count below nothing":          {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", map[string]string{"e.jsonl": `{"destination":"orders","kind":"order","key":{"order_id":"A"},"count":-1}`}, []string{"e.jsonl:1: count: is -1"}, "no number of records"},
		"count is text":                {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", map[string]string{"e.jsonl": `{"destination":"orders","kind":"order","key":{"order_id":"A"},"count":"two"}`}, []string{"e.jsonl:1: count: is a string; want a whole number"}, "no number of records"},
		"the same twice":               {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", map[string]string{"e.jsonl": strings.Repeat(`{"destination":"orders","kind":"order","key":{"order_id":"A"}}`+"\n", 2)}, []string{"e.jsonl:2: key: is that of e.jsonl:1 too; want one line with the count"}, "one or two of them?"},
		"no JSON":                      {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", map[string]string{"e.jsonl": "{\"destination\":\"orders\",\"kind\":\"order\",\"key\":{\"order_id\":\"A\"}}\nnonsense\n"}, []string{"e.jsonl:2: is no JSON from here on"}, "what was declared is not all there"},
		"no file":                      {head + "run: {file: e.jsonl}\nchecks: {exactly: true}\n", nil, []string{"e.jsonl: cannot be read: no such file"}, "what was declared is not there"},
		"a claim of nothing":           {run + "outcomes: o.jsonl\nchecks: {verified: true}\n", map[string]string{"o.jsonl": `{"status":"verified"}`}, []string{"o.jsonl:1: names no write"}, "of what?"},
		"an unknown status":            {run + "outcomes: o.jsonl\nchecks: {verified: true}\n", map[string]string{"o.jsonl": `{"id":"x","status":"done"}`}, []string{`o.jsonl:1: status: is "done"; want one of abandoned, accepted`}, "it must not count as verified"},
		"no workflow":                  {head + "workflow: {writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"writes":[]}`}, []string{"workflow.name: is missing"}, "which one?"},
		"another workflow":             {head + "workflow: {name: wf2, writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": exportLine(t, declared("create", "A-1", 0), "settled", "verified", 0)}, []string{"has 1 writes, none of which is meant"}, "nothing was declared, so nothing could be wrong"},
		"a window of nothing":          {head + "window: {from: \"2026-01-02T00:00:00Z\", until: \"2026-01-01T00:00:00Z\", writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"writes":[]}`}, []string{"window: wants from and until, the one before the other"}, "no time lies in it"},
		"no time":                      {head + "window: {from: yesterday, until: \"2026-01-01T00:00:00Z\", writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"writes":[]}`}, []string{"window.from: is no time; want one such as"}, "when?"},
		"a page with an error":         {head + "workflow: {name: wf, writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"writes":[],"error":{"kind":"x"}}`}, []string{"what was declared is not all there"}, "some writes are missing"},
		"a pruned write":               {head + "workflow: {name: wf, writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"id":"x","tombstone":true}`}, []string{"w.json:1: is a write that was pruned"}, "what it declared is forgotten"},
		"no intent":                    {head + "workflow: {name: wf, writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": `{"id":"x","state":"settled"}`}, []string{"w.json:1: intent: is missing"}, "it declares nothing"},
		"an unknown rate":              {run + "rates: {compare: {retrys: {}}}\n", nil, []string{"rates.compare.retrys: is not known; did you mean retries?"}, "it would never be compared"},
		"worse which way":              {run + "rates: {compare: {retries: {worse: sideways}}}\n", nil, []string{`worse: is "sideways"; want up, down or either`}, "it would never be worse"},
		"counts of nothing":            {run + "rates: {counts: c.json}\n", map[string]string{"c.json": `{"counts":1,"shares":{"retries":[3,2]}}`}, []string{"c.json:1: shares.retries: wants two numbers"}, "three of two"},
		"another snapshot":             {run + "checks: {collateral: {snapshot: s.jsonl}}\n", map[string]string{"s.jsonl": `{"snapshot":1,"evaluation":"other","taken":"2026-01-01T00:00:00Z"}`}, []string{`want version 1 and "test"`}, "it is of something else"},
		"an opinion without an author": {run + "opinions: [o.jsonl]\nchecks: {exactly: true}\n", map[string]string{"o.jsonl": `{"says":"fine"}`}, []string{"o.jsonl:1: wants by and says"}, "who thinks so?"},
		"a key that is masked":         {head + "workflow: {name: wf, writes: w.json}\nchecks: {exactly: true}\n", map[string]string{"w.json": exportLine(t, declared("create", "redacted:0123456789abcdef", 0), "settled", "verified", 0)}, []string{"w.json:1: key: is not shown in the export"}, "it cannot be read for it"},
		"a secret in the file":         {run + "password: hunter2\nchecks: {exactly: true}\n", nil, []string{"a secret does not belong into this file; an evaluation takes"}, "it would be in every report"},
		"all problems together":        {"evaluation: 1\nname: x\nrun: {effects: [{destination: orders, kind: order, kye: {order_id: A}}]}\nchecks: {exacly: true}\n", nil, []string{"kye: is not known", "exacly: is not known"}, "one run shows all of them"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.checks, c.files, c.says, c.reason) })
	}
}

// refused fails unless an evaluation is refused, with this error.
func refused(t *testing.T, checks string, files map[string]string, says []string, reason string) {
	t.Helper()
	s := newStage(t, orders.Plain.Options())
	for file, text := range files {
		s.write(file, text)
	}
	f, err := eval.Load(s.write("checks.yaml", checks))
	if err == nil {
		_, err = eval.Run(t.Context(), f, s.registry(), eval.Options{})
	}
	if !errors.Is(err, eval.ErrInvalid) {
		t.Fatalf("%v, want ErrInvalid: %s", err, reason)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %s\n%v", want, reason, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("it repeats a secret")
	}
}

// TestProblemsOfWhatWasBefore: a snapshot that cannot be one of before the run is
// refused, and so are counts that cannot be.
func TestProblemsOfWhatWasBefore(t *testing.T) {
	const run = head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}}]}\n"
	for name, c := range map[string]struct {
		checks string
		files  map[string]string
		says   []string
		reason string
	}{
		"a count below nothing": {run + "rates: {counts: c.json}\n", map[string]string{"c.json": `{"counts":1,"samples":{"lag":[1,-1]}}`}, []string{"c.json:1: samples.lag: has a value that cannot be; want 0 to"}, "no read is before its write"},
		"half a snapshot":       {run + "checks: {collateral: {snapshot: s.jsonl}}\n", map[string]string{"s.jsonl": `{"snapshot":1,"evaluation":"test","taken":"2026-01-01T00:00:00Z","records":2}` + "\n" + `{"destination":"orders","kind":"order","ref":"x","fields":{}}`}, []string{"s.jsonl: records: are 1, and the file declares 2"}, "the rest would look new"},
		"a snapshot of after":   {run + "ended: \"2025-12-31T00:00:00Z\"\nchecks: {collateral: {snapshot: s.jsonl}}\n", map[string]string{"s.jsonl": `{"snapshot":1,"evaluation":"test","taken":"2026-01-01T00:00:00Z","records":0}`}, []string{"s.jsonl:1: taken: is 2026-01-01T00:00:00Z, when the last send had ended"}, "all damage was done"},
		"a snapshot of a time":  {run + "checks: {collateral: {scopes: [{destination: orders, kind: order, from: \"2026-01-01T00:00:00Z\"}]}}\n", nil, []string{"has from or until; want neither"}, "what was there before is older"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.checks, c.files, c.says, c.reason) })
	}
}
