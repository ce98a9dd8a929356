package command

import (
	"context"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/server"
)

// asHeaders replaces the placeholder of an unread secret with headers.
func asHeaders(secret string) string {
	if isAnySecret(secret) {
		return "Authorization=" + secret
	}
	return secret
}

// checkTelemetry tests the telemetry endpoint.
func (a *app) checkTelemetry(ctx context.Context, e *examination, c config.Config) {
	s, err := server.TelemetrySettings(c, a.env)
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
