package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// ruleSurplus marks the review of a write that is doubled and has its surplus
// record removed. That record is removed by a compensating write under the one
// key that an undoing of this write has, so that there is never a second one.
const ruleSurplus = "surplus"

// removal is the write that removes a surplus record, or why there is none.
type removal struct {
	intent intent.WriteIntent
	ref    string
	why    string
}

// reopenForRemoval hands a verified write that was just found doubled to a
// person, with a mark by which the next look at it has the surplus record
// removed. It reports whether it did; where it did not, a person decides.
func (t *task) reopenForRemoval() (reopened bool, err error) {
	if t.judged.Verdict != verify.Duplicated || t.rec.Settlement != ledger.Verified || !t.mayRemove() {
		return false, nil
	}
	if settle, _ := t.profile.Settle.Declared(); !t.judged.Firm && t.sinceSend() < settle { // this process began just now
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "recheck", Reason: "the read may be older than the last send", In: settle})
	}
	switch _, err := t.e.ledger.Get(t.life.hard, t.rec.Tenant, undoingID(t.rec)); {
	case err == nil: // one removal or undoing is all there ever is
		return false, nil
	case !errors.Is(err, ledger.ErrNotFound):
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "recheck", Reason: err.Error(), In: childMost})
	}
	plan, err := t.planRemoval()
	switch {
	case err != nil:
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "recheck", Reason: err.Error(), In: childMost})
	case plan.why != "":
		return false, nil
	}
	return true, t.escalateFor(policies.Decision{Rule: ruleSurplus,
		Reason: fmt.Sprintf("a later look found two records; the surplus one, %s, is to be removed", plan.ref)}, surplusPause)
}

// mayRemove reports whether a removal is thinkable: what policies say comes
// after it.
func (t *task) mayRemove() bool {
	w := t.intent
	_, can := t.conn.(connectors.Remover)
	return can && w.Write == intent.Create && w.Reversibility == intent.Compensable && w.OnMismatch == intent.MismatchCompensate &&
		t.rec.Passed && t.rec.Parent == "" && t.rec.KeyDigest != "" && t.rec.Child == ""
}

// undoingID is the id of the one write that can undo this one, or remove its
// surplus record.
func undoingID(r ledger.Record) ledger.ID {
	return ledger.IDOf(undoing(r, intent.WriteIntent{}).StructuralKey())
}

// removed reports whether a compensating write was verified.
func removed(child ledger.Record) bool {
	return child.State == ledger.Settled && child.Settlement == ledger.Verified
}

// awaitRemoval looks after a write that is with a person while its surplus
// record is removed. It reports whether the write is one.
func (t *task) awaitRemoval() (handled bool, err error) {
	if !t.mayRemove() {
		return false, nil
	}
	events, err := t.e.ledger.Events(t.life.hard, t.rec.Tenant, t.rec.ID)
	if err != nil {
		return true, err
	}
	if !aboutSurplus(events) {
		return false, nil
	}
	child, err := t.e.ledger.Get(t.life.hard, t.rec.Tenant, undoingID(t.rec))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return true, t.beginRemoval()
	case err != nil:
		return true, err
	}
	return true, t.afterRemoval(child)
}

// aboutSurplus reports whether the last reason why a person has the write is its
// surplus record. What puts a write back gives no reason.
func aboutSurplus(events []ledger.Event) bool {
	about := false
	for _, e := range events {
		switch {
		case e.Kind == ledger.EvEscalated && e.Rule != "":
			about = e.Rule == ruleSurplus
		case e.Kind == ledger.EvDirected: // a person has said something else
			about = false
		}
	}
	return about
}

// beginRemoval looks once more, and registers the removal when it finds the
// same as before.
func (t *task) beginRemoval() error {
	if err := t.look(); err != nil {
		return err
	}
	if t.judged.Verdict == verify.Unavailable || t.judged.Verdict == verify.Indeterminate {
		return t.commit(t.leaveToPerson())
	}
	plan, err := t.planRemoval()
	switch {
	case err != nil:
		return err
	case plan.why != "":
		return t.staysWithPerson("a later look found more records than declared, and nothing was removed: " + plan.why)
	}
	if err := t.commit(); err != nil { // and the lease is ours still
		return err
	}
	child, err := t.carried(plan.intent)
	switch {
	case hopeless(err):
		return t.staysWithPerson("the surplus record was not removed: " + err.Error())
	case err != nil:
		return t.commit(ledger.Event{Kind: ledger.EvDeferred, In: childMost})
	}
	return t.afterRemoval(child)
}

// carried carries the removal on, and keeps the lease on this write meanwhile.
func (t *task) carried(w intent.WriteIntent) (ledger.Record, error) {
	defer t.keepLease()()
	return t.e.carry(t.rec, w, t.scope(), t.life)
}

// afterRemoval says what follows from how far the removal is. It is a write of
// its own, which workers carry on.
func (t *task) afterRemoval(child ledger.Record) error {
	switch {
	case removed(child):
		return t.closeRemoved(child)
	case child.State == ledger.Settled:
		return t.staysWithPerson(fmt.Sprintf("the surplus record was not removed: write %s is %s: %s", child.ID, child.Phase(), child.Reason))
	case child.State == ledger.Review, child.State == ledger.Held:
		return t.commit(t.leaveToPerson())
	}
	return t.commit(ledger.Event{Kind: ledger.EvDeferred, In: min(max(t.now().Sub(child.Created)/2, childFirst), childMost)})
}

// closeRemoved settles a write as verified, again, when just the record is left
// that was verified before.
func (t *task) closeRemoved(child ledger.Record) error {
	kept, err := t.verifiedRef()
	if err != nil {
		return err
	}
	if parked, err := t.lookUntilAgreed(); parked || err != nil {
		return err
	}
	j, settle := t.judged, t.profile.Settle
	switch {
	case j.Verdict == verify.Verified && j.Firm && j.Record != nil && kept != "" && j.Record.Ref == kept && j.Record.Stamp == t.intent.Stamp():
		return t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: j.Verdict.String(), Rule: ruleSurplus,
			Reason: fmt.Sprintf("found exactly as declared, now that a surplus record is gone (write %s)", child.ID), In: t.recheckIn(ledger.Verified), Until: t.recheckUntil(ledger.Verified)})
	case j.Verdict == verify.Unavailable, j.Verdict == verify.Indeterminate,
		j.Verdict == verify.Duplicated && !settle.Passed(t.now().Sub(child.SettledAt)) && t.now().Sub(child.SettledAt) < reviewEnd:
		return t.commit(t.leaveToPerson())
	}
	return t.staysWithPerson(fmt.Sprintf("a surplus record is gone (write %s), and what is there now is not as declared: %s", child.ID, j.Reason))
}

// staysWithPerson leaves the write in review for good: no later look closes it.
func (t *task) staysWithPerson(why string) error {
	return t.escalateFor(policies.Decision{Rule: "recheck", Reason: why}, 0)
}

// planRemoval builds the write that removes the surplus record from what was
// seen last, where policies and connector agree to it.
func (t *task) planRemoval() (removal, error) {
	c := t.policyCase()
	remover, can := t.conn.(connectors.Remover)
	verified, err := t.verifiedRef()
	if err != nil {
		return removal{}, err
	}
	other, err := t.otherWrite()
	if err != nil {
		return removal{}, err
	}
	c.Doubled = &policies.Doubled{Records: t.seen.Records, Verified: verified, Other: string(other), Removable: can && t.mayRemove()}
	if d := policies.Decide(c, t.e.opts.Policies); d.Kind != policies.Remove {
		return removal{why: d.Reason}, nil
	}
	surplus, why := policies.Surplus(c)
	if why != "" {
		return removal{why: why}, nil
	}
	w, err := removeBy(remover, t.intent, surplus)
	if err == nil {
		w = t.undoing(w)
		err = t.removesOne(w)
	}
	if err != nil {
		return removal{why: err.Error()}, nil //nolint:nilerr // that it cannot be built is an answer
	}
	return removal{intent: w, ref: surplus.Ref}, nil
}

// removesOne refuses what a connector built that is no removal of one record.
func (t *task) removesOne(w intent.WriteIntent) error {
	if err := w.Validate(); err != nil {
		return err
	}
	about, err := w.KeyDigest()
	switch {
	case err != nil:
		return err
	case w.Write != intent.Delete || w.Want() != 1 || w.Destination != t.intent.Destination || w.Kind != t.intent.Kind:
		return fmt.Errorf("the connector's removal is no delete of one %s", t.intent.Kind)
	case about == t.rec.KeyDigest:
		return errors.New("the connector's removal names the key that both records share")
	case len(w.Require) == 0:
		return errors.New("the connector's removal requires nothing of the record")
	}
	return verify.Fits(t.conn, t.profile, w)
}

// removeBy asks the connector; one that panics knows no removal.
func removeBy(by connectors.Remover, w intent.WriteIntent, surplus connectors.Record) (undo intent.WriteIntent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the connector's remove panicked: %.*v", maxReason, p)
		}
	}()
	return by.Remove(w, surplus)
}

// verifiedRef is the destination's own id of the record that was verified. It is
// known only where every answer and every read of the write named the same.
func (t *task) verifiedRef() (string, error) {
	events, err := t.e.ledger.Events(t.life.hard, t.rec.Tenant, t.rec.ID)
	if err != nil {
		return "", err
	}
	ref, verified := t.ref(), false
	for _, e := range events {
		verified = verified || e.Kind == ledger.EvSettled && e.Settlement == ledger.Verified && ref != ""
		named, err := t.scope().OpenName(e.Ref)
		if err != nil {
			return "", unopened(t.rec.ID, "the name of its record", err)
		}
		if named != "" && named != ref {
			return "", nil
		}
	}
	if !verified {
		return "", nil
	}
	return ref, nil
}

// otherWrite is a write of ours under the same key that is open, or that has or
// may have changed a record since this one was sent; "" when there is none.
func (t *task) otherWrite() (ledger.ID, error) {
	found, err := t.e.ledger.List(t.life.hard, ledger.Filter{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: 1000})
	if err != nil {
		return "", err
	}
	for _, r := range found {
		if r.ID != t.rec.ID && r.State != ledger.Settled {
			return r.ID, nil
		}
	}
	if len(found) >= 1000 {
		return found[0].ID, nil // too many to be sure
	}
	return t.superseded()
}

// removesWrongly says why a removal that was not sent at once must not be sent
// any more, "" for what is no removal and for one that still is right: its write
// still waits for it, and a look just made finds the same two records.
func (t *task) removesWrongly() (string, error) {
	if t.rec.Parent == "" {
		return "", nil
	}
	parent, err := t.e.ledger.Get(t.life.hard, t.rec.Tenant, t.rec.Parent)
	if err != nil {
		return "", &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	}
	if parent.Child != "" { // it undoes the whole write
		return "", nil
	}
	if parent.State != ledger.Review {
		return fmt.Sprintf("write %s, whose surplus record it removes, is %s", parent.ID, parent.Phase()), nil
	}
	p, err := t.e.newTask(parent, time.Now(), t.life)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // nobody can tell that it is still right
	}
	if err := p.look(); err != nil { // nothing of it is kept: this process does not hold the parent
		return "", err
	}
	plan, err := p.planRemoval()
	if err != nil {
		return "", err
	}
	if plan.why != "" {
		return "what is there is not any more what it was built for: " + plan.why, nil
	}
	asked, err := plan.intent.Digest()
	if err == nil && asked != t.rec.Digest {
		return "the surplus record is not any more the one that it was built for", nil
	}
	return "", err
}
