package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// house is what is behind the door of a server.
type house struct {
	desk    *desk
	engine  *engine.Engine
	gate    *workflow.Gate
	sagas   *saga.Runner
	handler http.Handler
}

// furnish makes what is behind the door, at an address that callers know.
func (a *app) furnish(d *desk, reg *connectors.Registry, where string) (*house, error) {
	store, ok := d.ledger.(workflow.Store)
	if !ok {
		return nil, errors.New("this ledger keeps no workflows")
	}
	o, err := d.gateOptions()
	if err != nil {
		return nil, err
	}
	if err := d.retention(reg); err != nil {
		return nil, err
	}
	d.stand(reg)
	h := &house{desk: d, engine: d.engine(reg, nil)}
	o.Look, o.BaseURL = h.engine, where+"/api/v1"
	h.gate = workflow.New(store, o)
	h.sagas = saga.New(store, h.engine, &saga.Options{Window: idempotencyWindow, Logger: d.log})
	h.handler = httpapi.New(h.gate, &httpapi.Options{Caller: httpapi.Dev(d.tenant), Logger: d.log, Ready: d.reached})
	return h, nil
}

// run serves and works until ctx ends or a part of it fails. Requests under way
// are answered first: they may still need the rest.
func (h *house) run(ctx context.Context, server *http.Server, l net.Listener, s serveSettings) error {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	begin := func(what string, work func() error) {
		wg.Go(func() {
			if err := work(); err != nil && working.Err() == nil {
				select {
				case failed <- fmt.Errorf("%s: %w", what, err):
				default: // the first says it
				}
			}
		})
	}
	begin("the server", func() error { return server.Serve(l) })
	begin("the gate", func() error { return h.gate.Work(working) })
	begin("the sagas", func() error { return h.sagas.Work(working) })
	if h.desk.config.Retention.Keep > 0 {
		wg.Go(func() { h.desk.pruneNowAndThen(working) })
	}
	late := make(chan error, 1)
	begin("the engine", func() error {
		err := untilStopped(working, h.engine, s.grace, func() error {
			return h.engine.Work(working, &engine.WorkOptions{Parallel: s.parallel})
		})
		late <- err
		return err
	})
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	h.shut(server, s.grace)
	end()
	if lateErr := <-late; errors.Is(lateErr, errLate) {
		return errors.Join(err, lateErr) // the ledger is still in use, and ends with the process
	}
	wg.Wait()
	h.engine.Close()
	h.desk.close()
	h.desk.log.Info("stopped")
	return err
}

// shut ends the server: nobody new comes in, and whoever is in is answered,
// within a time.
func (h *house) shut(server *http.Server, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		h.desk.log.Warn("requests under way were cut off", "error", err)
		_ = server.Close() // what it did is in the ledger
	}
}
