package guards_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
)

// skewed is a ledger whose clock differs from that of its workers.
type skewed struct {
	*ledger.Memory
	by time.Duration
}

func (s skewed) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	all, now, err := s.Memory.Notes(ctx, prefix)
	for i := range all {
		all[i].At = all[i].At.Add(s.by)
	}
	return all, now.Add(s.by), err
}

func (s skewed) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	n, err := s.Memory.SetNote(ctx, n)
	n.At = n.At.Add(s.by)
	return n, err
}

// Invariants in any interleaving, as workers die and lose and regain the ledger, and whatever the
// ledger's clock shows: no more sends under way than slots, no more sends in a window than the
// rate allows, and in the end everything is free again.
func TestBoundsHoldInAnyInterleaving(t *testing.T) {
	sent := 0
	rapid.Check(t, func(r *rapid.T) {
		p := drawn(r)
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			x := &interleaving{plan: p, crew: &crew{t: t, notes: skewed{ledger.NewMemory(), p.skew}}}
			for range p.workers {
				x.join()
			}
			for _, m := range p.moves {
				x.step(m)
			}
			x.finish()
			wrong = x.wrong
			sent += len(x.log.at)
		})
		if wrong != nil {
			r.Fatal(wrong)
		}
	})
	t.Logf("%d sends", sent)
}

const (
	longestSend  = 5 * time.Second // the send time-out of the profile
	longestStall = 15 * time.Second
)

type plan struct {
	limit, calls, workers int
	skew                  time.Duration
	moves                 []move
}

type move struct {
	what   string
	worker int
	d      time.Duration
	n      int
}

func drawn(r *rapid.T) plan {
	p := plan{
		limit:   rapid.IntRange(1, 4).Draw(r, "limit"),
		calls:   rapid.IntRange(1, 40).Draw(r, "calls"),
		workers: rapid.IntRange(1, 4).Draw(r, "workers"),
		skew:    rapid.SampledFrom([]time.Duration{0, -40 * 24 * time.Hour, 3 * time.Hour, 1234567}).Draw(r, "clock"),
	}
	words := []string{"send", "send", "send", "send", "send", "pass", "pass", "pass", "lose", "find", "find", "find", "slow", "die"}
	for range rapid.IntRange(20, 120).Draw(r, "steps") {
		m := move{n: rapid.IntRange(1, 8).Draw(r, "sends"), what: rapid.SampledFrom(words).Draw(r, "what"), worker: rapid.IntRange(0, 3).Draw(r, "worker")}
		most := map[string]time.Duration{"send": rapid.SampledFrom([]time.Duration{time.Second, longestSend + longestStall}).Draw(r, "takes"), "pass": longestSend, "slow": 100 * time.Millisecond}[m.what]
		m.d = time.Duration(rapid.Int64Range(0, int64(most)).Draw(r, "time"))
		p.moves = append(p.moves, m)
	}
	return p
}

type interleaving struct {
	plan
	*crew
	log   sendings
	all   sync.WaitGroup
	wrong error
}

func (x *interleaving) join() {
	x.hire(guards.Settings{Concurrency: x.limit, Rate: rate(x.calls, time.Second)},
		connectors.Profile{Kind: "ticket", SendTimeout: longestSend})
}

func (x *interleaving) step(m move) {
	alive := x.crew.workers[max(len(x.crew.workers)-x.plan.workers, 0):]
	w := alive[m.worker%len(alive)]
	switch m.what {
	case "send":
		for i := range m.n {
			x.all.Go(func() { x.send(w, m.d/time.Duration(i+1)) })
		}
	case "pass":
		time.Sleep(m.d)
	case "lose":
		w.link.fail(errGone)
	case "find":
		w.link.fail(nil)
	case "slow":
		w.link.slowDown(m.d)
	case "die": // its sends continue at the destination
		alive[0].die()
		_ = alive[0].Close()
		x.join()
	}
	x.check()
}

// send sends once, if permitted within some tries.
func (x *interleaving) send(w *worker, takes time.Duration) {
	leave, hold := w.Enter(x.t.Context(), write(crm))
	for try := 0; hold != nil && try < 5; try++ {
		time.Sleep(hold.For)
		leave, hold = w.Enter(x.t.Context(), write(crm))
	}
	if hold != nil {
		return
	}
	x.log.begin()
	time.Sleep(takes)
	x.log.end()
	s := answered
	if takes%2 == 0 {
		s.Fate = connectors.FateRefused
	}
	leave(s)
}

func (x *interleaving) check() {
	x.log.mu.Lock()
	most := x.log.most
	x.log.mu.Unlock()
	if most > x.limit {
		x.wrong = errors.Join(x.wrong, fmt.Errorf("%d sends under way at once, at most %d", most, x.limit))
	}
	if got := x.log.densest(time.Second); got > x.calls {
		x.wrong = errors.Join(x.wrong, fmt.Errorf("%d sends within a second, at most %d", got, x.calls))
	}
}

// finish ends everything and checks that all slots are free again.
func (x *interleaving) finish() {
	defer x.close()
	x.all.Wait()
	x.check()
	for _, w := range x.crew.workers {
		_ = w.Close() // returns its slots, or is dead
	}
	time.Sleep(2 * (longestSend + longestStall)) // the leases of the dead end
	x.join()
	last := x.crew.workers[len(x.crew.workers)-1]
	for i := range x.limit {
		if _, hold := last.Enter(x.t.Context(), write(crm)); hold != nil && hold.Rule == "busy" {
			x.wrong = errors.Join(x.wrong, fmt.Errorf("slot %d of %d did not come back: %s", i+1, x.limit, hold.Reason))
		}
	}
}
