package readbacktest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// soon is how long after the answer the target gets a write again.
const soon = 50 * time.Millisecond

// way is how one request reaches its target and an answer A returns: over HTTP, or through a
// connector.
type way[A any] struct {
	// send sends it to the target, once, and returns the target's answer in words and whether
	// that means that the target applied it.
	send func(ctx context.Context) (a A, answer string, done bool)
	// dead is what a client sees if no answer arrives.
	dead A
	// status is an answer that does not come from the target.
	status func(code int) A
	// half is a truncated answer; phantom one of success without an effect; both also in words.
	// old is the target's answer of a while ago.
	half    func(A) (A, string)
	phantom func() (A, string)
	old     func(Fault) (A, bool)
}

// carry sends one call to its target, with its fault. Every fault is implemented here.
func carry[A any](ctx context.Context, l *Log, c *Call, f Fault, w way[A]) A {
	defer l.calling.end()
	answer := ""
	send := func(ctx context.Context) (a A) {
		var done bool
		a, answer, done = w.send(ctx)
		l.arrived(c, answer, done)
		return a
	}
	status := func(code int) A {
		l.saw(c, fmt.Sprint(code))
		return w.status(code)
	}
	dead := func(saw string) A {
		l.saw(c, saw)
		return w.dead
	}
	switch f.Kind {
	case LostAnswer:
		send(ctx)
		return dead(deadConnection)
	case DroppedBefore:
		return dead(deadConnection)
	case LateCommit:
		return dead(l.hold(ctx, c, f, func() { send(context.WithoutCancel(ctx)) }))
	case PhantomSuccess:
		a, says := w.phantom()
		l.saw(c, says)
		return a
	case BadGateway:
		send(ctx)
		return status(http.StatusBadGateway)
	case ThrottledAfter:
		send(ctx)
		return status(http.StatusTooManyRequests)
	case Throttled:
		return status(http.StatusTooManyRequests)
	case Unavailable:
		return status(http.StatusServiceUnavailable)
	case Refused:
		return status(http.StatusUnprocessableEntity)
	case Unreachable:
		return dead(deadConnection)
	case HangingRead:
		return dead(l.outwait(ctx))
	case UnreadableRead:
		if code, err := strconv.Atoi(cmp.Or(f.How, "503")); err == nil {
			return status(code)
		}
		a, says := w.half(send(ctx))
		l.saw(c, says)
		return a
	case CutBody:
		a, says := w.half(send(ctx))
		l.saw(c, says)
		return a
	case LaggingRead:
		if a, ok := w.old(f); ok {
			l.saw(c, "an old state")
			return a
		}
		l.unharmed(c, "no older answer to this read is known")
	}
	a := send(ctx)
	l.saw(c, answer)
	switch first := answer; f.Kind {
	case Duplicate:
		send(ctx)
		l.saw(c, first)
	case DuplicateBehindOurBack:
		time.AfterFunc(f.DelayOr(soon), func() { w.send(context.WithoutCancel(ctx)) }) // the target's own doing: it is in no count
	}
	return a
}
