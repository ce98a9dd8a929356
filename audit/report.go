package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// maxProblems is how many problems a report names. The first one is the most important.
	maxProblems = 100
	// maxHeld is how many problems are held until the first of them are known.
	maxHeld = 10_000
)

// Report is the result of a check.
type Report struct {
	// Ledger is the ledger's name in its chains.
	Ledger string `json:"ledger,omitempty"`
	// Chains are the checked ones, by tenant.
	Chains []Chain `json:"chains"`
	// Problems are in the order of the chains, at most 100; More counts those beyond.
	Problems []Problem `json:"problems,omitempty"`
	More     int       `json:"more,omitempty"`
	// Unsealed counts events and documents that are not sealed yet. This is no error, but
	// alterations until then are not detected.
	Unsealed int `json:"unsealed"`
	// Backfilled counts what existed when sealing began: entries for it, and what is in no chain
	// because it is older than the chains. Pruned counts writes that retention has
	// pruned since, Forgotten entries for tombstones or documents that a rule deleted, Repeated
	// entries that occur twice, as a killed sealer leaves them.
	Backfilled int `json:"found,omitempty"`
	Pruned     int `json:"pruned,omitempty"`
	Forgotten  int `json:"forgotten,omitempty"`
	Repeated   int `json:"repeated,omitempty"`
	// Erased are the erasures that the chains record, in order.
	Erased []Erasure `json:"erased,omitempty"`
	// Notes describe what was not checked in this ledger, and why.
	Notes []string `json:"notes,omitempty"`
	// NotCovered lists what no chain covers, in any ledger: no check can detect its alteration.
	NotCovered []string `json:"not_covered"`
	// Checked is when the check began, on the clock of its machine: the age of a head is the time
	// until then.
	Checked time.Time `json:"checked"`
}

// Erasure is what one erasure erased, according to the chain. Its document in the ledger records
// who made it and why.
type Erasure struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// At is when it was made, Entries where the chain first records that. Writes and Documents
	// count what it erased.
	At        time.Time `json:"at,omitzero"`
	Entry     int64     `json:"entry"`
	Writes    int       `json:"writes"`
	Documents int       `json:"documents,omitempty"`
}

// Chain is the result for one tenant's chain.
type Chain struct {
	Tenant  string    `json:"tenant"`
	Pages   int64     `json:"pages"`
	Entries int64     `json:"entries"`
	Hash    string    `json:"hash,omitempty"`
	Sealed  time.Time `json:"sealed,omitzero"` // when its last page was made
	// Heads counts signed heads that were compared with it; Proven is how many of its entries the
	// newest outside head covers.
	Heads  int   `json:"heads"`
	Proven int64 `json:"proven"`
	// HeadAt is when the newest outside head was signed, zero without one.
	HeadAt time.Time `json:"head_signed,omitzero"`
}

// The kinds of problems.
const (
	Altered      = "altered"       // an event, a document, a tombstone or an intent differs from what was sealed
	Missing      = "missing"       // it was sealed and is gone, and no rule pruned it
	Inserted     = "inserted"      // it exists, is not waiting to be sealed, and never was sealed
	Reordered    = "reordered"     // events are not in their original order
	RowDiffers   = "row differs"   // the state of a write does not follow from its events
	Unreadable   = "unreadable"    // unreadable, so it cannot be checked
	PageAltered  = "page altered"  // the hash of a page of the chain is wrong
	PageMissing  = "page missing"  // a page of the chain is gone
	ChainBroken  = "chain broken"  // a page does not follow the one before
	OlderCopy    = "older copy"    // the chain ends before a signed head
	Forked       = "forked"        // the chain is not the one that was signed
	BadHead      = "bad head"      // a head is invalid, or no trusted key signed it
	OtherLedger  = "other ledger"  // a head or a page belongs to another ledger
	HeadUnplaced = "head unplaced" // a head of a tenant that has no chain here
	HeadsEnd     = "heads end"     // the outside heads end before heads that were signed
	Foreign      = "foreign"       // a trigger or a rule that the ledger did not create
)

// notCovered is what no chain contains and no check covers.
var notCovered = []string{
	"leases and fences of writes, when documents were created and last changed, marks of damaged rows",
	"the ledger's own row (version, clock, whether it is sealed)",
	"the feed of changes and the tables and indices for searching",
	"entries of the outbox until the ledger takes them in",
	"notes of workers: stops, circuit breakers, learned lags, who seals",
	"tables, columns and constraints of the schema; of triggers and rules only that there are none",
}

// Problem is one thing that is wrong.
type Problem struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant,omitempty"`
	// Entry is its position in the chain, Page its page; 0: none.
	Entry int64 `json:"entry,omitempty"`
	Page  int64 `json:"page,omitempty"`
	// Write and Seq, or Document, name its subject.
	Write    ledger.ID `json:"write,omitempty"`
	Seq      int64     `json:"seq,omitempty"`
	Document string    `json:"paper,omitempty"`
	// What describes it in a sentence.
	What string `json:"what"`
}

// String returns the problem on one line.
func (p Problem) String() string {
	at := ""
	switch {
	case p.Write != "" && p.Seq != 0:
		at = fmt.Sprintf(", write %s, event %d", p.Write, p.Seq)
	case p.Write != "":
		at = fmt.Sprintf(", write %s", p.Write)
	case p.Document != "":
		at = ", document " + p.Document
	}
	if p.Entry != 0 {
		at += fmt.Sprintf(", entry %d", p.Entry)
	}
	if p.Page != 0 {
		at += fmt.Sprintf(", page %d", p.Page)
	}
	if p.Tenant == "" {
		return fmt.Sprintf("%s%s: %s", p.Kind, at, p.What)
	}
	return fmt.Sprintf("%s: tenant %s%s: %s", p.Kind, p.Tenant, at, p.What)
}

// place is the problem's position in its chain; problems without one come last.
func (p Problem) place() int64 {
	if p.Entry == 0 {
		return math.MaxInt64
	}
	return p.Entry
}

// erased counts an entry of an erasure.
func (r *Report) erased(e erasedBy) {
	i := slices.IndexFunc(r.Erased, func(have Erasure) bool { return have.Tenant == e.tenant && have.ID == e.erasure })
	if i < 0 {
		i = len(r.Erased)
		r.Erased = append(r.Erased, Erasure{Tenant: e.tenant, ID: e.erasure, At: e.entry.At, Entry: e.number})
	}
	of := &r.Erased[i]
	of.Entry = min(of.Entry, e.number)
	if e.entry.DocumentID == "" {
		of.Writes++
	} else {
		of.Documents++
	}
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// add adds a problem. Of very many the first are kept.
func (r *Report) add(p Problem) {
	if r.Problems = append(r.Problems, p); len(r.Problems) > maxHeld {
		r.finish()
	}
}

// finish sorts the problems and drops those above the limit.
func (r *Report) finish() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.place(), b.place()), cmp.Compare(a.Write, b.Write), cmp.Compare(a.Seq, b.Seq))
	})
	if n := len(r.Problems); n > maxProblems {
		r.Problems, r.More = r.Problems[:maxProblems], r.More+n-maxProblems
	}
}
