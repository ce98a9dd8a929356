// Package driver is what the drivers of ledgers have in common: how a record
// and its events stand in a row, who decides about a call that waits for its
// turn, and what a sweep leaves behind. It does not know any database.
package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	quick "github.com/go-json-experiment/json"
	asBefore "github.com/go-json-experiment/json/v1"

	"github.com/readback-go/readback/ledger"
)

// strictly is how [Decode] reads with the library that is twice as quick as
// encoding/json: as that one does, and nothing that is unknown.
var strictly = quick.JoinOptions(asBefore.DefaultOptionsV1(), quick.RejectUnknownMembers(true))

// Decode reads a body. What this program does not know was written by a newer
// one that works on the same ledger, and must not be dropped when the body is
// written again: that wraps [ledger.ErrVersion], anything else
// [ledger.ErrCorrupt].
func Decode(body []byte, v any) error {
	if err := quick.Unmarshal(body, v, strictly); err == nil {
		return nil // else encoding/json says what is wrong
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "unknown field"): // encoding/json has no other sign for it
		return fmt.Errorf("%w: %w; use the program that wrote it, or a newer one", ledger.ErrVersion, err)
	}
	return fmt.Errorf("%w: cannot be read: %w", ledger.ErrCorrupt, err)
}

// Raws are what changes in the life of a write and must come back byte for
// byte, which encoding/json does not promise for raw messages. They have
// columns of their own, in this order, as the intent has.
func Raws(r *ledger.Record) []*json.RawMessage {
	return []*json.RawMessage{&r.Before, &r.Evidence, &r.Mismatches, &r.ChildIntent}
}

// Encode is the body of a record: everything but the intent and [Raws].
func Encode(r ledger.Record) (string, error) {
	r.Intent = nil
	for _, raw := range Raws(&r) {
		*raw = nil
	}
	b, err := json.Marshal(r)
	return string(b), err
}

// EncodeEvent is the body of an event: everything but what was seen and how it
// differs, which have columns of their own.
func EncodeEvent(e ledger.Event) (string, error) {
	e.Evidence, e.Mismatches = nil, nil
	b, err := json.Marshal(e)
	return string(b), err
}

// Fate says who decides about a call that waits for its turn: whoever begins
// it, or the caller that gives it up. The zero value waits.
type Fate struct{ word atomic.Int32 }

const (
	waits int32 = iota
	begun
	abandoned
)

// Begin reports whether the call is to be made; it may be begun more than
// once.
func (f *Fate) Begin() bool {
	return f.word.CompareAndSwap(waits, begun) || f.word.Load() == begun
}

// Abandon gives the call up, and reports whether it had not been begun.
func (f *Fate) Abandon() bool { return f.word.CompareAndSwap(waits, abandoned) }

// Abandoned reports whether it was given up.
func (f *Fate) Abandoned() bool { return f.word.Load() == abandoned }

// Left is what a sweep left because it cannot be read.
type Left []ledger.Unread

// Leave notes a write, while there are not too many to name.
func (l *Left) Leave(id ledger.ID, why error) {
	if len(*l) < ledger.MaxUnread {
		*l = append(*l, ledger.Unread{ID: id, Err: why})
	}
}

// Error names them, and those of another sweep: a [ledger.UnreadError], or nil
// when there are none.
func (l Left) Error(more Left) error {
	all := append(l[:len(l):len(l)], more...)
	if len(all) == 0 {
		return nil
	}
	return &ledger.UnreadError{Writes: all[:min(len(all), ledger.MaxUnread)]}
}

// Sweep is where a sweep through what is settled goes on, and what it did so
// far.
type Sweep struct {
	Tombstones   bool  // through the tombstones, or through what may become one
	Key, N       int64 // of the last row that was looked at
	Done, AtMost int
	Ended        bool
	Left         Left
}

// Prune is [ledger.Pruner] for a driver. Step goes on with a sweep, a few rows
// in one transaction; refused forgets entries of the outbox.
func Prune(p ledger.Prune, step func(ledger.Prune, Sweep) (Sweep, error), refused func(ledger.Prune) error) (did ledger.Pruned, err error) {
	if p, err = p.Checked(); err != nil {
		return did, err
	}
	through := func(tombstones bool, atMost int) (at Sweep, err error) {
		for at = (Sweep{Tombstones: tombstones, Key: math.MinInt64, AtMost: atMost}); !at.Ended && at.Done < atMost; {
			next, err := step(p, at)
			if err != nil {
				return at, err
			}
			at = next
		}
		return at, nil
	}
	forgotten, err := through(true, p.Limit)
	if did.Forgotten = forgotten.Done; err != nil {
		return did, err
	}
	buried, err := through(false, p.Limit-did.Forgotten)
	if did.Buried = buried.Done; err != nil {
		return did, err
	}
	if err := refused(p); err != nil {
		return did, err
	}
	return did, forgotten.Left.Error(buried.Left)
}
