package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Documents is the part of a [Ledger] that keeps what belongs to more than one write: workflows,
// their steps, sagas, and the notes by which workers share state. The writer of a document
// defines its meaning. The ledger stores it, finds it, and changes it only for a caller that has
// read its last version, together with the writes that it is about.
type Documents interface {
	// Commit applies all of a batch or nothing, in one step, and returns the resulting state. It
	// fails with [ErrStale] when a document does not have the version that the batch names, and
	// as Reserve and Append do. A reservation that repeats a write is no failure.
	Commit(ctx context.Context, f Batch) (Committed, error)
	// Document returns one document, or [ErrNoDocument].
	Document(ctx context.Context, tenant, kind, id string) (Document, error)
	// FindDocuments returns documents of one kind and tenant, newest first; documents of one
	// collection are in the order of their creation. The count ignores Limit and Offset.
	FindDocuments(ctx context.Context, q DocumentQuery) (found []Document, total int, err error)
	// DueDocuments returns due documents of a kind of all tenants, oldest due first, at most
	// limit (from 1 to 1000), and the time on the ledger's clock. A worker takes one by writing
	// it with a later due time; all others get [ErrStale].
	DueDocuments(ctx context.Context, kind string, limit int) ([]Document, time.Time, error)
	// Notes returns the notes whose name begins with prefix, ordered by name, and the time on the
	// ledger's clock.
	Notes(ctx context.Context, prefix string) ([]Note, time.Time, error)
	// SetNote writes a note and returns it with its new version and time, if its version in the
	// ledger still is n.Version (0: it does not exist). Otherwise it fails with [ErrStale]. An
	// empty value removes the note.
	SetNote(ctx context.Context, n Note) (Note, error)
}

// SagaKind is the kind of the documents of sagas. The id of one is the workflow of its writes.
const SagaKind = "saga"

// ErrNoDocument wraps [ErrNotFound]: the tenant has no such document.
var ErrNoDocument = fmt.Errorf("%w: no such document", ErrNotFound)

// ErrStale means that another caller changed a note or a document since it was read.
var ErrStale = errors.New("changed by another caller meanwhile")

// Document is a small document with a version.
type Document struct {
	// Tenant, Kind and ID name it: text of 1 to 255, 32 and 600 bytes.
	Tenant, Kind, ID string
	// Collection is what it belongs to, as a step does to its workflow. Subject and Trace are
	// search terms. At most 255, 255 and 1,024 bytes. Default none.
	Collection, Subject, Trace string
	// State is a search term. At most 32 bytes. Default none.
	State string
	// Due is when a worker is to process it. Zero: never.
	Due time.Time
	// Done says that it will not change any more, so that [Maintenance] may delete it. A document
	// whose collection is its own id is the cover of that collection: when it is deleted, all
	// documents of the tenant in the collection are deleted with it. Default false: kept for
	// ever.
	Done bool
	// Body is JSON in UTF-8, at most 1 MiB. It is returned byte for byte.
	Body json.RawMessage
	// Version is 0 for a document that is not in the ledger. Each change adds one.
	Version int64
	// Created and Updated are on the ledger's clock, as is Now, the time of the
	// call that returned it.
	Created, Updated, Now time.Time
}

// Batch is a set of changes to apply in one step.
type Batch struct {
	// Documents are written, each over the version that it names; 0: it must not exist.
	// Collection, Subject, Trace and Created of an existing one do not change.
	Documents []Document
	// Unchanged are documents that must have the version that they name and are not written. Of
	// them only tenant, kind, id and version count.
	Unchanged []Document
	// Reserve reserves a write as Ledger.Reserve does; Append changes writes as Ledger.Append
	// does.
	Reserve *Reservation
	Append  []Appending
}

// Appending is one call of Append within a batch.
type Appending struct {
	ID     ID
	Fence  int64
	Events []Event
}

// Committed is the state after a batch, in its order.
type Committed struct {
	Documents []Document
	Reserved  Record
	Fresh     bool
	Appended  []Record
	Now       time.Time
}

// DocumentQuery selects documents.
type DocumentQuery struct {
	Tenant, Kind string // required
	// Collection, States, Subject and Trace narrow it. Default: all.
	Collection     string
	States         []string
	Subject, Trace string
	// Limit is the most to return, default 100, at most 1000; Offset is how many to skip.
	Limit, Offset int
}

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

// Check returns what is wrong with a batch before anything is done, or nil.
func (f Batch) Check() error {
	if n := len(f.Documents) + len(f.Unchanged) + len(f.Append); n > maxBatch || n == 0 && f.Reserve == nil {
		return fmt.Errorf("batch: it has %d parts; want 1 to %d", n, maxBatch)
	}
	seen := make(map[[3]string]bool)
	for _, p := range slices.Concat(f.Documents, f.Unchanged) {
		if err := p.check(); err != nil {
			return err
		}
		if name := [3]string{p.Tenant, p.Kind, p.ID}; seen[name] {
			return fmt.Errorf("batch: document %s %q is in it twice", p.Kind, p.ID)
		} else {
			seen[name] = true
		}
	}
	size := 0
	for _, p := range f.Documents {
		if size += len(p.Body); !json.Valid(p.Body) || !utf8.Valid(p.Body) {
			return fmt.Errorf("batch: the body of document %s %q is no JSON in UTF-8", p.Kind, p.ID)
		}
	}
	if size > maxBatchBody {
		return fmt.Errorf("batch: the bodies of its documents have %d bytes; want at most %d together", size, maxBatchBody)
	}
	return nil
}

func (p Document) check() error {
	for _, part := range []struct {
		name, text string
		least, max int
	}{
		{"tenant", p.Tenant, 1, maxDocumentName}, {"kind", p.Kind, 1, maxDocumentWord}, {"id", p.ID, 1, maxDocumentID},
		{"collection", p.Collection, 0, maxDocumentName}, {"subject", p.Subject, 0, maxDocumentName}, {"trace", p.Trace, 0, maxDocumentText},
		{"state", p.State, 0, maxDocumentWord},
	} {
		if len(part.text) < part.least || len(part.text) > part.max || !utf8.ValidString(part.text) || slices.Contains([]byte(part.text), 0) {
			return fmt.Errorf("document: its %s has %d bytes; want text of %d to %d bytes in UTF-8, without NUL", part.name, len(part.text), part.least, part.max)
		}
	}
	switch {
	case len(p.Body) > maxDocumentBody:
		return fmt.Errorf("document %s %q: its body has %d bytes; want at most %d", p.Kind, p.ID, len(p.Body), maxDocumentBody)
	case p.Version < 0:
		return fmt.Errorf("document %s %q: its version is %d; want that of the document as it was read, or 0 for a new one", p.Kind, p.ID, p.Version)
	}
	return nil
}

// Next returns a document as it is after it was written at a time over the existing one (the zero
// document when there is none). It is the pure half of Commit. It fails with [ErrStale].
func (p Document) Next(have Document, now time.Time) (Document, error) {
	if p.Version != have.Version {
		return p, fmt.Errorf("%w: document %s %q has version %d, not %d", ErrStale, p.Kind, p.ID, have.Version, p.Version)
	}
	p.Created = now
	if have.Version != 0 {
		p.Collection, p.Subject, p.Trace, p.Created = have.Collection, have.Subject, have.Trace, have.Created
	}
	p.Body = slices.Clone(p.Body)
	p.Due = p.Due.Round(0).UTC() // as drivers keep it
	p.Version++
	p.Updated, p.Now = now, now
	return p, nil
}

// Checked returns the query with its defaults, or an error that names what is missing.
func (q DocumentQuery) Checked() (DocumentQuery, error) {
	switch {
	case q.Tenant == "" || q.Kind == "":
		return q, errors.New("documents: the tenant or the kind is missing; every listing is of one kind and one tenant")
	case q.Offset < 0:
		return q, fmt.Errorf("documents: offset is %d; want how many are skipped, at least 0", q.Offset)
	}
	if q.Limit <= 0 {
		q.Limit = defaultList
	}
	q.Limit = min(q.Limit, maxList)
	return q, nil
}

// Selects reports whether the query selects a document.
func (q DocumentQuery) Selects(p Document) bool {
	return p.Tenant == q.Tenant && p.Kind == q.Kind &&
		(q.Collection == "" || q.Collection == p.Collection) && (len(q.States) == 0 || slices.Contains(q.States, p.State)) &&
		(q.Subject == "" || q.Subject == p.Subject) && (q.Trace == "" || q.Trace == p.Trace)
}

// DueLimit is the most documents that [Documents.DueDocuments] returns.
func DueLimit(limit int) int { return min(max(limit, 1), maxList) }
