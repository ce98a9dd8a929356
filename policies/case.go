// Package policies decides what to do about a verdict.
//
// A [Policy] is pure: it looks at a [Case] and returns a [Decision]. [Standard]
// is the order in which ours are asked; [Decide] asks them and then holds the
// answer against the rules that no policy can override: a second send only
// where [SecondSend] shows it harmless, acceptance only of what was seen, "not
// applied" only where [KnownNotApplied] says so, and undoing only what is ours
// to undo.
//
// The package sends nothing, waits for nothing and records nothing. It does
// not know who asks; a person's word reaches it as [Case.Directed].
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
	// Agreeing is how many reads in a row gave this verdict, this one
	// included.
	Agreeing int

	// Sends counts sends that were announced; Unsent those of them that the
	// destination provably did not take up (not sent, throttled, login refused),
	// LoginRefused those of them whose credentials it refused.
	Sends, Unsent, LoginRefused int
	// EffectSeen: some earlier read showed an effect of ours.
	EffectSeen bool
	// Unknown: some send has a fate nobody knows. Answered: some send was
	// answered with yes. Last is the fate of the last send, LastConflict
	// whether it was refused because something exists or changed.
	Unknown, Answered bool
	Last              connectors.Fate
	LastConflict      bool
	// Repaired: the last send was a repair, an update of what was not stored.
	Repaired bool
	// Named is the destination's own id of the record that a send was answered
	// with, "" where none was.
	Named string
	// MadeBy is the other write of the same ledger whose stamp the record in the way
	// of a create bears, "" where there is none.
	MadeBy string
	// LastRefusal is what the destination said when the last send was not
	// answered, for people.
	LastRefusal string

	// SinceSend is the time since the last send ended at least, as this process
	// counted it, and SinceByClock the same by the ledger's clock, which may have
	// stepped. SinceKey is the time since the first send under the present
	// idempotency key at most, Age since the write was first tried.
	SinceSend, SinceByClock, SinceKey, Age time.Duration
	// Unproven counts the reads in a row, since the last send, that could not be
	// made or proved nothing.
	Unproven int
	// RetryAfter is what the destination asked us to wait after the last
	// send; 0 when it did not.
	RetryAfter time.Duration
	// Late says that the intent's deadline has passed.
	Late bool
	// Budget is how many sends that reached the destination the write may
	// have over its life.
	Budget int

	// Directed is what a person said: "", [DirectRetry], [DirectForce] or
	// [DirectCompensate].
	Directed string
	// Invertible says that the connector can build the write that undoes this
	// one.
	Invertible bool
	// Again says, at a recheck, that our record is another one than was verified.
	Again bool
	// Doubled is set at a recheck of a verified create that finds more records
	// than declared, else nil.
	Doubled *Doubled
}

// What a person may direct.
const (
	DirectRetry      = "retry"      // send again if that is provably harmless
	DirectForce      = "force"      // send again: the person vouches that it is not there
	DirectCompensate = "compensate" // undo it
)

// Kind is what a decision says.
type Kind uint8

// The kinds of decision. The zero value hands the write to a person.
const (
	Escalate   Kind = iota // a person decides
	Accept                 // settled as verified
	Wait                   // look again
	Retry                  // send again
	Compensate             // undo
	Fail                   // settled as not applied
	Remove                 // at a recheck: remove the surplus record of a doubled create
	Report                 // settled as reported: answered with yes where nobody can look
)

var kindNames = [...]string{"escalate", "accept", "wait", "retry", "compensate", "fail", "remove", "report"}

// String is the word for the kind.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[Escalate]
	}
	return kindNames[k]
}

// Decision is what to do, and why.
type Decision struct {
	Kind Kind
	// After is, for Wait, how long at least; 0 leaves the pace to the engine.
	After time.Duration
	// Rule names who decided; Reason is a sentence for a person.
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
