package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/readback-go/readback/intent"
)

// Chronicler is what a [Ledger] can be besides: it remembers which of its events
// nobody has sealed yet, so that a chain of all events can be made beside the
// work (package audit) and no write waits for it.
type Chronicler interface {
	// Chronicle switches on that unsealed events are remembered, or off, for all
	// programs that work on the ledger, and reports whether that is a change. A
	// ledger is made with it off, and pays nothing for it then. When it is switched
	// on, everything that the ledger holds is unsealed; programs of versions that
	// do not know of it must not go on then. A driver does it in short steps between
	// which others work, and a call goes on where an earlier one was interrupted: the
	// ledger is not to be sealed before one has ended well. When it is switched off,
	// what was not sealed is no longer remembered as such.
	Chronicle(ctx context.Context, on bool) (changed bool, err error)
	// Unsealed returns runs of events that nobody has said to have sealed, by their
	// tickets, from behind one on, at most limit (from 1 to 1000). Every event that
	// was committed is in one of them until [Chronicler.Sealed] is told, whatever
	// workers do at the same time, and Prune does not forget one before that. A run
	// may come to stand before one that was returned already: who seals begins at
	// 0 again and again. It returns nothing where it is switched off.
	Unsealed(ctx context.Context, after int64, limit int) ([]Run, error)
	// Sealed forgets runs by their tickets. One that is not there is no error.
	Sealed(ctx context.Context, tickets []int64) error
}

// PortionedChronicler is what a [Chronicler] can be besides, which goes over what it holds in
// portions when it is switched on.
type PortionedChronicler interface {
	// Finding reports whether it is switched on, and part of what it holds was not
	// gone over: [Chronicler.Unsealed] does not tell of that part yet.
	Finding(ctx context.Context) (bool, error)
}

// AuditKind is the kind of papers that no run tells of: the chain itself is kept
// in them.
const AuditKind = "audit"

// Run is the events of one commit to one write, oldest first, or one thing that
// was done and is no event: see [Mark].
type Run struct {
	// Ticket names the run; none is given twice.
	Ticket int64
	Tenant string
	ID     ID
	// First and Last are the numbers of the events. Found says that they were there
	// when chronicling was switched on, as far as that had come: all that the write
	// had, from the first on.
	First, Last int64
	Found       bool
	// Events are those of them that are there.
	Events []Event
	// Intent is that of the write, where First is 1.
	Intent json.RawMessage
	// Mark is what was done; nil for events.
	Mark *Mark
	// Unread says why the run cannot be read, where it cannot: nothing but the
	// ticket is known then.
	Unread error
}

// MarkKind says what a [Mark] is about.
type MarkKind string

// The kinds of marks.
const (
	// MarkFiled: a paper was filed. Version and Digest are those it has since.
	MarkFiled MarkKind = "filed"
	// MarkDropped: a paper was forgotten.
	MarkDropped MarkKind = "dropped"
	// MarkPruned: a write became a tombstone, and its events up to Seq are gone.
	// Digest is that of the tombstone ([Stone]).
	MarkPruned MarkKind = "pruned"
	// MarkForgotten: a tombstone is gone.
	MarkForgotten MarkKind = "forgotten"
	// MarkFound is how drivers keep that a paper was there when chronicling was
	// switched on. No run has it: it becomes MarkFiled, of the paper as it is then.
	MarkFound MarkKind = "found"
)

// Mark is something that was done to a ledger, is no event, and belongs into the
// chain all the same.
type Mark struct {
	Kind   MarkKind `json:"kind"`
	Tenant string   `json:"tenant"`
	// Write and Seq say of which write, and up to which event.
	Write ID    `json:"write,omitempty"`
	Seq   int64 `json:"seq,omitempty"`
	// PaperKind, PaperID and Version say of which paper.
	PaperKind string `json:"paper_kind,omitempty"`
	PaperID   string `json:"paper_id,omitempty"`
	Version   int64  `json:"version,omitempty"`
	// Digest is that of the paper or of the tombstone.
	Digest string `json:"digest,omitempty"`
	// Names is the digest of what never changes about a paper: its binder, subject and
	// trace. It stands with version 1, and with what was found; who files a later
	// version need not know them.
	Names string `json:"names,omitempty"`
	// Rule says by which rule something was pruned or forgotten, At when, on the
	// ledger's clock.
	Rule string    `json:"rule,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Filed is the mark of a paper as it is to stand, with the version that it has
// then; nil for one of [AuditKind].
func (p Paper) Filed() (*Mark, error) {
	if p.Version == 1 {
		return p.Found()
	}
	if p.Kind == AuditKind {
		return nil, nil
	}
	digest, err := p.Digest()
	return &Mark{Kind: MarkFiled, Tenant: p.Tenant, PaperKind: p.Kind, PaperID: p.ID, Version: p.Version, Digest: digest}, err
}

// Found is the mark of a paper as it was read, with the digest of its names; nil
// for one of [AuditKind].
func (p Paper) Found() (m *Mark, err error) {
	if p.Kind == AuditKind {
		return nil, nil
	}
	m = &Mark{Kind: MarkFiled, Tenant: p.Tenant, PaperKind: p.Kind, PaperID: p.ID, Version: p.Version}
	if m.Digest, err = p.Digest(); err == nil {
		m.Names, err = p.Names()
	}
	return m, err
}

// Dropped is the mark of a paper that is forgotten; nil for one of [AuditKind].
func (p Prune) Dropped(tenant, kind, id string, now time.Time) *Mark {
	if kind == AuditKind {
		return nil
	}
	return &Mark{Kind: MarkDropped, Tenant: tenant, PaperKind: kind, PaperID: id, Rule: p.rememberRule(), At: now.UTC()}
}

// Buried is the mark of a write that becomes a tombstone, which it is already.
func (p Prune) Buried(r Record, now time.Time) (*Mark, error) {
	digest, err := Stone(r)
	return &Mark{Kind: MarkPruned, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "retention: keep " + p.Keep.String(), At: now.UTC()}, err
}

// Forgotten is the mark of a tombstone that is forgotten.
func (p Prune) Forgotten(r Record, now time.Time) *Mark {
	return &Mark{Kind: MarkForgotten, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Rule: p.rememberRule(), At: now.UTC()}
}

func (p Prune) rememberRule() string { return "retention: remember " + p.Remember.String() }

// Encode is the mark as drivers keep it.
func (m Mark) Encode() (string, error) {
	text, err := json.Marshal(m)
	return string(text), err
}

// RunOf is the run that a mark as it was kept stands for.
func RunOf(ticket int64, mark []byte) Run {
	var m Mark
	if err := json.Unmarshal(mark, &m); err != nil || m.Kind == "" || m.Tenant == "" {
		return Run{Ticket: ticket, Unread: fmt.Errorf("%w: the mark of ticket %d cannot be read", ErrCorrupt, ticket)}
	}
	return Run{Ticket: ticket, Tenant: m.Tenant, ID: m.Write, Mark: &m}
}

// Digest is the SHA-256, in hex, over the canonical JSON of what a paper says:
// its name, version, state, due time, whether it is done, and the SHA-256 of its
// body. What never changes about it once it is there (binder, subject, trace) is
// left out: see [Paper.Names].
func (p Paper) Digest() (string, error) {
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

// Names is the SHA-256, in hex, over the canonical JSON of what never changes about
// a paper: its binder, subject and trace.
func (p Paper) Names() (string, error) {
	return digestOf(map[string]any{"binder": p.Binder, "subject": p.Subject, "trace": p.Trace})
}

// Stone is the SHA-256, in hex, over the canonical JSON of what a tombstone says
// and nothing changes any more: whose write it was, its keys, and how it ended.
func Stone(r Record) (string, error) {
	return digestOf(map[string]any{
		"id": string(r.ID), "tenant": r.Tenant, "workflow": r.Workflow, "step": r.Step, "tool": r.Tool, "call": fmt.Sprint(r.Call),
		"structural_key": r.StructuralKey, "digest": r.Digest, "idempotency_key": r.IdempotencyKey, "correlation_id": r.CorrelationID,
		"destination": r.Destination, "kind": r.Kind, "parent": string(r.Parent), "child": string(r.Child), "entrusted": r.Entrusted,
		"settlement": string(r.Settlement), "verdict": r.Verdict, "ref": r.Ref, "url": r.URL,
		"sends": fmt.Sprint(r.Sends), "unsent": fmt.Sprint(r.Unsent), "unknown": r.Unknown,
		"created": r.Created.UTC().Format(time.RFC3339Nano), "settled_at": r.SettledAt.UTC().Format(time.RFC3339Nano),
	})
}

func digestOf(what map[string]any) (string, error) {
	text, err := intent.Canonical(what)
	if err != nil {
		return "", fmt.Errorf("ledger: a digest: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// RunLimit is how many runs [Chronicler.Unsealed] returns at the most, and
// [Witness] of what it walks through.
func RunLimit(limit int) int { return min(max(limit, 1), maxList) }

// Witness is what a [Ledger] can be besides: it shows everything that it holds to
// whoever checks it, of all tenants.
type Witness interface {
	// Tenants are all who have a write or a paper, in order.
	Tenants(ctx context.Context) ([]string, error)
	// Lives are the writes behind one, in the order of their ids, with their events,
	// at most limit (from 1 to 1000).
	Lives(ctx context.Context, after ID, limit int) ([]Life, error)
	// Kept are the papers behind one, of which only tenant, kind and id count, in the
	// order of these, at most limit (from 1 to 1000), but for those of [AuditKind].
	Kept(ctx context.Context, after Paper, limit int) ([]Paper, error)
	// Foreign names the triggers and rules on the ledger's tables. Drivers make none:
	// such a one can change what is stored after the engine has handed it over.
	Foreign(ctx context.Context) ([]string, error)
}

// Life is one write and all of its events, in the order in which they stand.
type Life struct {
	Record Record
	Events []Event
	// Unread says why it cannot be read, where it cannot: of the record only the
	// id and the tenant are known then.
	Unread error
}
