//go:build unix

package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// patience is how long a child may take for what takes a moment, on a machine
// that does other things as well.
const patience = 20 * time.Second

// process is a child that can be killed, stopped and continued, and that ends
// with this process whatever becomes of it: its standard input ends then.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	output chan string   // its output, line by line; closed at its end
	gone   chan struct{} // closed when it has been reaped
	err    error         // how it ended; read after gone
}

// launch starts this test binary in a role.
func launch(as string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{output: make(chan string, 1024), gone: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), self)
	p.cmd.Env = append(append(os.Environ(), role+"="+as), env...)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	return p, nil
}

func (p *process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.output <- lines.Text()
	}
	close(p.output)
	p.err = p.cmd.Wait()
	close(p.gone)
}

// started is launch for a test, which kills what still runs at its end.
func started(t *testing.T, as string, env ...string) *process {
	t.Helper()
	p, err := launch(as, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill ends the child as the kernel would, and reaps it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it has ended already, or ends now
	for range p.output {     // drain the output
	}
	<-p.gone
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// send sends a line to the child.
func (p *process) send(line string) error {
	_, err := fmt.Fprintln(p.in, line)
	return err
}

// next is the next line of the child.
func (p *process) next(t *testing.T) string {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case line, ok := <-p.output:
		if !ok {
			t.Fatalf("the child %s ended without a word", p.cmd.Env[len(p.cmd.Env)-1])
		}
		return line
	case <-timer.C:
		t.Fatalf("the child wrote nothing for %v", patience)
	}
	return ""
}

// await reads until the child sends the line.
func (p *process) await(t *testing.T, line string) {
	t.Helper()
	for p.next(t) != line {
	}
}

// commands are the parent's lines to this child. Their end ends the context: the parent is gone, or
// wants the child to end.
func commands() (context.Context, <-chan string) {
	ctx, stop := context.WithCancel(context.Background())
	commands := make(chan string)
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	return ctx, commands
}
