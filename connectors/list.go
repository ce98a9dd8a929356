package connectors

import (
	"context"
	"regexp"
	"time"

	"github.com/readback-go/readback/intent"
)

// Lister is an optional capability: list records without knowing what was written. An evaluation
// uses it to find undeclared records; the engine does not use it. Webhooks, mail and MCP tools do
// not have it.
type Lister interface {
	// List reads every record in scope, page by page. It changes nothing at the destination. A
	// list that may be incomplete is no error: Listing.Complete is then false. An error means
	// that the list is unusable: the destination cannot list this kind or scope (it wraps
	// [ErrScope]), or the response cannot be trusted.
	List(ctx context.Context, s Scope) (Listing, error)
}

// Scope selects the records of a list. A destination that cannot apply a part of it lists more,
// never less, and the listing says so.
type Scope struct {
	// Kind is the kind of record. Required.
	Kind string
	// Within narrows the list by fields of the business key, where the
	// destination has places of which one must be named ({"mailbox": "INBOX"},
	// {"project": "OPS"}). Default: the whole kind.
	Within intent.Fields
	// Stamped selects only records that have a stamp of readback. Default: all.
	Stamped bool
	// From and Until bound when a record was created or changed, on the
	// destination's clock; both ends belong to it. Default: no bound.
	From, Until time.Time
	// Each, if set, gets each record as it is read, and its error ends the list. A connector that
	// reads a stream then leaves Listing.Records empty and stores none; any other ignores Each
	// and returns them. [Listing.Stream] passes the rest to the caller. A list that fails may
	// have passed some records. Default nil.
	Each func(Listed) error
}

// Stream passes the records that the connector returned to s.Each, instead of the connector.
func (l *Listing) Stream(s Scope) error {
	for _, r := range l.Records {
		if err := s.Each(r); err != nil {
			return err
		}
	}
	l.Records = nil
	return nil
}

// Listing is what a list found. The zero value is the cautious one: weak, and
// not complete.
type Listing struct {
	// Records are those in scope, each once, in the destination's order, but for
	// those that Scope.Each was given.
	Records []Listed
	// Strength is how far the list can be trusted to show the latest state. A strong list shows
	// everything that was applied before it began.
	Strength Strength
	At       time.Time // when the first read was begun
	Path     string    // how it was read, for display
	// Complete means that every record in scope which existed when the list began is in Records,
	// as far as a read of this strength shows.
	Complete bool
	// Why is a sentence: why it is not complete. Default "".
	Why string
	// Stamped means that records without a stamp of readback were left out.
	Stamped bool
	// Timed means that records outside From and Until were left out.
	Timed bool
}

// Listed is one record of a list.
type Listed struct {
	Record
	// Changed is when it was created or last changed, on the destination's clock. Zero: unknown.
	Changed time.Time
	// Created is when it was created, on the same clock. Zero: unknown.
	Created time.Time
}

// MaxListed is how many records one list holds in memory at the most, 100,000. A
// list that would be longer is not complete. What Scope.Each gets is not held, and
// not bounded.
const MaxListed = 100_000

var stampForm = regexp.MustCompile(`^rb-[a-z2-7]{32}$`)

// IsStamp reports whether a text is a stamp as [intent.WriteIntent.Stamp] makes
// them.
func IsStamp(s string) bool { return stampForm.MatchString(s) }

// Of reports whether a record belongs to the scope's time, and whether that is sure. It belongs
// if it was created or changed within. A record that was changed later may also have been changed
// within. An undecidable record belongs.
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

// Holds reports whether a time is in the scope. An unknown time is.
func (s Scope) Holds(t time.Time) bool {
	switch {
	case t.IsZero():
		return true
	case !s.From.IsZero() && t.Before(s.From), !s.Until.IsZero() && t.After(s.Until):
		return false
	}
	return true
}
