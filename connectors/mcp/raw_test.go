package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
)

// TestRawMessagesOfAServer: a server may send its client requests and
// notifications with any params. Each request is answered, and the session goes
// on.
func TestRawMessagesOfAServer(t *testing.T) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	client, err := mcp.NewClient(mcp.Server{Transport: func(context.Context) (sdk.Transport, error) {
		return &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = toServer.Close()
		_ = client.Close()
	})
	go func() {
		defer func() { _ = toClient.Close() }()
		lines := bufio.NewScanner(fromClient)
		lines.Buffer(nil, 4<<20)
		send := func(text string) { _, _ = io.WriteString(toClient, text+"\n") }
		for lines.Scan() {
			var m struct {
				ID     json.Number `json:"id"`
				Method string      `json:"method"`
			}
			_ = json.Unmarshal(lines.Bytes(), &m)
			switch m.Method {
			case "initialize":
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}}`, m.ID))
			case "prompts/list":
				answers := make(chan struct{})
				go func() {
					defer close(answers)
					for _, raw := range mcptest.RawMessages(1000) {
						send(raw.Text)
					}
				}()
				for _, raw := range mcptest.RawMessages(1000) {
					if raw.ID != 0 && !lines.Scan() {
						return
					}
				}
				<-answers
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"prompts":[{"name":"greet"}]}}`, m.ID))
			}
		}
	}()
	s, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ListPrompts(t.Context(), nil)
	if err != nil || len(got.Prompts) != 1 || !strings.Contains(got.Prompts[0].Name, "greet") {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}
