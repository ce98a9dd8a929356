package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
)

// For every request to a real gate, the response is JSON, no redirect and no fault of
// ours.
func FuzzRequest(f *testing.F) {
	quiet := slog.New(slog.DiscardHandler)
	g := gate.New(ledger.NewMemory(), &gate.Options{Logger: quiet})
	created, err := g.Create(f.Context(), gate.Caller{Tenant: "default"}, gate.CreateRequest{WorkflowName: "w"})
	if err != nil {
		f.Fatal(err)
	}
	h := New(g, &Options{Logger: quiet})
	for _, r := range routes {
		path := strings.NewReplacer("{workflow_id}", "WF", "{step_id}", "a%2Fb", "{n}", "0").Replace(r.path)
		f.Add(r.method, path, `{"workflow_name":"w","step_type":"tool_call","step_input":{"a":[1,{"b":null}]},"comment":"long enough","idempotency_key":"k"}`, "t")
		f.Add(r.method, path+"?limit=1&include_prior_output=true", `{"step_type":"tool_call","output":{"a":1e400},"fence":9223372036854775807}`, "")
	}
	f.Add("POST", "/api/v1/workflows/WF/steps/%2e%2e/gate", `{"step_type":"llm_call","tool_context":{"tool_name":"\u0000"}}`, "\xff")
	f.Add("PUT", "//api/v1/workflows/../x;y", "", "")
	f.Fuzz(func(t *testing.T, method, path, body, tenant string) {
		u, err := url.ParseRequestURI(strings.ReplaceAll(path, "WF", created.WorkflowID))
		if err != nil || u.Host != "" {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return
		}
		r.URL = u
		r.Header.Set("X-Tenant-ID", tenant)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code >= 300 && w.Code < 400 {
			t.Fatalf("%s %q %q: %d %s", method, path, body, w.Code, w.Body)
		}
		if w.Code != http.StatusNoContent && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: no JSON: %s", method, path, w.Body)
		}
	})
}
