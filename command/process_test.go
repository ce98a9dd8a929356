package command

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// program is the program as a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// process runs the program as a process with the place's configuration.
func (p *place) process(intent string, args ...string) (*exec.Cmd, *lines, *lines) {
	p.t.Helper()
	var out, errs lines
	cmd := program(p.t, append([]string{"--config", p.config}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(intent), &out, &errs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd, &out, &errs
}

// end waits for a process and returns its exit code and output.
func end(cmd *exec.Cmd, out, errs *lines) result {
	_ = cmd.Wait() // the exit code has it
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ordersProcess starts the destination as a process and returns its URL.
func ordersProcess(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := program(t, append([]string{"simulated-orders"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended with the test's context
		_ = cmd.Wait()
	})
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// The whole program, with nothing in this process: a destination that loses the response,
// an intent, one effect.
func TestLostAnswerEndToEnd(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	log := filepath.Join(p.dir, "effects.log")
	p.configure(ordersProcess(t, "--log", log, "--fault", "lost-answer,op=create,times=1"), "")
	file := p.write("intent.json", order("A-1", ""))
	for range 2 {
		says(t, p.want(exitVerified, end(p.process("", "submit", "-f", file))), "verified wr_", "read back and is as requested")
	}
	effects, err := orders.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	got := orders.Summarize(effects, "A-1")
	if diff := cmp.Diff(orders.Summary{SideEffectCalls: 1, BalanceCents: 1999, Orders: 1}, got); diff != "" {
		t.Errorf("by the destination's own log (-want +got):\n%s", diff)
	}
}

// blockedPlace is a destination that responds only when the test releases it.
func blockedPlace(t *testing.T, o orders.Options) (p *place, asked <-chan struct{}, let func()) {
	came, open := make(chan struct{}, 100), make(chan struct{})
	p = newPlaceIn(t, t.TempDir(), o, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if r.Method != http.MethodPost {
				return
			}
			came <- struct{}{}
			select {
			case <-open:
			case <-r.Context().Done():
			}
		})
	})
	return p, came, func() { close(open) }
}

func TestKillDuringTheSend(t *testing.T) {
	p, asked, _ := blockedPlace(t, orders.Plain.Options())
	cmd, out, errs := p.process(order("A-1", ""), "submit", "-f", "-")
	<-asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := end(cmd, out, errs); r.code != -1 || r.out != "" {
		t.Fatalf("killed before an outcome: %s", r)
	}
	rec := p.writes()[0]
	if rec.State != ledger.Sending {
		t.Fatalf("state %s, want sending: it was announced before it was sent", rec.State)
	}
	p.now = later(2 * time.Minute) // the lease has ended, also where the death of a process cannot be known
	p.want(exitVerified, p.run("resume", string(rec.ID)))
	says(t, p.want(0, p.run("show", string(rec.ID))), "recovered while announced, with no worker on it")
	p.effects(1, "A-1")
	p.calls(1)
}

func TestInterruptDuringTheWait(t *testing.T) {
	t.Parallel()
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.DroppedBefore, Times: 1}} // absence takes the horizon to be conclusive
	p := newPlace(t, o)
	p.configure(p.url, "    horizon: 3s\n")
	cmd, out, errs := p.process(order("A-1", ""), "submit", "-f", "-", "--json")
	eventually(t, "the send", func() bool { writes, _ := p.world.Count(); return writes == 1 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r := p.want(exitInProgress, end(cmd, out, errs))
	write, _ := decode(t, r)["id"].(string)
	if next := decode(t, r)["next"]; next != "readback resume "+write {
		t.Errorf("next is %v", next)
	}
	rec := p.writes()[0]
	if rec.Owner != "" || rec.Due.IsZero() || rec.Due.After(rec.Now.Add(time.Minute)) {
		t.Errorf("not handed back: owner %q, due %s, now %s", rec.Owner, rec.Due, rec.Now)
	}
	p.now = later(2 * time.Minute)
	p.want(exitVerified, p.run("resume", write))
	p.effects(1, "A-1")
}

func TestWorkerEndsWhatIsInHand(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			p, asked, let := blockedPlace(t, orders.Plain.Options())
			up := p.url
			p.configure("http://127.0.0.1:1", "") // no caller there
			p.submit(exitInProgress, order("A-1", ""), "--wait", "0")
			p.configure(up, "")
			cmd, out, errs := p.process("", "work", "--verbose")
			<-asked
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			let() // the response comes after the worker's stop
			says(t, p.want(0, end(cmd, out, errs)), "msg=working", "msg=stopped")
			if rec := p.writes()[0]; rec.LastFate != ledger.FateAnswered || rec.Owner != "" {
				t.Errorf("the send was not let end: fate %q, owner %q", rec.LastFate, rec.Owner)
			}
			p.want(exitVerified, p.run("resume", string(p.writes()[0].ID)))
			p.effects(1, "A-1")
			p.calls(1)
		})
	}
}

func TestManyProcessesOneSend(t *testing.T) {
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Times: 1}}
	p := newPlace(t, o)
	type running struct {
		cmd       *exec.Cmd
		out, errs *lines
	}
	var all []running
	for range 4 {
		cmd, out, errs := p.process(order("A-1", ""), "submit", "-f", "-")
		all = append(all, running{cmd, out, errs})
	}
	for _, r := range all {
		p.want(exitVerified, end(r.cmd, r.out, r.errs))
	}
	p.effects(1, "A-1")
	p.calls(1)
}

// The demonstration starts this program again and again, before any command line is
// parsed.
func TestDemoIsWired(t *testing.T) {
	out, err := program(t, "demo-child").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "demo-child: want one argument") {
		t.Errorf("%v\n%s", err, out)
	}
	p := newPlace(t, orders.Plain.Options())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr lines
	if code := p.start(ended, strings.NewReader(""), &stdout, &stderr, "demo"); code != exitFailed {
		t.Errorf("exit code %d of a demonstration that was interrupted\n%s", code, stderr.String())
	}
}
