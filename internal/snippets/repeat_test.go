package snippets

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// script is a server that answers one request after the other as scripted.
type script struct {
	mu     sync.Mutex
	bodies []string
}

// trouble is what a caller must sit out before the outcome comes.
var trouble = []struct {
	status int // 0 cuts the connection
	retry  string
	body   string
}{
	{status: 0},
	{503, "0", `{"title": "The ledger cannot be used now"}`},
	{429, "0", `{"title": "More is in hand than can be taken"}`},
	{409, "0", `{"title": "The write with this key is under way", "id": "wr_1"}`},
	{502, "0", `<html>`},
	{202, "", `{"id": "wr_1", "status": "in_progress", "text": "It goes on."}`},
	{200, "", `{"id": "wr_1", "status": "verified", "text": "It is there.", "ref": "ord_1"}`},
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	now := trouble[min(len(s.bodies), len(trouble))-1]
	if now.status == 0 {
		panic(http.ErrAbortHandler)
	}
	if now.retry != "" {
		w.Header().Set("Retry-After", now.retry)
	}
	w.WriteHeader(now.status)
	_, _ = io.WriteString(w, now.body)
}

// sitsOut has a client of the page meet all trouble, one after the other.
func sitsOut(t *testing.T, p *place, cmd func() *exec.Cmd, want string) {
	t.Helper()
	s := new(script)
	server := httptest.NewServer(s)
	defer server.Close()
	p.url = server.URL
	if got := p.says(cmd()); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if len(s.bodies) != len(trouble) {
		t.Errorf("%d requests were made, want %d", len(s.bodies), len(trouble))
	}
	for i, body := range s.bodies {
		if body != s.bodies[0] || !strings.Contains(body, "invoice-run-7") {
			t.Errorf("request %d is not the first one repeated: %s", i, body)
		}
	}
}

func TestPythonRepeats(t *testing.T) {
	t.Parallel()
	p := &place{t: t, dir: t.TempDir()}
	sitsOut(t, p, func() *exec.Cmd { return p.python("charge.py", block(t, "python-act"), "invoice-run-7", "A-1") }, "charged: ord_1")
}

func TestTypeScriptRepeats(t *testing.T) {
	t.Parallel()
	p := &place{t: t, dir: t.TempDir()}
	sitsOut(t, p, func() *exec.Cmd { return node(t, "charge.js", "invoice-run-7", "A-1") }, "verified ord_1")
}
