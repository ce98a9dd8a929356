package httpsend_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/readback-go/readback/connectors/httpsend"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// inTrace is the context of a caller who sent everything that W3C has.
func inTrace(t *testing.T) context.Context {
	t.Helper()
	ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": traceparent, "tracestate": "vendor=canary"})
	member, err := baggage.NewMember("customer", "canary")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	return baggage.ContextWithBaggage(ctx, bag)
}

func TestTheTraceGoesAlong(t *testing.T) {
	own := func(r *http.Request) {
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	}
	for name, c := range map[string]struct {
		ctx    func(*testing.T) context.Context
		o      httpsend.Options
		change func(*http.Request)
		want   string
		reason string
	}{
		"a trace":   {inTrace, httpsend.Options{}, nil, traceparent, "whoever looks at the destination's log finds the call"},
		"no trace":  {(*testing.T).Context, httpsend.Options{}, nil, "", "there is none to tell of"},
		"not to be": {inTrace, httpsend.Options{NoTrace: true}, nil, "", "some destinations are not to know"},
		"its own":   {inTrace, httpsend.Options{}, own, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "who sets the header means it"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []http.Header
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Clone()) }))
			defer server.Close()
			client := httpsend.New(&c.o)
			for _, call := range []func(*http.Request) (httpsend.Answer, error){client.Write, client.Read} {
				req, err := http.NewRequestWithContext(c.ctx(t), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.change != nil {
					c.change(req)
				}
				if _, err := call(req); err != nil {
					t.Fatal(err)
				}
			}
			for _, h := range got {
				if h.Get("Traceparent") != c.want || h.Get("Tracestate") != "" || h.Get("Baggage") != "" {
					t.Errorf("traceparent %q, tracestate %q, baggage %q; want %q alone: %s", h.Get("Traceparent"), h.Get("Tracestate"), h.Get("Baggage"), c.want, c.reason)
				}
			}
			if len(got) != 2 {
				t.Errorf("%d requests", len(got))
			}
		})
	}
}

// The span of a call says which server it went to; a tracer that panics fails nothing.
func TestTheSpanSaysWhichServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for reason, panics := range map[string]bool{"recorded": false, "a tracer that panics": true} {
		span := &recorded{panics: panics}
		req, err := http.NewRequestWithContext(trace.ContextWithSpan(t.Context(), span), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := httpsend.New(nil).Read(req); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		want := map[attribute.Key]string{"server.address": host, "server.port": port}
		if diff := cmp.Diff(want, span.got); !panics && diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// recorded is a span that keeps its attributes.
type recorded struct {
	noop.Span
	panics bool
	got    map[attribute.Key]string
}

func (*recorded) IsRecording() bool { return true }

func (s *recorded) SetAttributes(all ...attribute.KeyValue) {
	if s.panics {
		panic("the tracer is down")
	}
	s.got = make(map[attribute.Key]string)
	for _, kv := range all {
		s.got[kv.Key] = kv.Value.String()
	}
}
