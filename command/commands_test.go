package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func TestExitCodesOfOutcomes(t *testing.T) {
	tests := map[string]struct {
		reason string
		faults []orders.Fault
		intent string
		args   []string
		code   int
		status ledger.Status
		effect int
	}{
		"verified": {"seen", nil, order("A-1", ""), nil, exitVerified, ledger.Verified, 1},
		"verified after a lost answer": {"seen, and sent once", []orders.Fault{{Kind: orders.LostAnswer, Times: 1}},
			order("A-1", ""), nil, exitVerified, ledger.Verified, 1},
		"verified without a wait": {"what is under way ends first, and the answer is what came of it", nil, order("A-1", ""), []string{"--wait", "0"}, exitVerified, ledger.Verified, 1},
		"not applied": {"the destination refused", []orders.Fault{{Kind: orders.Refused}},
			order("A-1", ""), nil, exitNotApplied, ledger.NotApplied, 0},
		"review": {"a field was dropped", []orders.Fault{{Kind: orders.DroppedField, Field: "currency"}},
			order("A-1", ""), nil, exitReview, ledger.StatusReview, 1},
		"compensated": {"a field was dropped, and the intent says what then", []orders.Fault{{Kind: orders.DroppedField, Field: "currency"}},
			order("A-1", `,"reversibility":"compensable","on_mismatch":"compensate"`), nil, exitNotApplied, ledger.Compensated, 0},
		"held": {"its risk asks for a person", nil, order("A-1", `,"risk":"approve"`), nil, exitReview, ledger.StatusHeld, 0},
		"in progress": {"the destination throttles, and the caller does not wait", []orders.Fault{{Kind: orders.Throttled, Ops: []orders.Op{orders.OpCreate}, Delay: time.Hour}},
			order("A-1", ""), []string{"--wait", "0"}, exitInProgress, ledger.InProgress, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := orders.Plain.Options()
			o.Faults = tt.faults
			p := newPlace(t, o)
			answer := decode(t, p.submit(tt.code, tt.intent, append(tt.args, "--json")...))
			if answer["status"] != string(tt.status) || answer["exit"] != float64(tt.code) || answer["replayed"] != false {
				t.Errorf("%s: status %v, exit %v, replayed %v", tt.reason, answer["status"], answer["exit"], answer["replayed"])
			}
			p.effects(tt.effect, "A-1")
			again := p.submit(tt.code, tt.intent, tt.args...)
			says(t, again, "an earlier call began it")
			p.effects(tt.effect, "A-1")
		})
	}
}

var allStatuses = []ledger.Status{
	ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned,
	ledger.StatusReview, ledger.StatusHeld, ledger.InProgress, ledger.Denied,
	ledger.Expired, ledger.Unverified, ledger.StatusDelegated, ledger.Reported,
}

func TestEveryStatusAndSettlementHasACode(t *testing.T) {
	for _, s := range allStatuses {
		if codeOf(s) == exitFailed {
			t.Errorf("status %q has no exit code", s)
		}
	}
	if got := codeOf("something new"); got == exitVerified {
		t.Error("an unknown status reads as verified")
	}
	seen := map[int]string{}
	for _, e := range exits {
		if other, twice := seen[e.code]; twice {
			t.Errorf("%q and %q have the code %d", e.word, other, e.code)
		}
		seen[e.code] = e.word
	}
	for _, k := range kinds {
		if seen[k.Exit] == "" {
			t.Errorf("kind %q has the code %d, which the table lacks", k.Word(), k.Exit)
		}
	}
}

// Scripts rely on the exit code of each outcome and of each kind of error: none changes.
// What the codes mean is in the golden file of --help.
func TestExitCodesDoNotChange(t *testing.T) {
	table := map[string]int{}
	for _, s := range allStatuses {
		table["status "+string(s)] = codeOf(s)
	}
	for _, k := range kinds {
		name := "error " + k.Word()
		if code, ok := table[name]; ok && code != k.Exit {
			t.Errorf("%s has the codes %d and %d", name, code, k.Exit)
		}
		table[name] = k.Exit
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&lines, "%s: %d\n", name, table[name])
	}
	golden(t, "exit-codes", result{out: lines.String()})
}

func TestDecisionsOfAPerson(t *testing.T) {
	dropped := []orders.Fault{{Kind: orders.DroppedField, Field: "currency", Times: 1}}
	risky := `,"risk":"approve"`
	undoable := `,"reversibility":"compensable"`
	tests := map[string]struct {
		reason string
		faults []orders.Fault
		more   string
		first  int
		word   string
		code   int
		effect int
	}{
		"accept":               {"as it is", dropped, "", exitReview, "accept", exitUnproven, 1},
		"abandon":              {"given up", dropped, "", exitReview, "abandon", exitUnproven, 1},
		"compensate":           {"undone", dropped, undoable, exitReview, "compensate", exitNotApplied, 0},
		"retry what is there":  {"the record is there: a person cannot make a double", dropped, "", exitReview, "retry", exitReview, 1},
		"approve":              {"let go", nil, risky, exitReview, "approve", exitVerified, 1},
		"deny":                 {"not let go", nil, risky, exitReview, "deny", exitNotApplied, 0},
		"accept what is held":  {"nothing was sent: there is nothing to accept", nil, risky, exitReview, "accept", exitRefused, 0},
		"approve in review":    {"the wrong word", dropped, "", exitReview, "approve", exitRefused, 1},
		"accept what is done":  {"it does not wait", nil, "", exitVerified, "accept", exitRefused, 1},
		"an unknown word":      {"said before anything is opened", nil, risky, exitReview, "yes", exitUsage, 0},
		"compensate the pivot": {"the intent does not allow it", dropped, "", exitReview, "compensate", exitReview, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := orders.Plain.Options()
			o.Faults = tt.faults
			p := newPlace(t, o)
			write := id(t, p.submit(tt.first, order("A-1", tt.more)))
			r := p.want(tt.code, p.run("review", write, tt.word, "--by", "ann", "--reason", "I looked"))
			p.effects(tt.effect, "A-1")
			shown := p.want(0, p.run("show", write)).out
			if named := strings.Contains(shown, "ann") && strings.Contains(shown, "I looked"); named != (tt.code != exitRefused && tt.code != exitUsage) {
				t.Errorf("%s: the person's name stands in the life of the write: %t\n%s\n%s", tt.reason, named, r, shown)
			}
		})
	}
}

func TestDecisionWithoutAWait(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitReview, order("A-1", `,"risk":"approve"`)))
	p.want(exitNotApplied, p.run("review", write, "deny", "--by", "ann", "--reason", "no", "--wait", "0"))
}

func TestUsage(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"no command":       {"a script forgot it", nil, "a command is missing"},
		"unknown command":  {"misspelt", []string{"submti"}, `unknown command "submti"`},
		"unknown flag":     {"misspelt", []string{"submit", "--file-name", "x"}, "unknown flag: --file-name"},
		"no file":          {"required", []string{"submit"}, "-f is missing"},
		"no such file":     {"cannot be read", []string{"submit", "-f", "/nonexistent/x.json"}, "/nonexistent/x.json: no such file"},
		"a folder":         {"cannot be read", []string{"submit", "-f", p.dir}, "is a directory"},
		"too many":         {"arguments", []string{"submit", "-f", "-", "x"}, `unknown command "x"`},
		"negative wait":    {"time", []string{"submit", "-f", "-", "--wait", "-1s"}, "want 0 or more"},
		"wait of what":     {"time", []string{"submit", "-f", "-", "--wait", "60"}, `invalid argument "60"`},
		"show what":        {"required", []string{"show"}, "accepts 1 arg(s), received 0"},
		"unknown state":    {"misspelt", []string{"list", "--state", "verified"}, "want some of held, queued"},
		"limit":            {"bound", []string{"list", "--limit", "0"}, "want 1 to 1000"},
		"half a decision":  {"which word?", []string{"review", "wr_1"}, "review takes no arguments, or an id and a word"},
		"no name":          {"a decision has a name", []string{"review", "wr_1", "accept", "--reason", "x"}, "--by is missing"},
		"without a reason": {"a decision has a reason", []string{"review", "wr_1", "accept", "--by", "x"}, "--reason is missing"},
		"force what":       {"only a retry can be forced", []string{"review", "wr_1", "accept", "--by", "x", "--reason", "y", "--force"}, "--force belongs to retry"},
		"parallel":         {"bound", []string{"work", "--parallel", "0"}, "want 1 to 1000"},
		"init over":        {"what is there stays", []string{"init"}, "is there already; --force overwrites it"},
		"no tenant":        {"a variable of a script is not set", []string{"list", "--tenant", ""}, "--tenant is empty"},
		"no configuration": {"a variable of a script is not set", []string{"list", "--config", ""}, "--config is empty"},
		"class":            {"unknown", []string{"simulated-orders", "--class", "best"}, "--class"},
		"fault":            {"unknown", []string{"simulated-orders", "--fault", "sloth"}, "unknown kind"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := p.want(exitUsage, p.run(tt.args...))
			says(t, r, tt.want)
			failed := decode(t, p.want(exitUsage, p.run(append(tt.args, "--json")...)))
			if kind := failed["error"].(map[string]any)["kind"]; kind != "usage" {
				t.Errorf("%s: kind %v", tt.reason, kind)
			}
		})
	}
	if _, err := os.Stat(p.ledger); err == nil {
		t.Error("a command that was not understood made a ledger")
	}
}

func TestInitThenFirstSteps(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.config = filepath.Join(p.dir, "fresh.yaml")
	says(t, p.want(0, p.run("init")), "Wrote "+p.config, "readback submit -f intent.json")
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	// The example goes to the destination of the configuration, at our URL.
	p.write("fresh.yaml", strings.Replace(string(text), "http://127.0.0.1:8177", p.url, 1))
	example := p.want(0, p.run("schema", "--example")).out
	p.submit(exitVerified, example)
	p.effects(1, "A-1")
	says(t, p.want(0, p.run("destinations", "--probe")), "orders simulated order ok")
	p.want(exitUsage, p.run("init"))
	p.want(0, p.run("init", "--force"))
	if after, _ := os.ReadFile(p.config); string(after) != string(text) {
		t.Error("--force did not write the template")
	}
}

func TestSchemaAndVersion(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	if got := p.want(0, p.run("schema")).out; got != string(intent.Schema()) {
		t.Errorf("schema prints something else: %.200s", got)
	}
	if v := decode(t, p.want(0, p.run("version", "--json"))); v["go"] == "" || v["version"] == "" {
		t.Errorf("version %v", v)
	}
}

func TestTenantsAreApart(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	r := p.submit(exitInvalid, order("A-1", ""), "--tenant", "other")
	says(t, r, `/tenant is "acme"; want "other"`, "--tenant acme", "Nothing was recorded")
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	says(t, p.want(exitRefused, p.run("show", write, "--tenant", "other")), "no such write: "+write)
	says(t, p.want(0, p.run("list", "--tenant", "other")), "No writes.")
	p.want(exitRefused, p.run("review", write, "accept", "--by", "ann", "--reason", "x", "--tenant", "other"))
	p.want(exitRefused, p.run("resume", write, "--tenant", "other"))
}

func TestListPages(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	for _, n := range []string{"A-1", "A-2", "A-3"} {
		p.submit(exitVerified, order(n, ""))
	}
	type page struct {
		Writes        []ledger.Record
		After, Before ledger.ID
		States        []ledger.State
	}
	next := func(args ...string) (got page) {
		r := p.want(0, p.run(append([]string{"list", "--json", "--limit", "2"}, args...)...))
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := next()
	second := next("--before", string(first.Before))
	var steps []string
	for _, r := range append(first.Writes, second.Writes...) {
		steps = append(steps, r.Step)
	}
	if diff := cmp.Diff([]string{"step-A-3", "step-A-2", "step-A-1"}, steps); diff != "" {
		t.Errorf("newest first, over two pages (-want +got):\n%s", diff)
	}
	if second.Before != "" {
		t.Error("the last page names another")
	}
	some := next("--state", "settled")
	if first.After != "" || second.After != first.Before || first.States != nil || len(some.States) != 1 {
		t.Errorf("after %q and %q, states %v and %v: an export cannot be distinguished from a part of one", first.After, second.After, first.States, some.States)
	}
	p.want(exitRefused, p.run("list", "--before", "wr_0"))
	says(t, p.want(0, p.run("list", "--state", "review,held")), "No writes.")
}

func TestListFindsWhatUsersKnow(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	p.submit(exitVerified, order("B-1", ""))
	for _, query := range []string{"a-1", write, write[:9]} {
		var page struct {
			Writes []struct {
				ledger.Record
				Matched []string
			}
			Query string
		}
		r := p.want(0, p.run("list", query, "--json"))
		if err := json.Unmarshal([]byte(r.out), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Writes) != 1 || string(page.Writes[0].ID) != write || len(page.Writes[0].Matched) != 1 || page.Query != query {
			t.Errorf("%s: %s", query, r.out)
		}
	}
	says(t, p.want(0, p.run("list", "A-")), write[:11]+" ", "Found by: order_id.")
	says(t, p.want(0, p.run("list", "A-", "--state", "review")), "No writes.")
	says(t, p.want(0, p.run("list", "A-", "--tenant", "other")), "No writes.")
	says(t, p.want(0, p.run("list", "step", "--limit", "1")), "No writes.")
	says(t, p.want(0, p.run("list", "wf", "--limit", "1")), "There are more")
	says(t, p.want(exitUsage, p.run("list", "A-1", "--before", write)), "want one of the two")
	says(t, p.want(exitUsage, p.run("list", " ")), "QUERY is empty")
}

func TestResumeContinuesWhatIsDue(t *testing.T) {
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.Throttled, Ops: []orders.Op{orders.OpCreate}, Times: 1, Delay: 10 * time.Minute}}
	p := newPlace(t, o)
	write := id(t, p.submit(exitInProgress, order("A-1", ""), "--wait", "0"))
	p.submit(exitInProgress, order("A-2", ""), "--wait", "0") // the destination answered "not now" to all
	says(t, p.want(0, p.run("resume")), "Took writes up 0 times. Not settled: 1 queued, 1 checking; the next is due in")
	p.calls(1)
	p.effects(0, "A-1")
	p.now = later(time.Hour)
	says(t, p.want(exitVerified, p.run("resume", write)), "verified "+write)
	says(t, p.want(0, p.run("resume")), "Everything is settled.")
	p.effects(1, "A-1")
	p.effects(1, "A-2")
	p.want(exitRefused, p.run("resume", "wr_0"))
}

func TestVerboseLogsNameTheWrite(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	r := p.submit(exitVerified, order("A-1", `,"correlation_id":"corr-7"`), "--verbose")
	says(t, r, "level=INFO", "write="+id(t, r), "correlation=corr-7")
	if quiet := p.submit(exitVerified, order("A-1", `,"correlation_id":"corr-7"`)); quiet.err != "" {
		t.Errorf("without --verbose: %s", quiet.err)
	}
}
