package config_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/policies"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

const mail = `
ledger: a.db
destinations:
  mail:
    type: imap
    addr: imap.example.org:993
    username: alice
`

// problems loads a configuration, creates its destinations, and returns what is wrong
// without the file's name.
func problems(t *testing.T, text string, env func(string) string) []string {
	t.Helper()
	path := write(t, text)
	c, err := config.Load(path)
	if err == nil {
		_, err = c.Registry(env)
	}
	if err == nil {
		return nil
	}
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || !errors.Is(err, config.ErrInvalid) {
		t.Fatalf("error %v is no InvalidError", err)
	}
	var all []string
	for _, p := range invalid.Problems {
		all = append(all, p.String())
	}
	return all
}

func TestBadConfigurations(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"empty": {"the file is empty", "", []string{": is empty; `readback init --force` writes one that works"}},
		"comments alone": {"a file of comments says nothing", "# ledger: a.db\n",
			[]string{": is empty; `readback init --force` writes one that works"}},
		"no ledger":    {"there is no default place for what must not be lost", "tenant: a\n", []string{": ledger: is missing; want the file of the ledger, for example readback.db, or a PostgreSQL database"}},
		"unknown word": {"a misspelt word must not be overlooked", "ledger: a.db\n\ntenent: x\n", []string{":3: tenent: is not known; want one of ledger, tenant, destinations, retention, queue, gate, risk, metrics, telemetry, mcp, webhooks, notifications, redaction, receipts, audit, secrets, server, log"}},
		"all problems": {"one run shows all", "ledger:\ntenant: [a]\nnope: 1\n",
			[]string{":1: ledger: is empty; want text", ":2: tenant: is a list; want text", ":3: nope: is not known; want one of ledger, tenant, destinations, retention, queue, gate, risk, metrics, telemetry, mcp, webhooks, notifications, redaction, receipts, audit, secrets, server, log"}},
		"ledger is a mapping": {"type", "ledger: {a: b}\n", []string{":1: ledger.a: is not known; want one of type, file, url, url_env, url_file, url_command, password_env, password_file, password_command, plaintext, max_connections, dialect, shards, directory, default"}},
		"a list":              {"type", "- a\n", []string{":1: is a list; want names with values below them"}},
		"a word":              {"type", "ledger\n", []string{":1: is a single value; want names with values below them"}},
		"twice":               {"the second would win silently", "ledger: a\nledger: b\n", []string{`:2: mapping key "ledger" already defined at [1:1]`}},
		"two documents":       {"the second would be ignored silently", "ledger: a\n---\nledger: b\n", []string{":3: a second document begins here; want one"}},
		"no type": {"a destination without a type cannot be made", "ledger: a\ndestinations:\n  x:\n    url: http://a\n",
			[]string{`:3: destinations.x: has the type ""; want one of imap, jira, mail, mcp, postgresql, rest, s3, simulated`}},
		"unknown type": {"type", "ledger: a\ndestinations:\n  x:\n    type: smtp\n", []string{`:3: destinations.x: has the type "smtp"; want one of imap, jira, mail, mcp, postgresql, rest, s3, simulated`}},
		"settings of another type": {"strict below, too", "ledger: a\ndestinations:\n  x:\n    type: simulated\n    url: http://a\n    mailbox: INBOX\n",
			[]string{":6: destinations.x.mailbox: is not known; want one of type, url, class, settle, horizon, recheck, rollback, send_timeout, read_timeout, rate, concurrency, breaker, verify, verify_within, egress, sensitive, tenants"}},
		"merge": {"members that stand elsewhere are not seen here", "ledger: a\ndestinations:\n  x: &x\n    type: simulated\n    url: http://a\n  y:\n    <<: *x\n",
			[]string{":3: destinations.x: is an anchor or alias (& or *), which is not taken; want names with values below them",
				":7: destinations.y: merge keys (<<) are not taken; write the members out"}},
		"class":             {"value", "ledger: a\ndestinations:\n  x: {type: simulated, url: 'http://a', class: best}\n", []string{`:3: destinations.x: class: is "best"; want one of [native unique plain lagging]`}},
		"url":               {"value", "ledger: a\ndestinations:\n  x: {type: simulated, url: a}\n", []string{`:3: destinations.x: url: orders: base URL "a": want http://host:port`}},
		"tls":               {"value", mail + "    password_env: P\n    tls: maybe\n", []string{`:4: destinations.mail: tls: is "maybe"; want implicit, starttls, or none (loopback addresses only)`}},
		"boolean":           {"type", mail + "    password_env: P\n    single_store: perhaps\n", []string{":9: destinations.mail.single_store: has the wrong type; want true or false"}},
		"number":            {"type", mail + "    password_env: P\n    max_connections: many\n", []string{":9: destinations.mail.max_connections: has the wrong type; want a whole number"}},
		"duration":          {"60 of what?", mail + "    password_env: P\n    settle: 60\n", []string{`:9: destinations.mail.settle: "60" is no duration; want one such as 60s, or unknown`}},
		"negative":          {"time", mail + "    password_env: P\n    horizon: -1s\n", []string{`:9: destinations.mail.horizon: "-1s" is no duration; want one such as 60s, or unknown`}},
		"no time-out":       {"every call must be able to end", mail + "    password_env: P\n    send_timeout: 0s\n", []string{`:9: destinations.mail.send_timeout: is 0; want a duration such as 10s`}},
		"no value":          {"an empty setting would pass for the default", mail + "    password_env: P\n    settle:\n", []string{`:9: destinations.mail.settle: is empty; want a value, or the line taken out`}},
		"no CA":             {"file", mail + "    password_env: P\n    ca_file: /nonexistent.pem\n", []string{":4: destinations.mail: ca_file: open /nonexistent.pem: no such file or directory"}},
		"no secret":         {"asked for before anything is recorded", mail, []string{":4: destinations.mail: want exactly one of password_env (the name of an environment variable), password_file (a path) and password_command (a program and its arguments)"}},
		"two secrets":       {"which?", mail + "    password_env: P\n    password_file: p\n", []string{":4: destinations.mail: want exactly one of password_env (the name of an environment variable), password_file (a path) and password_command (a program and its arguments)"}},
		"command and file":  {"which?", mail + "    password_file: p\n    password_command: [vault]\n", []string{":4: destinations.mail: want exactly one of password_env (the name of an environment variable), password_file (a path) and password_command (a program and its arguments)"}},
		"command line":      {"no shell reads it", mail + "    password_command: vault read x\n", []string{":8: destinations.mail.password_command: is a single value; want a list of a program and its arguments, such as [vault, kv, get, -field=token, secret/jira]: no shell reads it"}},
		"no command":        {"nothing to run", mail + "    password_command: []\n", []string{":8: destinations.mail.password_command: is empty; want a program and its arguments"}},
		"empty argument":    {"probably a mistake", mail + "    password_command: [vault, '']\n", []string{":8: destinations.mail.password_command[1]: is empty; want text"}},
		"zero byte":         {"no argument can hold one", mail + "    password_command: [vault, \"a\\0b\"]\n", []string{":8: destinations.mail.password_command[1]: holds a zero byte, which no argument can"}},
		"many arguments":    {"bounded", mail + "    password_command: [" + strings.Repeat("a, ", 64) + "a]\n", []string{":8: destinations.mail.password_command: has 65 elements; want at most 64"}},
		"no such program":   {"asked for before anything is recorded", mail + "    password_command: [/nowhere/vault]\n", []string{":4: destinations.mail: password_command: vault: it cannot be started: no such file or directory"}},
		"refresh":           {"it would never run again", mail + "    password_env: P\nsecrets: {refresh: 1h}\n", []string{`:9: secrets.refresh: is "1h"; want a time above nothing and at most 10m0s, such as 30s`}},
		"timeout":           {"it would fail each time", mail + "    password_env: P\nsecrets: {timeout: 0s}\n", []string{`:9: secrets.timeout: is "0s"; want a time above nothing and at most 10m0s, such as 30s`}},
		"secrets: misspelt": {"a misspelt word must not be overlooked", mail + "    password_env: P\nsecrets: {refrsh: 1m}\n", []string{":9: secrets.refrsh: is not known; did you mean refresh?"}},
		"variable not set": {"asked for before anything is recorded", mail + "    password_env: Q\n",
			[]string{":4: destinations.mail: password_env: the environment variable Q is not set, or empty"}},
		"secret file missing": {"file", mail + "    password_file: /nonexistent\n", []string{":4: destinations.mail: password_file: open /nonexistent: no such file or directory"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := problems(t, tt.text, environment("P", "x"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestConnectorErrorsNameThePlaceOfASetting(t *testing.T) {
	got := strings.Join(problems(t, mail+"    password_env: P\n    tls: none\n", environment("P", "x")), "\n")
	if !strings.HasPrefix(got, ":4: destinations.mail: imap options: ") || !strings.Contains(got, "in the clear") {
		t.Errorf("a password would cross a network in the clear, and the error is %q", got)
	}
}

func TestInlineSecretsAreRefusedAndNeverRepeated(t *testing.T) {
	const word = "hunter2"
	tests := map[string]struct{ reason, text, place string }{
		"password":       {"the obvious name", mail + "    password: " + word + "\n", ":8: destinations.mail.password: a secret does not belong into this file"},
		"other names":    {"names that mean the same", mail + "    imap-Password: " + word + "\n", ":8: destinations.mail.imap-Password: a secret"},
		"on top":         {"at the wrong place", "ledger: a.db\napi_key: " + word + "\n", ":2: api_key: a secret"},
		"beside a fault": {"the library would show the lines around", mail + "    password: " + word + "\n    single_store: perhaps\n", ":8: destinations.mail.password: a secret does not belong into this file"},
		"before bad YAML": {"the library would show the lines around",
			mail + "    password: " + word + "\n    tls: \"implicit\n", ":9:"},
		"in a URL":  {"a URL can hold one", "ledger: a\ndestinations:\n  x: {type: simulated, url: 'http://a:" + word + "@b'}\n", ":3: destinations.x: url: holds a user name or a password"},
		"in no URL": {"a URL that cannot be read can hold one", "ledger: a\ndestinations:\n  x: {type: simulated, url: 'http://a:" + word + "@b:c'}\n", ":3: destinations.x: url: holds a user name or a password"},
		"in addr": {"people know it from URLs", strings.Replace(mail, "addr: ", "addr: a:"+word+"@", 1) + "    password_file: " + os.DevNull + "\n",
			": addr: holds a user name or a password"},
		"for its name": {"the secret itself, where the name of its variable belongs", mail + "    password_env: '!" + word + "'\n",
			"password_env: is not the name of an environment variable"},
		"unknown name": {"what is not known may be a secret", mail + "    passphrase: " + word + "\n", ":8: destinations.mail.passphrase:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(t, tt.text, environment()), "\n")
			if !strings.Contains(got, tt.place) {
				t.Errorf("%s: got %q, want %q in it", tt.reason, got, tt.place)
			}
			if strings.Contains(got, word) {
				t.Errorf("%s: the secret is in the error: %q", tt.reason, got)
			}
		})
	}
}

func TestTemplateWorks(t *testing.T) {
	path := write(t, string(config.Template()))
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "readback.db"); c.Ledger.File != want || c.Tenant != "default" {
		t.Errorf("ledger %q tenant %q, want %q and default", c.Ledger, c.Tenant, want)
	}
	reg, err := c.Registry(environment())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"orders"}, reg.Names()); diff != "" {
		t.Error(diff)
	}
}

// uncommented is the template with every setting in force: a setting follows
// its # at once, or after two blanks where it is within another. The database
// takes the place of the file.
func uncommented() string {
	var text strings.Builder
	for line := range strings.Lines(string(config.Template())) {
		for _, indent := range []string{"", "  "} {
			rest, ok := strings.CutPrefix(line, indent+"#")
			if ok && (!strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "  ")) {
				line = indent + rest
				break
			}
		}
		text.WriteString(line)
	}
	return strings.NewReplacer("\nledger: readback.db\n", "\n", "    ca_file: ca.pem\n", "").Replace(text.String())
}

func TestTemplateWithEverythingUncommented(t *testing.T) {
	text := uncommented()
	path := write(t, text)
	c, err := config.Load(path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	reg, err := c.Registry(environment("MAIL_PASSWORD", "x", "JIRA_TOKEN", "x", "GITHUB_TOKEN", "x", "SHOP_PASSWORD", "x", "S3_SECRET", "x", "KNOWLEDGE_KEY", "x", "OPS_HOOK_SECRET", hookSecret, "READBACK_REDACTION_KEY", goodKey))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"issues", "jira", "knowledge", "mail", "orders", "outbox", "reports", "shop", "webhook:ops"}, reg.Names()); diff != "" {
		t.Error(diff)
	}
	if !c.Ledger.Database() || c.Ledger.String() != "postgres://readback@db.example.org/readback?sslmode=verify-full" {
		t.Errorf("ledger %s", c.Ledger)
	}
	const day = 24 * time.Hour
	got := config.Config{Retention: c.Retention, Queue: c.Queue, Gate: c.Gate, Risks: c.Risks, Metrics: c.Metrics, Log: c.Log, Server: c.Server}
	got.Retention.Line, got.Gate.Line, got.Server.Line = 0, 0, 0
	got.Server.OIDC, got.Server.Sessions = config.OIDC{}, config.Sessions{} // have a test of their own
	want := config.Config{Retention: config.Retention{Keep: 400 * day, Remember: 800 * day, Every: time.Hour,
		Tenants: map[string]time.Duration{"acme": 90 * day}, Destinations: map[string]time.Duration{"crm": 30 * day}},
		Queue: config.Queue{Waiting: 100_000, InHand: 10_000, Bytes: 256 << 20},
		Gate: config.Gate{Rules: filepath.Join(filepath.Dir(path), "rules.yaml"), Lease: time.Minute, MaxLease: time.Hour, Window: day,
			Approvals: config.Approvals{Approvers: 1, Within: day, OnTimeout: policies.OnTimeoutDeny}},
		Risks: []policies.RiskRule{{Name: "money is paid out", Tool: "wire_*", Destination: "orders", Kind: "order",
			Writes: []intent.WriteType{intent.Create, intent.Upsert}, Class: intent.RiskApprove, Approvers: 2, Within: 4 * time.Hour, OnTimeout: policies.OnTimeoutEscalate}},
		Metrics: config.Metrics{Listen: "127.0.0.1:9464"}, Log: "text",
		Server: config.Server{Listen: "127.0.0.1:8080", PublicURL: "https://readback.example.org", CertFile: filepath.Join(filepath.Dir(path), "server.crt"), KeyFile: filepath.Join(filepath.Dir(path), "server.key"),
			Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, MaxWait: time.Minute, Grace: 50 * time.Second, Parallel: 16, Limits: access.Limits{Requests: 4096, Streams: 512, Bodies: 64 << 20, TokenRate: 250, TenantRate: 500}, API: true, Gate: true, MCP: true, ReviewUI: true}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(config.Config{}, "Ledger", "MCP"), cmpopts.IgnoreUnexported(config.Config{}), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if _, p, err := reg.Lookup("mail", "message"); err != nil || p.Rate != (connectors.Rate{Calls: 100, Per: time.Minute}) {
		t.Errorf("rate %+v, %v", p.Rate, err)
	}
}

func TestPromisesReplaceTheConnectors(t *testing.T) {
	const text = `
ledger: a.db
destinations:
  stated:
    type: simulated
    url: http://127.0.0.1:1
    class: lagging
    settle: 5s
    horizon: unknown
    recheck: 1m
    send_timeout: 3s
    read_timeout: 4s
  own:
    type: simulated
    url: http://127.0.0.1:1
    class: lagging
`
	c, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := c.Registry(environment())
	if err != nil {
		t.Fatal(err)
	}
	bounds := cmp.Comparer(func(a, b connectors.Bound) bool { return a == b })
	_, own, _ := reg.Lookup("own", "order")
	_, got, err := reg.Lookup("stated", "order")
	if err != nil {
		t.Fatal(err)
	}
	want := own
	want.Destination = "stated"
	want.Settle, want.Horizon, want.Recheck = connectors.Within(5*time.Second), connectors.Bound{}, connectors.Within(time.Minute)
	want.SendTimeout, want.ReadTimeout = 3*time.Second, 4*time.Second
	if diff := cmp.Diff(want, got, bounds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, declared := own.Horizon.Declared(); !declared {
		t.Error("the class declares no horizon: the test shows nothing")
	}
}

// A rollback fact is the time within which effects can be undone.
func TestRollbackNeedsATime(t *testing.T) {
	for says, problem := range map[string]string{
		"true": `"true" is no duration; want one such as 60s, or unknown`,
		"60":   `"60" is no duration; want one such as 60s, or unknown`,
		"-1s":  `"-1s" is no duration; want one such as 60s, or unknown`,
		"{}":   `"{" is no duration; want one such as 60s, or unknown`,
		"":     "is empty; want a value, or the line taken out",
	} {
		want := []string{":6: destinations.x.rollback: " + problem}
		text := "ledger: a.db\ndestinations:\n  x:\n    type: simulated\n    url: http://127.0.0.1:1\n    rollback: " + says + "\n"
		if diff := cmp.Diff(want, problems(t, text, environment())); diff != "" {
			t.Errorf("rollback: %s (-want +got):\n%s", says, diff)
		}
	}
}

func TestSecretsMustBeThere(t *testing.T) {
	path := write(t, mail+"    password_file: p.txt\n")
	secret := filepath.Join(filepath.Dir(path), "p.txt")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Registry(environment()); err == nil {
		t.Fatal("a file that is missing was not noticed")
	}
	if err := os.WriteFile(secret, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Registry(environment()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Registry(environment()); err == nil {
		t.Fatal("an empty secret was not noticed")
	}
}

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	here := write(t, "ledger: a\n")
	if _, err := config.Find("", environment()); !errors.Is(err, config.ErrMissing) || !strings.Contains(err.Error(), "readback init") {
		t.Errorf("no file: %v", err)
	}
	if _, err := config.Find("", environment(config.Variable, "/nonexistent")); !errors.Is(err, config.ErrMissing) || !strings.Contains(err.Error(), config.Variable) {
		t.Errorf("a variable that names nothing: %v", err)
	}
	if got, err := config.Find("", environment(config.Variable, here)); got != here || err != nil {
		t.Errorf("by variable: %q, %v", got, err)
	}
	if err := os.WriteFile(config.FileName, []byte("ledger: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Find("", environment()); got != config.FileName || err != nil {
		t.Errorf("in the working directory: %q, %v", got, err)
	}
	if got, err := config.Find(here, environment(config.Variable, "/nonexistent")); got != here || err != nil {
		t.Errorf("named: %q, %v", got, err)
	}
}
