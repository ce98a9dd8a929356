package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

var errNoTool = errors.New("unknown tool")

// ServeOrders is a server of the Model Context Protocol without a destination behind it: create_order
// adds an order for each call, find_orders lists those of an order_id. It ends with its input.
func ServeOrders(in io.Reader, out io.Writer) error {
	to := lineWriter{to: out}
	var orders []json.RawMessage
	return eachLine(in, func(line []byte) error {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name            string
				Arguments       json.RawMessage
				ProtocolVersion string
			}
		}
		answer := message{"jsonrpc": json.RawMessage(`"2.0"`)}
		if err := json.Unmarshal(line, &m); err != nil {
			answer["id"], answer["error"] = json.RawMessage("null"), json.RawMessage(`{"code":-32700,"message":"this is no message"}`)
			return to.message(answer)
		}
		if m.ID == nil {
			return nil // a notification
		}
		var problem error
		switch m.Method {
		case "initialize":
			version := m.Params.ProtocolVersion
			if !slices.Contains(ordersVersions, version) {
				version = ordersVersions[0]
			}
			answer["result"], problem = json.Marshal(map[string]any{"protocolVersion": version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "readback-chaos", "version": "1"}})
		case "ping":
			answer["result"] = json.RawMessage(`{}`)
		case "tools/list":
			answer["result"] = json.RawMessage(orderTools)
		case "tools/call":
			id, keyed := valueAtJSON(m.Params.Arguments, "/order_id")
			var text []byte
			switch {
			case !keyed:
				answer["result"] = result("order_id is missing; want a text", true)["result"]
			case m.Params.Name == "create_order":
				orders = append(orders, m.Params.Arguments)
				text = m.Params.Arguments
			case m.Params.Name == "find_orders":
				found := []json.RawMessage{}
				for _, o := range orders {
					if has, _ := valueAtJSON(o, "/order_id"); has == id {
						found = append(found, o)
					}
				}
				text, problem = json.Marshal(map[string]any{"orders": found})
			default:
				problem = errNoTool
			}
			if text != nil {
				answer["result"] = result(string(text), false)["result"]
			}
		default:
			problem = fmt.Errorf("method %q is unknown", m.Method)
		}
		if problem != nil {
			answer["error"], _ = json.Marshal(map[string]any{"code": -32601, "message": problem.Error()}) // it is JSON
		}
		answer["id"] = m.ID
		return to.message(answer)
	})
}

// ordersVersions are the versions of the protocol that ServeOrders can agree to, the newest first.
var ordersVersions = []string{"2025-06-18", "2025-03-26", "2024-11-05"}

const orderTools = `{"tools":[
{"name":"create_order","description":"Create an order.","inputSchema":{"type":"object","properties":{"order_id":{"type":"string"},"amount_cents":{"type":"integer"}},"required":["order_id"]}},
{"name":"find_orders","description":"List the orders of an order_id.","inputSchema":{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]},"annotations":{"readOnlyHint":true}}]}`
