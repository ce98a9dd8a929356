package readbacktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Count is the number of effects under a key, to be asserted.
type Count struct {
	tb   testing.TB
	key  string
	n    int
	logs []*Log
}

// Effects counts the effects under a key. It calls count once, after all held requests have
// arrived. count should ask the destination (a handler's own records, a table, a mailbox), or be
// [Log.Landed] of a proxy. seen are the proxies on the way to it: Effects waits only for their
// held and in-flight requests, and a failure lists only their calls. Those of a [Story] are
// included.
func Effects(tb testing.TB, count func(key string) int, key string, seen ...Source) Count {
	tb.Helper()
	c := Count{tb: tb, key: key}
	if s, ok := tb.(*Story); ok {
		c.logs = slices.Clone(s.logs)
	}
	for _, s := range seen {
		if l := s.source(); !slices.Contains(c.logs, l) {
			c.logs = append(c.logs, l)
		}
	}
	for _, l := range c.logs {
		l.settle(tb)
	}
	c.n = count(key)
	return c
}

// Exactly fails the test unless there are n effects.
func (c Count) Exactly(n int) {
	c.tb.Helper()
	if c.n != n {
		c.fail(fmt.Sprintf("want exactly %d", n))
	}
}

// AtMost fails the test if there are more than n effects.
func (c Count) AtMost(n int) {
	c.tb.Helper()
	if c.n > n {
		c.fail(fmt.Sprintf("want at most %d", n))
	}
}

func (c Count) fail(want string) {
	c.tb.Helper()
	c.tb.Errorf("%d effects under %q, %s%s", c.n, c.key, want, shown(c.tb, c.logs))
}

// ExpectEffects fails a test unless the calls for which match returns true had exactly n effects
// together, by what reached the target and was answered with success. All held requests arrive
// first. match may be nil: all calls.
func (l *Log) ExpectEffects(tb testing.TB, match func(Call) bool, n int) {
	tb.Helper()
	l.settle(tb)
	if match == nil {
		match = func(Call) bool { return true }
	}
	if got := l.log.Count(match); got != n {
		tb.Errorf("%d effects reached the target, want exactly %d%s", got, n, shown(tb, []*Log{l}))
	}
}

// shown lists the calls for a failure, and how to repeat it.
func shown(tb testing.TB, logs []*Log) string {
	var b strings.Builder
	for _, l := range logs {
		b.WriteString("\n" + l.String())
	}
	if s, ok := tb.(*Story); ok {
		return strings.TrimRight(b.String(), "\n") + "\n" + repeat(tb, s.seed)
	}
	for _, l := range logs {
		return strings.TrimRight(b.String(), "\n") + "\n" + repeat(tb, l.Seed())
	}
	return b.String()
}
