package engine

import (
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// unverified reports whether the look at an answered send was put off on
// purpose.
func unverified(rec ledger.Record) bool { return rec.State == ledger.Checking && rec.Unverified }

// putOff leaves an answered write unverified until a batch looks at it, where
// the rules of verification say so. Who asked need not wait; the write stays in
// line, and whoever waits behind it has it looked at.
func (t *task) putOff() (off bool, err error) {
	within, later := t.lookLater()
	if !later {
		return false, nil
	}
	err = t.commit(ledger.Event{Kind: ledger.EvDeferred, Unverified: true, In: batchIn(t.now(), within),
		Rule: "verify", Reason: "the destination said yes; it is looked at in a batch"})
	if err != nil {
		return false, err
	}
	return t.hurried()
}

// lookLater reports whether the look that is owed may be put off, and how long:
// only the first look at the only send, which was answered.
func (t *task) lookLater() (time.Duration, bool) {
	r := t.rec
	plain := r.State == ledger.Checking && r.Sends == 1 && r.LastFate == ledger.FateAnswered && !r.Unknown && r.Directed == ""
	if !plain || !r.FirstLook.IsZero() || r.Unverified || r.Parent != "" {
		return 0, false
	}
	return t.batched()
}

// batched reports whether the rules of verification have the write read in a batch, and
// within how long.
func (t *task) batched() (time.Duration, bool) {
	if len(t.e.opts.Verify) == 0 {
		return 0, false
	}
	w := t.intent
	w.Risk = t.risk()
	return policies.LookLater(t.e.opts.Verify, w, t.profile)
}

// batchIn is when a batch looks: at the last of few moments of the clock within
// the time, which are the same for all writes, so that many are looked at at
// once, and not all of them at one moment.
func batchIn(now time.Time, within time.Duration) time.Duration {
	step := within / batchSteps
	if step <= 0 {
		return within
	}
	return now.Add(within).Truncate(step).Sub(now)
}

// hurried takes a write that was just put off up again when another one waits
// behind it: one that came before the ledger knew that this one was put off.
func (t *task) hurried() (off bool, err error) {
	if t.rec.KeyDigest == "" {
		return true, nil
	}
	queued, err := t.e.ledger.List(t.life.hard, ledger.Filter{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, States: []ledger.State{ledger.Queued}})
	for _, other := range queued {
		if other.Behind == "" {
			continue
		}
		claimed, asked, err := t.e.lent(t.life.hard, ledger.Claim{Owner: t.e.opts.Owner, LeaseFor: t.e.leaseFor(t.rec), Tenant: t.rec.Tenant, ID: t.rec.ID, Early: true})
		switch {
		case err != nil: // it is put off, and that is its outcome for now
			t.log().Warn("a look that another write waits for was not brought forward", "error", err)
			return true, nil
		case len(claimed) == 0: // somebody else hurried it
			return true, nil
		}
		t.adopt(claimed[0], asked)
		return false, nil
	}
	if err != nil { // it is due soon enough, and who waits is no worse off than before
		t.log().Warn("whether another write waits was not found out", "error", err)
	}
	return true, nil
}
