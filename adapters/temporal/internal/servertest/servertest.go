//go:build unix

// Package servertest starts Temporal's server on a file, in a process that a test may kill.
package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

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

// Close ends the shared server, if it was started. TestMain calls it.
func Close() error {
	s := shared.Server
	if s == nil {
		return nil
	}
	s.Client.Close()
	err := s.cmd.Process.Kill()
	<-s.exited
	return errors.Join(err, os.RemoveAll(s.dir))
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
