package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/ledger"
)

// serve serves the metrics of a command at an address; with "" there are none, and the
// observer is nil.
func (d *opened) serve(addr string, reg *connectors.Registry) (func(engine.Activity), func(), error) {
	if addr == "" {
		return nil, func() {}, nil
	}
	m := d.meter(reg)
	end, err := d.serveMeter(addr, m)
	return m.Observe, end, err
}

// meter counts the calls of the destinations.
func (d *opened) meter(reg *connectors.Registry) *metrics.Meter {
	from := metrics.Sources{Ledger: d.ledger, InForce: d.measured}
	if d.telemetryRun.sdk != nil {
		from.Telemetry = d.telemetryRun.counts
	}
	if d.config.Audit.On() {
		from.Audit = d.sealed
	}
	return metrics.New(reg, from)
}

// sealed is the state of the audit log, if this process seals it.
func (d *opened) sealed() (metrics.Audit, bool) {
	s := d.sealer.Load()
	if s == nil {
		return metrics.Audit{}, false
	}
	found := s.Stats()
	a := metrics.Audit{Unsealed: -1, Failures: found.Failures}
	if since := cmp.Or(found.Read, found.Tried); !since.IsZero() {
		a.Unsealed = time.Since(since)
	}
	for _, k := range found.HeadStores {
		a.Kept, a.Failed, a.Dropped, a.Waiting = a.Kept+k.Kept, a.Failed+k.Failures, a.Dropped+k.Dropped, a.Waiting+k.Waiting
	}
	return a, true
}

// serveMeter serves a meter at an address, "" for nowhere.
func (d *opened) serveMeter(addr string, m *metrics.Meter) (end func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	s, err := metrics.Start(addr, m, d.reached, d.log)
	if err != nil {
		return nil, err
	}
	d.log.Info("metrics are served", "address", s.Addr())
	return func() {
		if err := s.Close(); err != nil {
			d.log.Warn("the server of metrics could not be closed", "error", err)
		}
	}, nil
}

// reached checks whether the ledger can be reached, by a cheap read.
func (d *opened) reached(ctx context.Context) error {
	_, err := d.ledger.Get(ctx, d.tenant, "wr_0")
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return err
}
