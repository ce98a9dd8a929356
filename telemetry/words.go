package telemetry

import (
	"errors"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// other replaces every word that is not on a list.
const other = "other"

// Words maps events to words of short lists, so that no caller can increase the number of series,
// or learn from them what another tenant does. Create one with [NewWords].
type Words struct{ known *connectors.Registry }

// NewWords returns Words with the names of the registered destinations and their kinds.
func NewWords(known *connectors.Registry) Words { return Words{known} }

// Place returns the destination and the kind of a write: both if they are registered, else
// other twice.
func (w Words) Place(rec ledger.Record) (destination, kind string) {
	if _, _, err := w.known.Lookup(rec.Destination, rec.Kind); err != nil {
		return other, other
	}
	return rec.Destination, rec.Kind
}

// Destination returns a name if it is registered, else other.
func (w Words) Destination(name string) string { return among(name, w.known.Names()...) }

// among returns a word if it is on the list, else other.
func among[T ~string](word T, list ...T) string {
	if slices.Contains(list, word) {
		return string(word)
	}
	return other
}

// Fate is the result of a send: answered, not_sent, refused, throttled, login_refused, unknown.
func Fate(f connectors.Fate) string {
	if f == connectors.FateUnknown {
		return "unknown"
	}
	return among(f, connectors.FateAnswered, connectors.FateNotSent, connectors.FateRefused, connectors.FateThrottled, connectors.FateLogin)
}

var statuses = []ledger.Status{
	ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned,
	ledger.StatusReview, ledger.StatusHeld, ledger.InProgress, ledger.Denied, ledger.Expired, ledger.Reported,
}

// Status is how a write ended: the status of its outcome, or unverified if its required read was
// postponed on purpose.
func Status(rec ledger.Record) string {
	if rec.Unverified && rec.State != ledger.Settled && rec.State != ledger.Review {
		return "unverified"
	}
	return among(rec.Status(), statuses...)
}

// States are those in which a write is open, and settled for one that needs a recheck.
var states = []ledger.State{
	ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Delegated, ledger.Compensating, ledger.Review, ledger.Settled,
}

// Rule is why a send was held: rate, breaker, busy, stopped.
func Rule(h engine.Hold) string { return among(h.Rule, "rate", "breaker", "busy", "stopped") }

// causes name failures, the first that fits.
var causes = []struct {
	is    error
	cause string
}{
	{ledger.ErrFenced, "fenced"},
	{ledger.ErrUnavailable, "ledger_unavailable"},
	{ledger.ErrCorrupt, "ledger_corrupt"},
	{ledger.ErrClock, "clock"},
}

// Cause is why the ledger or the work on a write failed: fenced, ledger_unavailable,
// ledger_corrupt, clock.
func Cause(err error) string {
	for _, c := range causes {
		if errors.Is(err, c.is) {
			return c.cause
		}
	}
	return other
}
