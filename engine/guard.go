package engine

import (
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// enter asks the guards for the next send: nil lets it be announced, and the
// task then holds a leave that it must give back. What they said a moment ago
// still holds.
func (t *task) enter() *Hold {
	guards := t.e.opts.Guards
	if guards == nil {
		return nil
	}
	if t.leave != nil && time.Since(t.entered) <= guardFresh {
		return nil
	}
	t.left(Sent{Fate: connectors.FateNotSent})
	leave, hold := guards.Enter(t.life.ending, t.rec)
	if hold != nil {
		return hold
	}
	t.entered, t.leave = time.Now(), leave
	return nil
}

// left tells the guard that let the send pass what became of it, once.
func (t *task) left(s Sent) {
	if leave := t.leave; leave != nil {
		t.leave = nil
		leave(s)
	}
}

// unsent gives back a leave that was not used; whoever works on a task defers
// it, so that it is given back on every path.
func (t *task) unsent() { t.left(Sent{Fate: connectors.FateNotSent}) }

// putBack is a write that a guard holds back, as an event. What was sent before
// is looked at again before the next send, and so ever more rarely.
func (t *task) putBack(h *Hold) ledger.Event {
	in := max(h.For, holdFloor)
	if t.rec.Sends > 0 {
		in = max(in, min(t.sinceSend()/holdShare, holdMost))
	}
	t.hold = h
	return ledger.Event{Kind: ledger.EvDeferred, Rule: h.Rule, Reason: h.Reason, In: in}
}

// tellHeld counts a hold that was recorded.
func (t *task) tellHeld() {
	if t.hold == nil {
		return
	}
	t.e.meter.Held(t.rec, *t.hold)
	t.log().Debug("a guard holds the send back", "rule", t.hold.Rule, "reason", t.hold.Reason)
	t.hold = nil
}
