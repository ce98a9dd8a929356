package snippets

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
)

// engines are the workflow engines with a recipe, and the error that ends a run without a retry.
var engines = map[string]string{
	"inngest": "NonRetriableError", "trigger": "AbortTaskRunError", "vercel": "FatalError", "durabletask": "Error",
}

// recipes are the packages that the recipes import, by the stub.
var recipes = map[string]string{
	"inngest": "inngest.js", "@trigger.dev/sdk": "trigger.js", "workflow": "workflow.js", "workflow/api": "workflow.js", "workflow/errors": "workflow.js",
	"@microsoft/durabletask-js": "durabletask.js",
}

// stubs are the folder with the compiled recipes and the stubs of their engines.
var stubs = sync.OnceValues(func() (string, error) {
	npm, err := installed()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(npm, "engines")
	return dir, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "engines")))
})

// compileRecipes has the compiler check the recipes, and lets them find the stubs.
func compileRecipes(t *testing.T, dir string) error {
	t.Helper()
	files := map[string]string{"step.ts": "engine-step", "gate.ts": "engine-gate"}
	others := []string{"engines.d.ts"}
	for engine := range engines {
		files[engine+"-recipe.ts"] = "engine-" + engine
		file := engine + "-gate-recipe.ts"
		if err := os.WriteFile(filepath.Join(dir, file), []byte(gated(t, block(t, "engine-"+engine))), 0o600); err != nil {
			t.Fatal(err)
		}
		others = append(others, file)
	}
	compiled := compile(t, dir, files, others...)
	for name, stub := range recipes {
		at := filepath.Join(dir, "node_modules", filepath.FromSlash(name))
		up, err := filepath.Rel(at, filepath.Join(dir, stub))
		compiled = errors.Join(compiled, err, os.MkdirAll(at, 0o700),
			os.WriteFile(filepath.Join(at, "index.js"), []byte("export * from \""+filepath.ToSlash(up)+"\";\n"), 0o600),
			os.WriteFile(filepath.Join(at, "package.json"), []byte(`{"type": "module", "exports": {".": "./index.js", "./api": "./api/index.js", "./errors": "./errors/index.js"}}`), 0o600))
	}
	return compiled
}

// gated is a recipe that asks the step gate, as the page describes. RUN_LEASE is a lease whose end a test
// can wait for.
func gated(t *testing.T, recipe string) string {
	t.Helper()
	const asks, imports = "readbackStep(intent)", ", readbackStep"
	if strings.Count(recipe, asks) != 1 || strings.Count(recipe, imports) != 1 {
		t.Fatalf("a recipe in which the step gate has no place:\n%s", recipe)
	}
	return "import { gatedStep, placeOrder } from \"./gate.js\";\n" + strings.NewReplacer(asks, "gatedStep(intent, placeOrder, Number(process.env.RUN_LEASE ?? 3))", imports, "").Replace(recipe)
}

// workflow is one run of an engine's recipe.
type workflow struct {
	p               *place
	dir, engine, id string
	order           string
	gate            string // "-gate": it makes the call itself
}

// start is a process that continues the run, or begins it.
func (w workflow) start(env ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.p.t.Context(), "node", filepath.Join(w.dir, "drive.js"), w.engine, w.id, w.order, w.gate)
	w.p.prepare(cmd)
	cmd.Env = append(append(cmd.Env, "RUN_FILE="+w.file()), env...)
	return cmd
}

// file is the engine's journal of the run.
func (w workflow) file() string { return filepath.Join(w.p.dir, w.id+".json") }

// says continues the run, and returns what it ends with.
func (w workflow) says(env ...string) string {
	w.p.t.Helper()
	out, err := w.start(env...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = errors.New(string(exit.Stderr))
	}
	if err != nil {
		w.p.t.Fatalf("%s, run %s: %v", w.engine, w.id, err)
	}
	return strings.TrimSpace(string(out))
}

func (w workflow) verified(env ...string) {
	w.p.t.Helper()
	if got := w.says(env...); !strings.HasPrefix(got, "verified ord_") {
		w.p.t.Errorf("%s, run %s: it ends with %q, want the verified order", w.engine, w.id, got)
	}
}

// TestEngines: whatever an engine does to the step of its recipe, and although the destination
// loses every first response, there is one effect for each order.
func TestEngines(t *testing.T) {
	need.Long(t)
	dir, err := stubs()
	need.Have(t, err)
	if err := compileRecipes(t, dir); err != nil {
		t.Fatal(err)
	}
	for engine, fails := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			t.Run("faults", func(t *testing.T) { faultsOf(t, dir, engine, fails) })
			t.Run("decisions", func(t *testing.T) { decisionsAt(t, dir, engine, fails) })
			t.Run("gate", func(t *testing.T) { gateOf(t, dir, engine, fails) })
		})
	}
}

// isOne checks that the order was made once, and that the ledger has one write for it: whatever
// the engine did, all attempts and runs had the name of that write.
func (w workflow) isOne() {
	w.p.t.Helper()
	w.p.hasOne(w.order)
	readback, err := built()
	if err != nil {
		w.p.t.Fatal(err)
	}
	out, err := readback.Run(w.p.t.Context(), "--config", w.p.config, "--json", "list", w.order)
	if err != nil {
		w.p.t.Fatal(err)
	}
	var found struct{ Writes []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Writes) != 1 {
		w.p.t.Errorf("%s, order %s: the ledger has %d writes, want one; %v", w.engine, w.order, len(found.Writes), err)
	}
}

func faultsOf(t *testing.T, dir, engine, fails string) {
	p := newPlace(t, "server: {max_wait: 1s}\n")
	run := func(id, order string) workflow { return workflow{p: p, dir: dir, engine: engine, id: id, order: order} }

	// The process is killed while the server reads the order back. The next one waits in the engine
	// until the write is no longer in progress.
	p.held = make(chan struct{})
	release := sync.OnceFunc(func() { close(p.held) })
	t.Cleanup(release) // before the server's end, which waits for its reads
	p.loses("A-1")
	amid := run("amid", "A-1")
	first := amid.start()
	first.Stderr = t.Output()
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the run ended before its order was made, %v", err)
	case <-p.written:
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("the run ended before it was killed")
	}
	next := amid.start()
	next.Stderr = t.Output()
	var out strings.Builder
	next.Stdout = &out
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var journal struct{ Now int }
		if text, err := os.ReadFile(amid.file()); err == nil && json.Unmarshal(text, &journal) == nil && journal.Now > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run did not wait for the write in progress")
		}
	}
	release()
	if err := next.Wait(); err != nil || !strings.HasPrefix(out.String(), "verified ord_") {
		t.Errorf("it ends with %q, %v", out.String(), err)
	}
	amid.isOne()

	for _, fault := range []string{"none", "lost", "twice", "kill"} {
		order := "A-" + fault
		p.loses(order)
		w := run(fault, order)
		if fault == "kill" {
			if out, err := w.start("RUN_FAULT=kill").Output(); err == nil {
				t.Fatalf("the run was not killed and ends with %q", out)
			}
		}
		w.verified("RUN_FAULT=" + fault)
		run(fault+"-again", order).verified() // another run, started for the same order
		w.isOne()
	}

	p.sets(orders.Fault{Kind: orders.Refused, Key: "A-refused"})
	if got := run("refused", "A-refused").says(); !strings.HasPrefix(got, fails+": ") || !strings.Contains(got, "422") {
		t.Errorf("a refused order ends with %q, want %s with the destination's words", got, fails)
	}
	p.token = "rbk_wrong"
	if got := run("bad-token", "A-2").says(); !strings.HasPrefix(got, fails+": ") {
		t.Errorf("with a bad token it ends with %q, want %s", got, fails)
	}
}

func decisionsAt(t *testing.T, dir, engine, fails string) {
	p := newPlace(t, "risk:\n  - {name: by hand, tool: charge_card}\nserver: {person_tokens: true}\n")
	run := func(id string) workflow { return workflow{p: p, dir: dir, engine: engine, id: id, order: "H-" + id} }
	settled := func(w waiting) string {
		data, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return "RUN_SETTLED=" + string(data)
	}
	waits := func(w workflow, env ...string) {
		t.Helper()
		if got := w.says(env...); got != "waits" {
			t.Fatalf("run %s: it ends with %q, want it to wait for the reviewer", w.id, got)
		}
	}

	p.loses("H-days")
	days := run("days")
	waits(days, "RUN_TIMEOUTS=72") // three days
	if n := len(p.world.Records("H-days")); n != 0 {
		t.Errorf("%d orders were made before the decision", n)
	}
	data := p.approve()
	if engine != "trigger" { // whose next attempt asks first
		waits(days)
	}
	days.verified(settled(data))
	days.verified(settled(data)) // as of most writes, whose run has ended when the message arrives
	days.isOne()

	// The message about the decision is lost: a timer runs out.
	p.loses("H-lost")
	lost := run("lost")
	waits(lost)
	p.approve()
	lost.verified("RUN_TIMEOUTS=1")
	lost.isOne()

	denied := run("denied")
	waits(denied)
	data = p.decides("deny")
	if got := denied.says(settled(data)); !strings.HasPrefix(got, fails+": ") {
		t.Errorf("a denied order ends with %q, want %s", got, fails)
	}
	if n := len(p.world.Records("H-denied")); n != 0 {
		t.Errorf("%d denied orders were made", n)
	}
}

// gateOf runs the recipe with a step that asks the gate and makes the call itself. A rule of the gate
// holds the orders H-….
func gateOf(t *testing.T, dir, engine, fails string) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	text := "version: 1\nrules:\n  - {id: by-hand, when: 'intent != null && intent.key.order_id.startsWith(\"H-\")', decision: require_approval, reason: it is by hand}\n"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, fmt.Sprintf("gate: {rules: %q}\nserver: {person_tokens: true}\n", rules))
	run := func(id, order string) workflow {
		return workflow{p: p, dir: dir, engine: engine, id: id, order: order, gate: "-gate"}
	}
	for _, fault := range []string{"none", "lost", "twice"} {
		order := "G-" + fault
		if fault != "none" {
			p.loses(order)
		}
		w := run(fault, order)
		w.verified("RUN_FAULT=" + fault)
		run(fault+"-again", order).verified() // another run, started for the same order
		w.isOne()
	}

	// A worker dies when it has made the workflow, when the gate has given it the step, between the
	// effect and its report, and after the report. The same run continues, or another one for the
	// same order.
	for _, dies := range []struct {
		at    string // the last request to which it got a response
		lease string // in seconds; half of it must suffice for the call that the worker dies after
		made  int
		again bool
	}{{"workflows", "3", 0, true}, {"gate", "3", 0, true}, {"orders", "10", 1, false}, {"complete", "10", 1, true}} {
		order := "K-" + dies.at
		w := run(order, order)
		if out, err := w.start("RUN_FAULT=kill:/"+dies.at, "RUN_LEASE="+dies.lease).Output(); err == nil {
			t.Fatalf("the run was not killed and ends with %q", out)
		}
		if n := len(p.world.Records(order)); n != dies.made {
			t.Fatalf("%d orders %s were made before the worker died, want %d", n, order, dies.made)
		}
		if dies.again {
			run(order+"-again", order).verified()
		}
		w.verified()
		w.isOne()
	}

	// Two runs for one order at the same time.
	var both sync.WaitGroup
	for _, id := range []string{"both-1", "both-2"} {
		both.Go(func() {
			if out, err := run(id, "G-both").start().Output(); err != nil || !strings.HasPrefix(string(out), "verified ord_") {
				t.Errorf("of two runs %s ends with %q, %v", id, out, err)
			}
		})
	}
	both.Wait()
	run("both-1", "G-both").isOne()

	p.sets(orders.Fault{Kind: orders.Refused, Key: "G-refused"})
	if got := run("refused", "G-refused").says(); !strings.HasPrefix(got, fails+": ") || !strings.Contains(got, "refused") {
		t.Errorf("a refused order ends with %q, want %s with the destination's words", got, fails)
	}

	for _, word := range []string{"approve", "reject"} {
		order := "H-" + word
		w := run(order, order)
		if got := w.says("RUN_TIMEOUTS=2"); got != "waits" || len(p.world.Records(order)) != 0 {
			t.Fatalf("%s: before the decision it ends with %q, and there are %d orders", word, got, len(p.world.Records(order)))
		}
		p.decidesStep(word)
		switch got := w.says("RUN_TIMEOUTS=1"); {
		case word == "approve":
			w.isOne()
			if !strings.HasPrefix(got, "verified ord_") {
				t.Errorf("an approved order ends with %q", got)
			}
		case !strings.HasPrefix(got, fails+": ") || len(p.world.Records(order)) != 0:
			t.Errorf("a rejected order ends with %q, and %d orders were made", got, len(p.world.Records(order)))
		}
	}
}
