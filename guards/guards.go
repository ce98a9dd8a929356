package guards

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

const (
	// DefaultConcurrency is how many calls of one destination one process may have under way if
	// its settings have no number: half of a worker's calls, so that a destination that hangs
	// leaves the other half to others. With calls of 100 ms that is 320 a second, more than the
	// rates that SaaS APIs allow.
	DefaultConcurrency = 32
	// The breaker's defaults. Five failed sends are no accident if they are more than three
	// quarters of all within a minute. A restart takes half a minute.
	defaultFailures = 5
	defaultWindow   = time.Minute
	defaultOpen     = 30 * time.Second
)

// The rules of holds.
const (
	ruleStopped = "stopped"
	ruleRate    = "rate"
	ruleBreaker = "breaker"
	ruleLogin   = "login"
	ruleBusy    = "busy"
)

// Options configures Guards. The zero value is valid.
type Options struct {
	// Destinations holds the settings of single destinations. Default: the zero [Settings].
	Destinations map[string]Settings
	// Owner is this worker's display name, in slots and breakers. Default: host and process.
	// Workers of one name are still distinguished.
	Owner string
	// Logger receives events for operators. Default: nothing.
	Logger *slog.Logger
}

// Settings are the guards of one destination.
type Settings struct {
	// Rate is how many sends the destination accepts, from all workers together. Reads are not
	// counted. Default: the lowest rate of its profiles; none if they have none. Negative calls:
	// none.
	Rate connectors.Rate
	// Concurrency is how many calls of it, sends and reads, may be under way at once, from all
	// workers together. Default 0: 32 from this process, whatever others do; negative: unbounded.
	Concurrency int
	// Breaker is when its circuit breaker opens, and for how long.
	Breaker Breaker
}

// Breaker configures when a circuit breaker opens: when a worker saw that many failures within
// the window and more than three quarters of its sends were failures, or four times as many in a
// row. A send that a read later verified counts as a success.
type Breaker struct {
	// Failures is the number of failures. Default 5; negative: only a refused login opens it,
	// which does so at once.
	Failures int
	// Window is the time over which they are counted. Default 1 min.
	Window time.Duration
	// Open is how long after it opened one send passes as a probe; it doubles with each failed
	// probe, up to 5 min. Default 30 s.
	Open time.Duration
}

func (b Breaker) filled() Breaker {
	if b.Failures == 0 {
		b.Failures = defaultFailures
	}
	if b.Window <= 0 {
		b.Window = defaultWindow
	}
	if b.Open <= 0 {
		b.Open = defaultOpen
	}
	b.Open = min(b.Open, pauseLongest)
	return b
}

// Guards is one worker's part of the guards that all workers of a ledger share. It implements
// [engine.Guards]. It is safe for concurrent use; create one with [New] and end it with
// [Guards.Close].
type Guards struct {
	cache *noteCache
	reg   *connectors.Registry
	opts  Options
	owner string

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	news chan struct{} // something is to be published

	set        sync.Mutex // serialises replacements of the settings
	mu         sync.Mutex
	dests      map[string]*destination
	closed     bool
	maintainer chan struct{} // closed when the current maintenance loop ends; nil: there is none
}

var _ engine.Guards = (*Guards)(nil)

// destination holds the guards of one destination.
type destination struct {
	rates   *rates
	reads   *rates // of reads after a send and of other callers' effects; only pauses
	slots   *slots
	breaker *breaker
}

// shared is what the guards of one destination have in common.
type shared struct {
	cache              *noteCache
	destination, owner string
	log                *slog.Logger
	kick               func() // there is something to publish
}

// New returns the guards of one worker on the notes of its ledger. The rates and time-outs of
// destinations are taken from reg, which may be nil; opts may be nil. Nothing is read or run
// before the first send.
func New(notes ledger.Documents, reg *connectors.Registry, opts *Options) *Guards {
	g := &Guards{cache: newNoteCache(notes), reg: reg, dests: make(map[string]*destination), news: make(chan struct{}, 1)}
	if opts != nil {
		g.opts = *opts
		g.opts.Destinations = maps.Clone(opts.Destinations)
	}
	if g.reg == nil {
		g.reg = &connectors.Registry{}
	}
	if g.opts.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		g.opts.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if g.opts.Logger == nil {
		g.opts.Logger = slog.New(slog.DiscardHandler)
	}
	// A restarted worker must not take over the slots of its dead predecessor of the same name:
	// their sends may be under way.
	g.owner = visible.Cut(strings.ToValidUTF8(g.opts.Owner, "?"), maxOwner) + "#" + rand.Text()[:8]
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// at is the guards of a destination.
func (g *Guards) at(name string) *destination {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.dests[name]; d != nil {
		return d
	}
	_, cover := g.profiled(name)
	sh := &shared{cache: g.cache, destination: name, owner: g.owner, log: g.opts.Logger, kick: g.kick}
	d := &destination{
		rates:   &rates{shared: sh, name: noteOf("rate", name), lock: newTimedMutex(), what: "a send"},
		reads:   &rates{shared: sh, name: noteOf("reads", name), lock: newTimedMutex(), what: "a read"},
		slots:   &slots{shared: sh, name: noteOf("slots", name), cover: cover, lock: newTimedMutex()},
		breaker: &breaker{shared: sh, name: noteOf("breaker", name), cover: cover},
	}
	g.log(name, d, g.opts.Destinations[name])
	g.dests[name] = d
	return d
}

// log applies a destination's settings.
func (g *Guards) log(name string, d *destination, set Settings) {
	rate, _ := g.profiled(name)
	if set.Rate != (connectors.Rate{}) {
		rate = set.Rate
	}
	d.rates.change(rate)
	d.reads.change(connectors.Rate{})
	d.slots.local.Store(set.Concurrency == 0)
	d.slots.most.Store(int64(set.Concurrency))
	if set.Concurrency == 0 {
		d.slots.most.Store(DefaultConcurrency)
	}
	d.breaker.change(set.Breaker.filled())
}

// Set replaces the settings of all destinations, for every later send; an unnamed destination
// gets the zero [Settings]. Sends under way finish. Pauses that a destination asked for, stops,
// and open breakers stay. The map is copied. Other workers have settings of their own.
func (g *Guards) Set(destinations map[string]Settings) {
	destinations = maps.Clone(destinations)
	g.set.Lock() // the last caller wins
	defer g.set.Unlock()
	g.mu.Lock()
	g.opts.Destinations = destinations
	known := maps.Clone(g.dests)
	g.mu.Unlock() // destinations take it while they hold their own
	for name, d := range known {
		g.log(name, d, destinations[name])
	}
}

// profiled is the lowest rate of a destination's profiles, and how long a send can be under way
// after it passed.
func (g *Guards) profiled(name string) (rate connectors.Rate, cover time.Duration) {
	cover = connectors.Profile{}.SendFor()
	for i, p := range profiles(g.reg, name) {
		if i == 0 {
			cover = 0
		}
		cover = max(cover, p.SendFor(), p.ReadFor())
	}
	return RateOf(g.reg, name), cover + sendSlack
}

// RateOf returns the lowest rate of a destination's profiles; the zero rate if none has one.
func RateOf(reg *connectors.Registry, destination string) (rate connectors.Rate) {
	for _, p := range profiles(reg, destination) {
		if paced := paceOf(p.Rate); paced.bounded() && paced.every > paceOf(rate).every {
			rate = p.Rate
		}
	}
	return rate
}

func profiles(reg *connectors.Registry, name string) []connectors.Profile {
	return slices.DeleteFunc(reg.Profiles(), func(p connectors.Profile) bool { return p.Destination != name })
}

// Enter implements [engine.Guards]. It checks the stops first and last: their state is at most
// half a second old when a send passes, or three quarters if the ledger cannot be read; beyond
// that it holds. A [engine.Sent] of fate not sent with neither time nor code counts as a send
// that was not made.
func (g *Guards) Enter(ctx context.Context, rec ledger.Record) (leave func(engine.Sent), hold *engine.Hold) {
	if g.ctx.Err() != nil {
		return nil, &engine.Hold{Rule: ruleStopped, Reason: "this worker is closing", For: stoppedFirst}
	}
	deadline := time.Now().Add(enterFor)
	if hold := g.stopped(ctx, rec); hold != nil {
		return nil, hold
	}
	d := g.at(rec.Destination)
	if hold := d.breaker.shut(); hold != nil {
		return nil, hold
	}
	slot, hold := d.slots.take(ctx, deadline, false)
	if hold != nil {
		return nil, hold
	}
	at, hold := g.permitted(ctx, rec, d, deadline)
	if hold != nil {
		d.slots.release(slot, 0)
		return nil, hold
	}
	report, hold := d.breaker.enter(ctx)
	if hold != nil {
		d.rates.back(at)
		d.slots.release(slot, 0)
		return nil, hold
	}
	if hold := g.stopped(ctx, rec); hold != nil { // a permission to probe can take its time
		report(engine.Sent{Fate: connectors.FateNotSent})
		d.rates.back(at)
		d.slots.release(slot, 0)
		return nil, hold
	}
	entered, once := g.cache.clock.early(), sync.Once{}
	if slot {
		g.attend() // slots are renewed from now on
	}
	return func(s engine.Sent) {
		once.Do(func() {
			if unmade(s) {
				d.rates.back(at)
			} else {
				d.rates.logged(s, entered)
			}
			d.slots.release(slot, s.Took)
			report(s)
		})
	}, nil
}

// EnterRead implements [engine.Guards]. A held read was not made for lack of a slot, or because
// the destination throttled a read of any worker and asked for a pause.
func (g *Guards) EnterRead(ctx context.Context, rec ledger.Record) (leave func(engine.Sent), hold *engine.Hold) {
	if g.ctx.Err() != nil {
		return func(engine.Sent) {}, nil // nothing is sent any more; earlier sends are read back
	}
	_ = g.cache.fresh(ctx, readEvery) // a pause that cannot be read delays no read
	d, deadline := g.at(rec.Destination), time.Now().Add(enterFor)
	if _, hold := d.reads.permit(ctx, deadline); hold != nil {
		return nil, hold
	}
	slot, hold := d.slots.take(ctx, deadline, rec.State == ledger.Checking)
	if hold != nil {
		return nil, hold
	}
	if slot {
		g.attend()
	}
	entered, once := g.cache.clock.early(), sync.Once{}
	return func(s engine.Sent) {
		once.Do(func() {
			d.reads.logged(s, entered)
			d.slots.release(slot, s.Took)
		})
	}, nil
}

// Observe implements [engine.Guards]. A read that verified the effect of a send of unknown fate
// takes back that the breaker counted it as a failure.
func (g *Guards) Observe(a engine.Activity) {
	switch unknown := a.Record.LastFate == ledger.FateUnknown; {
	case a.Kind == engine.ActivityShown && unknown && a.Verdict == verify.Verified:
		sent := a.Record.LastSend
		if !a.Record.LostSend.IsZero() { // LastSend is when it had ended at the latest
			sent = a.Record.LostSend
		}
		g.at(a.Record.Destination).breaker.confirm(sent)
	case a.Kind == engine.ActivityRead && a.Login != "":
		g.at(a.Record.Destination).breaker.readRefused(a.Login)
	case a.Kind == engine.ActivityRead && a.Verdict != verify.Unavailable:
		g.at(a.Record.Destination).breaker.readAnswered()
	}
}

// ReadHeld implements [engine.Guards].
func (g *Guards) ReadHeld(rec ledger.Record) *engine.Hold {
	return g.at(rec.Destination).breaker.readHeld()
}

// permitted waits for a permit of the rate and ensures that it is still valid when the stops have
// been checked again. It ends, since permit waits for the pause or the next permit, and not
// beyond the deadline.
func (g *Guards) permitted(ctx context.Context, rec ledger.Record, d *destination, deadline time.Time) (time.Time, *engine.Hold) {
	for {
		at, hold := d.rates.permit(ctx, deadline)
		if hold != nil {
			return at, hold
		}
		if hold := g.stopped(ctx, rec); hold != nil {
			d.rates.back(at)
			return at, hold
		}
		if wait, _ := d.rates.paused(); wait > 0 {
			d.rates.back(at)
			continue
		}
		if d.rates.live(at) {
			return at, nil
		}
	}
}

// Paused implements [engine.Guards]. It may wait for one read of the notes; if they cannot be
// read all destinations are paused.
func (g *Guards) Paused() []string {
	_ = g.cache.fresh(g.ctx, readEvery) // the age reports a failure
	age, ok := g.cache.age()
	stale := !ok || age > readLast
	var paused []string
	for _, name := range g.names() {
		if stale || g.shut(name) {
			paused = append(paused, name)
		}
	}
	return paused
}

// names are all destinations that are registered or were sent to.
func (g *Guards) names() []string {
	all := g.reg.Names()
	g.mu.Lock()
	defer g.mu.Unlock()
	all = slices.AppendSeq(all, maps.Keys(g.dests))
	slices.Sort(all)
	return slices.Compact(all)
}

// shut reports whether every send to a destination would be held now.
func (g *Guards) shut(name string) bool {
	for _, s := range []Scope{{}, {Destination: name}} {
		if why, _ := g.cache.stop(s); why != "" {
			return true
		}
	}
	d := g.at(name)
	return d.breaker.shut() != nil || d.rates.shut() || d.slots.shut()
}

// timedMutex is a mutex whose acquisition can time out.
type timedMutex chan struct{}

func newTimedMutex() timedMutex { return make(timedMutex, 1) }

// take waits for the mutex, but not beyond the deadline.
func (t timedMutex) take(ctx context.Context, deadline time.Time) bool {
	select {
	case t <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (t timedMutex) give() { <-t }
