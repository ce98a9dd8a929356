package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Scope is the instrumentation scope of all metrics here.
const Scope = "github.com/readback-go/readback/telemetry"

// The attributes of metrics.
const (
	keyDestination = attribute.Key("readback.destination")
	keyKind        = attribute.Key("readback.kind")
	keyStatus      = attribute.Key("readback.status")
	keyFate        = attribute.Key("readback.fate")
	keyVerdict     = attribute.Key("readback.verdict")
	keyRule        = attribute.Key("readback.rule")
	keyCause       = attribute.Key("readback.cause")
	keyState       = attribute.Key("readback.state")
	keyBy          = attribute.Key("readback.prevented_by")

	keyOperation = attribute.Key("gen_ai.operation.name")
	keyTool      = attribute.Key("gen_ai.tool.name")
	keyError     = attribute.Key("error.type")
)

// instruments makes instruments. One that the API's implementation refuses counts nothing, and is
// reported to its error handler.
type instruments struct{ from metric.Meter }

func (i instruments) counter(name, unit, what string) metric.Int64Counter {
	c, err := i.from.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	if err != nil {
		otel.Handle(err)
		return noop.Int64Counter{}
	}
	return c
}

func (i instruments) seconds(name, what string, bounds []float64) metric.Float64Histogram {
	h, err := i.from.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		otel.Handle(err)
		return noop.Float64Histogram{}
	}
	return h
}

func (i instruments) pieces(name, unit, what string) metric.Int64Histogram {
	h, err := i.from.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(pieceBounds...))
	if err != nil {
		otel.Handle(err)
		return noop.Int64Histogram{}
	}
	return h
}

// with returns attributes as a measurement option.
func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
