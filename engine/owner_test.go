package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// A process takes over at once the writes of an ended process of this machine. It waits for any
// other lease to end: that of a running process, or of one elsewhere.
func TestEndedProcess(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pid   int
		where string // the scope of the number, "" is here
		taken bool
	}{
		"ended":       {ended.ProcessState.Pid(), "", runtime.GOOS == "linux"}, // elsewhere the scope of the number is unknown
		"runs":        {os.Getpid(), "", false},
		"not ours":    {1, "", false},
		"elsewhere":   {ended.ProcessState.Pid(), "@00000000", false},
		"without one": {ended.ProcessState.Pid(), "-", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				where := cmp.Or(c.where, b.machine())
				d, held := b.world.Destination(), make(chan struct{})
				d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { <-held }}
				predecessor := b.engineOn(b.ledger, d, &engine.Options{Owner: fmt.Sprintf("host/%d/AAAAAAAA%s", c.pid, where)})
				w := order("A-1", intent.Create)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				out, err := predecessor.Do(ctx, w)
				if err != nil || out.Status != ledger.InProgress {
					t.Fatalf("%+v, %v", out, err)
				}
				b.worked(time.Second)
				rec, err := b.ledger.Get(t.Context(), "acme", out.ID)
				if err != nil {
					t.Fatal(err)
				}
				if taken := rec.Fence > 1; taken != c.taken || rec.State == ledger.Settled {
					t.Errorf("taken over: %v, want %v; it is %s%s", taken, c.taken, rec.State, b.life(out.ID))
				}
				b.worked(time.Hour)
				if out = b.do(w); out.Status != ledger.Verified || out.Sends != 2 {
					t.Errorf("%s after %d sends, want one more by the one who took over%s", out.Status, out.Sends, b.life(out.ID))
				}
				close(held)
			})
		})
	}
}

// The ledger fails after a send, and so the lease remains. Another engine of this process waits for its
// end only while the first one may still work on the write.
func TestClosedEngine(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Have(t, fmt.Errorf("numbers of processes whose namespace is known: %w: only Linux has them", need.ErrMissing))
	}
	for _, closed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options(), nil)
			first := b.engineOn(&breaking{Ledger: b.ledger}, b.world.Destination(), nil)
			if out, err := first.Do(t.Context(), order("A-1", intent.Create)); !errors.Is(err, errDisk) {
				t.Fatalf("%+v, %v; want a failure of the ledger", out, err)
			}
			if closed {
				first.Close()
				first.Close()
			}
			began := time.Now()
			out := b.do(order("A-1", intent.Create))
			if waited := time.Since(began) > time.Second; waited == closed || out.Status != ledger.Verified || out.Sends != 1 {
				t.Errorf("closed %t: %s after %d sends and %v%s", closed, out.Status, out.Sends, time.Since(began), b.life(out.ID))
			}
		})
	}
}

// Of two engines with one name, one is closed: the other may still work on the write.
func TestClosedEngineOfASharedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		shared := &engine.Options{Owner: fmt.Sprintf("host/%d/AAAAAAAA%s", os.Getpid(), b.machine())}
		b.newEngine(shared).Close()
		d, held := b.world.Destination(), make(chan struct{})
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { <-held }}
		first := b.engineOn(b.ledger, d, shared)
		b.newEngine(shared).Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := first.Do(ctx, order("A-1", intent.Create))
		if err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", out, err)
		}
		go first.Close() // it waits for the send
		b.worked(10 * time.Second)
		if rec := b.state(out.ID); rec.Fence != 1 {
			t.Errorf("taken over during its send%s", b.life(out.ID))
		}
		close(held)
	})
}

// machine returns the end of an owner's name on this machine, from its "@".
func (b *bench) machine() string {
	b.t.Helper()
	events, err := b.ledger.Events(b.t.Context(), "acme", b.do(order("A-0", intent.Create)).ID)
	if err != nil {
		b.t.Fatal(err)
	}
	_, here, _ := strings.Cut(events[0].By, "@")
	return "@" + here
}

// A worker does not wait for the leases of a process that ends beside it either, even where a
// worker of another machine does the housekeeping.
func TestEndedProcessBesideAWorker(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Have(t, fmt.Errorf("numbers of processes whose namespace is known: %w: only Linux has them", need.ErrMissing))
	}
	t.Run("alone", func(t *testing.T) { endedBeside(t, false) })
	t.Run("of several machines", func(t *testing.T) { endedBeside(t, true) })
}

func endedBeside(t *testing.T, elsewhere bool) {
	beside := exec.Command("cat")
	in, err := beside.StdinPipe()
	if err == nil {
		err = beside.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d, held := b.world.Destination(), make(chan struct{})
		d.Connector = &spy{Connector: d.Connector, write: func(connectors.Request) { <-held }}
		other := b.engineOn(b.ledger, d, &engine.Options{Owner: fmt.Sprintf("host/%d/AAAAAAAA%s", beside.Process.Pid, b.machine())})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if elsewhere {
			go b.surveyedElsewhere(ctx)
			synctest.Wait()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.work(45 * time.Second)
		}()
		time.Sleep(time.Second)
		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		out, err := other.Do(short, order("A-1", intent.Create))
		if err != nil || out.Status != ledger.InProgress {
			t.Fatalf("%+v, %v", out, err)
		}
		time.Sleep(10 * time.Second)
		if rec := b.state(out.ID); rec.Fence != 1 {
			t.Errorf("taken over from a process that runs%s", b.life(out.ID))
		}
		_ = in.Close()
		if err := beside.Wait(); err != nil {
			t.Error(err)
		}
		time.Sleep(7 * time.Second)
		if rec := b.state(out.ID); rec.Fence < 2 {
			t.Errorf("it still waits for the lease until %s of a process that ended 7 s ago%s", rec.LeaseUntil, b.life(out.ID))
		}
		<-done
		close(held)
		cancel()
		time.Sleep(2 * time.Second) // until surveyedElsewhere has ended
	})
}

// surveyedElsewhere is a worker of another machine that does every iteration of the
// housekeeping.
func (b *bench) surveyedElsewhere(ctx context.Context) {
	const name = "housekeeping/survey"
	for ctx.Err() == nil {
		found, _, err := b.ledger.Notes(ctx, name)
		n := ledger.Note{Name: name}
		if len(found) > 0 {
			n = found[0]
		}
		n.Value = []byte("host/7/BBBBBBBB@00000000")
		if err == nil {
			_, err = b.ledger.SetNote(ctx, n)
		}
		if err != nil && ctx.Err() == nil {
			b.t.Error(err)
		}
		time.Sleep(time.Second)
	}
}
