package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// planYAML is a saga of four steps, with further lines for each.
func planYAML(more map[string]string) string {
	text := "tenant: acme\nid: onboard-7\nsteps:\n"
	before := ""
	for _, s := range []struct{ name, id, class string }{{"contact", "C-1", "compensable"}, {"ticket", "T-1", "compensable"}, {"pay", "P-1", "pivot"}, {"mail", "M-1", "retryable"}} {
		text += fmt.Sprintf("  - name: %s\n", s.name)
		if before != "" {
			text += fmt.Sprintf("    after: [%s]\n", before)
		}
		before = s.name
		text += more[s.name] + fmt.Sprintf(`    intent:
      tool: orders.create
      destination: orders
      kind: order
      key: {order_id: %s}
      write: create
      expect: {amount_cents: 1999, currency: EUR}
      reversibility: %s
`, s.id, s.class)
	}
	return text
}

func TestSagaCommands(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	file := p.write("plan.yaml", planYAML(nil))

	says(t, p.want(exitVerified, p.run("saga", "check", file)), `The plan of saga "onboard-7" is good`, "1 contact compensable easy", "4 mail retryable easy")
	if _, err := os.Stat(p.ledger); err == nil {
		t.Error("check made a ledger")
	}
	says(t, p.want(exitVerified, p.run("saga", "run", file)), `DONE saga "onboard-7"`, "pivot verified")
	p.calls(4)
	says(t, p.want(exitVerified, p.run("saga", "run", file)), "DONE")
	p.calls(4)
	says(t, p.want(0, p.run("saga", "show", "onboard-7")), "contact compensable verified wr_", "by the connector")
	says(t, p.want(0, p.run("saga", "list")), "onboard-7 done", "4 of 4 begun")
	says(t, p.want(exitRefused, p.run("saga", "cancel", "onboard-7", "--by", "ada", "--reason", "x")), "too late to cancel", "every step is done")
	says(t, p.want(exitRefused, p.run("saga", "close", "onboard-7", "--by", "ada", "--reason", "x")), "does not wait", "is done")
	says(t, p.want(exitRefused, p.run("saga", "show", "onboard-8")), "no such saga", "saga list")
	says(t, p.want(exitRefused, p.runIn(strings.Replace(planYAML(nil), "EUR", "USD", 1), "saga", "run", "-")), "another saga has this id")
	v := decode(t, p.want(exitVerified, p.run("--json", "saga", "run", file)))
	if v["state"] != "done" || v["exit"] != float64(0) || len(v["steps"].([]any)) != 4 {
		t.Errorf("%v", v)
	}
}

func TestSagaGoesBack(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	if err := p.world.Set(orders.Fault{Kind: orders.Refused, Key: "P-1"}); err != nil {
		t.Fatal(err)
	}
	r := p.want(exitNotApplied, p.runIn(planYAML(nil), "saga", "run", "-"))
	says(t, r, `UNDONE saga "onboard-7"`, "ticket compensable compensated", "pay pivot not applied", "mail retryable not begun")
	for _, id := range []string{"C-1", "T-1", "P-1", "M-1"} {
		p.effects(0, id)
	}
}

func TestSagaHeldAndCancelled(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	text := strings.Replace(planYAML(map[string]string{"pay": "    grace: 1h\n"}), "reversibility: compensable\n  - name: pay", "reversibility: compensable\n      risk: approve\n  - name: pay", 1)
	var r result
	eventually(t, "the ticket to be held", func() bool {
		r = p.runIn(text, "saga", "run", "-", "--wait", "100ms")
		// The saga takes note of a write that is held a moment after it is.
		return r.code == exitReview && strings.Contains(r.out, `Step "ticket" waits for approval`)
	})
	says(t, r, `Step "ticket" waits for approval`, "approve|deny --by NAME", "readback saga resume onboard-7")
	ticket := r.out[strings.LastIndex(r.out, "readback review wr_")+16:]
	p.want(exitVerified, p.run("review", strings.Fields(ticket)[0], "approve", "--by", "eve", "--reason", "fine"))
	eventually(t, "the grace of the pivot", func() bool {
		r = p.run("saga", "resume", "onboard-7", "--wait", "100ms")
		return strings.Contains(r.out, `Step "pay" is held back for 1h`)
	})
	p.want(exitInProgress, r)
	says(t, p.want(exitNotApplied, p.run("saga", "cancel", "onboard-7", "--by", "ada", "--reason", "no longer wanted")),
		"UNDONE", "It goes back since ada cancelled it", "no longer wanted")
	p.effects(0, "C-1")
	p.effects(0, "T-1")
}

// The worker of the ledger carries sagas out too.
func TestWorkCarriesSagas(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	says(t, p.want(exitInProgress, p.runIn(planYAML(nil), "saga", "run", "-", "--wait", "0")), "RUNNING", "nothing was begun yet", "not begun")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var out, errs lines
	wg.Go(func() {
		if code := p.start(ctx, strings.NewReader(""), &out, &errs, "work"); code != 0 {
			t.Errorf("exit %d: %s", code, errs.String())
		}
	})
	eventually(t, "the saga to be done", func() bool {
		return strings.Contains(p.run("saga", "list").out, "done")
	})
	stop()
	wg.Wait()
	p.calls(4)
}

func TestSagaRefusals(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	cycle := strings.Replace(planYAML(nil), "  - name: contact\n", "  - name: contact\n    after: [mail]\n", 1)
	for name, tt := range map[string]struct {
		text string
		args []string
		code int
		says string
	}{
		"a cycle":        {cycle, []string{"saga", "run", "-"}, exitInvalid, "contact -> ticket -> pay -> mail -> contact"},
		"another tenant": {strings.Replace(planYAML(nil), "acme", "evil", 1), []string{"saga", "run", "-"}, exitInvalid, "/tenant"},
		"no YAML":        {"steps: [", []string{"saga", "check", "-"}, exitInvalid, "the plan"},
		"an anchor":      {"tenant: &a acme\nid: *a\nsteps: []\n", []string{"saga", "check", "-"}, exitInvalid, "anchor"},
		"twice":          {"tenant: acme\ntenant: acme\nid: x\n", []string{"saga", "check", "-"}, exitInvalid, "the plan"},
		"a wrong step":   {strings.Replace(planYAML(nil), "write: create", "write: burn", 1), []string{"saga", "check", "-"}, exitInvalid, "/steps/0/intent/write"},
		"no file":        {"", []string{"saga", "run", filepath.Join(p.dir, "none.yaml")}, exitUsage, "none.yaml"},
		"no word":        {"", []string{"saga"}, exitUsage, "want check, run"},
		"no name":        {"", []string{"saga", "cancel", "x"}, exitUsage, "--by is missing"},
		"no reason":      {"", []string{"saga", "close", "x", "--by", "ada"}, exitUsage, "--reason is missing"},
		"bad wait":       {"", []string{"saga", "resume", "x", "--wait", "-1s"}, exitUsage, "--wait"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, p.want(tt.code, p.runIn(tt.text, tt.args...)), tt.says)
		})
	}
	if _, err := os.Stat(p.ledger); err == nil && len(p.writes()) > 0 {
		t.Errorf("%d writes recorded", len(p.writes()))
	}
}

// A saga that cannot continue is reported where operators look.
func TestStatusListsSagas(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, strings.Replace(order("M-1", `,"idempotency_key":"letter:7"`), `"create_order"`, `"orders.create"`, 1))
	text := strings.Replace(planYAML(nil), "      reversibility: retryable\n", "      reversibility: retryable\n      idempotency_key: letter:7\n", 1)
	r := p.want(exitReview, p.runIn(text, "saga", "run", "-"))
	says(t, r, "readback saga close onboard-7", "is tried again with readback saga resume onboard-7", `"mail" cannot be begun`, `workflow "wf-1"`)
	says(t, p.want(exitAttention, p.run("status")), "1 saga waits for a reviewer", "readback saga list --state review")
	says(t, p.want(exitVerified, p.run("review")), "Nothing waits for a reviewer. Tenant acme: 1 saga waits for a reviewer.", "--state review")
	says(t, p.want(0, p.run("saga", "list", "--state", "review")), "onboard-7")
	says(t, p.want(0, p.run("saga", "list", "--state", "done,undone")), "No sagas.")
	says(t, p.want(exitUsage, p.run("saga", "list", "--state", "lost")), "want some of")
	says(t, p.want(exitReview, p.runIn(text, "saga", "run", "-")), "cannot be begun")
	says(t, p.want(exitUnproven, p.run("saga", "close", "onboard-7", "--by", "ada", "--reason", "the letter was sent before")),
		"CLOSED", "It is over since ada closed it", "the letter was sent before", `"mail" cannot be begun`)
	says(t, p.want(exitVerified, p.run("review")), "Nothing waits for a reviewer.")
	says(t, p.want(0, p.run("saga", "list", "--state", "closed")), "onboard-7")
	says(t, p.want(exitUnproven, p.runIn(text, "saga", "run", "-")), "CLOSED")
}

// A plan that marks fields is checked with the keys that it would be run with.
func TestSagaCheckOfSensitiveFields(t *testing.T) {
	plan := strings.Replace(planYAML(nil), "      write: create\n", "      write: create\n      sensitive: [/currency]\n", 1)
	for name, c := range map[string]struct {
		config, says string
		code         int
		reason       string
	}{
		"with keys":    {"redaction: {keys: [{id: a, key_env: SEAL}]}\n", "is good", exitVerified, "it would be taken"},
		"without keys": {"", "there are no redaction keys", exitInvalid, "it would be refused"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.configure(p.url, c.config)
			p.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4)}
			if got := p.run("saga", "check", p.write("plan.yaml", plan)); got.code != c.code || !strings.Contains(got.out+got.err, c.says) {
				t.Errorf("%d: %s%s: %s", got.code, got.out, got.err, c.reason)
			}
		})
	}
}
