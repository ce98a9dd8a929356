package simulated

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Vice is one way in which a destination misbehaves.
type Vice string

// The vices.
const (
	LostAnswer             Vice = "lost-answer"               // applied, then the connection is cut
	DroppedBefore          Vice = "dropped-before"            // the connection is cut and nothing is applied
	BadGateway             Vice = "bad-gateway"               // applied, then answered with 502
	LateCommit             Vice = "late-commit"               // no answer; applied Delay after the client gave up
	PhantomSuccess         Vice = "phantom-success"           // answered with 2xx, nothing stored
	DroppedField           Vice = "dropped-field"             // one field is silently not stored
	NormalisedField        Vice = "normalised-field"          // one field is stored in another form
	LaggingRead            Vice = "lagging-read"              // a read comes from a replica that is Delay behind
	UnreadableRead         Vice = "unreadable-read"           // a read cannot be understood
	DuplicateBehindOurBack Vice = "duplicate-behind-our-back" // a second record appears Delay after the write
	Rollback               Vice = "rollback"                  // the effect is taken back Delay after the write

	// These three are honest answers, which tests need at will.
	Unreachable Vice = "unreachable" // no connection (only over Transport)
	Refused     Vice = "refused"     // refused with 422, nothing applied
	Throttled   Vice = "throttled"   // answered with 429 and Retry-After of Delay, nothing applied
)

// Vices lists them all.
func Vices() []Vice {
	return []Vice{LostAnswer, DroppedBefore, BadGateway, LateCommit, PhantomSuccess,
		DroppedField, NormalisedField, LaggingRead, UnreadableRead,
		DuplicateBehindOurBack, Rollback, Unreachable, Refused, Throttled}
}

// ErrFault is wrapped by errors about a fault that cannot be set.
var ErrFault = errors.New("fault")

// Fault switches a vice on. Several faults can meet in one request.
type Fault struct {
	// Vice is which. Required.
	Vice Vice
	// Ops are the operations it concerns. Unreachable and Throttled can
	// concern all, LaggingRead and UnreadableRead only [OpRead], the others
	// only writes. Default: reads for the two reading vices, all writes for the
	// others.
	Ops []Op
	// OrderID confines it to one order. Unreachable and bulk lookups are about
	// no order. Default all.
	OrderID string
	// Skip is how many requests that it concerns pass unharmed first.
	Skip int
	// Times is how many requests it meets then. Default 0: all.
	Times int
	// Chance is how probable it is for each of them, in (0, 1]. Default 0,
	// which means 1. Options.Seed decides.
	Chance float64
	// Delay is the vice's time. Default [DefaultDelay] for LateCommit,
	// LaggingRead and Throttled, and 0 (at once, before the answer) for
	// DuplicateBehindOurBack and Rollback. A negative Delay means none.
	Delay time.Duration
	// Field is the field for DroppedField and NormalisedField. Default: the
	// last in the order of the alphabet, of those of the request that can be
	// so treated.
	Field string
	// How chooses the form.
	//   - NormalisedField: trim, lower, upper, string (a number becomes its
	//     written form). Default upper.
	//   - UnreadableRead: a status from 400 to 599, or garbage (200 and no
	//     JSON), empty (200 and {}), null (200 and a null list), page (200 and
	//     an HTML page), truncated (200 and cut in the middle), cut, hang.
	//     Default 500.
	//   - DuplicateBehindOurBack: nostamp. Default: the second bears the
	//     stamp of the first.
	//   - Refused: a status from 400 to 499. Default 422.
	How string
}

// concerns reports whether requests of an operation can meet the vice.
func (v Vice) concerns(op Op) bool {
	switch v {
	case Unreachable, Throttled:
		return true
	case LaggingRead, UnreadableRead:
		return op == OpRead
	}
	return op != OpRead
}

// on reports whether the fault is about an operation.
func (f Fault) on(op Op) bool {
	if len(f.Ops) > 0 {
		return slices.Contains(f.Ops, op)
	}
	return f.Vice.concerns(op) && (op == OpRead) == (f.Vice == LaggingRead || f.Vice == UnreadableRead)
}

func (f Fault) delay() time.Duration {
	switch {
	case f.Delay < 0:
		return 0
	case f.Delay > 0:
		return f.Delay
	}
	switch f.Vice {
	case LateCommit, LaggingRead, Throttled:
		return DefaultDelay
	}
	return 0
}

// hows lists the forms of each vice that has some.
var hows = map[Vice][]string{
	NormalisedField:        {"upper", "lower", "trim", "string"},
	UnreadableRead:         {"500", "502", "401", "403", "404", "429", "garbage", "empty", "null", "page", "truncated", "cut", "hang"},
	DuplicateBehindOurBack: {"", "nostamp"},
	Refused:                {"422", "400", "401", "403", "404"},
}

// Hows lists forms of a vice that Fault.How can name, the default first; none
// for a vice that has one form only.
func Hows(v Vice) []string { return slices.Clone(hows[v]) }

// check says what is wrong with a fault, for a destination with these options.
func (f Fault) check(o Options) error {
	switch {
	case !slices.Contains(Vices(), f.Vice):
		return fmt.Errorf("%w: unknown vice %q; known: %v", ErrFault, f.Vice, Vices())
	case f.Vice == DuplicateBehindOurBack && o.Unique:
		return fmt.Errorf("%w %s: order_id is unique here, no second record can appear", ErrFault, f.Vice)
	case f.Chance < 0 || f.Chance > 1:
		return fmt.Errorf("%w %s: chance %v is not in (0, 1]", ErrFault, f.Vice, f.Chance)
	case f.Skip < 0 || f.Times < 0:
		return fmt.Errorf("%w %s: skip and times must not be negative", ErrFault, f.Vice)
	}
	if f.Field == fieldOrderID {
		return fmt.Errorf("%w %s: field %s is the key and stays", ErrFault, f.Vice, f.Field)
	}
	for _, op := range f.Ops {
		if !slices.Contains([]Op{OpCreate, OpUpdate, OpUpsert, OpDelete, OpRead}, op) || !f.Vice.concerns(op) {
			return fmt.Errorf("%w %s: it does not concern %q", ErrFault, f.Vice, op)
		}
	}
	if f.How == "" || slices.Contains(hows[f.Vice], f.How) {
		return nil
	}
	if status, err := strconv.Atoi(f.How); err == nil && (f.Vice == UnreadableRead || f.Vice == Refused) && status >= 400 && status <= 599 {
		return nil
	}
	return fmt.Errorf("%w %s: how %q is not one of %q", ErrFault, f.Vice, f.How, hows[f.Vice])
}

// ParseFault reads a fault as flags and the control endpoint write it: the
// vice, then any of op, order, skip, times, chance, delay, field and how, for
// example "late-commit,op=create,times=2,delay=3s". op may stand more than
// once.
func ParseFault(s string) (Fault, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(s), ",")
	f := Fault{Vice: Vice(name)}
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch key {
		case "op":
			f.Ops = append(f.Ops, Op(value))
		case "order":
			f.OrderID = value
		case "skip":
			f.Skip, err = strconv.Atoi(value)
		case "times":
			f.Times, err = strconv.Atoi(value)
		case "chance":
			f.Chance, err = strconv.ParseFloat(value, 64)
		case "delay":
			f.Delay, err = time.ParseDuration(value)
		case "field":
			f.Field = value
		case "how":
			f.How = value
		default:
			err = errors.New("want op, order, skip, times, chance, delay, field or how")
		}
		if err != nil {
			return Fault{}, fmt.Errorf("%w %q: %s: %w", ErrFault, s, key, err)
		}
	}
	return f, f.check(Options{})
}
