package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// pageBytes and entryBytes are the usual sizes of a page and an entry of it: larger ones
	// allocate more.
	pageBytes  = 512
	entryBytes = 200
)

// MarkMissing is the mark of an entry for an event that was gone before it could be sealed.
const MarkMissing ledger.MarkKind = "missing"

// Entry is one link: an event, or a mark of another change.
type Entry struct {
	// Write and Seq name the event; for a tombstone, the last event that is gone.
	Write ledger.ID `json:"write,omitempty"`
	Seq   int64     `json:"seq,omitempty"`
	// Kind is that of the event, Mark that of another change.
	Kind ledger.EventKind `json:"kind,omitempty"`
	Mark ledger.MarkKind  `json:"mark,omitempty"`
	// DocumentKind, DocumentID and Version name a document.
	DocumentKind string `json:"paper_kind,omitempty"`
	DocumentID   string `json:"paper_id,omitempty"`
	Version      int64  `json:"version,omitempty"`
	// Digest is that of the event with its tenant and write, of the document
	// ([ledger.Document.Digest]) or of the tombstone ([ledger.Tombstone]).
	Digest string `json:"digest,omitempty"`
	// Names is the digest of a document's names ([ledger.Mark]), if they were known.
	Names string `json:"names,omitempty"`
	// Intent is the SHA-256 of the intent as it is stored, with the first event.
	Intent string `json:"intent,omitempty"`
	// Backfilled reports that it existed when sealing began: its earlier history is unknown. Only
	// chains from before version 1 have it.
	Backfilled bool `json:"found,omitempty"`
	// Rule and At are the rule and the time of pruning.
	Rule string    `json:"rule,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Erasure is the erasure that erased a write, or dropped a document. Default none.
	Erasure string `json:"erasure,omitempty"`
}

// Page is a part of the chain of one tenant.
type Page struct {
	Format int    `json:"format"` // of the page; 1
	Ledger string `json:"ledger"` // the ledger's name
	Tenant string `json:"tenant"`
	Number int64  `json:"page"`  // from 1
	First  int64  `json:"first"` // the number of its first entry, from 1
	// Previous is the hash of the previous page, "" for the first.
	Previous string `json:"previous"`
	// Sealed is when it was made, on the sealer's clock.
	Sealed time.Time `json:"sealed"`
	// Since is set on the first page of a ledger that was older than its chains: events until then
	// may be in none ([ledger.Feed.BeginSealing]).
	Since   time.Time `json:"since,omitzero"`
	Entries []Entry   `json:"entries"`
	// Hash is the SHA-256 over the canonical JSON of all of the above.
	Hash string `json:"hash,omitempty"`
}

// Head is the length and the last hash of one tenant's chain at a time.
type Head struct {
	Format int    `json:"format"` // 1
	Ledger string `json:"ledger"`
	Tenant string `json:"tenant"`
	// Entries counts the entries of the whole chain, Page is its last page, Hash that page's.
	Entries int64  `json:"entries"`
	Page    int64  `json:"page"`
	Hash    string `json:"hash"`
	// At is when it was signed, on the signer's clock.
	At time.Time `json:"at"`
}

// HeadType is the payload type of a signed head.
const HeadType = "application/vnd.readback.audit-head+json"

const format = 1

// The documents of a chain: its pages, its unsigned end, and its newest signed head.
const (
	tipID  = "tip"
	headID = "head"
)

func pageID(n int64) string { return fmt.Sprintf("page-%012d", n) }

// eventDigest is the SHA-256, in hex, over the canonical JSON (RFC 8785) of a tenant, a write and
// an event as it is stored: its members without evidence and mismatches, and the SHA-256 of each
// of those two as stored.
func eventDigest(tenant string, id ledger.ID, e ledger.Event) (string, error) {
	what := digested.Get().(*digestedEvent)
	defer digested.Put(what)
	*what = digestedEvent{Event: e, Tenant: tenant, Write: id}
	if len(e.Evidence) > 0 {
		what.Evidence = rawDigest(e.Evidence)
	}
	if len(e.Mismatches) > 0 {
		what.Mismatches = rawDigest(e.Mismatches)
	}
	what.Event.Evidence, what.Event.Mismatches = nil, nil
	return digest(what)
}

type digestedEvent struct {
	Event      ledger.Event `json:"event"`
	Evidence   string       `json:"evidence,omitempty"`
	Mismatches string       `json:"mismatches,omitempty"`
	Tenant     string       `json:"tenant"`
	Write      ledger.ID    `json:"write"`
}

// digested are digestedEvents: large, and on the heap.
var digested = sync.Pool{New: func() any { return new(digestedEvent) }}

func rawDigest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// hash is the page's expected hash.
func (p Page) hash() (string, error) {
	p.Hash = ""
	return digest(&p)
}

// seal gives the page its hash, and returns it as it is stored.
func (p *Page) seal() (body []byte, err error) {
	p.Hash = ""
	if body, err = canonical(make([]byte, 0, pageBytes+entryBytes*len(p.Entries)), p); err != nil {
		return nil, err
	}
	p.Hash = rawDigest(body)
	return append(body[:len(body)-1], `,"hash":"`+p.Hash+`"}`...), nil
}

// head is the end of the chain with this page as its last.
func (p Page) head() Head {
	return Head{Format: format, Ledger: p.Ledger, Tenant: p.Tenant, Entries: p.First + int64(len(p.Entries)) - 1, Page: p.Number, Hash: p.Hash, At: p.Sealed}
}

// readPage reads a page strictly: an unknown member would not be checked.
func readPage(body []byte) (Page, error) {
	var p Page
	if err := strictly(body, &p); err != nil {
		return p, fmt.Errorf("it cannot be read: %w", err)
	}
	if p.Format != format {
		return p, fmt.Errorf("it has format %d; this program knows format %d: use a newer one", p.Format, format)
	}
	return p, nil
}

func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// appendEntries appends the entries of a run.
func appendEntries(entries []Entry, r ledger.Run) ([]Entry, error) {
	if m := r.Mark; m != nil {
		return append(entries, Entry{Write: m.Write, Seq: m.Seq, Mark: m.Kind, DocumentKind: m.DocumentKind, DocumentID: m.DocumentID, Version: m.Version,
			Digest: m.Digest, Names: m.Names, Rule: m.Rule, At: m.At, Erasure: m.Erasure}), nil
	}
	next := r.First
	missing := func(until int64) {
		for ; next < until; next++ {
			entries = append(entries, Entry{Write: r.ID, Seq: next, Mark: MarkMissing})
		}
	}
	for _, e := range r.Events {
		missing(e.Seq)
		d, err := eventDigest(r.Tenant, r.ID, e)
		if err != nil {
			return nil, err
		}
		entry := Entry{Write: r.ID, Seq: e.Seq, Kind: e.Kind, Digest: d}
		if e.Seq == 1 && r.Intent != nil {
			entry.Intent = rawDigest(r.Intent)
		}
		entries, next = append(entries, entry), e.Seq+1
	}
	missing(r.Last + 1)
	return entries, nil
}
