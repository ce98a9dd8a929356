package main

import (
	"context"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/metrics"
)

// standing is what all workers on a ledger share through its notes.
type standing struct {
}

// stand sets up what is shared.
func (d *desk) stand(reg *connectors.Registry) {
	d.standing = standing{}
}

// into gives it to an engine.
func (s standing) into(o *engine.Options) {
}

// measured is what stands, for metrics.
func (s standing) measured(ctx context.Context) metrics.Standing {
	return metrics.Standing{}
}
