package otel

import (
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Of the traces that begin here so many are sampled in each second, however many there are and
// whenever they come. Those of callers that record theirs are all sampled, and count for nothing.
func TestSampledTracesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(defaultSampler())).Tracer("test")
		const busy = 10 * sampledPerSecond
		callers := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
		for second, come := range []struct{ after, each time.Duration }{{}, {time.Second, 0}, {time.Millisecond, time.Second / busy}, {0, time.Second / busy}} {
			time.Sleep(come.after)
			sampled := 0
			for range busy {
				time.Sleep(come.each)
				if _, span := tracer.Start(t.Context(), "root"); span.SpanContext().IsSampled() {
					sampled++
				}
				if _, span := tracer.Start(callers, "part"); !span.SpanContext().IsSampled() {
					t.Fatal("the trace of a caller that records it is not sampled")
				}
			}
			if sampled != sampledPerSecond {
				t.Errorf("second %d: %d traces are sampled, want %d", second, sampled, sampledPerSecond)
			}
		}
	})
}
