// Package oteltest is a receiver of OTLP over HTTP for tests: it keeps what it is
// sent, and can be told to be down, slow or broken.
//
// It does not know what is told, and checks nothing of it.
package oteltest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds a request in bytes: exporters send less.
const maxBody = 16 << 20

// Receiver keeps what it is sent. Create one with [Start].
type Receiver struct {
	// URL is where it listens, without the path of a signal.
	URL string

	server *httptest.Server

	mu       sync.Mutex
	answer   func(http.ResponseWriter, *http.Request) bool
	requests []*http.Request
	spans    []*traces.Span
	numbers  []*metrics.Metric
	records  []*logs.LogRecord
	from     []*resource.Resource
	bodies   []string
}

// Start starts one on this machine. It ends with the test.
func Start(tb testing.TB) *Receiver {
	tb.Helper()
	r := &Receiver{}
	r.server = httptest.NewServer(r)
	r.URL = r.server.URL
	tb.Cleanup(r.Close)
	return r
}

// Close stops it and cuts off connected clients: from then on nothing listens there.
func (r *Receiver) Close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Answer makes it answer by a function that reports whether it did; nil makes it
// well behaved again.
func (r *Receiver) Answer(by func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = by
}

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := read(req)
	r.mu.Lock()
	r.requests = append(r.requests, req)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil && answer(w, req) {
		return
	}
	var into, reply proto.Message
	switch req.URL.Path {
	case "/v1/traces":
		into, reply = &coltrace.ExportTraceServiceRequest{}, &coltrace.ExportTraceServiceResponse{}
	case "/v1/metrics":
		into, reply = &colmetrics.ExportMetricsServiceRequest{}, &colmetrics.ExportMetricsServiceResponse{}
	case "/v1/logs":
		into, reply = &collogs.ExportLogsServiceRequest{}, &collogs.ExportLogsServiceResponse{}
	default:
		http.NotFound(w, req)
		return
	}
	if err == nil {
		err = proto.Unmarshal(body, into)
	}
	if err != nil || req.Method != http.MethodPost {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	r.keep(into)
	text, err := proto.Marshal(reply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(text) // who went away needs no answer
}

func read(req *http.Request) ([]byte, error) {
	from := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(req.Body)
		if err != nil {
			return nil, err
		}
		from = unpacked
	}
	return io.ReadAll(io.LimitReader(from, maxBody))
}

func (r *Receiver) keep(m proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, protojson.Format(m))
	switch m := m.(type) {
	case *coltrace.ExportTraceServiceRequest:
		for _, from := range m.ResourceSpans {
			r.from = append(r.from, from.Resource)
			for _, scope := range from.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	case *colmetrics.ExportMetricsServiceRequest:
		for _, from := range m.ResourceMetrics {
			r.from = append(r.from, from.Resource)
			for _, scope := range from.ScopeMetrics {
				r.numbers = append(r.numbers, scope.Metrics...)
			}
		}
	case *collogs.ExportLogsServiceRequest:
		for _, from := range m.ResourceLogs {
			r.from = append(r.from, from.Resource)
			for _, scope := range from.ScopeLogs {
				r.records = append(r.records, scope.LogRecords...)
			}
		}
	}
}

// Requests are all that came, whatever was answered.
func (r *Receiver) Requests() []*http.Request { return kept(r, &r.requests) }

// Spans are those that were taken.
func (r *Receiver) Spans() []*traces.Span { return kept(r, &r.spans) }

// Metrics are those that were taken, each once for every export.
func (r *Receiver) Metrics() []*metrics.Metric { return kept(r, &r.numbers) }

// Records are the records of logs that were taken, events among them.
func (r *Receiver) Records() []*logs.LogRecord { return kept(r, &r.records) }

// Resources are those of the senders, each once for every export.
func (r *Receiver) Resources() []*resource.Resource { return kept(r, &r.from) }

// Texts is all that was received, as JSON, to search for what must not be there.
func (r *Receiver) Texts() []string { return kept(r, &r.bodies) }

func kept[T any](r *Receiver, all *[]T) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]T(nil), *all...)
}

// Attributes are attributes by name, values as text.
func Attributes(all []*common.KeyValue) map[string]string {
	found := map[string]string{}
	for _, kv := range all {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			found[kv.Key] = v.StringValue
		default:
			found[kv.Key] = protojson.MarshalOptions{}.Format(kv.Value)
		}
	}
	return found
}
