package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// wait waits for an in-flight call and then for the write to be done. A caller that gives up
// gets "in progress" only when the write is in the ledger.
func (e *Engine) wait(ctx context.Context, f *inFlight, rec ledger.Record, joined bool) (Outcome, error) {
	if !e.attend(ctx, f) {
		<-f.kept
	}
	select {
	case <-f.done:
	default:
		if f.first.ID != "" {
			rec = f.first
		}
		return underWay(rec, joined || !f.fresh), nil
	}
	replayed := joined || !f.fresh
	if f.failed() {
		return Outcome{}, f.err
	}
	if f.last != nil && done(*f.last) {
		return outcomeOf(*f.last, replayed), nil
	}
	out, err := e.Wait(ctx, rec.Tenant, rec.ID, replayed)
	var known *Error
	if err != nil && !errors.As(err, &known) { // it is in the ledger, and this call may have sent it
		err = &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	return out, err
}

// done reports whether a caller need not wait for the write: it waits for nothing, or for a
// reviewer, its caller, or a read that was postponed on purpose.
func done(rec ledger.Record) bool {
	return ended(rec) || rec.State == ledger.Delegated || unverified(rec)
}

// Wait waits until a write is settled, held, in review or left unverified on purpose, or for
// the end of ctx: then the outcome is in progress. It is so at once for a write queued behind
// one in review. Meanwhile Wait continues the write itself whenever it is due and no worker has
// it, including a postponed read and the end of a hold. It fails with [ledger.ErrNotFound].
func (e *Engine) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (Outcome, error) {
	return e.waitFor(ctx, tenant, id, replayed, done)
}

// WaitFinal is Wait for the final outcome: it also waits for the rechecks that are pending
// after a write is settled ([Outcome.RecheckUntil]), which can take a day. At the end of ctx it
// returns the outcome so far.
func (e *Engine) WaitFinal(ctx context.Context, tenant string, id ledger.ID, replayed bool) (Outcome, error) {
	return e.waitFor(ctx, tenant, id, replayed, final)
}

// final reports whether no recheck can change the outcome of a write any more.
func final(rec ledger.Record) bool {
	return done(rec) && (rec.State != ledger.Settled || rec.Due.IsZero())
}

func (e *Engine) waitFor(ctx context.Context, tenant string, id ledger.ID, replayed bool, over func(ledger.Record) bool) (Outcome, error) {
	pace := newFollowPace()
	for round := 1; ; round++ {
		rec, err := e.ledger.Get(context.WithoutCancel(ctx), tenant, id)
		if err != nil {
			return Outcome{}, err
		}
		if due := (unverified(rec) || lapsed(rec)) && rec.Claimable(rec.Now, false); over(rec) && !due {
			return outcomeOf(rec, replayed), nil
		}
		queued, err := e.inQueue(ctx, rec)
		if err != nil {
			return Outcome{}, err
		}
		if queued.QueuedBehind != "" {
			far := 1
			if round%deepQueue == 0 {
				far = deepSearch
			}
			head, err := head(ctx, e.ledger, queued, far)
			if err != nil {
				return Outcome{}, err
			}
			if head.State == ledger.Review {
				return queuedBehindReview(underWay(rec, replayed), head.ID), nil
			}
			if !e.awaitHead(ctx, queued, head, pace) {
				return underWay(rec, replayed), nil
			}
			continue
		}
		proceed, err := e.follow(ctx, rec, pace)
		if err != nil {
			return Outcome{}, err
		}
		if !proceed {
			return underWay(rec, replayed), nil
		}
	}
}

// queuedBehindReview returns the outcome of a write that waits until a reviewer has decided
// about an earlier one of the same record.
func queuedBehindReview(o Outcome, head ledger.ID) Outcome {
	o.WaitsFor, o.QueuedBehind = WaitsReviewer, head
	why := fmt.Sprintf(" A reviewer must decide about write %s first.", head)
	o.Text += why
	o.ForModel += why
	return o
}

// OutcomeIn is [OutcomeOf] for a record of l. It also checks whether the write waits for a
// reviewer, who must decide about an earlier write of the same record. If that cannot be found
// out, it says that the earlier write comes first.
func OutcomeIn(ctx context.Context, l ledger.Ledger, r ledger.Record) Outcome {
	o := OutcomeOf(r)
	if r.QueuedBehind == "" || o.WaitsFor != WaitsQueue {
		return o
	}
	if first, err := head(ctx, l, r, 1); err == nil && first.State == ledger.Review {
		return queuedBehindReview(o, first.ID)
	}
	return o
}

// inQueue returns the write whose place in the queue matters: the write itself, or its undo,
// which has its own place where the write had left its queue.
func (e *Engine) inQueue(ctx context.Context, rec ledger.Record) (ledger.Record, error) {
	if rec.State != ledger.Compensating || !rec.LeftQueue || rec.Child == "" {
		return rec, nil
	}
	child, err := e.ledger.Get(context.WithoutCancel(ctx), rec.Tenant, rec.Child)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return rec, nil
	case err != nil || child.QueuedBehind == "":
		return rec, err
	}
	return child, nil
}

// follow waits for the worker of this process that has the write, or continues the write itself
// and then waits a moment. It reports whether there is time to read the record again. For a
// caller that does not wait it does nothing where a worker continues the write.
func (e *Engine) follow(ctx context.Context, rec ledger.Record, pace backoff.BackOff) (proceed bool, err error) {
	if ctx.Err() != nil && e.workers.Load() > 0 {
		return false, nil
	}
	f, began, err := e.proceed(rec)
	if err != nil {
		return false, err
	}
	if !e.attend(ctx, f) {
		return false, nil
	}
	if !began {
		return true, nil
	}
	if f.failed() {
		return false, f.err
	}
	if rec.Claimable(rec.Now, false) { // it was worked on, by us or by a quicker worker
		return sleep(ctx, e.ctx, min(pace.NextBackOff(), workedGap)), nil
	}
	pause := pace.NextBackOff()
	if due := rec.Due.Sub(rec.Now); due > 0 { // no other worker may be there to take it up
		pause = min(pause, due)
	}
	return sleep(ctx, e.ctx, pause), nil
}

// proceed joins the worker of this process that has the write, or begins to continue the write
// itself if it is due.
func (e *Engine) proceed(rec ledger.Record) (f *inFlight, began bool, err error) {
	if f, began, err = e.startOrJoin(rec.ID, rec.Digest, true); began {
		go func() {
			l := e.lifetime()
			l.ending = f.ctx
			e.finish(rec.ID, f, guarded(rec.ID, func() error { return e.continueIfDue(rec, l) }))
		}()
	}
	return f, began, err
}

// head returns the write for which all others of a queue wait: one of which something was sent,
// or the first one, at most far places before this one. It returns the zero record where it is
// neither.
func head(ctx context.Context, l ledger.Ledger, rec ledger.Record, far int) (ledger.Record, error) {
	ctx = context.WithoutCancel(ctx)
	for before := rec; far > 0; far-- {
		var err error
		if before, err = l.Get(ctx, rec.Tenant, before.QueuedBehind); err != nil || before.QueuedBehind == "" {
			return before, err
		}
	}
	sent, err := l.List(ctx, ledger.Filter{Tenant: rec.Tenant, KeyDigest: rec.KeyDigest,
		States: []ledger.State{ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Review}})
	for _, r := range sent {
		if r.InQueue() { // at most one in each queue, whatever else is unreadable
			return r, nil
		}
	}
	return ledger.Record{}, err
}

// awaitHead waits until the write before this one in the queue may be done: until this process
// ends its work on it, the ledger reports that work became due, or a moment has passed. If the
// head of the queue is due and unowned, it is continued first. It reports whether there is time
// to read the record again.
func (e *Engine) awaitHead(ctx context.Context, rec, head ledger.Record, pace backoff.BackOff) bool {
	if head.ID != "" && head.Claimable(head.Now, false) {
		if proceed, err := e.follow(ctx, head, pace); err == nil {
			return proceed
		}
		// Its own callers get the error.
	}
	var before <-chan struct{} // nil waits for ever
	e.mu.Lock()
	if f, ok := e.inFlight[rec.QueuedBehind]; ok {
		before = f.done
	}
	e.mu.Unlock()
	timer := time.NewTimer(pace.NextBackOff())
	defer timer.Stop()
	woken := e.wakes.next(e)
	for {
		select {
		case <-timer.C:
			return true
		case <-before:
			return true
		case <-woken: // by a write of any record: many may wait
			timer.Reset(wakeGap)
			woken = nil
		case <-ctx.Done():
			return false
		case <-e.ctx.Done():
			return false
		}
	}
}

// wakes passes the ledger's wake-ups on to every caller that waits in a queue.
type wakes struct {
	mu sync.Mutex
	on chan struct{} // closed at the next wake-up
}

// next is closed when the ledger reports that work may have become due.
func (w *wakes) next(e *Engine) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on == nil {
		w.on = make(chan struct{})
		woken := e.ledger.Woken(e.ctx)
		go w.pass(e.ctx, woken)
	}
	return w.on
}

func (w *wakes) pass(ctx context.Context, woken <-chan struct{}) {
	for {
		select {
		case _, open := <-woken:
			if !open {
				return
			}
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		close(w.on)
		w.on = make(chan struct{})
		w.mu.Unlock()
	}
}

// continueIfDue takes the write over when it is due, or put back by a process that cannot work on it, and
// unowned, dispatched, or owned by a process of this machine that has ended.
func (e *Engine) continueIfDue(rec ledger.Record, l lifetime) error {
	c := ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Tenant: rec.Tenant, ID: rec.ID, Gone: gone(rec.Owner), Early: e.early(rec)}
	if !c.Freed(rec).Claimable(rec.Now, c.Early) {
		return nil
	}
	claimed, asked, err := e.lent(e.ctx, c)
	if err != nil || len(claimed) == 0 {
		return err
	}
	return e.handle(claimed[0], asked, l)
}

// early reports whether a write may be continued before it is due: it was due when a process that
// could not work on it put it back, and this one can. In other states the rule may be older than the
// last pause.
func (e *Engine) early(rec ledger.Record) bool {
	if rec.Rule != unworkable || rec.State != ledger.Queued && rec.State != ledger.Checking {
		return false
	}
	_, _, unknown := e.reg.LookupFor(rec.Tenant, rec.Destination, rec.Kind)
	_, unreadable := e.open(rec)
	return unknown == nil && unreadable == nil
}

// sleep waits for d, or until one of the contexts ends, and reports whether none has ended.
func sleep(ctx, other context.Context, d time.Duration) bool {
	either, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(other, end)()
	return pause.For(either, d) && other.Err() == nil
}

// AwaitPrior waits for the write that blocked another one, as named in the error of [Engine.Do]
// or [Engine.Enqueue], and returns its outcome: that write is the operation. A delegated write
// is only watched. An error that is no [ledger.BlockedError] is returned unchanged.
func (e *Engine) AwaitPrior(ctx context.Context, err error) (Outcome, error) {
	var blocked *ledger.BlockedError
	if !errors.As(err, &blocked) {
		return Outcome{}, err
	}
	prior := blocked.Prior
	if !prior.Delegated {
		return e.Wait(ctx, prior.Tenant, prior.ID, true)
	}
	for pace := newFollowPace(); ; {
		now, err := e.ledger.Get(context.WithoutCancel(ctx), prior.Tenant, prior.ID)
		switch {
		case err != nil:
			return Outcome{}, err
		case now.State != ledger.Delegated || !sleep(ctx, e.ctx, pace.NextBackOff()):
			return outcomeOf(now, true), nil
		}
	}
}
