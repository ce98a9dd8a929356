package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// defaultLate is after how many further requests a late commit arrives: the next two reads do
	// not see it.
	defaultLate = 2
	// longestLate is how long after the client gave up a late commit arrives even if few requests
	// came: networks do not hold a request forever, and programs that wait for a horizon wait
	// longer.
	longestLate = 10 * time.Second
)

// Call is one request, its arrivals at the target, and what the client saw.
type Call struct {
	N     int       // in order, from 1
	At    time.Time // when it came
	Write bool
	What  string     // "POST /charges", or "create" of a connector
	Key   string     // its subject: Options.Key, or the business key
	Body  []byte     // as sent
	Fault fault.Kind // its fault, None for none
	// Unharmed is why a fault that met the call did nothing.
	Unharmed string
	// Arrivals are its arrivals at the target, late ones included.
	Arrivals []Arrival
	// Saw is what the client got: "201", "a dead connection".
	Saw string
}

// Arrival is one arrival of a request at the target.
type Arrival struct {
	Order  int       // among all arrivals, from 1
	At     time.Time // when
	Answer string    // the target's answer, "201"
	Done   bool      // the answer was success (2xx, or no error)
	// Unknown is whether a target that did not answer may have applied it.
	Unknown bool
}

// Effects is how often the target applied the call, 0 for a read.
func (c Call) Effects() int {
	n := 0
	for _, a := range c.Arrivals {
		if a.Done && c.Write {
			n++
		}
	}
	return n
}

// Log records the requests of one proxy or link, in order. It is safe for concurrent use.
type Log struct {
	Options Options

	forms   fault.Forms
	began   time.Time
	calling Traffic // writes in progress

	faults *fault.Schedule
	lags   atomic.Bool // a lagging read can happen

	mu    sync.Mutex
	calls []*Call
	order int
	held  []*held
}

// held is a request that arrives later.
type held struct {
	after int       // arrives before the call with a higher number; 0: no number counts
	due   time.Time // arrives before requests from then on; zero: no time counts
	land  func()
}

func (h *held) lands(c Call) bool {
	return h.after > 0 && c.N > h.after || !h.due.IsZero() && !c.At.Before(h.due)
}

// NewLog returns an empty log. The options are checked.
func NewLog(o Options) *Log { return newLog(o, Forms) }

func newLog(o Options, forms fault.Forms) *Log {
	l := &Log{Options: o, forms: forms, began: time.Now(), faults: fault.NewSchedule(forms, o.Seed)}
	l.lags.Store(slices.Contains(o.Kinds, fault.LaggingRead))
	for _, f := range o.Script {
		_ = l.Set(f) // Options.Checked has checked it
	}
	return l
}

// Set adds a fault for later requests, as an entry of Options.Script. Errors wrap
// [fault.ErrInvalid].
func (l *Log) Set(f fault.Fault) error {
	if err := check(f, l.forms); err != nil {
		return err
	}
	if f.Kind == fault.LaggingRead {
		l.lags.Store(true)
	}
	return l.faults.Set(f)
}

// Clear removes all faults. Requests in flight keep theirs.
func (l *Log) Clear() { l.faults.Clear() }

// Meets reports whether a request meets a fault of a kind.
func (l *Log) Meets(r fault.Request, k fault.Kind) bool {
	_, met := l.faults.First(r, k)
	return met
}

// Sends is how many writes came, those that the target never got included.
func (l *Log) Sends() int {
	return len(slices.DeleteFunc(l.Calls(), func(c Call) bool { return !c.Write }))
}

// Settle applies held requests and waits for writes in flight. It reports false if one has been in
// flight for a minute. It waits for no read: that has no effect, and can be a stream without an end.
func (l *Log) Settle() bool {
	l.Release()
	quiet := l.calling.Wait()
	l.Release()
	return quiet
}

// Held is how many requests have not arrived yet.
func (l *Log) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Unmet calls yield with each fault of the schedule that no request met, and with how many it was
// about.
func (l *Log) Unmet(yield func(f fault.Fault, concerned int) bool) { l.faults.Unmet(yield) }

// Seed returns the seed of the random faults.
func (l *Log) Seed() uint64 { return l.Options.Seed }

// Calls returns the calls so far.
func (l *Log) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Call, len(l.calls))
	for i, c := range l.calls {
		all[i] = *c
		all[i].Arrivals = slices.Clone(c.Arrivals)
	}
	return all
}

// Landed counts the effects under a key, by what reached the target and was answered with
// success. The count is too high for a target that recognises a repeat and answers
// it with success too; ask the destination then.
func (l *Log) Landed(key string) int {
	return l.Count(func(c Call) bool { return c.Key == key })
}

// Count counts the effects of the calls for which match returns true.
func (l *Log) Count(match func(Call) bool) int {
	n := 0
	for _, c := range l.Calls() {
		if match(c) {
			n += c.Effects()
		}
	}
	return n
}

// Release applies all held requests (LateCommit), in order. Call it before counting effects: in
// the end they arrive.
func (l *Log) Release() {
	l.calling.Begin() // another goroutine that counts waits for what arrives here
	defer l.calling.End()
	l.mu.Lock()
	all := l.held
	l.held = nil
	l.mu.Unlock()
	for _, h := range all {
		h.land()
	}
}

// forget drops all held requests.
func (l *Log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
}

// String returns the log for a failure, one line per call.
func (l *Log) String() string {
	var b strings.Builder
	for _, c := range l.Calls() {
		b.WriteString("  " + l.line(c) + "\n")
	}
	return b.String()
}

func (l *Log) line(c Call) string {
	kind := "read "
	if c.Write {
		kind = "write"
	}
	line := fmt.Sprintf("#%d +%v %s %s", c.N, c.At.Sub(l.began).Round(time.Millisecond), kind, c.What)
	if c.Key != c.What {
		line += fmt.Sprintf(" %q", c.Key)
	}
	if c.Fault != fault.None {
		line += " [" + string(c.Fault) + "]"
	}
	if c.Unharmed != "" {
		line += " (unharmed: " + c.Unharmed + ")"
	}
	switch {
	case len(c.Arrivals) == 0:
		line += ": never reached the target"
	default:
		var arrivals []string
		for _, a := range c.Arrivals {
			arrivals = append(arrivals, fmt.Sprintf("no. %d there at +%v, answered %s", a.Order, a.At.Sub(l.began).Round(time.Millisecond), a.Answer))
		}
		line += ": " + strings.Join(arrivals, "; ")
	}
	return line + "; the client saw " + c.Saw
}

// Begin records a call and returns its fault; due requests arrive first. [Carry] or [Log.End] ends
// it.
func (l *Log) Begin(c Call) (*Call, fault.Fault) {
	if c.Write {
		l.calling.Begin()
	}
	l.mu.Lock()
	c.N, c.At, c.Saw = len(l.calls)+1, time.Now(), "nothing yet"
	l.calls = append(l.calls, &c)
	var due []*held
	l.held = slices.DeleteFunc(l.held, func(h *held) bool {
		if h.lands(c) {
			due = append(due, h)
			return true
		}
		return false
	})
	f := l.pick(c)
	c.Fault = f.Kind
	l.mu.Unlock()
	for _, h := range due {
		h.land()
	}
	return &c, f
}

// pick chooses a call's fault: by the script, else by the seed.
func (l *Log) pick(c Call) fault.Fault {
	r := fault.Request{Op: fault.Op(c.What), Write: c.Write, Key: c.Key, Body: c.Body}
	if f, met := l.faults.First(r); met || len(l.Options.Kinds) == 0 {
		return f
	}
	possible := slices.DeleteFunc(slices.Clone(l.Options.Kinds), func(k fault.Kind) bool { return !can(k, c.Write) })
	return fault.Fault{Kind: l.faults.ByChance(r, l.Options.Chance, possible)}
}

// End ends a call that [Carry] does not end.
func (l *Log) End(c *Call) {
	if c.Write {
		l.calling.End()
	}
}

// Now is the number of the latest call.
func (l *Log) Now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// Arrived records an arrival of a call at the target: its order and time, and what a says.
func (l *Log) Arrived(c *Call, a Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order++
	a.Order, a.At = l.order, time.Now()
	c.Arrivals = append(c.Arrivals, a)
}

// Saw records what the client got.
func (l *Log) Saw(c *Call, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Saw = what
}

// Unharmed records why the fault of a call did nothing.
func (l *Log) Unharmed(c *Call, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Unharmed = why
}

// hold keeps a request until its time, and lets its client wait until it gives up.
func (l *Log) hold(ctx context.Context, c *Call, f fault.Fault, land func()) (saw string) {
	h := &held{land: land}
	switch {
	case f.Delay > 0:
		h.due = c.At.Add(f.Delay)
	case f.After >= 0:
		h.after = c.N + cmp.Or(f.After, defaultLate)
	}
	l.mu.Lock()
	l.held = append(l.held, h)
	l.mu.Unlock()
	if f.Delay > 0 { // also where no request comes that it is before
		time.AfterFunc(f.Delay, func() {
			l.calling.Begin()
			defer l.calling.End()
			l.mu.Lock()
			i := slices.Index(l.held, h)
			if i >= 0 {
				l.held = slices.Delete(l.held, i, i+1)
			}
			l.mu.Unlock()
			if i >= 0 {
				h.land()
			}
		})
	}
	saw = l.outwait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.after > 0 {
		h.due = time.Now().Add(longestLate)
	}
	return saw
}

// outwait waits until the client gives up, or has waited long enough.
func (l *Log) outwait(ctx context.Context) (saw string) {
	var cut <-chan time.Time // nil waits forever
	if _, bounded := ctx.Deadline(); !bounded {
		timer := time.NewTimer(l.Options.Patience)
		defer timer.Stop()
		cut = timer.C
	}
	select {
	case <-ctx.Done():
		return "nothing, and gave up"
	case <-cut:
		return DeadConnection
	}
}

// DeadConnection is what a client saw that got no answer.
const DeadConnection = "a dead connection"
