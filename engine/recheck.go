package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// recheck reads a settled write again. An effect that is gone, or that appeared or duplicated
// later, goes to a reviewer.
func (t *task) recheck() error {
	if t.profile.WriteOnly { // it was readable when the recheck was scheduled; none was made
		return t.escalateFor(policies.Decision{Rule: "recheck", Reason: "it is to be read again, and " + connectors.ErrWriteOnly.Error() + " any more"}, 0)
	}
	for {
		again, err := t.recheckOnce()
		if err != nil || !again {
			return err
		}
	}
}

// recheckOnce makes one read of a recheck. It reports whether that must be repeated now: a
// failed read is repeated at the pace of first reads.
func (t *task) recheckOnce() (again bool, err error) {
	verified := t.ref()
	if parked, err := t.readBack(); parked || err != nil {
		return false, err
	}
	c := t.policyCase()
	c.Again = t.madeAgain(verified)
	if t.rec.Settlement == ledger.Compensated && c.Verdict == verify.Mismatched && t.before != nil && len(t.before.Records) > 0 {
		c.Undone = true // the restored record is there, whatever others have changed since
	}
	d := t.decided(c, func() policies.Decision { return policies.Recheck(c, t.rec.Settlement == ledger.Verified) })
	var later ledger.ID
	if d.Kind == policies.Escalate && c.Verdict != verify.Duplicated && !c.Ours && !(c.Again && t.judged.Stamped) && !t.cameAfterAll() {
		if later, err = t.superseded(); err != nil {
			return false, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "recheck", Reason: err.Error(), In: max(t.pauseBeforeRead(0), reviewFirst)})
		}
		if later != "" {
			d = policies.Decision{Kind: policies.Accept, Rule: "recheck", Reason: fmt.Sprintf("write %s has changed the record since: %s", later, d.Reason)}
		}
	}
	if d.Kind == policies.Accept && later == "" && len(t.judged.Mismatches) > 0 {
		if later, err = t.superseded(); err != nil { // it is only named: a receipt then calls it unknown
			t.log().Warn("which write has changed the record since is not known", "error", err)
		}
	}
	next := t.pauseBeforeRead(t.recheckDue())
	if t.judged.Login { // it can be made when an operator has renewed the credentials, however late
		next = policies.PausePreparing(t.sinceByClock(), t.judged)
	}
	switch {
	case d.Kind == policies.Accept:
		return false, t.commit(ledger.Event{Kind: ledger.EvRechecked, Rule: d.Rule, Reason: d.Reason, Later: later, In: t.nextRecheck(),
			Until: t.recheckUntil(t.rec.Settlement)})
	case d.Kind == policies.Wait && next > 0:
		if t.rec.Unproven > 0 {
			next = policies.RecheckPause(t.rec.Unproven)
		}
		parked, err := t.pause(next, d)
		return !parked, err
	}
	// The caller received an outcome and may have acted on it, and later writes of the queue
	// came after it. No later read closes this, or sends anything.
	return false, t.escalateFor(d, 0)
}

func (t *task) rechecks(how ledger.Status) []time.Duration {
	return policies.Rechecks(t.rec, t.profile, how, t.e.opts.Recheck)
}

// recheckIn returns when a write that is settled now needs its first recheck, 0 for never.
func (t *task) recheckIn(how ledger.Status) time.Duration {
	for _, at := range t.rechecks(how) {
		return max(at-t.sinceSend(), time.Second)
	}
	return 0
}

// recheckUntil returns the time until the last recheck of a write settled this way is due, 0
// for none.
func (t *task) recheckUntil(how ledger.Status) (in time.Duration) {
	for _, at := range t.rechecks(how) {
		in = max(at-t.sinceByClock(), 0)
	}
	return in
}

// nextRecheck returns when a write that was just rechecked needs its next recheck, 0 for never.
func (t *task) nextRecheck() time.Duration {
	for _, at := range t.rechecks(t.rec.Settlement) {
		if in := at - t.sinceByClock(); in > 0 {
			return in
		}
	}
	return policies.StillCreates(t.policyCase()) // all are over by a clock that stepped
}

// recheckDue returns which of the rechecks is being made.
func (t *task) recheckDue() (last time.Duration) {
	for _, at := range t.rechecks(t.rec.Settlement) {
		if at <= t.sinceByClock() {
			last = at
		}
	}
	return last
}

// madeAgain reports whether the record of a verified create is now another record of ours: an
// earlier send arrived after the verified one was deleted.
func (t *task) madeAgain(verified string) bool {
	return t.intent.Write == intent.Create && t.judged.Record != nil && verified != "" && t.judged.Record.Ref != verified &&
		(t.judged.Stamped || !t.profile.Stamped)
}

// cameAfterAll reports whether the effect of a write settled as not applied is there, with the
// write's own stamp: no other write of ours creates that.
func (t *task) cameAfterAll() bool {
	stamp := t.stamp
	return t.rec.Settlement != ledger.Verified && stamp != "" &&
		slices.ContainsFunc(t.seen.Records, func(r connectors.Record) bool { return r.Stamp == stamp })
}

// superseded returns a later write of ours that has, or may have, changed the same record since
// this one was sent, or "". A change or removal by that write does not mean that this one was
// reverted.
func (t *task) superseded() (ledger.ID, error) {
	if t.rec.KeyDigest == "" {
		return "", nil
	}
	f := ledger.Search{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: 200}
	unread, newer := 0, true
	for range supersededPages {
		found, err := t.e.ledger.Find(t.lifetime.hard, f)
		if err != nil {
			return "", err
		}
		for _, r := range found.Records {
			newer = newer && r.ID != t.rec.ID // the newest come first
			if t.supersedes(r, newer) {
				return r.ID, nil
			}
		}
		unread += len(found.Unread)
		if f.After = found.Next; f.After == "" {
			break
		}
		if err := t.commit(); err != nil { // renews the lease
			return "", err
		}
	}
	if unread > 0 { // it stays unreadable until an operator repairs it: a needless alarm is better than none
		t.log().Warn("whether a later write has changed the record was not found out; a reviewer is asked", "unreadable", unread)
	}
	return "", nil
}

// supersedes reports the same for one write, which is newer or older than this one. An older
// one counts if the ledger's clock was stopped between their first sends because it had been
// set back.
func (t *task) supersedes(r ledger.Record, newer bool) bool {
	later := r.FirstSend.After(t.rec.FirstSend) || newer && r.FirstSend.Equal(t.rec.FirstSend)
	nothing := r.Sends == r.Unsent || r.Settlement == ledger.NotApplied || r.Settlement == ledger.Denied
	if r.ID == t.rec.ID || r.ID == t.rec.Child || r.KeyDigest != t.rec.KeyDigest || nothing || !later {
		return false
	}
	return t.judged.Verdict != verify.Absent || removes(r)
}

// removes reports whether a write can have removed its record: by itself, or by being undone. The
// effect of a pruned write is unknown. An intent gives its record no other key, and one that cannot
// be read explains nothing.
func removes(r ledger.Record) bool {
	if r.Tombstone || r.Child != "" {
		return true
	}
	w, err := intent.DecodeStored(r.Intent)
	return err == nil && w.Write == intent.Delete
}
