package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/reviewui"
	"github.com/readback-go/readback/ledger"
)

// An agent's token opens no page: not by the form of the login, and not as the
// credentials of a request, by any route of the review UI.
func TestAgentSeesNoPage(t *testing.T) {
	s := theSite(t)
	const tenant, id = "agents", "ag-1"
	helper := s.agent(t, tenant)
	out := helper.settle(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}), ledger.StatusHeld)

	eve := s.visitor(t, "eve")
	eve.open("/login")
	eve.do("log in", chromedp.SendKeys("#token", helper.token, chromedp.ByQuery), chromedp.Submit("#token", chromedp.ByQuery))
	eve.until("the refusal", "document.readyState === 'complete' && document.querySelector('[role=alert]')")
	eve.open("/inbox")
	eve.until("the login", "document.readyState === 'complete' && location.pathname.startsWith('/login')")

	for _, r := range reviewui.Routes() {
		if r.Act == "" {
			continue
		}
		path := strings.NewReplacer("{$}", "", "{id}", string(out.ID), "{workflow}", "wf", "{step}", "s").Replace(r.Pattern)
		form := "choice=approve&reason=because+I+say+so&digest=x&seq=1"
		status, answer, err := helper.ask(t.Context(), r.Method, path, form, "Content-Type", "application/x-www-form-urlencoded")
		if err != nil || status != http.StatusForbidden || strings.Contains(string(answer), id) {
			t.Errorf("%s %s: %d, %v", r.Method, path, status, err)
		}
	}
	if now, err := helper.outcome(out.ID); err != nil || now.Status != ledger.StatusHeld || s.destinations["billing"].Changes(id) != 0 {
		t.Errorf("the write is %q, with %d effects; %v", now.Status, s.destinations["billing"].Changes(id), err)
	}
}

// attack is a page of somebody else, which has a browser send a form that decides,
// in every way that a page can.
func attack(target string, out engine.Outcome, fields map[string]string) string {
	var hidden strings.Builder
	for name, value := range fields {
		fmt.Fprintf(&hidden, `<input type="hidden" name=%q value=%q>`, name, value)
	}
	action := target + "/writes/" + string(out.ID) + "/decision"
	return fmt.Sprintf(`<!doctype html><title>a game</title><h1>a game</h1>
<form id="plain" method="post" action=%[1]q>%[2]s</form>
<form id="typed" method="post" action=%[1]q enctype="text/plain">%[2]s</form>
<form id="parts" method="post" action=%[1]q enctype="multipart/form-data">%[2]s</form>
<form id="asked" method="get" action=%[1]q>%[2]s</form>
<iframe id="framed" src=%[3]q></iframe>`, action, hidden.String(), target+"/writes/"+string(out.ID))
}

// A page of another origin cannot have the browser of somebody who is logged in
// decide: not from another port of the same host, whose cookies are sent, and not
// from another host. It cannot show our page in a frame either.
func TestOtherOriginsDecideNothing(t *testing.T) {
	s := theSite(t)
	const tenant, id = "origins", "or-1"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	out := helper.settle(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}), ledger.StatusHeld)
	ada.open("/writes/" + string(out.ID))
	fields := map[string]string{"choice": "approve", "reason": reason}
	for _, name := range []string{"digest", "seq"} {
		fields[name] = look[string](ada, "document.querySelector('#live-decide [name="+name+"]').value")
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, attack(s.url, out, fields)) // who is gone needs no page
	}))
	t.Cleanup(evil.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(evil.URL, "http://"), ":")
	decision := s.url + "/writes/" + string(out.ID) + "/decision"
	for _, origin := range []string{evil.URL, "http://localhost:" + port} {
		for _, form := range []string{"plain", "typed", "parts", "asked"} {
			ada.open(origin)
			before := len(ada.asked(decision))
			ada.until("the form "+form, "document.getElementById("+quoted(form)+")")
			look[any](ada, "document.getElementById("+quoted(form)+").submit(), null")
			ada.waitFor("the answer to the form "+form, func() bool { return len(ada.asked(decision)) > before })
			// The answer replaces the page a moment later: the next page must not be replaced by it.
			ada.until("the page of the answer to the form "+form, "location.href.startsWith("+quoted(decision)+") && document.readyState === 'complete'")
		}
		ada.open(origin)
		tryScript(ada, decision, fields)
		text := look[string](ada, "(() => { try { return document.getElementById('framed').contentDocument?.body?.innerText || '' } catch (e) { return 'closed' } })()")
		if strings.Contains(text, id) {
			t.Errorf("%s: the frame shows %q", origin, text)
		}
		ada.waitFor("the refusal to be framed", func() bool { return slices.Contains(ada.alarms().refused, "frame-ancestors") })
	}
	for _, status := range ada.asked(decision) {
		if status/100 != 4 {
			t.Errorf("a forged form is answered with %d", status)
		}
	}
	ada.forgive(strings.TrimPrefix(evil.URL, "http://"), "localhost:"+port)
	if now, err := helper.outcome(out.ID); err != nil || now.Status != ledger.StatusHeld || s.destinations["billing"].Changes(id) != 0 {
		t.Errorf("the write is %q, with %d effects; %v", now.Status, s.destinations["billing"].Changes(id), err)
	}
	// The very same form from our own page is taken: what kept the others out is
	// where they came from.
	ada.open("/writes/" + string(out.ID))
	ways["with the mouse"].decide(ada, "approve", reason)
	decided(ada, "verified")
}

// tryScript has a page's script send the same, with credentials.
func tryScript(p *person, address string, fields map[string]string) {
	p.t.Helper()
	p.do("send by a script", chromedp.Evaluate(fmt.Sprintf(`Promise.allSettled(["no-cors", "cors"].map(mode =>
		fetch(%s, {method: "POST", mode, credentials: "include", body: new URLSearchParams(%s)}))).then(() => true)`, quoted(address), quoted(fields)), nil, awaited))
}
