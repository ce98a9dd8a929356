package fault

import (
	"maps"
	"slices"
)

// Kind is one way in which a network or a destination misbehaves.
type Kind string

// The kinds. A fake declares which of them it has, and in which forms, as [Forms]. The comment
// describes the destination's behaviour.
const (
	None Kind = "" // no fault

	LostAnswer     Kind = "lost-answer"     // applies the request, then the connection is cut
	DroppedBefore  Kind = "dropped-before"  // the connection is cut; applies nothing
	CutBody        Kind = "cut-body"        // applies it; the answer is cut in the middle of its body
	BadGateway     Kind = "bad-gateway"     // applies it, and answers with a failure that need not be its own
	LateCommit     Kind = "late-commit"     // write: does not answer; applies it after the client gave up
	PhantomSuccess Kind = "phantom-success" // write: answers with success; applies nothing
	Duplicate      Kind = "duplicate"       // write: the request arrives twice; the client gets the first answer

	DroppedField           Kind = "dropped-field"             // write: answers with success; does not store one field
	NormalisedField        Kind = "normalised-field"          // write: stores one field in another form
	DuplicateBehindOurBack Kind = "duplicate-behind-our-back" // create: a second record with the same key appears
	Rollback               Kind = "rollback"                  // write: the effect is taken back after the answer

	LaggingRead    Kind = "lagging-read"    // read: shows an old state
	UnreadableRead Kind = "unreadable-read" // read: the answer is a failure or cannot be understood
	HangingRead    Kind = "hanging-read"    // read: no answer comes

	Unreachable Kind = "unreachable" // no connection can be had
	Unavailable Kind = "unavailable" // answers 503; applies nothing
	Refused     Kind = "refused"     // refuses; applies nothing
	Throttled   Kind = "throttled"   // answers "not now", with a time to wait; applies nothing

	// ThrottledAfter is a false answer: it applies the request and answers "not now". Only a read
	// shows the real state.
	ThrottledAfter Kind = "throttled-after"
)

// ofReads are the kinds that match reads unless a fault says otherwise.
var ofReads = []Kind{LaggingRead, UnreadableRead, HangingRead}

// OfReads reports whether the kind matches only reads.
func (k Kind) OfReads() bool { return slices.Contains(ofReads, k) }

// Forms lists the kinds of fault that a fake has. The values are those of Fault.How, the default
// first; none if the kind has only one form.
type Forms map[Kind][]string

// Except lists the kinds that a fake has besides these.
func (f Forms) Except(kinds ...Kind) []Kind {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f)), func(k Kind) bool { return slices.Contains(kinds, k) })
}
