package readbacktest

import (
	"testing"

	"github.com/readback-go/readback/internal/chaos"
)

type (
	// Call is one request, its arrivals at the target, and what the client saw.
	Call = chaos.Call
	// Arrival is one arrival of a request at the target.
	Arrival = chaos.Arrival
	// Options configures the faults. The zero value passes and counts all requests. The default of
	// Seed is the environment variable READBACKTEST_SEED (a number, or "random"), else 1.
	Options = chaos.Options
)

// checked fills in defaults and fails a test with invalid options.
func checked(tb testing.TB, o Options) Options {
	tb.Helper()
	o, err := o.Checked()
	if err != nil {
		tb.Fatalf("readbacktest: %v", err)
	}
	o.Seed = seedOf(tb, o.Seed)
	return o
}

// Log records the requests of one proxy or link, in order. It is safe for concurrent use.
type Log struct {
	tb  testing.TB
	log *chaos.Log
}

func newLog(tb testing.TB, log *chaos.Log) *Log {
	l := &Log{tb: tb, log: log}
	tb.Cleanup(l.unmet)
	return l
}

// Set adds a fault for later requests, as an entry of Options.Script. Errors wrap
// [fault.ErrInvalid].
func (l *Log) Set(f Fault) error { return l.log.Set(f) }

// Sends is how many writes came, those that the target never got included.
func (l *Log) Sends() int { return l.log.Sends() }

// Seed returns the seed of the random faults.
func (l *Log) Seed() uint64 { return l.log.Seed() }

// Calls returns the calls so far.
func (l *Log) Calls() []Call { return l.log.Calls() }

// Landed counts the effects under a key, by what reached the target and was answered with
// success: for [Effects]. The count is too high for a target that recognises a repeat and answers
// it with success too; ask the destination then.
func (l *Log) Landed(key string) int { return l.log.Landed(key) }

// Release applies all held requests (LateCommit), in order. Call it before counting effects: in
// the end they arrive.
func (l *Log) Release() { l.log.Release() }

// String returns the log for a failure, one line per call.
func (l *Log) String() string { return l.log.String() }

// settle applies held requests, and waits for those in flight.
func (l *Log) settle(tb testing.TB) {
	tb.Helper()
	if !l.log.Settle() {
		tb.Errorf("readbacktest: a request has been under way for %v, and may have an effect after it was counted; end what makes it first\n%s", chaos.Grace, l)
	}
}

// unmet reports entries of the script that met no request: a test that never met its fault has
// shown nothing. A story is exempt: it may be killed before.
func (l *Log) unmet() {
	l.tb.Helper()
	if n := l.log.Held(); n > 0 {
		l.tb.Errorf("readbacktest: the test ended while %d late commits had not landed, so that no count can have seen them; give this proxy to Effects, or call Release before you count", n)
	}
	if _, ok := l.tb.(*Story); ok {
		return
	}
	for f, concerned := range l.log.Unmet {
		l.tb.Logf("readbacktest: %s never happened: it was about %d of the %d requests that came", f, concerned, len(l.Calls()))
	}
}

// Source has a log: a [Proxy], a [Link], or a [Log] itself.
type Source interface{ source() *Log }

func (l *Log) source() *Log { return l }
