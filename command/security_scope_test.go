package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// scoped makes a token of an agent with a scope.
func (f *fort) scoped(s *engine.Scope) string {
	f.t.Helper()
	_, secret, err := f.tokens.Create(f.t.Context(), access.NewToken{Tenant: own, Name: "scoped", Role: engine.RoleAgent, By: "root", Scope: s})
	if err != nil {
		f.t.Fatal(err)
	}
	return secret
}

// models speaks with a path of models in a session of its own.
func (f *fort) models(path, token string) func(string) answer {
	f.t.Helper()
	session := f.do(f.request("POST", path, initialize, token, mcpAccept...)).header.Get("Mcp-Session-Id")
	say := func(body string) answer {
		return f.do(f.request("POST", path, body, token, append([]string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"}, mcpAccept...)...))
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return say
}

// A token with a scope writes only within it, in every way of requesting a write, and
// lists only that; a destination of another tenant stays unknown.
func TestATokenWritesWithinItsScope(t *testing.T) {
	f := newFort(t, func(text string) string { return strings.Replace(text, "- {name: money, tool: \"wire*\"}\n", "", 1) })
	id := f.must(engine.RoleAgent, own, "POST", "/api/v1/workflows", `{"workflow_name":"w"}`).field("workflow_id")
	write := `{"tool":"wire_order","destination":"orders","kind":"order","key":{"order_id":"n1"},"write":"create","expect":{"amount_cents":1999}`
	notify := `{"order_id":"A-1","text":"hello"}`
	ways := map[string]struct{ path, body string }{
		"a write":           {"/v1/writes", write + `,"workflow":"run"}`},
		"a saga":            {"/v1/sagas", `{"id":"s","steps":[{"name":"a","intent":` + write + `}}]}`},
		"a step":            {"/api/v1/workflows/" + id + "/steps/a/gate", `{"step_type":"tool_call","tool_context":{"tool_name":"wire_order"},"intent":` + write + `}}`},
		"a tool":            {"/mcp", `"wire_order","arguments":{"order_id":"n1","amount_cents":1999}`},
		"a tool behind":     {"/mcp/shop", `"` + fakemcp.Create + `","arguments":{"order_id":"n1","amount_cents":1999}`},
		"an unproven tool":  {"/mcp/shop", `"` + fakemcp.Notify + `","arguments":` + notify},
		"a tool that reads": {"/mcp/shop", `"` + fakemcp.Get + `","arguments":{"order_id":"n1"}`},
	}
	for name, s := range map[string]*engine.Scope{
		"destination": {Destinations: []string{"mail"}},
		"kind":        {Kinds: []string{"invoice"}},
		"write type":  {Writes: []intent.WriteType{intent.Delete}},
		"tool":        {Tools: []string{"refund"}},
		"ceiling":     {Max: []engine.Ceiling{{Field: "/amount_cents", Most: "10"}}},
	} {
		token := f.scoped(s)
		for way, c := range ways {
			if way == "a tool that reads" && (name == "write type" || name == "ceiling") {
				continue // it writes nothing
			}
			a := answer{}
			if strings.HasPrefix(c.path, "/mcp") {
				a = f.models(c.path, token)(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":` + c.body + `}}`)
				if strings.Contains(a.body, `"verified":true`) || !strings.Contains(a.body, `"isError":true`) && !strings.Contains(a.body, `"error":{`) {
					t.Errorf("%s outside of the %s: %s", way, name, a)
				}
				continue
			}
			if a = f.do(f.request("POST", c.path, c.body, token)); a.status != http.StatusForbidden || !strings.Contains(a.body, "this token may") && !strings.Contains(a.body, "of this token") {
				t.Errorf("%s outside of the %s: %s", way, name, a)
			}
		}
	}
	// None of it had an effect.
	if a := f.must(engine.RoleOperator, own, "GET", "/v1/writes", ""); !strings.Contains(a.body, `"writes":[]`) {
		t.Errorf("writes are recorded: %s", a)
	}
	if a := f.must(engine.RoleOperator, own, "GET", "/v1/sagas", ""); !strings.Contains(a.body, `"sagas":[]`) {
		t.Errorf("sagas are recorded: %s", a)
	}
	if a := f.must(engine.RoleAgent, own, "GET", "/api/v1/workflows/"+id, ""); strings.Contains(a.body, "step_id") {
		t.Errorf("steps are recorded: %s", a)
	}
	if calls, behind := f.p.world.Calls(), f.shop.World.Calls(); len(calls)+behind > 0 {
		t.Errorf("the destination was asked %d times, the server behind the gateway %d times", len(calls), behind)
	}

	// What is within goes its way, is listed, and nothing else is.
	token := f.scoped(&engine.Scope{Destinations: []string{"orders"}, Tools: []string{"wire_order"}, Max: []engine.Ceiling{{Field: "/amount_cents", Most: "1999"}}})
	if a := f.do(f.request("POST", "/v1/writes", ways["a write"].body, token, "Prefer", "wait=30")); a.status != http.StatusOK || a.field("status") != "verified" {
		t.Errorf("a write within the scope: %s", a)
	}
	if a := f.do(f.request("GET", "/v1/destinations", "", token)); strings.Contains(a.body, `"knowledge"`) || !strings.Contains(a.body, `"orders"`) {
		t.Errorf("destinations: %s", a)
	}
	if a := f.do(f.request("GET", "/v1/events", "", token, "Accept", "text/event-stream")); a.status != http.StatusForbidden {
		t.Errorf("events: %s", a)
	}
	const list = `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`
	if a := f.models("/mcp", token)(list); !strings.Contains(a.body, `"wire_order"`) || !strings.Contains(a.body, `"get_outcome"`) {
		t.Errorf("tools: %s", a)
	}
	if a := f.models("/mcp", f.scoped(&engine.Scope{Tools: []string{"refund"}}))(list); strings.Contains(a.body, `"wire_order"`) || !strings.Contains(a.body, `"get_outcome"`) {
		t.Errorf("tools outside of the scope: %s", a)
	}
	shop := f.models("/mcp/shop", f.scoped(&engine.Scope{Destinations: []string{"knowledge"}, Tools: []string{fakemcp.Create, fakemcp.Get}}))(list)
	for _, tool := range []string{fakemcp.Create, fakemcp.Get, "get_outcome"} {
		if !strings.Contains(shop.body, fmt.Sprintf(`"name":%q`, tool)) {
			t.Errorf("the tool %s of the gateway is not listed: %s", tool, shop)
		}
	}
	for _, tool := range []string{fakemcp.Notify, fakemcp.Find, fakemcp.Delete} {
		if strings.Contains(shop.body, fmt.Sprintf(`"name":%q`, tool)) {
			t.Errorf("the tool %s of the gateway is listed: %s", tool, shop)
		}
	}
	// Another tenant's destination and one that there is none of are the same, whatever
	// the scope lists.
	for _, s := range []*engine.Scope{{Destinations: []string{"orders"}}, {Destinations: []string{"orders", theirDestination, "canary-umbrella-none"}}} {
		ask := func(destination string) answer {
			return f.do(f.request("POST", "/v1/writes", strings.Replace(ways["a write"].body, `"destination":"orders"`, fmt.Sprintf(`"destination":%q`, destination), 1), f.scoped(s)))
		}
		theirs, none := ask(theirDestination), ask("canary-umbrella-none")
		if theirs.status != http.StatusUnprocessableEntity || theirs.status != none.status || strings.ReplaceAll(theirs.body, theirDestination, "canary-umbrella-none") != none.body {
			t.Errorf("another tenant's destination: %s, one that there is none of: %s", theirs, none)
		}
	}
}
