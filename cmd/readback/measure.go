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

// serve serves the metrics of what the desk does, at an address, "" for
// nowhere: the meter is nil then.
func (d *desk) serve(addr string, reg *connectors.Registry) (engine.Meter, func(), error) {
	if addr == "" {
		return nil, func() {}, nil
	}
	m := d.meter(reg)
	end, err := d.serveMeter(addr, m)
	return m, end, err
}

// meter counts what is done with the destinations.
func (d *desk) meter(reg *connectors.Registry) *metrics.Meter {
	from := metrics.Sources{Standing: d.measured}
	from.Ledger, _ = d.ledger.(ledger.Surveyor) // what cannot be counted is missing
	if d.telling.sdk != nil {
		from.Telemetry = d.telling.told
	}
	if d.config.Audit.On() {
		from.Audit = d.sealed
	}
	return metrics.New(reg, from)
}

// sealed is how the audit log stands, as far as this process seals it.
func (d *desk) sealed() (metrics.Audit, bool) {
	s := d.sealer.Load()
	if s == nil {
		return metrics.Audit{}, false
	}
	found := s.Stats()
	a := metrics.Audit{Unsealed: -1, Failures: found.Failures}
	if since := cmp.Or(found.Looked, found.Tried); !since.IsZero() {
		a.Unsealed = time.Since(since)
	}
	for _, k := range found.Keepers {
		a.Kept, a.Failed, a.Dropped, a.Waiting = a.Kept+k.Kept, a.Failed+k.Failures, a.Dropped+k.Dropped, a.Waiting+k.Waiting
	}
	return a, true
}

// serveMeter serves a meter at an address, "" for nowhere.
func (d *desk) serveMeter(addr string, m *metrics.Meter) (end func(), err error) {
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

// reached reports whether the ledger can be reached, by a question that costs
// it little.
func (d *desk) reached(ctx context.Context) error {
	_, err := d.ledger.Get(ctx, d.tenant, "wr_0")
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return err
}
