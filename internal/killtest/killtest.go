// Package killtest has a worker of a workflow engine die, or the server that it needs, at a point of
// a step that makes a write. It also has what the other tests of these adapters share: destinations in
// the process of the test, and databases.
//
// The worker is the test's own program in a process of its own. The destination is an order system in
// the process of the test: its own list of effects survives whatever dies. The package knows no
// workflow engine: what the worker does is the test's, and so is a server that is not PostgreSQL.
//
// It kills at four points, and the ledger is the test's. Package adaptertest stops a worker at each call of
// its ledger, which is a file, and of its destination in turn, and its tests kill there.
package killtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// Point is a moment in a step that makes a write.
type Point string

// The points, in their order.
const (
	BeforeDo Point = "before the write is recorded"
	Sending  Point = "while the request is at the destination"
	Sent     Point = "after the response, before it is recorded"
	Settled  Point = "after the write is settled, before the engine records the step"
)

// Points returns all of them.
func Points() []Point { return []Point{BeforeDo, Sending, Sent, Settled} }

// address is the environment variable with the stage's URL in the process of a worker.
const address = "READBACK_KILLTEST"

// Stage is the destination and what happens at the points. Its methods may be called at any time.
type Stage struct {
	World *orders.World

	server *httptest.Server
	mu     sync.Mutex
	at     map[Point]func()
}

// New starts a destination of the class Plain, with a short horizon: a request that it did not get
// is known to be lost within a second.
func New(tb testing.TB) *Stage {
	tb.Helper()
	world, err := orders.New(options())
	Must(tb, err)
	s := &Stage{World: world, at: map[Point]func(){}}
	handler := orders.Handler(world)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/at" {
			s.reached(Point(r.URL.Query().Get("point")))
			return
		}
		answer := httptest.NewRecorder() // not sent before whatever happens at the point
		handler.ServeHTTP(answer, r)
		if r.Method == http.MethodPost {
			s.reached(Sending)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = io.Copy(w, answer.Body) // the worker may be dead
	}))
	tb.Cleanup(s.server.Close)
	return s
}

func options() orders.Options {
	o := orders.Plain.Options()
	o.Horizon, o.Recheck = connectors.Within(time.Second), connectors.Within(0)
	o.SendTimeout, o.ReadTimeout = 3*time.Second, 3*time.Second // within 1 s a busy machine does not always answer
	return o
}

// KillAt starts a worker as [Stage.Start] does, and returns when kill has returned. That is called with
// the worker when it reaches the point for the first time, and the worker waits there meanwhile.
func (s *Stage) KillAt(tb testing.TB, p Point, kill func(*Worker), env ...string) {
	tb.Helper()
	started, killed := make(chan *Worker, 1), make(chan struct{})
	s.mu.Lock()
	s.at[p] = func() { kill(<-started); close(killed) }
	s.mu.Unlock()
	started <- s.Start(tb, env...)
	Await(tb, "killed "+string(p), killed)
}

func (s *Stage) reached(p Point) {
	s.mu.Lock()
	do := s.at[p]
	delete(s.at, p)
	s.mu.Unlock()
	if do != nil {
		do()
	}
}

// Worker is a process of the test's own program.
type Worker struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a worker, with environment variables in addition to the test's own. It is killed at
// the end of the test. What it prints is the test's log.
func (s *Stage) Start(tb testing.TB, env ...string) *Worker {
	tb.Helper()
	var out bytes.Buffer
	w := &Worker{cmd: exec.CommandContext(context.Background(), os.Args[0], "-test.run=^$"), exited: make(chan struct{})}
	w.cmd.Env = append(append(os.Environ(), address+"="+s.server.URL), env...)
	w.cmd.Stdout, w.cmd.Stderr = &out, &out
	in, err := w.cmd.StdinPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	Must(tb, err)
	go func() {
		defer func() { _ = in.Close() }() // it was its sign that this process lives
		_ = w.cmd.Wait()                  // it is killed
		close(w.exited)
	}()
	tb.Cleanup(func() {
		w.Kill(tb)
		if tb.Failed() {
			tb.Logf("worker %d:\n%s", w.cmd.Process.Pid, out.String())
		}
	})
	return w
}

// Kill ends the worker with SIGKILL, and returns when it has ended.
func (w *Worker) Kill(tb testing.TB) {
	if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Error(err)
	}
	<-w.exited
}

// Inside is the stage as a worker reaches it.
type Inside struct{ url string }

// Main is the TestMain of tests with workers. In a worker's process it runs work, and the process ends
// with that of its test. Else it runs the tests, and then ends what they share.
func Main(m *testing.M, work func(Inside) error, ends ...func() error) {
	if url, is := os.LookupEnv(address); is {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until its other end closes
			os.Exit(1)
		}()
		fmt.Fprintln(os.Stderr, work(Inside{url}))
		os.Exit(1)
	}
	code := m.Run()
	for _, end := range append(ends, closePostgres) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Reached announces that a worker is at a point.
func (i Inside) Reached(p Point) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, i.url+"/at?point="+url.QueryEscape(string(p)), nil)
	if err == nil {
		var resp *http.Response
		if resp, err = new(http.Client).Do(req); err == nil {
			err = resp.Body.Close()
		}
	}
	if err != nil {
		panic(fmt.Sprintf("at %q: %v", p, err)) // the test has ended
	}
}

// Registry returns the destination "orders".
func (i Inside) Registry() (*connectors.Registry, error) {
	c, err := orders.NewConnector(i.url, options(), nil)
	if err != nil {
		return nil, err
	}
	reg := new(connectors.Registry)
	return reg, reg.Register("orders", connectors.Destination{Connector: sending{c, i}, Profiles: c.Profiles()})
}

// sending announces each response to a send.
type sending struct {
	*orders.Connector
	inside Inside
}

// Write implements [connectors.Connector].
func (s sending) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := s.Connector.Write(ctx, r)
	s.inside.Reached(Sent)
	return receipt, err
}

// patience is how long a condition may take on a machine that does other things as well. A worker
// that is killed is replaced within seconds.
const patience = 30 * time.Second

// Until polls until a condition holds, and fails the test if that takes too long.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	Within(tb, patience, what, holds)
}

// Within is [Until] with another limit.
func Within(tb testing.TB, limit time.Duration, what string, holds func() bool) {
	tb.Helper()
	for end := time.Now().Add(limit); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("after %v: not yet %s", limit, what)
		}
	}
}

// Await waits until a channel is closed, and fails the test if that takes a minute.
func Await(tb testing.TB, what string, c <-chan struct{}) {
	tb.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		tb.Fatalf("after a minute: not yet %s", what)
	}
}

// Must fails the test for an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Background runs work until the returned function is called, which waits for its end.
func Background(tb testing.TB, work func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	}
}
