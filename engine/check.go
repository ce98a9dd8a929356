package engine

import (
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// check reads the destination back, asks what follows, and does it.
func (t *task) check() (parked bool, err error) {
	if t.needsRead() && !t.profile.Blind {
		if off, err := t.putOff(); off || err != nil {
			return off, err
		}
		if pause := t.untilLikely(t.policyCase()); pause > 0 {
			parked, err := t.pause(pause, policies.Decision{Rule: "lag", Reason: "its effect is not likely to be seen sooner"})
			if parked || err != nil {
				return parked, err
			}
		}
		if err := t.look(); err != nil {
			return false, err
		}
	}
	c := t.policyCase()
	return t.act(c, t.decide(c))
}

// needsRead is false only with proof that nothing of this write was ever taken
// up by the destination.
func (t *task) needsRead() bool {
	r := t.rec
	nothing := slices.Contains([]connectors.Fate{connectors.FateNotSent, connectors.FateThrottled, connectors.FateLogin}, connectors.Fate(r.LastFate))
	return !nothing || r.Unknown || r.Answered || r.Directed != ""
}

// act carries out a decision.
func (t *task) act(c policies.Case, d policies.Decision) (parked bool, err error) {
	switch d.Kind {
	case policies.Accept:
		return false, t.settle(ledger.Verified, d)
	case policies.Fail:
		return false, t.settle(ledger.NotApplied, d)
	case policies.Report:
		return false, t.settle(ledger.Reported, d)
	case policies.Wait:
		pause := d.After
		if pause <= 0 {
			pause = t.nextRead(c)
		}
		return t.pause(pause, d)
	case policies.Retry:
		return t.announce(d)
	case policies.Compensate:
		return false, t.compensate(d)
	}
	return false, t.escalate(d)
}

// nextRead is the pause before the next read. Reads that have to agree are
// made in one go: who puts the write back counts from one again.
func (t *task) nextRead(c policies.Case) time.Duration {
	if pause, known := t.likelyNext(c); known {
		return pause
	}
	if t.pace == nil {
		t.pace = policies.ResumePace(c.SinceSend)
	}
	pause := policies.ReadPause(c, t.pace)
	if c.Verdict == verify.Verified {
		pause = min(pause, t.e.opts.Patience)
	}
	return pause
}

func (t *task) settle(how ledger.Settlement, d policies.Decision) error {
	if how == ledger.Verified {
		t.tellLag()
	}
	return t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: how, Verdict: t.judged.Verdict.String(),
		Rule: d.Rule, Reason: d.Reason, In: t.recheckIn(how), Until: t.recheckUntil(how)})
}

func (t *task) escalate(d policies.Decision) error {
	if t.rec.Sends > 0 && !t.profile.Blind {
		return t.escalateFor(d, reviewFirst)
	}
	return t.escalateFor(d, 0)
}

// escalateFor hands the write to a person, and has it looked at again after a
// while; 0 leaves it to the person alone.
func (t *task) escalateFor(d policies.Decision, again time.Duration) error {
	t.log().Warn("a person must look", "reason", t.scope().Text(d.Reason))
	return t.commit(ledger.Event{Kind: ledger.EvEscalated, Verdict: t.judged.Verdict.String(), Rule: d.Rule, Reason: d.Reason, In: again})
}

// announce makes the next send durable before it is made.
func (t *task) announce(d policies.Decision) (parked bool, err error) {
	if t.life.ending.Err() != nil {
		return true, t.commit(handBack)
	}
	if why, err := t.removesWrongly(); why != "" || err != nil {
		if err == nil {
			err = t.escalate(policies.Decision{Rule: ruleSurplus, Reason: why})
		}
		return false, err
	}
	if d.Permit.Repair {
		if unfit := verify.Fits(t.conn, t.profile, t.repair()); unfit != nil {
			d.Reason = "it cannot be repaired by an update: " + unfit.Error()
			return false, t.escalate(d)
		}
	}
	ev := t.announcement(d.Permit)
	if d.Permit.Conditional && !ev.Conditional {
		// The table allowed a conditional send only; without its condition it
		// must not be made.
		d.Reason = "a conditional repeat was allowed, and there is no pre-state to make it conditional on"
		return false, t.escalate(d)
	}
	if hold := t.enter(); hold != nil {
		err := t.commit(t.putBack(hold))
		if err == nil {
			t.tellHeld()
		}
		return true, err
	}
	if err := t.commit(t.ready(ev)); err != nil {
		return false, err
	}
	t.mine = t.rec.State == ledger.Sending
	return false, nil
}

// pause waits: here, holding the lease, or in the ledger where it takes
// longer.
func (t *task) pause(d time.Duration, why policies.Decision) (parked bool, err error) {
	if d > t.e.opts.Patience || t.life.ending.Err() != nil {
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, In: max(d, 0), Rule: why.Rule, Reason: why.Reason})
	}
	if time.Since(t.leased) > t.rec.LeaseFor/3 {
		if err := t.commit(); err != nil {
			return false, err
		}
	}
	if !sleep(t.life.ending, t.e.ctx, d) {
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: why.Rule, Reason: why.Reason})
	}
	return false, nil
}

// relook reads a write that a person has: a later read may settle it, or show
// a repeat to be harmless. Everything else stays with the person.
func (t *task) relook() error {
	if t.profile.Blind { // no read can settle it
		return t.commit(ledger.Event{Kind: ledger.EvEscalated})
	}
	if handled, err := t.awaitUndoing(); handled || err != nil {
		return err
	}
	if handled, err := t.awaitRemoval(); handled || err != nil {
		return err
	}
	if parked, err := t.lookUntilAgreed(); parked || err != nil {
		return err
	}
	c := t.policyCase()
	d := t.decide(c)
	switch {
	case t.rec.Passed && d.Kind == policies.Retry: // others of its line may have come after it
	case d.Kind == policies.Accept, d.Kind == policies.Fail, d.Kind == policies.Retry:
		ev := ledger.Event{Kind: ledger.EvDirected, Rule: "a later read", Reason: orElse(d.Reason, "a later read settles it")}
		if err := t.note(ev); err != nil {
			return err
		}
		if parked, err := t.act(c, d); parked || err != nil {
			return err
		}
		return t.run()
	}
	return t.commit(t.leaveToPerson())
}

// leaveToPerson puts a write in review back. Why the person has it stays as it
// was.
func (t *task) leaveToPerson() ledger.Event {
	ev := ledger.Event{Kind: ledger.EvDeferred, In: t.nextLook(0)}
	if ev.In == 0 {
		ev.Kind = ledger.EvEscalated
	}
	return ev
}

// lookUntilAgreed looks, and looks again while what verified has not been seen
// often enough.
func (t *task) lookUntilAgreed() (parked bool, err error) {
	for {
		if err := t.look(); err != nil {
			return false, err
		}
		if t.judged.Verdict != verify.Verified || t.agreeing >= t.profile.Confirm() {
			return false, nil
		}
		if parked, err := t.pause(t.nextRead(t.policyCase()), policies.Decision{}); parked || err != nil {
			return parked, err
		}
	}
}

// nextLook is the pause before the next look at a write that is in review or
// owes a look that long after its send, ever longer, 0 for no more.
func (t *task) nextLook(owed time.Duration) time.Duration {
	since := t.sinceSend()
	if since > owed+reviewEnd {
		return 0
	}
	return min(max(since, reviewFirst), reviewMost)
}

// handle continues a record that was claimed by a call made at that time.
func (e *Engine) handle(rec ledger.Record, claimed time.Time, l life) error {
	if rec.Entrusted {
		return nil // its caller has it; the lease ends by itself
	}
	l, s := e.stretch(l, &rec, stageOf(rec))
	defer s.end()
	return s.done(e.handleIn(rec, claimed, l))
}

// handleIn is handle in a stretch of work.
func (e *Engine) handleIn(rec ledger.Record, claimed time.Time, l life) error {
	if lapsed(rec) {
		return e.lapse(rec, claimed, l)
	}
	t, err := e.newTask(rec, claimed, l)
	if err != nil {
		return e.unworkable(rec, err)
	}
	defer t.unsent()
	if l.ending.Err() != nil {
		return t.giveBack()
	}
	switch rec.State {
	case ledger.Settled:
		return t.recheck()
	case ledger.Review:
		return t.relook()
	}
	return t.run()
}

// giveBack hands a record back that was claimed and not begun. Of one that was
// found announced it records that it may have been sent.
func (t *task) giveBack() error {
	switch t.rec.State {
	case ledger.Held:
		return nil // its lease ends by itself
	case ledger.Sending:
		return t.commit(t.recovered(), handBack)
	}
	return t.commit(handBack)
}

// unworkable puts a record back that this process cannot work on, for example
// because its destination is not registered here, and says so.
func (e *Engine) unworkable(rec ledger.Record, why error) error {
	failure := &Error{ID: rec.ID, Known: KnownNothing, Err: why}
	t := &task{e: e, life: e.life()}
	t.adopt(rec, time.Now())
	var events []ledger.Event
	switch rec.State {
	case ledger.Held:
		return failure // its lease ends by itself
	case ledger.Sending:
		events = append(events, t.recovered())
	}
	events = append(events, ledger.Event{Kind: ledger.EvDeferred, Rule: "unworkable", Reason: why.Error(),
		In: min(max(rec.Now.Sub(rec.Created)/2, unworkableFirst), unworkableMost)})
	if err := t.commit(events...); err != nil {
		return err
	}
	return failure
}

// undoing is the compensating intent with what the engine alone decides, and what
// is sensitive in the write itself.
func (t *task) undoing(w intent.WriteIntent) intent.WriteIntent {
	w = undoing(t.rec, w)
	w.Sensitive = redact.Marks(w.Sensitive, t.intent.Sensitive)
	return w
}

// undoing is the compensating intent with what the engine alone decides.
func undoing(parent ledger.Record, w intent.WriteIntent) intent.WriteIntent {
	w.Tenant, w.Workflow, w.Step, w.Tool, w.Call = parent.Tenant, parent.Workflow, parent.Step, parent.Tool, parent.Call
	w.CorrelationID, w.Compensates = parent.CorrelationID, string(parent.ID)
	w.Risk, w.Reversibility, w.OnMismatch, w.IdempotencyKey = "", "", "", ""
	return w
}
