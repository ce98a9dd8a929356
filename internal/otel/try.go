package otel

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Try sends an empty request to the configured endpoint, once, as an exporter would, and returns
// what is wrong with the answer.
func Try(ctx context.Context, s Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	k := &SDK{settings: s}
	if s.exports(traces) {
		return otlptracehttp.NewClient(k.traceOptions(false)...).UploadTraces(ctx, nil)
	}
	e, err := otlpmetrichttp.New(ctx, k.metricOptions(false)...)
	if err != nil {
		return err
	}
	return e.Export(ctx, &metricdata.ResourceMetrics{})
}
