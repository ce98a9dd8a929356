package mail

import (
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Forms are the faults that a submission server has, in the order of a submission:
// those of package fault, and its own.
var Forms = fault.Forms{
	fault.Unreachable: nil, // a new connection is closed at once
	RefusedSender:     nil, RefusedRcpt: nil, Greylisted: nil, RefusedData: nil, CutBeforeDot: nil,

	fault.Refused:        nil, // the dot: 554, nothing done
	fault.Throttled:      nil, // the dot: 451, nothing done
	fault.DroppedBefore:  nil, // the dot: the connection is cut, nothing is done
	fault.LostAnswer:     nil, // the dot: taken over, then the connection is cut
	Silence:              nil,
	fault.LateCommit:     nil, // the dot: no answer; accepted Options.Lag after the client has hung up
	Stalled:              nil,
	fault.PhantomSuccess: nil, // the dot: 250, and nothing done
	fault.BadGateway:     nil, // the dot: accepted, and the answer is neither yes nor no
	PutOff:               nil, ShutDown: nil,

	fault.DuplicateBehindOurBack: nil, // taken over, and there are two of it
	fault.LaggingRead:            nil, // taken over, and not in the mailbox before Options.Lag; in memory
	fault.Rollback:               nil, // taken over, and gone from the mailbox again; in memory
	fault.NormalisedField:        nil, // taken over with the subject in capitals
	fault.DroppedField:           nil, // taken over without the header Cc
	OtherMessageID:               nil, WithoutStamp: nil,
}

// The server's own kinds.
const (
	RefusedSender fault.Kind = "refused-sender" // MAIL: 550
	RefusedRcpt   fault.Kind = "refused-rcpt"   // the last RCPT that shows it: 550
	Greylisted    fault.Kind = "greylisted"     // RCPT: 450
	RefusedData   fault.Kind = "refused-data"   // DATA: 554
	CutBeforeDot  fault.Kind = "cut-before-dot" // the connection is cut in the middle of the message; nothing is done

	Silence  fault.Kind = "silence"        // the dot: accepted, and never answered
	Stalled             = fakeimap.Stalled // the dot: no answer; accepted at Release
	PutOff   fault.Kind = "put-off"        // the dot: accepted, and answered 451
	ShutDown fault.Kind = "shut-down"      // the dot: accepted, and answered 421

	OtherMessageID fault.Kind = "other-messageid" // taken over with a Message-ID of the server's own
	WithoutStamp   fault.Kind = "without-stamp"   // taken over without headers that begin with X-
)

// Always is how often a fault happens that does not end.
const Always = fakeimap.Always
