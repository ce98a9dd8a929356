package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrTooFar means that changes after the cursor have been pruned. The follower has missed some
// and must read the writes that it needs.
var ErrTooFar = errors.New("too far behind")

// Feed is the part of a [Ledger] by which outside programs follow changes, and by which the audit
// log is made and checked.
type Feed interface {
	// Follow returns the changes after a cursor, oldest first, and the cursor to continue from:
	// that of the last one if the limit was reached, else that of the newest change of all
	// tenants, so that a follower does not fall too far behind because of other tenants' changes.
	// Every follower from an earlier cursor gets each committed change exactly once and in one
	// order, whatever workers do at the same time. It does not wait; see Changed. It fails with
	// [ErrTooFar].
	Follow(ctx context.Context, q Following) (changes []Change, next string, err error)
	// Latest returns the cursor after everything that can be followed now.
	Latest(ctx context.Context) (string, error)
	// Changed returns a channel of capacity 1 that receives a value when there may be a new
	// change, until ctx ends. It only makes followers read sooner, as [Ledger.Woken] does for
	// workers. It is a separate notifier, so that a settled write wakes no worker.
	Changed(ctx context.Context) <-chan struct{}
	// History counts the changes of one tenant by time, oldest first; empty spans are left out.
	// It covers the time for which changes are kept, at least a week.
	History(ctx context.Context, q Past) ([]Span, error)

	// BeginSealing records that a sealer works on the ledger from now on (package audit), and
	// returns until when commits may have left no run for it: the zero time if none has. Every
	// commit leaves one, whether there is a sealer or not, so that no write waits for it. Until
	// the first call Prune deletes those that are [ChangesKept] old; from then on no event is
	// pruned before it is sealed, and the time stays as it is.
	BeginSealing(ctx context.Context) (since time.Time, err error)
	// Unsealed returns runs of events that were not passed to Sealed yet, in the order of their
	// tickets, with tickets after the given one, at most limit (from 1 to 1000). Every event that
	// was committed since the time of BeginSealing is in one of them until then, whatever workers
	// do at the same time. A new run may sort before one that was returned already: the sealer
	// starts at 0 each time. It returns nothing before BeginSealing.
	Unsealed(ctx context.Context, after int64, limit int) ([]Run, error)
	// Sealed drops runs by their tickets. An unknown ticket is no error.
	Sealed(ctx context.Context, tickets []int64) error

	// Tenants returns all tenants with a write or a document, in order.
	Tenants(ctx context.Context) ([]string, error)
	// Lifetimes returns the writes after one, in the order of their ids, with their events, at
	// most limit (from 1 to 1000).
	Lifetimes(ctx context.Context, after ID, limit int) ([]Lifetime, error)
	// Kept returns the documents after one, in the order of tenant, kind and id, at most limit
	// (from 1 to 1000), without those of [AuditKind]. Of after only these three fields count.
	Kept(ctx context.Context, after Document, limit int) ([]Document, error)
	// Foreign names the triggers and rules on the ledger's tables. Drivers create none. A foreign
	// one can change what is stored after the engine has passed it on.
	Foreign(ctx context.Context) ([]string, error)
}

// Following asks for changes.
type Following struct {
	Tenant string // default: of all tenants
	After  string // a cursor; "" is before everything that still exists
	Limit  int    // default 100, at most 1000
}

// Change is one change that outside programs follow; see [Notifies].
type Change struct {
	// Cursor is after this change.
	Cursor string
	At     time.Time
	Tenant string
	ID     ID        // the write
	Seq    int64     // of its event
	Kind   EventKind // what happened
	// Settlement, Reason, Destination, Sends and Reads are as they were then.
	Settlement  Status
	Destination string
	Sends       int
	Reads       int
	// Saved says that the write was settled as verified after a send of unknown fate, and was not
	// sent again. A caller that repeats unanswered sends would have made a duplicate.
	Saved bool
}

// Notifies reports whether outside programs follow an event: the write waits for a reviewer, no
// longer does, or has ended.
func Notifies(e Event) bool {
	switch e.Kind {
	case EvHeld, EvAgreed, EvOverdue, EvApproved, EvEscalated, EvDirected, EvSettled, EvYielded:
		return true
	case EvDeferred:
		return e.Unverified
	}
	return false
}

// changeOf returns the change that an event made to a record, without its cursor. The record is
// as it was then.
func changeOf(r Record, e Event) Change {
	c := Change{At: e.At, Tenant: r.Tenant, ID: r.ID, Seq: e.Seq, Kind: e.Kind, Destination: r.Destination, Sends: r.Sends, Reads: r.Reads}
	if e.Kind == EvSettled {
		c.Settlement = e.Settlement
		c.Saved = e.Settlement == Verified && r.Unknown && r.Sends-r.Unsent == 1
	}
	return c
}

// ChangesOf returns the changes that events, as stamped, made to a record from before to after.
// Before all events it is [Record.Identity].
func ChangesOf(before, after Record, events []Event) (changes []Change) {
	for i, e := range events {
		if !Notifies(e) {
			continue
		}
		then := after
		if i < len(events)-1 {
			then = before
			for _, earlier := range events[:i+1] {
				then, _ = Apply(then, earlier, earlier.At) // they were legal
			}
		}
		changes = append(changes, changeOf(then, e))
	}
	return changes
}

// Past asks for a history.
type Past struct {
	Tenant       string // required
	Destination  string // default: any
	Since, Until time.Time
	Step         time.Duration // the length of a span; at most 1000 spans
}

// Span counts what happened from From on, for one step. Counts are of writes.
type Span struct {
	From    time.Time      `json:"from"`
	Settled map[Status]int `json:"settled" jsonschema:"how many were settled, by how"`
	Review  int            `json:"review" jsonschema:"how many went to a reviewer"`
	Held    int            `json:"held" jsonschema:"how many were held for approval"`
	Saved   int            `json:"saved" jsonschema:"how many were verified after a send of which nothing was known, and not sent again: prevented duplicates"`
	// Sends and Reads are of the writes that were settled.
	Sends int `json:"sends"`
	Reads int `json:"reads"`
}

// ChangesKept is how long changes can be followed: a follower that was off over a long weekend,
// and a plot of a week, still get them. After that, read the writes themselves. [Maintenance] prunes
// them; of all limits only [MaxChangesPruned] counts them.
const ChangesKept = 7 * 24 * time.Hour
