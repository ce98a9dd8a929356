package command

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// reading reads a response as it comes; done is closed at its end.
type reading struct {
	code int
	text *lines
	done chan struct{}
}

// read sends a request and reads its response beside the test.
func read(t *testing.T, r *http.Request) *reading {
	t.Helper()
	a := &reading{text: &lines{}, done: make(chan struct{})}
	resp, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.code = resp.StatusCode
	go func() {
		defer close(a.done)
		defer func() { _ = resp.Body.Close() }()
		in := bufio.NewScanner(resp.Body)
		for in.Scan() {
			_, _ = a.text.Write([]byte(in.Text() + "\n"))
		}
	}()
	return a
}

// mcpSession opens a session with an MCP server, and returns its id.
func mcpSession(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Mcp-Session-Id")
}

// A client of an event stream, or one that waits for an outcome that does not come, does
// not keep a server from ending, and is sent the time to reconnect; what was begun stays
// in the ledger.
func TestServeReleasesWhoWaits(t *testing.T) {
	p, asked, _ := blockedPlace(t, orders.Plain.Options()) // its response never comes
	s := serveProcess(t, p.dir, "--grace", "2s")
	var streams []*reading
	session := mcpSession(t, s.url+"/mcp")
	for _, c := range []struct{ path, accept string }{{"/v1/events", "text/event-stream"}, {"/v1/events", ""},
		{"/updates", "text/event-stream"}, {"/updates", ""}, {"/mcp", "text/event-stream"}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		if c.path == "/mcp" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		a := read(t, r)
		if a.code != http.StatusOK {
			t.Fatalf("%v: %d", c, a.code)
		}
		streams = append(streams, a)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/writes", strings.NewReader(sampleIntent("create_order", "A-1")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Prefer", "wait=50")
	waiting := make(chan *reading, 1)
	go func() { waiting <- read(t, r) }()
	<-asked
	ended := make(chan int, 1)
	go func() { ended <- s.end(syscall.SIGTERM) }()
	a := <-waiting
	<-a.done
	if a.code != http.StatusAccepted || !strings.Contains(a.text.String(), "in_progress") {
		t.Errorf("who waited for an outcome: %d %s", a.code, a.text)
	}
	for i, stream := range streams {
		<-stream.done
		if !strings.Contains(stream.text.String(), "retry:") {
			t.Errorf("stream %d was not told when to come back:\n%s", i, stream.text)
		}
	}
	<-ended
	if strings.Contains(s.errs.String(), "cut off") {
		t.Errorf("somebody who only listened was waited for:\n%s", s.errs)
	}
	if rec := p.writes()[0]; rec.State != ledger.Sending {
		t.Errorf("state %s, want sending: its answer never came", rec.State)
	}
}

// A second signal ends a server at once, whatever is in hand.
func TestServeSecondSignal(t *testing.T) {
	p, asked, _ := blockedPlace(t, orders.Plain.Options())
	s := serveProcess(t, p.dir, "--grace", "10m")
	if code, _ := s.ask("POST", "/v1/writes", sampleIntent("create_order", "A-1")); code != http.StatusAccepted {
		t.Fatal(code)
	}
	<-asked
	ended := make(chan int, 1)
	go func() { ended <- s.end(syscall.SIGTERM) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case code := <-ended:
			if code != -1 {
				t.Errorf("exit code %d\n%s", code, s.errs)
			}
			return
		case <-tick.C:
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
}

// The first trial: dev makes a write that is verified although its response may be lost,
// and one that waits for a reviewer; and all of it is there after a restart.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	s := serverProcess(t, dir, "dev")
	wait := []string{"Prefer", "wait=30"}
	for _, order := range []string{"A-2", "A-3", "A-4"} { // so many that a response is lost
		if code, out := s.ask("POST", "/v1/writes", sampleIntent("create_order", order), wait...); code/100 != 2 || out["status"] != "verified" {
			t.Errorf("%s: %d %v", order, code, out)
		}
	}
	eventually(t, "the text", func() bool { return strings.Contains(s.rest.String(), "Make a write of your own") })
	_, out := s.ask("POST", "/v1/writes", sampleIntent("wire_money", "B-1"), wait...)
	if out["status"] != "held" || out["replayed"] != true || out["review_url"] != fmt.Sprintf("%s/writes/%s", s.url, out["id"]) {
		t.Errorf("%v; want the write that dev made, with the page for it", out)
	}
	if code, _, text := answered(t, "GET", s.url+"/inbox", ""); code != http.StatusOK || !strings.Contains(text, "B-1") {
		t.Errorf("the inbox: %d", code)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
	says(t, result{0, s.rest.String(), ""}, "Review UI: "+s.url, `Order A-1: The order at "orders" was read back`, "Payment B-1: The order at \"orders\" waits for a reviewer's approval", `"order_id":"A-2"`)
	effects, err := orders.ReadLog(filepath.Join(dir, sampleLog))
	if err != nil || len(effects) != 4 {
		t.Errorf("%d effects, %v; want 4, one for each", len(effects), err)
	}
	again := serverProcess(t, dir, "dev")
	if _, out := again.ask("POST", "/v1/writes", sampleIntent("create_order", "A-1"), wait...); out["status"] != "verified" || out["replayed"] != true {
		t.Errorf("after a restart: %v", out)
	}
	again.end(syscall.SIGTERM)
}

// Without --dev a caller without a token is unknown.
func TestServeWithTokens(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	token := strings.TrimSpace(decode(t, p.want(0, p.run("token", "create", "--role", "agent", "--name", "bot", "--json")))["secret"].(string))
	cmd := program(t, "serve", "--listen", "127.0.0.1:0")
	cmd.Dir = p.dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, url: strings.TrimSpace(url)}
	for path, want := range map[string]int{"/v1/writes": 401, "/api/v1/workflows": 401, "/metrics": 401, "/healthz": 200, "/readyz": 200} {
		if code, _, _ := answered(t, "GET", s.url+path, ""); code != want {
			t.Errorf("%s as nobody: %d, want %d", path, code, want)
		}
	}
	bearer := []string{"Authorization", "Bearer " + token}
	if code, got := s.ask("POST", "/v1/writes", sampleIntent("create_order", "A-1"), append(bearer, "Prefer", "wait=30")...); got["status"] != "verified" {
		t.Errorf("as an agent: %d %v", code, got)
	}
	if code, _ := s.ask("GET", "/metrics", "", bearer...); code != http.StatusForbidden {
		t.Errorf("the metrics as an agent: %d", code)
	}
	if code, _ := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`, bearer...); code != http.StatusCreated {
		t.Errorf("the gate as an agent: %d", code)
	}
}
