package otel

import (
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Of the traces that begin here so many are sampled in each second, however many there are.
func TestSampledTracesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler{sdktrace.ParentBased(newBounded())})).Tracer("test")
		for second := range 3 {
			sampled := 0
			for range 10 * sampledPerSecond {
				if _, span := tracer.Start(t.Context(), "root"); span.SpanContext().IsSampled() {
					sampled++
				}
			}
			if sampled != sampledPerSecond {
				t.Errorf("second %d: %d traces are sampled, want %d", second, sampled, sampledPerSecond)
			}
			time.Sleep(time.Second)
		}
	})
}
