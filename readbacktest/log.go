package readbacktest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is one request as it came, what reached the target of it, and what the
// client saw.
type Call struct {
	N     int       // in the order in which they came, from 1
	At    time.Time // when it came
	Write bool
	What  string // "POST /charges", or "create" of a connector
	Key   string // what it is about: Options.Key, or the business key
	Body  []byte // as it came
	Vice  Vice   // what happened to it, NoVice for nothing
	// Unharmed says why a vice that met the call did nothing.
	Unharmed string
	// Arrivals are the times it reached the target, late ones included.
	Arrivals []Arrival
	// Saw is what the client got: "201", "a dead connection".
	Saw string
}

// Arrival is one time at which a request reached the target.
type Arrival struct {
	Order int       // among all arrivals, from 1
	At    time.Time // when
	Said  string    // what the target answered, "201"
	Done  bool      // it answered that it did what was asked (2xx, or no error)
}

// Effects is how often the target did what the call asks for, 0 for a read.
func (c Call) Effects() int {
	n := 0
	for _, a := range c.Arrivals {
		if a.Done && c.Write {
			n++
		}
	}
	return n
}

// Log is what happened to the requests that went one way, in their order. It is
// safe for concurrent use.
type Log struct {
	tb      testing.TB
	options Options
	began   time.Time
	calling traffic // calls that have come and not gone

	mu     sync.Mutex
	calls  []*Call
	passed []int          // by line of the script: how many calls it was about
	met    []int          // likewise: to how many of them it happened
	came   map[string]int // by subject: how often it came
	order  int
	held   []*held
}

// held is a request that lands later.
type held struct {
	after int       // lands before the call with a higher number; 0: no number counts
	due   time.Time // lands before what comes then; zero: no time counts
	land  func()
}

func (h *held) lands(c Call) bool {
	return h.after > 0 && c.N > h.after || !h.due.IsZero() && !c.At.Before(h.due)
}

func newLog(tb testing.TB, o Options) *Log {
	l := &Log{tb: tb, options: o, began: time.Now(), passed: make([]int, len(o.Script)), met: make([]int, len(o.Script)), came: map[string]int{}}
	tb.Cleanup(l.unmet)
	return l
}

// settle lets land what is held, and waits for what is under way: in the end that
// lands, too.
func (l *Log) settle(tb testing.TB) {
	tb.Helper()
	l.Release()
	if !l.calling.wait() {
		tb.Errorf("readbacktest: a request has been under way for %v, and may have an effect after it was counted; end what makes it first\n%s", grace, l)
	}
	l.Release()
}

// unmet says which lines of the script came to nothing: a test that never met
// its vice has shown nothing. Of a story's it is expected: it may be killed before.
func (l *Log) unmet() {
	l.tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.held); n > 0 {
		l.tb.Errorf("readbacktest: the test ended while %d late commits had not landed, so that no count can have seen them; give this proxy to Effects, or call Release before you count", n)
	}
	if _, ok := l.tb.(*Story); ok {
		return
	}
	for i, f := range l.options.Script {
		if l.met[i] == 0 {
			l.tb.Logf("readbacktest: %s never happened: it was about %d of the %d requests that came", f, l.passed[i], len(l.calls))
		}
	}
}

// Source is what has a log: a [Proxy], a [Link], or a [Log] itself.
type Source interface{ source() *Log }

func (l *Log) source() *Log { return l }

// Seed is what vices by seed follow from.
func (l *Log) Seed() uint64 { return l.options.Seed }

// Calls returns what came so far.
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

// Landed counts the effects under a key, by what reached the target and was
// answered with success: for [Effects]. A target that recognises a repeat, and
// answers it with success too, is counted too high; ask the world there.
func (l *Log) Landed(key string) int {
	return l.count(func(c Call) bool { return c.Key == key })
}

func (l *Log) count(match func(Call) bool) int {
	n := 0
	for _, c := range l.Calls() {
		if match(c) {
			n += c.Effects()
		}
	}
	return n
}

// Release lets everything land that is held (LateCommit), in the order in which
// it came. Whatever counts effects calls it first: in the end it lands.
func (l *Log) Release() {
	l.mu.Lock()
	all := l.held
	l.held = nil
	l.mu.Unlock()
	for _, h := range all {
		h.land()
	}
}

// String is the log as a failure shows it, a line for each call.
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
	if c.Vice != NoVice {
		line += " [" + string(c.Vice) + "]"
	}
	if c.Unharmed != "" {
		line += " (unharmed: " + c.Unharmed + ")"
	}
	switch {
	case len(c.Arrivals) == 0:
		line += ": never reached the target"
	default:
		var said []string
		for _, a := range c.Arrivals {
			said = append(said, fmt.Sprintf("no. %d there at +%v, answered %s", a.Order, a.At.Sub(l.began).Round(time.Millisecond), a.Said))
		}
		line += ": " + strings.Join(said, "; ")
	}
	return line + "; the client saw " + c.Saw
}

// begin notes a call and says what happens to it; what is due lands first.
func (l *Log) begin(c Call) (*Call, Fault) {
	l.calling.begin() // carry ends it
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
	c.Vice = f.Vice
	l.mu.Unlock()
	for _, h := range due {
		h.land()
	}
	return &c, f
}

// pick says what happens to a call: what the script says, else the seed.
func (l *Log) pick(c Call) Fault {
	met := Fault{}
	for i, f := range l.options.Script {
		if !f.concerns(c) {
			continue
		}
		l.passed[i]++
		if met.Vice == NoVice && (f.Nth == 0 || f.Nth == l.passed[i]) {
			met = f
			l.met[i]++
		}
	}
	if met.Vice != NoVice || len(l.options.Vices) == 0 {
		return met
	}
	subject := fmt.Sprint(c.Write, c.What, c.Key)
	l.came[subject]++
	dice := roll(l.options.Seed, subject, l.came[subject])
	if dice.Float64() >= l.options.Chance {
		return met
	}
	possible := slices.DeleteFunc(slices.Clone(l.options.Vices), func(v Vice) bool { return !can(v, c.Write) })
	if len(possible) == 0 {
		return met
	}
	return Fault{Vice: possible[dice.IntN(len(possible))], Reads: !c.Write}
}

// now is the number of the latest call.
func (l *Log) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

func (l *Log) arrived(c *Call, said string, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order++
	c.Arrivals = append(c.Arrivals, Arrival{Order: l.order, At: time.Now(), Said: said, Done: done})
}

func (l *Log) saw(c *Call, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Saw = what
}

func (l *Log) unharmed(c *Call, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Unharmed = why
}

// hold keeps a request until its time, and its client waiting until that gives
// up.
func (l *Log) hold(ctx context.Context, c *Call, f Fault, land func()) (saw string) {
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
	var cut <-chan time.Time // nil waits for ever
	if _, bounded := ctx.Deadline(); !bounded {
		timer := time.NewTimer(l.options.Patience)
		defer timer.Stop()
		cut = timer.C
	}
	select {
	case <-ctx.Done():
		return "nothing, and gave up"
	case <-cut:
		return deadConnection
	}
}

const deadConnection = "a dead connection"
