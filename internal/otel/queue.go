package otel

import (
	"context"
	"sync/atomic"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxComplaint bounds what a log line says of an error: it holds what the
// receiver answered.
const maxComplaint = 300

// queue bounds and counts what waits to be exported. The processors of the SDK are
// bounded as well, but keep to themselves what they drop.
type queue struct {
	signal   string
	ended    context.Context // nothing is delivered any more
	complain *complaints

	waiting, delivered, failed, dropped atomic.Int64
}

// enter reports whether the queue has a free place.
func (q *queue) enter() bool {
	if q.waiting.Add(1) <= maxWaiting {
		return true
	}
	q.waiting.Add(-1)
	q.dropped.Add(1)
	q.complain.say("telemetry is dropped: it comes faster than it can be delivered", "signal", q.signal, "dropped", q.dropped.Load())
	return false
}

// leave takes out as many of n as still wait. At the end those that wait are dropped and counted
// before their exporter has finished.
func (q *queue) leave(n int64) int64 {
	for {
		waiting := q.waiting.Load()
		out := min(n, waiting)
		if q.waiting.CompareAndSwap(waiting, waiting-out) {
			return out
		}
	}
}

// deliver exports n that waited. A failure is counted and logged only here.
func (q *queue) deliver(ctx context.Context, n int, export func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ended, cancel)()
	err := export(ctx)
	gone := q.leave(int64(n))
	if err == nil {
		q.delivered.Add(gone)
		return
	}
	q.failed.Add(gone)
	text := err.Error()
	q.complain.say("telemetry could not be delivered; writes are not affected", "signal", q.signal,
		"error", text[:min(len(text), maxComplaint)], "lost", q.failed.Load())
}

// spans wraps the processor of spans.
type spans struct {
	sdktrace.SpanProcessor
	q *queue
}

// OnEnd implements [sdktrace.SpanProcessor]. No sampler that can be set records what
// it does not sample, so whatever ends here is to be exported.
func (p spans) OnEnd(s sdktrace.ReadOnlySpan) {
	if p.q.enter() {
		p.SpanProcessor.OnEnd(s)
	}
}

// spanExporter wraps the exporter of spans.
type spanExporter struct {
	sdktrace.SpanExporter
	q *queue
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e spanExporter) ExportSpans(ctx context.Context, all []sdktrace.ReadOnlySpan) error {
	e.q.deliver(ctx, len(all), func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, all) })
	return nil
}

// records wraps the processor of events.
type records struct {
	sdklog.Processor
	q *queue
}

// OnEmit implements [sdklog.Processor].
func (p records) OnEmit(ctx context.Context, r *sdklog.Record) error {
	if !p.q.enter() {
		return nil
	}
	return p.Processor.OnEmit(ctx, r)
}

// recordExporter wraps the exporter of events.
type recordExporter struct {
	sdklog.Exporter
	q *queue
}

// Export implements [sdklog.Exporter].
func (e recordExporter) Export(ctx context.Context, all []sdklog.Record) error {
	if len(all) > 0 {
		e.q.deliver(ctx, len(all), func(ctx context.Context) error { return e.Exporter.Export(ctx, all) })
	}
	return nil
}

// numberExporter wraps the exporter of metrics. These add up, so that what could not be delivered
// once comes with the next.
type numberExporter struct {
	sdkmetric.Exporter
	q *queue
}

// Export implements [sdkmetric.Exporter].
func (e numberExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	e.q.waiting.Add(1)
	e.q.deliver(ctx, 1, func(ctx context.Context) error { return e.Exporter.Export(ctx, all) })
	return nil
}
