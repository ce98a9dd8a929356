package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/embedded"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/engine"
)

// tape records an engine's telemetry.
type tape struct {
	*tracetest.SpanRecorder
	provider *sdk.TracerProvider
	events   events
}

func newTape(o ...sdk.TracerProviderOption) *tape {
	t := &tape{SpanRecorder: tracetest.NewSpanRecorder()}
	t.provider = sdk.NewTracerProvider(append(o, sdk.WithSpanProcessor(t))...)
	return t
}

func (t *tape) options() *engine.Options {
	return &engine.Options{Tracer: t.provider, Events: &t.events}
}

// events records log records, as a separate provider.
type events struct {
	embedded.LoggerProvider
	mu       sync.Mutex
	reported []string
	in       []trace.SpanContext
}

func (e *events) Logger(string, ...log.LoggerOption) log.Logger { return logger{e: e} }

type logger struct {
	embedded.Logger
	e *events
}

func (logger) Enabled(context.Context, log.EnabledParameters) bool { return true }

func (l logger) Emit(ctx context.Context, r log.Record) {
	var all []string
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		if kv.Key != "readback.write.id" {
			all = append(all, pair(kv))
		}
		return true
	})
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.e.reported = append(l.e.reported, r.EventName()+" "+strings.Join(all, " "))
	l.e.in = append(l.e.in, trace.SpanContextFromContext(ctx))
}

func pair(kv attribute.KeyValue) string {
	return fmt.Sprintf("%s=%s", strings.TrimPrefix(string(kv.Key), "readback."), kv.Value.String())
}

// plainly are attributes that every span of a kind has, and default values: they are pinned
// once, in TestSpanAttributes.
var plainly = []string{
	"gen_ai.operation.name", "gen_ai.tool.name", "readback.write.id", "readback.tenant", "readback.workflow", "readback.step",
	"readback.destination", "readback.kind", "readback.path", "readback.strength", "readback.undoes", "readback.reads",
	"server.address", "server.port",
}

// tree returns the spans as text: one line each, below its parent, in the order in which they
// began. A span with a remote parent is at the left.
func (t *tape) tree() []string {
	var lines []string
	for _, s := range t.Started() {
		depth, parent := 0, s.Parent()
		for found := true; found; {
			found = false
			for _, other := range t.Started() {
				if parent.IsValid() && other.SpanContext().SpanID() == parent.SpanID() {
					depth, parent, found = depth+1, other.Parent(), true
					break
				}
			}
		}
		line := strings.Repeat("  ", depth) + s.Name()
		if s.SpanKind() != trace.SpanKindInternal {
			line += " (" + s.SpanKind().String() + ")"
		}
		if s.EndTime().IsZero() {
			line += " NOT ENDED"
		}
		for _, kv := range s.Attributes() {
			if !slices.Contains(plainly, string(kv.Key)) && kv.Value.String() != "false" {
				line += " " + pair(kv)
			}
		}
		if n := len(lines); n >= 3 && line == lines[n-2] && lines[n-1] == lines[n-3] {
			lines = lines[:n-1] // a repetition: how many there are is random
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// oneTrace fails where spans are in more than one trace.
func (t *tape) oneTrace(tt *testing.T) trace.TraceID {
	tt.Helper()
	all := t.Started()
	if len(all) == 0 {
		tt.Fatal("no spans")
	}
	id := all[0].SpanContext().TraceID()
	for _, s := range all {
		if s.SpanContext().TraceID() != id {
			tt.Errorf("span %q is in another trace", s.Name())
		}
	}
	return id
}

type sdkSpan = sdk.ReadOnlySpan
