package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

var (
	_ ledger.Waker  = (*Ledger)(nil)
	_ ledger.Herald = (*Ledger)(nil)
)

// The channels on which processes tell each other of work, and of changes.
const (
	workChannel = "ledger_wake"
	newsChannel = "ledger_told"
)

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
	work, news bool          // of what
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
	l.hearOthers()
	return l.bell.Woken(ctx)
}

// Told implements [ledger.Herald], as Woken does for work.
func (l *Ledger) Told(ctx context.Context) <-chan struct{} {
	l.hearOthers()
	return l.herald.Woken(ctx)
}

// hearOthers listens to other processes from now on.
func (l *Ledger) hearOthers() {
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listening {
		w.listening = true
		w.run(l.listen)
	}
}

// ring wakes the workers of this process, and soon those of the others.
func (l *Ledger) ring() {
	l.bell.Ring()
	l.tellOthers(true, false)
}

// announce wakes those who follow, here and soon in other processes, where
// changes that were stored tell something.
func (l *Ledger) announce(stored ...change) {
	for _, c := range stored {
		if slices.ContainsFunc(c.events, ledger.Tells) {
			l.herald.Ring()
			l.tellOthers(false, true)
			return
		}
	}
}

func (l *Ledger) tellOthers(work, news bool) {
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work, w.news = w.work || work, w.news || news
	if w.told == nil {
		w.told = make(chan struct{}, 1)
		w.run(l.tell)
	}
	put(w.told)
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
		channels := l.wake.due()
		sending, cancel := context.WithTimeout(ctx, patience)
		_, _ = l.pool.Exec(sending, "SELECT pg_notify(c, '') FROM unnest($1::text[]) AS c", l.args(channels)...)
		cancel()
		pause(ctx, wakeEvery)
	}
}

// due is what others are to be told of now.
func (w *wake) due() (channels []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.work {
		channels = append(channels, workChannel)
	}
	if w.news {
		channels = append(channels, newsChannel)
	}
	w.work, w.news = false, false
	return channels
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
	for _, channel := range []string{workChannel, newsChannel} {
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
			return false
		}
	}
	work, news := make(chan struct{}, 1), make(chan struct{}, 1)
	defer close(work)
	defer close(news)
	l.wake.background.Go(func() { pass(ctx, work, &l.bell) })
	l.wake.background.Go(func() { pass(ctx, news, &l.herald) })
	for heard := ""; ; { // also at first: what came before was missed
		if heard != newsChannel {
			put(work)
		}
		if heard != workChannel {
			put(news)
		}
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		heard = n.Channel
	}
}

// put puts a value into a channel that has room for one.
func put(into chan<- struct{}) {
	select {
	case into <- struct{}{}:
	default:
	}
}

// pass wakes those of this process who wait for what was heard, not too often.
func pass(ctx context.Context, heard <-chan struct{}, bell *ledger.Bell) {
	for range heard {
		bell.Ring()
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
