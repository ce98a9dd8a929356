package readbacktest

import (
	"context"
	"fmt"
	"net/http"
)

// way is how one request goes to its target and an answer A comes back: over
// HTTP, or through a connector.
type way[A any] struct {
	// send carries it to the target, once, and tells what the target said and
	// whether that means that it did it.
	send func(ctx context.Context) (a A, said string, done bool)
	// dead is what a client sees when no answer comes.
	dead A
	// status is an answer that is not the target's.
	status func(code int) A
	// half is an answer that breaks off; phantom one of success that is none; both
	// in words too. old is what the target would have said a while ago.
	half    func(A) (A, string)
	phantom func() (A, string)
	old     func(Fault) (A, bool)
}

// carry takes one call to its target as its fault wants it. It is the one place
// that says what each vice does.
func carry[A any](ctx context.Context, l *Log, c *Call, f Fault, w way[A]) A {
	defer l.calling.end()
	said := ""
	send := func(ctx context.Context) (a A) {
		var done bool
		a, said, done = w.send(ctx)
		l.arrived(c, said, done)
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
	switch f.Vice {
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
	l.saw(c, said)
	if f.Vice == Duplicate {
		first := said
		send(ctx)
		l.saw(c, first)
	}
	return a
}
