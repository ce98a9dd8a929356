package imap

import "github.com/readback-go/readback/readbacktest/fault"

// Forms are the faults that a server has: those of package fault, and three of its own. Those of
// writes apply to APPEND, UID STORE and UID EXPUNGE unless they say otherwise. A STORE that only
// marks messages as deleted is the first half of a delete: it passes, and the fault applies to
// the EXPUNGE.
var Forms = fault.Forms{
	fault.LostAnswer: nil, fault.DroppedBefore: nil,
	fault.BadGateway: nil, // done, then BYE instead of the answer
	fault.LateCommit: nil, Stalled: nil,
	fault.PhantomSuccess:         nil, // answered with OK (and a UID)
	fault.DroppedField:           nil, // APPEND, STORE: keywords are left out in silence
	fault.NormalisedField:        nil, // APPEND: the subject in capitals; STORE: keywords get a prefix
	fault.DuplicateBehindOurBack: nil, // APPEND: stored twice
	fault.Rollback:               nil, // APPEND: removed again after the answer
	fault.Refused:                nil, // NO [OVERQUOTA]
	fault.Throttled:              nil, // NO [LIMIT]

	fault.LaggingRead:    nil, // SEARCH does not find the newest message of the mailbox
	fault.UnreadableRead: nil, // SEARCH and FETCH are answered with NO [UNAVAILABLE]
	GarbledRead:          nil, CutRead: nil,
	fault.HangingRead: nil, // SEARCH is never answered

	fault.Unreachable: nil, // a new connection is closed at once
}

// The server's own kinds.
const (
	Stalled     fault.Kind = "stalled"      // no answer; done at Release
	GarbledRead fault.Kind = "garbled-read" // SEARCH and FETCH are answered with unrequested data
	CutRead     fault.Kind = "cut-read"     // the connection is cut in the middle of the answer to SEARCH or FETCH
)

// Always is how often a fault happens that does not end.
const Always = 0
