package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErasureKind is the kind of the documents that record who erased the contents of which writes
// and why. They and their entries in the chain are kept for ever.
const ErasureKind = "erasure"

// Erasure records who erased what and why. It never names the data subject: it contains only
// names that the tombstones contain too.
type Erasure struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Destination and KeyDigests name the record, by one digest for each kind. Write is set where
	// one write was named.
	Destination string   `json:"destination,omitempty"`
	KeyDigests  []string `json:"key_digests,omitempty"`
	Write       ID       `json:"write,omitempty"`

	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Writes is the most that it erases while it is running, and the number erased when it is
	// finished. Documents and Refused count what else it deleted.
	Writes    int `json:"writes"`
	Documents int `json:"documents,omitempty"`
	Refused   int `json:"refused,omitempty"`
	// Finished is when it ended; zero while it is running or after it was interrupted.
	Finished time.Time `json:"finished,omitzero"`
}

// ErasureOf returns the erasure in a document. The error wraps [ErrCorrupt].
func ErasureOf(p Document) (e Erasure, err error) {
	if err := json.Unmarshal(p.Body, &e); err != nil || e.ID != p.ID || e.Tenant != p.Tenant {
		return e, fmt.Errorf("%w: the erasure %q of tenant %q cannot be read", ErrCorrupt, p.ID, p.Tenant)
	}
	return e, nil
}

// Document returns the erasure as a document to write over the one that was read; the zero
// document for a new one.
func (e Erasure) Document(over Document) (Document, error) {
	body, err := json.Marshal(e)
	over.Tenant, over.Kind, over.ID, over.Body = e.Tenant, ErasureKind, e.ID, body
	over.State = "running"
	if !e.Finished.IsZero() {
		over.State = "finished"
	}
	return over, err
}

// Erasing is a request to erase the contents of settled writes of one tenant.
type Erasing struct {
	Tenant string // required
	// Erasure is the id of the document of [ErasureKind] that records who erases and why. It must
	// be in the ledger. Required.
	Erasure string
	// Writes are erased: at most [MaxErasing].
	Writes []ID
	// KeyDigests are those of records whose refused outbox entries are deleted. Default none.
	KeyDigests []string
	// Documents are deleted, a cover with its whole collection. Of them only kind and id count.
	// Default none.
	Documents []Document
}

// Erased is what one call erased.
type Erased struct {
	Writes, Documents, Refused int
	// Left are the writes and documents that were not erased. Missing ones and those that were
	// erased before are not listed.
	Left []LeftOver
}

// LeftOver is something that could not be erased.
type LeftOver struct {
	Write    ID     `json:"write,omitempty"`
	Document string `json:"paper,omitempty"`
	// Why is a sentence without a stop.
	Why string `json:"why"`
}

// Check returns what is wrong with the request, or nil.
func (e Erasing) Check() error {
	switch {
	case e.Tenant == "":
		return errors.New("erase: the tenant is missing")
	case e.Erasure == "":
		return errors.New("erase: the erasure is missing; want the id of its document, which says who erases and why")
	case len(e.Writes) > MaxErasing:
		return fmt.Errorf("erase: %d writes; want at most %d in one call", len(e.Writes), MaxErasing)
	}
	return nil
}

// Erase returns a write without contents: what identifies it, how it ended, and what a repeat of
// it is compared with. No words of a caller, a reviewer or a destination are left; its events
// must be deleted too. Fields that are not listed are erased.
func Erase(r Record, erasure string) Record {
	return Record{
		ID: r.ID, StructuralKey: r.StructuralKey, Digest: r.Digest, KeyDigest: r.KeyDigest,
		Tenant: r.Tenant, Tool: r.Tool, Call: r.Call, Destination: r.Destination, Kind: r.Kind,
		IdempotencyKey: ErasedKey(r.Tenant, r.Tool, r.IdempotencyKey),
		Delegated:      r.Delegated, Parent: r.Parent, Child: r.Child,
		State: r.State, Settlement: r.Settlement, Verdict: r.Verdict, Rule: r.Rule,
		Sends: r.Sends, Unsent: r.Unsent, LoginRefused: r.LoginRefused, Reads: r.Reads, Generation: r.Generation,
		Unknown: r.Unknown, Answered: r.Answered, LastFate: r.LastFate, EffectSeen: r.EffectSeen,
		FirstSend: r.FirstSend, KeySend: r.KeySend, LastSend: r.LastSend, LostSend: r.LostSend, LostFor: r.LostFor,
		Yielded: r.Yielded, LeftQueue: r.LeftQueue, Unordered: r.Unordered,
		Tombstone: true, Erased: erasure,
		QueuedAt: r.QueuedAt, Fence: r.Fence + 1,
		Seq: r.Seq, Created: r.Created, Updated: r.Updated, SettledAt: r.SettledAt, Now: r.Now,
	}
}

const erasedPrefix = "erased:"

// ErasedKey returns what replaces an erased idempotency key: a SHA-256 that still blocks another
// write of the same business operation. "" stays "", and an already erased key is unchanged.
func ErasedKey(tenant, tool, key string) string {
	if key == "" || strings.HasPrefix(key, erasedPrefix) {
		return key
	}
	sum := sha256.Sum256([]byte("readback/erased-key/v1\x00" + tenant + "\x00" + tool + "\x00" + key))
	return erasedPrefix + hex.EncodeToString(sum[:])
}

// sameOperation reports whether a recorded write is of a business operation, also where its
// idempotency key was erased.
func sameOperation(r Record, tenant, tool, key string) bool {
	return r.Tenant == tenant && r.Tool == tool && (r.IdempotencyKey == key || r.Erased != "" && r.IdempotencyKey == ErasedKey(tenant, tool, key))
}

// Keeps returns why the contents of a write cannot be erased now, or "" when they can. Relatives
// are as for [Prune.Buries]; followed says that another write waits for it.
func (e Erasing) Keeps(r Record, now time.Time, holds Holds, followed bool, relatives ...Record) string {
	hold, held := holds.On(r, relatives...)
	switch {
	case held:
		return hold.String()
	case !done(r):
		return fmt.Sprintf("it is not finished: %s", r.waitsFor())
	case r.LeaseUntil.After(now):
		return "a worker has it; erase it again in a moment"
	case followed:
		return "another write of the same record waits for it"
	}
	for _, other := range relatives {
		if !done(other) {
			return fmt.Sprintf("write %s, which belongs to it, is not finished: %s", other.ID, other.waitsFor())
		}
	}
	return ""
}

// NotSealed is why the contents of a write are not erased before its events are in
// the chain.
const NotSealed = "its events are not in the audit chain yet; erase it again in a moment, or run `readback audit seal`"

// StillEnqueued is why an entry of the outbox is not deleted.
const StillEnqueued = "it is enqueued and not taken in by a worker yet"

// waitsFor describes what an unfinished write still waits for.
func (r Record) waitsFor() string {
	if r.State == Settled {
		return "a recheck is pending until " + cmp.Or(r.RecheckUntil, r.Due).UTC().Format(time.RFC3339)
	}
	return r.Phase()
}

// KeepsDocument returns why a document cannot be deleted now, or "" when it can. Bound are the
// documents of the collection that it covers.
func (e Erasing) KeepsDocument(p Document, holds Holds, bound ...Document) string {
	hold, held := holds.OfTenant(p.Tenant)
	switch {
	case held:
		return hold.String()
	case !p.Done || !p.Due.IsZero() || slices.ContainsFunc(bound, func(b Document) bool { return !b.Due.IsZero() }):
		return fmt.Sprintf("the %s is not finished; end it first", p.Kind)
	}
	return ""
}

// Mark returns the mark of a write whose contents were erased. The record must be the erased one.
func (e Erasing) Mark(r Record, now time.Time) (*Mark, error) {
	digest, err := Tombstone(r)
	return &Mark{Kind: MarkErased, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "erasure", Erasure: e.Erasure, At: now.UTC()}, err
}

// Dropped returns the mark of a deleted document; nil for one of [AuditKind].
func (e Erasing) Dropped(kind, id string, now time.Time) *Mark {
	if kind == AuditKind {
		return nil
	}
	return &Mark{Kind: MarkDropped, Tenant: e.Tenant, DocumentKind: kind, DocumentID: id, Rule: "erasure", Erasure: e.Erasure, At: now.UTC()}
}

// Deletes returns the documents that the request may delete: none of the ledger's own records.
func (e Erasing) Deletes() []Document {
	return slices.DeleteFunc(slices.Clone(e.Documents), func(p Document) bool {
		return slices.Contains([]string{AuditKind, ErasureKind, HoldKind}, p.Kind)
	})
}

// MaxErasing is the most writes that one call of [Maintenance.Erase] erases: one transaction, for
// which others wait only briefly.
const MaxErasing = 100
