package saga

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// Run carries a saga on until it is done, undone or in review, or ctx ends; the
// saga is then as it stands. What it waits for it waits for here; other workers
// may do the same. Where it had given up for a person, it stays so: see
// [Runner.Resume].
//
// It fails with [ErrNotFound], with an error of the ledger or of the engine; the
// saga goes on all the same when it is run again.
func (r *Runner) Run(ctx context.Context, tenant, id string) (Saga, error) {
	return r.runs(ctx, tenant, id, false)
}

// Resume is [Runner.Run] by somebody who has seen to what a saga gave up for: a
// step that was tried too often, that was denied behind the pivot, or that
// another workflow stood in the way of, is tried again. It fails with
// [engine.ErrForbidden] for an agent.
func (r *Runner) Resume(ctx context.Context, tenant, id string) (Saga, error) {
	if engine.Caller(ctx).Role == engine.RoleAgent {
		return Saga{}, fmt.Errorf("%w: an agent does not ask again for what saga %q gave up for a person", engine.ErrForbidden, id)
	}
	return r.runs(ctx, tenant, id, true)
}

func (r *Runner) runs(ctx context.Context, tenant, id string, urged bool) (Saga, error) {
	for ctx.Err() == nil {
		t, err := r.drive(ctx, tenant, id, urged, false)
		if err != nil && ctx.Err() == nil {
			return Saga{}, err
		}
		urged = false
		if err != nil || t.body.over() || !pause.For(ctx, t.pause()) {
			break
		}
	}
	return r.Get(context.WithoutCancel(ctx), tenant, id)
}

// over reports whether nothing more happens by itself.
func (b body) over() bool { return b.final() || b.State == Review }

// final reports whether nothing happens to it any more at all.
func (b body) final() bool { return b.State == Done || b.State == Undone || b.State == Closed }

// pause is for how long a saga rests. What a person decides is looked for sooner: it
// costs a read, and nothing is filed.
func (t turn) pause() time.Duration {
	rests := restMost
	if !t.paper.Due.IsZero() {
		rests = max(t.paper.Due.Sub(t.paper.Now), time.Millisecond)
	}
	if next(t.body, t.known, t.paper.Now, false).poll {
		rests = min(rests, runLook)
	}
	return rests
}

// drive carries a saga on until it rests or is over. A worker leaves one alone
// that is not due: another one has it in hand.
func (r *Runner) drive(ctx context.Context, tenant, id string, urged, worker bool) (turn, error) {
	ctx = engine.As(ctx, engine.Principal{}) // it goes on by itself, whoever called
	stale, mine, last := 0, !worker, try{}
	for range maxTurns {
		t, err := r.read(ctx, tenant, id)
		if err != nil || !mine && (t.paper.Due.IsZero() || t.paper.Due.After(t.paper.Now)) {
			return t, err
		}
		m := next(t.body, t.known, t.paper.Now, urged)
		if this := (try{m.do, m.step, t.known[m.step].rec.Seq}); (m.do == carry || m.do == undo) && this == last {
			return t, r.rest(ctx, &t)
		} else {
			last = this
		}
		over, err := r.act(engine.InTrace(ctx, t.body.Trace), &t, m)
		switch {
		case errors.Is(err, ledger.ErrStale) && stale < maxStale:
			stale, mine, last = stale+1, !worker, try{}
			if !pause.For(ctx, jitter()) {
				return t, ctx.Err()
			}
			continue
		case err != nil || over:
			return t, err
		case ctx.Err() != nil:
			return t, ctx.Err()
		}
		stale, mine = 0, true
		urged = urged && m.do == carry
	}
	return turn{}, fmt.Errorf("saga %q: it did not come to rest within %d moves", id, maxTurns)
}

// try is work on a write as it stood. When it changed nothing about the write, a
// second try at once would not either.
type try struct {
	do   doing
	step int
	seq  int64
}

// rest has a saga looked at again soon.
func (r *Runner) rest(ctx context.Context, t *turn) error {
	now := t.paper.Now
	_, err := r.file(ctx, t, now.Add(restPause(now.Sub(t.body.Since), restMost)), nil)
	return err
}

// act makes one move. It reports whether the saga rests then, or is over.
func (r *Runner) act(ctx context.Context, t *turn, m move) (over bool, err error) {
	now := t.paper.Now
	if m.do == begin {
		return r.begin(ctx, t, m)
	}
	if !t.body.Stuck || m.do != carry && m.do != undo {
		t.body = t.body.took(m, "", "", now)
	}
	switch m.do {
	case hold:
		_, err = r.file(ctx, t, t.body.Steps[m.step].NotBefore, nil)
		return false, err
	case goBack, withdraw:
		step := m.step
		if m.do == goBack {
			step = t.body.last()
		}
		_, err = r.file(ctx, t, now.Add(r.opts.Lease), nil, t.withdrawal(step, "saga "+t.paper.ID, "saga", t.body.Back.Reason)...)
		if changedHands(err) {
			err = fmt.Errorf("%w: %w", ledger.ErrStale, err)
		}
		return false, err
	case carry:
		return r.carry(ctx, t, m)
	case undo:
		return r.undo(ctx, t, m)
	}
	return true, r.settle(ctx, t, m)
}

// settle files that a saga rests, or is over, unless its paper says so already.
func (r *Runner) settle(ctx context.Context, t *turn, m move) error {
	now, due := t.paper.Now, m.at
	if m.poll {
		due = now.Add(restPause(now.Sub(t.body.Since), personMost))
	}
	t.body = r.cleaned(t.paper.Tenant, t.body)
	text, err := t.body.encode()
	if err != nil {
		return err
	}
	ahead := m.poll && t.paper.Due.After(now)
	if same := due.Sub(t.paper.Due).Abs() < time.Millisecond; bytes.Equal(text, t.paper.Body) && (same || ahead) {
		return nil
	}
	_, err = r.file(ctx, t, due, nil)
	return err
}

// restPause is the pause before another look at something that has lasted that
// long.
func restPause(lasted, most time.Duration) time.Duration {
	return min(max(lasted/4, restFirst), most)
}

// begin reserves the write of a step in the same filing that says so, together
// with how it will be undone. From then on any worker of the ledger may send it.
func (r *Runner) begin(ctx context.Context, t *turn, m move) (over bool, err error) {
	w, err := t.body.Steps[m.step].planned()
	if err != nil {
		return false, err
	}
	profile, err := r.engine.Profile(w)
	if err != nil && t.overdue(m.step) {
		return r.troubled(ctx, t, m, err)
	}
	if err != nil { // another process may know the destination
		return false, err
	}
	rec, err := recordOf(w, profile)
	if err != nil {
		return false, err
	}
	rec.RequestedBy, rec.Trace = t.body.By, t.body.Trace
	now, before := t.paper.Now, t.body
	t.body = before.took(m, rec.ID, undoOf(w, rec.ID), now)
	_, err = r.file(ctx, t, now.Add(r.opts.Lease), &ledger.Reservation{Record: rec, Window: r.opts.Window})
	if refusedForGood(err) {
		t.body = before
		return false, r.turnedAway(ctx, t, m, err)
	}
	return false, err
}

// overdue reports whether a step should have been begun long ago.
func (t *turn) overdue(step int) bool {
	since := t.body.Since
	if at := t.body.Steps[step].NotBefore; at.After(since) {
		since = at
	}
	return t.body.Stuck || t.paper.Now.Sub(since) > tellAfter
}

// changedHands reports whether a filing failed since a write that it changes was
// taken up meanwhile.
func changedHands(err error) bool {
	return errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrIllegalMove)
}

// refusedForGood reports whether the ledger will never take the write.
func refusedForGood(err error) bool {
	return errors.Is(err, ledger.ErrBlocked) || errors.Is(err, ledger.ErrDigestMismatch)
}

// turnedAway files that the ledger does not take the write of a step, since
// another one stands in its way.
func (r *Runner) turnedAway(ctx context.Context, t *turn, m move, why error) error {
	one := Blocked{Reason: clipped(why.Error())}
	var blocked *ledger.BlockedError
	var taken *ledger.DigestMismatchError
	switch {
	case errors.As(why, &blocked):
		p := blocked.Prior
		one.Workflow, one.Step, one.Write, one.State = p.Workflow, p.Step, p.ID, p.Phase()
		one.Reason = fmt.Sprintf("workflow %q has begun its business operation %q (write %s, %s)", p.Workflow, p.IdempotencyKey, p.ID, p.Phase())
		if p.Digest != blocked.Received {
			one.Reason += ", and asked for something else under that name"
		}
	case errors.As(why, &taken):
		one.Write = taken.ID
	}
	now := t.paper.Now
	t.body = t.body.turnedAway(m.step, one, now)
	due := now.Add(r.opts.Lease)
	if t.body.Back == nil {
		due = time.Time{}
	}
	_, err := r.file(ctx, t, due, nil)
	return err
}

// carry carries the write of a step on for a while.
func (r *Runner) carry(ctx context.Context, t *turn, m move) (over bool, err error) {
	if err := r.keep(ctx, t); err != nil {
		return false, err
	}
	id := t.body.Steps[m.step].write()
	return r.attend(ctx, t, m, func(ctx context.Context) (engine.Outcome, error) {
		return r.engine.Wait(ctx, t.paper.Tenant, id, true)
	})
}

// undo has a step undone.
func (r *Runner) undo(ctx context.Context, t *turn, m move) (over bool, err error) {
	s := t.body.Steps[m.step]
	way, err := s.undoing()
	if err != nil {
		return false, err
	}
	if err := r.keep(ctx, t); err != nil {
		return false, err
	}
	u := engine.Undoing{By: "saga " + t.paper.ID, Reason: t.body.Back.Reason, Intent: way}
	if t.body.Back.By != "" {
		u.By = t.body.Back.By
	}
	return r.attend(ctx, t, m, func(ctx context.Context) (engine.Outcome, error) {
		return r.engine.Undo(ctx, t.paper.Tenant, s.write(), u)
	})
}

// keep keeps the saga in this worker's hands, and files what is new about it.
func (r *Runner) keep(ctx context.Context, t *turn) error {
	now := t.paper.Now
	text, err := t.body.encode()
	if err != nil {
		return err
	}
	if bytes.Equal(text, t.paper.Body) && t.paper.Due.Sub(now) > r.opts.Lease/2 {
		return nil
	}
	_, err = r.file(ctx, t, now.Add(r.opts.Lease), nil)
	return err
}

// attend lets the engine work on a write for a while. It reports whether the
// saga rests then.
func (r *Runner) attend(ctx context.Context, t *turn, m move, work func(context.Context) (engine.Outcome, error)) (over bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, min(carryFor, r.opts.Lease/2))
	defer cancel()
	began := time.Now()
	out, err := work(waiting)
	now := t.paper.Now.Add(time.Since(began))
	switch {
	case errors.Is(err, engine.ErrBusy): // and no longer, soon
	case err != nil && (ctx.Err() != nil || passes(err)):
		return false, err
	case err != nil:
		return r.troubled(ctx, t, m, err)
	case t.body.Stuck:
		t.body = t.body.took(m, "", "", now)
		_, err := r.file(ctx, t, now.Add(r.opts.Lease), nil)
		return false, err
	case out.Status != engine.StatusInProgress || ctx.Err() != nil:
		return false, nil
	}
	pause := restPause(now.Sub(t.body.Since), restMost)
	if wait := out.AskAfter.Sub(now); !out.AskAfter.IsZero() && wait > pause {
		pause = min(wait, restMost)
	}
	_, err = r.file(ctx, t, now.Add(pause), nil)
	return true, err
}

// passes reports whether an error is about this process or its ledger and not
// about the saga.
func passes(err error) bool {
	return errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, engine.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// troubled handles a write that the engine could not work on. Where nothing has
// changed meanwhile, a person is told; it is tried again after a while, as
// another process may be able to.
func (r *Runner) troubled(ctx context.Context, t *turn, m move, why error) (over bool, err error) {
	fresh, err := r.read(ctx, t.paper.Tenant, t.paper.ID)
	if err != nil {
		return false, err
	}
	if again := next(fresh.body, fresh.known, fresh.paper.Now, false); again.do != m.do || again.step != m.step {
		return false, nil
	}
	now := fresh.paper.Now
	what := map[doing]string{begin: "begin", carry: "work on", undo: "undo"}[m.do]
	r.opts.Logger.Warn("a saga cannot go on", "saga", t.paper.ID, "tenant", t.paper.Tenant, "step", t.body.Steps[m.step].Name, "error", r.said(t.paper.Tenant, t.body, why))
	fresh.body.Stuck = true
	fresh.body.says(Review, fmt.Sprintf("the engine could not %s step %q: %v", what, t.body.Steps[m.step].Name, why), now)
	_, err = r.file(ctx, &fresh, now.Add(max(restPause(now.Sub(fresh.body.Since), personMost), restMost)), nil)
	*t = fresh
	return true, err
}
