package rest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// TestBulkReads: many queries in few requests, in a body or joined in a query; an impossible one
// affects no other.
func TestBulkReads(t *testing.T) {
	tests := map[string]struct{ reason, read, want string }{
		"body":  {"a list with an element for each", `{name: many, by: key, bulk: 2, strength: strong, method: POST, path: /many, body: {ids: [0, {"[...]": {sku: "{key.sku}"}}], all: {"[...]": "{key.sku}"}}, records: "$.items[*]"}`, `POST /api/many {"all":["A-1","A-2"],"ids":[0,[{"sku":"A-1"},{"sku":"A-2"}]]}`},
		"query": {"values that are joined", `{name: many, by: key, bulk: 2, strength: strong, path: /many, query: {ids: {"[...]": "{key.sku}", join: ","}}, records: "$.items[*]"}`, `GET /api/many?ids=A-1%2CA-2`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(itemsFile("", plainRead), "    record:\n", "      - "+tt.read+"\n    record:\n", 1)
			var h recorder
			c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				h.requests = append(h.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
				_, _ = io.WriteString(rw, `{"items":[{"id":1,"sku":"A-1"},{"id":2,"sku":"a-2"}]}`)
			})
			var qs []connectors.Query
			for _, sku := range []any{"A-1", map[string]any{}, "A-2", "A,3"} {
				in := item(intent.Create)
				in.Key["sku"] = sku
				qs = append(qs, connectors.Query{Intent: in, Stamp: in.Stamp()})
			}
			got, err := c.ReadMany(t.Context(), qs)
			if err != nil || len(got) != 4 {
				t.Fatalf("%d answers, %v", len(got), err)
			}
			if len(got[0].Observation.Records) != 1 || got[0].Observation.Strength != connectors.Strong || got[1].Err == nil || got[2].Err != nil || len(got[2].Observation.Records) != 0 {
				t.Errorf("%s: got %v", tt.reason, got)
			}
			if len(h.requests) == 0 || h.requests[0] != tt.want {
				t.Errorf("%s: asked %q, want %q first", tt.reason, h.requests, tt.want)
			}
			if asked := strings.Join(h.requests, "\n"); strings.Contains(asked, "A%2C3") || got[3].Err == nil {
				t.Errorf("a value with the separator in it was joined: %q, %v", asked, got[3])
			}
		})
	}
}

// TestABulkSearchIsNotIgnored: a bulk search whose hits quote none of the keys proves nothing absent.
func TestABulkSearchIsNotIgnored(t *testing.T) {
	file := strings.Replace(itemsFile("", searchRead), "    record:\n", `      - {name: many, by: key, bulk: 2, search: text, path: /search, query: {q: {"[...]": "{key.sku}", join: "|"}}, records: "$.items[*]"}`+"\n    record:\n", 1)
	q := connectors.Query{Intent: item(intent.Create)}
	for body, ignored := range map[string]bool{`{"items":[]}`: false, `{"items":[{"id":2,"sku":"B-7","title":"as A-1"}]}`: false, `{"items":[{"id":2,"sku":"B-7"}]}`: true} {
		got, err := items(t, file, says(http.StatusOK, body)).ReadMany(t.Context(), []connectors.Query{q})
		if err != nil || (got[0].Err != nil) != ignored || len(got[0].Observation.Records) > 0 {
			t.Errorf("%s: %+v, %v; want an error %t", body, got, err, ignored)
		}
	}
}
