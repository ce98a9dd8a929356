package mcpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// FuzzAPI: for every body posted to the API by a caller that may only read, the response is one
// of the protocol or a problem, never a fault of ours, and nothing is recorded.
func FuzzAPI(f *testing.F) {
	world, err := orders.New(orders.Unique.Options())
	if err != nil {
		f.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		f.Fatal(err)
	}
	l := ledger.NewMemory()
	e := engine.New(l, &reg, nil)
	f.Cleanup(e.Close)
	s, err := mcpapi.New(service.New(service.Parts{Writes: e, Ledger: l, Registry: &reg}), mcpapi.Config{Tools: tools(), Registry: &reg})
	if err != nil {
		f.Fatal(err)
	}
	api := s.HTTP(byName{})
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, callBody("1", "create_order", anOrder, ""), callBody("1", "get_outcome", `{"id":"wr_1"}`, `{"readback/step":"x"}`),
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`,
		`[]`, `[{}]`, `{}`, ``, "\xff", strings.Repeat("[", 10_000), `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0000","arguments":null}}`,
	} {
		f.Add([]byte(seed), "2026-07-28", "tools/call", "create_order")
		f.Add([]byte(seed), "2025-11-25", "", "")
	}
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string) {
		if strings.Contains(string(body), "initialize") {
			return // opens sessions, of which there are not so many
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcpapi.Path, strings.NewReader(string(body)))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {version}, "Mcp-Method": {method}, "Mcp-Name": {name}}
		r.SetBasicAuth("", "reviewer")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError || w.Code == http.StatusUnauthorized {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if kind := w.Header().Get("Content-Type"); strings.HasSuffix(kind, "json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s", kind, w.Body)
		}
		if found, err := l.List(t.Context(), ledger.Filter{Tenant: "acme"}); len(found) != 0 || err != nil || len(world.Effects()) != 0 {
			t.Fatalf("a caller that may only read has recorded %v, %v", found, err)
		}
	})
}
