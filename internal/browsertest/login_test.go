package browsertest

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Somebody logs in at the provider, decides, and logs out; a copy of the cookie is
// worth nothing from then on.
func TestLoginAtAProvider(t *testing.T) {
	s := theSite(t)
	const tenant, id = "oidc", "oi-1"
	helper := s.agent(t, tenant)
	answers := helper.wait(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}))
	ada := s.visitor(t, "ada")
	s.provider.Says(map[string]any{"sub": "7", "email": "ada@example.org", "email_verified": true, "groups": []string{"reviewers"}, "org": tenant})
	ada.open("/inbox")
	ada.until("the login", "document.readyState === 'complete' && location.pathname.startsWith('/login')")
	ada.click("a.button")
	ada.until("the inbox", "document.readyState === 'complete' && location.pathname === '/inbox'")
	ada.text("ada@example.org, reviewer of oidc")
	ada.text(id)
	ada.click("[data-row] .go")
	ada.until("the form", "document.querySelector('#choice-approve')")
	ways["with the mouse"].decide(ada, "approve", reason)
	decided(ada, "verified")
	ada.text("ada@example.org") // stands with the decision
	if out := helper.hears(answers); out.Status != ledger.Verified || s.destinations["billing"].Changes(id) != 1 {
		t.Errorf("the agent gets %q, and there are %d effects", out.Status, s.destinations["billing"].Changes(id))
	}

	cookies := stolen(ada)
	if status := s.visit(t, cookies); status != http.StatusOK {
		t.Fatalf("with a copy of the cookies: %d", status)
	}
	if seen := look[string](ada, "document.cookie"); seen != "" {
		t.Errorf("a script sees %q", seen)
	}
	ada.click(`form[action="/logout"] button`)
	ada.until("the end", "document.readyState === 'complete' && !document.querySelector('form[action=\"/logout\"]')")
	if status := s.visit(t, cookies); status == http.StatusOK {
		t.Error("after logging out the cookies are still good")
	}
	ada.open("/inbox")
	ada.until("the login", "document.readyState === 'complete' && location.pathname.startsWith('/login')")
}

// Whom no rule fits gets no session.
func TestLoginOfNobodyWeKnow(t *testing.T) {
	s := theSite(t)
	eve := s.visitor(t, "eve")
	s.provider.Says(map[string]any{"sub": "8", "email": "eve@example.org", "email_verified": true, "groups": []string{"guests"}, "org": "oidc"})
	eve.open("/login")
	eve.click("a.button")
	eve.until("the refusal", "document.readyState === 'complete' && document.querySelector('[role=alert]')")
	if cookies := stolen(eve); s.visit(t, cookies) == http.StatusOK {
		t.Error("there is a session")
	}
}

// stolen is a copy of somebody's cookies.
func stolen(p *person) []*network.Cookie {
	p.t.Helper()
	var cookies []*network.Cookie
	p.do("copy the cookies", cookiesOf(&cookies))
	return cookies
}

func cookiesOf(into *[]*network.Cookie) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) (err error) {
		*into, err = network.GetCookies().Do(ctx)
		return err
	})
}

// visit asks for the inbox with cookies.
func (s *site) visit(t *testing.T, cookies []*network.Cookie) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/inbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}
