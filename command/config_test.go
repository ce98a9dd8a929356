package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checks runs `readback config check` on a configuration and the files beside it.
func checks(t *testing.T, files map[string]string, env map[string]string, args ...string) result {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		putFile(t, dir, name, text)
	}
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(name string) string { return env[name] },
		environ: func() []string {
			var all []string
			for name, value := range env {
				all = append(all, name+"="+value)
			}
			return all
		}}
	code := a.run(t.Context(), append([]string{"--config", filepath.Join(dir, "readback.yaml"), "config", "check"}, args...))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(files) {
		t.Errorf("it left something behind: %v %v", left, err)
	}
	cut := strings.NewReplacer(dir+string(filepath.Separator), "")
	return result{code, cut.Replace(out.String()), cut.Replace(errs.String())}
}

const whole = `ledger: readback.db
destinations:
  mail:
    type: imap
    addr: imap.example.org:993
    username: ann
    password_env: MAIL_PASSWORD
gate:
  rules: rules.yaml
server:
  tls: {cert_file: c.pem, key_file: k.pem}
`

const ordering = `ledger: readback.db
destinations:
  orders: {type: simulated, url: "http://127.0.0.1:8177"}
mcp:
  tools:
    - name: create_order
      description: Creates an order.
      destination: orders
      kind: order
      write: create
      arguments:
        - {name: order_id, type: string, required: true, description: The number.}
        - {name: amount, type: number, required: true, description: The amount.}
      key: [order_id]
`

func TestConfigCheck(t *testing.T) {
	without := whole[:strings.Index(whole, "server:")]
	tests := map[string]struct {
		reason string
		files  map[string]string
		env    map[string]string
		args   []string
		code   int
		want   string
	}{
		"in order": {"secrets count as set", map[string]string{"readback.yaml": without, "rules.yaml": allowing}, nil, nil, 0,
			"readback.yaml is in order: 1 destination, 1 rule, 0 tools\n"},
		"secrets of hooks": {"they have a form, and two are two", map[string]string{"readback.yaml": "ledger: readback.db\nwebhooks:\n  - {name: ops, url: https://hooks.example.org/x, secret_env: NEW, previous_secret_env: OLD}\n"}, nil, nil, 0,
			"readback.yaml is in order: 0 destinations, 0 rules, 0 tools\n"},
		"no secret": {"it is asked for", map[string]string{"readback.yaml": without, "rules.yaml": allowing}, nil, []string{"--env"}, exitConfig,
			"readback.yaml:3: destinations.mail: password_env: the environment variable MAIL_PASSWORD is not set, or empty\n"},
		"a secret": {"it is there", map[string]string{"readback.yaml": without, "rules.yaml": allowing}, map[string]string{"MAIL_PASSWORD": "x"}, []string{"--env"}, 0,
			"readback.yaml is in order: 1 destination, 1 rule, 0 tools\n"},
		"a command": {"it is not run on a machine where it may not be", map[string]string{"readback.yaml": strings.Replace(without, "password_env: MAIL_PASSWORD", "password_command: [/nowhere/vault]", 1), "rules.yaml": allowing}, nil, nil, 0,
			"readback.yaml is in order: 1 destination, 1 rule, 0 tools\n"},
		"a command that fails": {"it is run where the environment is the right one", map[string]string{"readback.yaml": strings.Replace(without, "password_env: MAIL_PASSWORD", "password_command: [/nowhere/vault]", 1), "rules.yaml": allowing}, nil, []string{"--env"}, exitConfig,
			"readback.yaml:3: destinations.mail: password_command: vault: it cannot be started: no such file or directory\n"},
		"a setting": {"the environment's comes first, and is wrong", map[string]string{"readback.yaml": without, "rules.yaml": allowing}, map[string]string{"MAIL_PASSWORD": "x", "READBACK_LOG": "xml"}, []string{"--env"}, exitConfig,
			"readback.yaml: READBACK_LOG: is \"xml\"; want text or json\n"},
		"not asked": {"it was not asked to look there", map[string]string{"readback.yaml": without, "rules.yaml": allowing}, map[string]string{"READBACK_LOG": "xml"}, nil, 0,
			"readback.yaml is in order: 1 destination, 1 rule, 0 tools\n"},
		"all of it": {"one run shows what is wrong with each file", map[string]string{"readback.yaml": whole, "rules.yaml": strings.ReplaceAll(allowing, "'true'", "tru")}, nil, nil, exitConfig,
			"rules.yaml:4: "},
		"no certificate": {"a server would not start", map[string]string{"readback.yaml": whole, "rules.yaml": allowing}, nil, nil, exitConfig,
			"readback.yaml:10: server.tls: "},
		"a tool that cannot work": {"every call of it would fail", map[string]string{"readback.yaml": strings.Replace(ordering, "order_id", "number", 2)}, nil, nil, exitConfig,
			"readback.yaml:12: mcp.tools[0].arguments[0]: readback would refuse every call: orders cannot serve this intent: /key/number: orders are found by order_id alone\nreadback.yaml: 1 problem\n"},
		"a tool that mostly works": {"some of its calls would fail", map[string]string{"readback.yaml": strings.Replace(ordering, "amount, type: number, required: true", "amount, type: number", 1)}, nil, nil, 0,
			"warning: readback.yaml:13: mcp.tools[0].arguments[1]: is optional, and readback would refuse every call without amount: /expect is missing or empty; want at least one field that a later read must find; without one nothing could be verified; want required: true\nreadback.yaml is in order: 1 destination, 0 rules, 1 tool\n"},
		"bad YAML": {"its line", map[string]string{"readback.yaml": "ledger: a\n\tx: y\n"}, nil, nil, exitConfig, "readback.yaml:2: "},
		"two at once": {"the file and what it names", map[string]string{"readback.yaml": "ledger: a\nnope: 1\ngate: {rules: none.yaml}\n"}, nil, nil, exitConfig,
			"gate.rules: rules: open none.yaml: no such file or directory\nreadback.yaml: 2 problems\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := checks(t, test.files, test.env, test.args...)
			if r.code != test.code || !strings.Contains(r.out, test.want) {
				t.Errorf("%s: want exit %d and %q\n%s", test.reason, test.code, test.want, r)
			}
		})
	}
}

func TestConfigCheckForMachines(t *testing.T) {
	r := checks(t, map[string]string{"readback.yaml": "ledger: a\nnope: 1\n"}, nil, "--json")
	var got configured
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != exitConfig {
		t.Fatalf("%v\n%s", err, r)
	}
	if len(got.Problems) != 1 {
		t.Fatalf("%+v", got.Problems)
	}
	got.Problems[0].Problem, _, _ = strings.Cut(got.Problems[0].Problem, ";")
	want := configured{Path: "readback.yaml", Problems: []fault{{"readback.yaml", 2, "nope", "is not known"}}, Warnings: []fault{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The template is in order, secrets aside.
func TestConfigCheckOfTheTemplate(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, args := range [][]string{{"init"}, {"config", "check"}} {
		var out, errs bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(string) string { return "" }}
		if code := a.run(t.Context(), args); code != 0 {
			t.Errorf("%v: %s", args, result{code, out.String(), errs.String()})
		}
	}
}

// A tool of which the connector would refuse every call is named with its line. One
// whose values alone could be refused is not.
func TestConfigCheckOfToolsThatNeverWork(t *testing.T) {
	const destinations = `ledger: readback.db
destinations:
  shop: {type: postgresql, dsn: "postgres://app@127.0.0.1:1/shop", tables: {order: {name: orders, columns: {number: text, amount: integer, paid: bool}, key: [number], unique: true}}}
  post: {type: mail, addr: "127.0.0.1:1", tls: none, proof: copied, copy_to: desk@example.com, from: desk@example.com, username: u, password_env: MAIL, imap: {addr: "127.0.0.1:1", tls: none, username: u, password_env: MAIL}}
  box: {type: imap, addr: "127.0.0.1:1", tls: none, username: u, password_env: MAIL}
  jira: {type: jira, url: "http://127.0.0.1:1", user: u, token_env: MAIL}
  hotel: {type: rest, declaration: bookings.yaml}
mcp:
  tools:
`
	bookings := bookingsWith(`{reference: "{key.reference}", guest: "{expect.guest}", memo: "{stamp}"}`)
	for name, c := range map[string]struct{ tool, want string }{
		"table": {"{destination: shop, kind: order, write: create, key: [number], arguments: [{name: number, type: string, required: true, description: d}, {name: amount, type: integer, required: true, description: d}]}", ""},
		"no such column": {"{destination: shop, kind: order, write: create, key: [number], arguments: [{name: number, type: string, required: true, description: d}, {name: colour, type: string, required: true, description: d}]}",
			"mcp.tools[0].arguments[1]: readback would refuse every call"},
		"a column of another type": {"{destination: shop, kind: order, write: create, key: [number], arguments: [{name: number, type: string, required: true, description: d}, {name: paid, type: array, required: true, description: d}]}",
			"mcp.tools[0].arguments[1]: readback would refuse every call"},
		"no key of the table": {"{destination: shop, kind: order, write: create, key: [amount], arguments: [{name: amount, type: integer, required: true, description: d}, {name: paid, type: boolean, required: true, description: d}]}",
			"mcp.tools[0].arguments[0]: readback would refuse every call"},
		"letter": {"{destination: post, kind: named_message, write: create, key: [message_id], arguments: [{name: message_id, type: string, required: true, description: d}, {name: to, type: array, required: true, description: d}, {name: subject, type: string, required: true, description: d}, {name: body, type: string, required: true, description: d}]}", ""},
		"a subject that is a number": {"{destination: post, kind: named_message, write: create, key: [message_id], arguments: [{name: message_id, type: string, required: true, description: d}, {name: to, type: array, required: true, description: d}, {name: subject, type: integer, required: true, description: d}]}",
			"mcp.tools[0].arguments[2]: readback would refuse every call"},
		"issue":   {"{destination: jira, kind: issue, write: create, key: [project, reference], arguments: [{name: project, type: string, required: true, description: d}, {name: reference, type: string, required: true, description: d}, {name: summary, type: string, required: true, description: d}]}", ""},
		"booking": {"{destination: hotel, kind: booking, write: create, key: [reference], arguments: [{name: reference, type: string, required: true, description: d}, {name: guest, type: string, required: true, description: d}]}", ""},
		"no such field": {"{destination: hotel, kind: booking, write: create, key: [reference], arguments: [{name: reference, type: string, required: true, description: d}, {name: guest, type: string, required: true, description: d}, {name: colour, type: string, required: true, description: d}]}",
			"mcp.tools[0].arguments[2]: readback would refuse every call"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := strings.Replace(c.tool, "{", "{name: tool, description: d, ", 1)
			r := checks(t, map[string]string{"readback.yaml": destinations + "    - " + tool + "\n", "bookings.yaml": bookings}, nil)
			if want := exitConfig; c.want == "" && r.code != 0 || c.want != "" && (r.code != want || !strings.Contains(r.out, c.want)) {
				t.Errorf("want %q: %s", c.want, r)
			}
		})
	}
}
