package imaptest

// Vice is one way in which a server misbehaves.
type Vice string

// The vices. Those of writes meet APPEND, UID STORE and UID EXPUNGE alike
// unless they say otherwise. A STORE that only marks messages as deleted is the
// first half of a delete: it is let through, and the vice meets the EXPUNGE.
const (
	LostAnswer       Vice = "lost-answer"        // done, then the connection is cut
	DroppedBefore    Vice = "dropped-before"     // received, the connection is cut, nothing is done
	ErrorAfterCommit Vice = "error-after-commit" // done, then BYE instead of the answer
	LateCommit       Vice = "late-commit"        // no answer; done once the client has hung up
	Stalled          Vice = "stalled"            // no answer; done at Release
	PhantomSuccess   Vice = "phantom-success"    // answered with OK (and a UID), nothing done
	DroppedField     Vice = "dropped-field"      // APPEND, STORE: keywords are left out in silence
	NormalisedField  Vice = "normalised-field"   // APPEND: the subject in capitals; STORE: keywords get a prefix
	Duplicate        Vice = "duplicate"          // APPEND: stored twice
	Rollback         Vice = "rollback"           // APPEND: removed again after the answer
	Refused          Vice = "refused"            // NO [OVERQUOTA], nothing done
	Throttled        Vice = "throttled"          // NO [LIMIT], nothing done

	LaggingSearch  Vice = "lagging-search"  // SEARCH does not find the newest message of the mailbox
	UnreadableRead Vice = "unreadable-read" // SEARCH and FETCH are answered with NO [UNAVAILABLE]
	GarbledRead    Vice = "garbled-read"    // SEARCH and FETCH are answered with what no client asked for
	CutRead        Vice = "cut-read"        // the connection is cut in the middle of the answer to SEARCH or FETCH
	HangingRead    Vice = "hanging-read"    // SEARCH is never answered

	Unreachable Vice = "unreachable" // a new connection is closed at once
)

// Vices lists them all.
func Vices() []Vice {
	return []Vice{LostAnswer, DroppedBefore, ErrorAfterCommit, LateCommit, Stalled, PhantomSuccess, DroppedField,
		NormalisedField, Duplicate, Rollback, Refused, Throttled, LaggingSearch, UnreadableRead, GarbledRead,
		CutRead, HangingRead, Unreachable}
}

// How often a vice shows.
const (
	Off    = 0  // never again
	Always = -1 // until it is switched off
)
