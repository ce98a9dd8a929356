// Package policies decides what to do about a verdict.
//
// A [Policy] is pure: it reads a [Case] and returns a [Decision]. [Standard] lists ours in
// order. [Decide] consults them and then checks the decision against the rules that no policy
// can override: a second send only where [SecondSend] shows it harmless, acceptance only of
// what was observed, "not applied" only where knownNotApplied says so, and an undo only of
// effects that are ours.
//
// The package sends nothing, waits for nothing and records nothing. It does not know its
// caller; a reviewer's decision reaches it as [Case.Directed].
package policies

import (
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Case is all that a decision may depend on.
type Case struct {
	Intent  intent.WriteIntent
	Profile connectors.Profile
	verify.Judgement
	// Agreeing is how many reads in a row gave this verdict, this one included.
	Agreeing int

	// Sends counts announced sends. Unsent counts those that the destination provably did not
	// accept (not sent, throttled, login refused), and LoginRefused those whose credentials it
	// refused.
	Sends, Unsent, LoginRefused int
	// EffectSeen: some earlier read showed an effect of ours.
	EffectSeen bool
	// Unknown: some send has an unknown fate. Answered: some send was answered with success.
	// Last is the fate of the last send. LastConflict says whether it was refused because
	// something exists or changed.
	Unknown, Answered bool
	Last              connectors.Fate
	LastConflict      bool
	// Repaired: the last send was a repair, an update of values that were not stored.
	Repaired bool
	// Named is the destination's own id of the record in the receipt of a send, "" where there
	// is none.
	Named string
	// MadeBy is the other write of the same ledger whose stamp is in the record that blocks a
	// create, "" where there is none.
	MadeBy string
	// LastRefusal is the destination's text when the last send was refused, for reviewers.
	LastRefusal string

	// SinceSend is the minimum time since the last send ended, as this process counted it, and
	// SinceByClock the same by the ledger's clock, which may have stepped. SinceKey is the
	// maximum time since the first send under the present idempotency key, Age the time since
	// the write was first tried.
	SinceSend, SinceByClock, SinceKey, Age time.Duration
	// Unproven counts the reads in a row, since the last send, that failed or proved nothing.
	Unproven int
	// RetryAfter is the pause that the destination asked for after the last send; 0 when it did
	// not.
	RetryAfter time.Duration
	// OperationUnknown says that another write may have done the operation of the intent's idempotency
	// key in a time of which the ledger lacks the history.
	OperationUnknown bool
	// Late says that the intent's deadline has passed.
	Late bool
	// Budget is how many sends of the write may reach the destination over its lifetime.
	Budget int

	// Directed is a reviewer's decision: "", [DirectRetry], [DirectForce] or
	// [DirectCompensate].
	Directed string
	// Invertible says that the connector can build the write that undoes this
	// one.
	Invertible bool
	// Again says, at a recheck, that our record is not the one that was verified.
	Again bool
}

// The decisions of a reviewer.
const (
	DirectRetry      = "retry"      // send again if that is provably harmless
	DirectForce      = "force"      // send again: the reviewer vouches that it is not there
	DirectCompensate = "compensate" // undo it
)

// Kind is the action of a decision.
type Kind uint8

// The kinds of decision. The zero value escalates the write to a reviewer.
const (
	Escalate   Kind = iota // a reviewer decides
	Accept                 // settled as verified
	Wait                   // read again
	Retry                  // send again
	Compensate             // undo
	Fail                   // settled as not applied
	Report                 // settled as reported: answered with success by a destination that cannot be read
)

var kindNames = [...]string{"escalate", "accept", "wait", "retry", "compensate", "fail", "report"}

// String returns the word for the kind.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[Escalate]
	}
	return kindNames[k]
}

// Decision is what to do, and why.
type Decision struct {
	Kind Kind
	// After is, for Wait, the minimum pause; 0 leaves the pace to the engine.
	After time.Duration
	// Rule names the policy that decided; Reason is a sentence for a reviewer.
	Rule, Reason string
	// Permit is, for Retry, what makes it harmless. Filled by Decide.
	Permit Permit
}

// Policy decides about a case, or leaves it to the next (false).
type Policy interface {
	Decide(Case) (Decision, bool)
}

// Func is a policy made of a function.
type Func func(Case) (Decision, bool)

// Decide calls f.
func (f Func) Decide(c Case) (Decision, bool) { return f(c) }
