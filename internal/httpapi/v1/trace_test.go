package v1

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// The trace that a request came in is that of its write, and its id the
// correlation id where the caller gave none.
func TestTheTraceComesIn(t *testing.T) {
	id := strings.Split(traceparent, "-")[1]
	own := func(w *intent.WriteIntent) { w.CorrelationID = "req-9" }
	for name, c := range map[string]struct {
		headers            []string
		change             func(*intent.WriteIntent)
		trace, correlation string
		reason             string
	}{
		"a trace":    {[]string{"traceparent: " + traceparent}, func(*intent.WriteIntent) {}, traceparent, id, "it is kept and found"},
		"an own id":  {[]string{"traceparent: " + traceparent}, own, traceparent, "req-9", "what the caller says counts"},
		"no trace":   {nil, func(*intent.WriteIntent) {}, "", "", "there is none"},
		"malformed":  {[]string{"traceparent: 00-zzz"}, func(*intent.WriteIntent) {}, "", "", "what is no trace is not there"},
		"twice":      {[]string{"traceparent: " + traceparent, "traceparent: " + traceparent}, func(*intent.WriteIntent) {}, "", "", "which one is meant is unknown"},
		"state, too": {[]string{"traceparent: " + traceparent, "tracestate: v=canary", "baggage: c=canary"}, func(*intent.WriteIntent) {}, traceparent, id, "the rest is others' business"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1", c.change)), append(c.headers, "Prefer: wait=60")...))
			rec, err := b.ledger.Get(t.Context(), "acme", out.ID)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Trace != c.trace || rec.CorrelationID != c.correlation {
				t.Errorf("trace %q, correlation %q; want %q, %q: %s", rec.Trace, rec.CorrelationID, c.trace, c.correlation, c.reason)
			}
		})
	}
}

// A repeat in another trace is the same write: neither the trace nor its id is part of
// the request.
func TestARepeatInAnotherTraceIsTheSameWrite(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	for _, header := range []string{"traceparent: " + traceparent, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), header, "Prefer: wait=60"))
		if out.Status != ledger.Verified || out.Sends != 1 {
			t.Errorf("%+v", out)
		}
	}
}
