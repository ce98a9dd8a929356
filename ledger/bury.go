package ledger

import "time"

// Bury is the tombstone of a settled write: its identity, its keys and how it
// ended. What it asked for, what was seen and what was prepared are gone, and
// so must be its events. Whoever still holds it is fenced off.
func Bury(r Record) Record {
	r.Tombstone = true
	r.Intent, r.Before, r.Evidence, r.Mismatches = nil, nil, nil, nil
	r.Prepared, r.ChildIntent = nil, nil
	r.Owner, r.LeaseUntil, r.LeaseFor = "", time.Time{}, 0
	r.Fence++
	return r
}

// Buries reports whether a write may become a tombstone at the time now, as
// far as it alone can tell: it is settled for long enough, owes nothing, and
// is in nobody's hands and in nobody's way. Relatives are the writes that it
// compensates or that compensate it, as far as they are still there: none of
// them may be open or owe anything, since who looks at one needs the other.
func (p Prune) Buries(r Record, now time.Time, relatives ...Record) bool {
	if r.Tombstone || !done(r) || r.LeaseUntil.After(now) || now.Sub(r.SettledAt) < p.Keep {
		return false
	}
	for _, other := range relatives {
		if !done(other) {
			return false
		}
	}
	return true
}

// Forgets reports whether a tombstone may be forgotten at the time now. A
// relative that is no tombstone yet still needs it.
func (p Prune) Forgets(r Record, now time.Time, relatives ...Record) bool {
	if !r.Tombstone || now.Sub(r.SettledAt) < p.Remember {
		return false
	}
	for _, other := range relatives {
		if !other.Tombstone {
			return false
		}
	}
	return true
}

// done reports whether a write is settled and owes no look.
func done(r Record) bool { return r.State == Settled && r.Due.IsZero() && !r.InLine() }

// ForgetsPaper reports whether a paper may be forgotten at the time now, as far
// as it alone can tell: it is done, nobody is to look at it, and it has not been
// changed for long enough. The cover of a binder ([Paper.Covers]) stays while
// some paper of the binder is due or was changed since then; else all of the
// binder goes with it, the cover last.
func (p Prune) ForgetsPaper(paper Paper, now time.Time) bool {
	return paper.Done && p.Rests(paper, now)
}

// Rests reports whether a paper is in nobody's hands at the time now: nobody is
// to look at it, and it has not been changed for as long as writes are
// remembered.
func (p Prune) Rests(paper Paper, now time.Time) bool {
	return paper.Due.IsZero() && now.Sub(paper.Updated) >= p.Remember
}

// Covers reports whether the paper is the cover of a binder.
func (p Paper) Covers() bool { return p.Binder != "" && p.Binder == p.ID }
