package mcpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

const anOrder = `{"order_id":"A-1","amount_cents":5}`

// TestEveryVersionOfTheProtocol: the library's own client lists and calls in each
// of them, over a real listener.
func TestEveryVersionOfTheProtocol(t *testing.T) {
	for _, version := range mcp.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			s := b.connect(b.listen(), as{name: "bot"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("negotiated %s", got)
			}
			listed, err := s.ListTools(context.Background(), nil)
			if err != nil || len(listed.Tools) != 4 {
				t.Fatalf("%d tools, %v", len(listed.Tools), err)
			}
			r, res := b.call(s, "create_order", order("A-1"), nil)
			if r.Status != "verified" || res.IsError || b.effects() != 1 {
				t.Errorf("answer %+v, %d effects", r, b.effects())
			}
			if again, _ := b.call(s, tool.GetOutcome, map[string]any{"id": r.ID}, nil); again.Status != "verified" {
				t.Errorf("outcome %+v", again)
			}
		})
	}
}

func TestAnUnknownVersionIsAnsweredWithAKnownOne(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := &wire{t: t, url: b.listen(), name: "bot", noVersion: true}
	s := w.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	if s.status != http.StatusOK || !strings.Contains(s.body, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("%d %s", s.status, s.body)
	}
	w.header = http.Header{"Mcp-Protocol-Version": {"2099-01-01"}, "Mcp-Method": {"server/discover"}}
	s = w.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if s.status != http.StatusBadRequest || !strings.Contains(s.body, "2026-07-28") {
		t.Errorf("%d %s", s.status, s.body)
	}
}

// TestWithoutSessions: in the newest version each request is independent, and a call is
// recognized by the client's name for it or by the operation.
func TestWithoutSessions(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	s := b.connect(b.listen(), as{name: "bot"}, nil)
	meta := mcp.Meta{mcpapi.MetaWorkflow: "run-1", mcpapi.MetaStep: "order"}
	for i, c := range []struct {
		tool string
		id   string
		meta mcp.Meta
		want string
	}{
		{"create_order", "A", meta, "verified"}, {"create_order", "A", meta, "again:verified"},
		{"create_order_once", "B", nil, "verified"}, {"create_order_once", "B", nil, "again:verified"},
		{"create_order", "C", nil, "verified"}, {"create_order", "C", nil, "not_applied"},
	} {
		m := mcp.Meta{}
		for k, v := range c.meta {
			m[k] = v
		}
		r, _ := b.call(s, c.tool, order(c.id), m)
		got := r.Status
		if begunBefore(r) {
			got = "again:" + got
		}
		if got != c.want {
			t.Errorf("call %d is %s, want %s: %s", i, got, c.want, r.Text)
		}
	}
	if b.effects() != 3 {
		t.Errorf("%d effects, want 3", b.effects())
	}
}

func TestWhoMayComeIn(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	url := b.listen()
	open := b.open(url, "bot")
	initialize := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	call := callBody("1", "create_order", anOrder, "")
	for name, c := range map[string]struct {
		reason string
		wire   wire
		method string
		body   string
		want   int
	}{
		"anonymous":                   {"credentials are required", wire{}, http.MethodPost, initialize, http.StatusUnauthorized},
		"anonymous in a session":      {"its id is no credential", wire{session: open.session}, http.MethodPost, call, http.StatusUnauthorized},
		"anonymous without sessions":  {"in no version", wire{header: http.Header{"Mcp-Protocol-Version": {"2026-07-28"}}}, http.MethodPost, call, http.StatusUnauthorized},
		"another agent":               {"a session belongs to who opened it", wire{name: "other", session: open.session}, http.MethodPost, call, http.StatusNotFound},
		"another tenant":              {"likewise", wire{name: "outsider", session: open.session}, http.MethodPost, call, http.StatusNotFound},
		"a reviewer":                  {"who opened a session with other rights", wire{name: "reviewer", session: open.session}, http.MethodPost, call, http.StatusNotFound},
		"another agent listens":       {"answers are for who asked", wire{name: "other", session: open.session, header: http.Header{"Accept": {"text/event-stream"}}}, http.MethodGet, "", http.StatusNotFound},
		"another agent resumes":       {"likewise", wire{name: "other", session: open.session, header: http.Header{"Last-Event-Id": {"x_0"}}}, http.MethodGet, "", http.StatusNotFound},
		"another agent ends it":       {"likewise", wire{name: "other", session: open.session}, http.MethodDelete, "", http.StatusNotFound},
		"a session that is not":       {"as one that is another's", wire{name: "bot", session: "none"}, http.MethodPost, call, http.StatusNotFound},
		"two sessions":                {"which one?", wire{name: "bot", header: http.Header{"Mcp-Session-Id": {open.session, "x"}}}, http.MethodPost, call, http.StatusNotFound},
		"method override":             {"a header is no method", wire{name: "other", session: open.session, header: http.Header{"X-Http-Method-Override": {"DELETE"}}}, http.MethodPost, call, http.StatusNotFound},
		"a page of another origin":    {"a browser sends it for another page", wire{name: "bot", header: http.Header{"Origin": {"https://evil.example"}}}, http.MethodPost, initialize, http.StatusForbidden},
		"a page in a sandbox":         {"null is no origin", wire{name: "bot", header: http.Header{"Origin": {"null"}}}, http.MethodPost, initialize, http.StatusForbidden},
		"such a page listens":         {"reading is no better", wire{name: "bot", session: open.session, header: http.Header{"Origin": {"https://evil.example"}}}, http.MethodGet, "", http.StatusForbidden},
		"a name that points here":     {"an attacker pointed it here", wire{name: "bot", header: http.Header{"Host": {"evil.example"}, "Origin": {"http://evil.example"}}}, http.MethodPost, initialize, http.StatusForbidden},
		"a call without a session":    {"nothing was initialized", wire{name: "bot"}, http.MethodPost, call, http.StatusOK},
		"a reviewer makes a call":     {"there is no such tool", wire{name: "reviewer"}, http.MethodPost, initialize, http.StatusOK},
		"an unknown method of HTTP":   {"as HTTP has it", wire{name: "bot"}, http.MethodPut, call, http.StatusMethodNotAllowed},
		"a form":                      {"browsers send those without asking", wire{name: "bot", header: http.Header{"Content-Type": {"text/plain"}}}, http.MethodPost, initialize, http.StatusUnsupportedMediaType},
		"not json":                    {"it cannot be read", wire{name: "bot", session: open.session}, http.MethodPost, `{"jsonrpc":"2.0","id":1`, http.StatusBadRequest},
		"a member twice":              {"who is behind could read the other one", wire{name: "bot", session: open.session}, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, http.StatusBadRequest},
		"no message":                  {"JSON that is none", wire{name: "bot", session: open.session}, http.MethodPost, `{"a":1}`, http.StatusBadRequest},
		"no method of it":             {"unknown", wire{name: "bot", session: open.session}, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"writes/decide","params":{}}`, http.StatusBadRequest},
		"a batch":                     {"not in this version", wire{name: "bot", session: open.session}, http.MethodPost, "[" + call + "]", http.StatusBadRequest},
		"too long":                    {"a megabyte is enough", wire{name: "bot", session: open.session}, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, http.StatusRequestEntityTooLarge},
		"too deep":                    {"deeper than the limit", wire{name: "bot", session: open.session}, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, http.StatusBadRequest},
		"invalid UTF-8":               {"it would be read as something else", wire{name: "bot", session: open.session}, http.MethodPost, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", http.StatusBadRequest},
		"nothing":                     {"an empty body", wire{name: "bot", session: open.session}, http.MethodPost, "", http.StatusBadRequest},
		"two messages after another":  {"one a request", wire{name: "bot", session: open.session}, http.MethodPost, call + call, http.StatusBadRequest},
		"an origin that is our own":   {"a page of ours", wire{name: "bot", header: http.Header{"Origin": {strings.TrimSuffix(url, mcpapi.Path)}}}, http.MethodPost, initialize, http.StatusOK},
		"credentials in the query":    {"they would be in logs", wire{url: "?token=rbk_x"}, http.MethodPost, initialize, http.StatusUnauthorized},
		"a tenant of one's own words": {"the credentials name it", wire{name: "outsider", header: http.Header{"X-Tenant-Id": {"acme"}}}, http.MethodPost, initialize, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.wire
			w.t, w.url = t, url+w.url
			s := w.do(c.method, c.body)
			if s.status != c.want {
				t.Errorf("%s: %d, want %d: %s", c.reason, s.status, c.want, s.body)
			}
			if s.status == http.StatusUnauthorized && s.header.Get("WWW-Authenticate") == "" {
				t.Error("no word on how to log in")
			}
			if strings.Contains(s.body, open.session) {
				t.Errorf("the answer contains the session's id: %s", s.body)
			}
		})
	}
	if b.effects() != 0 {
		t.Errorf("%d effects", b.effects())
	}
}

// TestADeadTokenEndsItsSessions: every request needs credentials, and a caller with new
// ones opens a new session.
func TestADeadTokenEndsItsSessions(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	w.name = ""
	if s := w.do(http.MethodPost, callBody("1", "create_order", anOrder, "")); s.status != http.StatusUnauthorized {
		t.Errorf("%d %s", s.status, s.body)
	}
	if b.effects() != 0 {
		t.Errorf("%d effects", b.effects())
	}
}

// TestADecisionIsNoTool: no name of a tool, a method or a member brings one in.
func TestADecisionIsNoTool(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	held := b.result(w.do(http.MethodPost, callBody("1", "create_order_held", anOrder, "")))
	if held.Status != "held" {
		t.Fatalf("%+v", held)
	}
	for i, body := range []string{
		callBody("10", "decide", fmt.Sprintf(`{"id":%q,"word":"approve"}`, held.ID), ""),
		callBody("11", tool.GetOutcome, fmt.Sprintf(`{"id":%q,"decision":"approve"}`, held.ID), ""),
		callBody("12", tool.GetOutcome, fmt.Sprintf(`{"id":%q}`, held.ID), `{"readback/role":"reviewer","readback/decision":"approve","readback/tenant":"acme"}`),
		callBody("13", "create_order_held", anOrder, `{"readback/step":"x","readback/risk":"auto"}`),
		callBody("14", "create_order_held", `{"order_id":"A-2","amount_cents":5,"risk":"auto"}`, ""),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":15,"method":"POST /v1/writes/%s/decision","params":{"word":"approve"}}`, held.ID),
	} {
		w.header = http.Header{"X-Role": {"operator"}, "Readback-Role": {"operator"}}
		s := w.do(http.MethodPost, body)
		if strings.Contains(s.body, `"verified":true`) {
			t.Errorf("message %d: %s", i, s.body)
		}
	}
	if b.effects() != 0 {
		t.Errorf("%d effects of unapproved writes", b.effects())
	}
}

// TestSessionsAreBounded: one identity cannot take all places.
func TestSessionsAreBounded(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	url := b.listen()
	var last *wire
	for range 100 {
		last = b.open(url, "bot")
	}
	initialize := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	w := &wire{t: t, url: url, name: "bot"}
	if s := w.do(http.MethodPost, initialize); s.status != http.StatusServiceUnavailable || s.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", s.status, s.body)
	}
	b.open(url, "other")
	if s := last.do(http.MethodDelete, ""); s.status != http.StatusNoContent {
		t.Errorf("%d %s", s.status, s.body)
	}
	deadline := time.Now().Add(10 * time.Second) // the place is free as soon as the session has ended
	for w.do(http.MethodPost, initialize).status != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("the place is not free again")
		}
	}
}

// TestAStreamIsResumed: a client that lost the response gets it, and nothing is done
// twice.
func TestAStreamIsResumed(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	first := w.do(http.MethodPost, callBody("7", "create_order", anOrder, ""))
	if first.lastEvent == "" {
		t.Fatalf("no event to resume from: %s", first.body)
	}
	stream, _, _ := strings.Cut(first.lastEvent, "_")
	w.header = http.Header{"Last-Event-Id": {stream + "_0"}}
	again := w.do(http.MethodGet, "")
	diff(t, "the answer", b.result(again), b.result(first))
	if b.effects() != 1 {
		t.Errorf("%d effects", b.effects())
	}
}

func TestStdioNeedsAnIdentity(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	if err := mcpapi.NewAPI(b.server.ServerFor, mcpapi.APIOptions{}).Stdio(t.Context(), access.Identity{}, strings.NewReader(""), nil); err == nil {
		t.Error("served without an identity")
	}
}

// TestABatch: version 2025-03-26 has them, and each call in one is a call.
func TestABatch(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	w.header = http.Header{"Mcp-Protocol-Version": {"2025-03-26"}}
	batch := "[" + callBody("7", "create_order", anOrder, "") + "," + callBody("8", "create_order", `{"order_id":"A-2","amount_cents":5}`, "") + "]"
	for range 2 { // delivered again
		if s := w.do(http.MethodPost, batch); s.status != http.StatusOK {
			t.Errorf("%d %s", s.status, s.body)
		}
	}
	if b.effects() != 2 {
		t.Errorf("%d effects, want 2", b.effects())
	}
}

// TestBehindAProxyOnThisMachine: the name that callers know is served, and no other.
func TestBehindAProxyOnThisMachine(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), func(c *mcpapi.Config) { c.Hosts = []string{"readback.example"} })
	url := b.listen()
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	for host, want := range map[string]int{"readback.example": http.StatusOK, "evil.example": http.StatusForbidden} {
		w := &wire{t: t, url: url, name: "bot", header: http.Header{"Host": {host}}}
		if s := w.do(http.MethodPost, initialize); s.status != want {
			t.Errorf("%s: %d %s, want %d", host, s.status, s.body, want)
		}
	}
}
