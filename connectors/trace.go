package connectors

import (
	"context"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// TraceServer records in the span of a call the server that it goes to: the host and
// the port of the URL. Connectors call it before they connect. A tracer that panics
// fails no call.
func TraceServer(ctx context.Context, server *url.URL) {
	defer func() { _ = recover() }()
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	port, err := strconv.Atoi(server.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[server.Scheme]
	}
	span.SetAttributes(attribute.String("server.address", server.Hostname()), attribute.Int("server.port", port))
}
