// Package elapsed counts the time that has passed, beside a ledger's clock that can
// step. It asks no clock itself: every time is given, so that who tries all orders of
// events can count as a process does.
package elapsed

import (
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Clock relates the ledger's clock, which can step, to the time that one process
// counts itself. Absence is concluded from time that has passed: a step forward must
// not count for it. A process knows of steps since it first read the ledger's clock,
// and believes in no time before that. The zero value has not read it yet. A copy
// counts on its own.
//
// Time that the computer spends suspended is not counted: the ledger's clock then
// seems to have stepped.
type Clock struct {
	began time.Time // when this process first read the ledger's clock
	read  time.Time // what that showed
	// least and most are how far the ledger's clock can be ahead of this process's
	// count since began.
	least, most time.Duration
	steps       []step
}

// step is a change of the difference between the two clocks: how far the ledger's clock could be
// ahead before it, which had ended when that clock would have shown until.
type step struct {
	until       time.Time
	least, most time.Duration
}

// maxSteps bounds how many steps of the ledger's clock a process remembers.
const maxSteps = 64

// Read records what the ledger's clock showed in a call from asked to answered, which
// are of the process's own clock. A record that no ledger returned says nothing.
func (c *Clock) Read(now, asked, answered time.Time) {
	if now.IsZero() {
		return
	}
	if c.began.IsZero() {
		c.began, c.read, c.most = answered, now, answered.Sub(asked)
		return
	}
	passed := now.Sub(c.read)
	least, most := passed-answered.Sub(c.began), passed-asked.Sub(c.began)
	if least <= c.most && most >= c.least {
		c.least, c.most = max(c.least, least), min(c.most, most)
		return
	}
	c.stepped(now.Add(max(c.most-least, 0)))
	c.least, c.most = least, most
}

// stepped keeps what was so before a step. The oldest two become one, which has the range of both
// and counts for longer than it should: that is the cautious side. Copies of the clock share no
// step that changes.
func (c *Clock) stepped(until time.Time) {
	steps := slices.Clip(c.steps)
	if len(steps) >= maxSteps {
		one, two := steps[0], steps[1]
		if one.until.After(two.until) {
			two.until = one.until
		}
		steps = append([]step{{two.until, min(one.least, two.least), max(one.most, two.most)}}, steps[2:]...)
	}
	c.steps = append(steps, step{until, c.least, c.most})
}

// AtMost is how much of the time since the ledger's clock showed a moment has passed
// for sure: what this process counted. now is what that clock shows at the time at of
// the process's own clock.
func (c *Clock) AtMost(moment, now, at time.Time) time.Duration {
	d := c.unstepped(moment, now)
	if !moment.After(c.read) && !c.began.IsZero() {
		d = min(d, at.Sub(c.began))
	}
	return max(d, 0)
}

// ByClock is the time since the ledger's clock showed a moment, as that clock has it,
// without the steps forward that this process knows of. A day that is over by it alone
// ends no wait for a send that was made a minute ago.
func (c *Clock) ByClock(moment, now time.Time) time.Duration {
	return max(c.unstepped(moment, now), 0)
}

// unstepped subtracts the most by which the ledger's clock went ahead since it showed the moment:
// from any difference to any later one, since now may have been read before the last step. Steps
// forward and back between the clocks of two hosts do not add up.
func (c *Clock) unstepped(moment, now time.Time) time.Duration {
	most, ahead := c.most, time.Duration(0)
	for _, s := range slices.Backward(c.steps) {
		most = max(most, s.most)
		if s.until.After(moment) {
			ahead = max(ahead, most-s.least)
		}
	}
	return now.Sub(moment) - ahead
}

// SinceSend is how much time has passed for sure since the last send of a write
// ended. A lease that ended by the ledger's clock says nothing about the process
// that held it: where that clock stepped, its send can last for as long as the lease
// was to last by its own count.
func (c *Clock) SinceSend(r ledger.Record, now, at time.Time) time.Duration {
	since := c.AtMost(r.LastSend, now, at)
	if !r.LostSend.IsZero() {
		since = min(since, max(c.AtMost(r.LostSend, now, at)-r.LostFor, 0))
	}
	return since
}

// AtLeast is how much time can have passed since the ledger's clock showed a moment.
// now is what that clock shows.
func (c *Clock) AtLeast(moment, now time.Time) time.Duration {
	least, behind := c.least, time.Duration(0)
	for _, s := range slices.Backward(c.steps) {
		least = min(least, s.least)
		if s.until.After(moment) {
			behind = max(behind, s.most-least)
		}
	}
	return now.Sub(moment) + behind
}
