package mcpgate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// bench is a gateway with an engine of its own.
type bench struct {
	t      *testing.T
	engine *engine.Engine
	gate   *mcpgate.Gateway
	log    *logged
}

// logged collects the log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// pinned is the contract of the fake with the digests of its tools.
func pinned(t *testing.T, s *fakemcp.Server) *mcp.Contract {
	t.Helper()
	return pinnedTo(t, s, fakemcp.Contract)
}

func pinnedTo(t *testing.T, s *fakemcp.Server, text string) *mcp.Contract {
	t.Helper()
	text += "digests:\n"
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(s.Tool(name))
		if err != nil {
			t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	c, err := mcp.Load([]byte(text), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shop is a bench with the fake upstream server.
func shop(t *testing.T, writeOnly bool, change func(*mcpgate.Config)) (*bench, *fakemcp.Server) {
	t.Helper()
	return shopOf(t, fakemcp.New(fakemcp.NewWorld()), writeOnly, change)
}

// shopOf is a bench with a fake whose tools may differ.
func shopOf(t *testing.T, s *fakemcp.Server, writeOnly bool, change func(*mcpgate.Config)) (*bench, *fakemcp.Server) {
	t.Helper()
	conn, err := mcp.New(pinned(t, s), mcp.Options{Server: mcp.Server{Transport: s.Transport}, WriteOnly: writeOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Cut)
	return newBench(t, conn, nil, change), s
}

// meets makes the next call that it concerns fail with a fault.
func meets(t *testing.T, up *fakemcp.Server, f fault.Fault) {
	t.Helper()
	if err := up.World.Set(f.Once()); err != nil {
		t.Fatal(err)
	}
}

// newBench makes a gateway of a connector; promises changes what its profiles
// promise.
func newBench(t *testing.T, conn *mcp.Connector, promises func(*connectors.Profile), change func(*mcpgate.Config)) *bench {
	t.Helper()
	b := &bench{t: t, log: &logged{}}
	profiles := conn.Profiles()
	for kind, p := range profiles {
		if promises != nil {
			promises(&p)
		}
		profiles[kind] = p
	}
	var reg connectors.Registry
	if err := reg.Register("upstream", connectors.Destination{Connector: conn, Profiles: profiles}); err != nil {
		t.Fatal(err)
	}
	l := ledger.NewMemory()
	e := engine.New(l, &reg, nil)
	b.engine = e
	c := mcpgate.Config{Destination: "upstream", Connector: conn, Tenant: "acme", Workflow: "run-1", Logger: slog.New(slog.NewTextHandler(b.log, nil))}
	if change != nil {
		change(&c)
	}
	var err error
	if b.gate, err = mcpgate.New(t.Context(), service.New(service.Parts{Writes: e, Ledger: l, Registry: &reg, ReviewUI: "https://readback.example"}), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		_ = conn.Close()
	})
	return b
}

func agent(tenant string) access.Identity {
	return access.Identity{Tenant: tenant, Name: "bot", Role: engine.RoleAgent, Via: "token", ID: "t1"}
}

// stdio connects a client over a pair of pipes.
func (b *bench) stdio(who access.Identity, o *sdk.ClientOptions) *sdk.ClientSession {
	b.t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.gate.Speak(ctx, who, in, out) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, o).Connect(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = session.Close()
		cancel()
		_ = in.Close()
		_ = out.Close()
		if err := <-done; err != nil && !errors.Is(err, io.ErrClosedPipe) { // the client's end may be gone before its last message
			b.t.Errorf("stdio ended with %v", err)
		}
	})
	return session
}

// byTenant resolves the user of HTTP Basic to an agent of that tenant.
type byTenant struct{}

func (byTenant) Resolve(r *http.Request) (access.Identity, error) {
	tenant, _, ok := r.BasicAuth()
	if !ok {
		return access.Identity{}, access.ErrUnknown
	}
	return agent(tenant), nil
}

type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(string(a), "x")
	return http.DefaultTransport.RoundTrip(r)
}

// connect opens a session over HTTP.
func (b *bench) connect(tenant string) *sdk.ClientSession {
	b.t.Helper()
	s := httptest.NewServer(b.gate.HTTP(byTenant{}))
	b.t.Cleanup(s.Close)
	transport := &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: as(tenant)}, DisableStandaloneSSE: true}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(context.Background(), transport, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool and reads its outcome.
func (b *bench) call(s *sdk.ClientSession, name string, arguments any, meta sdk.Meta) mcpapi.Result {
	b.t.Helper()
	res, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		b.t.Fatal(err)
	}
	var r mcpapi.Result
	if err := json.Unmarshal(text, &r); err != nil || r.Status == "" {
		b.t.Fatalf("%s answered %s, which is no outcome (%v)", name, text, err)
	}
	return r
}

// begunBefore reports whether an answer says that an earlier call began the write.
func begunBefore(r mcpapi.Result) bool {
	return strings.HasPrefix(r.Text, "This operation was begun before")
}

// names lists the tools that a client sees.
func names(t *testing.T, s *sdk.ClientSession) []string {
	t.Helper()
	listed, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, one := range listed.Tools {
		all = append(all, one.Name)
	}
	slices.Sort(all)
	return all
}
