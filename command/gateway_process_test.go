package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/need"
)

// filesServer installs the server for files from npm and returns its program.
func filesServer(t *testing.T) string {
	t.Helper()
	need.Long(t)
	dir := t.TempDir()
	need.Have(t, need.Install(filepath.Join("..", "internal", "mcpgate", "testdata", "npm"), dir))
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
}

// filesPlace is a place with a gateway before the server for files, and the folder
// that this one may write to.
func filesPlace(t *testing.T, program string) (p *place, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p = newPlace(t, orders.Plain.Options())
	p.configure(p.url, fmt.Sprintf(`  files: {type: mcp, command: [node, %q, %q], contract: filesystem}
mcp:
  gateway:
    files: {destination: files, wait: 50s}
`, program, dir))
	return p, dir
}

// over connects to the gateway of a server.
func (p *place) over(url string, b bearer) (*mcp.ClientSession, error) {
	p.t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: url + "/mcp/files", HTTPClient: &http.Client{Transport: b}, DisableStandaloneSSE: true}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(context.Background(), transport, nil)
	if err == nil {
		p.t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// asked calls a verified tool and reads the outcome of the write.
func asked(s *mcp.ClientSession, tool string, args map[string]any) (r mcpapi.Result, err error) {
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return r, err
	}
	text, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

func toolNames(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	listed, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range listed.Tools {
		names = append(names, one.Name)
	}
	return names
}

// edited writes a file and edits it through a gateway, and returns the writes.
func edited(t *testing.T, s *mcp.ClientSession, file string, replayed bool) (ids []string) {
	t.Helper()
	if names := toolNames(t, s); !slices.Contains(names, "edit_file") || !slices.Contains(names, "read_text_file") || !slices.Contains(names, mcpapi.OutcomeToolName) {
		t.Errorf("tools %v", names)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"write_file", map[string]any{"path": file, "content": "BEGIN\nEND\n"}},
		{"edit_file", map[string]any{"path": file, "edits": []any{map[string]any{"oldText": "END", "newText": "one line\nEND"}}}},
	} {
		r, err := asked(s, c.tool, c.args)
		if err != nil || !r.Verified || begunBefore(r) != replayed {
			t.Fatalf("%s: %+v, %v", c.tool, r, err)
		}
		ids = append(ids, r.ID)
	}
	read, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "read_text_file", Arguments: map[string]any{"path": file}})
	if err != nil || read.IsError || read.Content[0].(*mcp.TextContent).Text != "BEGIN\none line\nEND\n" {
		t.Errorf("the tool that reads answers %+v, %v", read, err)
	}
	holds(t, file, "BEGIN\none line\nEND\n")
	return ids
}

func holds(t *testing.T, file, want string) {
	t.Helper()
	if text, err := os.ReadFile(file); err != nil || string(text) != want {
		t.Errorf("the file holds %q, %v; want %q", text, err, want)
	}
}

// TestGatewayProcesses: `readback mcp --gateway` and /mcp/NAME of `readback serve`,
// each a real process, before a server that is not ours.
func TestGatewayProcesses(t *testing.T) {
	program := filesServer(t)
	t.Run("stdio", func(t *testing.T) { gatewayOverStdio(t, program) })
	t.Run("http", func(t *testing.T) { gatewayOverHTTP(t, program) })
	t.Run("a server that stops", func(t *testing.T) { gatewayThatStops(t, program) })
}

// gatewayOverStdio: the process that comes after another under its name does
// nothing a second time.
func gatewayOverStdio(t *testing.T, program string) {
	p, dir := filesPlace(t, program)
	var ids [2][]string
	for i := range ids {
		s, cmd, errs := p.mcpClient("", "--gateway", "files", "--workflow", "run-1")
		ids[i] = edited(t, s, filepath.Join(dir, "a.txt"), i == 1)
		if err := s.Close(); err != nil || cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("ended with %v, %v\n%s", err, cmd.ProcessState, errs.String())
		}
	}
	if d := cmp.Diff(ids[0], ids[1]); d != "" || len(p.writes()) != 2 {
		t.Errorf("other writes (-first +second):\n%s", d)
	}
	says(t, p.run("doctor"), "gateway files", "verifies 4 tools and passes 10 tools that read")
}

// gatewayOverHTTP: with tokens, and what another role sees.
func gatewayOverHTTP(t *testing.T, program string) {
	p, dir := filesPlace(t, program)
	agent, reviewer := p.token("agent"), p.token("reviewer")
	url, end := p.serveForTokens()
	if _, err := p.over(url, ""); err == nil {
		t.Error("no caller was let in")
	}
	s, err := p.over(url, agent)
	if err != nil {
		t.Fatal(err)
	}
	edited(t, s, filepath.Join(dir, "a.txt"), false)
	if s, err = p.over(url, reviewer); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{mcpapi.OutcomeToolName}, toolNames(t, s)); d != "" {
		t.Errorf("a reviewer's tools (-want +got):\n%s", d)
	}
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// gatewayThatStops: a caller that waits for an outcome is notified that the write
// continues. The wait is longer than the time that a server takes to stop.
func gatewayThatStops(t *testing.T, program string) {
	p, dir := filesPlace(t, program)
	agent := p.token("agent")
	p.want(0, p.run("stop", "--destination", "files", "--by", "ann", "--reason", "bad batch"))
	url, end := p.serveForTokens()
	s, err := p.over(url, agent)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		r   mcpapi.Result
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := asked(s, "write_file", map[string]any{"path": filepath.Join(dir, "a.txt"), "content": "x"})
		answered <- answer{r, err}
	}()
	eventually(t, "the write is recorded", func() bool { return len(p.writes()) == 1 })
	code := end()
	if a := <-answered; a.err != nil || a.r.Status != "in_progress" || code != 0 {
		t.Errorf("%+v, %v, exit code %d", a.r, a.err, code)
	}
}
