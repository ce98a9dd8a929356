package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
	"github.com/readback-go/readback/telemetry"
)

// meter counts the calls of the destinations.
func (d *Instance) meter(reg *connectors.Registry) *metrics.Meter {
	from := metrics.Sources{Ledger: d.Ledger, InForce: d.guardStatus}
	if d.telemetry.sdk != nil {
		from.Telemetry = d.telemetry.counts
	}
	if d.Config.Audit.On() {
		from.Audit = d.auditStats
	}
	return metrics.New(reg, from)
}

// auditStats is the state of the audit log, if this process seals it.
func (d *Instance) auditStats() (metrics.Audit, bool) {
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

// ServeMetrics serves the metrics at an address, "" for nowhere.
func (h *Services) ServeMetrics(addr string) (end func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	log := h.Instance.Log
	s, err := metrics.Start(addr, h.meter, h.Instance.Ping, log)
	if err != nil {
		return nil, err
	}
	log.Info("metrics are served", "address", s.Addr())
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("the server of metrics could not be closed", "error", err)
		}
	}, nil
}

// Ping checks whether the ledger can be reached, by a cheap read.
func (d *Instance) Ping(ctx context.Context) error {
	if l, ok := d.Ledger.(*shards.Ledger); ok {
		return l.Ready(ctx)
	}
	_, err := d.Ledger.Get(ctx, d.Tenant, "wr_0")
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return err
}

// telemetryExport exports what happens to writes. The zero value exports nothing and opens
// no connection.
type telemetryExport struct {
	sdk  *otel.SDK
	stop func() error // of the gauges, which read the ledger
	// content exports arguments and results as well.
	content bool
}

// TelemetrySettings are the settings of telemetry, with those of the environment.
func TelemetrySettings(c config.Config, env func(string) string) (otel.Settings, error) {
	s, err := c.TelemetrySettings(env)
	s.Env, s.Version = env, Built().Version
	return s, errors.Join(err, s.Check())
}

// startTelemetry starts the export, if it is configured. It ends when d is closed.
func (d *Instance) startTelemetry(reg *connectors.Registry) error {
	s, err := TelemetrySettings(d.Config, d.Env.Get)
	if err != nil || !s.On() {
		return err
	}
	s.Logger = d.Log
	sdk, err := otel.Start(context.Background(), s)
	if err != nil {
		return err
	}
	d.telemetry = telemetryExport{sdk: sdk, content: d.Config.Telemetry.Content}
	d.telemetry.stop, err = telemetry.Gauges(sdk.Meter(), reg, d.Ledger)
	return err
}

// into adds it to the options of an engine, beside the meter that they have.
func (t telemetryExport) into(o *engine.Options, reg *connectors.Registry) {
	if t.sdk == nil {
		return
	}
	o.Tracer, o.Events, o.TraceContent = t.sdk.Tracer(), t.sdk.Events(), t.content
	o.Observer = telemetry.Tee(o.Observer, telemetry.NewMeter(t.sdk.Meter(), reg).Observe)
}

// counts counts the exported telemetry, for metrics.
func (t telemetryExport) counts() map[string]metrics.Exported {
	all := map[string]metrics.Exported{}
	for signal, d := range t.sdk.Deliveries() {
		all[signal] = metrics.Exported{Delivered: d.Delivered, Failed: d.Failed, Dropped: d.Dropped}
	}
	return all
}

// endTelemetry ends it, before the ledger: what is not delivered within a few seconds is lost.
func (d *Instance) endTelemetry() {
	if d.telemetry.sdk == nil {
		return
	}
	d.telemetry.sdk.Shutdown()
	if d.telemetry.stop != nil {
		_ = d.telemetry.stop() // a second stop has no effect
	}
	d.telemetry = telemetryExport{}
}
