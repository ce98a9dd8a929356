package httpsend_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/readback-go/readback/connectors/httpsend"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// inTrace is the context of a caller that sent everything that W3C defines.
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
		"a trace":   {inTrace, httpsend.Options{}, nil, traceparent, "the trace is in the destination's log"},
		"no trace":  {(*testing.T).Context, httpsend.Options{}, nil, "", "there is none to send"},
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
