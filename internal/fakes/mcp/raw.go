package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// RawMessages are messages of clients that ignore the protocol's schema: each method of the
// protocol, and an unknown one, with params that are absent, null, of the wrong type, empty, of
// wrong members and huge. A request is answered with a result or an error; none may end the
// server. IDs count from first; those of notifications are 0.
func RawMessages(first int) []RawMessage {
	requests := []string{
		"ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
		"resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete", "logging/setLevel",
		"server/discover", "tasks/list", "tasks/get", "initialize", "roots/list", "sampling/createMessage", "elicitation/create", "no/such",
	}
	notifications := []string{
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
		"notifications/tools/list_changed", "notifications/message", "notifications/no_such",
	}
	params := []string{
		"", `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":7`, `,"params":"text"`,
		`,"params":{"name":null,"arguments":null,"uri":null,"ref":null,"argument":null,"_meta":null,"cursor":null,"level":null,"requestId":null}`,
		`,"params":{"name":7,"arguments":[],"uri":{},"ref":[],"argument":7,"_meta":[],"cursor":{},"level":{},"requestId":{},"progress":"x"}`,
		`,"params":{"name":"` + strings.Repeat("n", 300_000) + `","uri":"` + strings.Repeat("u", 300_000) + `","cursor":"` + strings.Repeat("c", 300_000) + `"}`,
	}
	var all []RawMessage
	id := first
	for _, p := range params {
		for _, method := range requests {
			all = append(all, RawMessage{ID: id, Text: fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, id, method, p)})
			id++
		}
		for _, method := range notifications {
			all = append(all, RawMessage{Text: fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, method, p)})
		}
	}
	return all
}

// RawMessage is one of [RawMessages].
type RawMessage struct {
	ID   int // 0: a notification, which has no answer
	Text string
}

// Alone is the message as a request of the protocol's version without sessions over
// HTTP: with the header fields and, where it has params that are an object and no
// _meta in it, the _meta without which nothing would handle it.
func (m RawMessage) Alone() (text string, header http.Header) {
	const version = "2026-07-28"
	var parts map[string]json.RawMessage
	var params map[string]json.RawMessage
	var method, name string
	_ = json.Unmarshal([]byte(m.Text), &parts) // what is no JSON or of another type stays as it is
	_ = json.Unmarshal(parts["method"], &method)
	_ = json.Unmarshal(parts["params"], &params)
	_ = json.Unmarshal(params["name"], &name)
	if name == "" {
		_ = json.Unmarshal(params["uri"], &name)
	}
	header = http.Header{"Mcp-Protocol-Version": {version}, "Mcp-Method": {method}}
	if name != "" {
		header.Set("Mcp-Name", name)
	}
	if text = m.Text; params != nil && params["_meta"] == nil {
		params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}`)
		parts["params"], _ = json.Marshal(params)
		whole, _ := json.Marshal(parts)
		text = string(whole)
	}
	return text, header
}
