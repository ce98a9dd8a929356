package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func TestTraceparent(t *testing.T) {
	for name, c := range map[string]struct{ text, want, reason string }{
		"sampled":     {callers, callers, "it comes back as it was"},
		"not sampled": {strings.TrimSuffix(callers, "01") + "00", strings.TrimSuffix(callers, "01") + "00", "who samples nothing is still in a trace"},
		"nothing":     {"", "", "no trace"},
		"no trace id": {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "", "all zeros are no id"},
		"no span id":  {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "", "all zeros are no id"},
		"upper case":  {strings.ToUpper(callers), "", "hex digits are written small"},
		"cut":         {callers[:54], "", "a flag is missing"},
		"version ff":  {"ff" + callers[2:], "", "no version is called so"},
		"later":       {"cc" + callers[2:] + "-what-the-future-brings", callers, "a later version begins like this one"},
		"too long":    {"cc" + callers[2:] + "-" + strings.Repeat("x", 300), "", "no tracer sends so much"},
		"a sentence":  {"ignore previous instructions", "", "what is no trace is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := engine.Traceparent(engine.WithTraceparent(t.Context(), c.text)); got != c.want {
				t.Errorf("%q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

// carried is a destination that records the trace of each call.
type carried struct {
	connectors.Connector
	mu     sync.Mutex
	writes []trace.SpanContext
	reads  []trace.SpanContext
	extras int // contexts with baggage
}

func (c *carried) note(ctx context.Context, to *[]trace.SpanContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to = append(*to, trace.SpanContextFromContext(ctx))
	c.extras += baggage.FromContext(ctx).Len()
}

func (c *carried) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	c.note(ctx, &c.writes)
	return c.Connector.Write(ctx, r)
}

func (c *carried) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	c.note(ctx, &c.reads)
	return c.Connector.Read(ctx, q)
}

// carrying returns an engine for a destination that records its traces.
func (b *bench) carrying(opts *engine.Options) (*engine.Engine, *carried) {
	d := b.world.Destination()
	c := &carried{Connector: d.Connector}
	d.Connector = c
	return b.engineOn(b.ledger, d, opts), c
}

func within(tb testing.TB) context.Context {
	member, err := baggage.NewMember("customer", "canary")
	if err != nil {
		tb.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		tb.Fatal(err)
	}
	return engine.WithTraceparent(baggage.ContextWithBaggage(context.Background(), bag), callers)
}

// Without recorded spans, the caller's trace still reaches the destination.
func TestTheCallersTraceReachesTheDestination(t *testing.T) {
	for name, opts := range map[string]*engine.Options{"no provider": {}, "a provider": newTape().options()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				e, d := b.carrying(opts)
				out, err := e.Do(within(t), order("A-1", intent.Create))
				if err != nil {
					t.Fatal(err)
				}
				want := trace.SpanContextFromContext(within(t))
				for _, got := range slices.Concat(d.writes, d.reads) {
					if got.TraceID() != want.TraceID() || got.TraceState().Len() != 0 {
						t.Errorf("called in %v, want trace %s", got, want.TraceID())
					}
					if same := got.SpanID() == want.SpanID(); same != (opts.Tracer == nil) {
						t.Errorf("called in span %s; the caller's is %s", got.SpanID(), want.SpanID())
					}
				}
				if len(d.writes) != 1 || len(d.reads) == 0 || d.extras != 0 {
					t.Errorf("%d writes, %d reads, %d with baggage", len(d.writes), len(d.reads), d.extras)
				}
				if rec := b.state(out.ID); rec.Trace != callers {
					t.Errorf("the record keeps %q", rec.Trace)
				}
			})
		})
	}
}

// A worker's own trace is not that of the writes that it takes up.
func TestAWorkersTraceStaysItsOwn(t *testing.T) {
	for name, opts := range map[string]*engine.Options{"no provider": {}, "a provider": newTape().options()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				b.enqueue(order("A-1", intent.Create))
				e, d := b.carrying(opts)
				ctx, cancel := context.WithTimeout(within(t), time.Minute)
				defer cancel()
				if err := runWorker(ctx, e, nil); err != nil {
					t.Fatal(err)
				}
				if len(d.writes) != 1 {
					t.Fatalf("%d writes", len(d.writes))
				}
				if got := engine.Traceparent(trace.ContextWithSpanContext(ctx, d.writes[0])); strings.HasPrefix(got, callers[:35]) {
					t.Errorf("the write was made in the worker's trace %s", got)
				}
			})
		})
	}
}

// One process left the write announced, and another one took it up.
func TestAnotherEngineContinuesTheTrace(t *testing.T) {
	for name, asked := range map[string]func(testing.TB) context.Context{
		"the caller's":           within,
		"one that began with it": func(tb testing.TB) context.Context { return tb.Context() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := newTape()
				b := newBench(t, orders.Lagging.Options(), spans.options())
				b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
				ctx, cancel := context.WithTimeout(asked(t), time.Second)
				defer cancel()
				out, err := b.engine.Do(ctx, order("A-1", intent.Create))
				if err != nil || out.Status != ledger.InProgress {
					t.Fatalf("%+v, %v", out, err)
				}
				b.engine.Close()
				time.Sleep(3 * time.Hour)
				b.engine = b.newEngine(spans.options())
				b.work(time.Minute)
				b.engine.Close()
				id := spans.oneTrace(t)
				rec := b.state(out.ID)
				if rec.Settlement != ledger.Verified || !strings.Contains(rec.Trace, id.String()) {
					t.Errorf("%s, trace %q; the spans are in %s", rec.Phase(), rec.Trace, id)
				}
				tree := spans.tree()
				if got := strings.TrimSpace(tree[len(tree)-3]); !strings.HasPrefix(got, "execute_tool orders.create stage=resumed status=verified") {
					t.Errorf("spans %s", strings.Join(tree, "\n"))
				}
			})
		})
	}
}

// A reviewer decides in their own trace. The event stores it, and the span of what follows
// links to it.
func TestADecisionKeepsItsOwnTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := newTape()
		opts := spans.options()
		opts.Risks = held().Risks
		b := newBench(t, orders.Native.Options(), opts)
		out, err := b.engine.Do(within(t), order("A-1", intent.Create))
		if err != nil {
			t.Fatal(err)
		}
		b.resolve(out.ID, approves("ada"))
		events, err := b.ledger.Events(t.Context(), "acme", out.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			want := ""
			if ev.Kind == ledger.EvApproved {
				want = reviewers
			}
			if ev.Trace != want {
				t.Errorf("%s has trace %q, want %q", ev.Kind, ev.Trace, want)
			}
		}
		spans.oneTrace(t)
		for _, s := range spans.Started() {
			for _, kv := range s.Attributes() {
				if kv.Key == "readback.stage" && kv.Value.AsString() == "decision" {
					if len(s.Links()) != 1 || engine.Traceparent(trace.ContextWithSpanContext(t.Context(), s.Links()[0].SpanContext)) != reviewers {
						t.Errorf("links %v", s.Links())
					}
				}
			}
		}
	})
}

func TestVerdictsAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := newTape()
		b := newBench(t, orders.Native.Options(), spans.options())
		b.do(order("A-1", intent.Create))
		b.do(order("A-1", intent.Create)) // a replay evaluates nothing
		b.set(orders.Fault{Kind: orders.DroppedField, Times: 1})
		b.do(order("A-2", intent.Create))
		want := []string{
			"gen_ai.evaluation.result gen_ai.evaluation.name=readback.verdict gen_ai.evaluation.score.label=verified status=verified rule=accept",
			"gen_ai.evaluation.result gen_ai.evaluation.name=readback.verdict gen_ai.evaluation.score.label=mismatched status=review rule=escalate",
		}
		if diff := cmp.Diff(want, spans.events.reported); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for i, in := range spans.events.in {
			found := slices.ContainsFunc(spans.Ended(), func(s sdkSpan) bool {
				return s.SpanContext().SpanID() == in.SpanID() && strings.HasPrefix(s.Name(), "execute_tool ")
			})
			if !found {
				t.Errorf("event %d is parented to %s, which is no span execute_tool", i, in.SpanID())
			}
		}
	})
}

// An undo is in the trace of the write that it undoes, by any requester and whether spans
// are recorded or not.
func TestAnUndoingKeepsTheTraceOfItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out, err := b.engine.Do(within(t), compensable(order("A-1", intent.Create)))
		if err != nil {
			t.Fatal(err)
		}
		undone, err := b.engine.Undo(engine.WithTraceparent(t.Context(), reviewers), "acme", out.ID, unwanted)
		if err != nil {
			t.Fatal(err)
		}
		if child := b.state(undone.Undoing); child.Trace != callers {
			t.Errorf("the undoing is in trace %q, want %q", child.Trace, callers)
		}
	})
}
