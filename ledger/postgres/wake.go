package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// wakeEvery is the least time between two notifications that a process sends, and between two
	// that it passes on: all workers read when they get one.
	wakeEvery = 100 * time.Millisecond

	// The pause before the listening connection is made again grows from the first to the second
	// while it fails.
	minListenPause = time.Second
	maxListenPause = time.Minute
)

// The channels on which processes notify each other of work, and of changes.
const (
	workChannel = "ledger_wake"
	newsChannel = "ledger_published"
)

// wake notifies other processes of new work, and receives their notifications. All of it only
// makes workers and followers read sooner: what a failure loses is found by the next read.
//
// A notification is sent separately, after what it is about is durable: as a part of that
// transaction it would make its commit wait for all others that have one. Many in a short time
// are combined.
type wake struct {
	mu         sync.Mutex
	closed     bool
	notified   chan struct{} // of capacity 1: other processes are to be notified
	work, news bool          // of what
	listening  bool
	ctx        context.Context // until the ledger is closed
	end        context.CancelFunc
	background sync.WaitGroup
}

// Woken implements [ledger.Ledger]: at once for what this process did, and for what others did or
// enqueued as long as it has a connection to listen on, besides those of the pool. Through a
// pooler in transaction mode no notifications arrive.
func (l *Ledger) Woken(ctx context.Context) <-chan struct{} {
	l.listenToOthers()
	return l.notifier.Woken(ctx)
}

// Changed implements [ledger.Feed], as Woken does for work.
func (l *Ledger) Changed(ctx context.Context) <-chan struct{} {
	l.listenToOthers()
	return l.subscribers.Woken(ctx)
}

// listenToOthers starts to listen to other processes.
func (l *Ledger) listenToOthers() {
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listening && !l.dialect.noListen {
		w.listening = true
		w.run(l.listen)
	}
}

// ring wakes the workers of this process, and soon those of the others.
func (l *Ledger) ring() {
	l.notifier.Notify()
	l.notifyOthers(true, false)
}

// announce wakes followers, here and soon in other processes, if stored changes are to be
// published.
func (l *Ledger) announce(stored ...change) {
	for _, c := range stored {
		if slices.ContainsFunc(c.events, ledger.Notifies) {
			l.subscribers.Notify()
			l.notifyOthers(false, true)
			return
		}
	}
}

func (l *Ledger) notifyOthers(work, news bool) {
	if l.dialect.noListen {
		return
	}
	w := &l.wake
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work, w.news = w.work || work, w.news || news
	if w.notified == nil {
		w.notified = make(chan struct{}, 1)
		w.run(l.notify)
	}
	put(w.notified)
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

// notify notifies the other processes, at a limited rate.
func (l *Ledger) notify(ctx context.Context) {
	for {
		select {
		case <-l.wake.notified:
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

// due returns the channels to notify now.
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

// listen receives notifications of the other processes, as long as that is possible.
func (l *Ledger) listen(ctx context.Context) {
	for wait := minListenPause; ctx.Err() == nil; wait = min(2*wait, maxListenPause) {
		if received := l.hear(ctx); received {
			wait = minListenPause
		}
		pause(ctx, wait/2+rand.N(wait))
	}
}

// hear listens until the connection breaks, and reports whether it listened.
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
	l.wake.background.Go(func() { pass(ctx, work, &l.notifier) })
	l.wake.background.Go(func() { pass(ctx, news, &l.subscribers) })
	for received := ""; ; { // also at first: earlier notifications were missed
		if received != newsChannel {
			put(work)
		}
		if received != workChannel {
			put(news)
		}
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		received = n.Channel
	}
}

// put sends to a channel of capacity 1 without waiting.
func put(into chan<- struct{}) {
	select {
	case into <- struct{}{}:
	default:
	}
}

// pass passes notifications to waiters in this process, at a limited rate.
func pass(ctx context.Context, received <-chan struct{}, notifier *ledger.Notifier) {
	for range received {
		notifier.Notify()
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
