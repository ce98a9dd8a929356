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
	// defaultList and maxList bound one listing: a page for people, and what easily fits in
	// memory and on a wire.
	defaultList = 100
	maxList     = 1000
)

// MaxUnread is the most unreadable writes that one listing names. Single rows are damaged by
// hand. Where there are more, the first hundred suffice, and a listing must not read through all
// of them.
const MaxUnread = 100

// maxReasons is how many of them one message explains: enough to show the kind of damage.
const maxReasons = 3

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

// maxClaim bounds one claim: the lease of each record runs from the moment of the claim, whether
// the worker gets to it soon or late.
const maxClaim = 1000

// Checked returns the claim with its defaults, or an error that names what is missing.
func (c Claim) Checked() (Claim, error) {
	if (c.Tenant == "") != (c.ID == "") {
		return c, errors.New("claim: tenant and id belong together: name both for one record, or neither for any that is due")
	}
	c.Early = c.Early && c.ID != ""
	c.Limit = min(max(c.Limit, 1), maxClaim)
	return c, nil
}

// Freed returns the record without the lease of an owner that is [Claim.Gone].
func (c Claim) Freed(r Record) Record {
	if c.ID != "" && c.Gone != "" && r.Owner == c.Gone {
		r.LeaseUntil = time.Time{}
	}
	return r
}

// Lease returns how long a lease on a record of a destination lasts.
func (c Claim) Lease(destination string) time.Duration {
	if own, ok := c.Leases[destination]; ok {
		return own
	}
	return c.LeaseFor
}

// Share returns what a claim gets of the records available to it, which are sorted oldest due
// first: tenants and destinations alternate, within the bounds of the claim. Drivers that cannot
// read everything that is due pass the oldest of each.
func (c Claim) Share(due []Record) []Record {
	type party struct{ tenant, destination string }
	var order []party
	waiting := make(map[party][]Record)
	for _, r := range due {
		if r.State == Queued && slices.Contains(c.Paused, r.Destination) {
			continue
		}
		p := party{r.Tenant, r.Destination}
		if waiting[p] == nil {
			order = append(order, p)
		}
		waiting[p] = append(waiting[p], r)
	}
	var got []Record
	taken := make(map[string]int)
	for len(order) > 0 && len(got) < c.Limit {
		var again []party
		for _, p := range order {
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
		order = again
	}
	return got
}

const (
	// maxNoteName and maxNoteValue bound a note: a name is read by people and is part of a key;
	// every worker reads a value whole, again and again.
	maxNoteName  = 200
	maxNoteValue = 256 << 10
)

// Check returns what is wrong with a note before it is stored, or nil.
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

// maxRefusal bounds, in runes, the reason that is kept with a refused entry of the outbox: a
// sentence for people.
const maxRefusal = 500

const (
	maxDocumentName = 255     // a tenant, a collection, a subject: names as intents have them
	maxDocumentID   = 600     // a workflow and a step of it, and a separator
	maxDocumentWord = 32      // a kind, a state
	maxDocumentText = 1024    // 255 runes of a trace id
	maxDocumentBody = 1 << 20 // the output of a step, and what decided about it
	// maxBatch and maxBatchBody bound one batch, which is one transaction that others wait for:
	// its parts, and the bodies of its documents together.
	maxBatch     = 100
	maxBatchBody = 4 << 20
)

// DueLimit is the most documents that [Documents.DueDocuments] returns.
func DueLimit(limit int) int { return min(max(limit, 1), maxList) }

// MaxErasing is the most writes that one call of [Maintenance.Erase] erases: one transaction, for
// which others wait only briefly.
const MaxErasing = 100

// OperationLimit is the most writes that [Ledger.Operation] returns: no reviewer reads more
// attempts at one operation.
const OperationLimit = 100

const (
	// defaultFollowed is what is sent on at once, maxFollowed what fits in memory for each of
	// many followers.
	defaultFollowed = 100
	maxFollowed     = 1000

	// maxSpans is more points than a plot is wide.
	maxSpans = 1000
)

// ChangesKept is how long changes can be followed: a follower that was off over a long weekend,
// and a plot of a week, still get them. After that, read the writes themselves. [Maintenance] prunes
// them; of all limits only [MaxChangesPruned] counts them.
const ChangesKept = 7 * 24 * time.Hour

// MaxChangesPruned is the most changes that one call of [Maintenance] deletes. They are small and come
// with every write, and a call each minute must keep up.
const MaxChangesPruned = 100_000

// aside is how far the order in which writes were created may differ from the order of their
// creation times: several times the clock step that drivers tolerate.
const aside = 10 * time.Minute

// MaxScanned is the most writes that one [Ledger.Find] reads, whether they match or not: some tens
// of milliseconds.
const MaxScanned = 5000
