package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
)

// compensate registers the write that undoes this one. It is on disk, with
// what it needs, before anything of it is sent.
func (t *task) compensate(d policies.Decision) error {
	inverter, ok := t.conn.(connectors.Inverter)
	if !ok {
		d.Reason = "the connector cannot undo this write"
		return t.escalate(d)
	}
	w, err := invert(inverter, t.intent, t.before, t.seen)
	if err == nil {
		w = t.undoing(w)
		err = w.Validate()
	}
	var child ledger.Record
	if err == nil {
		child, err = newUndoing(w, t.scope())
	}
	if err != nil {
		d.Reason = "it cannot be undone: " + err.Error()
		return t.escalate(d)
	}
	return t.commit(ledger.Event{Kind: ledger.EvCompensating, Child: child.ID, Evidence: child.Intent,
		Rule: d.Rule, Reason: d.Reason})
}

// invert asks the connector; one that panics knows no undoing.
func invert(by connectors.Inverter, w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (undo intent.WriteIntent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the connector's invert panicked: %.*v", maxReason, p)
		}
	}()
	return by.Invert(w, before, after)
}

// compensating carries the compensating write on, and settles this one only
// when that one is.
func (t *task) compensating() (parked bool, err error) {
	if wait := t.mayStillLand(); wait > 0 {
		return t.pause(wait, policies.Decision{Rule: "compensate", Reason: "an earlier send may still land: undoing waits for the horizon"})
	}
	child, err := t.advanced()
	switch {
	case hopeless(err):
		return false, t.escalate(policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s cannot be made: %v", t.rec.Child, err)})
	case err != nil:
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "compensate", Reason: err.Error(), In: childMost})
	case t.undid(child):
		return false, t.commit(t.compensated(child))
	case removed(child):
		return false, t.escalate(policies.Decision{Rule: "compensate",
			Reason: fmt.Sprintf("write %s has the place of the undoing, and did something else than to undo this one", child.ID)})
	case child.State == ledger.Settled, child.State == ledger.Review, child.State == ledger.Held:
		return false, t.escalate(policies.Decision{Rule: "compensate",
			Reason: fmt.Sprintf("the compensating write %s is %s: %s", child.ID, child.Phase(), child.Reason)})
	}
	pause := min(max(t.now().Sub(child.Created)/2, childFirst), childMost)
	return t.pause(pause, policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s is %s", child.ID, child.Phase())})
}

// advanced carries the compensating write on, and keeps the lease on this one
// meanwhile: that one has sends, reads and pauses of its own.
func (t *task) advanced() (ledger.Record, error) {
	defer t.keepLease()()
	return t.e.advance(t.rec, t.life)
}

// keepLease renews the lease until the returned function is called. Nothing
// may be noted or committed meanwhile. A renewal that fails is tried again; who
// lost the write finds out at the next commit.
func (t *task) keepLease() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.e.ctx))
	rec, asked, done := t.rec, t.leased, make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, ctx, rec.LeaseFor/3) {
			at := time.Now()
			if renewed, err := t.e.ledger.Append(ctx, rec.ID, rec.Fence); err == nil {
				rec, asked = renewed, at
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if asked != t.leased {
			t.adopt(rec, asked)
		}
	}
}

// hopeless reports whether a compensating write can never be made: the ledger
// or the registry refuses it. A ledger that cannot be used now, or an engine
// that is closing, says nothing about it.
func hopeless(err error) bool {
	for _, final := range []error{ledger.ErrDigestMismatch, ledger.ErrBlocked, ledger.ErrCorrupt, intent.ErrInvalid, connectors.ErrUnknownDestination} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// undid reports whether a write under the key of the undoing is the undoing that
// was asked for, and verified. One that removed a surplus record has that key
// too, and undid nothing.
func (t *task) undid(child ledger.Record) bool {
	w, _, err := t.e.openChild(t.rec)
	if err != nil {
		return false
	}
	asked, err := w.Digest()
	return err == nil && child.Digest == asked && removed(child)
}

// compensated is the end of a write whose undoing was verified.
func (t *task) compensated(child ledger.Record) ledger.Event {
	return ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Compensated, Rule: "compensate",
		Reason: fmt.Sprintf("undone by write %s: %s", child.ID, child.Reason), In: t.recheckIn(ledger.Compensated), Until: t.recheckUntil(ledger.Compensated)}
}

// awaitUndoing looks after the undoing of a write that a person has. While it
// is open no read settles the write: what is there now can still be undone. It
// reports whether that was all there is to do.
func (t *task) awaitUndoing() (handled bool, err error) {
	if t.rec.Child == "" {
		return false, nil
	}
	child, err := t.e.ledger.Get(t.e.ctx, t.rec.Tenant, t.rec.Child)
	switch {
	case errors.Is(err, ledger.ErrNotFound): // it was never begun
		return false, nil
	case err != nil:
		return true, err
	case t.undid(child):
		return true, t.commit(t.compensated(child))
	case child.Settlement == ledger.NotApplied, child.Settlement == ledger.Denied, child.Settlement == ledger.Expired:
		if t.rec.Passed { // its outcome was told, and then it was to be undone: that it is as declared ends nothing
			return true, t.commit(ledger.Event{Kind: ledger.EvEscalated})
		}
		return false, nil
	}
	// However old the write is: its end follows from that of the undoing alone.
	open, most := t.now().Sub(child.Created), reviewMost
	if open > reviewEnd {
		most = undoingMost
	}
	return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, In: min(max(open, reviewFirst), most)})
}

// advance carries the compensating write of a record as far as it goes without
// a long wait, and returns its record.
func (e *Engine) advance(parent ledger.Record, l life) (ledger.Record, error) {
	w, s, err := e.openChild(parent)
	if err != nil {
		return ledger.Record{}, err
	}
	return e.carry(parent, w, s, l)
}

// carry takes a compensating write as far as it goes without a long wait, and
// returns its record. The scope has met what is sensitive in it.
func (e *Engine) carry(parent ledger.Record, w intent.WriteIntent, s *redact.Scope, l life) (ledger.Record, error) {
	rec, err := newUndoing(w, s)
	if err != nil {
		return ledger.Record{}, err
	}
	if rec.RequestedBy, err = e.undoer(parent, w); err != nil {
		return ledger.Record{}, err
	}
	rec.Trace = parent.Trace
	if parent.Passed && parent.Child != "" { // it has left its line: its undoing takes a place of its own
		rec.KeyDigest = parent.KeyDigest
	}
	f, began, err := e.board(rec.ID, rec.Digest, false)
	if err != nil {
		return ledger.Record{}, &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	if began {
		err := e.beginOrContinue(w, rec, f, l)
		e.land(rec.ID, f, err)
		if err != nil {
			return ledger.Record{}, err
		}
	}
	return e.ledger.Get(e.ctx, rec.Tenant, rec.ID)
}

// undoer is whose word an undoing is that has to be approved: somebody else must
// approve it.
func (e *Engine) undoer(parent ledger.Record, w intent.WriteIntent) (string, error) {
	if policies.Classify(e.risks(), w).Class != intent.RiskApprove {
		return parent.RequestedBy, nil
	}
	events, err := e.ledger.Events(e.ctx, parent.Tenant, parent.ID)
	if err != nil {
		return "", &Error{ID: parent.ID, Known: KnownNothing, Err: err}
	}
	who := parent.RequestedBy
	for _, ev := range events {
		directed := ev.Kind == ledger.EvDirected && ev.Directed == policies.DirectCompensate
		if directed || ev.Kind == ledger.EvCompensating && ev.Rule == ruleUndo {
			who = ev.By
		}
	}
	return who, nil
}

func (e *Engine) beginOrContinue(w intent.WriteIntent, rec ledger.Record, f *flight, l life) error {
	fresh, err := e.begin(w, rec, f, l)
	if err != nil || fresh {
		return err
	}
	have, err := e.ledger.Get(e.ctx, rec.Tenant, rec.ID)
	if err != nil {
		return err
	}
	if done(have) {
		return nil
	}
	return e.continueIfDue(have, l)
}
