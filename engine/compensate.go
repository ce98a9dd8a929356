package engine

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// compensate registers the write that undoes this one. It is on disk, with
// what it needs, before anything of it is sent.
func (t *task) compensate(d policies.Decision) error {
	inverter, ok := t.conn.(connectors.Inverter)
	if !ok {
		d.Reason = "the connector cannot undo this write"
		return t.escalate(d)
	}
	w, err := inverter.Invert(t.intent, t.before, t.seen)
	if err == nil {
		w = undoing(t.rec, w)
		err = w.Validate()
	}
	if err != nil {
		d.Reason = "it cannot be undone: " + err.Error()
		return t.escalate(d)
	}
	child, err := ledger.NewRecord(w)
	if err != nil {
		return err
	}
	return t.commit(ledger.Event{Kind: ledger.EvCompensating, Child: child.ID, Evidence: child.Intent,
		Rule: d.Rule, Reason: d.Reason})
}

// compensating carries the compensating write on, and settles this one only
// when that one is.
func (t *task) compensating() (parked bool, err error) {
	child, err := t.e.advance(t.rec)
	var failed *Error
	if err != nil && !errors.As(err, &failed) {
		return false, t.escalate(policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s cannot be made: %v", t.rec.Child, err)})
	}
	switch {
	case err != nil:
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "compensate", Reason: err.Error(), In: childMost})
	case child.State == ledger.Settled && child.Settlement == ledger.Verified:
		return false, t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Compensated, Rule: "compensate",
			Reason: fmt.Sprintf("undone by write %s: %s", child.ID, child.Reason)})
	case child.State == ledger.Settled, child.State == ledger.Review, child.State == ledger.Held:
		return false, t.escalate(policies.Decision{Rule: "compensate",
			Reason: fmt.Sprintf("the compensating write %s is %s: %s", child.ID, child.Phase(), child.Reason)})
	}
	pause := min(max(t.now().Sub(child.Created)/2, childFirst), childMost)
	return t.pause(pause, policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s is %s", child.ID, child.Phase())})
}

// advance carries the compensating write of a record as far as it goes without
// a long wait, and returns its record.
func (e *Engine) advance(parent ledger.Record) (ledger.Record, error) {
	w, err := intent.DecodeStored(parent.ChildIntent)
	if err != nil {
		return ledger.Record{}, fmt.Errorf("%w: write %s: the stored compensation: %w", ledger.ErrCorrupt, parent.ID, err)
	}
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return ledger.Record{}, err
	}
	f, began, err := e.board(rec.ID, rec.Digest, false)
	if err != nil {
		return ledger.Record{}, &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	if began {
		err := e.beginOrContinue(w, rec, f)
		e.land(rec.ID, f, err)
		if err != nil {
			return ledger.Record{}, err
		}
	}
	return e.ledger.Get(e.ctx, rec.Tenant, rec.ID)
}

func (e *Engine) beginOrContinue(w intent.WriteIntent, rec ledger.Record, f *flight) error {
	fresh, err := e.begin(w, rec, f)
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
	return e.continueIfDue(have)
}
