package ledgertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// faulty is a ledger in memory that does some calls wrong.
type faulty struct {
	*ledger.Memory
	reserve func(ctx context.Context, l *ledger.Memory, r ledger.Reservation) (ledger.Record, bool, error)
	append  func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error)
	get     func(ctx context.Context, l *ledger.Memory, tenant string, id ledger.ID) (ledger.Record, error)
	claim   func(ctx context.Context, l *ledger.Memory, c ledger.Claim) ([]ledger.Record, error)
}

func (f faulty) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	if f.reserve == nil {
		return f.Memory.Reserve(ctx, r)
	}
	return f.reserve(ctx, f.Memory, r)
}

func (f faulty) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	if f.append == nil {
		return f.Memory.Append(ctx, id, fence, events...)
	}
	return f.append(ctx, f.Memory, id, fence, events...)
}

func (f faulty) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if f.get == nil {
		return f.Memory.Get(ctx, tenant, id)
	}
	return f.get(ctx, f.Memory, tenant, id)
}

func (f faulty) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	if f.claim == nil {
		return f.Memory.Claim(ctx, c)
	}
	return f.claim(ctx, f.Memory, c)
}

var errUnsure = fmt.Errorf("%w: %w", ledger.ErrUnavailable, ledger.ErrUnsure)

// luck is what happens to the calls of a faulty ledger, whichever comes first.
var luck = struct {
	sync.Mutex
	*rand.Rand
}{Rand: rand.New(rand.NewPCG(1, 2))}

// sometimes is true for a tenth of the calls.
func sometimes() bool {
	luck.Lock()
	defer luck.Unlock()
	return luck.IntN(10) == 0
}

// honest are faults that a ledger may have.
var honest = map[string]struct {
	reason string
	ledger faulty
}{
	"sound": {"a ledger without a fault is none", faulty{}},
	"unsure": {"a call of unknown result may have been applied or not", faulty{
		reserve: func(ctx context.Context, l *ledger.Memory, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
			if sometimes() {
				return rec, false, errUnsure
			}
			if rec, fresh, err = l.Reserve(ctx, r); sometimes() {
				return ledger.Record{}, false, errUnsure
			}
			return rec, fresh, err
		},
		append: func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
			if sometimes() {
				return rec, errUnsure
			}
			if rec, err = l.Append(ctx, id, fence, events...); sometimes() {
				return ledger.Record{}, errUnsure
			}
			return rec, err
		},
		claim: func(ctx context.Context, l *ledger.Memory, c ledger.Claim) (recs []ledger.Record, err error) {
			if recs, err = l.Claim(ctx, c); c.Owner != "last" && sometimes() {
				return nil, errUnsure
			}
			return recs, err
		},
	}},
}

// broken are ledgers that do not keep what they promise.
var broken = map[string]struct {
	reason string
	ledger faulty
}{
	"no fence": {"a worker that lost a write to another one continues with it", faulty{
		append: func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
			if rec, err := l.Get(ctx, "a", id); err == nil {
				fence = rec.Fence
			}
			return l.Append(ctx, id, fence, events...)
		},
	}},
	"no line": {"two writes of one record are under way at once", faulty{
		reserve: func(ctx context.Context, l *ledger.Memory, r ledger.Reservation) (ledger.Record, bool, error) {
			if sometimes() {
				r.Record.KeyDigest = ""
			}
			return l.Reserve(ctx, r)
		},
	}},
	"lost update": {"a change that was confirmed is not there", faulty{
		append: func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
			if rec, err := l.Get(ctx, "a", id); err == nil && sometimes() {
				if next, _, err := ledger.Advance(rec, fence, events, time.Now()); err == nil {
					return next, nil
				}
			}
			return l.Append(ctx, id, fence, events...)
		},
	}},
	"reported as failed": {"a change is there that was reported as failed", faulty{
		append: func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
			rec, err := l.Append(ctx, id, fence, events...)
			if sometimes() {
				return ledger.Record{}, ledger.ErrUnavailable
			}
			return rec, err
		},
	}},
	"lent twice": {"two workers hold one write", faulty{
		claim: func(ctx context.Context, l *ledger.Memory, c ledger.Claim) ([]ledger.Record, error) {
			recs, err := l.Claim(ctx, c)
			if err == nil && len(recs) == 0 && c.ID != "" && sometimes() {
				if rec, err := l.Get(ctx, c.Tenant, c.ID); err == nil && rec.Owner != "" {
					return []ledger.Record{rec}, nil
				}
			}
			return recs, err
		},
	}},
	"forgotten": {"a write that is due is not found", faulty{
		claim: func(ctx context.Context, l *ledger.Memory, c ledger.Claim) ([]ledger.Record, error) {
			if c.Owner == "last" {
				return nil, nil
			}
			return l.Claim(ctx, c)
		},
	}},
	"old answers": {"a read shows what was, after another actor read what is", faulty{
		get: func() func(ctx context.Context, l *ledger.Memory, tenant string, id ledger.ID) (ledger.Record, error) {
			var kept = make(chan map[ledger.ID]ledger.Record, 1)
			kept <- map[ledger.ID]ledger.Record{}
			return func(ctx context.Context, l *ledger.Memory, tenant string, id ledger.ID) (ledger.Record, error) {
				old := <-kept
				defer func() { kept <- old }()
				if rec, ok := old[id]; ok {
					return rec, nil
				}
				rec, err := l.Get(ctx, tenant, id)
				if err == nil {
					old[id] = rec
				}
				return rec, err
			}
		}(),
	}},
}

func TestHonestFaultsAreExplained(t *testing.T) {
	for name, c := range honest {
		t.Run(name, func(t *testing.T) {
			c.ledger.Memory = ledger.NewMemory()
			Linearizable(t, func(*testing.T) []ledger.Ledger { return []ledger.Ledger{c.ledger} }, Linear{Histories: 30})
			if t.Failed() {
				t.Logf("reason: %s", c.reason)
			}
		})
	}
}

// A history of which most calls were given up, as on a machine that has no time for
// them, is made again without faults: that a machine is slow is no fault of a ledger.
func TestASlowMachineIsNoFaultOfALedger(t *testing.T) {
	var busy atomic.Bool
	given := 0
	giveUp := func() bool {
		luck.Lock()
		defer luck.Unlock()
		if !busy.Load() || luck.IntN(20) == 0 {
			return false
		}
		given++
		return true
	}
	slow := faulty{
		Memory: ledger.NewMemory(),
		append: func(ctx context.Context, l *ledger.Memory, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
			rec, err := l.Append(ctx, id, fence, events...)
			if giveUp() {
				return ledger.Record{}, errUnsure
			}
			return rec, err
		},
		claim: func(ctx context.Context, l *ledger.Memory, c ledger.Claim) ([]ledger.Record, error) {
			if giveUp() {
				return nil, errUnsure
			}
			return l.Claim(ctx, c)
		},
	}
	disturb := func(stop <-chan struct{}) {
		busy.Store(true)
		<-stop
		busy.Store(false)
	}
	Linearizable(t, func(*testing.T) []ledger.Ledger { return []ledger.Ledger{slow} }, Linear{Histories: 10, Disturb: disturb})
	if given == 0 {
		t.Error("no call was given up: the test shows nothing")
	}
}

func TestBrokenLedgersAreDetected(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			c.ledger.Memory = ledger.NewMemory()
			const enough = 60
			o := Linear{Seed: 1}
			for n := range enough {
				if _, wrong := explained([]ledger.Ledger{c.ledger}, o, n); wrong != "" {
					return
				}
			}
			t.Errorf("seed %d: nothing was found in %d histories; reason: %s", o.Seed, enough, c.reason)
		})
	}
}
