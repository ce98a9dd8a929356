package policies

import (
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// CaseOf returns the part of a decision's case that comes from the record at a time, without
// the reads. SinceSend and sinceKey are the times that the process has counted since the last
// send, at most, and since the first one under the present key, at least.
func CaseOf(r ledger.Record, w intent.WriteIntent, p connectors.Profile, now time.Time, sinceSend, sinceKey time.Duration) Case {
	c := Case{
		Intent: w, Profile: p, Sends: r.Sends, Unsent: r.Unsent, LoginRefused: r.LoginRefused, Unknown: r.Unknown, Answered: r.Answered,
		EffectSeen: r.EffectSeen, Last: connectors.Fate(r.LastFate), LastConflict: r.LastConflict, LastRefusal: r.LastRefusal, Repaired: r.Repaired,
		SinceSend: sinceSend, SinceByClock: now.Sub(r.LastSend), SinceKey: sinceKey, Age: now.Sub(tried(r)),
		Unproven: r.Unproven, RetryAfter: r.RetryAfter, Late: Late(w, now), Directed: r.Directed,
	}
	c.OperationUnknown = w.IdempotencyKey != "" && !r.Restored.IsZero()
	if r.Answered {
		c.Named = r.Ref
	}
	return c
}

// tried returns since when the write is tried, or could be: time held by a guard does not
// count.
func tried(r ledger.Record) time.Time {
	if r.FirstSend.After(r.QueuedAt) {
		return r.FirstSend
	}
	return r.QueuedAt
}

// Late reports whether the intent's deadline has passed.
func Late(w intent.WriteIntent, now time.Time) bool {
	return !w.Deadline.IsZero() && now.After(w.Deadline)
}

// Rechecks returns how long after its last send a write that was settled this way is to be read
// again, in order. Where a send could still arrive: when it should have, and no sooner than
// soonest. Where one may have been duplicated: once more when no process can still be stalled.
// Where the destination asks for it: then too, even if the write was undone meanwhile, because
// the destination may double an effect by itself.
func Rechecks(r ledger.Record, p connectors.Profile, how ledger.Status, soonest time.Duration) []time.Duration {
	if p.WriteOnly {
		return nil
	}
	var at []time.Duration
	if r.NeedsRecheck || (how == ledger.NotApplied && (r.Unknown || r.Answered)) {
		horizon, _ := p.Horizon.Declared()
		settle, _ := p.Settle.Declared()
		landed := max(horizon+settle, soonest)
		at = append(at, landed)
		if r.NeedsRecheck {
			at = append(at, max(recheckLast, landed))
		}
	}
	after, ok := p.Recheck.Declared()
	if !ok {
		after, ok = p.Rollback.Declared()
	}
	if ok && after > 0 && (how == ledger.Verified || how == ledger.Compensated) && r.Sends > 0 {
		at = append(at, after)
	}
	slices.Sort(at)
	return at
}
