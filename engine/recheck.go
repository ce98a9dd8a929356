package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// recheck looks again at a settled write: an effect that is gone, or that
// came or doubled later, goes to a person.
func (t *task) recheck() error {
	if t.profile.Blind { // it could be read when the look was promised, and nobody has made it
		return t.escalateFor(policies.Decision{Rule: "recheck", Reason: "a recheck is owed, and " + connectors.ErrBlind.Error() + " any more"}, 0)
	}
	for {
		again, err := t.recheckOnce()
		if err != nil || !again {
			return err
		}
	}
}

// recheckOnce makes one read of a recheck. It reports whether that must be made
// again now: a read that failed is repeated at the pace of first reads.
func (t *task) recheckOnce() (again bool, err error) {
	verified := t.ref()
	if err := t.look(); err != nil {
		return false, err
	}
	c := t.policyCase()
	c.Again = t.madeAgain(verified)
	if t.rec.Settlement == ledger.Compensated && c.Verdict == verify.Mismatched && t.before != nil && len(t.before.Records) > 0 {
		c.Undone = true // what was brought back is there, whatever others have made of it since
	}
	d := t.decided(c, func() policies.Decision { return policies.Recheck(c, t.rec.Settlement == ledger.Verified) })
	if reopened, err := t.reopenForRemoval(); reopened || err != nil {
		return false, err
	}
	var later ledger.ID
	if d.Kind == policies.Escalate && c.Verdict != verify.Duplicated && !c.Ours && !(c.Again && t.judged.Stamped) && !t.cameAfterAll() {
		if later, err = t.superseded(); err != nil {
			return false, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "recheck", Reason: err.Error(), In: max(t.nextLook(0), reviewFirst)})
		}
		if later != "" {
			d = policies.Decision{Kind: policies.Accept, Rule: "recheck", Reason: fmt.Sprintf("write %s has changed the record since: %s", later, d.Reason)}
		}
	}
	if d.Kind == policies.Accept && later == "" && len(t.judged.Mismatches) > 0 {
		if later, err = t.superseded(); err != nil { // it is only named: a receipt says then that it is not known
			t.log().Warn("which write has changed the record since is not known", "error", err)
		}
	}
	next := t.nextLook(t.owed())
	if t.judged.Login { // it can be made when an operator has renewed the credentials, however late
		next = policies.PausePreparing(t.sinceByClock())
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
	// The caller heard of an outcome and may have acted on it, and others of the
	// line came after it: no later read closes this, or sends anything.
	return false, t.escalateFor(d, 0)
}

func (t *task) rechecks(how ledger.Settlement) []time.Duration {
	return policies.Rechecks(t.rec, t.profile, how, t.e.opts.Recheck)
}

// recheckIn is when a write that is settled now is first to be looked at again, 0
// for never.
func (t *task) recheckIn(how ledger.Settlement) time.Duration {
	for _, at := range t.rechecks(how) {
		return max(at-t.sinceSend(), time.Second)
	}
	return 0
}

// recheckUntil is how long it takes until the last recheck of a write that is
// settled so is due, 0 where none is.
func (t *task) recheckUntil(how ledger.Settlement) (in time.Duration) {
	for _, at := range t.rechecks(how) {
		in = max(at-t.sinceByClock(), 0)
	}
	return in
}

// nextRecheck is when a write that was just rechecked is to be looked at again, 0
// for never.
func (t *task) nextRecheck() time.Duration {
	for _, at := range t.rechecks(t.rec.Settlement) {
		if in := at - t.sinceByClock(); in > 0 {
			return in
		}
	}
	return policies.StillCreates(t.policyCase()) // all are over by a clock that stepped
}

// owed is which of the rechecks is being made.
func (t *task) owed() (last time.Duration) {
	for _, at := range t.rechecks(t.rec.Settlement) {
		if at <= t.sinceByClock() {
			last = at
		}
	}
	return last
}

// madeAgain reports whether the record of a verified create is another one than
// was verified, and ours: an earlier send landed after it was deleted.
func (t *task) madeAgain(verified string) bool {
	return t.intent.Write == intent.Create && t.judged.Record != nil && verified != "" && t.judged.Record.Ref != verified &&
		(t.judged.Stamped || !t.profile.Stamped)
}

// cameAfterAll reports whether what a write left that was settled as not applied
// is there, and bears its own stamp: no other write of ours makes that.
func (t *task) cameAfterAll() bool {
	stamp := t.intent.Stamp()
	return t.rec.Settlement != ledger.Verified && stamp != "" &&
		slices.ContainsFunc(t.seen.Records, func(r connectors.Record) bool { return r.Stamp == stamp })
}

// superseded is a later write of ours that has, or may have, changed the same
// record since this one was sent; "" when there is none. What it changed or
// removed is no sign that this one was taken back.
func (t *task) superseded() (ledger.ID, error) {
	if t.rec.KeyDigest == "" {
		return "", nil
	}
	f := ledger.Search{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: 200}
	unread, newer := 0, true
	for range supersededPages {
		found, err := t.e.ledger.Find(t.life.hard, f)
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
	if unread > 0 { // it stays so until an operator repairs them: better a needless alarm than none
		t.log().Warn("whether a later write has changed the record was not found out; a reviewer is asked", "unreadable", unread)
	}
	return "", nil
}

// supersedes reports the same of one write, which is newer than this one or older.
// That counts where the ledger's clock stood still between their first sends, since it
// had been set back.
func (t *task) supersedes(r ledger.Record, newer bool) bool {
	later := r.FirstSend.After(t.rec.FirstSend) || newer && r.FirstSend.Equal(t.rec.FirstSend)
	nothing := r.Sends == r.Unsent || r.Settlement == ledger.NotApplied || r.Settlement == ledger.Denied
	if r.ID == t.rec.ID || r.ID == t.rec.Child || r.KeyDigest != t.rec.KeyDigest || nothing || !later {
		return false
	}
	return t.judged.Verdict != verify.Absent || removes(r)
}

// removes reports whether a write can have removed its record from under its key:
// by itself, by giving it another key, or by being undone. Of one that was pruned
// nobody knows what it did.
func removes(r ledger.Record) bool {
	if r.Tombstone || r.Child != "" {
		return true
	}
	w, err := intent.DecodeStored(r.Intent)
	return err != nil || w.Write == intent.Delete || r.Settlement == ledger.Verified && moves(w)
}

// moves reports whether a write declares another value for a field of its key.
func moves(w intent.WriteIntent) bool {
	shown := func(v any) string { // sealed values are compared by their digests: each is sealed with a nonce of its own
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(redact.Shown(text))
	}
	for name, value := range w.Key {
		if declared, has := w.Expect[name]; has && shown(declared) != shown(value) {
			return true
		}
	}
	return false
}
