package engine

import (
	"context"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Guards decides whether a send may be made now. It is asked before each send
// is announced, and never about a read: what was sent is read back whatever
// stands in the way of the next send.
type Guards interface {
	// Enter asks for one send of the write. A nil hold lets it pass, and leave
	// must then be called exactly once with what became of the send, or with
	// [connectors.FateNotSent] when it was not made. Else the write is put back.
	// Enter may wait a moment where that spares putting the write back.
	Enter(ctx context.Context, rec ledger.Record) (leave func(Sent), hold *Hold)
	// Paused names the destinations whose sends would all be held now, so that
	// their queued writes need not be claimed.
	Paused() []string
}

// Stopper is what [Guards] can be besides: somebody's word that nothing of a
// kind is to be sent counts up to the last moment. It is asked immediately before
// a send whose guards were asked longer ago, since the announcement can take long.
type Stopper interface {
	// Stopped is why no send of the write may leave now, nil when it may.
	Stopped(ctx context.Context, rec ledger.Record) *Hold
}

// ReadObserver is what [Guards] can be besides: a circuit breaker learns here what
// reads show about the destination.
type ReadObserver interface {
	// Confirmed: a read verified the effect of a send of unknown fate, which the
	// breaker counted as a failure.
	Confirmed(rec ledger.Record)
	// LoginRefused: the credentials of a read after a send were refused; why says how.
	LoginRefused(rec ledger.Record, why string)
	// LoginAccepted: a read after a send was answered.
	LoginAccepted(rec ledger.Record)
	// ReadHeld is why no read after a send is to be made now, nil where it may be: the
	// credentials of reads are refused, and one read at a time finds out whether they
	// still are.
	ReadHeld(rec ledger.Record) *Hold
}

// Hold says why a send is not made now.
type Hold struct {
	Rule   string        // "stopped", "rate", "breaker", "login", "busy"
	Reason string        // a sentence for a person
	For    time.Duration // ask again after; at least 0
}

// Sent is what became of a send that a guard let pass.
type Sent struct {
	Fate       connectors.Fate
	Code       string        // without what is sensitive in the write: guards keep it for others
	RetryAfter time.Duration // what the destination asked for, 0 when nothing
	Took       time.Duration
	// Unread says that no read of it follows soon: nothing can be read there, or it is
	// read in a batch.
	Unread bool
}

// Lag knows how long after a send its effect becomes visible.
type Lag interface {
	// Next is how long to pause before the next look, made the given time after
	// the send, is likely to succeed; false when it knows nothing, and the
	// standard pace holds. Looks is how many were made since the send.
	Next(path LagPath, since time.Duration, looks int) (time.Duration, bool)
	// Seen tells that an effect was first seen the given time after the send
	// and, where there was an earlier look, was not there yet missed after it;
	// a missed of 0 says that it was seen at the first look.
	Seen(path LagPath, missed, seen time.Duration)
}

// LagPath is what a lag is learned for.
type LagPath struct {
	Destination, Kind string
	Path              string // as in Observation.Path; "" until it is known
}

// Meter is told what happens, to be counted. It must not block and must be
// safe for concurrent use.
type Meter interface {
	// Sent: one send was made.
	Sent(rec ledger.Record, s Sent)
	// Looked: one read was made. Took is how long; v what it said.
	Looked(rec ledger.Record, v verify.Verdict, took time.Duration)
	// Ended: the write was settled, went to a person, or is left unverified on
	// purpose.
	Ended(rec ledger.Record)
	// Held: a guard put a write back.
	Held(rec ledger.Record, h Hold)
	// Failed: the ledger or the work on a write failed.
	Failed(rec ledger.Record, err error)
}

// RepeatMeter is what a [Meter] can be besides: it is told of the calls that asked
// for a write which somebody had asked for before, and that got its outcome.
type RepeatMeter interface {
	// Repeated: one such call was answered. Of the record only what it was
	// reserved as counts.
	Repeated(rec ledger.Record)
}

// EffectMeter is what a [Meter] can be besides: it is told when effects come to
// be seen.
type EffectMeter interface {
	// Shown: a read showed an effect of the write for the first time, so long
	// after its last send; v is what the read said. The record is as it was before
	// the read: its LastFate says whether that send had been answered.
	Shown(rec ledger.Record, v verify.Verdict, after time.Duration)
}

// CallMeter is what a [Meter] can be besides: it is told of the calls of
// [Engine.Do].
type CallMeter interface {
	// Called: a call came back after a time, with an outcome or an error. Of the
	// record only the names in it count.
	Called(rec ledger.Record, o Outcome, err error, took time.Duration)
}
