package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The tenants of a fort: the caller's, and the one whose data it must not see.
const (
	own     = "acme"
	foreign = "umbrella"
)

// canary begins every text of a tenant, so that it can be found wherever it comes
// out.
func canary(tenant, what string) string { return "canary-" + tenant + "-" + what }

// fort is a whole server in this process, as `readback serve` makes it, with every API
// enabled, two tenants, and a destination whose log records its calls.
type fort struct {
	t      *testing.T
	p      *place
	url    string
	log    *lines
	shop   *fakemcp.Server
	hook   *receiver
	tokens *access.Tokens
	secret map[string]string // by role and tenant
	client *http.Client
	from   atomic.Int64
}

// receiver is where webhooks are posted to.
type receiver struct {
	replies lines
	got     atomic.Int64
	url     string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body) // a client that disconnected sent nothing
		_, _ = r.replies.Write(text)
		r.got.Add(1)
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// secrets of a fort's configuration.
const (
	hookSecret    = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"
	sessionKey    = "a-key-of-sessions-that-nobody-may-see-0123456789"
	shopSecret    = "canary-secret-of-the-shop"
	passwordInURL = "canary-in-the-query"
)

// newFort builds one and waits for its address; change changes the configuration,
// and variables are further ones of the environment.
func newFort(t *testing.T, change func(string) string, variables ...string) *fort {
	t.Helper()
	f := &fort{t: t, p: newPlace(t, orders.Plain.Options()), log: &lines{}, hook: newReceiver(t), secret: map[string]string{},
		shop: fakemcp.New(fakemcp.NewWorld())}
	f.p.variable = map[string]string{"HOOK_SECRET": hookSecret, "SESSION_KEY": sessionKey, "SHOP_SECRET": shopSecret}
	for i := 0; i+1 < len(variables); i += 2 {
		f.p.variable[variables[i]] = variables[i+1]
	}
	behind := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.shop.MCP }, nil)
	upstream := httptest.NewServer(behind)
	t.Cleanup(upstream.Close)
	f.p.write("shop.yaml", pinnedShop(t))
	f.p.want(0, f.p.run("key", "new", "--out", filepath.Join(f.p.dir, "receipts.pem")))
	selfSigned(t, f.p.dir, 1)
	text := fmt.Sprintf(fortConfig, f.p.url, upstream.URL, f.hook.url)
	if change != nil {
		text = change(text)
	}
	f.p.write("readback.yaml", text)
	f.serve()
	f.client = &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(f.client.CloseIdleConnections)
	l, err := sqlite.Open(t.Context(), f.p.ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f.tokens = access.NewTokens(l, &access.TokenOptions{People: true})
	for _, tenant := range []string{own, foreign} {
		for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor} {
			f.secret[string(role)+"@"+tenant] = f.token(tenant, role, 0)
		}
	}
	return f
}

const fortConfig = `ledger: readback.db
tenant: acme
server:
  listen: 127.0.0.1:0
  grace: 20s
  sessions: {key_env: SESSION_KEY}
  person_tokens: true
receipts: {key_file: receipts.pem}
destinations:
  orders: {type: simulated, url: %s, class: plain, tenants: [acme, umbrella]}
  canary-umbrella-desk: {type: simulated, url: "http://127.0.0.1:1", class: plain, tenants: [umbrella]}
  knowledge:
    type: mcp
    contract: shop.yaml
    url: %s
    headers: {X-Shop-Key: {env: SHOP_SECRET}}
    uncontracted: allow
risk:
  - {name: money, tool: "wire*"}
  - {name: notices, destination: knowledge, tool: notify_customer}
webhooks:
  - name: ops
    url: %s/?key=canary-in-the-hook
    secret_env: HOOK_SECRET
    allow_private: [127.0.0.0/8]
mcp:
  gateway:
    shop: {destination: knowledge}
  tools:
    - name: wire_order
      description: Wires an order.
      destination: orders
      kind: order
      write: create
      arguments:
        - {name: order_id, type: string, required: true, description: The number.}
        - {name: amount_cents, type: integer, required: true, description: Cents.}
      key: [order_id]
      wait: 1s
`

// mcpWrites are the tools of the shop that change something.
var mcpWrites = []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Notify}

// pinnedShop is the contract of the shop with the digests of its tools.
func pinnedShop(t *testing.T) string {
	t.Helper()
	text := fakemcp.Contract + "digests:\n"
	shop := fakemcp.New(fakemcp.NewWorld())
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(shop.Tool(name))
		if err != nil {
			t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	return text
}

// serve starts the server as the command does, but for the flags.
func (f *fort) serve() {
	f.t.Helper()
	out := &lines{}
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: f.log, config: f.p.config, verbose: true,
		env: func(name string) string { return f.p.variable[name] }}
	ctx, end := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() {
		_, err := a.serve(ctx, serveSettings{given: func(string) bool { return false }})
		ended <- err
	}()
	f.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			f.t.Errorf("the server: %v", err)
		}
	})
	eventually(f.t, "the server to listen", func() bool { return strings.Contains(out.String(), "Ledger: ") })
	f.url, _, _ = strings.Cut(out.String(), "\n")
}

// token makes a token; ttl 0 is a quarter, and one below it has ended already.
func (f *fort) token(tenant string, role engine.Role, ttl time.Duration) string {
	f.t.Helper()
	tokens := f.tokens
	if ttl != 0 {
		l, err := sqlite.Open(f.t.Context(), f.p.ledger, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		tokens = access.NewTokens(l, &access.TokenOptions{People: true, Now: func() time.Time { return time.Now().Add(-2 * ttl) }})
	}
	_, secret, err := tokens.Create(f.t.Context(), access.NewToken{Tenant: tenant, Name: canary(tenant, string(role)), Role: role, TTL: ttl, By: "root"})
	if err != nil {
		f.t.Fatal(err)
	}
	return secret
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) String() string { return fmt.Sprintf("%d %v\n%.2000s", a.status, a.header, a.body) }

// all is the whole response as one text.
func (a answer) all() string {
	var b strings.Builder
	_ = a.header.Write(&b) // into memory
	return b.String() + a.body
}

// field is a member of a response in JSON, "" if it is missing.
func (a answer) field(name string) string {
	var m map[string]any
	if json.Unmarshal([]byte(a.body), &m) != nil {
		return ""
	}
	text, _ := m[name].(string)
	return text
}

// request makes a request with a token, or none.
func (f *fort) request(method, path, body, token string, headers ...string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do sends a request, and reads the response; of a stream its beginning.
func (f *fort) do(r *http.Request) answer {
	f.t.Helper()
	return f.doWith(f.client, r)
}

func (f *fort) doWith(c *http.Client, r *http.Request) answer {
	f.t.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	resp, err := c.Do(r.WithContext(ctx))
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && r.Method == http.MethodGet {
		begin := make([]byte, 4096)
		n, _ := resp.Body.Read(begin) // an end is a beginning too
		a.body = string(begin[:n])
		return a
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	a.body = string(text)
	return a
}

// outsider is a client with an address of its own: bad credentials count against their
// address, and this table has many.
func (f *fort) outsider() *http.Client {
	n := f.from.Add(1)
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}}
	return &http.Client{Timeout: time.Minute, CheckRedirect: f.client.CheckRedirect, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, addr)
			if err != nil { // not every system has all of 127.0.0.0/8
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			return conn, nil
		}}}
}

// as asks with the token of a role in a tenant.
func (f *fort) as(role engine.Role, tenant, method, path, body string, headers ...string) answer {
	f.t.Helper()
	return f.do(f.request(method, path, body, f.secret[string(role)+"@"+tenant], headers...))
}

// must is as, for what has to succeed.
func (f *fort) must(role engine.Role, tenant, method, path, body string, headers ...string) answer {
	f.t.Helper()
	a := f.as(role, tenant, method, path, body, headers...)
	if a.status/100 != 2 {
		f.t.Fatalf("%s %s as %s of %s: %s", method, path, role, tenant, a)
	}
	return a
}

// record is the state of a write in the ledger.
func (f *fort) record(tenant, id string) ledger.Record {
	f.t.Helper()
	l, err := sqlite.Open(f.t.Context(), f.p.ledger, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	r, err := l.Get(f.t.Context(), tenant, ledger.ID(id))
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}
