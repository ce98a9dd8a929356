package guards

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// The rules of holds.
const (
	ruleStopped = "stopped"
	ruleRate    = "rate"
	ruleBreaker = "breaker"
	ruleLogin   = "login"
	ruleBusy    = "busy"
)

// Options are what guards can be told. The zero value works.
type Options struct {
	// Destinations has the settings of single destinations. Default: those of
	// the zero [Settings].
	Destinations map[string]Settings
	// Owner names this worker to people, in slots and breakers. Default: host
	// and process. Workers of one name are still told apart.
	Owner string
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Settings are the guards of one destination.
type Settings struct {
	// Rate is how many sends the destination takes, from all workers together.
	// Reads are not counted. Default: the lowest rate of its profiles; none
	// where they have none. Negative calls: none.
	Rate connectors.Rate
	// Concurrency is how many sends to it may be under way at once, from all
	// workers together. Default 0: unbounded.
	Concurrency int
	// Breaker is when its circuit breaker opens, and for how long.
	Breaker Breaker
}

// Breaker is when a circuit breaker opens: when a worker saw so many failures
// within the window and more than three quarters of its sends were failures, or
// four times as many in a row. What a read then verified counts as a success.
type Breaker struct {
	// Failures is how many. Default 5; negative: only a refused login opens it,
	// which does so at once.
	Failures int
	// Window is the time over which they are counted. Default 1 min.
	Window time.Duration
	// Open is how long after it opened one send is let through as a probe; it
	// doubles with each probe that fails, up to 5 min. Default 30 s.
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

// Guards is what one worker knows and holds of the guards that all workers of
// a ledger share. It implements [engine.Guards]. It is safe for concurrent use;
// create one with [New] and end it with [Guards.Close].
type Guards struct {
	board *board
	reg   *connectors.Registry
	opts  Options
	owner string

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	news chan struct{} // something is to be published

	set    sync.Mutex // of whoever replaces the settings
	mu     sync.Mutex
	dests  map[string]*destination
	closed bool
	keeper chan struct{} // closed when the present keeper ends; nil: there is none
}

var (
	_ engine.Guards  = (*Guards)(nil)
	_ engine.Stopper = (*Guards)(nil)

	_ engine.ReadObserver = (*Guards)(nil)
)

// destination is everything about one destination.
type destination struct {
	rates   *rates
	slots   *slots
	breaker *breaker
}

// shared is what the guards of one destination have in common.
type shared struct {
	board              *board
	destination, owner string
	log                *slog.Logger
	kick               func() // there is something to publish
}

// New makes the guards of one worker on the notes of its ledger. The rates and
// time-outs of destinations are taken from reg, which may be nil; opts may be
// nil. Nothing is read or run before the first send is asked for.
func New(notes ledger.Notes, reg *connectors.Registry, opts *Options) *Guards {
	g := &Guards{board: newBoard(notes), reg: reg, dests: make(map[string]*destination), news: make(chan struct{}, 1)}
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
	// A worker that was started again under its name must not take the slots of
	// the dead one for its own: their sends may be under way.
	g.owner = clip(g.opts.Owner, maxOwner) + "#" + rand.Text()[:8]
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
	sh := &shared{board: g.board, destination: name, owner: g.owner, log: g.opts.Logger, kick: g.kick}
	d := &destination{
		rates:   &rates{shared: sh, name: noteOf("rate", name), turn: newTurn()},
		slots:   &slots{shared: sh, name: noteOf("slots", name), cover: cover, turn: newTurn()},
		breaker: &breaker{shared: sh, name: noteOf("breaker", name), cover: cover},
	}
	g.tell(name, d, g.opts.Destinations[name])
	g.dests[name] = d
	return d
}

// tell has a destination keep to its settings.
func (g *Guards) tell(name string, d *destination, set Settings) {
	rate, _ := g.profiled(name)
	if set.Rate != (connectors.Rate{}) {
		rate = set.Rate
	}
	d.rates.change(rate)
	d.slots.most.Store(int64(set.Concurrency))
	d.breaker.change(set.Breaker.filled())
}

// Set replaces the settings of all destinations, for every send that is asked for
// from then on; one that is not named has those of the zero [Settings]. Sends
// under way are let end. Pauses that a destination asked for, stops, and breakers
// that are open stay. The map is copied. Other workers have settings of their own.
func (g *Guards) Set(destinations map[string]Settings) {
	destinations = maps.Clone(destinations)
	g.set.Lock() // the last one to come has the last word
	defer g.set.Unlock()
	g.mu.Lock()
	g.opts.Destinations = destinations
	known := maps.Clone(g.dests)
	g.mu.Unlock() // destinations take it while they hold their own
	for name, d := range known {
		g.tell(name, d, destinations[name])
	}
}

// profiled is the lowest rate of a destination's profiles, and how long a send
// can be under way after it was let pass.
func (g *Guards) profiled(name string) (rate connectors.Rate, cover time.Duration) {
	cover = connectors.Profile{}.SendFor()
	for i, p := range profiles(g.reg, name) {
		if i == 0 {
			cover = 0
		}
		cover = max(cover, p.SendFor())
	}
	return RateOf(g.reg, name), cover + sendSlack
}

// RateOf is the lowest rate of a destination's profiles; the zero rate where none
// has one.
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

// Enter implements [engine.Guards]. It asks the stops first and last: what they
// said is at most half a second old when it lets a send pass, or three quarters
// where the ledger cannot be read; beyond that it holds. A [engine.Sent] of fate
// not sent with neither time nor code counts as a send that was not made.
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
	slot, hold := d.slots.take(ctx, deadline)
	if hold != nil {
		return nil, hold
	}
	at, hold := g.permitted(ctx, rec, d, deadline)
	if hold != nil {
		d.slots.release(slot, 0)
		return nil, hold
	}
	told, hold := d.breaker.enter(ctx)
	if hold != nil {
		d.rates.back(at)
		d.slots.release(slot, 0)
		return nil, hold
	}
	if hold := g.stopped(ctx, rec); hold != nil { // a permission to probe can take its time
		told(engine.Sent{Fate: connectors.FateNotSent})
		d.rates.back(at)
		d.slots.release(slot, 0)
		return nil, hold
	}
	entered, once := g.board.clock.early(), sync.Once{}
	if slot {
		g.attend() // slots are looked after from now on
	}
	return func(s engine.Sent) {
		once.Do(func() {
			if unmade(s) {
				d.rates.back(at)
			} else {
				d.rates.told(s, entered)
			}
			d.slots.release(slot, s.Took)
			told(s)
		})
	}, nil
}

// Confirmed implements [engine.ReadObserver].
func (g *Guards) Confirmed(rec ledger.Record) {
	sent := rec.LastSend
	if !rec.LostSend.IsZero() { // LastSend is when it had ended at the latest
		sent = rec.LostSend
	}
	g.at(rec.Destination).breaker.confirm(sent)
}

// LoginRefused implements [engine.ReadObserver].
func (g *Guards) LoginRefused(rec ledger.Record, why string) {
	g.at(rec.Destination).breaker.readRefused(why)
}

// ReadHeld implements [engine.ReadObserver].
func (g *Guards) ReadHeld(rec ledger.Record) *engine.Hold {
	return g.at(rec.Destination).breaker.readHeld()
}

// LoginAccepted implements [engine.ReadObserver].
func (g *Guards) LoginAccepted(rec ledger.Record) { g.at(rec.Destination).breaker.readAnswered() }

// permitted waits for a permit of the rate and makes sure that it is still good
// when the stops have been asked again. It ends, since permit waits for the
// pause or the next permit, and not beyond the deadline.
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

// Paused implements [engine.Guards]. It may wait for one read of the notes; when
// they cannot be read all destinations are paused.
func (g *Guards) Paused() []string {
	_ = g.board.fresh(g.ctx, readEvery) // what it says is what the age says
	age, ok := g.board.age()
	blind := !ok || age > readLast
	var paused []string
	for _, name := range g.names() {
		if blind || g.shut(name) {
			paused = append(paused, name)
		}
	}
	return paused
}

// names are those of all destinations that are registered or were sent to.
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
		if why, _ := g.board.stop(s); why != "" {
			return true
		}
	}
	d := g.at(name)
	return d.breaker.shut() != nil || d.rates.shut() || d.slots.shut()
}

// turn lets one after another do something that takes a while.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, but not beyond the deadline.
func (t turn) take(ctx context.Context, deadline time.Time) bool {
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

func (t turn) give() { <-t }
