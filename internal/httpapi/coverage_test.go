package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/httpapi/contracttest"
)

func contractFiles(t *testing.T) []contracttest.File {
	t.Helper()
	files, err := contracttest.Load("testdata/contract")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var placeholder = regexp.MustCompile(`\{\{[^}]*\}\}`)

// routeOf is the route that an exchange is about, "" for none of the gate's.
func routeOf(t *testing.T, a *api, x contracttest.Exchange) string {
	t.Helper()
	path := placeholder.ReplaceAllString(x.Path, "x")
	r, err := http.NewRequestWithContext(t.Context(), x.Method, "http://localhost"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_, pattern := a.mux.Handler(r)
	return pattern
}

// Every route that is registered is spoken in some file: once as it succeeds,
// and once as it refuses.
func TestEveryRouteIsInAFile(t *testing.T) {
	a := newAPI(&stand{}, nil)
	succeeds, refuses := map[string]bool{}, map[string]bool{}
	for _, f := range contractFiles(t) {
		for _, x := range f.Exchanges {
			pattern := routeOf(t, a, x)
			if x.Status >= 400 {
				refuses[pattern] = true
			} else {
				succeeds[pattern] = true
			}
		}
	}
	for _, r := range routes {
		pattern := r.method + " " + r.path
		if !succeeds[pattern] {
			t.Errorf("no file has %s with its answer", pattern)
		}
		if !refuses[pattern] && !strings.HasSuffix(pattern, "pending") && !strings.HasSuffix(pattern, "pending-approvals") {
			t.Errorf("no file has %s refusing something", pattern)
		}
	}
	for _, pattern := range []string{"GET /healthz", "GET /readyz"} {
		if !succeeds[pattern] {
			t.Errorf("no file has %s", pattern)
		}
	}
}

// codesOf are the codes that a file of Go declares.
func codesOf(t *testing.T, path string) []gate.Code {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []gate.Code
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.ToUpper(lit.Value) == lit.Value {
				codes = append(codes, gate.Code(strings.Trim(lit.Value, `"`)))
			}
		}
		return true
	})
	return codes
}

// notInFiles are codes that no file can bring about, and why.
var notInFiles = map[gate.Code]string{
	requestTimeout: "it takes a body that never comes; TestSlowBody has it",
}

// Every code that can reach the wire has a status of its own choice, is in some file with
// that status, and in its own envelope.
func TestEveryCodeIsInAFile(t *testing.T) {
	codes := append(codesOf(t, "../../gate/errors.go"), codesOf(t, "answer.go")...)
	if len(codes) < 23 {
		t.Fatalf("%d codes found; the test looks at the wrong thing", len(codes))
	}
	seen := map[gate.Code][]int{}
	for _, f := range contractFiles(t) {
		for _, x := range f.Exchanges {
			if code := wireCode(t, x); code != "" {
				seen[code] = append(seen[code], x.Status)
			}
		}
	}
	for _, code := range codes {
		status, ok := statuses[code]
		if !ok {
			t.Errorf("%s has no status: it would be answered as our error", code)
		}
		if _, excused := notInFiles[code]; !excused && !slices.Contains(seen[code], status) {
			t.Errorf("no file has %s with its status %d", code, status)
		}
		for _, other := range seen[code] {
			if other != status {
				t.Errorf("%s is in a file with the status %d, want %d", code, other, status)
			}
		}
	}
}

// wireCode is the code that an exchange expects, held to the envelope that the
// contract has for it; "" for none.
func wireCode(t *testing.T, x contracttest.Exchange) gate.Code {
	t.Helper()
	if x.Status < 400 {
		return ""
	}
	var e struct {
		Error json.RawMessage `json:"error"`
		Code  gate.Code       `json:"code"`
	}
	if err := json.Unmarshal([]byte(x.WantBody), &e); err != nil {
		t.Fatalf("%s: %v", x.Title, err)
	}
	var inner struct {
		Code    gate.Code         `json:"code"`
		Message string            `json:"message"`
		Details map[string]string `json:"details"`
	}
	if json.Unmarshal(e.Error, &inner) != nil { // flat
		var word string
		if err := json.Unmarshal(e.Error, &word); err != nil {
			t.Fatal(err)
		}
		want := strings.ToLower(string(e.Code))
		if e.Code == gate.InvalidTraceID || e.Code == gate.InvalidToolContext {
			want = "validation_error"
		}
		if word != want || e.Code == gate.KeyMismatch || e.Code == gate.InputMismatch {
			t.Errorf("%s: error %q with code %s", x.Title, word, e.Code)
		}
		return e.Code
	}
	if inner.Code != gate.KeyMismatch && inner.Code != gate.InputMismatch {
		t.Errorf("%s: %s is nested, and only mismatches are", x.Title, inner.Code)
	}
	want := []string{"expected_idempotency_key", "received_idempotency_key", "step_id", "workflow_id"}
	if inner.Code == gate.InputMismatch {
		want = append(want, "expected_input_digest", "received_input_digest") // ours
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(inner.Details)); !slices.Equal(got, want) || inner.Details["workflow_id"] == "" || inner.Details["step_id"] == "" {
		t.Errorf("%s: details %v", x.Title, inner.Details)
	}
	return inner.Code
}

// Every file's responses contain what the contract always demands: a file that left it
// out would not test it any more.
func TestFilesAskForWhatIsAlwaysThere(t *testing.T) {
	a := newAPI(&stand{}, nil)
	always := map[string][]string{
		"POST " + base: {"workflow_id", "workflow_name", "source", "status", "created_at"},
		"GET " + base:  {"workflows", "total", "limit", "offset", "has_more"},
		"GET " + one:   {"workflow_id", "workflow_name", "source", "status", "current_step_index", "started_at"},
		"POST " + step + "/gate": {"decision", "step_id", "cached", "decision_source", "retry_context", "retry_context.gate_count",
			"retry_context.completion_count", "retry_context.prior_completion_status", "retry_context.prior_output_available",
			"retry_context.prior_output", "retry_context.prior_completion_at", "retry_context.first_attempt_at",
			"retry_context.last_attempt_at", "retry_context.last_decision", "retry_context.idempotency_key"},
		"POST " + one + "/complete":                                {"workflow_id", "status", "message"},
		"POST " + one + "/fail":                                    {"workflow_id", "status", "message", "reason"},
		"POST " + one + "/abort":                                   {"workflow_id", "status", "message", "reason"},
		"POST " + one + "/resume":                                  {"workflow_id", "status", "message"},
		"POST " + step + "/approve":                                {"workflow_id", "step_id", "decision", "retry_context"},
		"POST " + step + "/reject":                                 {"workflow_id", "step_id", "decision", "retry_context"},
		"GET " + base + "/approvals/pending":                       {"pending_approvals", "count"},
		"GET " + other + "/pending-approvals":                      {"approvals", "total"},
		"POST " + other + "/{workflow_id}/steps/{step_id}/approve": {"workflow_id", "step_id", "status"},
		"POST " + other + "/{workflow_id}/steps/{step_id}/reject":  {"workflow_id", "step_id", "status"},
	}
	for _, f := range contractFiles(t) {
		for _, x := range f.Exchanges {
			if x.Status >= 400 || x.WantBody == "" {
				continue
			}
			for _, field := range always[routeOf(t, a, x)] {
				if !has(t, x.WantBody, field) {
					t.Errorf("%s.http:%d does not ask for %s", f.Name, x.Line, field)
				}
			}
		}
	}
}

// has reports whether a JSON object has a member, or its member has one.
func has(t *testing.T, text, field string) bool {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	name, inner, deeper := strings.Cut(field, ".")
	raw, ok := v[name]
	return ok && (!deeper || has(t, string(raw), inner))
}
