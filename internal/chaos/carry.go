package chaos

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// soon is how long after the answer the target gets a write again.
const soon = 50 * time.Millisecond

// Way is how one request reaches its target and an answer A returns: over HTTP, or through a
// connector.
type Way[A any] struct {
	// Send sends it to the target, once, and returns the target's answer in words, whether that
	// means that the target applied it, and whether that is unknown. An arrival without an answer
	// in words is none: the target got nothing.
	Send func(ctx context.Context) (A, Arrival)
	// Dead is what a client sees if no answer arrives.
	Dead A
	// Status is an answer that does not come from the target.
	Status func(code int) A
	// Half is a truncated answer; phantom one of success without an effect; both also in words.
	// Old is the target's answer of a while ago.
	Half    func(A) (A, string)
	Phantom func() (A, string)
	Old     func(fault.Fault) (A, bool)
}

// Carry sends one call to its target, with its fault. Every fault is implemented here.
func Carry[A any](ctx context.Context, l *Log, c *Call, f fault.Fault, w Way[A]) A {
	defer l.End(c)
	answer := ""
	send := func(ctx context.Context) A {
		a, arrival := w.Send(ctx)
		if answer = cmp.Or(arrival.Answer, DeadConnection); arrival.Answer != "" {
			l.Arrived(c, arrival)
		}
		return a
	}
	status := func(code int) A {
		l.Saw(c, fmt.Sprint(code))
		return w.Status(code)
	}
	dead := func(saw string) A {
		l.Saw(c, saw)
		return w.Dead
	}
	switch f.Kind {
	case fault.LostAnswer:
		send(ctx)
		return dead(DeadConnection)
	case fault.DroppedBefore:
		return dead(DeadConnection)
	case fault.LateCommit:
		return dead(l.hold(ctx, c, f, func() { send(context.WithoutCancel(ctx)) }))
	case fault.PhantomSuccess:
		a, says := w.Phantom()
		l.Saw(c, says)
		return a
	case fault.BadGateway:
		send(ctx)
		return status(http.StatusBadGateway)
	case fault.ThrottledAfter:
		send(ctx)
		return status(http.StatusTooManyRequests)
	case fault.Throttled:
		return status(http.StatusTooManyRequests)
	case fault.Unavailable:
		return status(http.StatusServiceUnavailable)
	case fault.Refused:
		return status(http.StatusUnprocessableEntity)
	case fault.Unreachable:
		return dead(DeadConnection)
	case fault.HangingRead:
		return dead(l.outwait(ctx))
	case fault.UnreadableRead:
		if code, err := strconv.Atoi(cmp.Or(f.How, "503")); err == nil {
			return status(code)
		}
		a, says := w.Half(send(ctx))
		l.Saw(c, says)
		return a
	case fault.CutBody:
		a, says := w.Half(send(ctx))
		l.Saw(c, says)
		return a
	case fault.LaggingRead:
		if a, ok := w.Old(f); ok {
			l.Saw(c, "an old state")
			return a
		}
		l.Unharmed(c, "no older answer to this read is known")
	}
	a := send(ctx)
	l.Saw(c, answer)
	switch first := answer; f.Kind {
	case fault.Duplicate:
		send(ctx)
		l.Saw(c, first)
	case fault.DuplicateBehindOurBack:
		time.AfterFunc(f.DelayOr(soon), func() { w.Send(context.WithoutCancel(ctx)) }) // the target's own doing: it is in no count
	}
	return a
}
