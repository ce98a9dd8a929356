// Package program builds the command from source and runs it, for tests that
// want the real thing: a process of its own, which knows only its files, its
// flags and its sockets. It ships nothing. It knows of a server that the first
// line which it prints is its address, and nothing of what is served there.
package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// command is the package that is built.
const command = "github.com/readback-go/readback/cmd/readback"

// Program is the command, built.
type Program struct{ path string }

// Build builds the command of this module into a folder. The working directory
// must be inside of the module. Errors hold what the compiler said.
func Build(ctx context.Context, dir string) (Program, error) {
	p := Program{filepath.Join(dir, "readback")}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", p.path, command).CombinedOutput(); err != nil {
		return p, fmt.Errorf("go build: %w: %s", err, out)
	}
	return p, nil
}

// Run runs the command to its end and returns what it printed on standard
// output. Errors hold what it printed on standard error.
func (p Program) Run(ctx context.Context, args ...string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("readback %s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
	}
	return string(out), nil
}

// Server is the command, serving.
type Server struct {
	// URL is the address that it printed.
	URL string
	// Pid is the process.
	Pid int

	cmd     *exec.Cmd
	drained chan struct{}
}

// Serve starts `readback serve` with some flags and waits until it says where it
// is. Its standard error goes to log; nil drops it.
func (p Program) Serve(log io.Writer, flags ...string) (*Server, error) {
	s := &Server{cmd: exec.Command(p.path, append([]string{"serve"}, flags...)...), drained: make(chan struct{})} //nolint:noctx // it ends with End, in its own time
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.Pid = s.cmd.Process.Pid
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	go func() {
		defer close(s.drained)
		_, _ = io.Copy(io.Discard, lines) // so that it is never held up by us
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server printed nothing: %w", err), s.End())
	}
	s.URL = strings.TrimSpace(first)
	return s, nil
}

// End tells the server to stop and waits until it has. The error is that of its
// exit code.
func (s *Server) End() error {
	signalled := s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.drained
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ended: %w", errors.Join(err, signalled))
	}
	return nil
}
