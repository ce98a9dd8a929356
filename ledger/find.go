package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Search selects writes of one tenant. All given conditions must match.
type Search struct {
	Tenant string // required
	// States and Settlements: any of these. Default: any. Settlements selects among the settled
	// ones. Both together are a union: "in review, or settled as denied".
	States      []State
	Settlements []Status
	// Destination, Workflow, CorrelationID, IdempotencyKey and KeyDigest match exactly. Default:
	// any. KeyDigest also matches settled writes, unlike Filter.KeyDigest; it may be plain or as
	// the ledger stores it.
	Destination    string
	Workflow       string
	CorrelationID  string
	IdempotencyKey string
	KeyDigest      string
	// Waits: any of these groups of waiting writes, at most [MaxWaits]. Default: any write.
	Waits []WaitKind
	// Query is what a user knows of a write: the beginning of a value of the business key, of the
	// record's ref, of the idempotency key, of the workflow or of the ID, without regard to case.
	// Default: any. A tombstone is found by its ID only. A sealed value matches as a whole, by its
	// keyed digest: QueryDigests are those of Query (redact.Vault.Digests). Default: none.
	Query        string
	QueryDigests []string
	// Since and Until bound the creation time: at or after, before. Default: unbounded.
	Since, Until time.Time
	// Oldest returns the oldest first. Default false.
	Oldest bool
	// After continues after a page: its Found.Next. Default: from the start.
	After string
	// Limit is the most to return. Default 50, at most 200.
	Limit int
}

// SearchResult is one page of results.
type SearchResult struct {
	// Records are without Before, Evidence and ChildIntent: a page must not load what the reads
	// of hundreds of writes returned.
	Records []Record
	// Next is the Search.After of the next page; "" at the end.
	Next string
	// Unread names rows that cannot be read.
	Unread []Unread
}

// Checked returns the search with its defaults, or what is wrong with it.
func (s Search) Checked() (Search, error) {
	switch {
	case s.Tenant == "":
		return s, fmt.Errorf("ledger: a search without a tenant")
	case s.Limit < 0 || s.Limit > maxSearch:
		return s, fmt.Errorf("ledger: a search with limit %d; want 1 to %d, or 0 for %d", s.Limit, maxSearch, defaultSearch)
	case len(s.Waits) > MaxWaits:
		return s, fmt.Errorf("ledger: a search for %d groups of waiting writes; want at most %d", len(s.Waits), MaxWaits)
	case s.Limit == 0:
		s.Limit = defaultSearch
	}
	if len(s.Waits) > 0 {
		s.Waits = slices.Clone(s.Waits)
		slices.SortFunc(s.Waits, func(a, b WaitKind) int { return cmp.Compare(a.Text(), b.Text()) })
		s.Waits = slices.Compact(s.Waits)
	}
	if s.Query != "" && folded(s.Query) == "" {
		return s, fmt.Errorf("ledger: a search for a text without letters or digits; want one, or none")
	}
	if s.After != "" {
		if _, err := ParseSearchCursor(s.After); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Selects reports whether a record matches.
func (s Search) Selects(r Record) bool {
	fits := func(want, have string) bool { return want == "" || want == have }
	anyPhase := len(s.States) == 0 && len(s.Settlements) == 0
	return r.Tenant == s.Tenant &&
		(anyPhase || slices.Contains(s.States, r.State) || r.State == Settled && slices.Contains(s.Settlements, r.Settlement)) &&
		fits(s.Destination, r.Destination) && fits(s.Workflow, r.Workflow) && fits(s.CorrelationID, r.CorrelationID) &&
		fits(s.IdempotencyKey, r.IdempotencyKey) && fits(s.KeyDigest, r.KeyDigest) && s.selectsWait(r) &&
		(s.Query == "" || len(s.Matched(r)) > 0) &&
		!r.Created.Before(s.Since) && (s.Until.IsZero() || r.Created.Before(s.Until))
}

func (s Search) selectsWait(r Record) bool {
	if len(s.Waits) == 0 {
		return true
	}
	w, waits := WaitKindOf(r)
	return waits && slices.Contains(s.Waits, w)
}

// ScanStates returns the states that a search reads, in a fixed order; none for all.
func (s Search) ScanStates() []State {
	states := slices.Clone(s.States)
	if len(s.Settlements) > 0 {
		states = append(states, Settled)
	}
	return slices.Compact(slices.Sorted(slices.Values(states)))
}

// Ends reports whether no write after one that was created at this time can have been created
// within the bounds of the search.
func (s Search) Ends(created time.Time) bool {
	if s.Oldest {
		return !s.Until.IsZero() && !created.Before(s.Until.Add(aside))
	}
	return !s.Since.IsZero() && created.Before(s.Since.Add(-aside))
}

const (
	// defaultSearch is a page for people, maxSearch one for programs: intents can be large.
	defaultSearch = 50
	maxSearch     = 200
)

// aside is how far the order in which writes were created may differ from the order of their
// creation times: several times the clock step that drivers tolerate.
const aside = 10 * time.Minute

// MaxScanned is the most writes that one [Ledger.Find] reads, whether they match or not: some tens
// of milliseconds.
const MaxScanned = 5000
