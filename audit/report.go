package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Report is what a check found.
type Report struct {
	// Ledger is the name of the ledger as its chains have it.
	Ledger string `json:"ledger,omitempty"`
	// Chains are those that were checked, by tenant.
	Chains []Chain `json:"chains"`
	// Problems are what is wrong, the first in the order of the chains first, at most
	// 100; More counts those beyond.
	Problems []Problem `json:"problems,omitempty"`
	More     int       `json:"more,omitempty"`
	// Unsealed counts events and papers that are not sealed yet, which is no error:
	// what happens to them until they are, nobody sees.
	Unsealed int `json:"unsealed"`
	// Found counts entries for what was there when sealing began, Pruned writes that
	// retention has pruned since, Forgotten entries that say that a tombstone or a
	// paper was forgotten by rule, Repeated entries that stand twice, as a sealer
	// leaves them that was killed.
	Found     int `json:"found,omitempty"`
	Pruned    int `json:"pruned,omitempty"`
	Forgotten int `json:"forgotten,omitempty"`
	Repeated  int `json:"repeated,omitempty"`
	// Notes say what was not checked in this ledger, and why.
	Notes []string `json:"notes,omitempty"`
	// NotCovered lists what no chain covers, in any ledger: no check can see whether it
	// was altered.
	NotCovered []string `json:"not_covered"`
	// Checked is when the check began, on the clock of its machine: the age of a head
	// is the time until then.
	Checked time.Time `json:"checked"`
}

// Chain is one tenant's.
type Chain struct {
	Tenant  string    `json:"tenant"`
	Pages   int64     `json:"pages"`
	Entries int64     `json:"entries"`
	Hash    string    `json:"hash,omitempty"`
	Sealed  time.Time `json:"sealed,omitzero"` // when its last page was made
	// Heads counts signed heads that were held against it; Proven is how many of its
	// entries the newest of them that came from outside covers.
	Heads  int   `json:"heads"`
	Proven int64 `json:"proven"`
	// HeadAt is when the newest head from outside was signed, zero without one.
	HeadAt time.Time `json:"head_signed,omitzero"`
}

// The words for what is wrong.
const (
	Altered      = "altered"       // an event, a paper, a tombstone or an intent says something else than what was sealed
	Missing      = "missing"       // it was sealed and is gone, and no rule pruned it
	Inserted     = "inserted"      // it is there, is not waiting to be sealed, and never was sealed
	Reordered    = "reordered"     // events stand in another order than they came
	RowDiffers   = "row differs"   // the state of a write does not follow from its events
	Unreadable   = "unreadable"    // it cannot be read, so nobody can tell
	PageAltered  = "page altered"  // a page of the chain does not have the hash that it says
	PageMissing  = "page missing"  // a page of the chain is gone
	ChainBroken  = "chain broken"  // a page does not follow the one before
	OlderCopy    = "older copy"    // the chain ends before a signed head
	Forked       = "forked"        // the chain is another than the one that was signed
	BadHead      = "bad head"      // a head is no head, or nobody trusted signed it
	OtherLedger  = "other ledger"  // a head or a page is another ledger's
	HeadUnplaced = "head unplaced" // a head is of a tenant that has no chain here
	HeadsEnd     = "heads end"     // the heads from outside end before heads that were signed
	Foreign      = "foreign"       // a trigger or a rule that the ledger did not make
)

// notCovered is what is in no chain and is not checked.
var notCovered = []string{
	"leases and fences of writes, when papers were created and last changed, marks of damaged rows",
	"the ledger's own row (version, clock, how far events are remembered for sealing)",
	"the feed of changes and the tables and indices for searching",
	"entries of the outbox until the ledger takes them in",
	"notes of workers: stops, circuit breakers, learned lags, who seals",
	"tables, columns and constraints of the schema; of triggers and rules only that there are none",
}

// Problem is one thing that is wrong.
type Problem struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant,omitempty"`
	// Entry is where in the chain, Page on which page; 0: nowhere.
	Entry int64 `json:"entry,omitempty"`
	Page  int64 `json:"page,omitempty"`
	// Write and Seq, or Paper, name what it is about.
	Write ledger.ID `json:"write,omitempty"`
	Seq   int64     `json:"seq,omitempty"`
	Paper string    `json:"paper,omitempty"`
	// What is a sentence.
	What string `json:"what"`
}

// String is the problem on one line.
func (p Problem) String() string {
	at := ""
	switch {
	case p.Write != "" && p.Seq != 0:
		at = fmt.Sprintf(", write %s, event %d", p.Write, p.Seq)
	case p.Write != "":
		at = fmt.Sprintf(", write %s", p.Write)
	case p.Paper != "":
		at = ", paper " + p.Paper
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

// place is where the problem stands in its chain; what stands nowhere comes last.
func (p Problem) place() int64 {
	if p.Entry == 0 {
		return math.MaxInt64
	}
	return p.Entry
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// add adds a problem. Of very many the first are kept.
func (r *Report) add(p Problem) {
	if r.Problems = append(r.Problems, p); len(r.Problems) > maxHeld {
		r.finish()
	}
}

// finish sorts the problems and leaves out what is too much.
func (r *Report) finish() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.place(), b.place()), cmp.Compare(a.Write, b.Write), cmp.Compare(a.Seq, b.Seq))
	})
	if n := len(r.Problems); n > maxProblems {
		r.Problems, r.More = r.Problems[:maxProblems], r.More+n-maxProblems
	}
}
