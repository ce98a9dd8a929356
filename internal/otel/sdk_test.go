package otel_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/log"
	sdktrace "go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/otel/oteltest"
)

// none is an environment without variables.
func none(string) string { return "" }

func start(t *testing.T, s otel.Settings) *otel.SDK {
	t.Helper()
	k, err := otel.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// emit emits n spans within one, n events, and n of a number.
func emit(k *otel.SDK, n int) {
	ctx, root := k.Tracer().Tracer("test").Start(context.Background(), "root")
	count, _ := k.Meter().Meter("test").Int64Counter("things")
	for range n {
		in, span := k.Tracer().Tracer("test").Start(ctx, "thing", sdktrace.WithSpanKind(sdktrace.SpanKindClient))
		var r log.Record
		r.SetEventName("happened")
		r.SetTimestamp(time.Now())
		k.Events().Logger("test").Emit(in, r)
		count.Add(ctx, 1)
		span.End()
	}
	root.End()
}

func TestAllSignalsArrive(t *testing.T) {
	r := oteltest.Start(t)
	k := start(t, otel.Settings{Endpoint: r.URL, Headers: map[string]string{"Authorization": "Basic eDp5"}, Version: "1.2.3", Env: none})
	emit(k, 3)
	k.Shutdown()
	spans := r.Spans()
	if len(spans) != 4 {
		t.Fatalf("%d spans, want 4", len(spans))
	}
	for _, s := range spans {
		if s.Name == "thing" && !bytes.Equal(s.ParentSpanId, spans[3].SpanId) {
			t.Error("a span has lost its parent")
		}
	}
	if got := r.Records(); len(got) != 3 || got[0].EventName != "happened" || !bytes.Equal(got[0].TraceId, spans[0].TraceId) || !bytes.Equal(got[0].SpanId, spans[0].SpanId) {
		t.Errorf("events: %v", got)
	}
	if got := r.Metrics(); len(got) != 1 || got[0].Name != "things" || got[0].GetSum().DataPoints[0].GetAsInt() != 3 {
		t.Errorf("metrics: %v", got)
	}
	for _, from := range r.Resources() {
		a := oteltest.Attributes(from.Attributes)
		if a["service.name"] != "readback" || a["service.version"] != "1.2.3" || a["telemetry.sdk.language"] != "go" {
			t.Errorf("resource: %v", a)
		}
	}
	paths := map[string]bool{}
	for _, req := range r.Requests() {
		paths[req.URL.Path] = req.Header.Get("Authorization") == "Basic eDp5"
	}
	if diff := cmp.Diff(map[string]bool{"/v1/traces": true, "/v1/metrics": true, "/v1/logs": true}, paths); diff != "" {
		t.Errorf("who was asked, with the header (-want +got):\n%s", diff)
	}
	want := map[string]otel.Delivery{"traces": {Delivered: 4}, "metrics": {Delivered: 1}, "events": {Delivered: 3}}
	if diff := cmp.Diff(want, k.Deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// The variables of OpenTelemetry count where the settings say nothing.
func TestStandardVariables(t *testing.T) {
	r := oteltest.Start(t)
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_METRICS_EXPORTER": "none",
		"OTEL_SERVICE_NAME": "till", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
	} {
		t.Setenv(name, value)
	}
	s := otel.Settings{NoEvents: true}
	if !s.On() {
		t.Fatal("an endpoint in the environment does not count")
	}
	k := start(t, s)
	emit(k, 1)
	k.Shutdown()
	if len(r.Spans()) != 2 || len(r.Metrics()) != 0 || len(r.Records()) != 0 {
		t.Errorf("%d spans, %d metrics, %d events; want spans alone", len(r.Spans()), len(r.Metrics()), len(r.Records()))
	}
	if got := r.Requests()[0].Header.Get("X-Key"); got != "a b" {
		t.Errorf("the header is %q", got)
	}
	if a := oteltest.Attributes(r.Resources()[0].Attributes); a["service.name"] != "till" || a["deployment.environment.name"] != "test" {
		t.Errorf("resource: %v", a)
	}
}

func TestWhenItIsOff(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		settings otel.Settings
		env      map[string]string
		want     bool
	}{
		"no settings":   {"nothing is exported by default", otel.Settings{}, nil, false},
		"an endpoint":   {"", otel.Settings{Endpoint: "http://127.0.0.1:1"}, nil, true},
		"a variable":    {"", otel.Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		"of one signal": {"", otel.Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true},
		"of one that is left out": {"", otel.Settings{NoTraces: true},
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, false},
		"disabled": {"the operator's variable wins", otel.Settings{Endpoint: "http://127.0.0.1:1"}, map[string]string{"OTEL_SDK_DISABLED": "TRUE"}, false},
		"no exporters": {"", otel.Settings{Endpoint: "http://127.0.0.1:1"},
			map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.settings.Env = func(name string) string { return c.env[name] }
			if got := c.settings.On(); got != c.want {
				t.Errorf("on: %v, want %v: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestBadSettings(t *testing.T) {
	for name, c := range map[string]struct {
		reason, endpoint string
		env              map[string]string
		want             string
	}{
		"no address":        {"an exporter would take localhost", "collector", nil, "endpoint is no address"},
		"another protocol":  {"", "grpc://collector:4317", nil, "endpoint is no address"},
		"a password":        {"it would stand in logs", "https://user:hunter2@collector", nil, "endpoint holds a password"},
		"a query":           {"paths are added behind it", "https://collector/?key=hunter2", nil, "endpoint has a query"},
		"a bad variable":    {"an exporter would take localhost", "", map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT is no address"},
		"gRPC":              {"it is not spoken", "http://127.0.0.1:1", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL asks for a protocol"},
		"an exporter":       {"it is not there", "http://127.0.0.1:1", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER is not known"},
		"neither yes or no": {"an operator who wants it off must not be ignored", "http://127.0.0.1:1", map[string]string{"OTEL_SDK_DISABLED": "yes"}, "OTEL_SDK_DISABLED is neither"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := otel.Start(t.Context(), otel.Settings{Endpoint: c.endpoint, Env: func(name string) string { return c.env[name] }})
			if !errors.Is(err, otel.ErrSettings) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v; want %q: %s", err, c.want, c.reason)
			}
		})
	}
	t.Run("a certificate that is not there", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")
		if _, err := otel.Start(t.Context(), otel.Settings{Endpoint: "https://127.0.0.1:1"}); !errors.Is(err, otel.ErrSettings) {
			t.Errorf("%v; want an error: it would be delivered to any server that answers", err)
		}
	})
}

func TestHeaders(t *testing.T) {
	got, err := otel.Headers("Authorization=Basic%20eDp5==, x-key = v ")
	if diff := cmp.Diff(map[string]string{"Authorization": "Basic eDp5==", "x-key": "v"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, text := range []string{"", "hunter2", "=hunter2", "a b=hunter2", "a=%zz", "a=b,", "a=x%0d%0aHost: y"} {
		if got, err := otel.Headers(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Failed deliveries are counted and logged, without a receiver's answers filling the log.
func TestTroubleIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		answer func(http.ResponseWriter, *http.Request) bool
	}{
		"down": {"nothing listens", nil},
		"broken": {"it answers 500", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
		"garbage": {"it answers what is no answer", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte(strings.Repeat("\xff", 5000)))
			return true
		}},
		"long": {"it answers at length", func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, strings.Repeat("x", 5000), http.StatusBadRequest)
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := oteltest.Start(t)
			r.Answer(c.answer)
			if c.answer == nil {
				r.Close()
			}
			var log bytes.Buffer
			k := start(t, otel.Settings{Endpoint: r.URL, Env: none, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			emit(k, 3)
			k.Shutdown()
			want := map[string]otel.Delivery{"traces": {Failed: 4}, "metrics": {Failed: 1}, "events": {Failed: 3}}
			if diff := cmp.Diff(want, k.Deliveries()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || log.Len() > 1000 {
				t.Errorf("%d lines are logged, want 1 of at most 1000 bytes:\n%s", lines, log.String())
			}
		})
	}
}

// A receiver that never answers blocks no caller, and what does not fit into the queue is dropped
// and counted.
func TestAReceiverThatHangs(t *testing.T) {
	r := oteltest.Start(t)
	hang := make(chan struct{})
	r.Answer(func(http.ResponseWriter, *http.Request) bool { <-hang; return true })
	var log bytes.Buffer
	k := start(t, otel.Settings{Endpoint: r.URL, Env: none, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const many = 9000 // more than wait at once
	emit(k, many)
	k.Shutdown()
	close(hang)
	for signal, total := range map[string]int64{"traces": many + 1, "events": many} {
		d := k.Deliveries()[signal]
		if d.Delivered != 0 || d.Dropped < total-8192 || d.Dropped+d.Failed != total {
			t.Errorf("%s: %+v of %d; everything must be counted", signal, d, total)
		}
	}
	if !strings.Contains(log.String(), "telemetry is dropped") {
		t.Errorf("nothing was logged: %s", log.String())
	}
}

func TestAnEndpointCanBeTried(t *testing.T) {
	r := oteltest.Start(t)
	if err := otel.Try(t.Context(), otel.Settings{Endpoint: r.URL, Env: none}); err != nil {
		t.Error(err)
	}
	if err := otel.Try(t.Context(), otel.Settings{Endpoint: r.URL, NoTraces: true, Env: none}); err != nil {
		t.Error(err)
	}
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusUnauthorized); return true })
	if err := otel.Try(t.Context(), otel.Settings{Endpoint: r.URL, Env: none}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong login: %v", err)
	}
	r.Close()
	if err := otel.Try(t.Context(), otel.Settings{Endpoint: r.URL, Env: none}); err == nil {
		t.Error("no receiver is there, and there is no error")
	}
}
