// Package ledger is the durable record of every write and of every event in
// its life.
//
// A [Record] is what is known about one write now; it follows from its events
// by the pure function [Apply], which is also the table of legal moves. A
// [Ledger] keeps both: it reserves a write before anything is sent, lends it
// to one worker at a time (lease and fence), and changes it only by appending
// events. [NewMemory] keeps everything in memory; the drivers below this
// package keep it on disk, and all of them pass package ledgertest.
//
// The package does not know destinations, verdicts or policies: it carries
// their words and evidence and does not interpret them.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers can tell apart. Drivers wrap them.
var (
	// ErrNotFound: no such write in this tenant.
	ErrNotFound = errors.New("no such write")
	// ErrFenced: another worker has taken the record over; what the caller
	// wanted to append was not applied. It may still be kept as evidence with
	// a Late event.
	ErrFenced = errors.New("another worker has taken this write over")
	// ErrIllegalMove: the event is not legal in the record's state; nothing
	// was changed.
	ErrIllegalMove = errors.New("illegal move")
	// ErrDigestMismatch is wrapped by [DigestMismatchError].
	ErrDigestMismatch = errors.New("same structural key, another digest")
	// ErrBlocked is wrapped by [BlockedError].
	ErrBlocked = errors.New("same idempotency key in another write")
	// ErrUnavailable: the ledger cannot be used now (full disk, read-only
	// file, broken connection). Nothing of the call was applied unless the
	// error is ErrUnsure as well.
	ErrUnavailable = errors.New("ledger unavailable")
	// ErrUnsure comes with ErrUnavailable when the ledger broke down, or the
	// caller gave up, in the middle of a commit: the call may have been applied
	// or not. A later read tells.
	ErrUnsure = errors.New("it is not known whether this was applied")
	// ErrCorrupt: what the ledger holds contradicts itself.
	ErrCorrupt = errors.New("ledger corrupt")
	// ErrVersion: the ledger was written by a newer version.
	ErrVersion = errors.New("ledger of a newer version")
	// ErrExpired: the time in which a held write could be approved is over.
	ErrExpired = errors.New("approval expired")
	// ErrClock: the clock stands before the newest entry by more than drivers
	// tolerate, so that no lease, settle time or horizon can be trusted.
	ErrClock = errors.New("clock went backwards")
)

// DigestMismatchError says that the structural key is taken by a write that
// asks for something else. Nothing was changed.
type DigestMismatchError struct {
	ID       ID
	Recorded string // the digest in the ledger
	Received string // the digest of the refused intent
}

func (e *DigestMismatchError) Error() string {
	return fmt.Sprintf("write %s: same structural key, another digest: recorded %s, received %s; one logical write cannot change what it asks for: give a new call number, or repeat the intent unchanged",
		e.ID, e.Recorded, e.Received)
}

// Unwrap returns [ErrDigestMismatch].
func (e *DigestMismatchError) Unwrap() error { return ErrDigestMismatch }

// BlockedError says that the business operation was begun by another write of
// the same tenant and tool inside the window. Nothing was changed.
type BlockedError struct {
	Prior Record
	// Received is the digest of the refused intent: another than the prior
	// write's says that one name was given to two different things.
	Received string
}

func (e *BlockedError) Error() string {
	what := "ask for its outcome"
	if e.Received != "" && e.Received != e.Prior.Digest {
		what = fmt.Sprintf("and it asks for something else (recorded %s, received %s): ask for its outcome, or name another operation", e.Prior.Digest, e.Received)
	}
	return fmt.Sprintf("idempotency key %q was used by write %s of workflow %q, now %s: that write is the operation, %s",
		e.Prior.IdempotencyKey, e.Prior.ID, e.Prior.Workflow, e.Prior.Phase(), what)
}

// Unwrap returns [ErrBlocked].
func (e *BlockedError) Unwrap() error { return ErrBlocked }

// Ledger keeps writes. All methods are safe for concurrent use, are scoped to
// a tenant where they name one, and apply all of a call or nothing. When a
// call returns nil what it did is durable.
type Ledger interface {
	// Precheck is called before the pre-state of a write is read that is to be
	// reserved. It changes nothing. The answer belongs into the [Reservation].
	Precheck(ctx context.Context, r Record) (Precheck, error)
	// Reserve takes the structural key in one atomic step. It returns the
	// record and whether it is new: with the lease for its owner, or, when
	// another write of the same line is to be done first, queued behind it
	// ([Record.Behind]) with nobody's lease; false for one that is there already
	// with the same digest. It fails with [DigestMismatchError] or
	// [BlockedError].
	Reserve(ctx context.Context, r Reservation) (rec Record, fresh bool, err error)
	// Claim lends due or orphaned records to a worker, each with a higher fence
	// than ever before. Tenants and destinations take turns, and each gives its
	// oldest due first: no backlog of one keeps another waiting. A lease that
	// has not ended is respected even when the same owner holds it.
	Claim(ctx context.Context, c Claim) ([]Record, error)
	// Append applies events in order, in one step, and extends the lease. It
	// is the only way a record changes, but that one which leaves its line
	// frees the one behind it in the same step. It fails with [ErrFenced] when fence
	// is not the record's, and with [ErrIllegalMove]. A single Late event is
	// taken under any fence.
	Append(ctx context.Context, id ID, fence int64, events ...Event) (Record, error)
	// Get returns one record, or [ErrNotFound].
	Get(ctx context.Context, tenant string, id ID) (Record, error)
	// Events returns the life of one write in order, or [ErrNotFound].
	Events(ctx context.Context, tenant string, id ID) ([]Event, error)
	// List returns records, newest first. It fails with [ErrNotFound] when
	// Before names no record of the tenant. Rows that cannot be read cost no
	// others: whatever can be read, up to Limit, is returned together with an
	// [UnreadError] that names those which were left out. Before may name one of
	// them. What such a row is, is not known: whoever decides by what is not in
	// a listing must take that error for one.
	List(ctx context.Context, f Filter) ([]Record, error)
	// Find returns writes of one tenant by what people know of them, newest first
	// unless asked otherwise. Rows that cannot be read are left out, and named in
	// Found.Unread. It looks at a bounded number of rows, so that a page may hold
	// fewer than were asked for, none even, and Found.Next says where to go on. It
	// fails with [ErrCursor].
	Find(ctx context.Context, s Search) (Found, error)
}

// Reservation asks for a structural key.
type Reservation struct {
	Record Record // identity and intent; see [NewRecord]
	// Events are applied to a new record in the same step, after Reserved:
	// usually the pre-state read and the announcement of the first send.
	Events []Event
	// Owner and LeaseFor say who works on it and for how long at least. Without
	// an owner the write is only queued, for whoever claims it.
	Owner    string
	LeaseFor time.Duration
	// Precheck is what the ledger answered before the pre-state among Events was
	// read. Where another write of the same key digest was recorded since then,
	// that pre-state may be older than the other write's effect. The new write
	// then gets its place in the queue and the lease, and Events are dropped: its
	// owner reads again. Default: Events depend on no read.
	Precheck *Precheck
	// Window is how long an equal idempotency key of another write blocks after
	// that was settled. Default: for ever.
	Window time.Duration
}

// Precheck is what a ledger holds of a write, and of the other writes with its
// key digest, at one moment.
type Precheck struct {
	// Recorded says that the write is in the ledger already.
	Recorded bool
	// Contended says that another write is in the queue, or held and may join it
	// at any time. A pre-state that is read now is worth nothing.
	Contended bool
	// Newest is the number of the newest write that the ledger compares with:
	// writes recorded later have higher ones. It is the ledger's order, not a time,
	// so no clock can change it.
	Newest int64
}

// Claim asks for work.
type Claim struct {
	Owner    string
	LeaseFor time.Duration
	// Leases are how long leases on records of single destinations last. Default
	// LeaseFor.
	Leases map[string]time.Duration
	// Limit is how many records at the most. Default 1.
	Limit int
	// Tenant and ID narrow it to one record; both or neither. Default: any
	// record of any tenant.
	Tenant string
	ID     ID
	// Early takes a record before it is due, or one that is not due at all, but
	// never one that waits behind another. Only with ID. Default false.
	Early bool
	// Gone is an owner whose process is known to have ended: its lease on the record
	// counts for nothing. Only with ID. Default: leases last as long as they were
	// given for.
	Gone string
	// Most bounds the records of single destinations within Limit; 0 takes none.
	// Destinations that are not named are bounded by Limit alone.
	Most map[string]int
	// Paused names destinations whose queued writes are passed over; all else
	// of theirs (reads, rechecks) is lent.
	Paused []string
}

// Filter selects records of one tenant.
type Filter struct {
	Tenant string // required
	States []State
	// KeyDigest selects the writes about one record that are open or owe a
	// recheck. Default: of all records.
	KeyDigest string
	// Before continues a listing: only records created before this one, which
	// must be of the same tenant. Default: from the newest on.
	Before ID
	// Limit is how many at the most. Default 100, at most 1000.
	Limit int
}
