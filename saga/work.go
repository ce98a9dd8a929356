package saga

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// endTime bounds the commit that makes a saga due again when its worker ends.
	endTime = 5 * time.Second
	// dispatchedFor is how long a saga that was handed over may wait before it is handed over
	// again, as in the engine.
	dispatchedFor = 30 * time.Second
)

// Work carries on the due sagas of all tenants until ctx ends, and then returns nil: new ones,
// rested ones, and those of a dead worker. It continues after failures of the ledger. It works on
// writes as far as the sagas wait for them; a worker of the engine in parallel does no harm.
func (r *Runner) Work(ctx context.Context) error { return r.work(ctx, nil) }

// Dispatch is [Runner.Work] that hands due sagas over to another scheduler, such as a workflow
// engine. It calls [Runner.WorkOn] for each, then and whenever the saga needs work again. One that
// is not taken up within 30 s, whether or not the hand-over failed, is handed over again.
func (r *Runner) Dispatch(ctx context.Context, to func(ctx context.Context, tenant, id string) error) error {
	return r.work(ctx, to)
}

// WorkOn carries one saga on, for a scheduler that gets it from [Runner.Dispatch]. It returns in
// how long the saga needs work again; again is false if it does not before another actor changes
// it, and then it is dispatched again. A call too many, too early or too late does no harm. After
// an error the call should be repeated after a pause, here or elsewhere.
func (r *Runner) WorkOn(ctx context.Context, tenant, id string) (in time.Duration, again bool, err error) {
	r.one(ctx, name{tenant, id}, false)
	p, err := r.store.Document(ctx, tenant, kind, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound): // pruned
		return 0, false, nil
	case err != nil || p.Due.IsZero():
		return 0, false, err
	}
	return max(p.Due.Sub(p.Now), 0), true, nil
}

func (r *Runner) work(ctx context.Context, to func(ctx context.Context, tenant, id string) error) error {
	w := &worker{r: r, to: to, busy: make(map[name]bool), free: make(chan struct{}, r.opts.Parallel)}
	for ctx.Err() == nil {
		n, err := w.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.opts.Logger.Error("the ledger cannot be worked on", "error", err)
			pause.For(ctx, workFailed)
		case n == 0:
			pause.For(ctx, r.opts.Idle-r.opts.Idle/5+rand.N(2*r.opts.Idle/5+1)) // so that workers do not poll in step
		}
	}
	w.wg.Wait()
	return nil
}

type name struct{ tenant, id string }

// worker is one run of Work.
type worker struct {
	r    *Runner
	to   func(ctx context.Context, tenant, id string) error // nil: this worker carries them out
	wg   sync.WaitGroup
	free chan struct{} // one value for each saga in work

	mu   sync.Mutex
	busy map[name]bool
}

// round takes what is due, and reports how many sagas that was.
func (w *worker) round(ctx context.Context) (int, error) {
	due, _, err := w.r.store.DueDocuments(ctx, kind, 2*w.r.opts.Parallel)
	if err != nil {
		return 0, err
	}
	taken := 0
	for _, p := range due {
		n := name{p.Tenant, p.ID}
		if !w.take(n) {
			continue
		}
		select {
		case w.free <- struct{}{}:
		case <-ctx.Done():
			w.leave(n)
			return taken, nil
		}
		taken++
		w.wg.Go(func() {
			defer w.leave(n)
			well := w.do(ctx, p)
			<-w.free
			if !well {
				pause.For(ctx, restPause(p.Now.Sub(p.Created), restMost)) // it is due again at once
			}
		})
	}
	return taken, nil
}

// do works on a due saga, or hands it over, postponed for as long as that may take. It reports false
// if the saga stays due.
func (w *worker) do(ctx context.Context, p ledger.Document) (well bool) {
	if w.to == nil {
		return w.r.one(ctx, name{p.Tenant, p.ID}, true)
	}
	p.Due = p.Now.Add(dispatchedFor)
	_, err := w.r.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	stays := err != nil && !errors.Is(err, ledger.ErrStale)
	if err == nil {
		err = w.to(ctx, p.Tenant, p.ID)
	}
	if err != nil && !errors.Is(err, ledger.ErrStale) && ctx.Err() == nil {
		w.r.opts.Logger.Warn("a due saga could not be handed over; it is tried again within 30 s", "saga", p.ID, "tenant", p.Tenant, "error", err)
	}
	return !stays
}

func (w *worker) take(n name) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[n] {
		return false
	}
	w.busy[n] = true
	return true
}

func (w *worker) leave(n name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, n)
}

// one works on one saga, if it is due or the worker was given this one. A failure is tried again
// when it is due. It reports false if that could not be recorded, so that the saga stays due.
func (r *Runner) one(ctx context.Context, n name, due bool) bool {
	t, err := r.drive(ctx, n.tenant, n.id, false, due)
	switch {
	case ctx.Err() != nil:
		r.putBack(context.WithoutCancel(ctx), n)
	case err == nil, errors.Is(err, ledger.ErrStale), errors.Is(err, engine.ErrClosed):
	default:
		r.opts.Logger.Warn("a saga was put back", "saga", n.id, "tenant", n.tenant, "error", r.errorText(n.tenant, t.body, err))
		if !t.document.Due.After(t.document.Now) { // otherwise it would be due again at once, forever
			return r.later(context.WithoutCancel(ctx), n)
		}
	}
	return true
}

// putBack makes a saga of this worker due at once, for other workers.
func (r *Runner) putBack(ctx context.Context, n name) { r.due(ctx, n, 0) }

// later postpones a saga that cannot be worked on now, for the longer the older it is.
func (r *Runner) later(ctx context.Context, n name) bool { return r.due(ctx, n, restMost) }

func (r *Runner) due(ctx context.Context, n name, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	p, err := r.store.Document(ctx, n.tenant, kind, n.id)
	if err == nil && p.Due.IsZero() {
		return true
	}
	if err == nil {
		p.Due = p.Now.Add(restPause(p.Now.Sub(p.Created), most))
		_, err = r.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	}
	if err == nil || errors.Is(err, ledger.ErrStale) {
		return true
	}
	r.opts.Logger.Warn("a saga was not put back; it is taken up when its time comes", "saga", n.id, "tenant", n.tenant, "error", err)
	return errors.Is(err, ledger.ErrUnavailable) // then no worker finds anything due
}
