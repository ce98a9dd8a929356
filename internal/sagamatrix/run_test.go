package sagamatrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// The duration of a run.
const (
	patience  = 2 * time.Hour  // of a caller that waits for a saga
	watched   = 26 * time.Hour // writes are rechecked within a day
	glance    = 10 * time.Second
	seededAgo = time.Hour // what is there before was there for so long
)

// run is one lifetime of one saga in a cell.
type run struct {
	cell  cell
	point point
	book  *ledger.Memory
	mischief
	first *process // the one that may fail

	flawsMu sync.Mutex
	flaws   []string

	began    time.Time
	final    saga.Saga
	accounts map[string]account
	writes   []ledger.Record
	end      end
	// back means that an operator cancelled the saga and it is being reversed.
	back bool
}

func (r *run) flaw(format string, args ...any) {
	r.flawsMu.Lock()
	defer r.flawsMu.Unlock()
	r.flaws = append(r.flaws, fmt.Sprintf(format, args...))
}

// live runs a saga in a cell through one failure and to its end.
func live(t *testing.T, c cell, at point) *run {
	r := &run{cell: c, point: at}
	synctest.Test(t, func(t *testing.T) {
		w, err := opened(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(seededAgo)
		r.began, r.book = time.Now(), ledger.NewMemory()
		r.mischief = mischief{world: w, step: c.step, fault: c.fault, undoing: c.undoing, failing: c.failing, mail: r.mailGoes}
		r.first = newProcess(t.Context(), "first", at)
		r.processes(t)
		r.resubmit(t)
		r.judge()
		if err := w.close(); err != nil {
			r.flaw("%s: close: %v", wrong, err)
		}
	})
	return r
}

// processes lets the first process live as long as it does, and then a second
// one beside or after it.
func (r *run) processes(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.life(r.first, true)
	}()
	if r.point.Fate == crashtest.Lives {
		<-ended
		return
	}
	select {
	case <-r.first.Failed:
	case <-ended:
	}
	if !r.first.Reached() {
		<-ended
		return // it ended without reaching that point
	}
	if r.cell.cancelled {
		r.cancel(newProcess(t.Context(), "reviewer", point{}))
	}
	// Whether the caller comes back, or a worker finds what was left, alternates.
	r.life(newProcess(t.Context(), "second", point{}), r.point.Fate != crashtest.After)
	<-ended
	if r.point.Fate == crashtest.Suspends {
		r.life(newProcess(t.Context(), "third", point{}), true) // the rest of its work
	}
}

// life runs one process: it submits the saga, or only works, and then processes all writes as
// long as they are watched.
func (r *run) life(p *process, asks bool) {
	e, err := r.engine(r.book, p)
	if err != nil {
		r.flaw("%s: %v", wrong, err)
		return
	}
	defer e.Close()
	runner := saga.New(reach(r.book, p), e, nil)
	for range maxAsks {
		var s saga.Saga
		if asks {
			s, err = r.ask(p, runner)
		} else {
			s, err = r.serve(p, runner)
		}
		if err == nil {
			err = worked(p.Context, r.book, e, p, watched)
		}
		if err != nil || s.State != saga.Review || !r.stirred(s) {
			break // nothing has happened for which the saga waited
		}
	}
	if err != nil && p.Alive() {
		r.flaw("%s: the %s process: %v", wrong, p.Name, err)
	}
}

// maxAsks limits how often one process resumes a saga that had waited for a reviewer, after a
// later read settled the question.
const maxAsks = 4

// stirred reports whether a write of a saga has changed since the last read.
func (r *run) stirred(s saga.Saga) bool {
	all, err := r.book.List(context.Background(), ledger.Filter{Tenant: tenant})
	return err == nil && slices.ContainsFunc(all, func(w ledger.Record) bool { return w.Updated.After(s.Now) && w.State == ledger.Settled })
}

// ask is a caller that submits the saga, whatever caller did so before. It is an agent: if a saga
// has given up, an operator's submission makes it continue.
func (r *run) ask(p *process, runner *saga.Runner) (saga.Saga, error) {
	ctx, cancel := context.WithTimeout(engine.As(p.Context, engine.Principal{Name: "robot", Role: engine.RoleAgent}), patience)
	defer cancel()
	if _, err := runner.Begin(ctx, r.cell.plan.saga(r.world)); err != nil {
		return saga.Saga{}, fmt.Errorf("begin: %w", err)
	}
	return runner.Run(ctx, tenant, sagaID)
}

// cancel is an operator who cancels the saga. It may be too late for that, or too early.
func (r *run) cancel(p *process) {
	e, err := r.engine(r.book, p)
	if err != nil {
		r.flaw("%s: %v", wrong, err)
		return
	}
	defer e.Close()
	ctx := engine.As(p.Context, engine.Principal{Name: "ada", Role: engine.RoleReviewer})
	_, err = saga.New(reach(r.book, p), e, nil).Cancel(ctx, tenant, sagaID, "ada", "changed her mind")
	r.back = err == nil
	if err != nil && !errors.Is(err, saga.ErrTooLate) && !errors.Is(err, ledger.ErrNotFound) {
		r.flaw("%s: cancel: %v", wrong, err)
	}
}

// serve is a worker that knows of no saga in particular. Nothing is to be done
// where none was begun.
func (r *run) serve(p *process, runner *saga.Runner) (s saga.Saga, err error) {
	ctx, cancel := context.WithCancel(p.Context)
	defer cancel()
	ended := make(chan error, 1)
	work := runner.Work
	if *dispatching {
		var s dispatchtest.Scheduler
		work = func(ctx context.Context) error { return s.Sagas(ctx, runner) }
	}
	go func() { ended <- work(ctx) }()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		time.Sleep(glance) // by then the requests of a dead process are done
		s, err = runner.Get(ctx, tenant, sagaID)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && s.Over() {
			break
		}
	}
	cancel()
	return s, <-ended
}

// resubmit submits again for the end: every caller gets it, and nothing is sent for that.
func (r *run) resubmit(t *testing.T) {
	before := r.world.accounts()
	p := newProcess(t.Context(), "last", point{})
	e, err := r.engine(r.book, p)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r.final, err = r.ask(p, saga.New(reach(r.book, p), e, nil)); err != nil {
		r.flaw("%s: asked again after the end: %v", wrong, err)
	}
	r.accounts = r.world.accounts()
	for _, name := range steps {
		if before[name] != r.accounts[name] {
			r.flaw("%s: asked again after the end, and %s changed from %+v to %+v", wrong, name, before[name], r.accounts[name])
		}
	}
	if r.writes, err = r.book.List(t.Context(), ledger.Filter{Tenant: tenant}); err != nil {
		t.Fatal(err)
	}
}

// describe prints every event of the writes and the final status, for failures.
func (r *run) describe() string {
	const most = 40
	text := fmt.Sprintf("%s; %s: %s\n  saga %s: %s", r.cell, r.point, r.end, r.final.State, r.final.Reason)
	for _, s := range r.final.Steps {
		text += fmt.Sprintf("\n  step %+v", s)
	}
	for _, name := range steps {
		text += fmt.Sprintf("\n  %s: %+v", name, r.accounts[name])
	}
	for _, rec := range slices.Backward(r.writes) {
		events, err := r.book.Events(context.Background(), tenant, rec.ID)
		text += fmt.Sprintf("\n  %s of %s: %s %v", aboutRecord(rec), rec.Tool, rec.Phase(), err)
		for _, e := range events[:min(len(events), most)] {
			text += fmt.Sprintf("\n    %10s %-12s by %-6s %s%s %s/%s", e.At.Sub(r.began).Round(time.Millisecond), e.Kind, e.By, e.Fate, e.Verdict, e.Rule, e.Reason)
		}
	}
	return strings.TrimSpace(text)
}
