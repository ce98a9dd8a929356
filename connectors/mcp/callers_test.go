package mcp_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// listener counts log messages.
type listener chan string

func (l listener) Log(_ context.Context, p *sdk.LoggingMessageParams) error {
	l <- p.Data.(string)
	return nil
}

// logging is a client of a fake that logs each order that is asked for.
func logging(t *testing.T) (*mcp.Client, *fakemcp.Server, func(workflow, order string)) {
	t.Helper()
	up := fakemcp.New(fakemcp.NewWorld())
	up.MCP.AddTool(up.Tool(fakemcp.Find), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args map[string]string
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{}, req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "error", Data: args["order_id"]})
	})
	client, err := mcp.NewClient(mcp.Server{Transport: up.Transport}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SetLevel(t.Context(), "info"); err != nil {
		t.Fatal(err)
	}
	return client, up, func(workflow, order string) {
		t.Helper()
		if _, err := client.Call(mcp.For(t.Context(), "acme", workflow), fakemcp.Find, map[string]any{"order_id": order}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
}

func ended(client *mcp.Client, up *fakemcp.Server) {
	_ = client.Close()
	up.Cut()
	synctest.Wait()
}

// TestTwoListenersOfOneWorkflow: two clients may give their work one name; log messages of
// the server cannot be told apart then.
func TestTwoListenersOfOneWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, up, call := logging(t)
		defer ended(client, up)
		one, two := make(listener, 10), make(listener, 10)
		stop := client.Listen("acme", "run-7", one)
		call("run-7", "A-1")
		if len(one) != 1 || <-one != "A-1" {
			t.Error("the only listener got nothing")
		}
		stop()
		defer client.Listen("acme", "run-7", two)()
		call("run-7", "A-2")
		if len(one)+len(two) != 0 {
			t.Error("a message of a session for two listeners was handed over")
		}
	})
}

// TestTwoWorkflowsOfOneSession: the messages of a session are no listener's once a call was
// made in it for another workflow, such as one that a worker continues.
func TestTwoWorkflowsOfOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, up, call := logging(t)
		defer ended(client, up)
		log := make(listener, 10)
		defer client.Listen("acme", "run-1", log)()
		call("run-1", "A-1")
		if len(log) != 1 || <-log != "A-1" {
			t.Error("the only caller got nothing")
		}
		call("run-2", "A-2")
		call("run-1", "A-3")
		if len(log) != 0 {
			t.Errorf("of a session for two workflows the first got %q", <-log)
		}
	})
}

// TestALogMessageOfAnEarlierSession is about calls of an earlier caller.
func TestALogMessageOfAnEarlierSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, up, call := logging(t)
		defer ended(client, up)
		earlier, err := client.Session(mcp.For(t.Context(), "acme", "run-1"))
		if err != nil {
			t.Fatal(err)
		}
		up.Cut()
		_ = client.Gone(t.Context())
		log := make(listener, 10)
		defer client.Listen("acme", "run-2", log)()
		call("run-2", "A-2")
		client.OnLog(&sdk.LoggingMessageRequest{Session: earlier, Params: &sdk.LoggingMessageParams{Level: "error", Data: "A-1"}})
		synctest.Wait()
		if len(log) != 1 || <-log != "A-2" {
			t.Errorf("the caller of a new session got %d messages besides its own", len(log))
		}
	})
}

// TestProgressOfTwoCalls: each gets its own, and none that comes when it is over.
func TestProgressOfTwoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := fakemcp.New(fakemcp.NewWorld())
		proceed, over := make(chan struct{}), make(chan struct{})
		up.MCP.AddTool(up.Tool(fakemcp.Find), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var args map[string]string
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return nil, err
			}
			p := &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: args["order_id"], Progress: 1}
			go func() {
				<-over
				_ = req.Session.NotifyProgress(context.Background(), p)
			}()
			<-proceed
			err := req.Session.NotifyProgress(ctx, p)
			<-proceed
			return &sdk.CallToolResult{}, err
		})
		client, err := mcp.NewClient(mcp.Server{Transport: up.Transport}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ended(client, up)
		seen := map[string]chan string{"A-1": make(chan string, 10), "A-2": make(chan string, 10)}
		for order, to := range seen {
			go func() {
				if _, err := client.Call(t.Context(), fakemcp.Find, map[string]any{"order_id": order}, func(p *sdk.ProgressNotificationParams) { to <- p.Message }); err != nil {
					t.Error(err)
				}
			}()
		}
		for range 4 {
			synctest.Wait()
			proceed <- struct{}{}
		}
		synctest.Wait()
		close(over)
		synctest.Wait()
		for order, to := range seen {
			if len(to) != 1 || <-to != order {
				t.Errorf("the call about %s got %d other messages", order, len(to))
			}
		}
	})
}
