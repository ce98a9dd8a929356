package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// TestRawMessagesOfAServer: a server may send its client requests and notifications with any
// params. Each request is answered, and the session continues.
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
					for _, raw := range fakemcp.RawMessages(1000) {
						send(raw.Text)
					}
				}()
				for _, raw := range fakemcp.RawMessages(1000) {
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

// TestAPanicOfAHandlerEndsNothing: neither at the beginning of a session, nor when
// the tools have changed, nor at progress; each is logged with its stack.
func TestAPanicOfAHandlerEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, seen := fakemcp.New(fakemcp.NewWorld()), make(chan struct{})
		up.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok && p.GetProgressToken() != nil {
					_ = req.GetSession().(*sdk.ServerSession).NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: p.GetProgressToken(), Progress: 1})
					<-seen // the answer may overtake the last notification of a call
				}
				return next(ctx, method, req)
			}
		})
		var log bytes.Buffer
		client, err := mcp.NewClient(mcp.Server{Transport: up.Transport}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		client.OnChange(func(mcp.Change) { panic("a mistake about tools") })
		if _, err := client.Tools(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		up.Replace(fakemcp.Create, "Creates an order, and more.")
		time.Sleep(time.Second) // the SDK gathers changes for a moment
		args := map[string]any{"order_id": "A-1"}
		if _, err := client.Call(t.Context(), fakemcp.Find, args, func(*sdk.ProgressNotificationParams) {
			close(seen)
			panic("a mistake about progress")
		}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, err := client.Call(t.Context(), fakemcp.Find, args, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		_ = client.Close()
		up.Cut()
		synctest.Wait()
		for _, want := range []string{"a new session", "a changed list of tools", "a mistake about tools", "notifications/progress", "a mistake about progress", "raw_test.go"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("logged %s, which lacks %q", log.String(), want)
			}
		}
	})
}
