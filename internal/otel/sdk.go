package otel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	lognoop "go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"
)

const (
	// maxWaiting bounds the spans, and the events, that wait to be exported: about
	// a second of a busy server, and some 20 MB. What comes on top is dropped.
	maxWaiting = 8192
	// maxBatch bounds one request: below the 4 MiB that collectors take by default.
	maxBatch = 1024
	// batchEvery is how soon ended spans are exported where traffic is low.
	batchEvery = 2 * time.Second
	// exportTimeout bounds the delivery of one batch with all its repeats, and
	// firstRetry and longestRetry the pauses between these.
	exportTimeout = 30 * time.Second
	firstRetry    = time.Second
	longestRetry  = 10 * time.Second
	// shutdownTimeout bounds how long the program waits at its end for what was
	// not delivered yet.
	shutdownTimeout = 3 * time.Second
	// sampledPerSecond is how many of the traces that begin here are recorded: all of a quiet
	// server. Those of all writes cost a busy one more than a tenth of its throughput.
	sampledPerSecond = 20
	// maxValue bounds the value of an attribute in bytes: arguments and results, where they are
	// exported at all, can be long.
	maxValue = 16 << 10
)

// SDK is what takes telemetry and delivers it. Create one with [Start] and end it
// with [SDK.Shutdown].
type SDK struct {
	settings Settings
	resource *resource.Resource
	complain *complaints
	end      context.CancelFunc
	queues   [3]*queue // traces, metrics, events

	tracer trace.TracerProvider
	meter  metric.MeterProvider
	events log.LoggerProvider
	ends   []func(context.Context) error
}

// Start makes what delivers telemetry as the settings say. It dials nothing: the
// first batch does. An error wraps [ErrSettings].
func Start(ctx context.Context, s Settings) (*SDK, error) {
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	ended, end := context.WithCancel(context.Background())
	k := &SDK{settings: s, complain: &complaints{log: s.Logger}, end: end,
		tracer: tracenoop.NewTracerProvider(), meter: metricnoop.NewMeterProvider(), events: lognoop.NewLoggerProvider()}
	for i, which := range []signal{traces, metrics, events} {
		k.queues[i] = &queue{signal: which.word, ended: ended, complain: k.complain}
	}
	// Exporters report errors in variables only to the handler, and log them past our log.
	var collected collected
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(&collected)
	err := errors.Join(k.make(ctx), collected.err())
	otel.SetErrorHandler(k.complain)
	if err != nil {
		k.Shutdown()
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return k, nil
}

// collected collects errors.
type collected struct {
	mu  sync.Mutex
	all []error
}

// Handle implements the API's error handler.
func (h *collected) Handle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, err)
}

func (h *collected) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.all...)
}

func (k *SDK) make(ctx context.Context) (err error) {
	k.resource, err = resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "readback"), attribute.String("service.version", k.settings.Version)),
		resource.WithFromEnv()) // which comes before ours
	if err != nil {
		return err
	}
	for which, begin := range map[signal]func(context.Context) error{traces: k.makeTraces, metrics: k.makeMetrics, events: k.makeEvents} {
		if !k.settings.exports(which) {
			continue
		}
		if err := begin(ctx); err != nil {
			return fmt.Errorf("%s: %w", which.word, err)
		}
	}
	return nil
}

func (k *SDK) makeTraces(ctx context.Context) error {
	q := k.queues[0]
	e, err := otlptrace.New(ctx, otlptracehttp.NewClient(k.traceOptions(true)...))
	if err != nil {
		return err
	}
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxValue
	}
	batches := sdktrace.NewBatchSpanProcessor(spanExporter{e, q}, sdktrace.WithMaxQueueSize(maxWaiting), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(exportTimeout))
	o := []sdktrace.TracerProviderOption{sdktrace.WithResource(k.resource), sdktrace.WithRawSpanLimits(limits), sdktrace.WithSpanProcessor(spans{batches, q})}
	if k.settings.env("OTEL_TRACES_SAMPLER") == "" {
		o = append(o, sdktrace.WithSampler(defaultSampler()))
	}
	p := sdktrace.NewTracerProvider(o...)
	k.tracer, k.ends = p, append(k.ends, p.Shutdown)
	return nil
}

// defaultSampler samples where OTEL_TRACES_SAMPLER is not set.
func defaultSampler() sdktrace.Sampler {
	return sampler{sdktrace.ParentBased(bounded{sdktrace.AlwaysSample(), rate.NewLimiter(sampledPerSecond, sampledPerSecond)})}
}

// sampler also records the spans that package engine begins anew because the write turned out to
// be unusual.
type sampler struct{ sdktrace.Sampler }

// ShouldSample implements [sdktrace.Sampler].
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if slices.ContainsFunc(p.Attributes, func(a attribute.KeyValue) bool { return a.Key == "readback.unusual" }) {
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

// bounded samples so many traces a second. It describes itself as the sampler of them.
type bounded struct {
	sdktrace.Sampler
	rate *rate.Limiter
}

// ShouldSample implements [sdktrace.Sampler].
func (b bounded) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if !b.rate.Allow() {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return b.Sampler.ShouldSample(p)
}

func (k *SDK) traceOptions(again bool) []otlptracehttp.Option {
	o := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: again, InitialInterval: firstRetry, MaxInterval: longestRetry, MaxElapsedTime: exportTimeout})}
	if u := k.settings.url(traces); u != "" {
		o = append(o, otlptracehttp.WithEndpointURL(u))
	}
	if k.settings.Headers != nil {
		o = append(o, otlptracehttp.WithHeaders(k.settings.Headers))
	}
	return o
}

func (k *SDK) makeMetrics(ctx context.Context) error {
	e, err := otlpmetrichttp.New(ctx, k.metricOptions(true)...)
	if err != nil {
		return err
	}
	p := sdkmetric.NewMeterProvider(sdkmetric.WithResource(k.resource), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numberExporter{e, k.queues[1]})))
	k.meter, k.ends = p, append(k.ends, p.Shutdown)
	return nil
}

func (k *SDK) metricOptions(again bool) []otlpmetrichttp.Option {
	o := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: again, InitialInterval: firstRetry, MaxInterval: longestRetry, MaxElapsedTime: exportTimeout})}
	if u := k.settings.url(metrics); u != "" {
		o = append(o, otlpmetrichttp.WithEndpointURL(u))
	}
	if k.settings.Headers != nil {
		o = append(o, otlpmetrichttp.WithHeaders(k.settings.Headers))
	}
	return o
}

func (k *SDK) makeEvents(ctx context.Context) error {
	q := k.queues[2]
	o := []otlploghttp.Option{otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: longestRetry, MaxElapsedTime: exportTimeout})}
	if u := k.settings.url(events); u != "" {
		o = append(o, otlploghttp.WithEndpointURL(u))
	}
	if k.settings.Headers != nil {
		o = append(o, otlploghttp.WithHeaders(k.settings.Headers))
	}
	e, err := otlploghttp.New(ctx, o...)
	if err != nil {
		return err
	}
	batches := sdklog.NewBatchProcessor(recordExporter{e, q}, sdklog.WithMaxQueueSize(maxWaiting), sdklog.WithExportMaxBatchSize(maxBatch),
		sdklog.WithExportInterval(batchEvery), sdklog.WithExportTimeout(exportTimeout))
	p := sdklog.NewLoggerProvider(sdklog.WithResource(k.resource), sdklog.WithAttributeValueLengthLimit(maxValue), sdklog.WithProcessor(records{batches, q}))
	k.events, k.ends = p, append(k.ends, p.Shutdown)
	return nil
}

// Tracer takes spans; without an exporter they are dropped.
func (k *SDK) Tracer() trace.TracerProvider { return k.tracer }

// Meter takes measurements.
func (k *SDK) Meter() metric.MeterProvider { return k.meter }

// Events takes events.
func (k *SDK) Events() log.LoggerProvider { return k.events }

// Shutdown delivers what waits, within three seconds: what is not delivered by
// then is lost, and counted.
func (k *SDK) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, end := range k.ends {
		wg.Go(func() {
			if err := end(ctx); err != nil {
				k.complain.Handle(err)
			}
		})
	}
	wg.Wait()
	k.end()
	for _, q := range k.queues {
		if n := q.leave(q.waiting.Load()); n > 0 {
			q.failed.Add(n)
			k.complain.log.Warn("telemetry was not delivered before the end, and is lost", "signal", q.signal, "lost", n)
		}
	}
}

// Delivery counts the telemetry of one signal: spans, events, and for metrics
// whole exports.
type Delivery struct {
	// Delivered was received. Failed could not be delivered, or was refused. Dropped did not fit
	// into the queue.
	Delivered, Failed, Dropped int64
}

// Deliveries counts by signal: traces, metrics, events.
func (k *SDK) Deliveries() map[string]Delivery {
	all := map[string]Delivery{}
	for _, q := range k.queues {
		all[q.signal] = Delivery{q.delivered.Load(), q.failed.Load(), q.dropped.Load()}
	}
	return all
}
