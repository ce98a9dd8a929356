// Package dispatchtest is a scheduler to which tests hand work over: what a workflow engine does
// for an engine and for sagas, in one process and in fake time. It keeps one flow for each write or
// saga, which calls WorkOn, waits on a timer until work is needed again, and is woken early.
package dispatchtest

import (
	"context"
	"sync"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// Scheduler drives work. The zero value loses nothing. With Faults it loses the first of
// five starts without an error, fails at the second, and runs two flows for each third of all.
type Scheduler struct {
	Faults bool

	mu     sync.Mutex
	starts int
	flows  map[string]chan struct{} // by name; a value wakes the flow
	wg     sync.WaitGroup
}

// retry is the pause after a failed call and the shortest timer, as a workflow engine has them.
const retry = time.Second

// Writes is [engine.Engine.Work] with this scheduler. Its flows end with ctx, and their timers are
// lost.
func (s *Scheduler) Writes(ctx context.Context, e *engine.Engine, o *engine.WorkOptions) error {
	var with engine.WorkOptions
	if o != nil {
		with = *o
	}
	with.Dispatch = func(_ context.Context, rec ledger.Record) error {
		return s.start(ctx, rec.Tenant+"/"+string(rec.ID), func(ctx context.Context) (time.Duration, bool, error) {
			return e.WorkOn(ctx, rec.Tenant, rec.ID)
		})
	}
	err := e.Work(ctx, &with)
	s.wg.Wait()
	return err
}

// Sagas is [saga.Runner.Work] with this scheduler.
func (s *Scheduler) Sagas(ctx context.Context, r *saga.Runner) error {
	err := r.Dispatch(ctx, func(_ context.Context, tenant, id string) error {
		return s.start(ctx, "saga/"+tenant+"/"+id, func(ctx context.Context) (time.Duration, bool, error) {
			return r.WorkOn(ctx, tenant, id)
		})
	})
	s.wg.Wait()
	return err
}

type lostError struct{}

func (lostError) Error() string { return "the scheduler is away" }

// start begins a flow, or wakes the one that there is.
func (s *Scheduler) start(ctx context.Context, name string, work func(context.Context) (time.Duration, bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	if s.Faults {
		switch {
		case s.starts%5 == 1:
			return nil
		case s.starts%5 == 2:
			return lostError{}
		case s.starts%3 == 0:
			s.wg.Go(func() { flow(ctx, nil, work) })
		}
	}
	if s.flows == nil {
		s.flows = make(map[string]chan struct{})
	}
	if woken, ok := s.flows[name]; ok {
		select {
		case woken <- struct{}{}:
		default:
		}
		return nil
	}
	woken := make(chan struct{}, 1)
	s.flows[name] = woken
	s.wg.Go(func() {
		for {
			flow(ctx, woken, work)
			s.mu.Lock()
			if len(woken) == 0 || ctx.Err() != nil {
				delete(s.flows, name)
				s.mu.Unlock()
				return
			}
			s.mu.Unlock()
		}
	})
	return nil
}

// flow works until nothing more is needed.
func flow(ctx context.Context, woken chan struct{}, work func(context.Context) (time.Duration, bool, error)) {
	for ctx.Err() == nil {
		select {
		case <-woken: // before the call, which sees why
		default:
		}
		in, again, err := work(ctx)
		switch {
		case err != nil:
			pause.For(ctx, retry)
			continue
		case !again:
			return
		}
		timer := time.NewTimer(max(in, retry))
		select {
		case <-woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
