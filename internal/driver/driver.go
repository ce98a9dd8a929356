// Package driver is the logic that ledger drivers share: how a record and its events are encoded
// in a row, who decides about a queued call, and how a sweep works. It knows no database.
package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	quick "github.com/go-json-experiment/json"
	asBefore "github.com/go-json-experiment/json/v1"

	"github.com/readback-go/readback/ledger"
)

// likeBefore are the options with which the JSON library that is twice as fast as encoding/json
// does the same; with strictly, unknown fields are errors.
var (
	likeBefore = asBefore.DefaultOptionsV1()
	strictly   = quick.JoinOptions(likeBefore, quick.RejectUnknownMembers(true))
)

// Decode decodes a body. Unknown fields were written by a newer program on the same ledger, and
// must not be dropped when the body is written again: they wrap [ledger.ErrVersion]; any other
// error wraps [ledger.ErrCorrupt].
func Decode(body []byte, v any) error {
	if err := quick.Unmarshal(body, v, strictly); err == nil {
		return nil // else encoding/json reports what is wrong
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "unknown field"): // encoding/json has no typed error for it
		return fmt.Errorf("%w: %w; use the program that wrote it, or a newer one", ledger.ErrVersion, err)
	}
	return fmt.Errorf("%w: cannot be read: %w", ledger.ErrCorrupt, err)
}

// Raws returns the fields that change during the lifetime of a write and must be returned byte
// for byte, which encoding/json does not promise for raw messages. Like the intent, they have
// columns of their own, in this order.
func Raws(r *ledger.Record) []*json.RawMessage {
	return []*json.RawMessage{&r.Before, &r.Evidence, &r.Mismatches, &r.ChildIntent}
}

// Encode appends the body of a record to a text: everything but the intent and [Raws].
func Encode(to []byte, r ledger.Record) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.record = r
	e.record.Intent = nil
	for _, raw := range Raws(&e.record) {
		*raw = nil
	}
	return e.encode(to, &e.record)
}

// EncodeEvent appends the body of an event: everything but its evidence and mismatches, which
// have columns of their own.
func EncodeEvent(to []byte, event ledger.Event) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.event = event
	e.event.Evidence, e.event.Mismatches = nil, nil
	return e.encode(to, &e.event)
}

// encoder holds what is encoded and its text. The library needs both on the heap, they are large,
// and each commit encodes several.
type encoder struct {
	record ledger.Record
	event  ledger.Event
	body   bytes.Buffer
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func (e *encoder) encode(to []byte, v any) ([]byte, error) {
	err := quick.MarshalWrite(&e.body, v, likeBefore)
	to = append(to, e.body.Bytes()...)
	e.record, e.event = ledger.Record{}, ledger.Event{}
	e.body.Reset()
	encoders.Put(e)
	return to, err
}

// Fate decides about a queued call: either the writer begins it, or its caller abandons it. The
// zero value is undecided.
type Fate struct{ word atomic.Int32 }

const (
	waits int32 = iota
	begun
	abandoned
)

// Begin reports whether the call is to be made. It may be begun more than once.
func (f *Fate) Begin() bool {
	return f.word.CompareAndSwap(waits, begun) || f.word.Load() == begun
}

// Abandon gives the call up, and reports whether it had not begun.
func (f *Fate) Abandon() bool { return f.word.CompareAndSwap(waits, abandoned) }

// Abandoned reports whether it was given up.
func (f *Fate) Abandoned() bool { return f.word.Load() == abandoned }
