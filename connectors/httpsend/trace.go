package httpsend

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceHeader is the header of the W3C trace context. It is the only one that goes
// to a destination: tracestate and baggage hold what others put there, for each
// other.
const traceHeader = "traceparent"

// Traceparent is the trace that a context is in, as the header has it; "" where it
// is in none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceHeader]
}

// traced writes the trace of a request's context into it, unless its builder has done so.
func traced(req *http.Request) {
	if req.Header.Get(traceHeader) != "" {
		return
	}
	if text := Traceparent(req.Context()); text != "" {
		req.Header.Set(traceHeader, text)
	}
}
