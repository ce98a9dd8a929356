package command

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
)

// tableCaller is a caller: with a token, or none, or an invalid one.
type tableCaller struct {
	name   string
	who    access.Identity // zero for an unknown caller
	token  string
	change func(*http.Request)
}

// everybody are all callers.
func (f *fort) everybody() []tableCaller {
	f.t.Helper()
	revoked := f.token(own, engine.RoleOperator, 0)
	if err := f.tokens.Revoke(f.t.Context(), own, strings.Split(revoked, "_")[1], "root"); err != nil {
		f.t.Fatal(err)
	}
	operator := f.secret["operator@"+own]
	all := []tableCaller{
		{name: "nobody"},
		{name: "an expired token", token: f.token(own, engine.RoleOperator, time.Hour)},
		{name: "a revoked token", token: revoked},
		{name: "no token at all", token: "operator"},
		{name: "a token with a letter changed", token: strings.ToUpper(operator[:8]) + operator[8:]},
		{name: "a token that nobody made", token: "rbk_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 59)},
		{name: "two headers", token: operator, change: func(r *http.Request) {
			r.Header.Add("Authorization", "Bearer "+operator)
		}},
		{name: "a token as the name of Basic", change: func(r *http.Request) { r.SetBasicAuth(operator, "operator") }},
		{name: "a name and a role in headers", change: func(r *http.Request) {
			for name, value := range map[string]string{"X-Role": "operator", "X-Tenant-ID": own, "X-User-ID": "root", "X-Forwarded-User": "root", "X-Forwarded-For": "127.0.0.1"} {
				r.Header.Set(name, value)
			}
		}},
		{name: "a cookie that nobody sealed", change: func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "readback-session", Value: "operator"}) }},
	}
	for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor} {
		all = append(all, tableCaller{name: string(role), token: f.secret[string(role)+"@"+own], who: access.Identity{Tenant: own, Role: role}})
		all = append(all, tableCaller{name: string(role) + " who says more", token: f.secret[string(role)+"@"+own], who: access.Identity{Tenant: own, Role: role},
			change: func(r *http.Request) {
				r.Header.Set("X-Role", "operator")
				r.Header.Set("X-Tenant-ID", foreign)
				r.Header.Set("X-User-ID", "root")
			}})
	}
	for _, role := range []engine.Role{engine.RoleReviewer, engine.RoleAuditor} {
		session := f.login(f.secret[string(role)+"@"+own])
		all = append(all, tableCaller{name: string(role) + " in a browser", who: access.Identity{Tenant: own, Role: role}, change: func(r *http.Request) {
			r.AddCookie(session)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}})
	}
	return all
}

// login is the session of a user who pastes a token into the form.
func (f *fort) login(token string) *http.Cookie {
	f.t.Helper()
	q := f.request("POST", "/login", "token="+token, "")
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp := f.do(q)
	cookies := (&http.Response{Header: resp.header}).Cookies()
	if resp.status != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode {
		f.t.Fatalf("the login: %s", resp)
	}
	return cookies[0]
}

// A browser that does not say which page sends a form is served by the token in the forms
// of the server's own pages, and refused without it by every API.
func TestACookieAloneChangesNothing(t *testing.T) {
	f := newFort(t, nil)
	session := f.login(f.secret["operator@"+own])
	send := func(method, path, kind, body string) answer {
		q := f.request(method, path, body, "", "Content-Type", kind)
		q.AddCookie(session)
		return f.do(q)
	}
	const form = "application/x-www-form-urlencoded"
	_, text, _ := strings.Cut(send("GET", "/inbox", form, "").body, `name="form_token" value="`)
	token, _, _ := strings.Cut(text, `"`)
	if len(token) < 40 {
		t.Fatalf("the page has the token %q", token)
	}
	if got := send("POST", "/theme", form, "to=dark&form_token="+token); got.status != http.StatusSeeOther {
		t.Errorf("a form of ours: %s", got)
	}
	for path, body := range map[string]string{
		"/theme": "to=dark", "/destinations/stop": "destination=orders&reason=nobody+asked+for+this", "/logout": "",
		"/v1/writes": "{}", "/v1/stops": "{}", "/mcp": "{}", "/api/v1/workflows": "{}",
	} {
		kind := "application/json"
		if !strings.HasPrefix(body, "{") {
			kind = form
		}
		if got := send("POST", path, kind, body); got.status != http.StatusForbidden && got.status != http.StatusUnauthorized {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := send("GET", "/inbox", form, ""); got.status != http.StatusOK {
		t.Errorf("it is logged out: %s", got)
	}
}

// ask sends the request of an asking as a caller.
func (f *fort) ask(s tableCaller, r routed, e asking, th things) answer {
	q := f.send(r, e, th, s.token)
	if s.change != nil {
		s.change(q)
	}
	client := f.client
	if s.who == (access.Identity{}) {
		client = f.outsider()
	}
	return f.doWith(client, q)
}

// refusal is the status with which a caller must be refused; 0 if it may.
func refusal(s tableCaller, r routed, e asking, theirs bool) int {
	if r.Act == "" {
		return 0
	}
	switch err := s.who.May(r.Act); {
	case errors.Is(err, access.ErrForbidden):
		return http.StatusForbidden
	case err != nil && r.area == "desk" && r.Method == http.MethodGet && e.accept == "":
		return http.StatusSeeOther // to the login page
	case err != nil:
		return http.StatusUnauthorized
	case theirs:
		return http.StatusNotFound
	}
	return 0
}

// leaks finds texts of the other tenant in a response.
func leaks(a answer, th things, asked string) string {
	text := a.all()
	for _, id := range append(th.names(), th.step) {
		if id != "" && strings.Contains(asked, id) { // who asks about it knows it
			text = strings.ReplaceAll(text, id, "ID")
		}
	}
	if at := strings.Index(text, canary(th.tenant, "")); at >= 0 {
		return text[max(0, at-200):min(len(text), at+100)]
	}
	for _, id := range th.names() {
		if id != "" && !strings.Contains(asked, id) && strings.Contains(text, id) {
			return id
		}
	}
	return ""
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z`)

// unnamed is a response without the names of the requested resources.
func unnamed(a answer, th things) (string, http.Header) {
	body, header := a.body, a.header.Clone()
	for _, id := range th.names() {
		if id != "" {
			body = strings.ReplaceAll(body, id, "ID")
			for name, values := range header {
				header[name] = []string{strings.ReplaceAll(strings.Join(values, ","), id, "ID")}
			}
		}
	}
	header.Del("Date")
	return times.ReplaceAllString(body, "NOW"), header
}

// TestEveryRouteAsEverybody calls every route as every role, with valid credentials and
// invalid ones, about resources of the own tenant and of another one. A caller without
// permission is refused as [access.Identity.May] says. Resources of other tenants are not
// found, like those that do not exist. After a refusal nothing has changed, in the ledger
// or at a destination; and no response holds a text of the other tenant.
func TestEveryRouteAsEverybody(t *testing.T) {
	f := newFort(t, nil)
	mine, theirs := f.populate(own), f.populate(foreign)
	everybody, askings := f.everybody(), examples()
	f.settle()
	before, refused, allowed := f.state(), 0, 0
	unchanged := func(r routed, s tableCaller) {
		t.Helper()
		if now := f.state(); now != before {
			t.Errorf("%s as %s was refused, and changed something: %s", r.key(), s.name, changed(before, now))
			before = now
		}
	}
	for _, r := range allRoutes() {
		e := askings[r.key()]
		for _, s := range everybody {
			for _, other := range []bool{false, true} {
				th := mine
				if other {
					th = theirs
				}
				want := refusal(s, r, e, other && e.named)
				if want == 0 || other && !e.named {
					continue
				}
				refused++
				a := f.ask(s, r, e, th)
				if a.status != want {
					t.Errorf("%s as %s (of others: %t): want %d, got %s", r.key(), s.name, other, want, a)
				}
				if want == http.StatusSeeOther && !strings.HasPrefix(a.header.Get("Location"), "/login?") {
					t.Errorf("%s as %s leads to %s", r.key(), s.name, a.header.Get("Location"))
				}
				if found := leaks(a, theirs, e.path(th)+e.body(th)); found != "" {
					t.Errorf("%s as %s tells of the other tenant: …%s…", r.key(), s.name, found)
				}
				if want == http.StatusNotFound {
					f.likeNone(s, r, e, a, theirs)
				}
				unchanged(r, s)
			}
		}
	}
	f.elsewhere(everybody, mine, unchanged)
	for _, r := range allRoutes() { // now what may be done, which changes things
		e := askings[r.key()]
		for _, s := range everybody {
			if refusal(s, r, e, false) != 0 {
				continue
			}
			allowed++
			a := f.ask(s, r, e, mine)
			switch {
			case r.Act == "" && !slices.Contains(e.open, a.status):
				t.Errorf("%s as %s: want %v, got %s", r.key(), s.name, e.open, a)
			case r.Act != "" && (a.status == http.StatusUnauthorized || a.status >= 500 || a.status == http.StatusForbidden || a.status == http.StatusNotFound && !gone(r)):
				t.Errorf("%s as %s, who may: got %s", r.key(), s.name, a)
			}
			if r.Pattern == "/metrics" { // the configuration's tenant operates the server
				a.body = strings.ReplaceAll(a.body, theirDestination, "DESK")
			}
			if found := leaks(a, theirs, e.path(mine)+e.body(mine)); found != "" {
				t.Errorf("%s as %s tells of the other tenant: …%s…", r.key(), s.name, found)
			}
		}
	}
	if refused < 500 || allowed < 150 {
		t.Errorf("%d refused and %d allowed requests were made; the table has shrunk", refused, allowed)
	}
	f.untouched(theirs)
}

// theirDestination is a destination of the other tenant.
const theirDestination = "canary-umbrella-desk"

// elsewhere calls every route that names a destination about one of another tenant. For
// every caller the response is that for a missing one, and nothing changes.
func (f *fort) elsewhere(everybody []tableCaller, mine things, unchanged func(routed, tableCaller)) {
	f.t.Helper()
	const theirs, none = theirDestination, "canary-umbrella-none"
	asked := 0
	if a := f.doWith(f.client, f.request("GET", "/metrics", "", f.secret["operator@"+foreign])); a.status != http.StatusForbidden {
		f.t.Errorf("the numbers of the whole server, as another tenant: %s", a)
	}
	for _, r := range allRoutes() {
		e := examples()[r.key()]
		if !strings.Contains(e.path(mine)+e.body(mine), "orders") {
			continue
		}
		at := func(destination string) asking {
			put := func(text func(things) string) func(things) string {
				return func(th things) string { return strings.ReplaceAll(text(th), "orders", destination) }
			}
			changed := e
			changed.path, changed.body = put(e.path), put(e.body)
			return changed
		}
		for _, s := range everybody {
			if refusal(s, r, e, false) != 0 {
				continue
			}
			asked++
			got, want := f.ask(s, r, at(theirs), mine), f.ask(s, r, at(none), mine)
			gotBody, wantBody := times.ReplaceAllString(strings.ReplaceAll(got.body, theirs, none), "NOW"), times.ReplaceAllString(want.body, "NOW")
			if d := cmp.Diff(wantBody, gotBody); d != "" || got.status != want.status {
				f.t.Errorf("%s as %s: another tenant's destination is told from none, %d and %d (-none +theirs):\n%s", r.key(), s.name, want.status, got.status, d)
			}
			inBatch := r.Pattern == "/v1/writes/batch" && strings.Contains(got.body, `"status":422,"problem"`)
			if r.Method == http.MethodPost && got.status < http.StatusBadRequest && got.status != http.StatusSeeOther && !inBatch {
				f.t.Errorf("%s as %s at another tenant's destination: %s", r.key(), s.name, got)
			}
			unchanged(r, s)
		}
	}
	if asked < 20 {
		f.t.Errorf("%d requests named a destination; the table has shrunk", asked)
	}
}

// untouched fails when something was decided about a tenant's writes.
func (f *fort) untouched(th things) {
	f.t.Helper()
	for id, want := range map[string]string{th.held: "held", th.review: "review"} {
		if r := f.record(th.tenant, id); string(r.State) != want {
			f.t.Errorf("of the other tenant %s is %s, want %s", id, r.State, want)
		}
	}
}

// gone reports whether the resource of a route may be over after other callers have ended
// it.
func gone(r routed) bool {
	return strings.Contains(r.Pattern, "/steps/") || strings.HasPrefix(r.Pattern, "/mcp")
}

// likeNone fails if a response about a resource of another tenant differs from one about
// a missing resource.
func (f *fort) likeNone(s tableCaller, r routed, e asking, a answer, theirs things) {
	f.t.Helper()
	none := theirs.mangled()
	b := f.ask(s, r, e, none)
	gotBody, gotHeader := unnamed(a, theirs)
	wantBody, wantHeader := unnamed(b, none)
	if d := cmp.Diff(wantBody, gotBody); d != "" || a.status != b.status {
		f.t.Errorf("%s as %s: others' things are told from none, %d and %d (-none +others'):\n%s", r.key(), s.name, b.status, a.status, d)
	}
	if d := cmp.Diff(wantHeader, gotHeader); d != "" {
		f.t.Errorf("%s as %s: others' things are told from none by headers:\n%s", r.key(), s.name, d)
	}
}
