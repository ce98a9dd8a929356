package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// stopTime is how long a process may take to end by itself.
const stopTime = 5 * time.Second

// process is a child, seen from its parent.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer // to be read after the process has ended
}

// start runs this program again as a child, which is killed when ctx ends. The
// caller must end it with stop or wait.
func start(ctx context.Context, s spec) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program, childWord, string(encoded)), stderr: &bytes.Buffer{}}
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = time.Second // no other process has its pipes
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// kill ends it with SIGKILL.
func (p *process) kill() error { return p.cmd.Process.Kill() }

// wait waits for the end of a process whose output has ended.
func (p *process) wait() error {
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.stderr.String()))
}

// stop closes its input, so that it ends, and waits until it has.
func (p *process) stop() error {
	_ = p.in.Close() // wait reports a process that has ended by itself
	impatient := time.AfterFunc(stopTime, func() { _ = p.kill() })
	defer impatient.Stop()
	if _, err := io.Copy(io.Discard, p.out); err != nil {
		_ = p.kill()
	}
	return p.wait()
}
