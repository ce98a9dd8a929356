package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/fakes/orders"
	v1 "github.com/readback-go/readback/internal/httpapi/v1"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/reviewui"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/signing"
)

// exchanges is a server in a synctest bubble, whose clock makes every time fixed, and
// the text of all exchanges with it.
type exchanges struct {
	t       *testing.T
	world   *orders.World
	engine  *engine.Engine
	sender  *webhooks.Sender
	handler http.Handler
	session string
	text    strings.Builder
	asked   map[string]bool // routes, as "METHOD pattern"
}

// varying are the parts of an exchange that differ in every run. Workers jitter their
// pauses, so a time that depends on one is no whole second.
var varying = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`"sig":"[^"]*"`), `"sig":"SIGNATURE"`},
	{regexp.MustCompile(`"(key_?id)":"[^"]*"`), `"$1":"KEY-ID"`},
	{regexp.MustCompile(`-----BEGIN PUBLIC KEY-----[^"]*`), `PUBLIC-KEY`},
	{regexp.MustCompile(`[\w.-]+/[0-9]+/[A-Z2-7]{8}@[0-9a-f]{8}`), `WORKER`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+\.\d{4,}Z`), `JITTERED-TIME`},
	{regexp.MustCompile(regexp.QuoteMeta(server.Built().Version)), `VERSION`},
}

// token is a name that may be random. Equal ones stay equal.
var token = regexp.MustCompile(`[0-9a-f]{64}|\b[0-9a-f]{32}\b|[0-9A-Za-z_-]{26,}`)

// enveloped is the signed statement in an envelope.
var enveloped = regexp.MustCompile(`"payload":"([A-Za-z0-9+/=]*)"`)

func fixed(text string) string {
	text = enveloped.ReplaceAllStringFunc(text, func(found string) string {
		plain, err := base64.StdEncoding.DecodeString(enveloped.FindStringSubmatch(found)[1])
		if err != nil {
			return found
		}
		return `"payload":base64(` + string(plain) + `)`
	})
	for _, each := range varying {
		text = each.is.ReplaceAllString(text, each.as)
	}
	names := map[string]string{}
	return token.ReplaceAllStringFunc(text, func(found string) string {
		if !strings.ContainsAny(found, "0123456789") && strings.ToLower(found) == found {
			return found // words
		}
		if names[found] == "" {
			names[found] = fmt.Sprintf("TOKEN-%d", len(names)+1)
		}
		return names[found]
	})
}

// Resolve implements [access.Resolver]: a token is a role and a tenant.
func (x *exchanges) Resolve(r *http.Request) (access.Identity, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	role, tenant, ok := strings.Cut(token, "@")
	if !ok {
		return access.Identity{}, access.ErrNoCredentials
	}
	return access.Identity{Tenant: tenant, Name: role + "-1", Role: engine.Role(role), Via: "token", ID: "t-" + role}, nil
}

// hook receives webhooks, in any order.
type hook struct {
	mu  sync.Mutex
	got []string
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	head := fmt.Sprintf("%s %s\nContent-Type: %s\n", r.Method, r.URL, r.Header.Get("Content-Type"))
	h.got = append(h.got, head+"\n"+string(body)+"\n")
}

func (h *hook) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.got)
	return strings.Join(h.got, "\n")
}

// newExchanges makes the server.
func newExchanges(t *testing.T) (*exchanges, *hook) {
	t.Helper()
	world, err := orders.New(orders.Native.Options())
	if err != nil {
		t.Fatal(err)
	}
	x := &exchanges{t: t, world: world, asked: map[string]bool{}}
	var reg connectors.Registry
	register := func(name string, d connectors.Destination) {
		if err := reg.Register(name, d); err != nil {
			t.Fatal(err)
		}
	}
	register("orders", world.Destination())
	h := &hook{}
	hooks, err := webhook.New(webhook.Options{URL: "https://hooks.example/", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA", Transport: wire.Transport(h, nil)})
	if err != nil {
		t.Fatal(err)
	}
	register(webhooks.Prefix+"ops", hooks.Destination())
	shop, upstream := x.upstream()
	register("shop", connectors.Destination{Connector: shop, Profiles: shop.Profiles()})

	l := ledger.NewMemory()
	x.engine = engine.New(l, &reg, nil)
	steps, runner := gate.New(l, nil), saga.New(l, x.engine, nil)
	s := service.New(service.Parts{Writes: x.engine, Ledger: l, Registry: &reg, Steps: steps, Sagas: runner,
		Types: map[string]string{"orders": "simulated", "shop": "mcp"}})
	receipts := &server.Issuer{Ledger: l, Reg: &reg, Signing: newKeys(t)}
	tools, err := mcpapi.New(s, mcpapi.Config{Tools: frozenTools(), Registry: &reg, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	between, err := mcpgate.New(t.Context(), s, mcpgate.Config{Destination: "shop", Connector: shop, Tenant: "acme", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api := v1.New(s, &v1.Options{Who: x, Version: "test", Receipts: receipts})
	mux.Handle("/v1/", api)
	mux.Handle("/openapi.json", api)
	mux.Handle("/mcp", tools.HTTP(x))
	mux.Handle("/mcp/shop", between.HTTP(x))
	mux.Handle("/", reviewui.New(s, &reviewui.Options{Who: x, Receipts: receipts, Version: "test"}))
	x.handler = mux

	x.sender = webhooks.New(l, x.engine, webhooks.Options{Hooks: []webhooks.Hook{{Name: "ops", Events: webhooks.Events()}}, ReviewUI: "https://review.example"})
	ctx, end := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for _, work := range []func(context.Context) error{
		func(ctx context.Context) error { return x.engine.Work(ctx, nil) }, runner.Work, steps.Work,
	} {
		working.Go(func() { _ = work(ctx) })
	}
	t.Cleanup(func() {
		end()
		working.Wait()
		x.engine.Close()
		_ = shop.Close()
		upstream.Cut()
	})
	x.notify(2 * time.Second) // from now on
	return x, h
}

// notify sends webhooks for a time: of writes whose state no worker changes meanwhile.
func (x *exchanges) notify(d time.Duration) {
	ctx, end := context.WithTimeout(x.t.Context(), d)
	defer end()
	_ = x.sender.Work(ctx)
}

// upstream is a destination that speaks MCP, with a prompt and a resource.
func (x *exchanges) upstream() (*mcp.Connector, *fakemcp.Server) {
	x.t.Helper()
	up := fakemcp.New(fakemcp.NewWorld())
	up.MCP.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello"}}}}, nil
	})
	up.MCP.AddResource(&sdk.Resource{Name: "orders", URI: "shop://orders"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "shop://orders", Text: "none"}}}, nil
	})
	text := fakemcp.Contract + "digests:\n"
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(up.Tool(name))
		if err != nil {
			x.t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	c, err := mcp.Load([]byte(text), "shop.yaml")
	if err != nil {
		x.t.Fatal(err)
	}
	conn, err := mcp.New(c, mcp.Options{Server: mcp.Server{Transport: up.Transport}})
	if err != nil {
		x.t.Fatal(err)
	}
	return conn, up
}

func newKeys(t *testing.T) config.Signing {
	t.Helper()
	private, public, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	var keys config.Signing
	if keys.Signer, err = signing.ReadSigner(private); err != nil {
		t.Fatal(err)
	}
	if keys.Trusted, err = signing.ReadKeys(public); err != nil {
		t.Fatal(err)
	}
	return keys
}

func frozenTools() []tool.Tool {
	create := tool.Tool{
		Name: "create_order", Title: "New order", Description: "Creates an order.", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Arguments: []tool.Argument{
			{Name: "order_id", Type: tool.String, Required: true, Description: "The number of the order."},
			{Name: "amount_cents", Type: tool.Integer, Required: true, Description: "The amount in cents."},
		},
		Key: []string{"order_id"}, Operation: []string{"order_id"}, Fixed: tool.Fixed{Expect: intent.Fields{"currency": "EUR"}},
	}
	held := create
	held.Name, held.Risk, held.Operation = "create_order_held", intent.RiskApprove, nil
	return []tool.Tool{create, held}
}

// ask sends a request and records the exchange. It returns the body of the response.
func (x *exchanges) ask(title, who, method, target, body string, headers ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 5*time.Minute+7*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	fmt.Fprintf(&x.text, "### %s\n%s %s\n", title, method, target)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&x.text, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	if body != "" {
		fmt.Fprintf(&x.text, "\n%s\n", body)
	}
	w := httptest.NewRecorder()
	x.handler.ServeHTTP(w, r)
	fmt.Fprintf(&x.text, "\n%d\n", w.Code)
	if n := w.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(w.Body.Len()) {
		x.t.Errorf("%s: Content-Length is %s, and the body has %d bytes", title, n, w.Body.Len())
	} else if n != "" {
		w.Header().Set("Content-Length", "LENGTH") // jittered times have different lengths
	}
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		fmt.Fprintf(&x.text, "%s: %s\n", name, strings.Join(w.Header()[name], ", "))
	}
	fmt.Fprintf(&x.text, "\n%s\n\n", strings.TrimSuffix(w.Body.String(), "\n"))
	if session := w.Header().Get("Mcp-Session-Id"); session != "" {
		x.session = session
	}
	x.asked[method+" "+r.URL.Path] = true
	time.Sleep(time.Minute) // until nothing that it caused is in progress
	return w.Body.String()
}

// id is the write in a response.
func (x *exchanges) id(body string) string {
	x.t.Helper()
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.ID == "" {
		x.t.Fatalf("no id in %s (%v)", body, err)
	}
	return m.ID
}

// frozen compares the recorded text with a file.
func (x *exchanges) frozen(name, text string) {
	x.t.Helper()
	text = fixed(text)
	path := filepath.Join(frozen, name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			x.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		x.t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		x.t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

func frozenOrder(id, more string) string {
	return fmt.Sprintf(`{"workflow":"run-1","step":"charge-%s","tool":"charge","destination":"orders","kind":"order","write":"create",`+
		`"key":{"order_id":%q},"expect":{"amount_cents":1999,"currency":"EUR"}%s}`, id, id, more)
}

const (
	asAgent    = "agent@acme"
	asReviewer = "reviewer@acme"
	asOperator = "operator@acme"
	asAuditor  = "auditor@acme"
	asForeign  = "operator@umbrella"
)

// foreignOrder is an order of another actor.
func (x *exchanges) foreignOrder(id string) {
	x.t.Helper()
	if _, err := x.world.Seed(intent.Fields{"order_id": id, "amount_cents": json.Number("5")}, ""); err != nil {
		x.t.Fatal(err)
	}
}

// written submits the writes that all exchanges are about, by what becomes of them.
func (x *exchanges) written() map[string]string {
	x.t.Helper()
	all := map[string]string{}
	submit := func(name, order string, headers ...string) {
		all[name] = x.id(x.ask("submit: "+name, asAgent, "POST", "/v1/writes", order, headers...))
	}
	const wait = "Prefer: wait=60"
	submit("verified", frozenOrder("A-1", `,"correlation_id":"c-1","idempotency_key":"wire:A-1","payload":{"note":"by phone"}`), wait)
	submit("again, with the same outcome", frozenOrder("A-1", `,"correlation_id":"c-1","idempotency_key":"wire:A-1","payload":{"note":"by phone"}`), wait)
	submit("held", frozenOrder("A-2", `,"risk":"approve"`))
	x.foreignOrder("A-3")
	submit("in review", frozenOrder("A-3", ""), wait)
	if err := x.world.Set(orders.Fault{Kind: orders.Refused, Times: 1}); err != nil {
		x.t.Fatal(err)
	}
	submit("not applied", frozenOrder("A-4", ""), wait)
	if err := x.world.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
		x.t.Fatal(err)
	}
	submit("lost response", frozenOrder("A-5", ""), wait)
	submit("denied", frozenOrder("A-6", `,"risk":"approve"`))
	submit("by key alone", `{"tool":"charge","destination":"orders","kind":"order","write":"create","key":{"order_id":"A-7"},"expect":{"amount_cents":1}}`, wait, `Idempotency-Key: "k-7"`)
	return all
}

// http records every route of /v1.
func (x *exchanges) http(writes map[string]string) {
	const reason = `{"reason":"seen by the reviewer"}`
	ask := x.ask
	ask("no credentials", "", "POST", "/v1/writes", frozenOrder("B-1", ""))
	ask("role may not submit", asAuditor, "POST", "/v1/writes", frozenOrder("B-1", ""))
	ask("invalid intent", asAgent, "POST", "/v1/writes", `{"tool":"charge","destination":"orders","kind":"order","write":"create","key":{},"expect":{}}`)
	ask("unknown member", asAgent, "POST", "/v1/writes", `{"tols":"charge"}`)
	ask("no JSON", asAgent, "POST", "/v1/writes", `{`)
	ask("another content type", asAgent, "POST", "/v1/writes", `{}`, "Content-Type: text/plain")
	ask("another accepted type", asAgent, "GET", "/v1/writes/"+writes["held"], "", "Accept: text/html")
	ask("too large", asAgent, "POST", "/v1/stops", `{"reason":"`+strings.Repeat("x", 70<<10)+`"}`)
	x.shorten(70 << 10)
	ask("another tenant", asAgent, "POST", "/v1/writes", frozenOrder("B-1", `,"tenant":"umbrella"`))
	ask("unknown destination", asAgent, "POST", "/v1/writes", strings.Replace(frozenOrder("B-1", ""), `"orders"`, `"nowhere"`, 1))
	ask("another digest", asAgent, "POST", "/v1/writes", strings.Replace(frozenOrder("A-1", ""), "1999", "2000", 1))
	ask("operation begun before", asAgent, "POST", "/v1/writes", strings.Replace(frozenOrder("B-1", `,"idempotency_key":"wire:A-1"`), "run-1", "run-2", 1))
	ask("no such route", asAgent, "GET", "/v1/nothing", "")
	ask("another method", asAgent, "DELETE", "/v1/writes", "")
	ask("options", asAgent, "OPTIONS", "/v1/writes", "")

	for _, name := range slices.Sorted(maps.Keys(writes)) {
		at := "/v1/writes/" + writes[name]
		ask("outcome: "+name, asAgent, "GET", at, "")
		ask("record: "+name, asAuditor, "GET", at+"/record", "")
		ask("events: "+name, asAuditor, "GET", at+"/events", "")
		ask("receipt: "+name, asAuditor, "GET", at+"/receipt", "")
	}
	ask("outcome of another tenant", asForeign, "GET", "/v1/writes/"+writes["held"], "")
	ask("record for an agent", asAgent, "GET", "/v1/writes/"+writes["held"]+"/record", "")
	ask("receipt with values", asAuditor, "GET", "/v1/writes/"+writes["verified"]+"/receipt?values=true", "")

	ask("list", asAuditor, "GET", "/v1/writes?limit=2", "")
	ask("list held ones", asAuditor, "GET", "/v1/writes?state=held&oldest=true", "")
	ask("list by key", asAuditor, "GET", "/v1/writes?destination=orders&kind=order&key="+url.QueryEscape(`{"order_id":"A-1"}`), "")
	ask("unknown filter", asAuditor, "GET", "/v1/writes?stat=held", "")
	ask("bad cursor", asAuditor, "GET", "/v1/writes?after=x", "")

	ask("destinations", asAuditor, "GET", "/v1/destinations", "")
	ask("destinations for an agent", asAgent, "GET", "/v1/destinations", "")
	ask("stop", asOperator, "POST", "/v1/stops", `{"destination":"orders","tool":"none","reason":"it is down"}`)
	ask("stop of an unknown destination", asOperator, "POST", "/v1/stops", `{"destination":"nowhere","reason":"it is down"}`)
	ask("stop by an agent", asAgent, "POST", "/v1/stops", `{"destination":"orders","reason":"it is down"}`)
	ask("stops", asAuditor, "GET", "/v1/stops", "")
	ask("preview of a stop", asOperator, "GET", "/v1/stops/preview?destination=orders", "")
	ask("release", asOperator, "POST", "/v1/stops/release", `{"destination":"orders","tool":"none","reason":"it is up"}`)
	ask("release of none", asOperator, "POST", "/v1/stops/release", `{"destination":"orders","reason":"it is up"}`)
	ask("inbox", asReviewer, "GET", "/v1/inbox", "")
	ask("inbox for an agent", asAgent, "GET", "/v1/inbox", "")
	ask("keys", asAuditor, "GET", "/v1/keys", "")
	ask("history", asAuditor, "GET", "/v1/history?step=6h", "")
	ask("history backwards", asAuditor, "GET", "/v1/history?since=2000-01-02T00:00:00Z&until=2000-01-01T00:00:00Z", "")
	ask("the document", "", "GET", "/openapi.json", "")

	held, review, denied := "/v1/writes/"+writes["held"], "/v1/writes/"+writes["in review"], "/v1/writes/"+writes["denied"]
	ask("decision by an agent", asAgent, "POST", held+"/decision", `{"word":"approve","reason":"it is right"}`)
	ask("unknown decision", asReviewer, "POST", held+"/decision", `{"word":"maybe","reason":"it is right"}`)
	ask("approve", asReviewer, "POST", held+"/decision", `{"word":"approve","reason":"it is right"}`, "Prefer: wait=60")
	ask("approve again", asReviewer, "POST", held+"/decision", `{"word":"approve","reason":"it is right"}`)
	ask("deny", asReviewer, "POST", denied+"/decision", `{"word":"deny","reason":"it is wrong"}`)
	ask("abandon", asReviewer, "POST", review+"/decision", `{"word":"abandon","reason":"it is of another actor"}`, "Prefer: wait=60")
	ask("yield", asOperator, "POST", "/v1/writes/"+writes["verified"]+"/yield", reason)
	ask("yield without a key", asOperator, "POST", denied+"/yield", reason)

	plan := func(id, order string) string {
		return fmt.Sprintf(`{"id":%q,"steps":[{"name":"charge","intent":{"tool":"charge","destination":"orders","kind":"order","write":"create",`+
			`"key":{"order_id":%q},"expect":{"amount_cents":5}}}]}`, id, order)
	}
	ask("begin a saga", asAgent, "POST", "/v1/sagas", plan("trip-1", "S-1"))
	ask("another plan", asAgent, "POST", "/v1/sagas", plan("trip-1", "S-2"))
	ask("invalid saga", asAgent, "POST", "/v1/sagas", `{"id":"trip-2","steps":[]}`)
	time.Sleep(time.Minute)
	ask("saga", asAgent, "GET", "/v1/sagas/trip-1", "")
	ask("no such saga", asAgent, "GET", "/v1/sagas/trip-9", "")
	ask("cancel too late", asOperator, "POST", "/v1/sagas/trip-1/cancel", reason)
	ask("close what does not wait", asOperator, "POST", "/v1/sagas/trip-1/close", reason)
	x.foreignOrder("S-3")
	ask("begin a saga that waits", asAgent, "POST", "/v1/sagas", plan("trip-3", "S-3"))
	time.Sleep(time.Minute)
	ask("saga that waits", asAgent, "GET", "/v1/sagas/trip-3", "")
	ask("inbox with a saga", asReviewer, "GET", "/v1/inbox", "")
	ask("cancel", asOperator, "POST", "/v1/sagas/trip-3/cancel", reason)
	time.Sleep(time.Minute)
	ask("close", asOperator, "POST", "/v1/sagas/trip-3/close", reason)
	ask("sagas", asAuditor, "GET", "/v1/sagas?limit=10", "")
	ask("events from the start", asAgent, "GET", "/v1/events?after=start&write="+writes["held"], "", "Accept: text/event-stream")
	ask("events of a workflow for an agent", asAgent, "GET", "/v1/events?workflow=run-1", "", "Accept: text/event-stream")
	ask("events, bad cursor", asAgent, "GET", "/v1/events?after=x", "", "Accept: text/event-stream")
	ask("outcomes of several", asAgent, "GET", "/v1/writes/batch?id="+writes["verified"]+"&id="+writes["held"]+"&id=wr_0", "")
	ask("outcomes of none", asAgent, "GET", "/v1/writes/batch", "")
	ask("batch", asAgent, "POST", "/v1/writes/batch", `{"writes":[`+frozenOrder("A-1", `,"correlation_id":"c-1","idempotency_key":"wire:A-1","payload":{"note":"by phone"}`)+`,5,`+frozenOrder("B-1", `,"tenant":"umbrella"`)+`]}`, "Prefer: wait=60")
	ask("empty batch", asAgent, "POST", "/v1/writes/batch", `{"writes":[]}`)
}

// shorten replaces a long run of one letter in the record.
func (x *exchanges) shorten(n int) {
	text := strings.Replace(x.text.String(), strings.Repeat("x", n), fmt.Sprintf("(%d letters)", n), 1)
	x.text.Reset()
	x.text.WriteString(text)
}

// mcp records every method, tool, prompt and resource over MCP at a path.
func (x *exchanges) mcp(path string, messages ...string) {
	const accepts, version = "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2025-11-25"
	x.session = ""
	x.ask("no credentials", "", "POST", path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, accepts, version)
	x.ask("no session", asAgent, "POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, accepts, version)
	x.ask("no JSON", asAgent, "POST", path, `{`, accepts, version)
	x.ask("page of another origin", asAgent, "POST", path, `{}`, accepts, version, "Origin: https://other.example")
	x.ask("another method", asAgent, "PUT", path, `{}`, accepts, version)
	x.ask("initialize", asAgent, "POST", path, initialize, accepts)
	session := "Mcp-Session-Id: " + x.session
	x.ask("initialized", asAgent, "POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, accepts, version, session)
	for i, m := range messages {
		x.ask("message", asAgent, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i+2, m), accepts, version, session)
	}
	x.ask("session of another caller", asForeign, "POST", path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, accepts, version, session)
	x.ask("end", asAgent, "DELETE", path, "", accepts, version, session)
}

func call(tool, arguments string) string {
	return fmt.Sprintf(`"method":"tools/call","params":{"name":%q,"arguments":%s}`, tool, arguments)
}

// pages records every page.
func (x *exchanges) pages(writes map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		x.ask("write: "+name, asReviewer, "GET", "/writes/"+writes[name], "")
	}
	for _, path := range []string{"/", "/inbox", "/destinations", "/activity", "/search?q=A-1", "/search?q=run-1", "/sagas", "/sagas/trip-1", "/sagas/trip-3", "/help", "/writes/wr_none"} {
		x.ask("page", asReviewer, "GET", path, "")
	}
	x.ask("for an agent", asAgent, "GET", "/inbox", "")
	x.ask("no credentials", "", "GET", "/inbox", "")
	x.ask("form of another origin", asReviewer, "POST", "/theme", "theme=dark", "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: cross-site")
}

// Every route of /v1, every MCP tool, prompt and resource, every page and every webhook
// is as recorded, to the byte, but for what [fixed] replaces.
func TestExchangesAreAsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, h := newExchanges(t)
		record := func(name string, do func()) {
			x.text.Reset()
			do()
			x.frozen(name, x.text.String())
		}
		var writes map[string]string
		record("pages.txt", func() {
			writes = x.written()
			x.text.Reset()
			x.pages(writes)
		})
		record("v1.txt", func() { x.http(writes) })
		record("mcp.txt", func() {
			x.mcp("/mcp", `"method":"ping"`, `"method":"tools/list"`, `"method":"resources/list"`, `"method":"nothing"`,
				call("create_order", `{"order_id":"M-1","amount_cents":1999}`), call("create_order", `{"order_id":"M-1","amount_cents":1999}`),
				call("create_order", `{"order_id":"M-2"}`), call("create_order", `{"order_id":"A-3","amount_cents":1999}`),
				call("create_order_held", `{"order_id":"M-3","amount_cents":1999}`), call("nothing", `{}`),
				call("get_outcome", fmt.Sprintf(`{"id":%q}`, writes["verified"])), call("get_outcome", fmt.Sprintf(`{"id":%q}`, writes["held"])),
				call("get_outcome", `{"id":"wr_none"}`), call("get_outcome", `{}`))
			x.mcp("/mcp/shop", `"method":"tools/list"`, `"method":"prompts/list"`, `"method":"prompts/get","params":{"name":"greet"}`,
				`"method":"resources/list"`, `"method":"resources/templates/list"`, `"method":"resources/read","params":{"uri":"shop://orders"}`,
				call(fakemcp.Create, `{"order_id":"G-1","amount_cents":5}`), call(fakemcp.Find, `{"order_id":"G-1"}`), call(fakemcp.Create, `{}`), call("nothing", `{}`))
		})
		x.notify(time.Hour)
		x.frozen("webhooks.txt", h.all())
		x.every(v1.Routes())
	})
}

// every fails for a route that was not asked.
func (x *exchanges) every(routes []access.Route) {
	for _, r := range routes {
		is := regexp.MustCompile("^" + regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(r.Method+" "+r.Pattern, "[^/]+") + "$")
		found := false
		for asked := range x.asked {
			found = found || is.MatchString(asked)
		}
		if !found {
			x.t.Errorf("%s %s is not recorded", r.Method, r.Pattern)
		}
	}
}
