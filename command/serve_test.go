package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/httpapi/contracttest"
	"github.com/readback-go/readback/ledger"
)

// served is a server that runs as a process.
type served struct {
	t       *testing.T
	cmd     *exec.Cmd
	first   string // the first line that it printed
	url     string
	rest    *lines
	errs    *lines
	drained chan struct{}
}

// serveProcess starts `readback serve` in a folder and waits for its address.
func serveProcess(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return serverProcess(t, dir, append([]string{"serve", "--dev"}, args...)...)
}

// serverProcess starts a server in a folder by a command.
func serverProcess(t *testing.T, dir string, command ...string) *served {
	t.Helper()
	s := &served{t: t, cmd: program(t, append(command, "--listen", "127.0.0.1:0")...),
		rest: &lines{}, errs: &lines{}, drained: make(chan struct{})}
	s.cmd.Dir, s.cmd.Stderr = dir, s.errs
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	r := bufio.NewReader(out)
	if s.first, err = r.ReadString('\n'); err != nil {
		close(s.drained)
		t.Fatalf("no first line: %v\n%s", err, s.errs)
	}
	s.first = strings.TrimSpace(s.first)
	s.url = s.first
	go func() {
		defer close(s.drained)
		_, _ = io.Copy(s.rest, r) // it ends with the process
	}()
	return s
}

// end sends a signal and waits for the end; the exit code is -1 where the
// signal ended it.
func (s *served) end(signal os.Signal) int {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(signal) // it may have ended by itself
		<-s.drained
		_ = s.cmd.Wait() // the exit code has it
	}
	return s.cmd.ProcessState.ExitCode()
}

// ask sends a request, and reads the response.
func (s *served) ask(method, path, body string, headers ...string) (int, map[string]any) {
	s.t.Helper()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	var v map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil && resp.StatusCode != http.StatusNoContent {
		s.t.Errorf("%s %s: %d, %v", method, path, resp.StatusCode, err)
	}
	return resp.StatusCode, v
}

// The files of the contract, spoken to the program over a network.
func TestServeSpeaksTheContract(t *testing.T) {
	const folder = "../internal/httpapi/testdata/contract"
	files, err := contracttest.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(folder + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	orders := ordersProcess(t)
	dir := t.TempDir()
	config := fmt.Sprintf("ledger: readback.db\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: plain\n    tenants: ['*']\ngate:\n  rules: %s\nrisk:\n  - {name: wages, tool: payroll, approvers: 2}\n", orders, rules)
	if err := os.WriteFile(filepath.Join(dir, "readback.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveProcess(t, dir)
	client := &http.Client{Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	server := contracttest.Server{URL: s.url, Client: client, Can: []string{"orders"}, Values: map[string]string{"orders": orders, "url": s.url}}
	spoken := 0
	for _, f := range files {
		if lacks := server.Lacks(f); len(lacks) > 0 {
			t.Logf("%s needs %v, which only a server in the test's own process can do", f.Name, lacks)
			continue
		}
		spoken++
		t.Run(f.Name, func(t *testing.T) { f.Run(t, server) })
	}
	if spoken < 10 {
		t.Errorf("only %d files were spoken", spoken)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

// Without any configuration there is a ledger in the folder, which outlives the
// process however it ends.
func TestServeRemembers(t *testing.T) {
	dir := t.TempDir()
	s := serveProcess(t, dir)
	if code, health := s.ask("GET", "/healthz", ""); code != 200 || health["status"] != "ok" {
		t.Errorf("/healthz: %d %v", code, health)
	}
	_, created := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	gate := fmt.Sprintf("/api/v1/workflows/%s/steps/pay/gate", created["workflow_id"])
	_, first := s.ask("POST", gate, `{"step_type":"tool_call","idempotency_key":"k"}`)
	if first["lease_granted"] != true {
		t.Errorf("the first gate: %v", first)
	}
	s.end(syscall.SIGKILL)
	says(t, result{0, s.rest.String(), ""}, "Ledger: "+devLedger, "Configuration: none", "Credentials are not checked (--dev)")
	if _, err := os.Stat(filepath.Join(dir, devLedger)); err != nil {
		t.Error(err)
	}

	s = serveProcess(t, dir)
	_, again := s.ask("POST", gate, `{"step_type":"tool_call","idempotency_key":"k"}`)
	retry, _ := again["retry_context"].(map[string]any)
	if retry["prior_completion_status"] != "gated_not_completed" || retry["gate_count"] != 2.0 || again["lease_granted"] != false {
		t.Errorf("after the crash: %v", again)
	}
	if code := s.end(os.Interrupt); code != 0 {
		t.Errorf("exit code %d after an interrupt\n%s", code, s.errs)
	}
}

// A stopping server responds to the requests that it admitted.
func TestServeEndsWhatItBegan(t *testing.T) {
	s := serveProcess(t, t.TempDir())
	_, created := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the server closes it
	body := `{"step_type":"tool_call"}`
	// The body is complete only after the server's stop.
	if _, err := fmt.Fprintf(conn, "POST /api/v1/workflows/%s/steps/a/gate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", created["workflow_id"], len(body)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the handler reads
		t.Fatalf("%q %v", line, err)
	}
	ended := make(chan int)
	go func() { ended <- s.end(syscall.SIGTERM) }()
	eventually(t, "no new connections", func() bool {
		probe, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			_ = probe.Close() // it was only to see
		}
		return err != nil
	})
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r) // up to the end of the connection
	if !strings.Contains(string(text), "200 OK") || !strings.Contains(string(text), `"lease_granted":true`) {
		t.Errorf("it was not answered:\n%s", text)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

func TestServeRefuses(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // nothing came
	dir := t.TempDir()
	bad := func(name, text string) string {
		putFile(t, dir, name, "ledger: l.db\n"+text)
		return filepath.Join(dir, name)
	}
	lawless, keyless := bad("rules.yaml", "gate:\n  rules: none.yaml\n"), bad("key.yaml", "server: {sessions: {key_env: NOT_THERE}}\n")
	useless := bad("tool.yaml", strings.TrimPrefix(strings.Replace(ordering, "order_id", "number", 2), "ledger: readback.db\n"))
	numbers := bad("metrics.yaml", "metrics: "+taken.Addr().String()+"\n")
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"not dev":       {"there is nothing that could hold tokens", []string{"--listen", "127.0.0.1:0"}, exitUsage, "--dev is missing"},
		"not dev, open": {"what callers say could be read on the way", []string{"--listen", "0.0.0.0:0"}, exitUsage, "the network can read what is sent"},
		"everywhere":    {"others could reach it", []string{"--dev", "--listen", "0.0.0.0:0"}, exitUsage, "other machines can reach"},
		"no host":       {"that is everywhere", []string{"--dev", "--listen", ":8080"}, exitUsage, "other machines can reach"},
		"everywhere 6":  {"likewise", []string{"--dev", "--listen", "[::]:0"}, exitUsage, "other machines can reach"},
		"other machine": {"likewise", []string{"--dev", "--listen", "192.0.2.1:8080"}, exitUsage, "other machines can reach"},
		"a name":        {"it may point anywhere", []string{"--dev", "--listen", "readback.example:8080"}, exitUsage, "other machines can reach"},
		"no port":       {"no address", []string{"--dev", "--listen", "127.0.0.1"}, exitUsage, "want host:port"},
		"taken":         {"the port is taken", []string{"--dev", "--listen", taken.Addr().String()}, exitFailed, "is taken"},
		"no config":     {"it was named", []string{"--dev", "--listen", "127.0.0.1:0", "--config", "none.yaml"}, exitConfig, "does not exist"},
		"no rules":      {"a gate without its rules lets everything through", []string{"--dev", "--listen", "127.0.0.1:0", "--config", lawless}, exitConfig, "gate.rules"},
		"a tool":        {"no call of it would work", []string{"--dev", "--listen", "127.0.0.1:0", "--config", useless}, exitConfig, "mcp.tools[0].arguments[0]: readback would refuse every call"},
		"no key":        {"sessions could not be sealed", []string{"--listen", "127.0.0.1:0", "--config", keyless, "--ledger", "l.db"}, exitConfig, "NOT_THERE"},
		"metrics taken": {"the port is taken", []string{"--listen", "127.0.0.1:0", "--config", numbers, "--ledger", "l.db"}, exitFailed, "metrics: "},
		"no ledger":     {"a folder is none", []string{"--dev", "--listen", "127.0.0.1:0", "--ledger", "."}, exitUnavailable, "unable to open"},
		"parallel":      {"no work", []string{"--dev", "--parallel", "0"}, exitUsage, "--parallel"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			var out, errs lines
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(string) string { return "" }}
			ctx, end := context.WithTimeout(t.Context(), time.Minute) // one that serves never ends
			defer end()
			r := result{a.run(ctx, append([]string{"serve"}, test.args...)), out.String(), errs.String()}
			if r.code != test.code || r.out != "" {
				t.Errorf("%s: want exit %d\n%s", test.reason, test.code, r)
			}
			says(t, r, test.says)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it left something behind: %v %v", left, err)
			}
		})
	}
}

// TestServeSaysThatABodyIsTooLarge: with the problem that the document lists,
// whether the length was announced or not, and not before the bound of the route.
func TestServeSaysThatABodyIsTooLarge(t *testing.T) {
	s := serveProcess(t, t.TempDir())
	const most = intent.MaxSize + 64<<10
	_, document := s.ask(http.MethodGet, "/openapi.json", "")
	listed, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size    int
		chunked bool
		status  int
		kind    string
	}{
		{most, false, http.StatusBadRequest, "invalid-intent"}, {most, true, http.StatusBadRequest, "invalid-intent"},
		{most + 1, false, http.StatusRequestEntityTooLarge, "too-large"}, {most + 1, true, http.StatusRequestEntityTooLarge, "too-large"},
		{8 << 20, false, http.StatusRequestEntityTooLarge, "too-large"}, {8 << 20, true, http.StatusRequestEntityTooLarge, "too-large"},
	} {
		var body io.Reader = strings.NewReader("{" + strings.Repeat(" ", c.size-2) + "}")
		if c.chunked {
			body = struct{ io.Reader }{body}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/writes", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Type string }
		err = json.NewDecoder(resp.Body).Decode(&got)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.HasSuffix(got.Type, "/"+c.kind) || !strings.Contains(string(listed), got.Type) {
			t.Errorf("%+v: %d %s (%v)", c, resp.StatusCode, got.Type, err)
		}
	}
}

// Three servers on one ledger, and many callers at one step: one of them leases the step,
// and all get the same decision.
func TestServeCrowd(t *testing.T) {
	dir := t.TempDir()
	var servers []*served
	for range 3 {
		servers = append(servers, serveProcess(t, dir))
	}
	_, created := servers[0].ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	gate := fmt.Sprintf("/api/v1/workflows/%s/steps/pay/gate", created["workflow_id"])
	answers := make([]map[string]any, 32)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			_, answers[i] = servers[i%3].ask("POST", gate, `{"step_type":"tool_call","idempotency_key":"k"}`, "X-User-ID", fmt.Sprint("caller-", i))
		})
	}
	wg.Wait()
	granted, holder, counts := 0, "", map[any]bool{}
	for i, a := range answers {
		if a["lease_granted"] == true {
			holder = fmt.Sprint("caller-", i)
		}
	}
	for _, a := range answers {
		retry, _ := a["retry_context"].(map[string]any)
		counts[retry["gate_count"]] = true
		switch {
		case a["decision"] != "allow" || a["decision_id"] != answers[0]["decision_id"] || a["reason"] != answers[0]["reason"]:
			t.Errorf("another decision: %v", a)
		case a["lease_id"] != answers[0]["lease_id"] || a["lease_holder"] != holder:
			t.Errorf("the answer does not name the holder %s: %v", holder, a)
		case a["lease_granted"] == true:
			granted++
		case a["retry_after_seconds"] == nil || a["fence"] != nil:
			t.Errorf("the answer does not say to wait: %v", a)
		}
	}
	if granted != 1 || len(counts) != len(answers) {
		t.Errorf("lent to %d, counted %d times; want 1 and %d", granted, len(counts), len(answers))
	}
	for _, s := range servers {
		if code := s.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d\n%s", code, s.errs)
		}
	}
}

// It does what a worker does.
func TestServeWorks(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	up := p.url
	p.configure("http://127.0.0.1:1", "") // no caller there
	p.submit(exitInProgress, order("A-1", ""), "--wait", "0")
	p.configure(up, "")
	s := serveProcess(t, p.dir)
	eventually(t, "the write to be carried on", func() bool { return p.writes()[0].Settlement == ledger.Verified })
	p.effects(1, "A-1")
	says(t, result{0, s.rest.String(), ""}, "Ledger: readback.db", "Configuration: readback.yaml")
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

// Two servers and a worker at one saga: each of its steps is sent once.
func TestServeCarriesSagas(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.want(exitInProgress, p.runIn(planYAML(nil), "saga", "run", "-", "--wait", "0"))
	servers := []*served{serveProcess(t, p.dir), serveProcess(t, p.dir)}
	work := program(t, "work")
	work.Dir = p.dir
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the saga to be done", func() bool { return strings.Contains(p.run("saga", "list").out, "done") })
	_ = work.Process.Signal(syscall.SIGTERM) // how it ends, however late, does not matter here
	_ = work.Wait()
	for _, s := range servers {
		if code := s.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d\n%s", code, s.errs)
		}
	}
	p.calls(4)
	for _, id := range []string{"C-1", "T-1", "P-1", "M-1"} {
		p.effects(1, id)
	}
}

// A server alone runs sagas: no other process is needed.
func TestServeCarriesSagasAlone(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.want(exitInProgress, p.runIn(planYAML(nil), "saga", "run", "-", "--wait", "0"))
	s := serveProcess(t, p.dir)
	eventually(t, "the saga to be done", func() bool { return strings.Contains(p.run("saga", "list").out, "done") })
	p.calls(4)
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

// Holds end without a request about them, and that is notified.
func TestServeEndsHolds(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "readback.yaml"), []byte("ledger: readback.db\nrisk:\n  - {name: money, tool: bank, within: 1s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveProcess(t, dir)
	_, created := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	_, held := s.ask("POST", fmt.Sprintf("/api/v1/workflows/%s/steps/pay/gate", created["workflow_id"]), `{"step_type":"tool_call","tool_context":{"tool_name":"bank"}}`)
	if held["decision"] != "require_approval" {
		t.Fatalf("%v", held)
	}
	eventually(t, "the hold to be ended", func() bool { return strings.Contains(s.errs.String(), "no reviewer approved a step in time") })
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

// A web page in a browser on this machine is not trusted as this machine.
func TestServeKeepsPagesOut(t *testing.T) {
	s := serveProcess(t, t.TempDir())
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for name, change := range map[string]func(*http.Request){
		"another origin": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a rebound name": func(r *http.Request) { r.Host = "evil.example" },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/workflows", strings.NewReader(`{"workflow_name":"w"}`))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the status says it
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if _, list := s.ask("GET", "/api/v1/workflows", ""); list["total"] != 0.0 {
		t.Errorf("something was begun: %v", list)
	}
}

func TestServeForMachines(t *testing.T) {
	dir := t.TempDir()
	s := serveProcess(t, dir, "--json", "--tenant", "acme", "--ledger", "own.db")
	var about map[string]string
	if err := json.Unmarshal([]byte(s.first), &about); err != nil {
		t.Fatalf("%q: %v", s.first, err)
	}
	s.url = about["listening"]
	if about["ledger"] != "own.db" || about["tenant"] != "acme" || about["credentials"] != "not checked" {
		t.Errorf("%v", about)
	}
	_, created := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	for tenant, want := range map[string]int{"acme": 200, "other": 404} { // no one named one before
		if code, _ := s.ask("GET", fmt.Sprintf("/api/v1/workflows/%s", created["workflow_id"]), "", "X-Tenant-ID", tenant); code != want {
			t.Errorf("the workflow as tenant %s: %d, want %d", tenant, code, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "own.db")); err != nil {
		t.Error(err)
	}
}
