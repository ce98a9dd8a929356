package command

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/access/accesstest"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// TestWhoMayWhat pins the table of acts: the table of routes takes it for granted.
func TestWhoMayWhat(t *testing.T) {
	for role, want := range map[engine.Role][]access.Act{
		engine.RoleAgent: {access.Submit, access.Read}, engine.RoleReviewer: {access.Read, access.Trace, access.Decide},
		engine.RoleAuditor:  {access.Read, access.Trace},
		engine.RoleOperator: {access.Submit, access.Read, access.Trace, access.Decide, access.Operate},
		"":                  nil, "root": nil,
	} {
		for _, act := range []access.Act{access.Submit, access.Read, access.Trace, access.Decide, access.Operate, "", "anything"} {
			if may := (access.Identity{Tenant: own, Role: role}).May(act) == nil; may != slices.Contains(want, act) {
				t.Errorf("%q may %q: %t", role, act, may)
			}
		}
	}
	for _, r := range allRoutes() { // what changes something is no reading
		if r.Method != http.MethodGet && (r.Act == access.Read || r.Act == access.Trace) && r.area != "mcp" && r.area != "gateway" && r.Pattern != "/theme" {
			t.Errorf("%s takes no more than to %s", r.key(), r.Act)
		}
		if r.Act == "" && r.area != "login" && !slices.Contains([]string{"/openapi.json", "/static/{file...}", "/healthz", "/readyz"}, r.Pattern) {
			t.Errorf("anybody may ask %s", r.key())
		}
	}
}

// TestStreamsCoverTheOwnTenantAlone: every client of an event stream, from now on, from
// the start, or as a page, gets only the events of its own tenant.
func TestStreamsCoverTheOwnTenantAlone(t *testing.T) {
	f := newFort(t, nil)
	first := f.must(engine.RoleAgent, foreign, "POST", "/v1/writes", intentOf(foreign, "wire", "F-1", "a")).field("id")
	for _, path := range []string{"/v1/events?after=start", "/v1/events", "/updates"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		q := f.request("GET", path, "", f.secret["operator@"+own], "Accept", "text/event-stream").WithContext(ctx)
		resp, err := f.client.Do(q)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		n := strings.NewReplacer("/", "", "?", "", "=", "").Replace(path)
		theirs := f.must(engine.RoleAgent, foreign, "POST", "/v1/writes", intentOf(foreign, "wire", "F-"+n, "f"+n)).field("id")
		mine := f.must(engine.RoleAgent, own, "POST", "/v1/writes", intentOf(own, "wire", "O-"+n, "o"+n)).field("id")
		received, replies := "", bufio.NewScanner(resp.Body)
		for replies.Scan() {
			received += replies.Text() + "\n"
			if strings.Contains(received, mine) {
				break
			}
		}
		cancel()
		_ = resp.Body.Close()
		if strings.Contains(received, theirs) || strings.Contains(received, first) || strings.Contains(received, canary(foreign, "")) || !strings.Contains(received, mine) {
			t.Errorf("%s:\n%s", path, received)
		}
	}
}

// searches are searches for a text of another tenant: they must find nothing, and respond
// exactly as for a made-up text.
func searches(th things) []string {
	c := func(what string) string { return canary(th.tenant, what) }
	return []string{
		"/v1/writes?workflow=" + c("workflow"), "/v1/writes?correlation_id=" + c("correlation"), "/v1/writes?idempotency_key=" + c("operation-two"),
		"/v1/writes?destination=orders&kind=order&key=%7B%22order_id%22:%22" + th.heldOrder + "%22%7D",
		"/search?q=" + th.held, "/search?q=" + c("workflow"), "/search?by=workflow&q=" + c("workflow"), "/search?by=correlation&q=" + c("correlation"),
		"/api/v1/workflows?trace_id=" + c("trace"), "/v1/sagas?limit=1000", "/v1/history?step=1h",
	}
}

// TestSearchesFindTheOwnAlone: a search by another tenant's own words finds nothing.
func TestSearchesFindTheOwnAlone(t *testing.T) {
	f := newFort(t, nil)
	theirs := f.populate(foreign)
	none := theirs.mangled()
	none.tenant, none.heldOrder = "umbrelli", "canary-umbrelli-order-2"
	made := searches(none)
	for i, path := range searches(theirs) {
		a, b := f.must(engine.RoleOperator, own, "GET", path, ""), f.must(engine.RoleOperator, own, "GET", made[i], "")
		same := func(text string) string {
			text = strings.NewReplacer(theirs.held, "ID", none.held, "ID", "umbrelli", foreign).Replace(text)
			return times.ReplaceAllString(text, "NOW")
		}
		if got, want := same(a.body), same(b.body); got != want && !strings.HasPrefix(path, "/v1/history") {
			t.Errorf("%s:\n%s\nof none:\n%s", path, got, want)
		}
		for _, id := range theirs.names() {
			if id != "" && !strings.Contains(path, id) && strings.Contains(a.body, id) {
				t.Errorf("%s finds %s", path, id)
			}
		}
	}
	// The same words in the own tenant: its own write, blocked by none of others'.
	repeat := strings.ReplaceAll(intentOf(foreign, "create", "R-1", "one"), `"key"`, `"tenant":"acme","key"`)
	a := f.must(engine.RoleAgent, own, "POST", "/v1/writes", repeat, "Prefer", "wait=30")
	if a.field("status") != "verified" || a.header.Get("Idempotent-Replayed") != "" || strings.Contains(a.all(), theirs.verified) {
		t.Errorf("the own write of the same name: %s", a)
	}
	again := f.as(engine.RoleAgent, own, "POST", "/v1/writes", strings.Replace(repeat, canary(foreign, "workflow"), "another", 1))
	if again.status != http.StatusConflict || !strings.Contains(again.body, a.field("id")) || strings.Contains(again.body, theirs.verified) {
		t.Errorf("the own operation again: %s", again)
	}
}

// exported is every secret that a fort receives, in a token, a cookie, a body, a query, a
// code of a login, or its configuration.
func (f *fort) exported(extra ...string) []string {
	all := append([]string{hookSecret, hookSecret[6:], sessionKey, shopSecret, passwordInURL, "canary-in-the-hook", accesstest.Secret}, extra...)
	for _, secret := range f.secret {
		all = append(all, secret, secret[len(secret)-66:])
	}
	return all
}

// TestSecretsStayWhereTheyAre sends secrets to every API, and searches for them in the
// debug log, in the ledger's files, in the metrics and in all responses.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	provider := accesstest.New(t)
	f := newFort(t, func(text string) string {
		return strings.Replace(text, "  sessions:", fmt.Sprintf(`  oidc:
    issuer: %s
    client_id: %s
    client_secret_env: OIDC_SECRET
    redirect_url: http://localhost/login/callback
    rules: [{claim: groups, value: operators, role: operator}]
  sessions:`, provider.URL, accesstest.ClientID), 1)
	}, "OIDC_SECRET", accesstest.Secret)
	session := f.login(f.secret["reviewer@"+own])
	code := "canary-of-a-code"
	secrets := f.exported(session.Value, code, "canary-in-a-cookie", "canary-of-a-token")
	var answers strings.Builder
	examples, mine := examples(), f.populate(own)
	for _, r := range allRoutes() {
		e := examples[r.key()]
		for _, token := range []string{f.secret["operator@"+own], f.secret["agent@"+own], ""} {
			q := f.send(r, e, mine, token)
			if r.Pattern != "/logout" {
				q.Header.Add("Cookie", session.Name+"="+session.Value+"; other=canary-in-a-cookie")
			}
			q.Header.Set("X-Api-Key", "canary-of-a-token")
			q.URL.RawQuery += "&password=" + passwordInURL + "&code=" + code + "&state=" + code
			answers.WriteString(f.do(q).all())
			q = f.send(r, e, mine, "rbk_canary-of-a-token")
			q.Header.Set("X-HTTP-Method-Override", f.secret["operator@"+own])
			answers.WriteString(f.doWith(f.outsider(), q).all())
		}
	}
	f.refusedSecrets(&answers, code)
	eventually(t, "a notice", func() bool { return f.hook.got.Load() > 0 })
	if err := f.p.world.Set(orders.Fault{Kind: orders.Refused, Key: "bad"}); err != nil {
		t.Fatal(err)
	}
	answers.WriteString(f.as(engine.RoleAgent, own, "POST", "/v1/writes", intentOf(own, "create", "bad", "bad"), "Prefer", "wait=5").all())

	places := map[string]string{"the log": f.log.String(), "an answer": strings.ReplaceAll(answers.String(), session.Value, "")}
	files, err := filepath.Glob(f.p.ledger + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v %v; want the ledger and its log of writes", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		places[filepath.Base(name)] = string(text)
	}
	for place, text := range places {
		if len(text) < 1000 {
			t.Errorf("%s has %d bytes: nothing was looked through", place, len(text))
		}
		for _, secret := range secrets {
			if place == "an answer" && slices.Contains([]string{passwordInURL, code}, secret) {
				continue // a page knows its own address
			}
			if at := strings.Index(text, secret); at >= 0 && secret != "" {
				t.Errorf("%q is in %s: …%s…", secret, place, text[max(0, at-150):min(len(text), at+len(secret)+20)])
			}
		}
	}
}

// refusedSecrets sends secrets where they are not accepted.
func (f *fort) refusedSecrets(answers *strings.Builder, code string) {
	operator := f.secret["operator@"+own]
	for _, path := range []string{"/v1/writes?access_token=" + operator, "/" + operator, "/writes/" + operator, "/search?q=" + operator, "/login?next=/" + operator,
		"/login/callback?code=" + code + "&state=" + code, "/login/callback?error=" + code, "/v1/writes/" + operator + "/events", "/mcp?token=" + operator} {
		answers.WriteString(f.do(f.request("GET", path, "", operator)).all())
	}
	for _, body := range []string{`{"secret":"` + operator, `{"` + operator + `":1}`, `{"word":"` + operator + `","reason":"x"}`} {
		for _, path := range []string{"/v1/writes", "/v1/writes/x/decision", "/api/v1/workflows", "/mcp", "/v1/sagas"} {
			_ = f.do(f.request("POST", path, body, operator, mcpAccept...)) // who sent it may read it again
		}
	}
	for _, typed := range []string{operator[:40], "rbk_canary-of-a-token", operator + "x"} {
		q := f.request("POST", "/login", "token="+typed, "", "Content-Type", "application/x-www-form-urlencoded")
		answers.WriteString(f.doWith(f.outsider(), q).all())
	}
}
