package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// axe is the text of axe-core, of the version that testdata/package-lock.json
// names and with the digest that stands there. It is fetched once.
var axe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "browsertest-npm")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's own folder for such
	if err := need.Install("testdata", dir); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
})

// found is what axe-core says of a page.
type found struct {
	Passes     int      `json:"passes"`
	Violations []string `json:"violations"`
	Rules      []string `json:"rules"`
}

// judge has axe-core look at the page as it is. The rules are those of WCAG 2.0 to
// 2.2, A and AA, and axe's own best practices, all of them.
func judge(p *person, script string) found {
	p.t.Helper()
	var got found
	p.do("run axe-core", chromedp.ActionFunc(func(ctx context.Context) error {
		var there bool
		if err := chromedp.Evaluate("'axe' in window", &there).Do(ctx); err != nil || there {
			return err
		}
		return chromedp.Evaluate(script+"; true", nil).Do(ctx)
	}), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => ({
		passes: r.passes.length, rules: r.passes.map(p => p.id),
		violations: r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.failureSummary + " " + n.html))}))`, &got, awaited))
	return got
}

// sights are the ways in which each page is looked at. Phones have 390 pixels and more; what fits
// into 360 fits there.
var sights = []struct {
	name   string
	width  int64
	scheme string
	rtl    bool // the page is laid out from right to left
}{{"desktop, light", 1280, "light", false}, {"desktop, dark", 1280, "dark", false}, {"phone, dark", 360, "dark", false}, {"phone, light", 390, "light", false}, {"phone, right to left", 360, "light", true}}

// picturesVar names the folder into which the pages are written as they are seen. Default:
// they are not.
const picturesVar = "READBACK_BROWSERTEST_PICTURES"

// keep writes a picture of the whole page. (chromedp's own of a whole page is shifted where the page
// is laid out from right to left.)
func (p *person) keep(page, sight string, width int64) {
	p.t.Helper()
	dir := os.Getenv(picturesVar)
	if dir == "" {
		return
	}
	var shot []byte
	p.do("make the window as high as the page", emulation.SetScrollbarsHidden(true))
	p.do("take the picture", chromedp.EmulateViewport(width, max(800, look[int64](p, "document.documentElement.scrollHeight"))), chromedp.CaptureScreenshot(&shot),
		chromedp.EmulateViewport(width, 800), emulation.SetScrollbarsHidden(false))
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(page+" "+sight), "-")
	if err := os.WriteFile(filepath.Join(dir, strings.Trim(name, "-")+".png"), shot, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// see has the page looked at in one of the ways.
func (p *person) see(width int64, scheme string) {
	p.t.Helper()
	p.do("look in another way", chromedp.EmulateViewport(width, 800),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// pages makes one of everything that a page can show, and returns where.
func pages(t *testing.T, s *site, tenant string) []string {
	t.Helper()
	helper := s.agent(t, tenant)
	s.destinations["orders"].fault(t, orders.Fault{Kind: orders.DroppedField, Key: tenant + "-1", Field: "note"})
	review := helper.settle(order("orders", "open_order", tenant+"-1", intent.Fields{"amount_cents": 1900, "note": "call first", "long": strings.Repeat("word ", 80)}), ledger.StatusReview)
	held := helper.settle(order("billing", "refund", tenant+"-2", intent.Fields{"amount_cents": 4900}), ledger.StatusHeld)
	verified := helper.settle(order("crm", "open_ticket", tenant+"-3", intent.Fields{"amount_cents": 1, "subject": strings.Repeat("unbroken", 30)}), ledger.Verified)
	var made struct {
		ID string `json:"workflow_id"`
	}
	helper.must(http.MethodPost, "/api/v1/workflows", map[string]any{"workflow_name": "payments", "source": "external"}, &made)
	helper.must(http.MethodPost, "/api/v1/workflows/"+made.ID+"/steps/s1/gate", map[string]any{"step_name": "pay", "step_type": "tool_call",
		"step_input": map[string]any{"iban": "DE02"}, "tool_context": map[string]any{"tool_name": "wire_transfer"}}, nil)
	refund := order("billing", "refund", tenant+"-4", intent.Fields{"amount_cents": 1})
	refund.Workflow, refund.Step, refund.Tenant = "", "", ""
	helper.must(http.MethodPost, "/v1/sagas", map[string]any{"id": "trip", "steps": []any{map[string]any{"name": "refund", "intent": trimmed(refund)}}}, nil)
	return []string{"/inbox", "/writes/" + string(review.ID), "/writes/" + string(held.ID), "/writes/" + string(verified.ID), "/workflows/" + made.ID + "/steps/s1",
		"/destinations", "/destinations/orders/health", "/destinations/stop?destination=orders", "/activity", "/search", "/search?q=wf-" + tenant + "-1", "/search?since=x", "/sagas", "/sagas/trip", "/help", "/writes/none", "/login",
		"/destinations/none/health", "/destinations/stop?destination=none", "/destinations/stop", "/none"}
}

// Nobody is kept out of a page by how it is made: axe-core has nothing to say of
// any of them, light or dark, on a desk or on a phone, and none is wider than a
// phone.
func TestAccessible(t *testing.T) {
	s := theSite(t)
	script, err := axe()
	need.Have(t, err)
	const tenant = "axe"
	ada := s.person(t, tenant, "operator", "ada")
	rules := map[string]bool{}
	for _, page := range states(t, s, ada, tenant) {
		ada.visit(page)
		look[any](ada, "document.querySelectorAll('details').forEach(d => d.open = true), null")
		for _, sight := range sights {
			ada.see(sight.width, sight.scheme)
			look[any](ada, fmt.Sprintf("document.documentElement.dir = %q, null", map[bool]string{true: "rtl", false: "ltr"}[sight.rtl]))
			ada.keep(page.String(), sight.name, sight.width)
			got := judge(ada, script)
			if len(got.Violations) > 0 {
				t.Errorf("%s, %s:\n%s", page, sight.name, strings.Join(got.Violations, "\n"))
			}
			if got.Passes < 10 {
				t.Errorf("%s, %s: axe-core has looked at %d things only", page, sight.name, got.Passes)
			}
			for _, rule := range got.Rules {
				rules[rule] = true
			}
			if wide := look[int](ada, "document.documentElement.scrollWidth"); wide > int(sight.width) {
				t.Errorf("%s, %s: it is %d wide", page, sight.name, wide)
			}
		}
	}
	for _, rule := range []string{"color-contrast", "label", "button-name", "landmark-one-main", "svg-img-alt"} {
		if !rules[rule] {
			t.Errorf("the rule %q found nothing to look at", rule)
		}
	}
	// It sees what is wrong: an alarm that cannot ring proves nothing.
	ada.open("/help")
	look[any](ada, `document.querySelector("main").insertAdjacentHTML("beforeend", "<input><img src='/static/none'>"), null`)
	if got := judge(ada, script); len(got.Violations) < 2 {
		t.Errorf("a field without a label and a picture without words are found as %q", got.Violations)
	}
}

// With Tab alone everything can be reached that can be clicked, in the order in
// which it stands, and what has the focus is to be seen.
func TestKeysReachEverything(t *testing.T) {
	s := theSite(t)
	const tenant = "keys"
	ada := s.person(t, tenant, "operator", "ada")
	ada.unfollowing()
	for _, page := range states(t, s, ada, tenant) {
		ada.visit(page)
		want := look[int](ada, `(() => {
			const shown = e => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.tabIndex >= 0;
			window.goals = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter(shown);
			window.met = new Set(); window.dim = [];
			const radios = new Set(); // one of each group has the focus
			window.goals = window.goals.filter(e => e.type !== "radio" || !radios.has(e.name) && radios.add(e.name));
			document.addEventListener("focusin", e => {
				const s = getComputedStyle(e.target);
				window.met.add(e.target.type === "radio" ? window.goals.find(g => g.name === e.target.name) : e.target);
				if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1) window.dim.push(e.target.outerHTML.slice(0, 120));
			});
			return window.goals.length;
		})()`)
		// A field for a time takes several.
		keys := make([]chromedp.Action, want+6+8*look[int](ada, "document.querySelectorAll('[type=datetime-local]').length"))
		for i := range keys {
			keys[i] = chromedp.KeyEvent(kb.Tab)
		}
		ada.do("go through "+page.String(), keys...)
		if missed := look[[]string](ada, "window.goals.filter(g => !window.met.has(g)).map(g => g.outerHTML.slice(0, 120))"); len(missed) > 0 {
			t.Errorf("%s: Tab does not reach %q", page, missed)
		}
		if dim := look[[]string](ada, "window.dim"); len(dim) > 0 {
			t.Errorf("%s: the focus is not to be seen on %q", page, dim)
		}
		if want == 0 {
			t.Errorf("%s: there is nothing to reach", page)
		}
	}
}
