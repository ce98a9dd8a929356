// Package ledger is the durable record of every write and of every event in its life.
//
// A [Record] is what is known about one write now. The pure function [Apply], which is also the
// table of legal moves, derives it from the write's events. A [Ledger] keeps both: it reserves a
// write before anything is sent, leases it to one worker at a time (lease and fence), and changes
// it only by appending events. [NewMemory] keeps everything in memory; the drivers below this
// package keep it on disk. All of them pass package ledgertest.
//
// The package does not know destinations, verdicts or policies. It stores their words and
// evidence and does not interpret them.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers can distinguish. Drivers wrap them.
var (
	// ErrNotFound: the tenant has no such write.
	ErrNotFound = errors.New("no such write")
	// ErrFenced: another worker has taken the record over; the caller's events were not applied.
	// They may still be kept as evidence with a Late event.
	ErrFenced = errors.New("another worker has taken this write over")
	// ErrIllegalMove: the event is not legal in the record's state; nothing
	// was changed.
	ErrIllegalMove = errors.New("illegal move")
	// ErrDigestMismatch is wrapped by [DigestMismatchError].
	ErrDigestMismatch = errors.New("same structural key, another digest")
	// ErrNoKey: the caller lacks the key with which the ledger's data was made: the digest of a
	// recorded write (so it is unknown whether another intent is the same), a sealed entry of the
	// outbox, or every digest of a business key. Nothing was changed.
	ErrNoKey = errors.New("made with a key that is not here")
	// ErrBlocked is wrapped by [BlockedError].
	ErrBlocked = errors.New("same idempotency key in another write")
	// ErrUnavailable: the ledger cannot be used now (full disk, read-only
	// file, broken connection). Nothing of the call was applied unless the
	// error is ErrUnsure as well.
	ErrUnavailable = errors.New("ledger unavailable")
	// ErrUnsure comes with ErrUnavailable when the ledger failed, or the caller gave up, during a
	// commit: the call may or may not have been applied. A later read shows which.
	ErrUnsure = errors.New("it is not known whether this was applied")
	// ErrCorrupt: the contents of the ledger contradict themselves.
	ErrCorrupt = errors.New("ledger corrupt")
	// ErrVersion: the ledger was written by a newer version.
	ErrVersion = errors.New("ledger of a newer version")
	// ErrExpired: the time in which a held write could be approved has passed.
	ErrExpired = errors.New("approval expired")
	// ErrClock: the clock is behind the newest entry by more than drivers tolerate, so that no
	// lease, settle time or horizon can be trusted.
	ErrClock = errors.New("clock went backwards")
)

// DigestMismatchError means that the structural key is taken by a write that asks for something
// else. Nothing was changed.
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

// BlockedError means that another write of the same tenant and tool began the business operation
// inside the window. Nothing was changed.
type BlockedError struct {
	Prior Record
	// Received is the digest of the refused intent. If it differs from the prior write's, one
	// name was given to two different things. Empty where the two cannot be compared
	// ([ErrNoKey]).
	Received string
}

func (e *BlockedError) Error() string {
	what := "ask for its outcome"
	if e.Received != "" && e.Received != e.Prior.Digest {
		what = fmt.Sprintf("and it asks for something else (recorded %s, received %s): ask for its outcome, or name another operation", e.Prior.Digest, e.Received)
	}
	if e.Prior.Erased != "" {
		return fmt.Sprintf("the idempotency key was used by write %s, now %s, whose contents were erased: that write is the operation, %s",
			e.Prior.ID, e.Prior.Phase(), what)
	}
	return fmt.Sprintf("idempotency key %q was used by write %s of workflow %q, now %s: that write is the operation, %s",
		e.Prior.IdempotencyKey, e.Prior.ID, e.Prior.Workflow, e.Prior.Phase(), what)
}

// Unwrap returns [ErrBlocked].
func (e *BlockedError) Unwrap() error { return ErrBlocked }

// Ledger keeps writes. All methods are safe for concurrent use, are scoped to a tenant where they
// name one, and apply all of a call or nothing. When a call returns nil, its changes are durable.
type Ledger interface {
	Documents
	Feed
	Maintenance

	// Precheck is called before the pre-state of a write that is to be reserved is read. It
	// changes nothing. Its result belongs into the [Reservation].
	Precheck(ctx context.Context, r Record) (Precheck, error)
	// Reserve takes the structural key in one atomic step. It returns the record and whether it
	// is new. A new one is leased to its owner, or, when another write of the same queue is to be
	// done first, queued behind it ([Record.QueuedBehind]) without a lease. It returns false for
	// an existing one with the same digest. It fails with [DigestMismatchError], [ErrNoKey] or
	// [BlockedError].
	Reserve(ctx context.Context, r Reservation) (rec Record, fresh bool, err error)
	// Claim leases due or orphaned records to a worker, each with a higher fence than ever
	// before. Tenants and destinations alternate, and each gives its oldest due first, so that no
	// backlog delays another. A lease that has not ended is respected even when the same owner
	// holds it.
	Claim(ctx context.Context, c Claim) ([]Record, error)
	// Append applies events in order, in one step, and extends the lease. Records change in no
	// other way, except that a write which leaves its queue frees the next one in the same step.
	// It fails with [ErrFenced] when fence is not the record's, and with [ErrIllegalMove]. A
	// single Late event is accepted under any fence.
	Append(ctx context.Context, id ID, fence int64, events ...Event) (Record, error)
	// Get returns one record, or [ErrNotFound].
	Get(ctx context.Context, tenant string, id ID) (Record, error)
	// Events returns all events of one write in order, or [ErrNotFound].
	Events(ctx context.Context, tenant string, id ID) ([]Event, error)
	// List returns records, newest first. It fails with [ErrNotFound] when Before names no record
	// of the tenant. Rows that cannot be read do not affect others: whatever can be read, up to
	// Limit, is returned together with an [UnreadError] that names the rows left out. Before may
	// name one of them. The contents of such a row are unknown: a caller that acts on a record's
	// absence from a listing must treat that error as a failure.
	List(ctx context.Context, f Filter) ([]Record, error)
	// Find returns writes of one tenant by search terms, newest first unless requested otherwise.
	// Rows that cannot be read are left out, and named in Found.Unread. It reads a bounded number
	// of rows, so that a page may hold fewer than requested, or none, while Found.Next says where
	// to continue. It fails with [ErrCursor].
	Find(ctx context.Context, s Search) (SearchResult, error)
	// Waiting counts the writes of one tenant that wait for a reviewer, by what they wait for, and
	// of each group those created before some times. It returns at most [MaxWaits] groups, ordered
	// by their text, and whether there are more. A row that cannot be read counts as its columns
	// say.
	Waiting(ctx context.Context, tenant string, before [WaitAges]time.Time) (found []Waiting, more bool, err error)
	// Operation returns the writes that began a business operation, by the query that Reserve
	// makes: those of a tenant that have a tool and an idempotency key and can stop others
	// ([Record.Blocking]), open ones first, then the newest, at most [OperationLimit].
	Operation(ctx context.Context, tenant, tool, key string) ([]Record, error)
	// Woken returns a channel of capacity 1 that receives a value when work may have become due,
	// until ctx ends. It only makes a worker read sooner: a worker that does not listen, or
	// misses a signal, finds the work at its next read.
	Woken(ctx context.Context) <-chan struct{}
	// KeepWith sets the function that returns the record to store for the requested record of an
	// entry of the outbox, with the same identity. For an entry that is sealed as a whole
	// ([SealedEntry]) it gets the id, the tenant, the key digest and the sealed intent. An error
	// refuses the entry for good, except [ErrNoKey]: then the entry waits for a process with the
	// key, and so do all entries queued behind it about the same record. Default: it is stored
	// unchanged, and a sealed one waits.
	KeepWith(keep func(Record) (Record, error))
	// KeepByDefault is KeepWith with the lowest precedence: it changes nothing if a function was
	// set before.
	KeepByDefault(keep func(Record) (Record, error))
}

// Reservation is a request for a structural key.
type Reservation struct {
	Record Record // identity and intent; see [NewRecord]
	// Events are applied to a new record in the same step, after Reserved:
	// usually the pre-state read and the announcement of the first send.
	Events []Event
	// Owner is the worker and LeaseFor the least time of its lease. Without an owner the write is
	// only queued, and any worker may claim it.
	Owner    string
	LeaseFor time.Duration
	// Precheck is the result of Precheck before the pre-state among Events was read. If another
	// write of the same key digest was recorded since, that pre-state may be older than the other
	// write's effect. The new write then gets its place in the queue and the lease, and Events
	// are dropped: its owner reads again. Default: Events depend on no read.
	Precheck *Precheck
	// Window is how long an equal idempotency key of another write blocks after that was settled.
	// Default: for ever.
	Window time.Duration
}

// Precheck is the state of a write, and of the other writes with its key digest, at one moment.
type Precheck struct {
	// Recorded says that the write is in the ledger already.
	Recorded bool
	// Contended says that another write is in the queue, or held and may join it at any time. A
	// pre-state that is read now is useless.
	Contended bool
	// Newest is the number of the newest write that was compared. Writes recorded later have
	// higher numbers. It is the ledger's order, not a time, so that no clock can change it.
	Newest int64
}

// Filter selects records of one tenant.
type Filter struct {
	Tenant string // required
	States []State
	// KeyDigest selects the writes about one record that are open or need a recheck. It may be
	// plain or as the ledger stores it. Default: of all records.
	KeyDigest string
	// Before continues a listing: only records created before this one, which must be of the same
	// tenant. Default: from the newest on.
	Before ID
	// Limit is the most records to return. Default 100, at most 1000.
	Limit int
}

// Checked returns the filter with its defaults, or an error that names what is missing.
func (f Filter) Checked() (Filter, error) {
	if f.Tenant == "" {
		return f, errors.New("list: the tenant is missing; every listing is of one tenant")
	}
	if f.Limit <= 0 {
		f.Limit = defaultList
	}
	f.Limit = min(f.Limit, maxList)
	return f, nil
}

const (
	// defaultList and maxList bound one listing: a page for people, and what easily fits in
	// memory and on a wire.
	defaultList = 100
	maxList     = 1000
)
