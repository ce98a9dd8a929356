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

// endTime bounds the commit that makes a saga due again when its worker ends.
const endTime = 5 * time.Second

// Work carries on the due sagas of all tenants until ctx ends, and then returns nil: new ones,
// rested ones, and those of a dead worker. It continues after failures of the ledger. It works on
// writes as far as the sagas wait for them; a worker of the engine in parallel does no harm.
func (r *Runner) Work(ctx context.Context) error {
	w := &worker{r: r, busy: make(map[name]bool), free: make(chan struct{}, r.opts.Parallel)}
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
			well := w.r.one(ctx, n)
			<-w.free
			if !well {
				pause.For(ctx, restMost)
			}
		})
	}
	return taken, nil
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

// one works on one saga. A failure is tried again when it is due. It reports false if that could
// not be recorded, so that the saga stays due.
func (r *Runner) one(ctx context.Context, n name) bool {
	t, err := r.drive(ctx, n.tenant, n.id, false, true)
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

// later postpones a saga that cannot be worked on now.
func (r *Runner) later(ctx context.Context, n name) bool { return r.due(ctx, n, restMost) }

func (r *Runner) due(ctx context.Context, n name, in time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	p, err := r.store.Document(ctx, n.tenant, kind, n.id)
	if err == nil && p.Due.IsZero() {
		return true
	}
	if err == nil {
		p.Due = p.Now.Add(in)
		_, err = r.store.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	}
	if err == nil || errors.Is(err, ledger.ErrStale) {
		return true
	}
	r.opts.Logger.Warn("a saga was not put back; it is taken up when its time comes", "saga", n.id, "tenant", n.tenant, "error", err)
	return errors.Is(err, ledger.ErrUnavailable) // then no worker finds anything due
}
