package connectors

import (
	"context"
	"regexp"
	"time"

	"github.com/readback-go/readback/intent"
)

// Lister is an optional power: say what is there, without knowing what was
// written. It is how an evaluation finds records that nobody declared; the
// engine does without. Webhooks, mail and MCP tools do not have it.
type Lister interface {
	// List reads every record in scope, page by page. It changes nothing at the
	// destination. A list that may lack something is no error: it says so in
	// Listing.Complete. An error means that nothing can be said: a kind or a
	// scope that the destination cannot list (it wraps [ErrScope]), or an answer
	// that cannot be trusted.
	List(ctx context.Context, s Scope) (Listing, error)
}

// Scope says which records a list is to show. A destination that cannot tell
// some part of it lists more, never less, and says so in the listing.
type Scope struct {
	// Kind is the kind of record. Required.
	Kind string
	// Within narrows the list by fields of the business key, where the
	// destination has places of which one must be named ({"mailbox": "INBOX"},
	// {"project": "OPS"}). Default: the whole kind.
	Within intent.Fields
	// Stamped asks only for records that bear a stamp of readback. Default: all.
	Stamped bool
	// From and Until bound when a record was created or changed, on the
	// destination's clock; both ends belong to it. Default: no bound.
	From, Until time.Time
}

// Listing is what a list found. The zero value is the cautious one: weak, and
// not complete.
type Listing struct {
	// Records are those in scope, each once, in the destination's order.
	Records []Listed
	// Strength says how much the list can be trusted to show the latest state.
	// A strong one shows everything that was applied before it began.
	Strength Strength
	At       time.Time // when the first read was begun
	Path     string    // how it was read, for people
	// Complete says that every record in scope which was there when the list
	// began is among Records, as far as a read of this strength shows.
	Complete bool
	// Why says in a sentence why it is not complete. Default "".
	Why string
	// Stamped says that records without a stamp of readback were left out.
	Stamped bool
	// Timed says that records outside From and Until were left out.
	Timed bool
}

// Listed is one record of a list.
type Listed struct {
	Record
	// Changed is when it was created or last changed, on the destination's
	// clock. Zero: the destination does not say.
	Changed time.Time
	// Created is when it was created, on the same clock. Zero: the destination
	// does not say.
	Created time.Time
}

// MaxListed is how many records one list holds at the most, 100,000: all of
// them are held in memory. A list that would be longer is not complete.
const MaxListed = 100_000

var stampForm = regexp.MustCompile(`^rb-[a-z2-7]{32}$`)

// IsStamp reports whether a text is a stamp as [intent.WriteIntent.Stamp] makes
// them.
func IsStamp(s string) bool { return stampForm.MatchString(s) }

// Of reports whether a record belongs to the scope's time, and whether that is sure.
// It does where it was created or changed within; what was changed later may have
// been changed within besides. What cannot be told belongs to it.
func (s Scope) Of(r Listed) (in, sure bool) {
	switch {
	case s.From.IsZero() && s.Until.IsZero():
		return true, true
	case !s.From.IsZero() && !r.Changed.IsZero() && r.Changed.Before(s.From),
		!s.Until.IsZero() && !r.Created.IsZero() && r.Created.After(s.Until):
		return false, true
	}
	within := func(t time.Time) bool { return !t.IsZero() && s.Holds(t) }
	return true, within(r.Created) || within(r.Changed)
}

// Holds reports whether a time lies in the scope. A time that is not known does:
// what cannot be told is listed.
func (s Scope) Holds(t time.Time) bool {
	switch {
	case t.IsZero():
		return true
	case !s.From.IsZero() && t.Before(s.From), !s.Until.IsZero() && t.After(s.Until):
		return false
	}
	return true
}
