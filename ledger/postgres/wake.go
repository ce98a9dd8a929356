package postgres

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

var _ ledger.Waker = (*Ledger)(nil)

// wake is how this process tells others of new work, and hears of theirs. All
// of it only makes somebody look sooner: what fails here is found by looking.
//
// A notification is sent after what it is about is durable, on its own: as a
// part of that transaction it would make its commit wait for all others that
// carry one. Many in a short time are one.
type wake struct {
	mu         sync.Mutex
	closed     bool
	told       chan struct{} // of capacity 1: others are to be told
	listening  bool
	ctx        context.Context // until the ledger is closed
	end        context.CancelFunc
	background sync.WaitGroup
}

// Woken implements [ledger.Waker]: for what this process did at once, and for
// what others did or enqueued as long as a connection of its own, beside those
// of the pool, can be had to listen on. Through a pooler in transaction mode
// nothing is heard on it.
func (l *Ledger) Woken(ctx context.Context) <-chan struct{} {
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listening {
		w.listening = true
		w.run(l.listen)
	}
	return l.bell.Woken(ctx)
}

// ring wakes the workers of this process, and soon those of the others.
func (l *Ledger) ring() {
	l.bell.Ring()
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == nil {
		w.told = make(chan struct{}, 1)
		w.run(l.tell)
	}
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// run starts f until the ledger is closed. The caller has the lock.
func (w *wake) run(f func(ctx context.Context)) {
	if w.closed {
		return
	}
	if w.end == nil {
		w.ctx, w.end = context.WithCancel(context.Background())
	}
	w.background.Go(func() { f(w.ctx) })
}

func (w *wake) close() {
	w.mu.Lock()
	w.closed = true
	if w.end != nil {
		w.end()
	}
	w.mu.Unlock()
	w.background.Wait()
}

// tell notifies the other processes, not too often.
func (l *Ledger) tell(ctx context.Context) {
	for {
		select {
		case <-l.wake.told:
		case <-ctx.Done():
			return
		}
		sending, cancel := context.WithTimeout(ctx, patience)
		_, _ = l.pool.Exec(sending, "SELECT pg_notify('ledger_wake', '')")
		cancel()
		pause(ctx, wakeEvery)
	}
}

// listen hears the other processes, as long as that is possible.
func (l *Ledger) listen(ctx context.Context) {
	for wait := minListenPause; ctx.Err() == nil; wait = min(2*wait, maxListenPause) {
		if heard := l.hear(ctx); heard {
			wait = minListenPause
		}
		pause(ctx, wait/2+rand.N(wait))
	}
}

// hear listens until the connection breaks, and says whether it listened.
func (l *Ledger) hear(ctx context.Context) (listened bool) {
	pooled, err := l.pool.Acquire(ctx)
	if err != nil {
		return false
	}
	conn := pooled.Hijack() // the pool makes another one in its place
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN ledger_wake"); err != nil {
		return false
	}
	heard := make(chan struct{}, 1)
	defer close(heard)
	l.wake.background.Go(func() { l.pass(ctx, heard) })
	for {
		select {
		case heard <- struct{}{}: // also at first: what came before was missed
		default:
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
	}
}

// pass wakes the workers of this process when something was heard, not too
// often.
func (l *Ledger) pass(ctx context.Context, heard <-chan struct{}) {
	for range heard {
		l.bell.Ring()
		pause(ctx, wakeEvery)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
