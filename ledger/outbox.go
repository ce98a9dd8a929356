package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/intent"
)

// FullNote is the name of the note that closes the outbox: while it exists, enqueuing fails with
// [ErrFull].
const FullNote = "outbox/full"

// ErrFull means that the queue is full. Nothing was recorded.
var ErrFull = errors.New("queue full")

// ErrRefused is wrapped by [RefusedError].
var ErrRefused = errors.New("enqueued write refused")

// RefusedError means that a write that was enqueued in a transaction of its caller could not be
// taken into the ledger. Nothing was sent, and nothing will be.
type RefusedError struct {
	ID     ID
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("write %s was enqueued and is refused: %s; nothing was sent", e.ID, e.Reason)
}

// Unwrap returns [ErrRefused].
func (e *RefusedError) Unwrap() error { return ErrRefused }

// Seal makes, of the intent of a write and its id, the value that the outbox stores instead: a
// JSON object with one member "sealed", which a worker opens. It fails with [intent.ErrInvalid]
// for what cannot be sealed.
type Seal func(id string, w intent.WriteIntent) ([]byte, error)

// SealedEntry reports whether an intent in the outbox is sealed as a whole. No intent has a
// member of that name.
func SealedEntry(stored []byte) bool { return bytes.HasPrefix(stored, []byte(`{"sealed":`)) }

// ToEnqueue returns the identity of a write that a caller is about to enqueue in its transaction.
// It is [NewRecord] after all checks that need the intent alone, with the intent sealed and the
// digest of the business key as the ledger stores it. Without keys, which may be nil, the intent
// is stored unsealed, and one that marks fields as sensitive is refused. The error wraps
// [intent.ErrInvalid], and then the ledger was not read; or it is that of digestKey, which reads
// the ledger's stored digest key, or [ErrNoKey].
func ToEnqueue(w intent.WriteIntent, keys Keys, digestKey func() (kept string, err error)) (Record, error) {
	if err := w.Validate(); err != nil {
		return Record{}, err
	}
	if w.Compensates != "" {
		return Record{}, &intent.InvalidError{Problems: []intent.Problem{
			{Path: "/compensates", Problem: "is set", Want: "it left out; only the engine sets it"}}}
	}
	if len(w.Sensitive) > 0 && keys == nil {
		return Record{}, &intent.InvalidError{Problems: []intent.Problem{{Path: "/sensitive",
			Problem: fmt.Sprintf("marks %q, and without redaction keys what is in the outbox stays in the clear until it is taken in", w.Sensitive[0]),
			Want:    "an outbox with redaction keys (Outbox.Keys), the intent given to an engine, which seals it, or no sensitive fields"}}}
	}
	rec, err := NewRecord(w)
	if err == nil && keys != nil {
		rec.Intent, err = keys.SealEntry(string(rec.ID), w)
	}
	if err != nil {
		return rec, err
	}
	kept, err := digestKey()
	if err != nil {
		return rec, fmt.Errorf("enqueue write %s: %w", rec.ID, err)
	}
	digests, err := OpenKeyDigests(kept, keys)
	if err == nil {
		rec, err = digests.OfRecord(rec)
	}
	if err != nil {
		return rec, fmt.Errorf("enqueue write %s: %w", rec.ID, err)
	}
	return rec, nil
}

// Entry is one row of the outbox as a driver read it.
type Entry struct {
	ID                ID
	Tenant, KeyDigest string
	Intent            []byte
}

// record returns the identity of the write that an entry requests. The error wraps [ErrCorrupt].
func (e Entry) record() (Record, error) {
	w, err := intent.Decode(e.Intent)
	if err != nil {
		return Record{}, fmt.Errorf("%w: outbox: the intent of the entry cannot be read: %w", ErrCorrupt, err)
	}
	rec, err := NewRecord(w)
	if err != nil {
		return Record{}, fmt.Errorf("%w: outbox: the intent of the entry cannot be read: %w", ErrCorrupt, err)
	}
	return rec, nil
}

// Keeping holds the function set by [Ledger.KeepWith], and how the ledger stores digests of
// business keys. It is safe for concurrent use once Digests is set.
type Keeping struct {
	// Digests are set when the ledger is opened. The zero value converts none.
	Digests KeyDigests

	keep atomic.Pointer[func(Record) (Record, error)]
}

// KeepWith implements [Ledger].
func (k *Keeping) KeepWith(keep func(Record) (Record, error)) { k.keep.Store(&keep) }

// KeepByDefault implements [Ledger].
func (k *Keeping) KeepByDefault(keep func(Record) (Record, error)) {
	k.keep.CompareAndSwap(nil, &keep)
}

// Reservation returns what an entry requests, without an owner: it is only queued. Its record is
// in its stored form. Window is how long an equal idempotency key of another write blocks it
// after that was settled; 0 is for ever. The error wraps [ErrCorrupt] and says why the entry can
// never be taken in, or [ErrNoKey] where it waits for a process with the key.
func (k *Keeping) Reservation(e Entry, window time.Duration) (Reservation, error) {
	sealed, keep := SealedEntry(e.Intent), k.keep.Load()
	if sealed && (keep == nil || *keep == nil) {
		return Reservation{}, fmt.Errorf("%w: write %s waits in the outbox, sealed; a worker with the redaction keys takes it in", ErrNoKey, e.ID)
	}
	res, err := Reservation{Record: Record{ID: e.ID, Tenant: e.Tenant, KeyDigest: e.KeyDigest, Intent: e.Intent}, Window: window}, error(nil)
	if !sealed {
		if res.Record, err = e.record(); err != nil {
			return res, err
		}
	}
	if keep != nil && *keep != nil {
		res.Record, err = (*keep)(res.Record)
	}
	if err == nil {
		res.Record, err = k.Digests.OfRecord(res.Record)
	}
	if err == nil {
		err = e.names(res.Record)
	}
	switch {
	case errors.Is(err, ErrNoKey):
		return res, fmt.Errorf("write %s waits in the outbox: %w", e.ID, err)
	case err != nil && !errors.Is(err, ErrCorrupt):
		err = fmt.Errorf("%w: outbox: the entry cannot be kept: %w", ErrCorrupt, err)
	}
	return res, err
}

// names reports whether the columns of a row match its intent.
func (e Entry) names(rec Record) error {
	if rec.ID == e.ID && rec.Tenant == e.Tenant && rec.KeyDigest == e.KeyDigest {
		return nil
	}
	return fmt.Errorf("%w: outbox: the row is damaged: the intent is write %s of tenant %q about %.12s, the row says %s, %q, %.12s",
		ErrCorrupt, rec.ID, rec.Tenant, rec.KeyDigest, e.ID, e.Tenant, e.KeyDigest)
}

// OutboxRefusal returns why an entry can never be taken in, from the error of its reservation, or ""
// when the ledger itself failed for now.
func OutboxRefusal(err error) string {
	for _, final := range []error{ErrDigestMismatch, ErrBlocked, ErrCorrupt} {
		if errors.Is(err, final) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNoKey) {
			return fmt.Sprintf("%.*s", maxRefusal, err.Error())
		}
	}
	return ""
}

// maxRefusal bounds, in runes, the reason that is kept with a refused entry of the outbox: a
// sentence for people.
const maxRefusal = 500
