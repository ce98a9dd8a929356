package main

import (
	"context"
	"errors"

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
	from := metrics.Sources{Standing: d.measured}
	from.Ledger, _ = d.ledger.(ledger.Surveyor) // what cannot be counted is missing
	m := metrics.New(reg, from)
	s, err := metrics.Start(addr, m, d.reached, d.log)
	if err != nil {
		return nil, nil, err
	}
	d.log.Info("metrics are served", "address", s.Addr())
	return m, func() {
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
