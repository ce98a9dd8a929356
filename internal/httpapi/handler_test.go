package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/gate"
)

// lastCall is the last call of a gate.
type lastCall struct {
	Caller         gate.Caller
	Workflow, Step string
	Reason         string
	Approval       string
	Gate           gate.GateRequest
	List           gate.ListRequest
	Limit          int
}

// others is a Gate whose name is that of none of its methods.
type others = Gate

// stand is a stub of a gate: it records calls, and returns nothing.
type stand struct {
	others // what is not here panics

	lastCall lastCall
	asked    int
	do       func(ctx context.Context) error
}

func (s *stand) hear(ctx context.Context, h lastCall) error {
	s.lastCall = h
	s.asked++
	if s.do == nil {
		return nil
	}
	return s.do(ctx)
}

func (s *stand) Get(ctx context.Context, c gate.Caller, id string) (gate.View, error) {
	return gate.View{}, s.hear(ctx, lastCall{Caller: c, Workflow: id})
}

func (s *stand) List(ctx context.Context, c gate.Caller, r gate.ListRequest) (gate.List, error) {
	return gate.List{}, s.hear(ctx, lastCall{Caller: c, List: r})
}

func (s *stand) Gate(ctx context.Context, c gate.Caller, id, step string, r gate.GateRequest) (gate.GateResponse, error) {
	return gate.GateResponse{}, s.hear(ctx, lastCall{Caller: c, Workflow: id, Step: step, Gate: r})
}

func (s *stand) Fail(ctx context.Context, c gate.Caller, id, reason string) (gate.Ended, error) {
	return gate.Ended{}, s.hear(ctx, lastCall{Caller: c, Workflow: id, Reason: reason})
}

func (s *stand) Abort(ctx context.Context, c gate.Caller, id, reason string) (gate.Ended, error) {
	return gate.Ended{}, s.hear(ctx, lastCall{Caller: c, Workflow: id, Reason: reason})
}

func (s *stand) Approve(ctx context.Context, c gate.Caller, id, step string, w gate.Comment) (gate.ApprovalResult, error) {
	return gate.ApprovalResult{}, s.hear(ctx, lastCall{Caller: c, Workflow: id, Step: step, Reason: w.Comment, Approval: w.ApprovalID})
}

func (s *stand) Reject(ctx context.Context, c gate.Caller, id, step string, w gate.Comment) (gate.ApprovalResult, error) {
	return gate.ApprovalResult{}, s.hear(ctx, lastCall{Caller: c, Workflow: id, Step: step, Reason: w.Comment, Approval: w.ApprovalID})
}

func (s *stand) Pending(ctx context.Context, c gate.Caller, limit int) ([]gate.PendingApproval, error) {
	return nil, s.hear(ctx, lastCall{Caller: c, Limit: limit})
}

// ask sends one request to a handler.
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// flatOf reads the flat envelope of an error.
func flatOf(t *testing.T, w *httptest.ResponseRecorder) flat {
	t.Helper()
	var f flat
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	return f
}

const gatePath = "/api/v1/workflows/wf_1/steps/pay/gate"

func TestPaths(t *testing.T) {
	tests := map[string]struct {
		reason, method, path string
		status               int
		workflow, step       string
		allow                string
	}{
		"plain":           {"as the clients send it", "POST", gatePath, 200, "wf_1", "pay", ""},
		"slash":           {"percent-encoded, it is part of the id", "POST", "/api/v1/workflows/wf_1/steps/a%2Fb/gate", 200, "wf_1", "a/b", ""},
		"space and more":  {"odd, and possible", "POST", "/api/v1/workflows/wf_1/steps/a%20b%3F%23%25%C3%A4/gate", 200, "wf_1", "a b?#%ä", ""},
		"unescaped":       {"the clients do not escape", "POST", "/api/v1/workflows/wf_1/steps/a:b;c=d,e@f+g/gate", 200, "wf_1", "a:b;c=d,e@f+g", ""},
		"two dots":        {"encoded, they are an id and no way out", "POST", "/api/v1/workflows/wf_1/steps/%2e%2e/gate", 200, "wf_1", "..", ""},
		"slash itself":    {"it makes another path", "POST", "/api/v1/workflows/wf_1/steps/a/b/gate", 404, "", "", ""},
		"nothing":         {"a redirect would lose the body", "POST", "/api/v1/workflows/wf_1/steps//gate", 404, "", "", ""},
		"way out":         {"likewise", "POST", "/api/v1/workflows/wf_1/steps/../steps/pay/gate", 404, "", "", ""},
		"slash at end":    {"likewise", "GET", "/api/v1/workflows/wf_1/", 404, "", "", ""},
		"unknown":         {"no such route", "GET", "/api/v2/workflows", 404, "", "", ""},
		"root":            {"no page", "GET", "/", 404, "", "", ""},
		"method":          {"a gate is not read", "GET", gatePath, 405, "", "", "POST"},
		"several methods": {"both are named", "DELETE", "/api/v1/workflows", 405, "", "", "POST, GET"},
		"alias":           {"the other family", "POST", "/api/v1/workflow-control/wf_1/steps/pay/approve", 200, "wf_1", "pay", ""},
		"no alias":        {"the other family has three routes", "POST", "/api/v1/workflow-control/wf_1/steps/pay/gate", 404, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			w := ask(New(s, nil), test.method, test.path, "{}")
			if w.Code != test.status {
				t.Fatalf("%d %s, want %d: %s", w.Code, w.Body, test.status, test.reason)
			}
			if diff := cmp.Diff([]string{test.workflow, test.step, test.allow}, []string{s.lastCall.Workflow, s.lastCall.Step, w.Header().Get("Allow")}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if test.status >= 400 {
				if f := flatOf(t, w); f.Error != strings.ToLower(string(f.Code)) || f.Message == "" {
					t.Errorf("envelope %+v", f)
				}
			}
		})
	}
}

// A step's output is returned only to a request in the contract's words.
func TestIncludePriorOutput(t *testing.T) {
	for query, want := range map[string]bool{"": false, "?include_prior_output=true": true, "?include_prior_output=1": false,
		"?include_prior_output=TRUE": false, "?include_prior_output=false": false, "?include_prior_output": false, "?include_prior_output=perhaps": false} {
		s := &stand{}
		w := ask(New(s, nil), "POST", gatePath+query, `{"step_type":"tool_call","IncludePriorOutput":true}`)
		if w.Code != 200 || s.lastCall.Gate.IncludePriorOutput != want {
			t.Errorf("%q: %d, asked for with it: %t", query, w.Code, s.lastCall.Gate.IncludePriorOutput)
		}
	}
}

// crowded is a gate at which more steps wait than fit on one page.
type crowded struct {
	stand
	waiting int
}

func (c *crowded) Pending(_ context.Context, _ gate.Caller, limit int) ([]gate.PendingApproval, error) {
	return make([]gate.PendingApproval, min(limit, c.waiting)), nil
}

func (c *crowded) CountPending(context.Context, gate.Caller) (int, error) { return c.waiting, nil }

// Who reads a page of approvals sees how many wait in all.
func TestPendingCountsAll(t *testing.T) {
	for path, field := range map[string]string{"/api/v1/workflows/approvals/pending?limit=2": "count", "/api/v1/workflow-control/pending-approvals?limit=2": "total"} {
		for _, waiting := range []int{0, 1, 2, 3, 500} {
			var got map[string]any
			w := ask(New(&crowded{waiting: waiting}, nil), "GET", path, "")
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got[field] != float64(waiting) {
				t.Errorf("%s: %s is %v of %d waiting (%v)", path, field, got[field], waiting, err)
			}
		}
	}
}

func TestQueries(t *testing.T) {
	tests := map[string]struct {
		reason, path string
		want         lastCall
		field        string
	}{
		"defaults":   {"the contract's", "/api/v1/workflows", lastCall{List: gate.ListRequest{Limit: 20}}, ""},
		"all":        {"each in its place", "/api/v1/workflows?limit=3&offset=4&status=failed&source=crewai&trace_id=t", lastCall{List: gate.ListRequest{Limit: 3, Offset: 4, Status: "failed", Source: "crewai", TraceID: "t"}}, ""},
		"zero":       {"clients send their zero value", "/api/v1/workflows?limit=0&offset=0", lastCall{List: gate.ListRequest{Limit: 20}}, ""},
		"much":       {"one answer is bounded", "/api/v1/workflows?limit=9999999", lastCall{List: gate.ListRequest{Limit: 100}}, ""},
		"negative":   {"what is no number of entries is as left out, as in the published gate", "/api/v1/workflows?limit=-1&offset=-1", lastCall{List: gate.ListRequest{Limit: 20}}, ""},
		"no number":  {"likewise", "/api/v1/workflows?limit=ten&offset=x", lastCall{List: gate.ListRequest{Limit: 20}}, ""},
		"no int":     {"likewise", "/api/v1/workflows?limit=99999999999999999999&offset=1.5", lastCall{List: gate.ListRequest{Limit: 20}}, ""},
		"pending":    {"the contract's default", "/api/v1/workflows/approvals/pending", lastCall{Limit: 20}, ""},
		"alias":      {"the other family", "/api/v1/workflow-control/pending-approvals?limit=7", lastCall{Limit: 7}, ""},
		"unreadable": {"what it asks for cannot be known", "/api/v1/workflows?limit=%zz", lastCall{}, "query"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			w := ask(New(s, nil), "GET", test.path, "")
			if test.field != "" {
				if f := flatOf(t, w); w.Code != 400 || f.Code != gate.BadRequest || f.Field != test.field || s.asked != 0 {
					t.Errorf("%s: %d %+v, asked %d", test.reason, w.Code, f, s.asked)
				}
				return
			}
			test.want.Caller = gate.Caller{Tenant: "default"}
			if diff := cmp.Diff(test.want, s.lastCall); diff != "" || w.Code != 200 {
				t.Errorf("%s: %d (-want +got):\n%s", test.reason, w.Code, diff)
			}
		})
	}
}

func TestWhatPeopleSay(t *testing.T) {
	tests := map[string]struct {
		reason, path, body, want string
		status                   int
		field                    string
	}{
		"fail":              {"its default is the gate's", "/fail", "", "", 200, ""},
		"abort":             {"likewise", "/abort", "{}", "", 200, ""},
		"abort with reason": {"with a reason", "/abort", `{"reason":"enough","news":1}`, "enough", 200, ""},
		"null":              {"is left out", "/abort", `{"reason":null}`, "", 200, ""},
		"no text":           {"names the field", "/abort", `{"reason":5}`, "", 400, "reason"},
		"no object":         {"no reason can be in it", "/abort", `[]`, "", 400, ""},
		"approve":           {"long enough", "/steps/pay/approve", `{"comment":" ten chars "}`, "ten chars ", 400, "comment"},
		"approve in runes":  {"characters are counted, not bytes", "/steps/pay/approve", `{"comment":"ääääääääää"}`, "ääääääääää", 200, ""},
		"bytes":             {"characters are counted, not bytes", "/steps/pay/approve", `{"comment":"ääääääääa"}`, "", 400, "comment"},
		"spaces":            {"say nothing", "/steps/pay/approve", `{"comment":"            "}`, "", 400, "comment"},
		"nothing":           {"a decision has a reason", "/steps/pay/approve", "", "", 400, "comment"},
		"reject":            {"its reason", "/steps/pay/reject", `{"reason":"no such invoice"}`, "no such invoice", 200, ""},
		"reject, other":     {"some clients name it so", "/steps/pay/reject", `{"comment":"no such invoice"}`, "no such invoice", 200, ""},
		"reject short":      {"a decision has a reason", "/steps/pay/reject", `{"reason":"no"}`, "", 400, "reason"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			w := ask(New(s, nil), "POST", "/api/v1/workflows/wf_1"+test.path, test.body)
			if test.status != 200 {
				if f := flatOf(t, w); w.Code != test.status || f.Code != gate.BadRequest || f.Field != test.field || s.asked != 0 {
					t.Errorf("%s: %d %+v, asked %d", test.reason, w.Code, f, s.asked)
				}
				return
			}
			if w.Code != 200 || s.lastCall.Reason != test.want {
				t.Errorf("%s: %d, reason %q, want %q", test.reason, w.Code, s.lastCall.Reason, test.want)
			}
		})
	}
	saw := &stand{}
	ask(New(saw, nil), "POST", "/api/v1/workflows/wf_1/steps/pay/reject", `{"reason":"no such invoice","approval_id":"ap-1"}`)
	if saw.lastCall.Approval != "ap-1" {
		t.Errorf("the hold that a reviewer saw is %q", saw.lastCall.Approval)
	}
	for _, body := range []string{"", "{}", `{"comment":""}`, `{"comment":"ok"}`} {
		for _, verb := range []string{"approve", "reject"} {
			s := &stand{}
			if w := ask(New(s, nil), "POST", "/api/v1/workflow-control/wf_1/steps/pay/"+verb, body); w.Code != 200 || s.asked != 1 {
				t.Errorf("%s %q by the published clients: %d %s", verb, body, w.Code, w.Body)
			}
		}
	}
}

func TestCallers(t *testing.T) {
	basic := "Basic YW5hOnNlY3JldA==" // ana:secret
	tests := map[string]struct {
		reason  string
		headers []string
		want    gate.Caller
		field   string
	}{
		"anonymous":     {"the configured tenant", nil, gate.Caller{Tenant: "home"}, ""},
		"tenant":        {"the header's", []string{"X-Tenant-ID", "acme"}, gate.Caller{Tenant: "acme"}, ""},
		"user":          {"the header's", []string{"X-User-ID", "bob"}, gate.Caller{Tenant: "home", Name: "bob"}, ""},
		"basic":         {"its user", []string{"Authorization", basic}, gate.Caller{Tenant: "home", Name: "ana"}, ""},
		"both":          {"credentials override unproven headers", []string{"Authorization", basic, "X-User-ID", "bob"}, gate.Caller{Tenant: "home", Name: "ana"}, ""},
		"other scheme":  {"is not read", []string{"Authorization", "Bearer x"}, gate.Caller{Tenant: "home"}, ""},
		"long tenant":   {"no ledger keeps it", []string{"X-Tenant-ID", strings.Repeat("x", 256)}, gate.Caller{}, "X-Tenant-ID"},
		"a name's name": {"whatever letters it has", []string{"X-User-ID", "Zoë Łuk-42 <z@x.example> 山田"}, gate.Caller{Tenant: "home", Name: "Zoë Łuk-42 <z@x.example> 山田"}, ""},
		"unseen":        {"bot and a space of no width are two names, and a person reads one", []string{"X-User-ID", "bot\u200b"}, gate.Caller{}, "X-User-ID"},
		"turned around": {"likewise", []string{"X-User-ID", "\u202eana"}, gate.Caller{}, "X-User-ID"},
		"a line":        {"Basic can hold any byte", []string{"Authorization", "Basic YW5hCmV2ZTp4"}, gate.Caller{}, "X-User-ID"},
		"no UTF-8":      {"likewise", []string{"X-User-ID", "\xff"}, gate.Caller{}, "X-User-ID"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			w := ask(New(s, &Options{Caller: Dev("home")}), "GET", "/api/v1/workflows/wf_1", "", test.headers...)
			if test.field != "" {
				if f := flatOf(t, w); w.Code != 400 || f.Field != test.field || s.asked != 0 {
					t.Errorf("%s: %d %+v", test.reason, w.Code, f)
				}
				return
			}
			if diff := cmp.Diff(test.want, s.lastCall.Caller); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// Lists are lists also where the gate has none to give.
func TestEmptyLists(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/workflows":                          `"workflows":[]`,
		"/api/v1/workflows/approvals/pending":        `"pending_approvals":[]`,
		"/api/v1/workflow-control/pending-approvals": `"approvals":[]`,
	} {
		if w := ask(New(&stand{}, nil), "GET", path, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
}

// A step's output is returned byte for byte, for callers that compare it so.
func TestTextStaysAsItIs(t *testing.T) {
	const output = `{"note":"<b>paid</b> & done","amount":1.50}`
	w := httptest.NewRecorder()
	if err := answer(w, http.StatusOK, gate.RetryContext{PriorOutput: json.RawMessage(output)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Body.String(), output) {
		t.Errorf("%s is not in %s", output, w.Body)
	}
}
