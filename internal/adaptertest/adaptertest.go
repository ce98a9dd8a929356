// Package adaptertest runs the worker of a workflow engine as a process of its own, which is killed
// at each of its calls in turn, before a destination of the test's that counts the effects. A [Bench]
// is an engine before such a destination in the process of the test.
//
// It does not know any workflow engine: what a worker is, the test defines.
package adaptertest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/policies"
)

// The environment of a child process.
const (
	roleVar    = "READBACK_CHILD"
	ledgerVar  = "READBACK_CHILD_LEDGER"
	ordersVar  = "READBACK_CHILD_ORDERS"
	settledVar = "READBACK_CHILD_SETTLED"
)

// lanes is how many scenes are under way at once: they wait for leases, horizons and servers most of
// the time, and not for the processor.
const lanes = 12

// patient is how long a child may take in all, on a machine that does other things as well.
const patient = 2 * time.Minute

// Main is the TestMain of a test with child processes: it runs the tests, or in a child its role.
func Main(m *testing.M, roles map[string]func(context.Context) error) {
	role := roles[os.Getenv(roleVar)]
	if role == nil {
		flag.Parse()
		if err := flag.Set("test.parallel", strconv.Itoa(lanes)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if err := role(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are those of the destination: it has nothing but strong reads, and a send that does not arrive is
// known not to arrive after two seconds.
func options() orders.Options {
	o := orders.Plain.Options()
	o.Horizon = connectors.Within(2 * time.Second)
	o.SendTimeout, o.ReadTimeout = time.Second, time.Second
	return o
}

// Worker is what a child has: an engine on the ledger and before the destination of its parent.
type Worker struct {
	Engine *engine.Engine
	Ledger ledger.Ledger
	// Settled is [Kill.Settled].
	Settled bool
	mu      sync.Mutex
	parent  *bufio.Reader
}

// NewWorker opens the ledger and the destination of a child. Tool "held" needs approval.
func NewWorker(ctx context.Context) (*Worker, error) {
	w := &Worker{Settled: os.Getenv(settledVar) == "true", parent: bufio.NewReader(os.Stdin)}
	book, err := sqlite.Open(ctx, os.Getenv(ledgerVar), nil)
	if err != nil {
		return nil, err
	}
	c, err := orders.NewConnector(os.Getenv(ordersVar), options(), nil)
	if err != nil {
		return nil, err
	}
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: halting{c, w}, Profiles: c.Profiles()}); err != nil {
		return nil, err
	}
	w.Ledger = haltingLedger{book, w}
	w.Engine = engine.New(w.Ledger, &reg, &engine.Options{Patience: 200 * time.Millisecond, Slack: 500 * time.Millisecond,
		Risks: []policies.RiskRule{{Tool: "held"}}})
	return w, nil
}

// Halt reports a point to the parent, and returns when it releases the child.
func (w *Worker) Halt(point string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println(point)
	_, _ = w.parent.ReadString('\n') // the parent may be gone
}

// Around is Halt before and after a call.
func (w *Worker) Around(point string, call func()) {
	w.Halt("before " + point)
	call()
	w.Halt("after " + point)
}

// Work runs the parts of a worker, and makes due writes, until done, which it asks again and again.
func (w *Worker) Work(ctx context.Context, done func() (bool, error), parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts)+1)
	for _, part := range append(parts, func(ctx context.Context) error { return w.Engine.Work(ctx, nil) }) {
		go func() { ended <- part(ctx) }()
	}
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended early: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if is, err := done(); err != nil {
			return err
		} else if is {
			w.mu.Lock() // it does not end while it halts: the parent may be about to kill it
			return nil
		}
	}
}

// AllSettled reports whether all writes of the ledger are settled.
func (w *Worker) AllSettled(ctx context.Context) (bool, error) {
	all, err := w.Ledger.List(ctx, ledger.Filter{Tenant: "acme"})
	return err == nil && !slices.ContainsFunc(all, func(r ledger.Record) bool { return r.State != ledger.Settled }), err
}

// Approve approves a write, if it waits for that.
func (w *Worker) Approve(id ledger.ID) { _ = decide(w.Engine, id, engine.WordApprove) }

type halting struct {
	connectors.Connector
	w *Worker
}

func (h halting) Write(ctx context.Context, r connectors.Request) (receipt connectors.Receipt, err error) {
	h.w.Around("send", func() { receipt, err = h.Connector.Write(ctx, r) })
	return receipt, err
}

func (h halting) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	h.w.Halt("before read")
	return h.Connector.Read(ctx, q)
}

type haltingLedger struct {
	ledger.Ledger
	w *Worker
}

func (l haltingLedger) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	l.w.Around("reserve", func() { rec, fresh, err = l.Ledger.Reserve(ctx, r) })
	return rec, fresh, err
}

func (l haltingLedger) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	l.w.Around("append "+string(events[0].Kind), func() { rec, err = l.Ledger.Append(ctx, id, fence, events...) })
	return rec, err
}

// Claim halts after a claim that returned something: workers make many that do not.
func (l haltingLedger) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	lent, err := l.Ledger.Claim(ctx, c)
	if len(lent) > 0 {
		l.w.Halt("after claim")
	}
	return lent, err
}

// Scene is the destination and the ledger of the children of one test.
type Scene struct {
	World *orders.World
	dir   string
	url   string
}

// NewScene makes a scene.
func NewScene(t *testing.T) *Scene {
	t.Helper()
	world, err := orders.New(options())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(orders.Handler(world))
	t.Cleanup(server.Close)
	return &Scene{World: world, dir: t.TempDir(), url: server.URL}
}

// Run is [Run] with the ledger and the destination of the scene.
func (s *Scene) Run(t *testing.T, role string, env []string, at func(n int, point string) (kill bool)) string {
	t.Helper()
	return Run(t, role, s.env(env), at)
}

// Run runs a child in a role until it ends, and calls at with each point at which it halts: a line
// that it prints, before it waits for another on its standard input. The child is killed there if at
// returns true. Run returns that point, or "" if the child ended by itself; it must then have
// succeeded.
func Run(t *testing.T, role string, env []string, at func(n int, point string) (kill bool)) string {
	t.Helper()
	c := start(t, role, env)
	killed := ""
	points := bufio.NewScanner(c.stdout)
	for n := 1; points.Scan(); n++ {
		if at != nil && at(n, points.Text()) {
			killed = points.Text()
			_ = c.cmd.Process.Kill() // it waits at that point, and ends there
			break
		}
		if _, err := io.WriteString(c.stdin, "go\n"); err != nil {
			break
		}
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if killed == "" && err != nil || killed != "" && !errors.As(err, &exit) {
		t.Fatalf("the child in the role %s ended %v: %s", role, err, c.stderr.String())
	}
	return killed
}

// Bodies are the messages of [Killed]: two orders, and a bad message between them.
var Bodies = []string{`{"order_id": "A-1", "amount_cents": 1999}`, `no order`, `{"order_id": "A-2", "amount_cents": 1999}`}

// Kill is a scene with a broker, in which the worker or the broker is killed at a point.
type Kill struct {
	*Scene
	// Settled is the option of the adapter.
	Settled     bool
	who         string
	nth, points int
}

// Killed runs a scene undisturbed, and then once for each point at which its worker halts.
func Killed(t *testing.T, scene func(*testing.T, *Kill)) {
	need.Long(t)
	run := func(t *testing.T, settled bool, who string, nth int) (points int) {
		k := &Kill{Scene: NewScene(t), Settled: settled, who: who, nth: nth}
		scene(t, k)
		return k.points
	}
	for _, settled := range []bool{false, true} {
		for _, who := range []string{"worker", "broker"} {
			t.Run(fmt.Sprintf("settled %t, the %s is killed", settled, who), func(t *testing.T) {
				points := 0
				t.Run("undisturbed", func(t *testing.T) { points = run(t, settled, "", 0) })
				for n := 1; n <= points; n += need.OneIn(3) {
					t.Run(fmt.Sprint("point ", n), func(t *testing.T) { t.Parallel(); run(t, settled, who, n) })
				}
			})
		}
	}
}

// Work runs the worker, which makes the writes of [Bodies], and kills it, or calls restart, which
// kills the broker and starts it again. Each order must be made once.
func (k *Kill) Work(t *testing.T, restart func(), env ...string) {
	t.Helper()
	env = append(env, settledVar+"="+strconv.FormatBool(k.Settled))
	point := k.Run(t, "worker", env, func(n int, point string) bool {
		k.points = n
		if n != k.nth || k.who == "worker" {
			return n == k.nth
		}
		t.Log("the broker is killed", point)
		restart()
		return false
	})
	if point != "" {
		t.Log("the worker was killed", point)
		k.Run(t, "worker", env, nil)
	}
	if sum := k.World.Summary("A-1", "A-2"); sum.Duplicates != 0 || len(sum.Lost) != 0 {
		t.Errorf("%+v", sum)
	}
}

// Server is a child that serves something until it is killed.
type Server struct{ cmd *exec.Cmd }

// Serve starts a child in a role, and returns when it has printed its first line, with that line.
func (s *Scene) Serve(t *testing.T, role string, env ...string) (*Server, string) {
	t.Helper()
	c := start(t, role, s.env(env))
	line, err := bufio.NewReader(c.stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child in the role %s: %v: %s", role, err, c.stderr.String())
	}
	server := &Server{c.cmd}
	t.Cleanup(server.Kill)
	return server, strings.TrimSpace(line)
}

// Kill ends it with SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *strings.Builder
}

// env adds the ledger and the destination of the scene to an environment.
func (s *Scene) env(env []string) []string {
	return append([]string{ledgerVar + "=" + filepath.Join(s.dir, "ledger.db"), ordersVar + "=" + s.url}, env...)
}

func start(t *testing.T, role string, env []string) child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	t.Cleanup(cancel)
	c := child{cmd: exec.CommandContext(ctx, self), stderr: &strings.Builder{}}
	c.cmd.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	c.cmd.Stderr = c.stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}
