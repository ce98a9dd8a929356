package main

import (
	"context"
	"errors"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
)

// telling is where a program tells what happens to writes. The zero value is
// nowhere: nothing is made, and nothing is dialed.
type telling struct {
	sdk  *otel.SDK
	stop func() error // of the gauges, which ask the ledger
	// content tells arguments and results as well.
	content bool
}

// asHeaders makes headers of what stands for a secret that is not looked at.
func asHeaders(secret string) string {
	if isAnySecret(secret) {
		return "Authorization=" + secret
	}
	return secret
}

// telling are the settings of telemetry, with what the environment adds.
func (a *app) telling(c config.Config) (otel.Settings, error) {
	s, err := c.Telling(a.env)
	s.Env, s.Version = a.env, built().Version
	return s, errors.Join(err, s.Check())
}

// tell begins to tell what happens with the destinations, where that is
// configured. It is ended with the desk.
func (a *app) tell(d *desk, reg *connectors.Registry) error {
	s, err := a.telling(d.config)
	if err != nil || !s.On() {
		return err
	}
	s.Logger = d.log
	sdk, err := otel.Start(context.Background(), s)
	if err != nil {
		return err
	}
	d.telling = telling{sdk: sdk, content: d.config.Telemetry.Content}
	if l, ok := d.ledger.(ledger.Surveyor); ok {
		if d.telling.stop, err = telemetry.Gauges(sdk.Meter(), reg, l); err != nil {
			return err
		}
	}
	return nil
}

// into gives it to an engine, beside the meter that it has.
func (t telling) into(o *engine.Options, reg *connectors.Registry) {
	if t.sdk == nil {
		return
	}
	o.Tracer, o.Events, o.TraceContent = t.sdk.Tracer(), t.sdk.Events(), t.content
	o.Meter = telemetry.Tee(o.Meter, telemetry.NewMeter(t.sdk.Meter(), reg))
}

// told counts what was told, for metrics.
func (t telling) told() map[string]metrics.Told {
	all := map[string]metrics.Told{}
	for signal, d := range t.sdk.Deliveries() {
		all[signal] = metrics.Told{Delivered: d.Delivered, Failed: d.Failed, Dropped: d.Dropped}
	}
	return all
}

// hush ends it, before the ledger: what was not delivered yet is, within a few
// seconds, or is lost.
func (d *desk) hush() {
	if d.telling.sdk == nil {
		return
	}
	d.telling.sdk.Shutdown()
	if d.telling.stop != nil {
		_ = d.telling.stop() // what is over cannot be ended
	}
	d.telling = telling{}
}

// examineTelling tries where telemetry goes.
func (a *app) examineTelling(ctx context.Context, e *examination, c config.Config) {
	s, err := a.telling(c)
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
