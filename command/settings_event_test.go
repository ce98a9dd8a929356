package command

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
	sqliteledger "github.com/readback-go/readback/ledger/sqlite"
)

// settingsEvents are the events of configurations in a ledger, the newest first.
func (p *place) settingsEvents() (all []server.ConfigurationEvent) {
	p.t.Helper()
	l, err := sqliteledger.Open(p.t.Context(), p.ledger, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	found, _, err := l.FindDocuments(p.t.Context(), ledger.DocumentQuery{Tenant: "acme", Kind: server.SettingsKind})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range found {
		var e server.ConfigurationEvent
		if err := json.Unmarshal(f.Body, &e); err != nil {
			p.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// Each start and each reload records the digest of the configuration, in the audit
// chain: an altered event is found.
func TestStartsAndReloadsAreInTheAuditChain(t *testing.T) {
	t.Parallel()
	p, heads, public := chained(t)
	p.write("rules.yaml", allowing)
	digest := func() string {
		c, err := config.Load(p.config)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d.SHA256
	}
	const chain = "audit: {heads: {key_file: audit.pem, keep: [{file: heads.jsonl}]}}\n"
	before := digest()
	s := serveProcess(t, p.dir, "--verbose")
	p.configure(p.url, chain+"gate: {rules: rules.yaml}\n")
	after := digest()
	eventually(t, "the reload", func() bool { return strings.Contains(s.errs.String(), "sha256="+after) })
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs)
	}
	cmd, out, errs := p.process("", "work", "--verbose")
	eventually(t, "the worker", func() bool { return strings.Contains(errs.String(), "sha256="+after) })
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which its code says
	p.want(0, end(cmd, out, errs))
	p.variable = map[string]string{"READBACK_LOG": "json"}
	p.want(0, p.run("mcp"))
	p.variable = nil
	all := p.settingsEvents()
	if e := all[0]; !slices.Equal(e.Environment, []string{"READBACK_LOG"}) || e.Path != p.config || e.Version != server.Built().Version || e.Revision != server.Built().Revision {
		t.Errorf("the newest event: %+v", e)
	}
	var got [][4]string
	for _, e := range all {
		got = append(got, [4]string{e.Command, e.Event, e.SHA256, strings.Join(e.Changed, " ")})
	}
	want := [][4]string{{"mcp", server.Started, after, ""}, {"work", server.Started, after, ""}, {"serve", server.Reloaded, after, "gate.rules"}, {"serve", server.Started, before, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.want(0, p.run("audit", "seal"))
	p.want(0, p.run("audit", "verify", "--heads", heads, "--key", public))
	conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteScript(conn, "UPDATE ledger_documents SET body = replace(body, '"+before+"', '"+after+"') WHERE kind = 'configuration'", nil)
	}
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	says(t, p.want(exitAttention, p.run("audit", "verify", "--heads", heads, "--key", public)), "configuration-")
}

// What cannot record its configuration does not start, and takes no other one.
func TestWhatCannotRecordItsConfigurationDoesNotStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", "")) // makes the ledger
	refusing := func(how string) {
		conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadWrite)
		if err == nil {
			err = sqlitex.ExecuteScript(conn, how, nil)
		}
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const refuse = "CREATE TRIGGER refusing BEFORE INSERT ON ledger_documents BEGIN SELECT RAISE(FAIL, 'no room'); END"
	s := serveProcess(t, p.dir, "--verbose")
	refusing(refuse)
	p.configure(p.url, "risk: [{class: log}]\n")
	eventually(t, "the refusal", func() bool {
		return strings.Contains(s.errs.String(), "is not taken") && strings.Contains(s.errs.String(), "cannot be recorded")
	})
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs)
	}
	for _, args := range [][]string{{"mcp"}, {"work"}, {"serve", "--listen", "127.0.0.1:0"}} {
		if r := p.run(args...); r.code == 0 || !strings.Contains(r.err, "the event that names the configuration cannot be recorded") {
			t.Errorf("%v: %s", args, r)
		}
	}
}

// No command that starts programs or reads secrets takes a configuration that
// others may write, and a server that runs does not take it either.
func TestConfigurationsThatOthersWrite(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	made := id(t, p.submit(exitVerified, order("A-1", "")))
	s := serveProcess(t, p.dir, "--verbose")
	loosen := func(mode os.FileMode) {
		if err := os.Chmod(p.config, mode); err != nil {
			t.Fatal(err)
		}
	}
	loosen(0o666)
	for _, args := range [][]string{
		{"submit", "-f", "-"}, {"show", made}, {"list"}, {"resume", made}, {"review"}, {"work"}, {"serve"}, {"mcp"}, {"prune"}, {"audit", "verify"},
		{"status"}, {"doctor"}, {"stops"}, {"token", "list"}, {"receipt", "export", made}, {"destinations"}, {"probe", "orders"},
		{"config", "check", "--env"},
	} {
		says(t, p.want(exitConfig, p.runIn(order("A-2", ""), args...)), "can be written by others (mode 0666)", "chmod go-w")
	}
	says(t, p.want(0, p.run("config", "check")), "warning: "+p.config+": on this machine: can be written by others")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal", func() bool {
		return strings.Contains(s.errs.String(), "is not taken") && strings.Contains(s.errs.String(), "mode 0666")
	})
	loosen(0o600)
	p.want(0, p.run("config", "check", "--env"))
	p.effects(0, "A-2")
	if _, err := os.Stat(filepath.Join(p.dir, devLedger)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a ledger was made: %v", err)
	}
}

// Logins, refusals and uses of a server are in its audit chain, and a command lists them.
func TestSecurityEventsAreInTheAuditChain(t *testing.T) {
	p, heads, public := chained(t)
	agent := p.token("agent")
	p.token("auditor")
	url, stop := p.serveForTokens()
	ask := func(b bearer, method, path string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{"word":"approve"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Transport: b}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s %s: %d, want %d", method, path, answer.StatusCode, want)
		}
	}
	ask(agent, "POST", "/v1/writes/wr_0123456789abcdef0123456789abcdef/decision", http.StatusForbidden)
	ask("made-up", "GET", "/v1/destinations", http.StatusUnauthorized)
	if code := stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var listed struct {
		Events []struct {
			access.Event
			Count int `json:"count"`
		} `json:"events"`
	}
	r := p.want(0, p.run("audit", "events", "--json"))
	if err := json.Unmarshal([]byte(r.out), &listed); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range listed.Events {
		got[e.Event.Event+" "+e.Action] += e.Count
	}
	want := map[string]int{"token_created ": 2, "token_used ": 1, "forbidden POST /v1/writes": 1, "credentials_refused ": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	says(t, p.want(0, p.run("audit", "events", "--event", "forbidden")), "forbidden", "1x by agent-1", "action POST /v1/writes")
	p.want(0, p.run("audit", "seal"))
	p.want(0, p.run("audit", "verify", "--heads", heads, "--key", public))
}
