package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	logembedded "go.opentelemetry.io/otel/log/embedded"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// TestSpanAttributes pins every attribute of one lifecycle: a changed name breaks operators'
// dashboards.
func TestSpanAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := newTape()
		b := newBench(t, orders.Native.Options(), spans.options())
		w := order("A-1", intent.Create)
		w.CorrelationID = "req-9"
		out := b.do(w)
		got := map[string]string{}
		for i, s := range spans.Started() {
			for _, kv := range s.Attributes() {
				got[fmt.Sprint(i, " ", s.Name(), " ", kv.Key)] = kv.Value.String()
			}
		}
		want := map[string]string{}
		add := func(span string, pairs ...string) {
			for i := 0; i < len(pairs); i += 2 {
				want[span+" "+pairs[i]] = pairs[i+1]
			}
		}
		add("0 execute_tool orders.create", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "orders.create",
			"readback.stage", "new", "readback.write.id", string(out.ID), "readback.tenant", "acme", "readback.workflow", "wf-1", "readback.step", "pay A-1",
			"readback.destination", "orders", "readback.kind", "order", "readback.correlation_id", "req-9",
			"readback.status", "verified", "readback.replayed", "false", "readback.sends", "1", "readback.reads", "2", "readback.verdict", "verified", "readback.rule", "accept")
		at := []string{"readback.write.id", string(out.ID), "server.address", "orders.invalid", "server.port", "80", "readback.destination", "orders", "readback.kind", "order"}
		add("1 read", append(at, "readback.before", "true", "readback.records", "0", "readback.strength", "strong", "readback.verdict", "indeterminate", "readback.path", "list")...)
		add("2 reserve", "readback.replayed", "false")
		add("3 send", append(at, "readback.attempt", "1", "readback.conditional", "false", "readback.conflict", "false", "readback.fate", "answered", "readback.code", "201")...)
		add("4 read", append(at, "readback.before", "false", "readback.records", "1", "readback.strength", "strong", "readback.verdict", "verified", "readback.path", "list")...)
		add("5 decide", "readback.verdict", "verified", "readback.decision", "accept", "readback.rule", "accept")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
	})
}

// TestSpansContainContentOnlyWhenConfigured uses a value that is sensitive and one that is not.
func TestSpansContainContentOnlyWhenConfigured(t *testing.T) {
	vault, err := redact.New([]redact.Key{{ID: "k1", Secret: bytes.Repeat([]byte{7}, redact.KeySize)}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content, plain bool
		reason         string
	}{
		"default": {false, false, "nothing that was asked for leaves"},
		"content": {true, true, "spans contain what is configured, without sensitive values"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := newTape()
				opts := spans.options()
				opts.Vault, opts.TraceContent = vault, c.content
				b := newBench(t, orders.Native.Options(), opts)
				w := order("A-1", intent.Create)
				w.Expect = intent.Fields{"amount_cents": jsonNumber(1999), "note": "plain-canary", "customer": "secret-canary"}
				w.Sensitive = []string{"/customer"}
				b.do(w)
				b.set(orders.Fault{Kind: orders.DroppedField, Times: 1})
				b.do(call(w, 1))
				b.engine.Close()
				everything := strings.Join(spans.events.reported, " ")
				for _, s := range spans.Started() {
					everything += s.Name() + " " + s.Status().Description
					for _, kv := range s.Attributes() {
						everything += " " + pair(kv)
						if kv.Key == "gen_ai.tool.call.id" {
							t.Error("a key of ours is given out as the provider's id")
						}
					}
				}
				if strings.Contains(everything, "secret-canary") || strings.Contains(everything, "rbs1:") {
					t.Errorf("spans contain sensitive values: %s", everything)
				}
				for _, part := range []string{"plain-canary", "redacted:", "gen_ai.tool.call.arguments=", "gen_ai.tool.call.result=", "gen_ai.evaluation.explanation="} {
					if strings.Contains(everything, part) != c.plain {
						t.Errorf("%q recorded: %v, want %v: %s", part, !c.plain, c.plain, c.reason)
					}
				}
			})
		})
	}
}

// hostile is a provider of spans and events in which everything panics from the
// n-th call on.
type hostile struct {
	embedded.TracerProvider
	left *int
}

func (h hostile) strike() {
	if *h.left--; *h.left < 0 {
		panic("telemetry is down")
	}
}

func (h hostile) Tracer(string, ...trace.TracerOption) trace.Tracer {
	h.strike()
	return hostileTracer{h: h}
}

type hostileTracer struct {
	embedded.Tracer
	h hostile
}

func (t hostileTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.h.strike()
	s := hostileSpan{h: t.h}
	return trace.ContextWithSpan(ctx, s), s
}

type hostileSpan struct {
	embedded.Span
	h hostile
}

func (s hostileSpan) End(...trace.SpanEndOption)            { s.h.strike() }
func (s hostileSpan) AddEvent(string, ...trace.EventOption) { s.h.strike() }
func (s hostileSpan) AddLink(trace.Link)                    { s.h.strike() }
func (s hostileSpan) IsRecording() bool                     { s.h.strike(); return true }
func (s hostileSpan) RecordError(error, ...trace.EventOption) {
	s.h.strike()
}
func (s hostileSpan) SpanContext() trace.SpanContext       { return trace.SpanContext{} } // no more than an accessor
func (s hostileSpan) SetStatus(codes.Code, string)         { s.h.strike() }
func (s hostileSpan) SetName(string)                       { s.h.strike() }
func (s hostileSpan) SetAttributes(...attribute.KeyValue)  { s.h.strike() }
func (s hostileSpan) TracerProvider() trace.TracerProvider { return s.h }

type hostileEvents struct {
	logembedded.LoggerProvider
}

func (hostileEvents) Logger(string, ...log.LoggerOption) log.Logger { panic("telemetry is down") }

// Telemetry that fails, at any moment, fails no write.
func TestTelemetryThatPanicsFailsNoWrite(t *testing.T) {
	for n := range 40 {
		synctest.Test(t, func(t *testing.T) {
			left := n
			h := hostile{left: &left}
			b := newBench(t, orders.Native.Options(), &engine.Options{Tracer: h, Events: hostileEvents{}})
			for range 2 {
				if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || out.Sends != 1 {
					t.Errorf("with %d calls that work: %+v", n, out)
				}
			}
			_, err := b.engine.Do(t.Context(), intent.WriteIntent{})
			if err == nil {
				t.Error("an empty intent was accepted")
			}
		})
	}
}
