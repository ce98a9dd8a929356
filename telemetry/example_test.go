package telemetry_test

import (
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
)

// Metrics of an engine, of which an exporter of OpenTelemetry is the reader. Spans need only
// engine.Options.Tracer.
func Example() {
	led, reg := ledger.NewMemory(), new(connectors.Registry)
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	eng := engine.New(led, reg, &engine.Options{Observer: telemetry.NewMeter(metrics, reg).Observe})
	defer eng.Close()
	stop, err := telemetry.Gauges(metrics, reg, led) // how many writes wait, and since when
	if err != nil {
		panic(err)
	}
	defer func() { _ = stop() }()
	// Output:
}
