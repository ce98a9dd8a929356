package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// known is a known lag: its reads are made at those times after the send. It records its calls.
type known struct {
	at []time.Duration

	mu       sync.Mutex
	asked    []lag.Key
	reported [][2]time.Duration
	paths    []lag.Key
}

func (k *known) Next(p lag.Key, since time.Duration, reads int) (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, p)
	if reads >= len(k.at) {
		return 0, false
	}
	return max(k.at[reads]-since, 0), true
}

func (k *known) Seen(p lag.Key, missed, seen time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reported, k.paths = append(k.reported, [2]time.Duration{missed, seen}), append(k.paths, p)
}

func lagging(lag, settle time.Duration) orders.Options {
	o := orders.Unique.Options()
	o.Lags, o.Settle = []time.Duration{lag}, connectors.Within(settle)
	return o
}

// Reads are timed by the known lag, but not past the moments at which a verdict can change its
// meaning. Without a known lag the standard pace applies.
func TestReadsAreScheduledByTheLag(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		lag, settle time.Duration
		at          []time.Duration
		reads       int // calls: a read that finds nothing in the list asks for the record too
		took        time.Duration
		reported    [2]time.Duration
		reason      string
	}{
		"one read":              {s, 5 * s, []time.Duration{1100 * time.Millisecond}, 1, 1100 * time.Millisecond, [2]time.Duration{0, 1100 * time.Millisecond}, "it is made when the effect is there"},
		"two reads":             {s, 5 * s, []time.Duration{s / 2, 1100 * time.Millisecond}, 3, 1100 * time.Millisecond, [2]time.Duration{s / 2, 1100 * time.Millisecond}, "what was missed is reported"},
		"longer than a moment":  {10 * s, 60 * s, []time.Duration{10100 * time.Millisecond}, 1, 11 * s, [2]time.Duration{0, 10100 * time.Millisecond}, "the write waits in the ledger"},
		"wrong about the world": {s / 2, 2 * s, []time.Duration{time.Hour}, 1, 2 * s, [2]time.Duration{0, 2 * s}, "not past the settle time"},
		"at once":               {0, 0, []time.Duration{0}, 1, 0, [2]time.Duration{0, 0}, "nothing lags"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &known{at: c.at}
				b := newBench(t, lagging(c.lag, c.settle), &engine.Options{Lag: k})
				began := time.Now()
				out := b.do(order("A-1", intent.Create))
				if took := time.Since(began); out.Status != ledger.Verified || out.Reads != c.reads || took < c.took*9/10 || took > c.took+time.Second {
					t.Errorf("%s with %d reads in %s; want %d in about %s: %s%s", out.Status, out.Reads, took, c.reads, c.took, c.reason, b.life(out.ID))
				}
				if len(k.reported) != 1 || (k.reported[0] != c.reported && c.took <= 2*s) || k.paths[0].Destination != "orders" || k.paths[0].Kind != orders.Kind || k.paths[0].Path != "list" {
					t.Errorf("recorded %v of %+v, want %v", k.reported, k.paths, c.reported)
				}
			})
		})
	}
}

// The path of the first read is that of earlier reads.
func TestPathIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &known{at: []time.Duration{time.Second}}
		b := newBench(t, lagging(time.Second, 5*time.Second), &engine.Options{Lag: k})
		b.do(order("A-1", intent.Create))
		b.do(order("A-2", intent.Create))
		if first, last := k.asked[0], k.asked[len(k.asked)-1]; first.Path != "" || last.Path != "list" {
			t.Errorf("asked for %+v, want the path once it is known", k.asked)
		}
	})
}

// Strong reads are made at once, whatever lag is known.
func TestStrongReadsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &known{at: []time.Duration{time.Second}}
		o := fresh()
		o.Settle = connectors.Within(5 * time.Second) // reads by other paths may lag
		b := newBench(t, o, &engine.Options{Lag: k})
		b.do(order("A-1", intent.Create)) // that reads are strong is known from here on
		began := time.Now()
		if out := b.do(order("A-2", intent.Create)); out.Status != ledger.Verified || time.Since(began) != 0 || out.Reads != 1 {
			t.Errorf("%+v after %s", out, time.Since(began))
		}
	})
}

// Reads that do not measure the lag are not reported: an effect of unknown beginning, of
// several sends, or read late on purpose.
func TestReadsThatShowNoLagAreNotRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		fault    orders.FaultKind
		opts     func(*engine.Options)
		reported int
	}{
		"answered":    {"", nil, 1},
		"lost answer": {orders.LostAnswer, nil, 0},
		"phantom":     {orders.PhantomSuccess, nil, 0},
		"throttled":   {orders.Throttled, nil, 0},
		"put off":     {"", func(o *engine.Options) { o.Verify = batches(time.Hour).Verify }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &known{}
				o := &engine.Options{Lag: k}
				if c.opts != nil {
					c.opts(o)
				}
				b := newBench(t, lagging(time.Second, 5*time.Second), o)
				if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Times: 1})
				}
				out := b.do(order("A-1", intent.Create))
				b.work(2 * time.Hour)
				if rec := b.state(out.ID); len(k.reported) != c.reported || rec.Settlement != "verified" {
					t.Errorf("recorded %v, want %d of it; %s%s", k.reported, c.reported, rec.Phase(), b.life(out.ID))
				}
			})
		})
	}
}

// A destination that cannot be read is asked at the standard pace.
func TestUnreadableIsNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &known{at: []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}
		b := newBench(t, lagging(0, 5*time.Second), &engine.Options{Lag: k})
		b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 5})
		out := b.do(order("A-1", intent.Create))
		if waited := time.Since(out.Created); out.Status != ledger.Verified || waited < 300*time.Millisecond {
			t.Errorf("%+v after %s: it was asked without a pause", out, waited)
		}
	})
}

// Where no effect is expected, or reads have caught up, no wait is added.
func TestNoWaitForAnImpossibleLag(t *testing.T) {
	for name, c := range map[string]struct {
		fault  orders.FaultKind
		settle time.Duration
		want   ledger.Status
	}{
		"refused":        {orders.Refused, time.Minute, ledger.NotApplied},
		"no settle time": {"", 0, ledger.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := lagging(0, c.settle)
				o.Horizon = connectors.Within(0)
				b := newBench(t, o, &engine.Options{Lag: &known{at: []time.Duration{time.Hour}}})
				if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Times: 1})
				}
				began := time.Now()
				if out := b.do(order("A-1", intent.Create)); out.Status != c.want || time.Since(began) > time.Second {
					t.Errorf("%s after %s%s", out.Status, time.Since(began), b.life(out.ID))
				}
			})
		})
	}
}

// An engine without a lag of the caller's learns by itself.
func TestALagIsLearnedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, lagging(3*time.Second, 10*time.Second), nil)
		first := b.do(order("A-0", intent.Create)).Reads
		total := 0
		for n := range 40 {
			out := b.do(order(fmt.Sprint("B-", n), intent.Create))
			if out.Status != ledger.Verified {
				t.Fatalf("%s%s", out.Status, b.life(out.ID))
			}
			if n >= 20 {
				total += out.Reads
			}
		}
		if total > 20*first/2 {
			t.Errorf("the first write took %d calls that read, and the last 20 took %d", first, total)
		}
	})
}
