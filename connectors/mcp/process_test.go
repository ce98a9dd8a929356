package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// Variables by which this binary becomes a server of its own tests.
const (
	asServer  = "READBACK_TEST_MCP_SERVER" // the file in which it notes what happens
	dieOn     = "READBACK_TEST_MCP_DIE"    // the tool at whose call it dies
	notForYou = "READBACK_TEST_MCP_SECRET" // never reaches it
	itsToken  = "READBACK_TEST_MCP_TOKEN"  // what it repeats in an error of each tool that writes
)

func TestMain(m *testing.M) {
	if notes := os.Getenv(asServer); notes != "" {
		serve(notes)
		return
	}
	os.Exit(m.Run())
}

// serve is the server: the fake on standard streams.
func serve(notes string) {
	note := func(text string) {
		f, err := os.OpenFile(notes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text + "\n")
		}
		if err != nil {
			os.Exit(4)
		}
		_ = f.Close()
	}
	note("start secret=" + os.Getenv(notForYou))
	s := fakemcp.New(fakemcp.NewWorld())
	s.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok {
				note("call " + p.Name)
				if p.Name == os.Getenv(dieOn) {
					os.Exit(3)
				}
				if token := os.Getenv(itsToken); token != "" && p.Name == fakemcp.Create {
					return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no user has the token " + token}}}, nil
				}
			}
			return next(ctx, method, req)
		}
	})
	if err := s.MCP.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(5)
	}
}

func asProcess(t *testing.T, env map[string]string) (*mcp.Connector, func() []string) {
	t.Helper()
	notes := filepath.Join(t.TempDir(), "notes")
	env[asServer] = notes
	t.Setenv(notForYou, "hunter2")
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{Command: []string{os.Args[0]}, Env: env}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, func() []string {
		text, err := os.ReadFile(notes)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(strings.ReplaceAll(string(text), " ", "_"))
	}
}

// TestAProcessThatDies: a call that was sent to it is of unknown fate and not sent to the next
// one; reads continue in that.
func TestAProcessThatDies(t *testing.T) {
	c, notes := asProcess(t, map[string]string{dieOn: fakemcp.Create})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Write(ctx, create(1))
	if connectors.FateOf(err) != connectors.FateUnknown {
		t.Errorf("fate %q (%v), want unknown", connectors.FateOf(err), err)
	}
	o, err := c.Read(ctx, connectors.Query{Intent: create(1).Intent, Stamp: create(1).Stamp})
	if err != nil || len(o.Records) != 0 {
		t.Errorf("read %+v, %v", o, err)
	}
	creates, starts := 0, 0
	for _, n := range notes() {
		switch n {
		case "call_" + fakemcp.Create:
			creates++
		case "start_secret=":
			starts++
		}
	}
	if creates != 1 || starts != 2 {
		t.Errorf("%d creates reached it in %d starts: %v", creates, starts, notes())
	}
}

func TestAProcessThatCannotBeStarted(t *testing.T) {
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{Command: []string{filepath.Join(t.TempDir(), "none")}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // and not at once again
		if _, err := c.Write(t.Context(), create(1)); connectors.FateOf(err) != connectors.FateNotSent {
			t.Errorf("fate %q (%v), want not sent", connectors.FateOf(err), err)
		}
	}
}

// TestAProcessThatDoesNotSpeak ends with the caller's time, and is given up.
func TestAProcessThatDoesNotSpeak(t *testing.T) {
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{Command: []string{"sleep", "60"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Write(ctx, create(1)); connectors.FateOf(err) != connectors.FateNotSent {
		t.Errorf("fate %q (%v), want not sent", connectors.FateOf(err), err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range mcp.Shipped() {
		text, err := mcp.ShippedText(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, `{"entities":[{"name":"x"}],"path":"/a","content":"c"}`)
	}
	f.Add([]byte(fakemcp.Contract), `{"order_id":"A"}`)
	f.Fuzz(func(t *testing.T, text []byte, args string) {
		c, err := mcp.Load(text, "f.yaml")
		var a map[string]any
		if err != nil || json.Unmarshal([]byte(args), &a) != nil {
			return
		}
		for _, tool := range c.Writes() {
			_, _ = c.Derive(tool, a, nil) // must not panic
		}
	})
}
