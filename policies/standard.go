package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Standard returns readback's policies, in order. Put your own first:
// append([]policies.Policy{mine}, policies.Standard()...).
func Standard() []Policy {
	return []Policy{
		Func(acceptSeen), Func(notTakenUp), Func(byReviewer), Func(unseen), Func(patience),
		Func(differing), Func(again), Func(settledAbsent), Func(unproven),
	}
}

// Decide consults the policies in order and checks the decision against the rules that none of
// them can override. When no policy decides, a reviewer does.
//
// A policy that panics decides nothing, and no later one is consulted: it may have been about
// to stop the write.
func Decide(c Case, asked []Policy) (d Decision) {
	defer func() {
		if p := recover(); p != nil {
			d = Decision{Kind: Escalate, Rule: "panic", Reason: explain(c, fmt.Sprintf("a policy panicked: %.200v", p))}
		}
	}()
	for _, p := range asked {
		if d, ok := p.Decide(c); ok {
			return bounded(c, d)
		}
	}
	return Decision{Kind: Escalate, Rule: "nobody decided", Reason: explain(c, "no policy decides this case")}
}

// bounded turns a decision that a policy may not take into an escalation.
func bounded(c Case, d Decision) Decision {
	d.Permit = Permit{}
	why := ""
	switch d.Kind {
	case Escalate, Wait:
	case Accept:
		if c.Profile.WriteOnly || c.Verdict != verify.Verified && c.Verdict != verify.Vacuous {
			why = "accepted by a policy without having been seen"
		}
	case Retry:
		d.Permit = SecondSend(c)
		if !d.Permit.Allowed {
			why = "not sent again: " + d.Permit.Reason
		}
	case Fail:
		if _, known := knownNotApplied(c); !known {
			why = "it is not known that nothing took effect"
		}
	case Compensate:
		why = notUndoable(c)
	case Report:
		if !c.Profile.WriteOnly || !c.Answered {
			why = "reported by a policy where the destination can be read, or did not say yes"
		}
	default:
		why = "a policy decided what there is no word for"
	}
	if why != "" {
		return Decision{Kind: Escalate, Rule: d.Rule, Reason: explain(c, why)}
	}
	return d
}

// notUndoable returns why a write must not be undone now, "" when it may be.
func notUndoable(c Case) string {
	switch {
	case c.Profile.WriteOnly:
		return "the destination cannot be read, so that nothing there can be undone by what it shows"
	case c.Intent.Reversibility != intent.Compensable:
		return "the caller did not allow that it is undone"
	case !c.Invertible:
		return "there is no way to undo this write at its destination"
	case c.Conflict:
		return "the last read found a conflict"
	case !c.Effect():
		return "the last read shows nothing that could be undone"
	case !c.Own && c.Directed != DirectCompensate:
		return notProvenOurs
	case c.Intent.Write != intent.Create && !based(c) && c.Directed != DirectCompensate:
		return "the read before the send may have been out of date: undoing could take back what another actor did just before"
	case !c.Conclusive:
		return "the last read may be older than the send that is to be undone"
	case c.Unknown && !settledFate(c):
		return "a send may still arrive: undoing now could come before it"
	}
	return ""
}

// Undo decides whether a write that was settled as verified may be undone without a reviewer,
// by the read that settled it: Compensate, or Escalate with the reason. Stated reports
// that the caller provides the undo. The undo itself must require that no other actor has changed the
// record since.
func Undo(c Case, stated bool) Decision {
	_, ends := c.Profile.Horizon.Declared()
	why := ""
	switch {
	case c.Verdict != verify.Verified:
		why = "the read by which it was settled does not show what it left"
	case !c.Own:
		why = notProvenOurs
	case !stated && c.Intent.Write != intent.Create && !based(c):
		why = "the read before the send may have been out of date: undoing could take back what another actor did just before"
	case !ends && c.Unknown && c.Sends-c.Unsent > 1:
		why = "an earlier send may still land, and it is not known until when"
	}
	if why != "" {
		return Decision{Kind: Escalate, Rule: "undo", Reason: explain(c, why)}
	}
	return Decision{Kind: Compensate, Rule: "undo", Reason: c.Reason}
}

// based reports whether the state that the undo would restore is the one that our send met: it
// was read reliably, or the destination checked the send against it.
func based(c Case) bool {
	return c.Based || c.Last == connectors.FateAnswered && slices.Contains(c.Profile.Conditional, c.Intent.Write)
}

const notProvenOurs = "it is not proven that this write alone made what is there: another actor may have changed the record"

func explain(c Case, why string) string {
	if c.Reason == "" {
		return why
	}
	return why + " (" + c.Reason + ")"
}

// acceptSeen accepts a result that was observed often enough.
func acceptSeen(c Case) (Decision, bool) {
	switch {
	case c.Verdict == verify.Vacuous:
		return Decision{Kind: Accept, Rule: "accept", Reason: c.Reason}, true
	case c.Verdict != verify.Verified, c.Directed == DirectCompensate:
		return Decision{}, false
	case foreignRecord(c):
		return Decision{Kind: Escalate, Rule: "accept", Reason: "the destination refused our create, and a record like it is there, which no send of this write made"}, true
	case c.Agreeing < c.Profile.Confirm():
		return Decision{Kind: Wait, Rule: "accept", Reason: fmt.Sprintf("seen %d of %d times", c.Agreeing, c.Profile.Confirm())}, true
	case mayStillLand(c):
		horizon, _ := c.Profile.Horizon.Declared()
		return Decision{Kind: Wait, After: horizon - c.SinceSend, Rule: "accept", Reason: "seen, but a send may still arrive, over what comes next"}, true
	}
	return Decision{Kind: Accept, Rule: "accept", Reason: c.Reason}, true
}

// mayStillLand reports whether a send of unknown fate can still arrive after this write is
// settled, and change what the next write of the record makes.
//   - A condition on the record's version refuses a late send. An upsert's condition can
//     be that there is no record, which is true again after a delete.
//   - A single send has arrived if the effect is proven to be its own. Otherwise another
//     actor may have made the same change.
//   - A native key refuses a late send once a send under it was applied. A response, or an
//     effect of our own, proves that.
//   - Any other repeated update, upsert or delete may arrive. A repeated create meets the
//     record: see [StillCreates].
func mayStillLand(c Case) bool {
	horizon, ends := c.Profile.Horizon.Declared()
	if !c.Unknown || !ends || c.SinceSend >= horizon || !Counting(c) {
		return false
	}
	creates := c.Intent.Write == intent.Create && !c.Repaired
	switch {
	case !creates && c.Intent.Write != intent.Upsert && slices.Contains(c.Profile.Conditional, c.Intent.Write):
		return false
	case c.Sends-c.Unsent < 2 || native(c) && c.Last != connectors.FateAnswered:
		return !c.Own
	}
	return !creates && !native(c)
}

// StillCreates returns how long a later delete or upsert of the record must wait because an
// earlier send of this create, which was repeated since, may still arrive: it would recreate
// the deleted record. A destination that recognises our key refuses it.
func StillCreates(c Case) time.Duration {
	horizon, _ := c.Profile.Horizon.Declared()
	if !createsLate(c) || c.Sends-c.Unsent < 2 || native(c) || !Counting(c) {
		return 0
	}
	return max(horizon-c.SinceSend, 0)
}

// foreignRecord reports whether a record that looks like ours cannot be: every send was refused,
// and no stamp in the record proves otherwise.
func foreignRecord(c Case) bool {
	return c.Intent.Write == intent.Create && !c.Profile.Stamped && !c.Profile.FreshKeys && !c.Unknown && !c.Answered
}

// notTakenUp handles writes of which every send was provably not applied.
func notTakenUp(c Case) (Decision, bool) {
	why, known := knownNotApplied(c)
	if c.Sends == 0 || c.Unknown || c.Answered || !known {
		return Decision{}, false
	}
	if !refusedForNow(c) || c.Late || undeliverable(c) {
		return Decision{Kind: Fail, Rule: "retry", Reason: answer(c, why)}, true
	}
	d := waitThenRetry(c, backoffAfter(c.Unsent, c.RetryAfter), why)
	if d.Kind == Wait {
		d.Reason = answer(c, why)
	}
	return d, true
}

// answer is why a send had no effect, as the connector describes it; otherwise if it does not.
func answer(c Case, otherwise string) string {
	return cmp.Or(strings.TrimPrefix(c.LastRefusal, "not applied: "), otherwise)
}

// refusedForNow reports whether the last send was not accepted, for a temporary reason.
func refusedForNow(c Case) bool {
	return c.Last == connectors.FateNotSent || c.Last == connectors.FateThrottled || c.Last == connectors.FateLogin
}

// undeliverable reports whether the destination has rejected sends for so long that no more are
// made. They are not counted in the budget, so this ends them, even where an earlier send has
// an unknown fate. A refused login ends nothing: it concerns the destination, and every write
// waits until an operator has renewed the credentials.
func undeliverable(c Case) bool {
	if c.Last == connectors.FateLogin {
		return false
	}
	return refusedForNow(c) && (c.Age > maxUndelivered || c.Unsent-c.LoginRefused >= maxUnsent)
}

func waitThenRetry(c Case, pause time.Duration, why string) Decision {
	// By the ledger's clock: a newly started process need not begin the pause anew.
	if left := pause - max(c.SinceSend, c.SinceByClock); left > 0 {
		return Decision{Kind: Wait, After: left, Rule: "retry", Reason: strings.TrimSuffix(why+": "+c.LastRefusal, ": ")}
	}
	return Decision{Kind: Retry, Rule: "retry", Reason: why}
}

// byReviewer does what a reviewer directed. The rules of Decide apply to it too.
func byReviewer(c Case) (Decision, bool) {
	switch c.Directed {
	case DirectRetry, DirectForce:
		return Decision{Kind: Retry, Rule: "person", Reason: "a reviewer asked for another send"}, true
	case DirectCompensate:
		return Decision{Kind: Compensate, Rule: "person", Reason: "a reviewer asked to undo it"}, true
	}
	return Decision{}, false
}

// patience waits while a later read can still change the verdict.
func patience(c Case) (Decision, bool) {
	wait := func(why string) (Decision, bool) {
		return Decision{Kind: Wait, Rule: "wait", Reason: explain(c, why)}, true
	}
	inTime := c.Since < window(c) && Counting(c)
	switch c.Verdict {
	case verify.Unavailable, verify.Indeterminate:
		if c.Login {
			return Decision{Kind: Wait, After: PausePreparing(max(c.SinceSend, c.SinceByClock), c.Judgement), Rule: "login",
				Reason: explain(c, "it is read when the destination accepts our login again")}, true
		}
		if open, _ := c.Profile.Open.Declared(); c.Open && max(c.SinceSend, c.SinceByClock) < open {
			return Decision{Kind: Wait, After: pauseOpen(c), Rule: "open", Reason: c.Reason}, true
		}
		// A late worker has made few reads, however long ago the send was: the destination gets
		// as many chances to respond as it would have had in time.
		if inTime || c.Unproven < unprovenReads {
			return wait("nothing is proven yet")
		}
	case verify.Mismatched:
		if !c.Conclusive && !c.Conflict && inTime {
			return wait("the read may be older than the send")
		}
	case verify.Absent, verify.Stale:
		_, known := knownNotApplied(c)
		permit := SecondSend(c)
		open := !spent(c) && !permit.Allowed || spent(c) && !known
		// The response to a repeat under a native key proves more than further reads.
		recognised := !spent(c) && permit.Row == RowNativeKey
		switch {
		case !c.Conclusive && c.Since < lag(c) && !recognised:
			return wait("reads may lag behind the send")
		case open && untouched(c) && inTime:
			return wait("the horizon of late arrivals has not passed")
		}
	}
	return Decision{}, false
}

// pauseOpen returns the pause before the next read of a record that the destination has not decided
// on: longer the longer that takes, since most are decided soon and some in days.
func pauseOpen(c Case) time.Duration {
	return min(max(max(c.SinceSend, c.SinceByClock)/openShare, openFirst), openMost)
}

// lag returns how long a weak read that shows nothing is not believed: the settle time, or our
// patience where none is declared.
func lag(c Case) time.Duration {
	if settle, ok := c.Profile.Settle.Declared(); ok {
		return settle
	}
	return undeclaredPatience
}

// window returns how long after the last send a read must have begun for the engine to give up
// reading: until a lagging read shows everything that arrived by the end of the horizon, but at
// least our patience where one of the two is not declared or the destination cannot be read.
func window(c Case) time.Duration {
	settle, settles := c.Profile.Settle.Declared()
	horizon, ends := c.Profile.Horizon.Declared()
	if !settles || !ends || c.Verdict == verify.Unavailable {
		return max(settle+horizon, undeclaredPatience)
	}
	return settle + horizon
}

// Counting reports whether a process can still be expected to count until no send can arrive
// any more. If none lives that long, a reviewer decides.
func Counting(c Case) bool { return c.SinceByClock < maxUncounted }

// spent reports whether no send is left, whatever a read shows.
func spent(c Case) bool {
	return c.Late || c.Sends-c.Unsent >= c.Budget || undeliverable(c)
}

// differing applies the intent's policy to a record that differs.
func differing(c Case) (Decision, bool) {
	if c.Verdict != verify.Mismatched {
		return Decision{}, false
	}
	escalate := Decision{Kind: Escalate, Rule: "escalate", Reason: c.Reason}
	switch {
	case c.Conflict:
		if why, known := knownNotApplied(c); known && c.MadeBy != "" {
			return Decision{Kind: Fail, Rule: "not applied", Reason: why}, true
		}
		if madeByAnother(c) && c.Unknown && c.Since < window(c) && Counting(c) {
			return Decision{Kind: Wait, Rule: "not applied", Reason: "a send may still arrive when that record goes: whether it took effect is known when none can arrive any more"}, true
		}
	case c.Intent.OnMismatch == intent.MismatchCompensate:
		if c.Unknown && !settledFate(c) && c.Since < window(c) && Counting(c) {
			return Decision{Kind: Wait, Rule: "compensate", Reason: "a send may still arrive: it is undone when none can"}, true
		}
		return Decision{Kind: Compensate, Rule: "compensate", Reason: c.Reason}, true
	case c.Intent.OnMismatch == intent.MismatchRepair && c.Own && c.Unknown && !settledFate(c) && c.Since < window(c) && Counting(c):
		return Decision{Kind: Wait, Rule: "repair", Reason: "a send may still arrive: it is repaired when none can"}, true
	case c.Intent.OnMismatch == intent.MismatchRetry, c.Intent.OnMismatch == intent.MismatchRepair:
		return Decision{Kind: Retry, Rule: "retry", Reason: c.Reason}, true
	}
	return escalate, true
}

// again sends a missing effect again, where the table allows it and the budget is not used up.
func again(c Case) (Decision, bool) {
	if !untouched(c) || spent(c) {
		return Decision{}, false
	}
	permit := SecondSend(c)
	if !permit.Allowed {
		return Decision{}, false
	}
	pause := min(c.RetryAfter, maxRetryAfter)
	if repeats := c.Sends - 1; repeats > 0 { // the first repeat need not wait: a read has just been made
		pause = max(pause, backoffAfter(repeats, c.RetryAfter))
	}
	return waitThenRetry(c, pause, permit.Reason), true
}

// settledAbsent settles a write as not applied where that is certain.
func settledAbsent(c Case) (Decision, bool) {
	if c.Verdict != verify.Absent && c.Verdict != verify.Stale {
		return Decision{}, false
	}
	if why, known := knownNotApplied(c); known {
		return Decision{Kind: Fail, Rule: "not applied", Reason: why}, true
	}
	permit := SecondSend(c)
	reason := "whether it took effect cannot be found out: " + permit.Reason
	switch {
	case gone(c):
		reason = permit.Reason
	case slices.Contains(c.Profile.Irreversible, c.Intent.Write):
		reason = "it may have taken effect and cannot be taken back: " + permit.Reason
	}
	return Decision{Kind: Escalate, Rule: "escalate", Reason: explain(c, reason)}, true
}

// unproven escalates the remaining cases to a reviewer.
func unproven(c Case) (Decision, bool) {
	why := map[verify.Verdict]string{
		verify.Unavailable:   "the destination could not be read in time",
		verify.Indeterminate: "the time is up and nothing is proven",
		verify.Duplicated:    "there are more records than requested",
		verify.Collateral:    "a field that was not requested has changed",
	}[c.Verdict]
	if why == "" {
		return Decision{}, false
	}
	return Decision{Kind: Escalate, Rule: "escalate", Reason: explain(c, why)}, true
}

// Recheck decides about a later read of a settled write: Accept when nothing contradicts the
// outcome, Wait when the read must be repeated, Escalate when the outcome is no longer true.
// Later changes of fields by other actors do not contradict it. Only an effect that is gone,
// that was duplicated, or that appeared after all does.
//
// A weak read that shows no contradiction is believed as late as one that shows nothing after a
// send.
func Recheck(c Case, verified bool) Decision {
	deletes := c.Intent.Write == intent.Delete
	gone := c.Verdict == verify.Absent && !deletes || c.Verdict == verify.Stale || c.Undone
	came := c.Effect() && !c.Undone && !(deletes && c.Verdict == verify.Mismatched) // a changed record is still there
	says := func(k Kind, why string) Decision {
		return Decision{Kind: k, Rule: "recheck", Reason: explain(c, why)}
	}
	switch {
	case c.Verdict == verify.Unavailable, c.Verdict == verify.Indeterminate:
		return says(Wait, "the pending recheck could not be made")
	case verified && c.Failed:
		return says(Escalate, "it was verified, and a later report says that it failed")
	case c.Verdict == verify.Duplicated, verified && c.Ours:
		return says(Escalate, "a later read showed more records than requested")
	case verified && c.Again:
		return says(Escalate, "it was verified, deleted since, and made again: an earlier send arrived late")
	case !verified && came:
		return says(Escalate, "it ended as not applied or undone, and a later read showed it")
	case !c.Conclusive && c.Since < lag(c):
		return says(Wait, "the read may be older than the send")
	case verified && gone && c.Profile.Proof == "": // otherwise what is gone is not the effect
		return says(Escalate, "it was verified, and a later read did not show it any more")
	}
	return says(Accept, unbroken(c, verified))
}

// unbroken returns why a later read does not change the outcome. The read's result follows in
// parentheses, and must not contradict it.
func unbroken(c Case, verified bool) string {
	changed := c.Verdict == verify.Mismatched || c.Verdict == verify.Collateral
	switch {
	case verified && changed && c.Intent.Write == intent.Delete:
		return "the record was deleted as requested, and one was made under its key since"
	case verified && changed:
		return "the record was as requested, and was changed since"
	case verified && (c.Verdict == verify.Stale || c.Verdict == verify.Absent && c.Intent.Write != intent.Delete):
		return "the record that proved the effect has been removed since"
	case !verified && changed:
		return "the record is there, and what it holds is not the effect of this write"
	}
	return "a later read agrees with the outcome"
}
