package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrTooFar says that what comes behind the cursor has been pruned; whoever follows has
// missed something, and must look up what it wants to know.
var ErrTooFar = errors.New("too far behind")

// Follower is what a [Ledger] can be besides: it tells in order what somebody
// outside wants to hear of. It is how outcomes are streamed and sent on.
type Follower interface {
	// Follow returns the changes behind a cursor, oldest first, and the cursor to
	// go on from: that of the last one where there are as many as were asked for,
	// else that of the newest change of all tenants, so that who goes on from it
	// is not too far behind one day because the others did so much. A change
	// that was committed is told to everybody who follows from a cursor before
	// it, exactly once and in one order, whatever workers do at the same time. It
	// does not wait; see [Waker]. It fails with [ErrTooFar].
	Follow(ctx context.Context, q Following) (changes []Change, next string, err error)
	// Latest is the cursor behind everything that can be followed now.
	Latest(ctx context.Context) (string, error)
}

// Herald is what a [Ledger] can be besides: it tells when there may be a new
// change. It only makes whoever follows look sooner, as [Waker] does for those
// who work; it is another bell, so that what is settled wakes nobody for work.
type Herald interface {
	// Told returns a channel of capacity 1 that gets a value when there may be a
	// new change, until ctx ends.
	Told(ctx context.Context) <-chan struct{}
}

// Following asks for changes.
type Following struct {
	Tenant string // default: of all tenants
	After  string // a cursor; "" is before everything that is still there
	Limit  int    // default 100, at most 1000
}

// Change is one thing that somebody outside wants to hear of; see [Tells].
type Change struct {
	// Cursor is behind this change.
	Cursor string
	At     time.Time
	Tenant string
	ID     ID        // the write
	Seq    int64     // of its event
	Kind   EventKind // what happened
	// Settlement, Reason, Destination, Sends and Reads are as they were then.
	Settlement  Settlement
	Destination string
	Sends       int
	Reads       int
	// Saved says that the write was settled as verified after a send of which
	// nobody knew whether it had been taken, and was not sent again: whoever
	// repeats what was not answered would have made a double.
	Saved bool
}

// Tells reports whether an event is one that somebody outside wants to hear of:
// it waits for a person, no longer does, or has ended.
func Tells(e Event) bool {
	switch e.Kind {
	case EvHeld, EvAgreed, EvOverdue, EvApproved, EvEscalated, EvDirected, EvSettled, EvYielded:
		return true
	case EvDeferred:
		return e.Unverified
	}
	return false
}

// ChangeOf is the change that an event made to a record, which is as it was then,
// but for its cursor.
func ChangeOf(r Record, e Event) Change {
	c := Change{At: e.At, Tenant: r.Tenant, ID: r.ID, Seq: e.Seq, Kind: e.Kind, Destination: r.Destination, Sends: r.Sends, Reads: r.Reads}
	if e.Kind == EvSettled {
		c.Settlement = e.Settlement
		c.Saved = e.Settlement == Verified && r.Unknown && r.Sends-r.Unsent == 1
	}
	return c
}

// ChangesOf are the changes that events, as they were stamped, made to a record
// that was before what it is after them; before all of them it is
// [Record.Identity].
func ChangesOf(before, after Record, events []Event) (changes []Change) {
	for i, e := range events {
		if !Tells(e) {
			continue
		}
		then := after
		if i < len(events)-1 {
			then = before
			for _, earlier := range events[:i+1] {
				then, _ = Apply(then, earlier, earlier.At) // they were legal
			}
		}
		changes = append(changes, ChangeOf(then, e))
	}
	return changes
}

// Historian is what a [Ledger] can be besides: it counts what became of writes.
type Historian interface {
	// History counts the changes of one tenant by time, oldest first; spans in
	// which nothing happened are left out. It goes back as far as changes are
	// kept, which is a week at least.
	History(ctx context.Context, q Past) ([]Span, error)
}

// Past asks for a history.
type Past struct {
	Tenant       string // required
	Since, Until time.Time
	Step         time.Duration // the length of a span; at most 1000 spans
}

// Span is what happened from From on, for one step. Counts are of writes.
type Span struct {
	From    time.Time
	Settled map[Settlement]int
	Review  int // went to a person
	Held    int
	Saved   int // see Change.Saved
	// Sends and Reads are of the writes that were settled.
	Sends, Reads int
}
