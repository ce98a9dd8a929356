package command

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
)

// answered is the status, the header and the body of a response.
func answered(t *testing.T, method, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// A database that is unreachable when the server starts, and again later: the server
// reports it, and continues when it is reachable, without a restart.
func TestServeWhileItsDatabaseIsAway(t *testing.T) {
	pg := pgtest.Start(t, pgtest.Options{})
	name, err := pg.CreateDatabase()
	if err == nil {
		err = pg.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, orders.Plain.Options())
	p.database("postgres://postgres@" + pg.Addr() + "/" + name)
	s := serveProcess(t, p.dir)
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil { // there is nothing to reload yet, which is no reason to end
		t.Fatal(err)
	}
	if code, _ := s.ask("GET", "/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	for _, path := range []string{"/readyz", "/v1/writes", "/api/v1/workflows", "/mcp", "/inbox", "/metrics"} {
		code, header, text := answered(t, "GET", s.url+path, "")
		if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || strings.Contains(text, pg.Addr()) {
			t.Errorf("%s: %d %v %s", path, code, header, text)
		}
	}
	if err := pg.Recover(); err != nil {
		t.Fatal(err)
	}
	ready := func() bool { code, _ := s.ask("GET", "/readyz", ""); return code == http.StatusOK }
	eventually(t, "the server to be ready", ready)
	says(t, result{0, s.rest.String(), s.errs.String()}, "cannot be reached yet", "it is tried again")
	submit := func(order string) (int, http.Header, string) {
		return answered(t, "POST", s.url+"/v1/writes", strings.ReplaceAll(sampleIntent("create_order", order), `{"workflow"`, `{"tenant":"acme","workflow"`))
	}
	if code, _, text := submit("A-1"); code != http.StatusAccepted && code != http.StatusOK && code != http.StatusCreated {
		t.Errorf("%d %s", code, text)
	}
	eventually(t, "the write", func() bool { return len(p.world.Records("A-1")) == 1 })

	if err := pg.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server not to be ready", func() bool { return !ready() })
	if code, header, text := submit("A-2"); code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || strings.Contains(text, pg.Addr()) {
		t.Errorf("%d %v %s", code, header, text)
	}
	if code, header, text := answered(t, "POST", s.url+"/api/v1/workflows", `{"workflow_name":"w"}`); code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", code, header, text)
	}
	if err := pg.Recover(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to be ready again", ready)
	submit("A-2")
	eventually(t, "the second write", func() bool { return len(p.world.Records("A-2")) == 1 })
	for i := 1; i < 3; i++ {
		p.effects(1, fmt.Sprintf("A-%d", i))
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}
