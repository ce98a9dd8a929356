//go:build unix

// Package servertest starts Temporal's server on a file, in a process that a test may kill, and kills it
// and workers at the points of package killtest.
package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/need"
)

// Quiet logs nothing.
var Quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// readyTime is how long the server may take to start on a busy machine.
const readyTime = time.Minute

// Server is Temporal's server, with the namespace "default".
type Server struct {
	Address string
	Client  client.Client

	program, dir, ports string

	mu     sync.Mutex // one kill at a time
	cmd    *exec.Cmd
	exited chan struct{}
}

var shared struct {
	sync.Once
	*Server
	err error
}

// Shared returns the server of all tests of a package, and starts it with the first. The program is
// bench/temporalserver, which make adapters builds.
func Shared(tb testing.TB, program string) *Server {
	tb.Helper()
	shared.Do(func() { shared.Server, shared.err = start(program) })
	need.Have(tb, shared.err)
	return shared.Server
}

// closeShared ends the shared server, if it was started.
func closeShared() error {
	s := shared.Server
	if s == nil {
		return nil
	}
	s.Client.Close()
	err := s.cmd.Process.Kill()
	<-s.exited
	return errors.Join(err, os.RemoveAll(s.dir))
}

// The environment variables of a worker's process.
const (
	serverOf = "READBACK_TEMPORAL_SERVER"
	queueOf  = "READBACK_TEMPORAL_QUEUE"
	ledgerOf = "READBACK_TEMPORAL_LEDGER"
)

// Main is the TestMain of tests with workers, as [killtest.Main] is. Since they wait, it runs as many at
// once as parallel says.
func Main(m *testing.M, parallel int, work func(stage killtest.Inside, address, queue, ledger string) error) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err)
	}
	killtest.Main(m, func(stage killtest.Inside) error {
		return work(stage, os.Getenv(serverOf), os.Getenv(queueOf), os.Getenv(ledgerOf))
	}, closeShared)
}

// Kills has a worker, the server, or both die at each point. The test calls kill to start a worker on a
// ledger. When kill returns all are dead that are to die, and started again.
func Kills(t *testing.T, s *Server, test func(t *testing.T, stage *killtest.Stage, queue string, kill func(ledger string))) {
	for name, killed := range map[string]struct{ worker, server bool }{"worker": {worker: true}, "server": {server: true}, "both": {true, true}} {
		for i, p := range killtest.Points() {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				t.Parallel()
				stage, queue := killtest.New(t), fmt.Sprintf("kill-%s-%d", name, i)
				test(t, stage, queue, func(ledger string) {
					env := []string{serverOf + "=" + s.Address, queueOf + "=" + queue, ledgerOf + "=" + ledger}
					stage.KillAt(t, p, func(w *killtest.Worker) {
						if killed.server {
							s.Kill(t)
						}
						if killed.worker {
							w.Kill(t)
						}
					}, env...)
					if killed.worker {
						stage.Start(t, env...)
					}
				})
			})
		}
	}
}

// announcing announces what precedes and follows each activity.
type announcing struct {
	interceptor.InterceptorBase
	interceptor.ActivityInboundInterceptorBase
	stage killtest.Inside
}

// Announce announces the points before and after each activity.
func Announce(stage killtest.Inside) interceptor.Interceptor { return &announcing{stage: stage} }

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (a *announcing) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	of := &announcing{stage: a.stage}
	of.Next = next
	return of
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (a *announcing) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	a.stage.Reached(killtest.BeforeDo)
	out, err := a.Next.ExecuteActivity(ctx, in)
	a.stage.Reached(killtest.Settled)
	return out, err
}

func start(program string) (*Server, error) {
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s, which make adapters builds", need.ErrMissing, program)
	}
	dir, err := os.MkdirTemp("", "temporal-")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(8)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(ports)
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, dir: dir, ports: string(list), Address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	if err := s.start(); err != nil {
		return nil, err
	}
	if s.Client, err = client.NewLazyClient(client.Options{HostPort: s.Address, Logger: Quiet}); err != nil {
		return nil, err
	}
	for end := time.Now().Add(readyTime); ; <-time.After(20 * time.Millisecond) {
		_, err = s.Client.DescribeTaskQueue(context.Background(), "any", enums.TASK_QUEUE_TYPE_WORKFLOW)
		if err == nil || time.Now().After(end) {
			return s, err
		}
	}
}

// freePorts are ports of 127.0.0.1 below 32768: the server stores them as small integers. Each
// process begins elsewhere, since packages are tested at the same time.
func freePorts(n int) (ports []int, err error) {
	for p := 20_000 + os.Getpid()%1_500*n; p < 32_768 && len(ports) < n; p++ {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			continue // another program has it
		}
		defer func() { _ = l.Close() }() // at the end, so that no port is given twice
		ports = append(ports, p)
	}
	if len(ports) < n {
		return nil, errors.New("no free ports of 127.0.0.1 below 32768")
	}
	return ports, nil
}

// start starts the process. A watchdog kills it when this process ends.
func (s *Server) start() error {
	out, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own
	s.cmd, s.exited = exec.CommandContext(context.Background(), s.program, "-sqlite", filepath.Join(s.dir, "temporal.db"), "-ports", s.ports), make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		return err
	}
	dog := exec.CommandContext(context.Background(), "/bin/sh", "-c", `read _ || kill -9 "$1" 2>/dev/null`, "sh", fmt.Sprint(s.cmd.Process.Pid))
	dog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := dog.StdinPipe()
	if err == nil {
		err = dog.Start()
	}
	if err != nil {
		return err
	}
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // it is killed
		_, _ = io.WriteString(alive, "\n")
		_ = dog.Wait()
		close(exited)
	}(s.cmd, s.exited)
	return nil
}

// Kill ends the server with SIGKILL, and starts it again.
func (s *Server) Kill(tb testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Kill(); err != nil {
		tb.Error(err)
	}
	<-s.exited
	if err := s.start(); err != nil {
		tb.Error(err)
	}
}
