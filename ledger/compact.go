package ledger

import (
	"math"
	"time"
)

// Forever is longer than any retention time.
const Forever time.Duration = math.MaxInt64

// KeepOf returns how long the settled writes of a tenant to a destination keep everything.
func (p Prune) KeepOf(tenant, destination string) time.Duration {
	ofTenant, named := p.Tenants[tenant]
	ofDestination, also := p.Destinations[destination]
	switch {
	case named && also:
		return min(ofTenant, ofDestination)
	case also:
		return ofDestination
	case named:
		return ofTenant
	}
	return p.Keep
}

// Compact returns the tombstone of a settled write: its identity, its keys and how it ended. What
// it asked for, what was observed and what was prepared are removed, and its events must be
// deleted too. A worker that still holds it is fenced off.
func Compact(r Record) Record {
	r.Tombstone = true
	r.Intent, r.Before, r.Evidence, r.Mismatches = nil, nil, nil, nil
	r.Prepared, r.ChildIntent = nil, nil
	r.Owner, r.LeaseUntil, r.LeaseFor = "", time.Time{}, 0
	r.Fence++
	return r
}

// Compacts reports whether a write may become a tombstone at the time now, as far as its own record
// shows: it was settled long enough ago, needs no recheck and is not leased. Relatives are the
// writes that it compensates or that compensate it, if they still exist. None of them may be open
// or need a recheck, since a reader of one needs the other.
func (p Prune) Compacts(r Record, now time.Time, relatives ...Record) bool {
	if r.Tombstone || !done(r) || r.LeaseUntil.After(now) || !past(r.SettledAt, p.KeepOf(r.Tenant, r.Destination), now) {
		return false
	}
	for _, other := range relatives {
		if !done(other) {
			return false
		}
	}
	return true
}

// Forgets reports whether a tombstone may be deleted at the time now. A relative that is no
// tombstone yet still needs it.
func (p Prune) Forgets(r Record, now time.Time, relatives ...Record) bool {
	if !r.Tombstone || !past(r.SettledAt, p.Remember, now) {
		return false
	}
	for _, other := range relatives {
		if !other.Tombstone {
			return false
		}
	}
	return true
}

// ForgetsAlso reports whether a tombstone, or a write that will be one, is deleted when all is
// pruned: compacts reports whether a relative will be a tombstone by then.
func (p Prune) ForgetsAlso(r Record, now time.Time, compacts func(Record) (bool, error), relatives ...Record) (bool, error) {
	if !past(r.SettledAt, p.Remember, now) {
		return false, nil
	}
	for _, other := range relatives {
		if other.Tombstone {
			continue
		}
		if will, err := compacts(other); err != nil || !will {
			return false, err
		}
	}
	return true, nil
}

// Contents is the size in bytes of what [Compact] removes from a record.
func (r Record) Contents() int64 {
	return int64(len(r.Intent) + len(r.Before) + len(r.Evidence) + len(r.Mismatches) + len(r.Prepared) + len(r.ChildIntent))
}

// past reports whether something was settled at least that long ago. A row of an early version
// has no settlement time and never counts as older than [Forever].
func past(settled time.Time, keep time.Duration, now time.Time) bool {
	return keep != Forever && now.Sub(settled) >= keep
}

// done reports whether a write is settled and needs no recheck.
func done(r Record) bool { return r.State == Settled && r.Due.IsZero() && !r.InQueue() }

// ForgetsDocument reports whether a document may be deleted at the time now, as far as its own
// row shows: it is done, not due, and was not changed for long enough. The cover of a collection
// ([Document.Covers]) stays while some document of the collection is due or was changed since
// then. Otherwise the whole collection is deleted with it, the cover last.
func (p Prune) ForgetsDocument(document Document, now time.Time) bool {
	return document.Done && p.Rests(document, now)
}

// Rests reports whether a document is idle at the time now: it is not due, and was not changed
// for as long as writes are remembered.
func (p Prune) Rests(document Document, now time.Time) bool {
	return document.Due.IsZero() && now.Sub(document.Updated) >= p.Remember
}

// Covers reports whether the document is the cover of a collection.
func (p Document) Covers() bool { return p.Collection != "" && p.Collection == p.ID }
