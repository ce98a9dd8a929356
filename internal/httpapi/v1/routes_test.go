package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// target is an address of a route, about nothing that there is.
func (r route) target() string {
	return wildcard.ReplaceAllString(r.pattern, "wr_00000000000000000000000000000000")
}

// right is a body that a route can read, about nothing that there is.
func (r route) right() string {
	switch r.name {
	case "":
		return ""
	case "submitWrite":
		return asJSON(order("A-1"))
	case "submitWrites":
		return batch(asJSON(order("A-1")))
	case "beginSaga":
		return plan("trip-1", "A-1")
	case "decide":
		return `{"word":"accept","reason":"it is right"}`
	}
	if r.body == nil {
		return ""
	}
	return `{"reason":"it is right"}`
}

// plan is the plan of a saga of one order.
func plan(id, orderID string) string {
	w := order(orderID, unnamed)
	return fmt.Sprintf(`{"id":%q,"steps":[{"name":"one","intent":%s}]}`, id, asJSON(w))
}

// may is a caller that may call a route, if it needs one.
func (r route) may() string {
	for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator} {
		if (access.Identity{Tenant: "acme", Role: role}).May(r.act) == nil {
			return string(role) + "@acme"
		}
	}
	return ""
}

// asked is how a route is asked.
type asked struct {
	who     string
	query   string
	body    func(route) string
	headers []string
	broken  error // of the resolver
	late    bool  // the body does not come in time
}

func body(text string) func(route) string { return func(route) string { return text } }

// everywhere is what holds of every route, whatever it is about.
var everywhere = map[string]struct {
	asked
	when func(route) bool
	kind *kind
}{
	"without credentials":       {asked{who: "-"}, hasAct, unauthorized},
	"a role without rights":     {asked{who: "root@acme"}, hasAct, forbidden},
	"bad credentials too often": {asked{broken: &access.TooManyError{After: 90 * time.Second}}, hasAct, tooManyAttempts},
	"a limit is reached":        {asked{broken: &access.LimitError{Limit: access.LimitRate, Of: "token", Setting: "server.limits.token_rate", Most: 5, After: 90 * time.Second}}, hasAct, tooManyRequests},
	"the tokens cannot be read": {asked{broken: access.ErrUnavailable}, hasAct, unavailable},
	"the ledger is down":        {asked{broken: unavailableLedger()}, hasAct, unavailable},
	"something else is broken":  {asked{broken: errBroken}, hasAct, broken},
	"an unknown query":          {asked{query: "?stat=held"}, always, invalidRequest},
	"a query that is none":      {asked{query: "?a=%zz"}, always, invalidRequest},
	"another type wanted":       {asked{headers: []string{"Accept: text/html, application/json;q=0"}}, always, notAcceptable},
	"a body of another type":    {asked{headers: []string{"Content-Type: text/plain"}}, hasBody, unsupportedType},
	"a compressed body":         {asked{headers: []string{"Content-Encoding: gzip"}}, hasBody, unsupportedType},
	"too large a body":          {asked{body: func(r route) string { return strings.Repeat(" ", int(r.body.most)+1) }}, hasBody, tooLarge},
	"a body that does not come": {asked{late: true}, hasBody, bodyTimeout},
	"no body":                   {asked{body: body("")}, hasBody, invalidRequest},
	"no object":                 {asked{body: body(`["a"]`)}, hasBody, invalidRequest},
	"an unknown member":         {asked{body: body(`{"reasons":"x"}`)}, hasBody, invalidRequest},
	"a member twice":            {asked{body: body(`{"reason":"x","reason":"y"}`)}, hasBody, invalidRequest},
	"no UTF-8":                  {asked{body: body("{\"reason\":\"\xff\"}")}, hasBody, invalidRequest},
	"cut off":                   {asked{body: body(`{"reason":"x`)}, hasBody, invalidRequest},
	"more behind it":            {asked{body: body(`{"reason":"x"}{}`)}, hasBody, invalidRequest},
	"nested too deep":           {asked{body: body(strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000))}, hasBody, invalidRequest},
	"nothing of that name":      {asked{}, hasPart, notFound},
}

func TestEveryRoute(t *testing.T) {
	for name, test := range everywhere {
		t.Run(name, func(t *testing.T) {
			for _, r := range routes() {
				if !test.when(r) {
					continue
				}
				t.Run(r.method+" "+r.pattern, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t, orders.Native.Options(), nil)
						b.tokens.fails(test.broken)
						b.late = test.late
						who, text := r.may(), r.right()
						if test.who != "" {
							who = strings.TrimSuffix(test.who, "-")
						}
						if test.body != nil {
							text = test.body(r)
						}
						headers := append([]string{}, test.headers...)
						a := b.ask(who, r.method, r.target()+test.query, text, headers...)
						if test.kind == invalidRequest && r.body != nil && test.body != nil {
							a.want(400) // intents and plans have their own description
							into[Problem](a)
							return
						}
						a.problem(test.kind)
						if strings.Contains(string(a.Body), "secrets") {
							t.Errorf("it reveals internals: %s", a.Body)
						}
						if (test.kind == tooManyAttempts || test.kind == tooManyRequests) && a.Header.Get("Retry-After") != "90" {
							t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
						}
						if test.kind == unauthorized && a.Header.Get("WWW-Authenticate") == "" {
							t.Error("WWW-Authenticate is missing")
						}
						if test.kind.retry > 0 && a.Header.Get("Retry-After") == "" {
							t.Error("Retry-After is missing")
						}
					})
				})
			}
		})
	}
}

func always(route) bool    { return true }
func hasAct(r route) bool  { return r.act != "" }
func hasBody(r route) bool { return r.body != nil }
func hasPart(r route) bool { return len(r.parts()) > 0 }

func TestRoutesAreThoseThatAreServed(t *testing.T) {
	paths := documentOf()["paths"].(map[string]any)
	documented := 0
	for _, each := range paths {
		documented += len(each.(map[string]any))
	}
	all := Routes()
	if len(all) != documented || len(all) != len(routes()) {
		t.Errorf("%d routes, %d in the document", len(all), documented)
	}
	for _, r := range all {
		if r.Act == "" && r.Pattern != "/openapi.json" {
			t.Errorf("%s %s is open to unknown callers", r.Method, r.Pattern)
		}
	}
	public := slices.IndexFunc(all, func(r access.Route) bool { return r.Pattern == "/openapi.json" })
	if public < 0 || all[public].Act != "" {
		t.Error("the document is not public")
	}
}

// An agent decides nothing and sees no other's evidence, whatever it sends.
func TestWhatAgentsMay(t *testing.T) {
	var may []string
	for _, r := range Routes() {
		if (access.Identity{Tenant: "acme", Role: engine.RoleAgent}).May(r.Act) == nil {
			may = append(may, r.Method+" "+r.Pattern)
		}
	}
	slices.Sort(may)
	want := []string{"GET /v1/destinations", "GET /v1/events", "GET /v1/sagas/{id}", "GET /v1/stops", "GET /v1/writes/batch", "GET /v1/writes/{id}", "POST /v1/sagas", "POST /v1/writes", "POST /v1/writes/batch"}
	if !slices.Equal(may, want) {
		t.Errorf("agents may ask %v", may)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := b.submit(order("A-1", held))
		for _, headers := range [][]string{
			{"X-HTTP-Method-Override: POST"}, {"X-Tenant-ID: umbrella", "X-Role: operator"}, {"X-User-ID: boss"}, {"Cookie: session=x"},
		} {
			b.ask(agent, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"I am the boss"}`, headers...).problem(forbidden)
			b.ask(agent, "GET", writePath(out.ID, "/record"), "", headers...).problem(forbidden)
		}
		b.ask(agent, "POST", writePath(out.ID, "/decision?_method=GET"), `{"word":"approve","reason":"x"}`).problem(forbidden)
	})
}

func TestAnotherTenantFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.work()
		out := b.submit(order("A-1", held))
		b.ask(agent, "POST", "/v1/sagas", plan("trip-1", "A-2")).want(202)
		for _, r := range routes() {
			if len(r.parts()) == 0 {
				continue
			}
			target := strings.Replace(r.pattern, "{id}", string(out.ID), 1)
			if strings.Contains(r.pattern, "sagas") {
				target = strings.Replace(r.pattern, "{id}", "trip-1", 1)
			}
			b.ask(outsider, r.method, target, r.right()).problem(notFound)
		}
		b.ask(outsider, "POST", "/v1/writes", strings.Replace(asJSON(order("A-1")), "{", `{"tenant":"acme",`, 1)).problem(otherTenant)
		b.ask(outsider, "POST", "/v1/sagas", strings.Replace(plan("trip-1", "A-2"), "{", `{"tenant":"acme",`, 1)).problem(otherTenant)
		if page := into[Writes](b.ask(outsider, "GET", "/v1/writes", "").want(200)); len(page.Writes) != 0 {
			t.Errorf("%+v", page)
		}
		if in := into[Inbox](b.ask(outsider, "GET", "/v1/inbox", "").want(200)); len(in.Writes) != 0 {
			t.Errorf("%+v", in)
		}
	})
}

func TestMethodsAndAddresses(t *testing.T) {
	tests := map[string]struct {
		method, target string
		status         int
		allow          string
	}{
		"another method":      {"PUT", "/v1/writes", 405, "GET, HEAD, OPTIONS, POST"},
		"a delete":            {"DELETE", "/v1/writes/wr_1", 405, "GET, HEAD, OPTIONS"},
		"a read of a change":  {"GET", "/v1/writes/wr_1/decision", 405, "OPTIONS, POST"},
		"options":             {"OPTIONS", "/v1/writes", 204, "GET, HEAD, OPTIONS, POST"},
		"beside a wider path": {"PUT", "/v1/writes/batch", 405, "GET, HEAD, OPTIONS, POST"},
		"no such address":     {"GET", "/v1/nothing", 404, ""},
		"a slash behind":      {"POST", "/v1/writes/", 404, ""},
		"two slashes":         {"POST", "/v1//writes", 404, ""},
		"a way up":            {"POST", "/v1/x/../writes", 404, ""},
		"an encoded way up":   {"GET", "/v1/writes/%2e%2e/record", 404, ""},
		"a method of no kind": {"BREW", "/v1/writes", 405, "GET, HEAD, OPTIONS, POST"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			a := b.ask(operator, test.method, test.target, "").want(test.status)
			if got := a.Header.Get("Allow"); got != test.allow {
				t.Errorf("Allow %q, want %q", got, test.allow)
			}
		})
	}
}

func TestHeadAnswersAsGetWithoutABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := b.submit(order("A-1"))
		b.ask(agent, "HEAD", writePath(out.ID, ""), "").want(200)
		b.ask(agent, "HEAD", "/v1/writes/wr_0", "").want(404)
		if a := b.ask(agent, "HEAD", "/v1/events", "").want(200); len(a.Body) != 0 { // and does not stream
			t.Errorf("%s", a.Body)
		}
	})
}

// A name in a path that no ledger can keep is the name of nothing.
func TestNamesThatAreNone(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	for _, name := range []string{"%00", "%ff", strings.Repeat("a", 300)} {
		b.ask(operator, "GET", "/v1/writes/"+name, "").problem(notFound)
		b.ask(operator, "GET", "/v1/sagas/"+name, "").problem(notFound)
	}
}

// A panic is reported as our fault, and the API continues.
func TestPanicIsAnswered(t *testing.T) {
	b := newBench(t, orders.Native.Options(), func(o *Options) { o.Who = panics{} })
	a := b.ask(operator, "GET", "/v1/stops", "")
	a.problem(broken)
	if strings.Contains(string(a.Body), "secret") {
		t.Errorf("%s", a.Body)
	}
}

type panics struct{}

func (panics) Resolve(*http.Request) (access.Identity, error) { panic("a secret") }

// An API without a resolver admits no caller.
func TestWithoutAResolverAllCallersAreUnknown(t *testing.T) {
	w := httptest.NewRecorder()
	New(nil, nil).ServeHTTP(w, httptest.NewRequest("GET", "/v1/stops", nil))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("status %d", w.Code)
	}
}

func TestDocumentIsPublic(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	a := b.ask("", "GET", "/openapi.json", "").want(200)
	var doc struct {
		OpenAPI string `json:"openapi"`
		Info    struct{ Version string }
	}
	if err := json.Unmarshal(a.Body, &doc); err != nil || doc.OpenAPI != "3.1.0" || doc.Info.Version != "test" {
		t.Errorf("%+v, %v", doc, err)
	}
}
