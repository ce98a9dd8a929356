package restate_test

import (
	"bytes"
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
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
)

// program is the path of the server: $RESTATE_SERVER, or that in the package of npm, installed once.
var program = sync.OnceValues(func() (string, error) {
	if named := os.Getenv("RESTATE_SERVER"); named != "" {
		return named, nil
	}
	dir, err := os.MkdirTemp("", "restate")
	if err != nil {
		return "", err
	}
	installed = dir
	if err := need.Install(filepath.Join("testdata", "npm"), dir); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", "@restatedev", "restate-server-*", "bin", "restate-server"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("restate-server: %w: the package of npm has %d for this system", need.ErrMissing, len(found))
	}
	return found[0], nil
})

// installed is the folder of the package, to be removed at the end.
var installed string

// restateServer is Restate's server as a process of its own.
type restateServer struct {
	t              *testing.T
	dir            string
	ingress, admin string
	args, env      []string
	cmd            *exec.Cmd
}

func newServer(t *testing.T, env ...string) *restateServer {
	t.Helper()
	if _, err := program(); err != nil {
		need.Have(t, err)
	}
	at := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(t)) }
	s := &restateServer{t: t, dir: t.TempDir(), ingress: at(), admin: at(), env: env}
	_, bind, _ := net.SplitHostPort(at())
	s.args = []string{"--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--bind-port", bind, "--advertised-host", "127.0.0.1",
		"--node-name", "node", "--base-dir", s.dir}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts it, again with the same files and ports after kill, and waits until it is ready.
func (s *restateServer) start() {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(path, s.args...)
	s.cmd.Env = append(os.Environ(), "RESTATE_INGRESS__BIND_ADDRESS="+s.ingress, "RESTATE_ADMIN__BIND_ADDRESS="+s.admin, "RESTATE_DISABLE_TELEMETRY=true",
		"RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE=128MB", "RESTATE_DEFAULT_NUM_PARTITIONS=1", "RESTATE_LOG_FILTER=error")
	s.cmd.Env = append(s.cmd.Env, s.env...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.until("the server is ready", func() error {
		for _, at := range []string{"http://" + s.admin + "/health", "http://" + s.ingress + "/restate/health"} {
			if _, err := call(s.t.Context(), http.MethodGet, at, "", nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// kill ends it with SIGKILL.
func (s *restateServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// register makes a service known that is served at an address.
func (s *restateServer) register(at string) {
	s.t.Helper()
	s.until("the service is registered", func() error {
		_, err := call(context.Background(), http.MethodPost, "http://"+s.admin+"/deployments", fmt.Sprintf(`{"uri": %q, "force": true}`, "http://"+at), nil)
		return err
	})
}

// invoke calls a handler ("payments/charge", "orders/A-1/run") and returns its result.
func (s *restateServer) invoke(handler, body, key string) (string, error) {
	var header http.Header
	if key != "" {
		header = http.Header{"Idempotency-Key": {key}}
	}
	return call(context.Background(), http.MethodPost, "http://"+s.ingress+"/"+handler, body, header)
}

// invocation is one row of what Restate knows of its invocations.
type invocation struct{ ID, Target, Status string }

func (s *restateServer) invocations() (all []invocation, err error) {
	rows, err := call(context.Background(), http.MethodPost, "http://"+s.admin+"/query", `{"query": "select id, target, status from sys_invocation order by target"}`,
		http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	var found struct {
		Rows []invocation `json:"rows"`
	}
	err = json.Unmarshal([]byte(rows), &found)
	return found.Rows, err
}

func (s *restateServer) until(what string, try func() error) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	s.t.Fatalf("not reached: %s: %v", what, err)
}

var client = &http.Client{Timeout: 30 * time.Second}

func call(ctx context.Context, method, at, body string, header http.Header) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewBufferString(body))
	if err != nil {
		return "", err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return string(text), err
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
