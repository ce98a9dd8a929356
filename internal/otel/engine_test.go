package otel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/otel/oteltest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
)

// The trace of a caller.
const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"

	callersTraceparent = "00-" + callersTrace + "-" + callersSpan + "-" // and the flags
)

func order(id string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "wf-1", Step: "pay " + id, Tool: "create_order", Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": id}, Write: intent.Create,
		Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD", "note": "swordfish"},
	}
}

// engineWith returns an engine that exports to a receiver, and a destination whose own log is the
// oracle.
func engineWith(t *testing.T, k *otel.SDK) (*engine.Engine, *orders.World) {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, &engine.Options{
		Tracer: k.Tracer(), Events: k.Events(), Observer: telemetry.NewMeter(k.Meter(), &reg).Observe,
	})
	t.Cleanup(e.Close)
	return e, world
}

// One write, in the trace of its caller, as a receiver gets it.
func TestAWriteArrives(t *testing.T) {
	r := oteltest.Start(t)
	k := start(t, otel.Settings{Endpoint: r.URL, Env: none})
	e, world := engineWith(t, k)
	if err := world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
		t.Fatal(err)
	}
	ctx := engine.WithTraceparent(t.Context(), callersTraceparent+"01")
	out, err := e.Do(ctx, order("A-1"))
	if err != nil || out.Status != ledger.Verified {
		t.Fatalf("%+v, %v", out, err)
	}
	if again, err := e.Do(ctx, order("A-1")); err != nil || !again.Replayed {
		t.Fatalf("%+v, %v", again, err)
	}
	e.Close()
	k.Shutdown()
	checkSpans(t, r.Spans(), out)
	checkEvent(t, r, out)
	checkNumbers(t, r)
	for _, text := range r.Texts() {
		if strings.Contains(text, "swordfish") {
			t.Error("the contents of a write are exported without being configured")
		}
	}
}

// Of the writes that are not sampled, the unusual ones have their own span and their verdict's
// event. A sampler that the operator chose decides alone.
func TestUnusualWritesAreRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		sampler string
		want    []string
	}{
		"default":  {"", []string{"lost", "refused"}},
		"operator": {"always_off", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.sampler != "" {
				t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			}
			r := oteltest.Start(t)
			k := start(t, otel.Settings{Endpoint: r.URL})
			e, world := engineWith(t, k)
			ctx := engine.WithTraceparent(t.Context(), callersTraceparent+"00")
			ids := map[string]string{}
			for write, fault := range map[string]orders.FaultKind{"usual": "", "lost": orders.LostAnswer, "refused": orders.Refused} {
				if fault != "" {
					if err := world.Set(orders.Fault{Kind: fault, Times: 1}); err != nil {
						t.Fatal(err)
					}
				}
				out, err := e.Do(ctx, order(write))
				if err != nil {
					t.Fatal(err)
				}
				ids[string(out.ID)] = write
			}
			e.Close()
			k.Shutdown()
			var recorded, events []string
			for _, s := range r.Spans() {
				got := oteltest.Attributes(s.Attributes)
				if _, marked := got["readback.unusual"]; !marked || s.Name != "execute_tool create_order" || fmt.Sprintf("%x", s.TraceId) != callersTrace || s.EndTimeUnixNano <= s.StartTimeUnixNano {
					t.Errorf("span %v", s)
				}
				recorded = append(recorded, ids[got["readback.write.id"]])
			}
			for _, e := range r.Records() {
				events = append(events, ids[oteltest.Attributes(e.Attributes)["readback.write.id"]])
			}
			slices.Sort(recorded)
			if !slices.Equal(recorded, c.want) {
				t.Errorf("spans of %q, want of %q", recorded, c.want)
			}
			if slices.Contains(events, "usual") || slices.Contains(events, "lost") != (c.sampler == "") {
				t.Errorf("events of %q", events)
			}
		})
	}
}

func checkSpans(t *testing.T, spans []*traces.Span, out engine.Outcome) {
	t.Helper()
	var tool *traces.Span
	for _, s := range spans {
		if fmt.Sprintf("%x", s.TraceId) != callersTrace {
			t.Errorf("%s is in the trace %x", s.Name, s.TraceId)
		}
		if s.Name == "execute_tool create_order" && tool == nil {
			tool = s
		}
	}
	if tool == nil {
		t.Fatalf("no span of the tool among %d", len(spans))
	}
	if fmt.Sprintf("%x", tool.ParentSpanId) != callersSpan || tool.Kind != traces.Span_SPAN_KIND_INTERNAL {
		t.Errorf("the span of the tool: parent %x, kind %v", tool.ParentSpanId, tool.Kind)
	}
	got := oteltest.Attributes(tool.Attributes)
	for name, want := range map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "create_order", "readback.write.id": string(out.ID),
		"readback.status": "verified", "readback.verdict": "verified", "readback.destination": "orders",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if id, ok := got["gen_ai.tool.call.id"]; ok {
		t.Errorf("gen_ai.tool.call.id is %q: it is the provider's, and we have none", id)
	}
	var below []string
	for _, s := range spans {
		if bytes.Equal(s.ParentSpanId, tool.SpanId) {
			below = append(below, s.Name)
		}
	}
	for _, want := range []string{"reserve", "send", "read", "decide"} {
		if !slices.Contains(below, want) {
			t.Errorf("no span %s below that of the tool: %q", want, below)
		}
	}
}

func checkEvent(t *testing.T, r *oteltest.Receiver, out engine.Outcome) {
	t.Helper()
	records := r.Records()
	if len(records) != 1 || records[0].EventName != "gen_ai.evaluation.result" || fmt.Sprintf("%x", records[0].TraceId) != callersTrace {
		t.Fatalf("events: %v", records)
	}
	got := oteltest.Attributes(records[0].Attributes)
	if got["gen_ai.evaluation.name"] != "readback.verdict" || got["gen_ai.evaluation.score.label"] != "verified" || got["readback.write.id"] != string(out.ID) {
		t.Errorf("the event says %v", got)
	}
	for _, s := range r.Spans() {
		if bytes.Equal(s.SpanId, records[0].SpanId) && s.Name != "execute_tool create_order" {
			t.Errorf("the event belongs to %s", s.Name)
		}
	}
}

func checkNumbers(t *testing.T, r *oteltest.Receiver) {
	t.Helper()
	prevented := map[string]int64{}
	units := map[string]string{}
	for _, m := range r.Metrics() {
		units[m.Name] = m.Unit
		if m.Name == "readback.duplicates.prevented" {
			for _, p := range m.GetSum().DataPoints {
				prevented[oteltest.Attributes(p.Attributes)["readback.prevented_by"]] = p.GetAsInt()
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"read": 1, "replay": 1}, prevented); diff != "" {
		t.Errorf("duplicates prevented (-want +got):\n%s", diff)
	}
	for name, unit := range map[string]string{"readback.writes": "{write}", "readback.write.duration": "s", "gen_ai.execute_tool.duration": "s"} {
		if units[name] != unit {
			t.Errorf("%s has the unit %q, want %q", name, units[name], unit)
		}
	}
}

// Whatever a receiver does, writes end as they do without one. Nothing here is
// measured: the receiver that hangs answers when all writes are done.
func TestWritesDoNotMind(t *testing.T) {
	const writes = 100
	for name, answer := range map[string]func(hang chan struct{}) func(http.ResponseWriter, *http.Request) bool{
		"down": nil,
		"slow": func(hang chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(http.ResponseWriter, *http.Request) bool { <-hang; return true }
		},
		"broken": func(chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }
		},
		"throttling": func(chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(429)
				return true
			}
		},
		"garbage": func(chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/x-protobuf")
				_, _ = io.WriteString(w, "\xff\xff\xff")
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := oteltest.Start(t)
			hang := make(chan struct{})
			if answer == nil {
				r.Close()
			} else {
				r.Answer(answer(hang))
			}
			k := start(t, otel.Settings{Endpoint: r.URL, Env: none})
			e, world := engineWith(t, k)
			for i := range writes {
				out, err := e.Do(engine.WithTraceparent(t.Context(), callersTraceparent+"01"), order(fmt.Sprint("A-", i)))
				if err != nil || out.Status != ledger.Verified || out.Sends != 1 {
					t.Fatalf("%+v, %v", out, err)
				}
			}
			e.Close()
			k.Shutdown()
			close(hang)
			if effects := len(world.Effects()); effects != writes {
				t.Errorf("%d effects of %d writes", effects, writes)
			}
			if d := k.Deliveries()["traces"]; d.Delivered != 0 || d.Failed+d.Dropped < writes {
				t.Errorf("traces: %+v; what no receiver got must be counted", d)
			}
		})
	}
}
