// Package fault is the one fault model for all fakes of destinations and for package
// readbacktest: the kinds of fault ([Kind], [Fault]), when they happen ([Schedule]), the states
// of a record through time ([History]) and the actor of each ([Origin]). Each fake has its own
// log of effects, by which tests count.
//
// The package knows no destination and no protocol. A fake declares its kinds ([Forms]) and asks
// its schedule which fault each request meets. It does not import package testing, so that
// programs can offer a fake.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrInvalid is wrapped by errors about a fault that a fake cannot have.
var ErrInvalid = errors.New("fault")

// Op is the operation of a request: a name of the fake's own, or [Read] or [Write].
type Op string

// Read matches all reads, Write all writes.
const (
	Read  Op = "read"
	Write Op = "write"
)

// Fault is one entry of a schedule: "the third write loses its answer" is {Kind: LostAnswer, Nth:
// 3}, "the next two" {Kind: LostAnswer, Times: 2}.
type Fault struct {
	// Kind of the fault. Required.
	Kind Kind
	// How chooses the form, one of the fake's [Forms]. Default the first.
	How string
	// Ops restricts it to operations. Default: all reads for the kinds of reads, all writes for
	// the others.
	Ops []Op
	// Key restricts it to requests about one object: an order, a path. Default all.
	Key string
	// Match restricts it to requests for which it returns true. It is called once for each
	// request that matches Ops and Key. Default all.
	Match func(Request) bool

	// Nth is which of the matching requests it meets, 1 the first. Default 0: see Skip and Times.
	Nth int
	// Skip is how many matching requests pass unharmed first.
	Skip int
	// Times is how many requests it meets then. Default 0: all.
	Times int
	// Chance is its probability for each of them, in (0, 1]. Default 0, which means 1. The
	// schedule's seed decides.
	Chance float64

	// Delay is the fault's time, and After its time in requests, for a late request or an old
	// answer. The fake gives the default. A negative After holds a late commit until the fake's
	// Release.
	Delay time.Duration
	After int
	// Field is the field for DroppedField and NormalisedField. The fake gives the
	// default.
	Field string
}

// Request is the part of a request that a schedule needs.
type Request struct {
	Op    Op
	Write bool
	Key   string
	Body  []byte
}

// Once returns the fault for the next matching request, and no other.
func (f Fault) Once() Fault {
	f.Times = 1
	return f
}

// DelayOr returns the fault's delay, or otherwise if it has none. A negative delay means no
// delay.
func (f Fault) DelayOr(otherwise time.Duration) time.Duration {
	if f.Delay == 0 {
		return otherwise
	}
	return max(f.Delay, 0)
}

// Concerns reports whether the fault can match a request.
func (f Fault) Concerns(r Request) bool {
	if len(f.Ops) == 0 {
		if f.Kind.OfReads() == r.Write {
			return false
		}
	} else if !slices.ContainsFunc(f.Ops, r.is) {
		return false
	}
	return (f.Key == "" || f.Key == r.Key) && (f.Match == nil || f.Match(r))
}

func (r Request) is(o Op) bool { return o == r.Op || r.Write && o == Write || !r.Write && o == Read }

// Check returns what is wrong with a fault, for a fake with these forms. Errors wrap
// [ErrInvalid].
func (f Fault) Check(forms Forms) error {
	how, known := forms[f.Kind]
	switch {
	case !known || f.Kind == None:
		return fmt.Errorf("%w: unknown kind %q; want one of %q", ErrInvalid, f.Kind, slices.Sorted(maps.Keys(forms)))
	case f.How != "" && !slices.Contains(how, f.How):
		return fmt.Errorf("%w %s: how %q is not one of %q", ErrInvalid, f.Kind, f.How, how)
	case f.Nth < 0:
		return fmt.Errorf("%w %s: Nth is %d; want 1 for the first, or 0 for each", ErrInvalid, f.Kind, f.Nth)
	case f.Skip < 0 || f.Times < 0:
		return fmt.Errorf("%w %s: skip and times must not be negative", ErrInvalid, f.Kind)
	case f.Chance < 0 || f.Chance > 1:
		return fmt.Errorf("%w %s: chance %v is not in (0, 1]", ErrInvalid, f.Kind, f.Chance)
	}
	return nil
}

// String returns the fault as a failure names it.
func (f Fault) String() string {
	op := Write
	if f.Kind.OfReads() || slices.Contains(f.Ops, Read) {
		op = Read
	}
	if f.Nth == 0 {
		return fmt.Sprintf("%s on each %s", f.Kind, op)
	}
	return fmt.Sprintf("%s on %s %d", f.Kind, op, f.Nth)
}
