package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
)

// outputs are all outputs, by source.
func (m *mine) outputs() map[string]string {
	m.t.Helper()
	all := map[string]string{
		"answers of the doors": m.replies.String(), "answers that give back what was given": m.unowned(m.gave.String()),
		"answers to questions": m.questions(), "the stream of events": m.stream("/v1/events?after=start"), "the stream of the page": m.stream("/updates"),
		"webhooks": m.hook.replies.String(),
	}
	for _, some := range []map[string]string{m.commands(), m.evidenced()} {
		for name, text := range some {
			all[name] = text
		}
	}
	all["the log"] = m.log.String()
	for name, text := range m.ledgerFiles() {
		all[name] = text
	}
	return all
}

// leastOf is the minimum size of an output in bytes: a smaller one was not searched.
func leastOf(place string) int {
	for begin, least := range map[string]int{"answers of": 20_000, "answers to": 100_000, "the stream of events": 2000, "the stream of the page": 10, "webhooks": 500, "receipts": 20_000, "the heads": 100, "spans": 20_000, "numbers": 1000, "the log": 5000, "the ledger's file readback.db-wal": 20_000, "the ledger's file again.db": 20_000} {
		if strings.HasPrefix(place, begin) {
			return least
		}
	}
	return 1
}

// unowned is a text without what its reader typed or submitted there: a user who fills in
// a form wrongly sees the typed text, and a caller that asks for a step's output gets it.
func (m *mine) unowned(text string) string {
	for name, value := range m.all {
		if strings.HasPrefix(name, "reason on the page") || strings.HasPrefix(name, "step output") {
			for _, form := range forms(value) {
				text = strings.ReplaceAll(text, form, "")
			}
		}
	}
	return text
}

// questions calls every route with GET, about everything that the stories made, as every
// permitted role.
func (m *mine) questions() string {
	var all strings.Builder
	askings := examples()
	writes := make([]string, 0, len(m.ids))
	for _, id := range m.ids {
		if strings.HasPrefix(id, "wr_") {
			writes = append(writes, id)
		}
	}
	slices.Sort(writes)
	for _, r := range allRoutes() {
		e := askings[r.key()]
		if r.Method != http.MethodGet || strings.Contains(r.Pattern, "mcp") || strings.Contains(r.Pattern, "login") || e.accept == "text/event-stream" {
			continue
		}
		for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor} {
			token := m.secret[string(role)+"@"+own]
			for _, th := range m.abouts(e.named, writes) {
				q := m.send(r, e, th, token)
				_, _ = fmt.Fprintf(&all, "%s as %s: %s\n", q.URL.Path, role, m.do(q).all())
			}
		}
	}
	for _, q := range []string{"Hot", "hot-flow", "hot-correlation", "redacted:", m.ids["workflow"], m.ids["ended workflow"]} {
		all.WriteString(m.must(engine.RoleReviewer, own, "GET", "/search?q="+q, "").all())
	}
	return all.String()
}

// abouts are the things that a question can be about: each write, workflow, step
// and saga once.
func (m *mine) abouts(named bool, writes []string) []things {
	base := things{tenant: own, workflow: m.ids["workflow"], step: "declared", saga: "hot-saga", held: m.ids["held"], review: m.ids["held"]}
	if !named {
		return []things{base}
	}
	var all []things
	for _, id := range writes {
		th := base
		th.held, th.review = id, id
		all = append(all, th)
	}
	for _, step := range []string{"look", "wait", "open"} {
		th := base
		th.step = step
		if step == "wait" {
			th.workflow = m.ids["ended workflow"]
		}
		all = append(all, th)
	}
	for _, saga := range []string{"hot-back", "hot-waits"} {
		th := base
		th.saga = saga
		all = append(all, th)
	}
	return all
}

// stream is the beginning of a stream.
func (m *mine) stream(path string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Second)
	defer cancel()
	q := m.request("GET", path, "", m.secret["operator@"+own], "Accept", "text/event-stream").WithContext(ctx)
	resp, err := m.client.Do(q)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		m.t.Fatalf("%s: %v", path, err)
	}
	return string(text)
}

// commandLines are the commands, each with its arguments; {id} stands for each write in
// attempt. A command that is not run has a reason.
var commandLines = map[string][]string{
	"show": {"show {id}"}, "list": {"list --limit 500"}, "status": {"status"}, "review": {"review"}, "resume": {"resume --wait 1s"}, "stops": {"stops"},
	"saga show": {"saga show hot-saga", "saga show hot-back", "saga show hot-waits"}, "saga list": {"saga list"},
	"saga close":     {"saga close hot-back --by root --reason seen"},
	"operation show": {"operation show --tool create --key hot-operation"},
	"workflow show":  {"workflow show {workflow}", "workflow show {ended}", "workflow show {workflow} declared", "workflow show {workflow} look", "workflow show {ended} wait", "workflow show {workflow} open", "workflow show hot-flow"},
	"config check":   {"config check", "config check --env", "config check --env --config {other}", "config check --config {broken}"},
	"destinations":   {"destinations", "destinations --probe", "destinations --probe --config {other}"}, "doctor": {"doctor", "doctor --config {other}", "doctor --security", "doctor --security --config {other}"},
	"erase list": {"erase list", "erase --write {id} --reason x"}, "hold list": {"hold list"},
	"token list": {"token list"}, "submit": {"submit -f {file}", "submit -f {taken}"}, "prune": {"prune"}, "policy test": {"policy test {rules}"},
	"version": {"version"}, "receipt export": {"receipt export {id} --values"}, "audit verify": {"audit verify --heads {heads} --key {heads-key}"}, "audit head": {"audit head"}, "audit events": {"audit events", "audit events --json"}, "audit seal": {"audit seal"}, "schema": {"schema"}, "token revoke": {"token revoke none"},
}

// notAsked is why a command is not among them.
var notAsked = map[string]string{
	"serve": "is what all of this is asked of", "work": "the same work as that of serve", "mcp": "the same tools as those of /mcp",
	"demo": "has a world of its own", "chaos": "reads no ledger, and prints an address", "dev": "likewise", "exit-codes": "is a topic of help", "simulated-orders": "is a destination", "probe": "writes samples of its own", "init": "writes the template",
	"catalog": "prints what comes with the program", "contract": "reads contracts alone", "destination": "reads declarations alone", "healthcheck": "asks whether a server answers",
	"policy check": "reads rules alone", "recover": "its reason is cleaned as that of a stop is, and it prints references and stamps alone", "stop": "its reason is that of the door's, and stops shows it", "release": "likewise", "operation release": "its reason is that of the door's",
	"saga check": "refusals are those of saga run", "saga run": "the same plans as those of the door", "saga resume": "carries on as serve does", "saga cancel": "its reason is that of the door's",
	"shards list": "prints names of tenants and shards alone", "shards check": "likewise", "shards move": "likewise", "shards resume": "likewise", "shards abandon": "likewise", "shards keep": "likewise",
	"hold add": "its reason is cleaned as that of a stop is, and hold list shows it", "hold release": "likewise",
	"key new": "makes keys", "key show": "shows public keys", "receipt verify": "reads a receipt that was exported", "eval": "reads the world and no ledger; see package eval", "reconcile": "likewise",
	"token create": "prints a token, on purpose and once",
}

// commands runs the commands on the ledger, for text and for JSON.
func (m *mine) commands() map[string]string {
	m.t.Helper()
	value := m.word("submitted on the command line")
	m.sent(value)
	replace := strings.NewReplacer(
		"{file}", m.p.write("intent.json", strings.Replace(m.write("cli", "order-cli", fmt.Sprintf(`"write":"create","expect":{"amount_cents":1,"owner":%q}`, value), "/owner"), "{", `{"tenant":"acme",`, 1)),
		"{taken}", m.p.write("taken.json", strings.Replace(m.write("cli-taken", "order-taken", fmt.Sprintf(`"write":"create","expect":{"amount_cents":1,"owner":%q}`, m.word("submitted for a taken key")), "/owner"), "{", `{"tenant":"acme",`, 1)),
		"{other}", m.p.write("other.yaml", "ledger: other.db\ntenant: acme\ndestinations:\n  shop:\n    type: postgresql\n    dsn: postgres://app@127.0.0.1:1/shop?sslmode=disable\n    password_env: DB_PASSWORD\n    tables: {order: {name: orders, columns: {number: text}, key: [number], unique: true}}\n"),
		"{broken}", m.p.write("broken.yaml", "ledger: a.db\nredaction:\n  keys: [{id: a, key_env: "+m.misplaced("written as a variable's name")+"}]\n  password: "+m.misplaced("written into the file")+"\n"),
		"{workflow}", m.ids["workflow"], "{ended}", m.ids["ended workflow"],
		"{heads}", filepath.Join(m.p.dir, "heads.jsonl"), "{heads-key}", m.p.write("heads.pub", m.headsKey),
		"{rules}", m.p.write("rules.yaml", mineRules))
	all := map[string]string{}
	for name, lines := range commandLines {
		for _, line := range lines {
			for _, args := range m.each(replace.Replace(line)) {
				for _, more := range [][]string{{"-v"}, {"--json", "-v"}} {
					r := m.p.run(append(strings.Fields(args), more...)...)
					all["the command "+name] += r.out + r.err
				}
			}
		}
	}
	return all
}

// misplaced is a secret in a wrong place.
func (m *mine) misplaced(name string) string {
	return m.plant(name, "hot_secret_"+strings.ReplaceAll(name, " ", "_")+"_"+number(name, 9))
}

// each is a line for each write, where it is about one.
func (m *mine) each(line string) []string {
	if !strings.Contains(line, "{id}") {
		return []string{line}
	}
	var all []string
	for _, id := range m.ids {
		if strings.HasPrefix(id, "wr_") {
			all = append(all, strings.ReplaceAll(line, "{id}", id))
		}
	}
	return all
}

// TestEveryCommandIsAnOutput: a new command is searched, or has a reason why not.
func TestEveryCommandIsAnOutput(t *testing.T) {
	left := map[string]bool{}
	for name := range notAsked {
		left[name] = true
	}
	for name := range commandLines {
		left[name] = true
	}
	known := func(name string) bool {
		delete(left, name)
		_, asked := commandLines[name]
		return asked || notAsked[name] != ""
	}
	for _, cmd := range (&app{}).root().Commands() {
		name := cmd.Name()
		if known(name) {
			continue
		}
		if !cmd.HasSubCommands() {
			t.Errorf("no canary is looked for in what %q prints: add it to commandLines, or say in notAsked why not", name)
		}
		for _, sub := range cmd.Commands() {
			if !known(name + " " + sub.Name()) {
				t.Errorf("no canary is looked for in what \"%s %s\" prints: add it to commandLines, or say in notAsked why not", name, sub.Name())
			}
		}
	}
	for name := range left {
		t.Errorf("%q is looked at, and is no command", name)
	}
}
