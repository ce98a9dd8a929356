package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// chaosTools is a client of `readback chaos --mcp` as a process, and its control requests.
type chaosTools struct {
	*chaosProcess
	session *mcp.ClientSession
}

func newChaosTools(t *testing.T, args ...string) *chaosTools {
	t.Helper()
	var printed lines
	cmd := program(t, append([]string{"chaos", "--mcp"}, args...)...)
	cmd.Stderr = &printed
	cmd.Cancel = func() error { return os.ErrProcessDone } // the end of its input ends it, not that of the test's context
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, &printed)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if !cmd.ProcessState.Exited() {
			t.Error("the process outlives its client")
		}
	})
	c := &chaosTools{&chaosProcess{t: t, cmd: cmd}, session}
	eventually(t, "the address", func() bool {
		for line := range strings.Lines(printed.String()) { // of the wrapped server too: the outer one prints first
			if strings.HasPrefix(line, "http://") && strings.HasSuffix(line, "\n") {
				c.url = strings.TrimSpace(line)
				return true
			}
		}
		return false
	})
	if _, err := session.ListTools(t.Context(), nil); err != nil { // as clients do; the tools that read are known then
		t.Fatal(err)
	}
	return c
}

// calls calls a tool and returns what an agent gets.
func (c *chaosTools) calls(tool, order string) string {
	ctx, cancel := context.WithTimeout(c.t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"order_id": order, "note": "tea"}})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "nothing"
	case err != nil:
		return "protocol: " + err.Error()
	case len(r.Content) != 1:
		return fmt.Sprint(r.Content)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return "tool: " + text
	}
	return text
}

func TestChaosTools(t *testing.T) {
	t.Parallel()
	const whole = `{"note":"tea","order_id":"A-1"}`
	const none, one = `{"orders":[]}`, `{"orders":[` + whole + `]}`
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The wrapped server is the one without a command, which has a proxy of its own.
	c := newChaosTools(t, "--key", "/order_id", "--patience", "50ms", "--", exe, "chaos", "--mcp")
	met := map[string]bool{}
	for n, f := range []struct {
		fault       string
		write, read string // what the agent gets
		effects     int
	}{
		{"lost-answer,nth=1", "nothing", one, 1},
		{"dropped-before,nth=1", "nothing", none, 0},
		{"late-commit,nth=1,after=-1", "nothing", none, 1},
		{"phantom-success,nth=1", whole, none, 0},
		{"duplicate,nth=1", whole, `{"orders":[` + whole + "," + whole + `]}`, 2},
		{"cut-body,nth=1", `{"note":"tea","`, one, 1},
		{"bad-gateway,nth=1", "tool: 502 Bad Gateway", one, 1},
		{"bad-gateway,nth=1,how=protocol", "protocol: 502 Bad Gateway", one, 1},
		{"unavailable,key=A-1", "tool: 503 Service Unavailable", none, 0},
		{"throttled,op=create_order", "tool: 429 Too Many Requests", none, 0},
		{"throttled-after,nth=1", "tool: 429 Too Many Requests", one, 1},
		{"refused,nth=1,how=protocol", "protocol: 422 Unprocessable Entity", none, 0},
		{"dropped-field,nth=1,field=note", `{"order_id":"A-1"}`, `{"orders":[{"order_id":"A-1"}]}`, 1},
		{"normalised-field,nth=1,field=note", `{"note":"TEA","order_id":"A-1"}`, `{"orders":[{"note":"TEA","order_id":"A-1"}]}`, 1},
		{"unreadable-read,nth=1", whole, "tool: 503 Service Unavailable", 1},
		{"unreadable-read,nth=1,how=200", whole, "200 OK", 1},
		{"hanging-read,nth=1", whole, "nothing", 1},
		{"lagging-read,skip=1", whole, none, 1},
		{"duplicate-behind-our-back,op=find_orders", whole, one, 1}, // a read repeated has no effect
	} {
		t.Run(f.fault, func(t *testing.T) {
			c.t = t
			kind, _, _ := strings.Cut(f.fault, ",")
			met[kind] = true
			// The orders are kept, so each case has an order of its own.
			order := fmt.Sprint("A-", n+1)
			own := func(text string) string { return strings.ReplaceAll(text, "A-1", order) }
			c.want("204", http.MethodDelete, "/_chaos", "")
			c.want("204", http.MethodPost, "/_chaos/faults", own(f.fault))
			if kind == "lagging-read" {
				c.calls("find_orders", order)
			}
			if got := c.calls("create_order", order); got != own(f.write) && !strings.HasSuffix(got, strings.TrimPrefix(f.write, "protocol: ")) {
				t.Errorf("the write: %q, want %q", got, own(f.write))
			}
			if got := c.calls("find_orders", order); got != own(f.read) {
				t.Errorf("the read: %q, want %q", got, own(f.read))
			}
			e := c.effects("?tool=create_order&key=" + order)
			if e.Effects != f.effects || e.Sends != 1 || len(e.Log) != 1 || len(e.Unmet) > 0 {
				t.Errorf("counted %+v, want %d", e, f.effects)
			}
			c.want("204", http.MethodDelete, "/_chaos/faults", "")
			if got := strings.Count(c.calls("find_orders", order), "order_id"); got != f.effects {
				t.Errorf("there are %d orders, want %d", got, f.effects)
			}
		})
	}
	for k := range chaos.ToolForms {
		if !met[string(k)] {
			t.Errorf("no test of %s", k)
		}
	}
}

// TestChaosToolsInParallel: of calls at once each gets its own answer, and each is counted.
func TestChaosToolsInParallel(t *testing.T) {
	t.Parallel()
	c := newChaosTools(t, "--key", "/order_id", "--fault", "duplicate,chance=0.5")
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			order := fmt.Sprint("A-", n)
			if got := c.calls("create_order", order); !strings.Contains(got, `"`+order+`"`) {
				t.Errorf("%s got %s", order, got)
			}
		})
	}
	all.Wait()
	sum := 0
	for n := range 50 {
		order := fmt.Sprint("A-", n)
		has := strings.Count(c.calls("find_orders", order), "order_id")
		if e := c.effects("?key=" + order); e.Effects != has || has == 0 {
			t.Errorf("%s: counted %d, and there are %d", order, e.Effects, has)
		}
		sum += has
	}
	if e := c.effects(""); e.Effects != sum || sum == 50 {
		t.Errorf("counted %d, and there are %d", e.Effects, sum)
	}
}

// TestChaosToolsOverHTTP: a server over HTTP is an API like others.
func TestChaosToolsOverHTTP(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "shop"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "create_order"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		orders.Add(1)
		return &mcp.CallToolResult{}, nil, nil
	})
	api := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(api.Close)
	c := &chaosTools{chaosProcess: newChaosProcess(t, "--target", api.URL, "--key", "/params/arguments/order_id", "--fault", "bad-gateway,key=A-1,nth=1")}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: c.url, HTTPClient: chaosClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }() // its server may be gone
	for range 2 {
		_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_order", Arguments: map[string]any{"order_id": "A-1"}}) // the fault decides
	}
	if e := c.effects("?key=A-1"); e.Effects != 2 || e.Sends != 2 || orders.Load() != 2 || len(e.Unmet) > 0 {
		t.Errorf("counted %+v, and there are %d", e, orders.Load())
	}
}

func TestChaosToolsRefuses(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	for line, want := range map[string]string{
		"chaos cat":                         `"cat" is no flag; want --mcp before the command of a server`,
		"chaos --mcp --target http://a":     "--target is set with --mcp; want one of them",
		"chaos --mcp --fault unreachable":   `unknown kind "unreachable"; want one of`,
		"chaos --mcp --fault refused,how=x": `how "x" is not one of ["tool" "protocol"]`,
		"chaos --mcp --key order_id":        `--key is "order_id"; want a JSON pointer`,
	} {
		says(t, p.want(exitUsage, p.run(strings.Fields(line)...)), want)
	}
	for _, gone := range []string{"no-such-program-of-readback", "true"} {
		reader, writer, err := os.Pipe() // a client that waits
		if err != nil {
			t.Fatal(err)
		}
		var out, errs lines
		code := p.start(t.Context(), reader, &out, &errs, "chaos", "--mcp", "--", gone)
		_ = writer.Close()
		if code == 0 || !strings.Contains(errs.String(), `"`+gone+`"`) {
			t.Errorf("%s: exit %d, %s", gone, code, &errs)
		}
	}
}
