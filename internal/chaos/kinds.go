package chaos

import (
	"fmt"
	"slices"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Forms are the faults that a [Proxy] has.
var Forms = fault.Forms{
	fault.LostAnswer: nil, fault.DroppedBefore: nil, fault.LateCommit: nil, fault.PhantomSuccess: nil, fault.Duplicate: nil, fault.CutBody: nil,
	fault.BadGateway: nil, fault.Unavailable: nil, fault.Throttled: nil, fault.LaggingRead: nil, fault.ThrottledAfter: nil,
	fault.UnreadableRead: {"503", "500", "502", "401", "403", "404", "429", "200", "cut"}, fault.HangingRead: nil, fault.Refused: nil, fault.Unreachable: nil,
	fault.DroppedField: nil, fault.NormalisedField: nil, fault.DuplicateBehindOurBack: nil,
}

var onlyWrites = []fault.Kind{
	fault.LateCommit, fault.PhantomSuccess, fault.Duplicate, fault.ThrottledAfter, fault.Refused,
	fault.DroppedField, fault.NormalisedField, fault.DuplicateBehindOurBack,
}

// can reports whether a fault applies to a write, or to a read.
func can(k fault.Kind, write bool) bool {
	return write && !k.OfReads() || !write && !slices.Contains(onlyWrites, k)
}

// Check returns what is wrong with a fault of a [Proxy].
func Check(f fault.Fault) error { return check(f, Forms) }

func check(f fault.Fault, forms fault.Forms) error {
	err := f.Check(forms)
	switch {
	case err != nil:
		return err
	case f.Delay < 0:
		return fmt.Errorf("%w %s: Delay is %v; want none or more", fault.ErrInvalid, f.Kind, f.Delay)
	case slices.Contains(f.Ops, fault.Read) && !can(f.Kind, false):
		return fmt.Errorf("%w %s: it happens to writes only; leave Ops out", fault.ErrInvalid, f.Kind)
	}
	return nil
}
