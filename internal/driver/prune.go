package driver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Left are the writes that a sweep left because they cannot be read.
type Left []ledger.Unread

// Leave adds a write, unless there are too many to name.
func (l *Left) Leave(id ledger.ID, why error) {
	if len(*l) < ledger.MaxUnread {
		*l = append(*l, ledger.Unread{ID: id, Err: why})
	}
}

// Error returns a [ledger.UnreadError] that names them, or nil when there are none.
func (l Left) Error() error {
	if len(l) == 0 {
		return nil
	}
	return &ledger.UnreadError{Writes: l[:min(len(l), ledger.MaxUnread)]}
}

// Sweep is the position of a sweep through settled writes, and what it did so far.
type Sweep struct {
	Tombstones   bool     // through the tombstones, or through what may become one
	Retained     Retained // of what may become one
	Key, N       int64    // of the last row that was read
	Done, AtMost int
	Ended        bool
	Left         Left

	// Forgotten counts those that would be forgotten as well, and Bytes what all have, in a dry
	// run of what may become a tombstone.
	Forgotten int
	Bytes     int64
}

// Until returns the latest settlement time of the writes that a sweep reads.
func (s Sweep) Until(p ledger.Prune, now time.Time) time.Time {
	if s.Tombstones {
		return now.Add(-p.Remember)
	}
	return now.Add(-p.KeepOf(s.Retained.Tenant, s.Retained.Destination))
}

// Retained is the writes of one tenant to one destination that may become tombstones.
type Retained struct {
	Tenant      string
	Destination string    // "" for steps without one
	Oldest      time.Time // when the first of them was settled
}

// Pruning is what [Prune] needs of a driver.
type Pruning struct {
	// Retained returns all that there is, and the time now.
	Retained func() ([]Retained, time.Time, error)
	// Sweep continues a sweep by a few rows, in one transaction.
	Sweep func(ledger.Prune, Sweep) (Sweep, error)
	// Refused deletes entries of the outbox, Documents at most that many documents, and Changes
	// what is too old to be followed.
	Refused   func(ledger.Prune) error
	Documents func(p ledger.Prune, most int) (int, error)
	Changes   func() (int, error)
}

// Prune is [ledger.Maintenance] for a driver. Each tenant and destination has its own retention and is
// swept by itself, so that what others keep longer is not read.
func Prune(p ledger.Prune, d Pruning) (did ledger.Pruned, err error) {
	if p, err = p.Checked(); err != nil {
		return did, err
	}
	var left Left
	most := p.Limit
	if p.DryRun {
		most = math.MaxInt
	}
	through := func(at Sweep) (done int, err error) {
		for at.Key = math.MinInt64; !at.Ended && at.Done < at.AtMost; {
			next, err := d.Sweep(p, at)
			if err != nil {
				return at.Done, err
			}
			at = next
		}
		left = append(left, at.Left...)
		did.Forgotten, did.Bytes = did.Forgotten+at.Forgotten, did.Bytes+at.Bytes
		return at.Done, nil
	}
	forgotten, err := through(Sweep{Tombstones: true, AtMost: most})
	if did.Forgotten += forgotten; err != nil {
		return did, err
	}
	all, now, err := d.Retained()
	if err != nil {
		return did, err
	}
	slices.SortStableFunc(all, func(a, b Retained) int { return a.Oldest.Compare(b.Oldest) })
	for _, of := range all {
		at := Sweep{Retained: of, AtMost: most - forgotten - did.Compacted}
		if of.Oldest.After(at.Until(p, now)) {
			continue
		}
		compacted, err := through(at)
		did.Compacted += compacted
		if err != nil {
			return did, err
		}
	}
	if p.DryRun {
		return did, left.Error()
	}
	if err := d.Refused(p); err != nil {
		return did, err
	}
	var documents, changes error
	did.Documents, documents = d.Documents(p, p.Limit-did.Compacted-did.Forgotten)
	did.Changes, changes = d.Changes()
	return did, cmp.Or(documents, changes, left.Error())
}

// PruneChanges deletes old changes in short transactions. Step deletes at most that many in one,
// and returns how many.
func PruneChanges(most int, step func(most int) (int, error)) (deleted int, err error) {
	for ended := false; !ended && deleted < ledger.MaxChangesPruned; {
		n, err := step(min(most, ledger.MaxChangesPruned-deleted))
		if err != nil {
			return deleted, err
		}
		deleted, ended = deleted+n, n < most
	}
	return deleted, nil
}
