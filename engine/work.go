package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/ledger"
)

// WorkOptions are what a worker can be told. The zero value works.
type WorkOptions struct {
	// Parallel is how many writes are worked on at once. Default 64.
	Parallel int
	// Idle is the pause after nothing was due, unless the ledger tells sooner.
	// Default 250 ms.
	Idle time.Duration
	// Grace is how long the sends and reads under way may still take when the
	// worker is told to end. Default 30 s.
	Grace time.Duration
	// Retention says what this worker prunes, a little at a time; its Limit
	// bounds one step. Default nothing.
	Retention ledger.Prune
	// MaxOutbox is how many entries may wait in the outbox before the ledger
	// says that it is full. Default 100,000.
	MaxOutbox int
}

func (o *WorkOptions) filled() WorkOptions {
	var f WorkOptions
	if o != nil {
		f = *o
	}
	if f.Parallel <= 0 {
		f.Parallel = defaultWorkers
	}
	if f.Idle <= 0 {
		f.Idle = workIdle
	}
	if f.Grace <= 0 {
		f.Grace = workGrace
	}
	if f.MaxOutbox <= 0 {
		f.MaxOutbox = defaultOutbox
	}
	return f
}

// Work continues whatever is due in the ledger (queued writes, writes that a
// dead process left, long waits, owed rechecks) until ctx ends. Then what was
// not begun is handed back at once, sends and reads under way have their grace
// and are then cut off, and what is known about them is recorded; Work returns
// nil when that is done. It goes on after failures of the ledger. opts may be
// nil.
//
// No destination gets more than its share: it may take another slot only while
// it holds fewer than are free, so that however slow it is, others find room.
func (e *Engine) Work(ctx context.Context, opts *WorkOptions) error {
	w := &worker{e: e, o: opts.filled(), busy: make(map[string]int), freed: make(chan struct{}, 1)}
	ending, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(e.ctx, end)()
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	w.life = life{ending: ending, hard: hard}
	defer context.AfterFunc(ending, func() { time.AfterFunc(w.o.Grace, cut) })()
	if waker, ok := e.ledger.(ledger.Waker); ok {
		w.woken = waker.Woken(ending)
	}
	w.wg.Go(func() { w.keepHouse(ending) })
	w.wg.Go(func() { w.tell(ending, waitForLeases, w.inheritFirst(ending)) })
	failing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(workIdle),
		backoff.WithMaxInterval(workFailed), backoff.WithMaxElapsedTime(0))
	for ending.Err() == nil {
		limit, most := w.room()
		if limit == 0 {
			w.await(0, true)
			continue
		}
		n, err := w.claim(limit, most)
		switch {
		case err != nil && ending.Err() == nil:
			e.opts.Logger.Error("the ledger cannot be worked on", "error", err)
			e.meter.Failed(ledger.Record{}, err)
			sleep(ending, ending, failing.NextBackOff())
			continue
		case n == 0:
			w.await(jittered(w.o.Idle), w.crowded(most))
		}
		failing.Reset()
	}
	w.wg.Wait()
	return nil
}

// worker is one run of [Engine.Work].
type worker struct {
	e     *Engine
	o     WorkOptions
	life  life
	woken <-chan struct{}
	freed chan struct{} // gets a value when a slot becomes free
	wg    sync.WaitGroup

	mu   sync.Mutex
	used int
	busy map[string]int // slots by destination
}

// room is how many more writes may be claimed now, and how many of them of
// each destination.
func (w *worker) room() (limit int, most map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit, most = w.o.Parallel-w.used, make(map[string]int)
	for _, name := range w.e.reg.Names() {
		most[name] = share(limit, w.busy[name])
	}
	for name, held := range w.busy {
		most[name] = share(limit, held)
	}
	return limit, most
}

// share is how many slots a destination may take one after another, each only
// while it holds fewer than are free.
func share(free, held int) int { return max(free-held+1, 0) / 2 }

// crowded reports whether some destination may take nothing until a slot is
// free.
func (w *worker) crowded(most map[string]int) bool {
	for _, n := range most {
		if n == 0 {
			return true
		}
	}
	return false
}

// await waits until there may be work: for d (0: for ever), until the ledger
// tells, or until a slot becomes free where that counts.
func (w *worker) await(d time.Duration, slots bool) {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	freed := w.freed
	if !slots {
		freed = nil
	}
	woken := w.woken
	if d == 0 {
		woken = nil // there is no slot for it
	}
	select {
	case <-timeout:
	case <-freed:
	case _, open := <-woken:
		if !open {
			w.woken = nil
		}
	case <-w.life.ending.Done():
	}
}

// claim takes due records and begins to work on them: one that lasts holds up
// no other.
func (w *worker) claim(limit int, most map[string]int) (int, error) {
	// Not cut off with the worker: what it lends must be known, to be handed
	// back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.life.ending), ledgerTimeout)
	defer cancel()
	c := w.e.claim(limit)
	c.Most = most
	if w.e.opts.Guards != nil {
		c.Paused = w.e.opts.Guards.Paused()
	}
	claimed, asked, err := w.e.lent(ctx, c)
	for _, rec := range claimed {
		w.work(rec, asked)
	}
	return len(claimed), err
}

// work begins to work on a record that was claimed when asked.
func (w *worker) work(rec ledger.Record, asked time.Time) {
	w.take(rec.Destination, 1)
	w.wg.Go(func() {
		defer w.take(rec.Destination, -1)
		w.e.one(rec, asked, w.life)
	})
}

// take counts slots that are taken, or given back.
func (w *worker) take(destination string, n int) {
	w.mu.Lock()
	w.used += n
	w.busy[destination] += n
	if w.busy[destination] == 0 {
		delete(w.busy, destination)
	}
	w.mu.Unlock()
	if n < 0 {
		select {
		case w.freed <- struct{}{}:
		default: // it is known already
		}
	}
}

// Resume works on everything that is due now, until nothing is, and returns
// how many times it took a write up.
func (e *Engine) Resume(ctx context.Context) (int, error) {
	total := 0
	for ctx.Err() == nil {
		n, err := e.round(ctx, defaultWorkers)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, ctx.Err()
}

// round claims due records and works on them, and returns when all of them are
// done or put back.
func (e *Engine) round(ctx context.Context, limit int) (int, error) {
	c := e.claim(limit)
	if e.opts.Guards != nil {
		c.Paused = e.opts.Guards.Paused()
	}
	claimed, asked, err := e.lent(ctx, c)
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	for _, rec := range claimed {
		wg.Go(func() { e.one(rec, asked, e.life()) })
	}
	wg.Wait()
	return len(claimed), nil
}

// one works on a claimed record. A write that this process has in hand already
// comes first: that holds an older fence and finds out. The claim is ours, so
// nobody else would continue the write before its lease has ended.
func (e *Engine) one(rec ledger.Record, claimed time.Time, l life) {
	f, began, err := e.board(rec.ID, rec.Digest, true)
	for err == nil && !began {
		<-f.done
		f, began, err = e.board(rec.ID, rec.Digest, true)
	}
	if err != nil {
		return
	}
	err = guarded(rec.ID, func() error { return e.handle(rec, claimed, l) })
	e.land(rec.ID, f, err)
	e.failed(rec, err)
}

// failed tells an operator of work on a write that came to nothing.
func (e *Engine) failed(rec ledger.Record, err error) {
	if err == nil || errors.Is(err, ledger.ErrFenced) || errors.Is(err, ErrClosed) {
		return
	}
	e.log(rec).Warn("a write was put back", "error", e.text(rec, err.Error()))
	e.meter.Failed(rec, err)
}

// claim asks for any work. A lease suits the destination of its record: the table
// of second sends counts on a send being made within it. What goes to other
// destinations is only put back.
func (e *Engine) claim(limit int) ledger.Claim {
	c := ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.opts.Patience + e.opts.Slack, Leases: make(map[string]time.Duration), Limit: limit}
	for _, p := range e.reg.Profiles() {
		c.Leases[p.Destination] = max(c.Leases[p.Destination], e.lease(p))
	}
	return c
}

// lent is what the ledger lends for a claim, and when it was asked: the leases may
// have begun as early as that.
func (e *Engine) lent(ctx context.Context, c ledger.Claim) (recs []ledger.Record, asked time.Time, err error) {
	asked = time.Now()
	recs, err = e.ledger.Claim(ctx, c)
	if len(recs) > 0 {
		e.clock.hear(recs[0].Now, asked)
	}
	return recs, asked, err
}

// jittered is a pause that differs by up to a fifth from what was asked, so
// that many workers do not ask at once.
func jittered(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
}
