package main

import (
	"context"
	"errors"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/telemetry"
)

// telemetryRun exports what happens to writes. The zero value exports nothing and opens
// no connection.
type telemetryRun struct {
	sdk  *otel.SDK
	stop func() error // of the gauges, which read the ledger
	// content exports arguments and results as well.
	content bool
}

// asHeaders replaces the placeholder of an unread secret with headers.
func asHeaders(secret string) string {
	if isAnySecret(secret) {
		return "Authorization=" + secret
	}
	return secret
}

// telemetrySettings are the settings of telemetry, with those of the environment.
func (a *app) telemetrySettings(c config.Config) (otel.Settings, error) {
	s, err := c.TelemetrySettings(a.env)
	s.Env, s.Version = a.env, built().Version
	return s, errors.Join(err, s.Check())
}

// startTelemetry starts the export, if it is configured. It ends when d is closed.
func (a *app) startTelemetry(d *opened, reg *connectors.Registry) error {
	s, err := a.telemetrySettings(d.config)
	if err != nil || !s.On() {
		return err
	}
	s.Logger = d.log
	sdk, err := otel.Start(context.Background(), s)
	if err != nil {
		return err
	}
	d.telemetryRun = telemetryRun{sdk: sdk, content: d.config.Telemetry.Content}
	d.telemetryRun.stop, err = telemetry.Gauges(sdk.Meter(), reg, d.ledger)
	return err
}

// into adds it to the options of an engine, beside the meter that they have.
func (t telemetryRun) into(o *engine.Options, reg *connectors.Registry) {
	if t.sdk == nil {
		return
	}
	o.Tracer, o.Events, o.TraceContent = t.sdk.Tracer(), t.sdk.Events(), t.content
	o.Observer = telemetry.Tee(o.Observer, telemetry.NewMeter(t.sdk.Meter(), reg).Observe)
}

// counts counts the exported telemetry, for metrics.
func (t telemetryRun) counts() map[string]metrics.Exported {
	all := map[string]metrics.Exported{}
	for signal, d := range t.sdk.Deliveries() {
		all[signal] = metrics.Exported{Delivered: d.Delivered, Failed: d.Failed, Dropped: d.Dropped}
	}
	return all
}

// hush ends it, before the ledger: what is not delivered within a few seconds is lost.
func (d *opened) hush() {
	if d.telemetryRun.sdk == nil {
		return
	}
	d.telemetryRun.sdk.Shutdown()
	if d.telemetryRun.stop != nil {
		_ = d.telemetryRun.stop() // a second stop has no effect
	}
	d.telemetryRun = telemetryRun{}
}

// checkTelemetry tests the telemetry endpoint.
func (a *app) checkTelemetry(ctx context.Context, e *examination, c config.Config) {
	s, err := a.telemetrySettings(c)
	switch {
	case err != nil:
		e.fail("telemetry", "Say in `telemetry`, or in the variables of OpenTelemetry, where it is to go.", "%s", flat(err.Error()))
		return
	case !s.On():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := otel.Try(ctx, s); err != nil {
		e.warn("telemetry", "See that the receiver runs, that this machine may reach it, and that the headers are right. Writes go on without it.", "%s", flat(err.Error()))
		return
	}
	e.ok("telemetry", "the receiver answers")
}
