package mcpgate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/service"
)

const (
	// defaultWait is how long a call waits for its outcome by default.
	defaultWait = 20 * time.Second
	// maxWait bounds it: clients give up after a minute or so.
	maxWait = 50 * time.Second
	// readTime bounds the request for the upstream server's tools while a client waits
	// for its own list.
	readTime = 10 * time.Second
)

// Config configures a Gateway.
type Config struct {
	// Destination is the name under which Connector is registered. Both are
	// required.
	Destination string
	Connector   *mcp.Connector
	// Tenant owns the server: callers of other tenants do not see its tools. Required.
	Tenant string
	// Reads lists tools that only read, besides those of the contract. Hide lists tools
	// that are shown to no caller.
	Reads, Hide []string
	// Wait is how long a call waits for its outcome, at most 50 s. Default 20 s.
	Wait time.Duration
	// Version is the version of the program, for clients.
	Version string
	// Workflow names the session of [Gateway.Stdio]. Default random.
	Workflow string
	// In and Out are the streams of [Gateway.Stdio]. Default those of the process.
	In  io.Reader
	Out io.Writer
	// Origins are the origins of web pages that may call. Default the server's own.
	Origins []string
	// Hosts are the host names under which callers reach it through a proxy on this
	// machine. Default only those of this machine.
	Hosts []string
	// Closing is closed when the process is to end. Callers that wait for an outcome are
	// then notified that the write continues, and reads of the upstream server are
	// cancelled. Default never.
	Closing <-chan struct{}
	// Logger logs which tools are hidden or withdrawn, and why. Default nothing.
	Logger *slog.Logger
}

// Gateway is a server that forwards to another one. It is safe for concurrent use.
type Gateway struct {
	service *service.Service
	config  Config
	log     *slog.Logger
	client  *mcp.Client
	// full serves callers that may submit. others serves the rest, and callers of another
	// tenant: they see get_outcome alone.
	full, others *sdk.Server
	api          *mcpapi.API

	listing chan struct{} // held during a request for the upstream server's tools

	mu     sync.Mutex
	shown  map[string]shown
	logged map[string]string // why a tool is not shown, as it was logged last
}

// New makes a gateway and asks the upstream server for its tools, for some seconds. If it
// cannot be reached yet, that is logged and no error.
func New(ctx context.Context, o *service.Service, c Config) (*Gateway, error) {
	switch {
	case c.Connector == nil || c.Destination == "" || c.Tenant == "":
		return nil, errors.New("gateway: Connector, Destination and Tenant are required")
	case c.Wait < 0 || c.Wait > maxWait:
		return nil, fmt.Errorf("gateway: the wait is %s; want at most %s", c.Wait, maxWait)
	case c.Wait == 0:
		c.Wait = defaultWait
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	outcomes, err := mcpapi.New(o, mcpapi.Config{Version: c.Version, Closing: c.Closing, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	g := &Gateway{service: o, config: c, log: c.Logger.With("gateway", c.Destination), client: c.Connector.Client(),
		listing: make(chan struct{}, 1), shown: map[string]shown{}, logged: map[string]string{}}
	g.full, g.others = g.server(instructions), g.server(otherInstructions)
	for _, s := range []*sdk.Server{g.full, g.others} {
		s.AddTool(outcomes.OutcomeTool())
	}
	g.full.AddReceivingMiddleware(g.through)
	g.api = mcpapi.NewAPI(g.serverFor, mcpapi.APIOptions{Workflow: c.Workflow, Origins: c.Origins, Hosts: c.Hosts, Logger: c.Logger})
	g.client.OnChange(g.changed)
	g.read(ctx)
	return g, nil
}

// changed passes on that a list of the upstream server has changed. The library announces
// lists of its own alone: [Gateway.through] never shows what is added here.
func (g *Gateway) changed(what mcp.Change) {
	switch what {
	case mcp.ToolsChanged:
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		g.refresh(ctx)
	case mcp.PromptsChanged:
		g.full.AddPrompt(&sdk.Prompt{Name: "changed"}, nil)
	case mcp.ResourcesChanged:
		g.full.AddResource(&sdk.Resource{Name: "changed", URI: "readback:changed"}, nil)
	}
}

func (g *Gateway) server(instructions string) *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "readback-gateway", Version: g.config.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{ListChanged: true}, Prompts: &sdk.PromptCapabilities{ListChanged: true},
			Resources: &sdk.ResourceCapabilities{ListChanged: true}, Completions: &sdk.CompletionCapabilities{}, Logging: &sdk.LoggingCapabilities{},
		},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" }, // the list depends on the caller
		Logger:       slog.New(slog.DiscardHandler),
	})
}

// serverFor returns the server for a caller.
func (g *Gateway) serverFor(who access.Identity) *sdk.Server {
	if who.Tenant == g.config.Tenant && who.May(access.Submit) == nil {
		return g.full
	}
	return g.others
}

// HTTP is the gateway over streamable HTTP.
func (g *Gateway) HTTP(who access.Resolver) http.Handler { return g.api.HTTP(who) }

// Stdio serves one client on standard input and output until it disconnects or ctx ends.
// who is the user that started the process.
func (g *Gateway) Stdio(ctx context.Context, who access.Identity) error {
	in, out := g.config.In, g.config.Out
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		out = os.Stdout
	}
	return g.Speak(ctx, who, in, out)
}

// Speak is [Gateway.Stdio] on other streams.
func (g *Gateway) Speak(ctx context.Context, who access.Identity, in io.Reader, out io.Writer) error {
	return g.api.Stdio(ctx, who, in, out)
}

// Client is the session with the upstream server.
func (g *Gateway) Client() *mcp.Client { return g.client }
