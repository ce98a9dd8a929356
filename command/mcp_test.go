package command

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
)

const someTools = `mcp:
  tools:
    - name: create_order
      description: Creates an order.
      destination: orders
      kind: order
      write: create
      arguments:
        - {name: order_id, type: string, required: true, description: The number of the order.}
        - {name: amount_cents, type: integer, required: true, description: The amount in cents.}
      key: [order_id]
`

// mcpClient starts the program as a process and connects the library's client.
func (p *place) mcpClient(version string, args ...string) (*mcp.ClientSession, *exec.Cmd, *lines) {
	p.t.Helper()
	cmd := program(p.t, append([]string{"--config", p.config, "mcp"}, args...)...)
	var errs lines
	cmd.Stderr = &errs
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
		Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		p.t.Fatalf("%v\n%s", err, errs.String())
	}
	p.t.Cleanup(func() { _ = session.Close() }) // again, where the test has done so
	return session, cmd, &errs
}

func callOrder(t *testing.T, s *mcp.ClientSession, orderID string) mcpapi.Result {
	t.Helper()
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "create_order", Arguments: map[string]any{"order_id": orderID, "amount_cents": 5}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var r mcpapi.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMCPProcess: a real process, in the oldest and the newest version of the protocol,
// with a destination that loses every response.
func TestMCPProcess(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			if err := p.world.Set(orders.Fault{Kind: orders.LostAnswer}); err != nil {
				t.Fatal(err)
			}
			p.configure(p.url, someTools)
			s, cmd, errs := p.mcpClient(version)
			listed, err := s.ListTools(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, one := range listed.Tools {
				names = append(names, one.Name)
			}
			if d := cmp.Diff([]string{"create_order", "get_outcome"}, names); d != "" {
				t.Error(d)
			}
			if r := callOrder(t, s, "A-1"); r.Status != "verified" || !r.Verified {
				t.Errorf("%+v\n%s", r, errs.String())
			}
			p.effects(1, "A-1")
			if err := s.Close(); err != nil || cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("ended with %v, %v\n%s", err, cmd.ProcessState, errs.String())
			}
			for _, w := range p.writes() {
				if w.Tenant != "acme" || w.RequestedBy != "mcp" || !strings.HasPrefix(w.Workflow, "mcp-") {
					t.Errorf("write of %q by %q in %q", w.Tenant, w.RequestedBy, w.Workflow)
				}
			}
		})
	}
}

// begunBefore reports whether an answer says that an earlier call began the write.
func begunBefore(r mcpapi.Result) bool {
	return strings.HasPrefix(r.Text, "This operation was begun before")
}

// TestMCPUnderTheSameName: the process that comes after another under its name
// gets what that one did.
func TestMCPUnderTheSameName(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, someTools)
	var ids []string
	for range 2 {
		s, _, _ := p.mcpClient("2025-11-25", "--workflow", "run-1", "--as", "planner")
		r := callOrder(t, s, "A-1")
		if r.Status != "verified" || begunBefore(r) != (len(ids) > 0) {
			t.Errorf("%+v", r)
		}
		ids = append(ids, r.ID)
		_ = s.Close()
	}
	if ids[0] != ids[1] {
		t.Errorf("writes %v", ids)
	}
	p.effects(1, "A-1")
	if w := p.writes(); len(w) != 1 || w[0].Workflow != "run-1" || w[0].RequestedBy != "planner" {
		t.Errorf("writes %+v", w)
	}
}

func TestMCPThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		reason, settings string
		args             []string
		code             int
		says             string
	}{
		"workflow":  {"no name", someTools, []string{"--workflow", "rün"}, exitUsage, "printable ASCII"},
		"as":        {"no name", someTools, []string{"--as", " x"}, exitUsage, "printable ASCII"},
		"bad tool":  {"said before the client hears anything", strings.Replace(someTools, "write: create", "write: make", 1), nil, exitConfig, `:14: mcp.tools[0].write: is "make"`},
		"arguments": {"there are none", someTools, []string{"x"}, exitUsage, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.configure(p.url, c.settings)
			r := p.run(append([]string{"mcp"}, c.args...)...)
			if r.code != c.code || r.out != "" {
				t.Errorf("%s: %s", c.reason, r)
			}
			says(t, r, c.says)
		})
	}
}
