package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// fixedCaller is a resolver that always returns the same caller.
type fixedCaller access.Identity

func (s fixedCaller) Resolve(*http.Request) (access.Identity, error) {
	switch s.Role {
	case "":
		return access.Identity{}, access.ErrUnknown
	case "too many":
		return access.Identity{}, &access.TooManyError{After: 7 * time.Second}
	case "unavailable":
		return access.Identity{}, access.ErrUnavailable
	case "broken":
		return access.Identity{}, errors.New("a secret of ours")
	}
	return access.Identity(s), nil
}

// Each route, called by each role: the table of acts decides, and a caller without
// permission is stopped before the gate is called.
func TestRoutesByRole(t *testing.T) {
	roles := []engine.Role{"", engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor, "made up"}
	for _, route := range Routes() {
		if route.Act == "" {
			t.Errorf("%s %s is open to unknown callers", route.Method, route.Pattern)
		}
		for _, end := range []string{"/approve", "/reject", "/pending", "/pending-approvals"} {
			if agent := (access.Identity{Tenant: "acme", Role: engine.RoleAgent}); strings.HasSuffix(route.Pattern, end) && agent.May(route.Act) == nil {
				t.Errorf("%s %s may be asked by agents", route.Method, route.Pattern)
			}
		}
		path := strings.NewReplacer("{workflow_id}", "wf_1", "{step_id}", "pay", "{n}", "0").Replace(route.Pattern)
		for _, role := range roles {
			who := fixedCaller{Tenant: "acme", Name: "ana", Role: role}
			s := &stand{}
			w := ask(New(s, &Options{Who: who}), route.Method, path, `{"comment":"I checked it well","reason":"I checked it well"}`)
			may := access.Identity(who).May(route.Act) == nil
			switch {
			case role == "" && (w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") || s.asked > 0):
				t.Errorf("%s %s without a caller: %d %v", route.Method, path, w.Code, w.Header())
			case role != "" && !may && (w.Code != 403 || s.asked > 0):
				t.Errorf("%s %s by %s: %d %s; want 403", route.Method, path, role, w.Code, w.Body)
			case may && (w.Code == 401 || w.Code == 403):
				t.Errorf("%s %s by %s: %d %s", route.Method, path, role, w.Code, w.Body)
			case may && s.asked > 0 && (s.lastCall.Caller.Tenant != "acme" || s.lastCall.Caller.Name != "ana" || s.lastCall.Caller.Role != role):
				t.Errorf("%s %s by %s: the gate got %+v", route.Method, path, role, s.lastCall.Caller)
			}
		}
	}
}

// A token works as the password of HTTP Basic, over a network, with the act of each route
// and for its own tenant. Without one the response offers Bearer alone.
func TestTokenAsPasswordAtTheGate(t *testing.T) {
	tokens := access.NewTokens(ledger.NewMemory(), nil)
	_, secret, err := tokens.Create(t.Context(), access.NewToken{Tenant: "acme", Name: "bot", Role: engine.RoleAgent, By: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	gateStub := &stand{}
	web := httptest.NewServer(access.Protect(New(gateStub, &Options{Who: tokens}), access.ProtectOptions{}))
	t.Cleanup(web.Close)
	for name, c := range map[string]struct {
		reason, user, password, path string
		status                       int
	}{
		"any user":          {"the token names the caller", "any", secret, "/api/v1/workflows/wf_1/fail", http.StatusOK},
		"no user":           {"likewise", "", secret, "/api/v1/workflows/wf_1/fail", http.StatusOK},
		"another password":  {"it is no token", "bot", "secret", "/api/v1/workflows/wf_1/fail", http.StatusUnauthorized},
		"a token as a user": {"it would be logged", secret, "", "/api/v1/workflows/wf_1/fail", http.StatusUnauthorized},
		"an unknown token":  {"it was not made here", "bot", secret[:len(secret)-1] + "_", "/api/v1/workflows/wf_1/fail", http.StatusUnauthorized},
		"not its act":       {"an agent approves nothing", "bot", secret, "/api/v1/workflows/wf_1/steps/pay/approve", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			gateStub.asked = 0
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+c.path, strings.NewReader(`{"reason":"it is over","comment":"I checked it well"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth(c.user, c.password)
			r.Header.Set("Content-Type", "application/json")
			w, err := (&http.Client{Timeout: time.Minute}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = w.Body.Close()
			if offered := w.Header["Www-Authenticate"]; w.StatusCode != c.status || (w.StatusCode == 401) != slices.Equal(offered, []string{`Bearer realm="readback"`}) {
				t.Errorf("%s: %d, which offers %q; want %d", c.reason, w.StatusCode, offered, c.status)
			}
			if lastCall := gateStub.lastCall.Caller; (gateStub.asked > 0) != (c.status < 300) || gateStub.asked > 0 && (lastCall.Tenant != "acme" || lastCall.Name != "bot" || lastCall.Role != engine.RoleAgent) {
				t.Errorf("%s: the gate was asked %d times by %+v", c.reason, gateStub.asked, lastCall)
			}
		})
	}
}

// A resolver's error about the caller is returned in the contract's form.
func TestUnresolved(t *testing.T) {
	tests := map[engine.Role]struct {
		reason, code, after string
		status              int
	}{
		"":            {"no caller", "UNAUTHORIZED", "", 401},
		"too many":    {"a caller guesses", "CONCURRENT_EXECUTION_LIMIT", "7", 429},
		"unavailable": {"the ledger holds the tokens", "UNAVAILABLE", "1", 503},
		"broken":      {"it is for the log", "INTERNAL_ERROR", "", 500},
	}
	for role, test := range tests {
		s := &stand{}
		w := ask(New(s, &Options{Who: fixedCaller{Role: role}}), "GET", "/api/v1/workflows/wf_1", "")
		if f := flatOf(t, w); w.Code != test.status || string(f.Code) != test.code || w.Header().Get("Retry-After") != test.after || s.asked > 0 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %v %s", test.reason, w.Code, w.Header(), w.Body)
		}
	}
}

// The tenant is that of the credentials, whatever a header says.
func TestTenantIsNotTheHeaders(t *testing.T) {
	s := &stand{}
	ask(New(s, &Options{Who: fixedCaller{Tenant: "acme", Name: "bot", Role: engine.RoleAgent}}), "GET", "/api/v1/workflows/wf_1", "", "X-Tenant-ID", "other", "X-User-ID", "ana")
	if got := s.lastCall.Caller; got.Tenant != "acme" || got.Name != "bot" {
		t.Errorf("the gate got %+v", got)
	}
}

// A caller without a name is trusted where an operator need not be named; no other role
// is.
func TestUnnamed(t *testing.T) {
	for role, want := range map[engine.Role]engine.Role{engine.RoleOperator: "", engine.RoleReviewer: engine.RoleReviewer} {
		s := &stand{}
		ask(New(s, &Options{Who: fixedCaller{Tenant: "acme", Role: role}}), "GET", "/api/v1/workflows/wf_1", "")
		if s.lastCall.Caller.Role != want {
			t.Errorf("%s without a name: the gate got the role %q", role, s.lastCall.Caller.Role)
		}
	}
}
