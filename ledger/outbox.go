package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/intent"
)

// FullNote is the name of the note that closes the outbox: while it is there,
// enqueuing fails with [ErrFull].
const FullNote = "outbox/full"

// ToEnqueue is the identity of a write that is to be enqueued in a transaction
// of its caller: [NewRecord] after everything that an intent alone can get
// wrong. The error wraps [intent.ErrInvalid].
func ToEnqueue(w intent.WriteIntent) (Record, error) {
	if err := w.Validate(); err != nil {
		return Record{}, err
	}
	if w.Compensates != "" {
		return Record{}, &intent.InvalidError{Problems: []intent.Problem{
			{Path: "/compensates", Problem: "is set", Want: "it left out; only the engine sets it"}}}
	}
	return NewRecord(w)
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
