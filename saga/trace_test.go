package saga_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/saga"
)

const (
	begunIn     = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	cancelledIn = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	workedIn    = "00-11111111111111111111111111111111-2222222222222222-01"
)

// Every write of a saga, its undoings too, is in the trace that the saga was begun in, whichever
// worker carries it on. Events that another actor caused have that actor's trace.
func TestASagaStaysInItsTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		ctx := engine.WithTraceparent(context.Background(), begunIn)
		if _, err := b.runner.Begin(ctx, four()); err != nil {
			t.Fatal(err)
		}
		working, cancel := context.WithTimeout(engine.WithTraceparent(context.Background(), workedIn), time.Hour)
		defer cancel()
		s, err := b.runner.Run(working, "acme", "saga-1")
		if err != nil || s.State != saga.Undone {
			t.Fatalf("%+v, %v", s, err)
		}
		if s.Trace != begunIn || s.CorrelationID != strings.Split(begunIn, "-")[1] {
			t.Errorf("trace %q, correlation %q", s.Trace, s.CorrelationID)
		}
		if s.Back == nil || s.Back.Rule != "saga" || s.Back.Reason == "" || s.Back.At.IsZero() {
			t.Errorf("turned back by %+v", s.Back)
		}
		recs, err := b.ledger.List(ctx, ledger.Filter{Tenant: "acme"})
		if err != nil || len(recs) < 5 {
			t.Fatalf("%d writes, %v", len(recs), err)
		}
		for _, r := range recs {
			if r.Trace != begunIn || r.CorrelationID != s.CorrelationID {
				t.Errorf("write %s of step %s: trace %q, correlation %q", r.ID, r.Step, r.Trace, r.CorrelationID)
			}
			events, err := b.ledger.Events(ctx, "acme", r.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Trace != "" {
					t.Errorf("write %s: %s is reported as caused in trace %q", r.ID, e.Kind, e.Trace)
				}
			}
		}
	})
}

func TestWhoCancelsSaysInWhichTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), &engine.Options{Risks: []policies.RiskRule{{Name: "all"}}})
		if _, err := b.runner.Begin(engine.WithTraceparent(context.Background(), begunIn), four()); err != nil {
			t.Fatal(err)
		}
		b.run(time.Minute)
		s, err := b.runner.Cancel(engine.WithTraceparent(context.Background(), cancelledIn), "acme", "saga-1", "ada", "no longer wanted")
		if err != nil {
			t.Fatal(err)
		}
		want := saga.Decision{By: "ada", Reason: "no longer wanted", At: s.Back.At, Rule: "person", Trace: cancelledIn}
		if *s.Back != want {
			t.Errorf("decision %+v, want %+v", *s.Back, want)
		}
		events, err := b.ledger.Events(t.Context(), "acme", s.Steps[0].WriteID)
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1]
		if last.Settlement != ledger.Denied || last.By != "ada" || last.Trace != cancelledIn || last.Rule == "" || last.Reason == "" {
			t.Errorf("the withdrawn write ended with %+v", last)
		}
	})
}

// An ID of the plan's own, or of one of its intents, is not replaced.
func TestAnOwnCorrelationIDStays(t *testing.T) {
	own, mixed := four(), four()
	own.CorrelationID = "trip-7"
	mixed.Steps[1].Intent.CorrelationID = "req-9"
	for name, c := range map[string]struct {
		plan saga.Plan
		want string
	}{"of the plan": {own, "trip-7"}, "of an intent": {mixed, ""}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				s, err := b.runner.Begin(engine.WithTraceparent(context.Background(), begunIn), c.plan)
				if err != nil || s.CorrelationID != c.want || s.Trace != begunIn {
					t.Errorf("%+v, %v; want correlation id %q", s, err, c.want)
				}
			})
		})
	}
}

// The writes of a saga that was begun without a trace are still in one trace.
func TestASagaHasATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		b := newBench(t, orders.Native.Options(), &engine.Options{Tracer: tracers})
		b.begin(four())
		s := b.run(time.Hour)
		b.want(s, saga.Done)
		recs, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"})
		if err != nil || len(recs) != 4 || s.Trace == "" {
			t.Fatalf("%d writes, trace %q, %v", len(recs), s.Trace, err)
		}
		for _, r := range recs {
			if r.Trace != s.Trace {
				t.Errorf("write %s is in trace %q, the saga in %q", r.ID, r.Trace, s.Trace)
			}
		}
		root := spans.Ended()[0]
		if root.Name() != "saga" || root.Parent().IsValid() {
			t.Errorf("the root is %q, below %v", root.Name(), root.Parent())
		}
		for _, span := range spans.Ended() {
			if span.SpanContext().TraceID() != root.SpanContext().TraceID() {
				t.Errorf("span %q is in another trace", span.Name())
			}
		}
	})
}
