package mailtest

import "github.com/readback-go/readback/connectors/imap/imaptest"

// Vice is one way in which a submission server misbehaves.
type Vice string

// The vices, in the order of a submission.
const (
	Unreachable   Vice = "unreachable"    // a new connection is closed at once
	RefusedSender Vice = "refused-sender" // MAIL: 550
	RefusedRcpt   Vice = "refused-rcpt"   // the last RCPT that shows it: 550
	Greylisted    Vice = "greylisted"     // RCPT: 450
	RefusedData   Vice = "refused-data"   // DATA: 554
	CutBeforeDot  Vice = "cut-before-dot" // the connection is cut in the middle of the message; nothing is done

	Refused       Vice = "refused"        // the dot: 554, nothing done
	Throttled     Vice = "throttled"      // the dot: 451, nothing done
	DroppedBefore Vice = "dropped-before" // the dot: the connection is cut, nothing is done
	LostAnswer    Vice = "lost-answer"    // the dot: taken over, then the connection is cut
	Silence       Vice = "silence"        // the dot: taken over, and never answered
	LateCommit    Vice = "late-commit"    // the dot: no answer; taken over Options.Lag after the client has hung up
	Stalled       Vice = "stalled"        // the dot: no answer; taken over at Release
	Nonsense      Vice = "nonsense"       // the dot: taken over, and answered with what is neither yes nor no
	Phantom       Vice = "phantom"        // the dot: 250, and nothing done
	PutOff        Vice = "put-off"        // the dot: taken over, and answered 451
	ShutDown      Vice = "shut-down"      // the dot: taken over, and answered 421

	FiledTwice     Vice = "filed-twice"     // taken over, and there are two of it
	FiledLate      Vice = "filed-late"      // taken over, and not in the mailbox before Options.Lag; in memory
	TakenAway      Vice = "taken-away"      // taken over, and gone from the mailbox again; in memory
	Capitals       Vice = "capitals"        // taken over with the subject in capitals
	WithoutCc      Vice = "without-cc"      // taken over without the header Cc
	OtherMessageID Vice = "other-messageid" // taken over with a Message-ID of the server's own
	WithoutStamp   Vice = "without-stamp"   // taken over without headers that begin with X-
)

// Vices lists them all.
func Vices() []Vice {
	return []Vice{Unreachable, RefusedSender, RefusedRcpt, Greylisted, RefusedData, CutBeforeDot, Refused, Throttled,
		DroppedBefore, LostAnswer, Silence, LateCommit, Stalled, Nonsense, Phantom, PutOff, ShutDown,
		FiledTwice, FiledLate, TakenAway, Capitals, WithoutCc, OtherMessageID, WithoutStamp}
}

// How often a vice shows.
const (
	Off    = imaptest.Off    // never again
	Always = imaptest.Always // until it is switched off
)
