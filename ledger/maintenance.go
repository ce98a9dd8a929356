package ledger

import (
	"context"
	"fmt"
	"time"
)

// Maintenance is the part of a [Ledger] that counts what is open and deletes what was settled long
// ago.
type Maintenance interface {
	// QueueStats counts open writes. It reads nothing that is settled and needs no recheck, so
	// that its cost depends on the work and not on the history.
	QueueStats(ctx context.Context) (QueueStats, error)
	// Prune turns settled writes into tombstones and deletes tombstones, then documents, at most
	// Limit in all, in short transactions. It keeps what is not settled, needs a recheck, or is
	// still waited for, and documents that [Prune.ForgetsDocument] does not allow to go. It also
	// keeps what cannot be read: when all else is done, an [UnreadError] names those rows whose
	// time may have come. Changes are deleted when they are [ChangesKept] old, except the last of
	// all. What a legal hold covers is kept too ([Holds]). A dry run only counts.
	Prune(ctx context.Context, p Prune) (Pruned, error)
	// Erase erases the contents of settled writes of any age, in one step: each becomes a
	// tombstone ([Erase]). What is not done, is under a legal hold, or is not yet in the audit
	// chain (if there is one) is kept and named in Erased.Left. It fails with [ErrNoDocument]
	// when the document of the erasure does not exist.
	Erase(ctx context.Context, e Erasing) (Erased, error)
	// KeyDigests makes digests of business keys as the ledger stores them, so that a [Hold] or an
	// [Erasure] can be compared with its records.
	KeyDigests() KeyDigests
	// Scrub overwrites deleted data, as far as the store can do that itself. It can take long,
	// and others may have to wait for it.
	Scrub(ctx context.Context) error
}

// Prune configures what may be deleted.
type Prune struct {
	// Keep is how long a settled write keeps its intent, evidence and events.
	// [Forever] keeps them. Required.
	Keep time.Duration
	// Tenants and Destinations set this time for the writes of one tenant, and for those to one
	// destination. Where both name a write the shorter one counts. Default Keep for all.
	Tenants, Destinations map[string]time.Duration
	// Remember is how long after a write was settled its keys and its outcome stay known, so that
	// a repeat of it is not sent again; and how long after its last change a finished document is
	// kept. At least as long as every other time here that is not [Forever]; required.
	Remember time.Duration
	// Limit bounds one call. Default 1000.
	Limit int
	// DryRun deletes nothing. It counts the writes that calls without it would compact and
	// forget until nothing is left, whatever Limit is. A write can be both. Default false.
	DryRun bool
}

const (
	// defaultPrune and maxPrune bound one call of Prune, so that it can be stopped between two
	// calls.
	defaultPrune = 1000
	maxPrune     = 100_000
)

// Checked returns the request with its defaults, or an error that names what is missing.
func (p Prune) Checked() (Prune, error) {
	switch {
	case p.Keep <= 0:
		return p, fmt.Errorf("prune: keep is %s; want how long a settled write keeps its intent, evidence and events, above zero", p.Keep)
	case p.Remember < p.Keep:
		return p, fmt.Errorf("prune: remember (%s) is shorter than keep (%s); want at least that long, and longer than the longest window in which a write may be repeated", p.Remember, p.Keep)
	}
	for what, keeps := range map[string]map[string]time.Duration{"tenant": p.Tenants, "destination": p.Destinations} {
		for name, keep := range keeps {
			if keep <= 0 || keep > p.Remember && keep != Forever {
				return p, fmt.Errorf("prune: keep of %s %q is %s; want above zero and at most remember (%s), or Forever", what, name, keep, p.Remember)
			}
		}
	}
	if p.Limit <= 0 {
		p.Limit = defaultPrune
	}
	p.Limit = min(p.Limit, maxPrune)
	return p, nil
}

// Pruned counts what one call deleted.
type Pruned struct {
	Compacted int // became tombstones
	Forgotten int // deleted tombstones
	Documents int // deleted documents
	Changes   int // deleted changes, at most [MaxChangesPruned] whatever Limit is
	// Bytes are those of intents, evidence and events that would be deleted. Only a dry run
	// counts them, and it counts no documents and no changes.
	Bytes int64
}

// MaxChangesPruned is the most changes that one call of [Maintenance] deletes. They are small and come
// with every write, and a call each minute must keep up.
const MaxChangesPruned = 100_000

// QueueStats counts what is open in a ledger at a time.
type QueueStats struct {
	Now    time.Time
	Queues []Queue // ordered by tenant, destination and state
	// Outbox counts entries that callers enqueued in their transactions and that are not in the
	// ledger proper yet; Oldest is when the oldest of them was enqueued. Refused are entries that
	// can never be taken in, at most 100, oldest first.
	Outbox  int
	Oldest  time.Time
	Refused []Refused
	// Damaged are writes whose rows cannot be read. Only they are skipped, until an operator
	// repairs them. At most 100.
	Damaged []Refused
}

// Queue counts the open writes of one tenant and destination in one state; in state settled those
// that need a recheck.
type Queue struct {
	Tenant        string    `json:"tenant"`
	Destination   string    `json:"destination"`
	State         State     `json:"state"`
	Count         int       `json:"count"`
	Due           int       `json:"due"`                 // due now, and no worker has or had it: not leased, or [Dispatched]
	Leased        int       `json:"leased"`              // leased by a worker
	Orphaned      int       `json:"orphaned"`            // with a lease of a worker that has ended
	Waiting       int       `json:"behind"`              // queued behind another write
	Bytes         int64     `json:"bytes"`               // of their intents, as the ledger keeps them
	OldestDue     time.Time `json:"oldest_due,omitzero"` // of those that are due or orphaned; zero when none is
	OldestCreated time.Time `json:"oldest_created,omitzero"`
}

// Refused is an entry of the outbox that cannot be taken in, or a damaged row.
type Refused struct {
	Tenant string    `json:"tenant"`
	ID     ID        `json:"id"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at,omitzero"`
}
