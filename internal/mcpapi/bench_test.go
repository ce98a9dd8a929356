package mcpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// bench is a server with a simulated order destination, which counts effects.
type bench struct {
	t       *testing.T
	world   *orders.World
	ledger  *ledger.Memory
	service *service.Service
	server  *mcpapi.Server
}

// createOrder is a tool without an operation, and payInvoice one with.
func createOrder() tool.Tool {
	return tool.Tool{
		Name: "create_order", Title: "New order", Description: "Creates an order.", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Arguments: []tool.Argument{
			{Name: "order_id", Type: tool.String, Required: true, Description: "The number of the order."},
			{Name: "amount_cents", Type: tool.Integer, Required: true, Description: "The amount in cents."},
			{Name: "note", Type: tool.String, Description: "For people."},
		},
		Key: []string{"order_id"}, Fixed: tool.Fixed{Expect: intent.Fields{"currency": "EUR"}},
	}
}

func named(t tool.Tool, name string, change func(*tool.Tool)) tool.Tool {
	t.Name = name
	if change != nil {
		change(&t)
	}
	return t
}

func tools() []tool.Tool {
	return []tool.Tool{
		createOrder(),
		named(createOrder(), "create_order_once", func(t *tool.Tool) { t.Operation = []string{"order_id"} }),
		named(createOrder(), "create_order_held", func(t *tool.Tool) { t.Risk = intent.RiskApprove }),
	}
}

func newBench(t *testing.T, o orders.Options, change func(*mcpapi.Config)) *bench {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, ledger: ledger.NewMemory()}
	e := engine.New(b.ledger, &reg, nil)
	t.Cleanup(e.Close)
	b.service = service.New(service.Parts{Writes: e, Ledger: b.ledger, Registry: &reg, ReviewUI: "https://readback.example"})
	c := mcpapi.Config{Tools: tools(), Registry: &reg, Version: "1.2.3"}
	if change != nil {
		change(&c)
	}
	if b.server, err = mcpapi.New(b.service, c); err != nil {
		t.Fatal(err)
	}
	return b
}

func agent(name string) access.Identity {
	return access.Identity{Tenant: "acme", Name: name, Role: engine.RoleAgent, Via: "token", ID: name}
}

// stdio connects a client to the server over a pair of pipes.
func (b *bench) stdio(who access.Identity, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	return b.stdioIn("", who, o)
}

// stdioIn is stdio in a version of the protocol, "" for the newest.
func (b *bench) stdioIn(version string, who access.Identity, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	api := mcpapi.NewAPI(b.server.ServerFor, mcpapi.APIOptions{Workflow: "run-1"})
	go func() { done <- api.Stdio(ctx, who, in, out) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, o).Connect(ctx, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = session.Close()
		cancel()
		_ = in.Close()
		_ = out.Close()
		if err := <-done; err != nil {
			b.t.Errorf("stdio ended with %v", err)
		}
	})
	return session
}

// byName resolves the name in the Authorization header to an identity: agents,
// but for those that a role is named after.
type byName struct{}

func (byName) Resolve(r *http.Request) (access.Identity, error) {
	_, name, _ := r.BasicAuth()
	switch name {
	case "":
		return access.Identity{}, access.ErrUnknown
	case "reviewer", "auditor", "operator":
		return access.Identity{Tenant: "acme", Name: name, Role: engine.Role(name), Via: "token", ID: name}, nil
	case "outsider":
		return access.Identity{Tenant: "other", Name: name, Role: engine.RoleAgent, Via: "token", ID: name}, nil
	}
	return agent(name), nil
}

// as is an HTTP client with an identity.
type as struct {
	name   string
	header http.Header
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a.name != "" {
		r.SetBasicAuth("x", a.name)
	}
	for name, values := range a.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (b *bench) listen() string {
	b.t.Helper()
	mux := http.NewServeMux()
	mux.Handle(mcpapi.Path, b.server.HTTP(byName{}))
	s := httptest.NewServer(mux)
	b.t.Cleanup(s.Close)
	return s.URL + mcpapi.Path
}

// connect opens a session over HTTP, in the newest version of the protocol that
// there is a session in, or in the one of the options.
func (b *bench) connect(url string, a as, o *mcp.ClientSessionOptions) *mcp.ClientSession {
	b.t.Helper()
	return b.connectAs(url, a, nil, o)
}

// connectAs is connect with the options of a client.
func (b *bench) connectAs(url string, a as, c *mcp.ClientOptions, o *mcp.ClientSessionOptions) *mcp.ClientSession {
	b.t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: a}, DisableStandaloneSSE: true}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, c).Connect(context.Background(), transport, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool and reads its result.
func (b *bench) call(s *mcp.ClientSession, name string, arguments any, meta mcp.Meta) (mcpapi.Result, *mcp.CallToolResult) {
	b.t.Helper()
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return b.read(res), res
}

// read checks that a result is structured, the same as text, and of the one shape.
func (b *bench) read(res *mcp.CallToolResult) mcpapi.Result {
	b.t.Helper()
	structured, err := json.Marshal(res.StructuredContent)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(res.Content) != 1 {
		b.t.Fatalf("%d blocks of content, want one", len(res.Content))
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		b.t.Fatalf("content is %T, want text", res.Content[0])
	}
	conforms(b.t, mcpapi.OutputSchema(), structured)
	conforms(b.t, mcpapi.OutputSchema(), []byte(text.Text))
	var a, c mcpapi.Result
	if err := json.Unmarshal(structured, &a); err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text.Text), &c); err != nil {
		b.t.Fatal(err)
	}
	diff(b.t, "text against structured content", c, a)
	return a
}

// effects is how many writes the destination made.
// begunBefore reports whether an answer says that an earlier call began the write.
func begunBefore(r mcpapi.Result) bool {
	return strings.HasPrefix(r.Text, "This operation was begun before")
}

func (b *bench) effects() int { return len(b.world.Effects()) }
