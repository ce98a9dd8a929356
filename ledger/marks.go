package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/readback-go/readback/intent"
)

// AuditKind is the kind of the documents that no run contains: the chain itself is kept in them.
const AuditKind = "audit"

// Run is the events of one commit to one write, oldest first, or one change that is no event: see
// [Mark].
type Run struct {
	// Ticket names the run. No ticket is used twice.
	Ticket int64
	Tenant string
	ID     ID
	// First and Last are the numbers of the events.
	First, Last int64
	// Events are those of them that still exist.
	Events []Event
	// Intent is that of the write, where First is 1.
	Intent json.RawMessage
	// Mark is the change; nil for events.
	Mark *Mark
	// Unread is the reason why the run cannot be read. If it is set, only the ticket is known.
	Unread error
}

// MarkKind is the kind of change of a [Mark].
type MarkKind string

// The kinds of marks.
const (
	// MarkFiled: a document was written. Version and Digest are its new ones.
	MarkFiled MarkKind = "filed"
	// MarkDropped: a document was deleted.
	MarkDropped MarkKind = "dropped"
	// MarkPruned: a write became a tombstone, and its events up to Seq were deleted. Digest is
	// that of the tombstone ([Tombstone]).
	MarkPruned MarkKind = "pruned"
	// MarkErased: the contents of a write were erased. It is now a tombstone, and its events up
	// to Seq were deleted. Digest is that of the tombstone ([Tombstone]), Erasure the id of the
	// document that records who erased them and why.
	MarkErased MarkKind = "erased"
	// MarkForgotten: a tombstone was deleted.
	MarkForgotten MarkKind = "forgotten"
)

// Mark is a change to a ledger that is no event and still belongs into the chain.
type Mark struct {
	Kind   MarkKind `json:"kind"`
	Tenant string   `json:"tenant"`
	// Write and Seq name the write, and the last event concerned.
	Write ID    `json:"write,omitempty"`
	Seq   int64 `json:"seq,omitempty"`
	// DocumentKind, DocumentID and Version name the document.
	DocumentKind string `json:"paper_kind,omitempty"`
	DocumentID   string `json:"paper_id,omitempty"`
	Version      int64  `json:"version,omitempty"`
	// Digest is that of the document or of the tombstone.
	Digest string `json:"digest,omitempty"`
	// Names is the digest of the immutable fields of a document: its collection, subject and
	// trace. It is set with version 1; the writer of a later version need not know them.
	Names string `json:"names,omitempty"`
	// Rule names the rule by which something was pruned or deleted; At is when, on the ledger's
	// clock.
	Rule string    `json:"rule,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Erasure is the erasure by which a write was erased or a document deleted. Default none.
	Erasure string `json:"erasure,omitempty"`
}

// CommitMark returns the mark of a document that is about to be written, with its new version;
// nil for one of [AuditKind].
func (p Document) CommitMark() (m *Mark, err error) {
	if p.Kind == AuditKind {
		return nil, nil
	}
	m = &Mark{Kind: MarkFiled, Tenant: p.Tenant, DocumentKind: p.Kind, DocumentID: p.ID, Version: p.Version}
	if m.Digest, err = p.Digest(); err == nil && p.Version == 1 {
		m.Names, err = p.Names()
	}
	return m, err
}

// Dropped returns the mark of a deleted document; nil for one of [AuditKind].
func (p Prune) Dropped(tenant, kind, id string, now time.Time) *Mark {
	if kind == AuditKind {
		return nil
	}
	return &Mark{Kind: MarkDropped, Tenant: tenant, DocumentKind: kind, DocumentID: id, Rule: p.rememberRule(), At: now.UTC()}
}

// Compacted returns the mark of a write that was compacted. The record must be the tombstone.
func (p Prune) Compacted(r Record, now time.Time) (*Mark, error) {
	digest, err := Tombstone(r)
	return &Mark{Kind: MarkPruned, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "retention: keep " + p.KeepOf(r.Tenant, r.Destination).String(), At: now.UTC()}, err
}

// Forgotten returns the mark of a deleted tombstone.
func (p Prune) Forgotten(r Record, now time.Time) *Mark {
	return &Mark{Kind: MarkForgotten, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Rule: p.rememberRule(), At: now.UTC()}
}

func (p Prune) rememberRule() string { return "retention: remember " + p.Remember.String() }

// Encode returns the mark in the form that drivers store.
func (m Mark) Encode() (string, error) {
	text, err := json.Marshal(m)
	return string(text), err
}

// RunOf returns the run of a stored mark.
func RunOf(ticket int64, mark []byte) Run {
	var m Mark
	if err := json.Unmarshal(mark, &m); err != nil || m.Kind == "" || m.Tenant == "" {
		return Run{Ticket: ticket, Unread: fmt.Errorf("%w: the mark of ticket %d cannot be read", ErrCorrupt, ticket)}
	}
	return Run{Ticket: ticket, Tenant: m.Tenant, ID: m.Write, Mark: &m}
}

// Digest is the SHA-256, in hex, over the canonical JSON of a document's mutable fields: its
// name, version, state, due time, whether it is done, and the SHA-256 of its body. The immutable
// ones (collection, subject, trace) are left out: see [Document.Names].
func (p Document) Digest() (string, error) {
	body := sha256.Sum256(p.Body)
	due := ""
	if !p.Due.IsZero() {
		due = p.Due.UTC().Format(time.RFC3339Nano)
	}
	return digestOf(map[string]any{
		"tenant": p.Tenant, "kind": p.Kind, "id": p.ID, "version": fmt.Sprint(p.Version), "state": p.State, "due": due, "done": p.Done,
		"body": hex.EncodeToString(body[:]),
	})
}

// Names is the SHA-256, in hex, over the canonical JSON of a document's immutable fields: its
// collection, subject and trace.
func (p Document) Names() (string, error) {
	return digestOf(map[string]any{"binder": p.Collection, "subject": p.Subject, "trace": p.Trace})
}

// Tombstone is the SHA-256, in hex, over the canonical JSON of the final fields of a tombstone:
// whose write it was, its keys, and how it ended.
func Tombstone(r Record) (string, error) {
	says := map[string]any{
		"id": string(r.ID), "tenant": r.Tenant, "workflow": r.Workflow, "step": r.Step, "tool": r.Tool, "call": fmt.Sprint(r.Call),
		"structural_key": r.StructuralKey, "digest": r.Digest, "idempotency_key": r.IdempotencyKey, "correlation_id": r.CorrelationID,
		"destination": r.Destination, "kind": r.Kind, "parent": string(r.Parent), "child": string(r.Child), "entrusted": r.Delegated,
		"settlement": string(r.Settlement), "verdict": r.Verdict, "ref": r.Ref, "url": r.URL,
		"sends": fmt.Sprint(r.Sends), "unsent": fmt.Sprint(r.Unsent), "unknown": r.Unknown,
		"created": r.Created.UTC().Format(time.RFC3339Nano), "settled_at": r.SettledAt.UTC().Format(time.RFC3339Nano),
	}
	if r.Erased != "" {
		says["erased"] = r.Erased
	}
	return digestOf(says)
}

func digestOf(what map[string]any) (string, error) {
	text, err := intent.Canonical(what)
	if err != nil {
		return "", fmt.Errorf("ledger: a digest: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// RunLimit is the most runs that [Feed.Unsealed] returns, and the most that a call of
// [Feed.Lifetimes] or [Feed.Kept] reads.
func RunLimit(limit int) int { return min(max(limit, 1), maxList) }

// Lifetime is one write and all of its events, in stored order.
type Lifetime struct {
	Record Record
	Events []Event
	// Unread is the reason why it cannot be read. If it is set, only the id and the tenant of the
	// record are known.
	Unread error
}
