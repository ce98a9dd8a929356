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

const (
	// carryFor is how long to wait for a write before the saga is read again: another actor may
	// have cancelled it.
	carryFor = 10 * time.Second
	// restFirst and restMost bound the pause of a saga that waits for a slow write; it grows with
	// the time that this has lasted. For a reviewer it grows up to reviewerMost: each poll is a
	// commit, and thousands may wait for days. The engine ends the pause when a reviewer has
	// decided.
	restFirst    = time.Second
	restMost     = time.Minute
	reviewerMost = 5 * time.Minute
	// runRead is the longest pause of a call of Run that waits for a reviewer, who may decide in
	// another process.
	runRead = 2 * time.Second
	// reportAfter is how long a step's destination may be unregistered in the process that tries
	// it before the saga goes to review. Workers that are started one after another do not all
	// register it at once.
	reportAfter = time.Hour
	// maxStale is how often a move is decided again because another actor changed the saga
	// meanwhile. stalePause is the longest pause before that, random so that two actors do not
	// collide again.
	maxStale   = 20
	stalePause = 20 * time.Millisecond
	// maxMoves bounds the moves of one call, against a bug here: a saga of the largest plan needs
	// a few hundred.
	maxMoves = 10_000
)

// Run carries a saga on until it is done, undone or in review, or ctx ends, and returns its
// state. It waits here for whatever the saga waits for; other workers may do the same. A saga
// that gave up and waits for a reviewer stays so: see [Runner.Resume].
//
// It fails with [ErrNotFound], with an error of the ledger or of the engine. The saga continues
// when it is run again.
func (r *Runner) Run(ctx context.Context, tenant, id string) (Saga, error) {
	return r.runs(ctx, tenant, id, false)
}

// Resume is [Runner.Run] after a reviewer has fixed the reason for which a saga gave up: it tries
// again a step that was tried too often, that was denied after the pivot, or that another
// workflow blocked. It fails with [engine.ErrForbidden] for an agent.
func (r *Runner) Resume(ctx context.Context, tenant, id string) (Saga, error) {
	if engine.Caller(ctx).Role == engine.RoleAgent {
		return Saga{}, fmt.Errorf("%w: an agent does not ask again for what saga %q handed to a reviewer", engine.ErrForbidden, id)
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

// over reports whether the saga makes no further move by itself.
func (b body) over() bool { return b.final() || b.State == Review }

// final reports whether the saga has reached a final state.
func (b body) final() bool { return b.State == Done || b.State == Undone || b.State == Closed }

// pause is how long a saga rests. A reviewer's decision is polled sooner: that costs a read and
// no commit.
func (t loaded) pause() time.Duration {
	rests := restMost
	if !t.document.Due.IsZero() {
		rests = max(t.document.Due.Sub(t.document.Now), time.Millisecond)
	}
	if next(t.body, t.known, t.document.Now, false).poll {
		rests = min(rests, runRead)
	}
	return rests
}

// drive carries a saga on until it rests or is over. A worker skips a saga that is not due:
// another worker has it.
func (r *Runner) drive(ctx context.Context, tenant, id string, urged, worker bool) (loaded, error) {
	ctx = engine.As(ctx, engine.Principal{}) // it continues by itself, whatever the caller
	stale, mine, last := 0, !worker, try{}
	for range maxMoves {
		t, err := r.read(ctx, tenant, id)
		if err != nil || !mine && (t.document.Due.IsZero() || t.document.Due.After(t.document.Now)) {
			return t, err
		}
		m := next(t.body, t.known, t.document.Now, urged)
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
	return loaded{}, fmt.Errorf("saga %q: it did not come to rest within %d moves", id, maxMoves)
}

// try is work on a write in a given state. If it did not change the write, a second try at once
// would not either.
type try struct {
	do   doing
	step int
	seq  int64
}

// rest makes a saga due again soon.
func (r *Runner) rest(ctx context.Context, t *loaded) error {
	now := t.document.Now
	_, err := r.file(ctx, t, now.Add(restPause(now.Sub(t.body.Since), restMost)), nil)
	return err
}

// act makes one move. It reports whether the saga then rests or is over.
func (r *Runner) act(ctx context.Context, t *loaded, m move) (over bool, err error) {
	now := t.document.Now
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
		_, err = r.file(ctx, t, now.Add(r.opts.Lease), nil, t.withdrawal(step, "saga "+t.document.ID, "saga", t.body.Back.Reason)...)
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

// settle records that a saga rests or is over, unless its document already does.
func (r *Runner) settle(ctx context.Context, t *loaded, m move) error {
	now, due := t.document.Now, m.at
	if m.poll {
		due = now.Add(restPause(now.Sub(t.body.Since), reviewerMost))
	}
	t.body = r.cleaned(t.document.Tenant, t.body)
	text, err := t.body.encode()
	if err != nil {
		return err
	}
	ahead := m.poll && t.document.Due.After(now)
	if same := due.Sub(t.document.Due).Abs() < time.Millisecond; bytes.Equal(text, t.document.Body) && (same || ahead) {
		return nil
	}
	_, err = r.file(ctx, t, due, nil)
	return err
}

// restPause is the pause before the next poll of a wait that has lasted that long.
func restPause(lasted, most time.Duration) time.Duration {
	return min(max(lasted/4, restFirst), most)
}

// begin reserves the write of a step in the same commit that records the step as begun, together
// with how it will be undone. From then on any worker of the ledger may send it.
func (r *Runner) begin(ctx context.Context, t *loaded, m move) (over bool, err error) {
	w, err := t.body.Steps[m.step].planned()
	if err != nil {
		return false, err
	}
	profile, err := r.engine.Profile(w)
	if err != nil && t.overdue(m.step) {
		return r.troubled(ctx, t, m, err)
	}
	if err != nil { // another process may have registered the destination
		return false, err
	}
	rec, err := recordOf(w, profile)
	if err != nil {
		return false, err
	}
	rec.RequestedBy, rec.Trace = t.body.By, t.body.Trace
	rec.NotChecked, rec.Proof = r.engine.NotChecked(w), profile.Proof
	now, before := t.document.Now, t.body
	t.body = before.took(m, rec.ID, undoOf(w, rec.ID), now)
	_, err = r.file(ctx, t, now.Add(r.opts.Lease), &ledger.Reservation{Record: rec, Window: r.opts.Window})
	if refusedForGood(err) {
		t.body = before
		return false, r.refused(ctx, t, m, err)
	}
	return false, err
}

// overdue reports whether a step should have been begun long ago.
func (t *loaded) overdue(step int) bool {
	since := t.body.Since
	if at := t.body.Steps[step].NotBefore; at.After(since) {
		since = at
	}
	return t.body.Stuck || t.document.Now.Sub(since) > reportAfter
}

// changedHands reports whether a commit failed because another worker took a write that it
// changes.
func changedHands(err error) bool {
	return errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrIllegalMove)
}

// refusedForGood reports whether the ledger will never accept the write.
func refusedForGood(err error) bool {
	return errors.Is(err, ledger.ErrBlocked) || errors.Is(err, ledger.ErrDigestMismatch)
}

// refused records that the ledger does not accept the write of a step, because another write
// blocks it.
func (r *Runner) refused(ctx context.Context, t *loaded, m move, why error) error {
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
	now := t.document.Now
	t.body = t.body.refused(m.step, one, now)
	due := now.Add(r.opts.Lease)
	if t.body.Back == nil {
		due = time.Time{}
	}
	_, err := r.file(ctx, t, due, nil)
	return err
}

// carry works on the write of a step for a while.
func (r *Runner) carry(ctx context.Context, t *loaded, m move) (over bool, err error) {
	if err := r.keep(ctx, t); err != nil {
		return false, err
	}
	id := t.body.Steps[m.step].write()
	return r.attend(ctx, t, m, func(ctx context.Context) (engine.Outcome, error) {
		return r.engine.Wait(ctx, t.document.Tenant, id, true)
	})
}

// undo undoes a step.
func (r *Runner) undo(ctx context.Context, t *loaded, m move) (over bool, err error) {
	s := t.body.Steps[m.step]
	way, err := s.undoing()
	if err != nil {
		return false, err
	}
	if err := r.keep(ctx, t); err != nil {
		return false, err
	}
	u := engine.Undoing{By: "saga " + t.document.ID, Reason: t.body.Back.Reason, Intent: way}
	if t.body.Back.By != "" {
		u.By = t.body.Back.By
	}
	return r.attend(ctx, t, m, func(ctx context.Context) (engine.Outcome, error) {
		return r.engine.Undo(ctx, t.document.Tenant, s.write(), u)
	})
}

// keep renews this worker's lease of the saga, and commits its changes.
func (r *Runner) keep(ctx context.Context, t *loaded) error {
	now := t.document.Now
	text, err := t.body.encode()
	if err != nil {
		return err
	}
	if bytes.Equal(text, t.document.Body) && t.document.Due.Sub(now) > r.opts.Lease/2 {
		return nil
	}
	_, err = r.file(ctx, t, now.Add(r.opts.Lease), nil)
	return err
}

// attend lets the engine work on a write for a while. It reports whether the saga then rests.
func (r *Runner) attend(ctx context.Context, t *loaded, m move, work func(context.Context) (engine.Outcome, error)) (over bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, min(carryFor, r.opts.Lease/2))
	defer cancel()
	began := time.Now()
	out, err := work(waiting)
	now := t.document.Now.Add(time.Since(began))
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
	case out.Status != ledger.InProgress || ctx.Err() != nil:
		return false, nil
	}
	pause := restPause(now.Sub(t.body.Since), restMost)
	if wait := out.AskAfter.Sub(now); !out.AskAfter.IsZero() && wait > pause {
		pause = min(wait, restMost)
	}
	_, err = r.file(ctx, t, now.Add(pause), nil)
	return true, err
}

// passes reports whether an error concerns this process or its ledger, not the saga.
func passes(err error) bool {
	return errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, engine.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// troubled handles a write that the engine could not work on. If nothing has changed meanwhile,
// the saga is reported to a reviewer. It is tried again after a while, as another process may be
// able to.
func (r *Runner) troubled(ctx context.Context, t *loaded, m move, why error) (over bool, err error) {
	fresh, err := r.read(ctx, t.document.Tenant, t.document.ID)
	if err != nil {
		return false, err
	}
	if again := next(fresh.body, fresh.known, fresh.document.Now, false); again.do != m.do || again.step != m.step {
		return false, nil
	}
	now := fresh.document.Now
	what := map[doing]string{begin: "begin", carry: "work on", undo: "undo"}[m.do]
	r.opts.Logger.Warn("a saga cannot continue", "saga", t.document.ID, "tenant", t.document.Tenant, "step", t.body.Steps[m.step].Name, "error", r.errorText(t.document.Tenant, t.body, why))
	fresh.body.Stuck = true
	fresh.body.says(Review, fmt.Sprintf("the engine could not %s step %q: %v", what, t.body.Steps[m.step].Name, why), now)
	_, err = r.file(ctx, &fresh, now.Add(max(restPause(now.Sub(fresh.body.Since), reviewerMost), restMost)), nil)
	*t = fresh
	return true, err
}
