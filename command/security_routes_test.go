package command

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	v1 "github.com/readback-go/readback/internal/httpapi/v1"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/reviewui"
)

// routed is a route of the server and where it comes from.
type routed struct {
	access.Route
	area string
}

func (r routed) key() string { return r.Method + " " + r.Pattern }

// allRoutes are the routes of all APIs, by their own lists, and the server's other
// routes.
func allRoutes() []routed {
	var all []routed
	add := func(area string, some []access.Route) {
		for _, r := range some {
			all = append(all, routed{r, area})
		}
	}
	add("gate", httpapi.Routes())
	add("v1", v1.Routes())
	add("mcp", mcpapi.Routes())
	for _, r := range mcpapi.Routes() { // a gateway is called like the MCP API
		add("gateway", []access.Route{{Method: r.Method, Pattern: mcpapi.Path + "/shop", Act: r.Act}})
	}
	add("desk", reviewui.Routes())
	add("house", []access.Route{{Method: "GET", Pattern: "/metrics", Act: access.Trace}, {Method: "GET", Pattern: "/healthz"}, {Method: "GET", Pattern: "/readyz"}})
	add("login", (&access.Logins{}).Routes())
	return all
}

// asking is a request of a route about a resource of a tenant.
type asking struct {
	path func(th things) string
	body func(th things) string
	form bool
	// named marks a route that names a resource, which other tenants also have.
	named bool
	// open is the response to every caller where the route is open to all.
	open []int
	// accept is what is asked for.
	accept string
}

func at(path string) func(things) string { return func(things) string { return path } }

// of makes a path of a pattern: {v} is a held write, {r} one in review, {w} a
// workflow, {s} its step, {g} a saga.
func of(pattern string) func(things) string {
	return func(th things) string {
		return strings.NewReplacer("{v}", th.held, "{r}", th.review, "{w}", th.workflow, "{s}", url.PathEscape(th.step), "{g}", url.PathEscape(th.saga)).Replace(pattern)
	}
}

const because = `{"reason":"because somebody has looked","comment":"because somebody has looked"}`

func named(path, body string) asking { return asking{path: of(path), body: at(body), named: true} }
func plain(path, body string) asking { return asking{path: at(path), body: at(body)} }
func public(path, body string, open ...int) asking {
	return asking{path: at(path), body: at(body), open: open}
}

func form(e asking, body string) asking {
	e.form, e.body = true, func(th things) string {
		return strings.NewReplacer("{digest}", th.digest, "{approval}", th.approval, "{r}", th.review).Replace(body)
	}
	return e
}

func accepting(e asking, what string) asking { e.accept = what; return e }

// examples has a request for every route. A route that is missing here fails the
// test, and so does one that is gone.
func examples() map[string]asking {
	all := map[string]asking{}
	for _, some := range []map[string]asking{gateExamples(), v1Examples(), modelExamples(), uiExamples(), operationExamples()} {
		for key, e := range some {
			all[key] = e
		}
	}
	return all
}

func gateExamples() map[string]asking {
	const one, step = "/api/v1/workflows/{workflow_id}", "/api/v1/workflows/{workflow_id}/steps/{step_id}"
	const alias = "/api/v1/workflow-control/{workflow_id}/steps/{step_id}"
	return map[string]asking{
		"POST /api/v1/workflows":                         plain("/api/v1/workflows", `{"workflow_name":"w"}`),
		"GET /api/v1/workflows":                          plain("/api/v1/workflows?limit=100", ""),
		"GET " + one:                                     named("/api/v1/workflows/{w}", ""),
		"POST " + one + "/complete":                      named("/api/v1/workflows/{w}/complete", because),
		"POST " + one + "/fail":                          named("/api/v1/workflows/{w}/fail", because),
		"POST " + one + "/abort":                         named("/api/v1/workflows/{w}/abort", because),
		"POST " + one + "/resume":                        named("/api/v1/workflows/{w}/resume", because),
		"GET " + one + "/checkpoints":                    named("/api/v1/workflows/{w}/checkpoints", ""),
		"POST " + one + "/checkpoints/resume":            named("/api/v1/workflows/{w}/checkpoints/resume", ""),
		"POST " + one + "/checkpoints/{n}/resume":        named("/api/v1/workflows/{w}/checkpoints/0/resume", ""),
		"POST " + step + "/gate":                         named("/api/v1/workflows/{w}/steps/{s}/gate?include_prior_output=true", `{"step_type":"tool_call","tool_context":{"tool_name":"wire_bank"}}`),
		"POST " + step + "/complete":                     named("/api/v1/workflows/{w}/steps/{s}/complete", `{"output":{}}`),
		"POST " + step + "/approve":                      named("/api/v1/workflows/{w}/steps/{s}/approve", because),
		"POST " + step + "/reject":                       named("/api/v1/workflows/{w}/steps/{s}/reject", because),
		"GET /api/v1/workflows/approvals/pending":        plain("/api/v1/workflows/approvals/pending?limit=100", ""),
		"POST " + alias + "/approve":                     named("/api/v1/workflow-control/{w}/steps/{s}/approve", ""),
		"POST " + alias + "/reject":                      named("/api/v1/workflow-control/{w}/steps/{s}/reject", ""),
		"GET /api/v1/workflow-control/pending-approvals": plain("/api/v1/workflow-control/pending-approvals", ""),
	}
}

func v1Examples() map[string]asking {
	return map[string]asking{
		"POST /v1/writes":               plain("/v1/writes", intentOf("nobody", "wire", "order-x", "x")),
		"POST /v1/writes/batch":         plain("/v1/writes/batch", `{"writes":[`+intentOf("nobody", "wire", "order-y", "y")+`]}`),
		"GET /v1/writes/batch":          {path: of("/v1/writes/batch?id={v}"), body: at("")},
		"GET /v1/writes":                plain("/v1/writes?limit=200&destination=orders", ""),
		"GET /v1/writes/{id}":           named("/v1/writes/{v}", ""),
		"GET /v1/writes/{id}/record":    named("/v1/writes/{r}/record", ""),
		"GET /v1/writes/{id}/events":    named("/v1/writes/{r}/events", ""),
		"GET /v1/writes/{id}/receipt":   named("/v1/writes/{v}/receipt?values=true", ""),
		"GET /v1/keys":                  plain("/v1/keys", ""),
		"POST /v1/writes/{id}/decision": named("/v1/writes/{v}/decision", `{"word":"approve","reason":"because somebody has looked"}`),
		"POST /v1/writes/{id}/yield":    named("/v1/writes/{r}/yield", `{"reason":"because somebody has looked"}`),
		"GET /v1/events":                accepting(plain("/v1/events?after=start", ""), "text/event-stream"),
		"POST /v1/sagas": plain("/v1/sagas", `{"id":"nobody-saga","steps":[{"name":"a","intent":{"tool":"wire","destination":"orders","kind":"order",
			"key":{"order_id":"saga-x"},"write":"create","expect":{"amount_cents":1}}}]}`),
		"GET /v1/sagas":              plain("/v1/sagas", ""),
		"GET /v1/sagas/{id}":         named("/v1/sagas/{g}", ""),
		"POST /v1/sagas/{id}/cancel": named("/v1/sagas/{g}/cancel", `{"reason":"because somebody has looked"}`),
		"POST /v1/sagas/{id}/close":  named("/v1/sagas/{g}/close", `{"reason":"because somebody has looked"}`),
		"GET /v1/destinations":       plain("/v1/destinations", ""),
		"GET /v1/stops":              plain("/v1/stops", ""),
		"POST /v1/stops":             plain("/v1/stops", `{"tool":"nobodys","destination":"orders","reason":"because somebody has looked"}`),
		"GET /v1/stops/preview":      plain("/v1/stops/preview?destination=orders", ""),
		"POST /v1/stops/release":     plain("/v1/stops/release", `{"tool":"nobodys","destination":"orders","reason":"because somebody has looked"}`),
		"GET /v1/inbox":              plain("/v1/inbox", ""),
		"GET /v1/history":            plain("/v1/history", ""),
		"GET /openapi.json":          public("/openapi.json", "", http.StatusOK),
	}
}

func modelExamples() map[string]asking {
	all := map[string]asking{}
	for _, path := range []string{"/mcp", "/mcp/shop"} {
		all["POST "+path] = accepting(plain(path, initialize), "application/json, text/event-stream")
		all["GET "+path] = accepting(plain(path, ""), "text/event-stream")
		all["DELETE "+path] = plain(path, "")
	}
	return all
}

func uiExamples() map[string]asking {
	const why = "reason=because+somebody+has+looked"
	return map[string]asking{
		"GET /{$}":                                         plain("/", ""),
		"GET /inbox":                                       plain("/inbox", ""),
		"GET /writes/{id}":                                 named("/writes/{r}", ""),
		"GET /writes/{id}/receipt":                         named("/writes/{v}/receipt", ""),
		"POST /writes/{id}/decision":                       form(named("/writes/{v}/decision", ""), "choice=approve&digest={digest}&seq=1&"+why),
		"GET /writes/{id}/next":                            named("/writes/{r}/next", ""),
		"POST /inbox/decisions":                            form(named("/inbox/decisions", ""), "choice=accept&write-{r}=1+{digest}&"+why),
		"POST /writes/{id}/assignment":                     form(named("/writes/{r}/assignment", ""), "assign=take"),
		"POST /writes/{id}/yield":                          form(named("/writes/{r}/yield", ""), why),
		"GET /workflows/{workflow}/steps/{step}":           named("/workflows/{w}/steps/{s}", ""),
		"POST /workflows/{workflow}/steps/{step}/decision": form(named("/workflows/{w}/steps/{s}/decision", ""), "choice=approve&approval={approval}&"+why),
		"GET /destinations":                                plain("/destinations", ""),
		"GET /destinations/{name}/health":                  plain("/destinations/orders/health", ""),
		"GET /destinations/stop":                           plain("/destinations/stop?destination=orders", ""),
		"POST /destinations/stop":                          form(plain("/destinations/stop", ""), "tool=nobodys&destination=orders&"+why),
		"POST /destinations/release":                       form(plain("/destinations/release", ""), "tool=nobodys&destination=orders&"+why),
		"GET /activity":                                    plain("/activity", ""),
		"GET /search":                                      plain("/search?q=canary", ""),
		"GET /sagas":                                       plain("/sagas", ""),
		"GET /sagas/{id}":                                  named("/sagas/{g}", ""),
		"POST /sagas/{id}/cancel":                          form(named("/sagas/{g}/cancel", ""), why),
		"POST /sagas/{id}/close":                           form(named("/sagas/{g}/close", ""), why),
		"GET /help":                                        plain("/help", ""),
		"POST /theme":                                      form(plain("/theme", ""), "theme=dark"),
		"GET /updates":                                     accepting(plain("/updates", ""), "text/event-stream"),
		"GET /static/{file...}":                            public("/static/review.css", "", http.StatusOK, http.StatusNotFound),
	}
}

func operationExamples() map[string]asking {
	return map[string]asking{
		"GET /login":          public("/login", "", http.StatusOK),
		"POST /login":         form(public("/login", "", http.StatusUnauthorized, http.StatusTooManyRequests), "token=rbk_none"),
		"GET /login/provider": public("/login/provider", "", http.StatusForbidden), // there is none here
		"GET /login/callback": public("/login/callback?code=x&state=y", "", http.StatusForbidden),
		"POST /logout":        form(public("/logout", "", http.StatusSeeOther), ""),
		"GET /metrics":        plain("/metrics", ""),
		"GET /healthz":        public("/healthz", "", http.StatusOK),
		"GET /readyz":         public("/readyz", "", http.StatusOK),
	}
}

// TestEveryRouteHasAnExample: a new route, and a new API, has a request here.
func TestEveryRouteHasAnExample(t *testing.T) {
	left := examples()
	for _, r := range allRoutes() {
		if _, ok := left[r.key()]; !ok {
			t.Errorf("the route %q of the door %s has no example in this table", r.key(), r.area)
		}
		delete(left, r.key())
	}
	for key := range left {
		t.Errorf("there is an example of %q, which is no route", key)
	}
	f := newFort(t, nil)
	logged := regexp.MustCompile(`msg=serving paths="\[(.*?)\]"`).FindStringSubmatch(f.log.String())
	if logged == nil {
		t.Fatalf("the server logs no paths:\n%s", f.log)
	}
	for path := range strings.FieldsSeq(logged[1]) {
		found := false
		for _, r := range allRoutes() {
			pattern := strings.TrimSuffix(r.Pattern, "{$}")
			fits := pattern == path || strings.HasSuffix(path, "/") && strings.HasPrefix(pattern, path)
			found = found || fits && (path != "/" || r.area == "desk")
		}
		if !found {
			t.Errorf("the door at %q has no routes in this table", path)
		}
	}
}

// send makes the request of an example.
func (f *fort) send(r routed, e asking, th things, token string) *http.Request {
	q := f.request(r.Method, e.path(th), e.body(th), token)
	if e.form {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if e.accept != "" {
		q.Header.Set("Accept", e.accept)
	}
	return q
}
