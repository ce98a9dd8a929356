package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/ledger"
)

// wait waits for a flight and then for the write to be done. A caller that
// gives up is told "in progress" only when the write is in the ledger.
func (e *Engine) wait(ctx context.Context, f *flight, rec ledger.Record, joined bool) (Outcome, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
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
	if done(f.last) {
		return outcomeOf(f.last, replayed), nil
	}
	out, err := e.Wait(ctx, rec.Tenant, rec.ID, replayed)
	var known *Error
	if err != nil && !errors.As(err, &known) { // it is in the ledger, and this call may have sent it
		err = &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	return out, err
}

// done reports whether a caller need not wait for the write: it waits for
// nothing, for a person, for its caller, or for a look that was put off on
// purpose.
func done(rec ledger.Record) bool {
	return ended(rec) || rec.State == ledger.Entrusted || unverified(rec)
}

// Wait waits until a write is settled, held, in review or left unverified on
// purpose, or for the end of ctx: then the outcome is in progress, as it is at
// once for a write behind one of the same line that a person must look at.
// Meanwhile it continues the write itself whenever it is due and nobody works
// on it, a look that was put off and the end of a hold included. It fails with [ledger.ErrNotFound].
func (e *Engine) Wait(ctx context.Context, tenant string, id ledger.ID, replayed bool) (Outcome, error) {
	return e.waitFor(ctx, tenant, id, replayed, done)
}

// WaitFinal is Wait for the final outcome: it also waits for the rechecks that
// are pending after a write is settled ([Outcome.RecheckUntil]), which can take a
// day. At the end of ctx it returns the outcome so far.
func (e *Engine) WaitFinal(ctx context.Context, tenant string, id ledger.ID, replayed bool) (Outcome, error) {
	return e.waitFor(ctx, tenant, id, replayed, final)
}

// final reports whether no recheck can change the outcome of a write any more.
func final(rec ledger.Record) bool {
	return done(rec) && (rec.State != ledger.Settled || rec.Due.IsZero())
}

func (e *Engine) waitFor(ctx context.Context, tenant string, id ledger.ID, replayed bool, over func(ledger.Record) bool) (Outcome, error) {
	pace := newFollowPace()
	for turn := 1; ; turn++ {
		rec, err := e.ledger.Get(context.WithoutCancel(ctx), tenant, id)
		if err != nil {
			return Outcome{}, err
		}
		if due := (unverified(rec) || lapsed(rec)) && rec.Claimable(rec.Now, false); over(rec) && !due {
			return outcomeOf(rec, replayed), nil
		}
		lined, err := e.inLine(ctx, rec)
		if err != nil {
			return Outcome{}, err
		}
		if lined.Behind != "" {
			far := 1
			if turn%deepTurn == 0 {
				far = deepLine
			}
			head, err := head(ctx, e.ledger, lined, far)
			if err != nil {
				return Outcome{}, err
			}
			if head.State == ledger.Review {
				return behindReview(underWay(rec, replayed), head.ID), nil
			}
			if !e.awaitTurn(ctx, lined, head, pace) {
				return underWay(rec, replayed), nil
			}
			continue
		}
		goOn, err := e.follow(ctx, rec, pace)
		if err != nil {
			return Outcome{}, err
		}
		if !goOn {
			return underWay(rec, replayed), nil
		}
	}
}

// behindReview is the outcome of a write that waits until a reviewer has decided
// about an earlier one of the same record.
func behindReview(o Outcome, head ledger.ID) Outcome {
	o.WaitsFor, o.Behind = WaitsReviewer, head
	why := fmt.Sprintf(" A reviewer must decide about write %s first.", head)
	o.Text += why
	o.ForModel += why
	return o
}

// OutcomeIn is [OutcomeOf] for a record that was looked up in l. It looks besides
// whether the write waits for a reviewer, who must decide about an earlier write of the
// same record; where that cannot be found out it says that the earlier one comes first.
func OutcomeIn(ctx context.Context, l ledger.Ledger, r ledger.Record) Outcome {
	o := OutcomeOf(r)
	if r.Behind == "" || o.WaitsFor != WaitsQueue {
		return o
	}
	if first, err := head(ctx, l, r, 1); err == nil && first.State == ledger.Review {
		return behindReview(o, first.ID)
	}
	return o
}

// inLine is the write whose turn is to be waited for: the write itself, or its
// undoing, which has a place of its own where the write had left its line.
func (e *Engine) inLine(ctx context.Context, rec ledger.Record) (ledger.Record, error) {
	if rec.State != ledger.Compensating || !rec.Passed || rec.Child == "" {
		return rec, nil
	}
	child, err := e.ledger.Get(context.WithoutCancel(ctx), rec.Tenant, rec.Child)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return rec, nil
	case err != nil || child.Behind == "":
		return rec, err
	}
	return child, nil
}

// follow waits for whoever of this process works on the write, or continues it
// and then waits a moment. It reports whether there is time to look again.
func (e *Engine) follow(ctx context.Context, rec ledger.Record, pace backoff.BackOff) (goOn bool, err error) {
	f, began, err := e.board(rec.ID, rec.Digest, true)
	if err != nil {
		return false, err
	}
	if began {
		go func() {
			e.land(rec.ID, f, guarded(rec.ID, func() error { return e.continueIfDue(rec, e.life()) }))
		}()
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return false, nil
	}
	if !began {
		return true, nil
	}
	if f.failed() {
		return false, f.err
	}
	if rec.Claimable(rec.Now, false) { // it was worked on, by us or by who was quicker
		return sleep(ctx, e.ctx, min(pace.NextBackOff(), workedGap)), nil
	}
	pause := pace.NextBackOff()
	if due := rec.Due.Sub(rec.Now); due > 0 { // nobody else may be there to take it up
		pause = min(pause, due)
	}
	return sleep(ctx, e.ctx, pause), nil
}

// head is the write for which all others of a line wait: one of which something
// was sent, or one that stands at most so far before this one. The zero record
// where it is neither.
func head(ctx context.Context, l ledger.Ledger, rec ledger.Record, far int) (ledger.Record, error) {
	ctx = context.WithoutCancel(ctx)
	for before := rec; far > 0; far-- {
		var err error
		if before, err = l.Get(ctx, rec.Tenant, before.Behind); err != nil || before.Behind == "" {
			return before, err
		}
	}
	sent, err := l.List(ctx, ledger.Filter{Tenant: rec.Tenant, KeyDigest: rec.KeyDigest,
		States: []ledger.State{ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Review}})
	for _, r := range sent {
		if r.InLine() { // one at most in each line, whatever else cannot be read
			return r, nil
		}
	}
	return ledger.Record{}, err
}

// awaitTurn waits until the write before this one in line may be done: until
// this process ends its work on that, the ledger says that something became
// due, or a moment has passed. Where the head of the line is due and nobody has
// it, it is carried on first. It reports whether there is time to look again.
func (e *Engine) awaitTurn(ctx context.Context, rec, head ledger.Record, pace backoff.BackOff) bool {
	if head.ID != "" && head.Claimable(head.Now, false) {
		if goOn, err := e.follow(ctx, head, pace); err == nil {
			return goOn
		}
		// What came of it is told to whoever asks for it.
	}
	var before <-chan struct{} // nil waits for ever
	e.mu.Lock()
	if f, ok := e.flights[rec.Behind]; ok {
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

// wakes passes what wakes a worker on to everybody who waits for a turn.
type wakes struct {
	mu sync.Mutex
	on chan struct{} // closed at the next waking
}

// next is closed when the ledger tells that work may have become due; nil where
// it never tells.
func (w *wakes) next(e *Engine) <-chan struct{} {
	waker, ok := e.ledger.(ledger.Waker)
	if !ok {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on == nil {
		w.on = make(chan struct{})
		woken := waker.Woken(e.ctx)
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

// continueIfDue takes the write over when it is due and nobody holds it, or a process of
// this machine that has ended.
func (e *Engine) continueIfDue(rec ledger.Record, l life) error {
	c := ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Tenant: rec.Tenant, ID: rec.ID, Gone: gone(rec.Owner)}
	if !c.Freed(rec).Claimable(rec.Now, false) {
		return nil
	}
	claimed, asked, err := e.lent(e.ctx, c)
	if err != nil || len(claimed) == 0 {
		return err
	}
	return e.handle(claimed[0], asked, l)
}

// sleep waits, and reports whether it was not cut short.
func sleep(ctx, other context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-other.Done():
		return false
	}
}
