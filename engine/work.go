package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

// WorkOptions are what a worker can be told. The zero value works.
type WorkOptions struct {
	// Parallel is how many writes are worked on at once. Default 16.
	Parallel int
	// Idle is the pause after nothing was due. Default 250 ms.
	Idle time.Duration
}

// Work continues whatever is due in the ledger (queued writes, writes that a
// dead process left, long waits, owed rechecks) until ctx ends, and then
// returns nil when the work in hand is done. It goes on after failures of the
// ledger. opts may be nil.
func (e *Engine) Work(ctx context.Context, opts *WorkOptions) error {
	o := WorkOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Parallel <= 0 {
		o.Parallel = defaultWorkers
	}
	if o.Idle <= 0 {
		o.Idle = workIdle
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, o.Parallel)
	for ctx.Err() == nil && e.ctx.Err() == nil {
		n, err := e.fill(ctx, slots, &wg)
		pause := time.Duration(0)
		switch {
		case err != nil && ctx.Err() == nil:
			e.opts.Logger.Error("the ledger cannot be worked on", "error", err)
			pause = workFailed
		case n == 0:
			pause = o.Idle
		}
		if pause > 0 {
			sleep(ctx, e.ctx, pause)
		}
	}
	return nil
}

// fill waits for a free slot, claims as many due records as there are free
// slots, and begins to work on them: one that lasts holds up no other.
func (e *Engine) fill(ctx context.Context, slots chan struct{}, wg *sync.WaitGroup) (int, error) {
	select {
	case slots <- struct{}{}:
		<-slots // only this loop takes slots: it stays free
	case <-ctx.Done():
		return 0, nil
	case <-e.ctx.Done():
		return 0, nil
	}
	asked := time.Now()
	claimed, err := e.ledger.Claim(ctx, ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.longestLease(), Limit: cap(slots) - len(slots)})
	for _, rec := range claimed {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			e.one(rec, asked)
		})
	}
	return len(claimed), err
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
	asked := time.Now()
	claimed, err := e.ledger.Claim(ctx, ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.longestLease(), Limit: limit})
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	for _, rec := range claimed {
		wg.Go(func() { e.one(rec, asked) })
	}
	wg.Wait()
	return len(claimed), nil
}

// one works on a claimed record. A write that this process has in hand already
// comes first: that holds an older fence and finds out. The claim is ours, so
// nobody else would continue the write before its lease has ended.
func (e *Engine) one(rec ledger.Record, claimed time.Time) {
	f, began, err := e.board(rec.ID, rec.Digest, true)
	for err == nil && !began {
		<-f.done
		f, began, err = e.board(rec.ID, rec.Digest, true)
	}
	if err != nil {
		return
	}
	err = guarded(rec.ID, func() error { return e.handle(rec, claimed) })
	e.land(rec.ID, f, err)
	if err != nil && !errors.Is(err, ledger.ErrFenced) {
		e.opts.Logger.Warn("a write was put back", "write", rec.ID, "correlation", rec.CorrelationID, "error", err)
	}
}

// longestLease is a lease that suits every registered destination.
func (e *Engine) longestLease() time.Duration {
	longest := e.leaseFor(ledger.Record{})
	for _, p := range e.reg.Profiles() {
		longest = max(longest, e.lease(p))
	}
	return longest
}
