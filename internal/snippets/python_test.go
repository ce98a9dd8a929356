package snippets

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
)

// python is a script that has the package of clients/python, and the stubs of the frameworks that
// the package's tests have.
func (p *place) python(script, text string, args ...string) *exec.Cmd {
	p.t.Helper()
	return exec.CommandContext(p.t.Context(), need.Program(p.t, "python3"), append([]string{p.file(script, text)}, args...)...)
}

// driven is a block of the page, called by a driver of testdata.
func (p *place) driven(blockName, driver string, args ...string) *exec.Cmd {
	p.t.Helper()
	p.file("page.py", block(p.t, blockName))
	text, err := os.ReadFile(filepath.Join("testdata", driver))
	if err != nil {
		p.t.Fatal(err)
	}
	return p.python(driver, string(text), args...)
}

// says runs a program to its end and returns what it printed, errors included.
func (p *place) says(cmd *exec.Cmd) string {
	p.t.Helper()
	out, errs, err := p.run(cmd)
	if err != nil && !strings.HasPrefix(errs, "refused: ") {
		p.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return strings.TrimSpace(out + errs)
}

// The naive loop makes two orders of one, and readback one: the page says so.
func TestWhy(t *testing.T) {
	p := newPlace(t, "")
	account := ""
	for _, way := range []struct{ name, block, order string }{{"naive:", "python-naive", "A-1"}, {"through readback:", "python-fixed", "A-2"}} {
		p.loses(way.order)
		p.says(p.python("loop.py", block(t, way.block), way.order))
		cents, records := 0, p.world.Records(way.order)
		for _, r := range records {
			var n int
			if _, err := fmt.Sscan(fmt.Sprint(r.Fields["amount_cents"]), &n); err != nil {
				t.Fatal(err)
			}
			cents += n
		}
		plural := "s"
		if len(records) == 1 {
			plural = ""
		}
		account += fmt.Sprintf("%-17s %d order%s, %d cents\n", way.name, len(records), plural, cents)
	}
	if diff := cmp.Diff(block(t, "account"), account); diff != "" {
		t.Errorf("what the page says, and what the destination says:\n%s", diff)
	}
}

// What becomes of a job in Python, by what the destination and people do.
func TestPython(t *testing.T) {
	p := newPlace(t, "risk:\n  - {name: by hand, tool: charge_by_hand}\n")
	act := block(t, "python-act")
	job := func(args ...string) string { return p.says(p.python("charge.py", act, args...)) }
	for _, c := range []struct{ name, order, want, reason string }{
		{"lost answer", "A-1", "charged: ord_", "it was read back"},
		{"repeated", "A-1", "charged: ord_", "the same write has the same outcome"},
		{"refused there", "A-2", "not charged, and that is known:", "the destination refused the first send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.loses("A-1")
			p.sets(orders.Fault{Kind: orders.Refused, Key: "A-2"})
			if got := job("invoice-run-7", c.order); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nsays %q, want %q", c.reason, got, c.want)
			}
		})
	}
	if got := job("invoice-run-8", "A-1"); !strings.HasPrefix(got, "charged: ord_") {
		t.Errorf("another run of the same operation says %q; want the outcome of the first", got)
	}
	p.hasOne("A-1")
	other := strings.ReplaceAll(act, "1999", "2999")
	for _, run := range []string{"invoice-run-7", "invoice-run-9"} {
		if got := p.says(p.python("other.py", other, run, "A-1")); !strings.HasPrefix(got, "refused: ") {
			t.Errorf("the same operation with another amount, in %s, says %q; want it refused", run, got)
		}
	}
	if got := p.says(p.python("held.py", strings.ReplaceAll(act, "charge_card", "charge_by_hand"), "invoice-run-7", "A-3")); !strings.HasPrefix(got, "a reviewer decides, continue later: wr_") {
		t.Errorf("a write that needs a reviewer prints %q", got)
	}
	p.token = "rbk_wrong"
	if got := job("invoice-run-7", "A-1"); !strings.HasPrefix(got, "refused: ") {
		t.Errorf("with a bad token it says %q", got)
	}
	p.hasOne("A-1")
}

// A function that declares a write is one write for each order, in every run.
func TestPythonDecorator(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	var output []string
	for _, run := range []string{"invoice-run-7", "invoice-run-7", "invoice-run-8"} {
		output = append(output, p.says(p.python("charge.py", block(t, "python-decorator"), run, "A-1", "A-2")))
	}
	if !strings.HasPrefix(output[0], "A-1 ord_") || output[1] != output[0] || output[2] != output[0] {
		t.Errorf("three runs print %q; want the same two orders", output)
	}
	p.hasOne("A-1")
	p.hasOne("A-2")
}

// A job that is killed while it waits, and started again, is one write.
func TestPythonKilled(t *testing.T) {
	p := newPlace(t, "")
	p.held = make(chan struct{})
	p.loses("A-1")
	first := p.python("charge.py", block(t, "python-act"), "invoice-run-7", "A-1")
	p.prepare(first)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	<-p.written
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the job came to its end; it was to be killed")
	}
	close(p.held)
	if got := p.says(p.python("charge.py", block(t, "python-act"), "invoice-run-7", "A-1")); !strings.HasPrefix(got, "charged: ord_") {
		t.Errorf("the second start says %q", got)
	}
	p.hasOne("A-1")
}

// LangGraph's node is one write, however often it is begun.
func TestLangGraph(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	want := "killed after charge\ngone on: verified True\nbegun again: verified True\nanother thread: verified True\nchanged: 422\nchanged: 409"
	if diff := cmp.Diff(want, p.says(p.driven("python-langgraph", "langgraph_driver.py", "A-1", "crash"))); diff != "" {
		t.Error(diff)
	}
	p.hasOne("A-1")
}

// A node whose write waits for a reviewer stops, and continues when it is resumed.
func TestLangGraphInterrupted(t *testing.T) {
	p := newPlace(t, "risk:\n  - {name: by hand, tool: charge_card}\nserver: {person_tokens: true}\n")
	cmd := p.driven("python-langgraph", "langgraph_driver.py", "A-1", "approve")
	p.prepare(cmd)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waits := "interrupted: True\ntoo early: True\n"
	output := make([]byte, len(waits))
	if _, err := io.ReadFull(out, output); err != nil || string(output) != waits {
		t.Fatalf("it says %q, %v", output, err)
	}
	p.approve()
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "approved: verified True\n" {
		t.Errorf("it says %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	p.hasOne("A-1")
}

// waiting is a write that waits for a reviewer, as messages of webhooks name it.
type waiting struct {
	Write    string `json:"write"`
	Workflow string `json:"workflow"`
	Step     string `json:"step"`
}

// approve approves the one write that waits.
func (p *place) approve() waiting { return p.decides("approve") }

// decides decides about the one write that waits.
func (p *place) decides(word string) waiting {
	p.t.Helper()
	ask := p.reviewer()
	var inbox struct {
		Writes []struct {
			Write struct{ ID, Workflow, Step string }
		}
	}
	ask(http.MethodGet, "/v1/inbox", "", &inbox)
	if len(inbox.Writes) != 1 {
		p.t.Fatalf("%d writes wait, want one", len(inbox.Writes))
	}
	w := inbox.Writes[0].Write
	ask(http.MethodPost, "/v1/writes/"+w.ID+"/decision", fmt.Sprintf(`{"word": %q, "reason": "I checked the order"}`, word), new(struct{}))
	return waiting{w.ID, w.Workflow, w.Step}
}

// decidesStep decides about the one step that waits at the gate.
func (p *place) decidesStep(word string) {
	p.t.Helper()
	ask := p.reviewer()
	var pending struct {
		Steps []struct {
			Workflow string `json:"workflow_id"`
			Step     string `json:"step_id"`
		} `json:"pending_approvals"`
	}
	ask(http.MethodGet, "/api/v1/workflows/approvals/pending", "", &pending)
	if len(pending.Steps) != 1 {
		p.t.Fatalf("%d steps wait, want one", len(pending.Steps))
	}
	s := pending.Steps[0]
	ask(http.MethodPost, "/api/v1/workflows/"+s.Workflow+"/steps/"+s.Step+"/"+word, `{"comment": "I checked the order"}`, new(struct{}))
}

// reviewer makes requests with a reviewer's token.
func (p *place) reviewer() func(method, path, body string, into any) {
	p.t.Helper()
	readback, err := built()
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := readback.Run(p.t.Context(), "--config", p.config, "token", "create", "--role", "reviewer", "--name", "ben")
	if err != nil {
		p.t.Fatal(err)
	}
	return func(method, path, body string, into any) {
		p.t.Helper()
		r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			p.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		r.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Timeout: time.Minute}).Do(r)
		if err != nil {
			p.t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
			p.t.Fatalf("%s %s: %s, %v", method, path, answer.Status, err)
		}
	}
}

// The function of an agent charges once, whatever the model calls again.
func TestAgentsTool(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	output := strings.Split(p.says(p.driven("python-agents-tool", "agents_driver.py", "A-1")), "\n")
	if len(output) != 4 {
		t.Fatalf("it says %q", output)
	}
	for i, text := range output[:3] {
		if !strings.Contains(text, `"verified": true`) {
			t.Errorf("call %d says %s; want the one charge, verified", i, text)
		}
	}
	if !strings.Contains(output[3], "Refused: ") {
		t.Errorf("the call with another amount says %s", output[3])
	}
	p.hasOne("A-1")
}
