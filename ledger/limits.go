package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// defaultList and maxList bound one listing: a page for a person, and what
	// fits in memory and on a wire without thought.
	defaultList = 100
	maxList     = 1000
)

// MaxUnread is how many writes that cannot be read one listing names. Single
// rows are damaged by hand; where there are more, the first hundred say so, and
// a listing must not walk through all of them.
const MaxUnread = 100

// maxReasons is how many of them say why, in one message: enough to see what
// kind of damage it is.
const maxReasons = 3

// Checked is the filter with its defaults filled in, or an error that says
// what is missing.
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

// maxClaim bounds one claim: each record is lent, and its lease runs, from the
// moment of the claim, whether the worker gets to it soon or late.
const maxClaim = 1000

// Checked is the claim with its defaults filled in, or an error that says
// what is missing.
func (c Claim) Checked() (Claim, error) {
	if (c.Tenant == "") != (c.ID == "") {
		return c, errors.New("claim: tenant and id belong together: name both for one record, or neither for any that is due")
	}
	c.Early = c.Early && c.ID != ""
	c.Limit = min(max(c.Limit, 1), maxClaim)
	return c, nil
}

// Freed is the record without the lease of an owner that is [Claim.Gone].
func (c Claim) Freed(r Record) Record {
	if c.ID != "" && c.Gone != "" && r.Owner == c.Gone {
		r.LeaseUntil = time.Time{}
	}
	return r
}

// Lease is how long a lease on a record of a destination lasts.
func (c Claim) Lease(destination string) time.Duration {
	if own, ok := c.Leases[destination]; ok {
		return own
	}
	return c.LeaseFor
}

// Share is what a claim gets of the records that it may have, which stand
// oldest due first: tenants and destinations take turns, within the bounds of
// the claim. Drivers that cannot look at all that is due ask it about the
// oldest of each.
func (c Claim) Share(due []Record) []Record {
	type party struct{ tenant, destination string }
	var turns []party
	waiting := make(map[party][]Record)
	for _, r := range due {
		if r.State == Queued && slices.Contains(c.Paused, r.Destination) {
			continue
		}
		p := party{r.Tenant, r.Destination}
		if waiting[p] == nil {
			turns = append(turns, p)
		}
		waiting[p] = append(waiting[p], r)
	}
	var got []Record
	taken := make(map[string]int)
	for len(turns) > 0 && len(got) < c.Limit {
		var again []party
		for _, p := range turns {
			most, bounded := c.Most[p.destination]
			if len(got) == c.Limit || bounded && taken[p.destination] >= most {
				continue
			}
			got = append(got, waiting[p][0])
			taken[p.destination]++
			if waiting[p] = waiting[p][1:]; len(waiting[p]) > 0 {
				again = append(again, p)
			}
		}
		turns = again
	}
	return got
}

const (
	// maxNoteName and maxNoteValue bound a note: a name is read by people and
	// is part of a key; a value is read whole, again and again, by every worker.
	maxNoteName  = 200
	maxNoteValue = 256 << 10
)

// Check says what is wrong with a note before it is stored, or nil.
func (n Note) Check() error {
	switch {
	case n.Name == "" || len(n.Name) > maxNoteName || !utf8.ValidString(n.Name) || strings.ContainsRune(n.Name, 0):
		return fmt.Errorf("note: its name has %d bytes; want text of 1 to %d bytes in UTF-8, without NUL", len(n.Name), maxNoteName)
	case len(n.Value) > maxNoteValue:
		return fmt.Errorf("note %q: its value has %d bytes; want at most %d", n.Name, len(n.Value), maxNoteValue)
	case n.Version < 0:
		return fmt.Errorf("note %q: its version is %d; want that of the note as it was read, or 0 for one that is not there", n.Name, n.Version)
	}
	return nil
}

const (
	// defaultPrune and maxPrune bound one call of Prune, so that it can be
	// stopped between two.
	defaultPrune = 1000
	maxPrune     = 100_000
)

// Checked is the request with its defaults filled in, or an error that says
// what is missing.
func (p Prune) Checked() (Prune, error) {
	switch {
	case p.Keep <= 0:
		return p, fmt.Errorf("prune: keep is %s; want how long a settled write keeps its intent, evidence and events, above zero", p.Keep)
	case p.Remember < p.Keep:
		return p, fmt.Errorf("prune: remember (%s) is shorter than keep (%s); want at least that long, and longer than the longest window in which a write may be repeated", p.Remember, p.Keep)
	}
	if p.Limit <= 0 {
		p.Limit = defaultPrune
	}
	p.Limit = min(p.Limit, maxPrune)
	return p, nil
}

// maxRefusal bounds, in runes, the reason that is kept with a refused entry of
// the outbox: a sentence for a person.
const maxRefusal = 500

const (
	maxPaperName = 255     // a tenant, a binder, a subject: names as intents have them
	maxPaperID   = 600     // a workflow and a step of it, and what stands between
	maxPaperWord = 32      // a kind, a state
	maxPaperText = 1024    // 255 runes of a trace id
	maxPaperBody = 1 << 20 // what a step put out, and what decided about it
	// maxFiling and maxFilingBody bound one filing, which is one transaction that
	// others wait for: its parts, and the bodies of its papers together.
	maxFiling     = 100
	maxFilingBody = 4 << 20
)

// DueLimit is how many papers [Papers.DuePapers] returns at the most.
func DueLimit(limit int) int { return min(max(limit, 1), maxList) }

// OperationLimit is how many writes [Operations.Operation] returns at the most:
// nobody reads more attempts at one operation.
const OperationLimit = 100

const (
	// defaultFollowed is what is sent on in one go, maxFollowed what fits in
	// memory for each of many who follow.
	defaultFollowed = 100
	maxFollowed     = 1000

	// maxSpans is more points than a plot is wide.
	maxSpans = 1000
)

// ChangesKept is how long changes can be followed: whoever was away over a long
// weekend, or a plot of a week, finds them; after that what is wanted is the
// writes themselves. They are pruned by [Pruner] and counted by nobody's limit
// but MaxForgotten.
const ChangesKept = 7 * 24 * time.Hour

// MaxChangesPruned is how many changes one call of [Pruner] forgets: they are
// small, and come with every write, so that a turn each minute must keep up.
const MaxChangesPruned = 100_000

// aside is how far the order in which writes were created may differ from that of
// the times at which they were: some times what drivers let a clock step back.
const aside = 10 * time.Minute

// MaxLooked is how many writes one [Ledger.Find] looks at, whether they fit or
// not: some tens of milliseconds.
const MaxLooked = 5000
