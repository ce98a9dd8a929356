package ledger

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/intent"
)

// FullNote is the name of the note that closes the outbox: while it is there,
// enqueuing fails with [ErrFull].
const FullNote = "outbox/full"

// ToEnqueue is the identity of a write that is to be enqueued in a transaction
// of its caller: [NewRecord] after everything that an intent alone can get
// wrong. An intent that marks fields as sensitive is refused too: nothing seals
// what waits there. The error wraps [intent.ErrInvalid].
func ToEnqueue(w intent.WriteIntent) (Record, error) {
	if err := w.Validate(); err != nil {
		return Record{}, err
	}
	if w.Compensates != "" {
		return Record{}, &intent.InvalidError{Problems: []intent.Problem{
			{Path: "/compensates", Problem: "is set", Want: "it left out; only the engine sets it"}}}
	}
	if len(w.Sensitive) > 0 {
		return Record{}, &intent.InvalidError{Problems: []intent.Problem{{Path: "/sensitive",
			Problem: fmt.Sprintf("marks %q, and what is in the outbox stays in the clear until it is taken in", w.Sensitive[0]),
			Want:    "the intent given to an engine, which seals it, or no sensitive fields"}}}
	}
	return NewRecord(w)
}

// Keeper is what a [Ledger] with an outbox can be besides: it is told how a write
// that it takes in from there is to be kept.
type Keeper interface {
	// KeepWith replaces what makes the record of an entry as it is kept of the one
	// that was asked for, with the same identity. One that fails refuses the entry
	// for good. Default: it is kept as it is.
	KeepWith(keep func(Record) (Record, error))
	// KeepUnlessTold is KeepWith for one that gives way to another: it changes
	// nothing where the ledger was told before.
	KeepUnlessTold(keep func(Record) (Record, error))
}

// Entry is one row of the outbox as a driver found it.
type Entry struct {
	ID                ID
	Tenant, KeyDigest string
	Intent            []byte
}

// Reservation is what an entry asks for, from nobody: it is only to be queued.
// Window is how long an equal idempotency key of another write blocks it after that was settled; 0
// is for ever. The error wraps [ErrCorrupt] and says why the entry can never be
// taken in.
func (e Entry) Reservation(window time.Duration) (Reservation, error) {
	w, err := intent.Decode(e.Intent)
	if err != nil {
		return Reservation{}, fmt.Errorf("%w: outbox: the intent of the entry cannot be read: %w", ErrCorrupt, err)
	}
	rec, err := NewRecord(w)
	switch {
	case err != nil:
		return Reservation{}, fmt.Errorf("%w: outbox: the intent of the entry cannot be read: %w", ErrCorrupt, err)
	case rec.ID != e.ID || rec.Tenant != e.Tenant || rec.KeyDigest != e.KeyDigest:
		return Reservation{}, fmt.Errorf("%w: outbox: the row is damaged: the intent is write %s of tenant %q about %.12s, the row says %s, %q, %.12s",
			ErrCorrupt, rec.ID, rec.Tenant, rec.KeyDigest, e.ID, e.Tenant, e.KeyDigest)
	}
	return Reservation{Record: rec, Window: window}, nil
}

// Keeping is what a driver was told by [Keeper.KeepWith]. The zero value keeps
// writes as they are. It is safe for concurrent use.
type Keeping struct {
	keep atomic.Pointer[func(Record) (Record, error)]
}

// KeepWith implements [Keeper].
func (k *Keeping) KeepWith(keep func(Record) (Record, error)) { k.keep.Store(&keep) }

// KeepUnlessTold implements [Keeper].
func (k *Keeping) KeepUnlessTold(keep func(Record) (Record, error)) {
	k.keep.CompareAndSwap(nil, &keep)
}

// Reservation is [Entry.Reservation] with the record as it is to be kept.
func (k *Keeping) Reservation(e Entry, window time.Duration) (Reservation, error) {
	res, err := e.Reservation(window)
	keep := k.keep.Load()
	if err != nil || keep == nil || *keep == nil {
		return res, err
	}
	if res.Record, err = (*keep)(res.Record); err != nil {
		return res, fmt.Errorf("%w: outbox: the entry cannot be kept: %w", ErrCorrupt, err)
	}
	return res, nil
}

// Refusal is why an entry can never be taken in, as the error of its
// reservation says, or "" when it is the ledger that could not do it now.
func Refusal(err error) string {
	for _, final := range []error{ErrDigestMismatch, ErrBlocked, ErrCorrupt} {
		if errors.Is(err, final) && !errors.Is(err, ErrUnavailable) {
			return fmt.Sprintf("%.*s", maxRefusal, err.Error())
		}
	}
	return ""
}
