package mcpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/access"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
)

// answer reads lines until the response to a request.
func (l *lines) answer(id int) string {
	l.t.Helper()
	for l.out.Scan() {
		var m struct {
			ID     any             `json:"id"`
			Method string          `json:"method"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(l.out.Bytes(), &m); err != nil {
			l.t.Fatalf("%v: %.200s", err, l.out.Text())
		}
		if m.Method == "" && (fmt.Sprint(m.ID) == fmt.Sprint(id) || m.ID == nil && m.Error != nil) {
			return l.out.Text()
		}
	}
	l.t.Fatalf("no answer to request %d", id)
	return ""
}

// TestRawMessages: each request gets a response, and the server still responds to a
// correct one afterwards.
func TestRawMessages(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	l := b.lines()
	l.initialize()
	for _, m := range fakemcp.RawMessages(1) {
		l.say(m.Text)
		if m.ID != 0 {
			l.answer(m.ID)
		}
	}
	if r := b.result(l.ask(callBody("9999", "create_order", anOrder, ""))); r.Status != "verified" {
		t.Errorf("over stdio, afterwards: %+v", r)
	}

	b = newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	for _, m := range fakemcp.RawMessages(1) {
		if s := w.do(http.MethodPost, m.Text); s.status >= http.StatusInternalServerError {
			t.Errorf("%.200s: %d %s", m.Text, s.status, s.body)
		}
	}
	if r := b.result(w.do(http.MethodPost, callBody("9999", "create_order", anOrder, ""))); r.Status != "verified" {
		t.Errorf("over HTTP, afterwards: %+v", r)
	}

	b = newBench(t, orders.Unique.Options(), nil)
	alone := &wire{t: t, url: b.listen(), name: "bot", noVersion: true}
	handled := 0
	for _, m := range append(fakemcp.RawMessages(1), fakemcp.RawMessage{ID: 9999, Text: callBody("9999", "create_order", anOrder, "")}) {
		var text string
		text, alone.header = m.Alone()
		s := alone.do(http.MethodPost, text)
		if s.status >= http.StatusInternalServerError {
			t.Errorf("without a session: %.200s: %d %s", text, s.status, s.body)
		}
		if s.status == http.StatusOK {
			handled++
		}
		if m.ID == 9999 {
			if r := b.result(s); r.Status != "verified" {
				t.Errorf("without a session, afterwards: %+v", r)
			}
		}
	}
	if handled < 5 {
		t.Errorf("without a session %d messages were handled at all; the suite reaches nothing", handled)
	}
}

// TestAPanicEndsOneMessage: it gets an internal error, is logged with its stack, and the
// next message is handled.
func TestAPanicEndsOneMessage(t *testing.T) {
	var log bytes.Buffer
	server := mcp.NewServer(&mcp.Implementation{Name: "panics"}, nil)
	server.AddTool(&mcp.Tool{Name: "panic", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("a mistake of ours") })
	api := mcpapi.NewAPI(func(access.Identity) *mcp.Server { return server }, mcpapi.APIOptions{Workflow: "run-1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l := linesOf(t, api)
	l.initialize()
	l.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic","arguments":{}}}`)
	if got := l.answer(1); !strings.Contains(got, "-32603") || !strings.Contains(got, "unknown whether the write was applied") || strings.Contains(got, "a mistake of ours") {
		t.Errorf("answered %s", got)
	}
	l.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := l.answer(2); !strings.Contains(got, `"result"`) {
		t.Errorf("the next message was answered with %s", got)
	}
	if text := log.String(); !strings.Contains(text, "a mistake of ours") || !strings.Contains(text, "rawmessages_test.go") {
		t.Errorf("logged %q, want the panic and its stack", text)
	}
}
