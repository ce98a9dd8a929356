package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Search selects writes of one tenant; all that is given must fit.
type Search struct {
	Tenant string // required
	// States and Settlements: any of these. Default: any at all. Settlements
	// selects among the settled ones; both together are a union, "in review, or
	// settled as denied".
	States      []State
	Settlements []Settlement
	// Destination, Workflow, CorrelationID, IdempotencyKey and KeyDigest: this
	// one, whole. Default: any. KeyDigest finds settled writes as well, which
	// Filter.KeyDigest does not.
	Destination    string
	Workflow       string
	CorrelationID  string
	IdempotencyKey string
	KeyDigest      string
	// Since and Until bound when it was created: at or after, before. Default:
	// not bounded.
	Since, Until time.Time
	// Oldest has the oldest first. Default false.
	Oldest bool
	// After continues behind a page: its Found.Next. Default: from the start.
	After string
	// Limit is how many at the most. Default 50, at most 200.
	Limit int
}

// Found is a page of what was found.
type Found struct {
	Records []Record
	// Next is given to Search.After for the next page; "" at the end.
	Next string
	// Unread names rows that cannot be read.
	Unread []Unread
}

// Checked is the search with its defaults, or what is wrong with it.
func (s Search) Checked() (Search, error) {
	switch {
	case s.Tenant == "":
		return s, fmt.Errorf("ledger: a search without a tenant")
	case s.Limit < 0 || s.Limit > maxFound:
		return s, fmt.Errorf("ledger: a search with limit %d; want 1 to %d, or 0 for %d", s.Limit, maxFound, defaultFound)
	case s.Limit == 0:
		s.Limit = defaultFound
	}
	if s.After != "" {
		if _, err := FoundAfter(s.After); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Selects reports whether a record fits.
func (s Search) Selects(r Record) bool {
	fits := func(want, have string) bool { return want == "" || want == have }
	anyPhase := len(s.States) == 0 && len(s.Settlements) == 0
	return r.Tenant == s.Tenant &&
		(anyPhase || slices.Contains(s.States, r.State) || r.State == Settled && slices.Contains(s.Settlements, r.Settlement)) &&
		fits(s.Destination, r.Destination) && fits(s.Workflow, r.Workflow) && fits(s.CorrelationID, r.CorrelationID) &&
		fits(s.IdempotencyKey, r.IdempotencyKey) && fits(s.KeyDigest, r.KeyDigest) &&
		!r.Created.Before(s.Since) && (s.Until.IsZero() || r.Created.Before(s.Until))
}

// Walk is the states that a search goes through, in a fixed order; none for all.
func (s Search) Walk() []State {
	states := slices.Clone(s.States)
	if len(s.Settlements) > 0 {
		states = append(states, Settled)
	}
	return slices.Compact(slices.Sorted(slices.Values(states)))
}

// Ends reports whether nothing that comes behind a write, which was created at
// this time, can have been created in the time that is asked for.
func (s Search) Ends(created time.Time) bool {
	if s.Oldest {
		return !s.Until.IsZero() && !created.Before(s.Until.Add(aside))
	}
	return !s.Since.IsZero() && created.Before(s.Since.Add(-aside))
}

const (
	// defaultFound is a page that a person reads, maxFound one that a program
	// does: records with evidence can be large.
	defaultFound = 50
	maxFound     = 200
)
