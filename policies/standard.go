package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Standard are the policies that readback asks, in order. Put your own in
// front of them: append([]policies.Policy{mine}, policies.Standard()...).
func Standard() []Policy {
	return []Policy{
		Func(acceptSeen), Func(notTakenUp), Func(person), Func(unseen), Func(patience),
		Func(differing), Func(again), Func(settledAbsent), Func(unproven),
	}
}

// Decide asks the policies in order and holds the answer against the rules
// that none of them can override. When nobody decides, a person does.
//
// A policy that panics decides nothing, and none after it is asked: what it
// would have said may have been to stop.
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

// bounded turns what a policy may not decide into an escalation.
func bounded(c Case, d Decision) Decision {
	d.Permit = Permit{}
	why := ""
	switch d.Kind {
	case Escalate, Wait:
	case Accept:
		if c.Profile.Blind || c.Verdict != verify.Verified && c.Verdict != verify.Vacuous {
			why = "accepted by a policy without having been seen"
		}
	case Retry:
		d.Permit = SecondSend(c)
		if !d.Permit.Allowed {
			why = "not sent again: " + d.Permit.Reason
		}
	case Fail:
		if _, known := KnownNotApplied(c); !known {
			why = "it is not known that nothing was applied"
		}
	case Compensate:
		why = notUndoable(c)
	case Report:
		if !c.Profile.Blind || !c.Answered {
			why = "reported by a policy where the destination can be read, or did not say yes"
		}
	case Remove:
		if _, not := Surplus(c); not != "" {
			why = "no record is removed: " + not
		}
	default:
		why = "a policy decided what there is no word for"
	}
	if why != "" {
		return Decision{Kind: Escalate, Rule: d.Rule, Reason: explain(c, why)}
	}
	return d
}

// notUndoable says why a write must not be undone now, "" when it may be.
func notUndoable(c Case) string {
	switch {
	case c.Profile.Blind:
		return "nobody can look at the destination, so that nothing there can be undone by what it shows"
	case c.Intent.Reversibility != intent.Compensable:
		return "the intent does not say that it is compensable"
	case !c.Invertible:
		return "the connector cannot undo this write"
	case c.Conflict:
		return "the last read found a conflict"
	case !c.Effect():
		return "the last read shows nothing that could be undone"
	case !c.Own && c.Directed != DirectCompensate:
		return notProvenOurs
	case c.Intent.Write != intent.Create && !based(c) && c.Directed != DirectCompensate:
		return "the state before was read weakly: undoing could take back what somebody else did just before"
	case !c.Firm:
		return "the last read may be older than the send that is to be undone"
	case c.Unknown && !settledFate(c):
		return "a send may still land: undoing now could come before it"
	}
	return ""
}

// Undo says whether a write that was settled as verified may be undone by itself,
// going by the look that settled it: Compensate, or Escalate with the reason why
// a person must decide. Told says that the caller says how. That nobody has
// changed the record since is for the undoing itself to require.
func Undo(c Case, told bool) Decision {
	_, ends := c.Profile.Horizon.Declared()
	why := ""
	switch {
	case c.Verdict != verify.Verified:
		why = "the look by which it was settled does not show what it left"
	case !c.Own:
		why = notProvenOurs
	case !told && c.Intent.Write != intent.Create && !based(c):
		why = "the state before was read weakly: undoing could take back what somebody else did just before"
	case !ends && c.Unknown && c.Sends-c.Unsent > 1:
		why = "an earlier send may still land, and nobody knows until when"
	}
	if why != "" {
		return Decision{Kind: Escalate, Rule: "undo", Reason: explain(c, why)}
	}
	return Decision{Kind: Compensate, Rule: "undo", Reason: c.Reason}
}

// based reports whether what the undoing would bring back is what our send
// found: it was read surely, or the destination held the send against it.
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

// acceptSeen accepts what was seen often enough.
func acceptSeen(c Case) (Decision, bool) {
	switch {
	case c.Verdict == verify.Vacuous:
		return Decision{Kind: Accept, Rule: "accept", Reason: c.Reason}, true
	case c.Verdict != verify.Verified, c.Directed == DirectCompensate:
		return Decision{}, false
	case someoneElses(c):
		return Decision{Kind: Escalate, Rule: "accept", Reason: "the destination refused our create, and a record like it is there, which no send of this write made"}, true
	case c.Agreeing < c.Profile.Confirm():
		return Decision{Kind: Wait, Rule: "accept", Reason: fmt.Sprintf("seen %d of %d times", c.Agreeing, c.Profile.Confirm())}, true
	case mayStillLand(c):
		horizon, _ := c.Profile.Horizon.Declared()
		return Decision{Kind: Wait, After: horizon - c.SinceSend, Rule: "accept", Reason: "seen, but a send may still land, over what comes next"}, true
	}
	return Decision{Kind: Accept, Rule: "accept", Reason: c.Reason}, true
}

// mayStillLand reports whether a send of unknown fate can still land after this write
// is settled, and change what the next write of the record makes.
//   - A condition on the record's version refuses a late send. An upsert's condition can
//     be that there is no record, which holds again after a delete.
//   - A single send has landed if the effect is proven to be its own. Otherwise another
//     actor may have made the same change.
//   - A native key refuses a late send once a send under it was applied. An answer, or an
//     effect of our own, proves that.
//   - Any other repeated update, upsert or delete may land. A repeated create meets the
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

// StillCreates is how long a later delete or upsert of the record has to wait, since
// an earlier send of this create, that was repeated since, may still arrive: it would
// make again what was deleted. A destination that recognises our key refuses it.
func StillCreates(c Case) time.Duration {
	horizon, _ := c.Profile.Horizon.Declared()
	if !createsLate(c) || c.Sends-c.Unsent < 2 || native(c) || !Counting(c) {
		return 0
	}
	return max(horizon-c.SinceSend, 0)
}

// someoneElses reports whether a record that looks like ours cannot be: every
// send was refused, and the record bears no stamp that would say otherwise.
func someoneElses(c Case) bool {
	return c.Intent.Write == intent.Create && !c.Profile.Stamped && !c.Profile.FreshKeys && !c.Unknown && !c.Answered
}

// notTakenUp handles writes of which every send was provably not applied.
func notTakenUp(c Case) (Decision, bool) {
	why, known := KnownNotApplied(c)
	if c.Sends == 0 || c.Unknown || c.Answered || !known {
		return Decision{}, false
	}
	if !turnedAway(c) || c.Late || undeliverable(c) {
		return Decision{Kind: Fail, Rule: "retry", Reason: why + ": " + c.LastRefusal}, true
	}
	return waitThenRetry(c, backoffAfter(c.Unsent, c.RetryAfter), why), true
}

// turnedAway reports whether the last send was not taken up, for a reason that
// passes.
func turnedAway(c Case) bool {
	return c.Last == connectors.FateNotSent || c.Last == connectors.FateThrottled || c.Last == connectors.FateLogin
}

// undeliverable reports whether the destination has turned sends away for so
// long that no more are made. They are not counted in the budget, so this is
// what ends them, also where an earlier send has a fate that nobody knows. A
// refused login ends nothing: it concerns the destination, and every write waits
// until an operator has renewed the credentials.
func undeliverable(c Case) bool {
	if c.Last == connectors.FateLogin {
		return false
	}
	return turnedAway(c) && (c.Age > maxUndelivered || c.Unsent-c.LoginRefused >= maxUnsent)
}

func waitThenRetry(c Case, pause time.Duration, why string) Decision {
	// By the ledger's clock: a process that has just begun owes no courtesy anew.
	if left := pause - max(c.SinceSend, c.SinceByClock); left > 0 {
		return Decision{Kind: Wait, After: left, Rule: "retry", Reason: strings.TrimSuffix(why+": "+c.LastRefusal, ": ")}
	}
	return Decision{Kind: Retry, Rule: "retry", Reason: why}
}

// person does what a person directed. The rules of Decide hold for it too.
func person(c Case) (Decision, bool) {
	switch c.Directed {
	case DirectRetry, DirectForce:
		return Decision{Kind: Retry, Rule: "person", Reason: "a person asked for another send"}, true
	case DirectCompensate:
		return Decision{Kind: Compensate, Rule: "person", Reason: "a person asked to undo it"}, true
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
			return Decision{Kind: Wait, After: PausePreparing(max(c.SinceSend, c.SinceByClock)), Rule: "login",
				Reason: explain(c, "it is read when the destination accepts our login again")}, true
		}
		// A worker that comes late has made few reads, however long ago the send
		// was: the destination gets as many chances to answer as in time.
		if inTime || c.Unproven < unprovenReads {
			return wait("nothing is proven yet")
		}
	case verify.Mismatched:
		if !c.Firm && !c.Conflict && inTime {
			return wait("the read may be older than the send")
		}
	case verify.Absent, verify.Stale:
		_, known := KnownNotApplied(c)
		permit := SecondSend(c)
		open := !spent(c) && !permit.Allowed || spent(c) && !known
		// The answer to a repeat under a native key tells more than further reads.
		recognised := !spent(c) && permit.Row == RowNativeKey
		switch {
		case !c.Firm && c.Since < lag(c) && !recognised:
			return wait("reads may lag behind the send")
		case open && untouched(c) && inTime:
			return wait("the horizon of late arrivals has not passed")
		}
	}
	return Decision{}, false
}

// lag is how long a weak read that shows nothing is not believed: the settle
// time, or our patience where none is declared.
func lag(c Case) time.Duration {
	if settle, ok := c.Profile.Settle.Declared(); ok {
		return settle
	}
	return undeclaredPatience
}

// window is how long after the last send a read must have been begun for the
// engine to give up looking: until a read that lags shows what landed at the
// end of the horizon, but no less than our patience where one of the two is not declared or the
// destination cannot be read.
func window(c Case) time.Duration {
	settle, settles := c.Profile.Settle.Declared()
	horizon, ends := c.Profile.Horizon.Declared()
	if !settles || !ends || c.Verdict == verify.Unavailable {
		return max(settle+horizon, undeclaredPatience)
	}
	return settle + horizon
}

// Counting reports whether a process may still be expected to count until no send
// can land any more. Where none lives that long a reviewer decides.
func Counting(c Case) bool { return c.SinceByClock < maxUncounted }

// spent reports whether no send is left, whatever is found.
func spent(c Case) bool {
	return c.Late || c.Sends-c.Unsent >= c.Budget || undeliverable(c)
}

// differing does what the intent says about a record that differs.
func differing(c Case) (Decision, bool) {
	if c.Verdict != verify.Mismatched {
		return Decision{}, false
	}
	escalate := Decision{Kind: Escalate, Rule: "escalate", Reason: c.Reason}
	switch {
	case c.Conflict:
		if why, known := KnownNotApplied(c); known && c.MadeBy != "" {
			return Decision{Kind: Fail, Rule: "not applied", Reason: why}, true
		}
		if madeByAnother(c) && c.Unknown && c.Since < window(c) && Counting(c) {
			return Decision{Kind: Wait, Rule: "not applied", Reason: "a send may still land when that record goes: whether it was applied is known after the horizon"}, true
		}
	case c.Intent.OnMismatch == intent.MismatchCompensate:
		if c.Unknown && !settledFate(c) && c.Since < window(c) && Counting(c) {
			return Decision{Kind: Wait, Rule: "compensate", Reason: "a send may still land: undoing waits for the horizon"}, true
		}
		return Decision{Kind: Compensate, Rule: "compensate", Reason: c.Reason}, true
	case c.Intent.OnMismatch == intent.MismatchRepair && c.Own && c.Unknown && !settledFate(c) && c.Since < window(c) && Counting(c):
		return Decision{Kind: Wait, Rule: "repair", Reason: "a send may still land: the repair waits for the horizon"}, true
	case c.Intent.OnMismatch == intent.MismatchRetry, c.Intent.OnMismatch == intent.MismatchRepair:
		return Decision{Kind: Retry, Rule: "retry", Reason: c.Reason}, true
	}
	return escalate, true
}

// again sends again what is not there, where the table allows it and the
// budget is not used up.
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

// settledAbsent says "not applied" of what is known not to be.
func settledAbsent(c Case) (Decision, bool) {
	if c.Verdict != verify.Absent && c.Verdict != verify.Stale {
		return Decision{}, false
	}
	if why, known := KnownNotApplied(c); known {
		return Decision{Kind: Fail, Rule: "not applied", Reason: why}, true
	}
	permit := SecondSend(c)
	reason := "whether it was applied cannot be found out: " + permit.Reason
	switch {
	case gone(c):
		reason = permit.Reason
	case slices.Contains(c.Profile.Irreversible, c.Intent.Write):
		reason = "it may have been applied and cannot be taken back: " + permit.Reason
	}
	return Decision{Kind: Escalate, Rule: "escalate", Reason: explain(c, reason)}, true
}

// unproven hands what is left to a person.
func unproven(c Case) (Decision, bool) {
	why := map[verify.Verdict]string{
		verify.Unavailable:   "the destination could not be read in time to tell",
		verify.Indeterminate: "the time is up and nothing is proven",
		verify.Duplicated:    "there is more than was declared",
		verify.Collateral:    "something changed that nobody asked to change",
	}[c.Verdict]
	if why == "" {
		return Decision{}, false
	}
	return Decision{Kind: Escalate, Rule: "escalate", Reason: explain(c, why)}, true
}

// Recheck says what follows from a later look at a settled write: Accept when
// nothing contradicts the outcome, Wait when the look must be made again,
// Escalate when the outcome does not hold any more. Fields that others changed
// since do not contradict it: only an effect that is gone, that was doubled, or
// that came after all.
//
// A weak read that shows no contradiction is believed as late as one that finds
// nothing after a send.
func Recheck(c Case, verified bool) Decision {
	deletes := c.Intent.Write == intent.Delete
	gone := c.Verdict == verify.Absent && !deletes || c.Verdict == verify.Stale || c.Undone
	came := c.Effect() && !c.Undone && !(deletes && c.Verdict == verify.Mismatched) // a record that changed is still there
	says := func(k Kind, why string) Decision {
		return Decision{Kind: k, Rule: "recheck", Reason: explain(c, why)}
	}
	switch {
	case c.Verdict == verify.Unavailable, c.Verdict == verify.Indeterminate:
		return says(Wait, "the recheck that is owed could not be made")
	case verified && c.Failed:
		return says(Escalate, "it was verified, and a later report says that it failed")
	case c.Verdict == verify.Duplicated, verified && c.Ours:
		return says(Escalate, "a later look found more records than declared")
	case verified && c.Again:
		return says(Escalate, "it was verified, deleted since, and made again: an earlier send arrived late")
	case !verified && came:
		return says(Escalate, "it was settled as not applied, or as undone, and a later look found it")
	case !c.Firm && c.Since < lag(c):
		return says(Wait, "the read may be older than the send")
	case verified && gone && c.Profile.Proof == "": // else what is gone is not the effect
		return says(Escalate, "it was verified, and a later look did not find it any more")
	}
	return says(Accept, unbroken(c, verified))
}

// unbroken is why a later read takes nothing back of the outcome. The finding of the
// read follows in brackets, and must not contradict it.
func unbroken(c Case, verified bool) string {
	changed := c.Verdict == verify.Mismatched || c.Verdict == verify.Collateral
	switch {
	case verified && changed && c.Intent.Write == intent.Delete:
		return "the record was deleted as declared, and one was made under its key since"
	case verified && changed:
		return "the record was as declared, and was changed since"
	case verified && (c.Verdict == verify.Stale || c.Verdict == verify.Absent && c.Intent.Write != intent.Delete):
		return "the record that proved the effect has been removed since"
	case !verified && changed:
		return "the record is there, and what it holds is not the effect of this write"
	}
	return "a later read agrees with the outcome"
}
