package snippets

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reached is how a client's configuration says that a server is reached.
type reached struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Patience float64           `json:"patience"`
	Name     string            `json:"name"`
}

// header sends what a configuration says.
type header map[string]string

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// reach connects as a configuration says.
func (p *place) reach(r reached) *mcp.ClientSession {
	p.t.Helper()
	var way mcp.Transport
	if r.Command != "" {
		if r.Command != "readback" {
			p.t.Fatalf("the command is %q", r.Command)
		}
		cmd := exec.CommandContext(p.t.Context(), folder+"/readback", r.Args...)
		p.prepare(cmd)
		way = &mcp.CommandTransport{Command: cmd}
	} else {
		way = &mcp.StreamableClientTransport{Endpoint: r.URL, HTTPClient: &http.Client{Transport: header(r.Headers)}}
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(p.t.Context(), way, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	return s
}

// lists checks the tools, and calls one.
func (p *place) lists(s *mcp.ClientSession, order string) {
	p.t.Helper()
	listed, err := s.ListTools(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"create_order", "get_outcome"}, names); diff != "" {
		p.t.Error(diff)
	}
	p.loses(order)
	got, err := s.CallTool(p.t.Context(), &mcp.CallToolParams{Name: "create_order", Arguments: map[string]any{"order_id": order, "amount_cents": 1999}})
	if err != nil {
		p.t.Fatal(err)
	}
	if result, ok := got.StructuredContent.(map[string]any); !ok || result["verified"] != true {
		p.t.Errorf("the call says %v", got.StructuredContent)
	}
	p.hasOne(order)
}

// configured reads a configuration of the page, with the address, token and path
// of this place in it.
func (p *place) configured(name string) reached {
	p.t.Helper()
	text := strings.NewReplacer("/etc/readback/readback.yaml", p.config, "https://readback.example.org", p.url, "rbk_…", p.token).Replace(block(p.t, name))
	var c struct {
		Servers map[string]reached `json:"mcpServers"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		p.t.Fatal(err)
	}
	return c.Servers["readback"]
}

func TestConfiguredProcess(t *testing.T) {
	p := newPlace(t, "")
	p.lists(p.reach(p.configured("mcp-stdio")), "A-1")
}

func TestConfiguredServer(t *testing.T) {
	p := newPlace(t, "")
	p.lists(p.reach(p.configured("mcp-http")), "A-1")
}

// The servers that an agent is given can be reached, and are waited for.
func TestAgentsServers(t *testing.T) {
	p := newPlace(t, "")
	for i, line := range strings.Split(p.says(p.driven("python-agents-mcp", "agents_mcp_driver.py")), "\n") {
		var r reached
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Patience < 60 {
			t.Errorf("a call waits 30 s, and the client %v", r.Patience)
		}
		p.lists(p.reach(r), fmt.Sprintf("A-%d", i))
	}
}
