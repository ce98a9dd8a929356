package mcpapi_test

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

const (
	inMeta   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	inHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func TestTheTraceComesIn(t *testing.T) {
	header := http.Header{"Traceparent": {inHeader}}
	for name, c := range map[string]struct {
		meta   mcp.Meta
		header http.Header
		want   string
		reason string
	}{
		"_meta":       {mcp.Meta{"traceparent": inMeta, "tracestate": "v=canary"}, nil, inMeta, "as the protocol has it"},
		"header":      {nil, header, inHeader, "a client that knows HTTP alone"},
		"both":        {mcp.Meta{"traceparent": inMeta}, header, inMeta, "the request before its envelope"},
		"no text":     {mcp.Meta{"traceparent": 7}, nil, "", "what is no trace is not there"},
		"malformed":   {mcp.Meta{"traceparent": "00-zzz"}, header, "", "and the envelope does not mend it"},
		"none at all": {nil, nil, "", "there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			s := b.connect(b.listen(), as{name: "ada", header: c.header}, nil)
			out, _ := b.call(s, "create_order", order("A-1"), c.meta)
			rec, err := b.ledger.Get(t.Context(), "acme", ledger.ID(out.ID))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Trace != c.want || (rec.CorrelationID == "") != (c.want == "") {
				t.Errorf("trace %q, correlation %q; want trace %q: %s", rec.Trace, rec.CorrelationID, c.want, c.reason)
			}
		})
	}
}
