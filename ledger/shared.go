package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What follows are optional powers of a ledger. All drivers that come with
// readback have them; they stand apart so that no interface is large and that
// each user names what it needs.

// ErrStale says that a note or a paper was changed by somebody else since it was
// read.
var ErrStale = errors.New("changed by somebody else meanwhile")

// ErrFull says that the queue is full and takes nothing more now. Nothing was recorded.
var ErrFull = errors.New("queue full")

// ErrRefused is wrapped by [RefusedError].
var ErrRefused = errors.New("enqueued write refused")

// RefusedError says that a write that was enqueued in a transaction of its
// caller could not be taken into the ledger. Nothing was sent, and nothing
// will be.
type RefusedError struct {
	ID     ID
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("write %s was enqueued and is refused: %s; nothing was sent", e.ID, e.Reason)
}

// Unwrap returns [ErrRefused].
func (e *RefusedError) Unwrap() error { return ErrRefused }

// Notes is what workers tell each other through the ledger: rates, breakers,
// stops, learned lags. What a note means is its writer's business.
type Notes interface {
	// Notes returns those whose name begins with prefix, ordered by name, and
	// the time on the ledger's clock.
	Notes(ctx context.Context, prefix string) ([]Note, time.Time, error)
	// SetNote writes a note and returns it with its new version and time, if
	// its version in the ledger still is n.Version (0: there is none); else it
	// fails with [ErrStale]. An empty value removes the note.
	SetNote(ctx context.Context, n Note) (Note, error)
}

// Note is a small named value.
type Note struct {
	Name    string // at most 200 bytes
	Version int64  // 0: not there yet
	Value   []byte // at most 256 KiB
	At      time.Time
}

// Pruner forgets what has been settled for long.
type Pruner interface {
	// Prune turns settled writes into tombstones and forgets tombstones, then
	// papers, at most Limit in all, in short transactions. What is not settled,
	// owes a recheck, or is still waited for stays, and so does a paper that
	// [Prune.ForgetsPaper] does not let go. So does what cannot be read: an
	// [UnreadError] names those of it whose time may have come, when all else
	// is done. Changes go when they are [ChangesKept] old, but for the last of
	// all.
	Prune(ctx context.Context, p Prune) (Pruned, error)
}

// Prune says what may be forgotten.
type Prune struct {
	// Keep is how long a settled write keeps its intent, evidence and events.
	// Required.
	Keep time.Duration
	// Remember is how long after it was settled its keys and its outcome stay
	// known, so that a repeat of it is not sent again; and how long after its last
	// change a paper that is done stays. At least Keep; required.
	Remember time.Duration
	// Limit bounds one call. Default 1000.
	Limit int
}

// Pruned counts what one call forgot.
type Pruned struct {
	Buried    int // became tombstones
	Forgotten int // tombstones that are gone
	Papers    int // papers that are gone
	Changes   int // changes that are gone, at most [MaxChangesPruned] whatever Limit is
}

// Surveyor counts what is open. It looks at nothing that is settled and owes
// nothing, so that its cost follows the work and not the history.
type Surveyor interface {
	Survey(ctx context.Context) (Survey, error)
}

// Survey is what is open in a ledger at a time.
type Survey struct {
	Now    time.Time
	Queues []Queue // ordered by tenant, destination and state
	// Outbox counts what was enqueued in transactions of its callers and is
	// not in the ledger proper yet; Oldest is when the oldest of it was
	// enqueued. Refused are entries that can never be taken in, at most 100,
	// oldest first.
	Outbox  int
	Oldest  time.Time
	Refused []Refused
	// Damaged are writes whose rows cannot be read; they are passed over until
	// somebody mends them, and nothing else is. At most 100.
	Damaged []Refused
}

// Queue counts the open writes of one tenant and destination in one state; in
// state settled those that owe a recheck.
type Queue struct {
	Tenant, Destination string
	State               State
	Count               int
	Due                 int       // due now and in nobody's hands
	Leased              int       // in somebody's hands
	Orphaned            int       // in the hands of somebody whose lease has ended
	Behind              int       // waiting for another write of the same line
	OldestDue           time.Time // of those that are due or orphaned; zero when none is
	OldestCreated       time.Time
}

// Refused is an entry of the outbox that cannot be taken in, or a damaged row.
type Refused struct {
	Tenant string
	ID     ID
	Reason string
	At     time.Time
}

// Waker tells when there may be new work. It only makes a worker look sooner:
// whoever does not listen, or misses it, finds the work at its next look.
type Waker interface {
	// Woken returns a channel of capacity 1 that gets a value when work may have
	// become due, until ctx ends.
	Woken(ctx context.Context) <-chan struct{}
}

// Operations tells who has begun a business operation, by the look-up that
// Reserve makes.
type Operations interface {
	// Operation returns the writes of a tenant that bear a tool and an
	// idempotency key and can stop others ([Record.Blocking]): those that are
	// open first, then the newest, at most [OperationLimit].
	Operation(ctx context.Context, tenant, tool, key string) ([]Record, error)
}
