package orders

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

type (
	// Fault is one of package fault. Key is an order_id: bulk lookups, and requests that get no
	// connection, have no order. Delay is [DefaultDelay] by default for LateCommit, LaggingRead
	// and Throttled, and 0 (at once, before the answer) for DuplicateByOthers and Rollback;
	// negative: none. Field is by default the alphabetically last field of the request that can
	// be dropped or normalised. Several faults can apply to one request.
	Fault = fault.Fault
	// FaultKind is one way in which the destination misbehaves.
	FaultKind = fault.Kind
)

// The kinds.
const (
	LostAnswer        = fault.LostAnswer
	DroppedBefore     = fault.DroppedBefore
	BadGateway        = fault.BadGateway // 502
	LateCommit        = fault.LateCommit
	PhantomSuccess    = fault.PhantomSuccess
	DroppedField      = fault.DroppedField
	NormalisedField   = fault.NormalisedField
	LaggingRead       = fault.LaggingRead // from a replica that lags by Delay
	UnreadableRead    = fault.UnreadableRead
	DuplicateByOthers = fault.DuplicateBehindOurBack // Delay after the write
	Rollback          = fault.Rollback               // Delay after the write

	// These three are honest answers, for tests.
	Unreachable = fault.Unreachable // over Transport
	Refused     = fault.Refused
	Throttled   = fault.Throttled // 429 and Retry-After of Delay
)

// Forms are the faults that the destination has. Besides these forms,
// UnreadableRead can be any status from 400 to 599, and Refused any from 400 to 499.
// The second record of a duplicate has the stamp of the first, unless its form is
// nostamp.
var Forms = fault.Forms{
	LostAnswer: nil, DroppedBefore: nil, BadGateway: nil, LateCommit: nil, PhantomSuccess: nil,
	DroppedField:      nil,
	NormalisedField:   {"upper", "lower", "trim", "string"},
	LaggingRead:       nil,
	UnreadableRead:    {"500", "502", "401", "403", "404", "429", "garbage", "empty", "null", "page", "truncated", "cut", "hang"},
	DuplicateByOthers: {"", "nostamp"},
	Rollback:          nil,
	Unreachable:       nil,
	Refused:           {"422", "400", "401", "403", "404"},
	Throttled:         nil,
}

// FaultKinds lists them all.
func FaultKinds() []FaultKind { return Forms.Except() }

// ErrFault is wrapped by errors about a fault that cannot be set.
var ErrFault = fault.ErrInvalid

// concerns reports whether requests of an operation can meet a fault.
func concerns(k FaultKind, op Op) bool {
	return k == Unreachable || k == Throttled || k.OfReads() == (op == OpRead)
}

// delay is the fault's time.
func delay(f Fault) time.Duration {
	switch f.Kind {
	case LateCommit, LaggingRead, Throttled:
		return f.DelayOr(DefaultDelay)
	}
	return f.DelayOr(0)
}

// check returns what is wrong with a fault, for a destination with these options.
func check(f Fault, o Options) error {
	plain := f
	if status, err := strconv.Atoi(f.How); err == nil && (f.Kind == UnreadableRead || f.Kind == Refused) && status >= 400 && status <= 599 {
		plain.How = ""
	}
	if err := plain.Check(Forms); err != nil {
		return err
	}
	switch {
	case f.Kind == DuplicateByOthers && o.Unique:
		return fmt.Errorf("%w %s: order_id is unique here, no second record can appear", ErrFault, f.Kind)
	case f.Field == fieldOrderID:
		return fmt.Errorf("%w %s: field %s is the key and stays", ErrFault, f.Kind, f.Field)
	}
	for _, op := range f.Ops {
		if !slices.Contains([]Op{OpCreate, OpUpdate, OpUpsert, OpDelete, OpRead}, op) || !concerns(f.Kind, op) {
			return fmt.Errorf("%w %s: it does not concern %q", ErrFault, f.Kind, op)
		}
	}
	return nil
}

// hits are the faults that one request meets.
type hits []Fault

func (h hits) get(k FaultKind) (Fault, bool) {
	i := slices.IndexFunc(h, func(f Fault) bool { return f.Kind == k })
	if i < 0 {
		return Fault{}, false
	}
	return h[i], true
}

func (h hits) has(k FaultKind) bool {
	_, ok := h.get(k)
	return ok
}

func (h hits) kinds() []FaultKind {
	var all []FaultKind
	for _, f := range h {
		all = append(all, f.Kind)
	}
	return all
}

// Set adds a fault for the requests that come from now on. Errors wrap [ErrFault].
func (w *World) Set(f Fault) error {
	if err := check(f, w.options); err != nil {
		return err
	}
	return w.faults.Set(f)
}

// Clear removes all faults. What is under way (late commits, duplicates, rollbacks)
// still comes.
func (w *World) Clear() { w.faults.Clear() }

// arriving are the faults of requests that get a connection.
var arriving = Forms.Except(Unreachable)

// arrive counts a request and returns the faults that apply.
func (w *World) arrive(c Call) (int64, hits) {
	w.request++
	c.Request, c.At = w.request, time.Now()
	if c.Op == OpRead {
		w.reads++
	} else {
		w.writes++
	}
	met := hits(w.faults.All(fault.Request{Op: c.Op, Write: c.Op != OpRead, Key: c.OrderID}, arriving...))
	c.Faults = met.kinds()
	if len(w.calls) >= maxCalls {
		w.calls = slices.Delete(w.calls, 0, maxCalls/2)
	}
	w.calls = append(w.calls, c)
	return c.Request, met
}

// dial reports whether a request can get a connection. Only the in-process transport calls it; a
// refused request never arrives.
func (w *World) dial(op Op) bool {
	return len(w.faults.All(fault.Request{Op: op, Write: op != OpRead}, Unreachable)) == 0
}

// ParseFault reads a fault of the destination in the form of [fault.Parse]; its key is an order_id.
func ParseFault(s string) (Fault, error) {
	f, err := fault.Parse(s)
	if err != nil {
		return Fault{}, err
	}
	return f, check(f, Options{})
}
