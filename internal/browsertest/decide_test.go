package browsertest

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// reason is long enough to be taken.
const reason = "I have looked at the customer's file"

// decided waits until the page shows that the write has been decided about.
func decided(p *person, word string) {
	p.t.Helper()
	p.until("the write "+word, "document.readyState === 'complete' && document.querySelector('#live-head .badge')?.innerText.includes("+quoted(word)+")")
}

// Ways to decide about the write whose page is open.
var ways = map[string]struct {
	reason  string
	prepare func(p *person)
	decide  func(p *person, choice, reason string)
}{
	"with the mouse": {
		reason: "most people do",
		decide: func(p *person, choice, why string) {
			p.click("#choice-" + choice)
			p.write("#decide-reason", why)
			p.click("#live-decide button.act")
		},
	},
	"with keys alone": {
		reason: "some people have no mouse",
		decide: decideByKeys,
	},
	"without scripts": {
		reason:  "the essential must work without",
		prepare: func(p *person) { p.do("turn scripts off", emulation.SetScriptExecutionDisabled(true)) },
		decide: func(p *person, choice, why string) {
			p.click(`label[for="choice-` + choice + `"]`)
			p.write("#decide-reason", why)
			p.click("#live-decide button.act")
		},
	},
}

// tabTo presses Tab until an element has the focus, and checks that every focus on
// the way is to be seen.
func tabTo(p *person, selector string) {
	p.t.Helper()
	for range 80 {
		p.press(kb.Tab)
		if look[bool](p, "document.activeElement.matches("+quoted(selector)+")") {
			if style := look[string](p, "getComputedStyle(document.activeElement).outlineStyle"); style == "none" {
				p.t.Errorf("the focus on %s is not to be seen", selector)
			}
			return
		}
	}
	p.t.Fatalf("%s: Tab never reaches %s", p.name, selector)
}

// decideByKeys goes through the form by Tab, chooses by the arrows, and sends it
// with the key of its button.
func decideByKeys(p *person, choice, why string) {
	p.t.Helper()
	tabTo(p, "#live-decide input[type=radio]")
	p.press(" ")
	for range 10 {
		if look[bool](p, "document.querySelector('#choice-"+choice+"').checked") {
			break
		}
		p.press(kb.ArrowDown)
	}
	tabTo(p, "#decide-reason")
	p.press(why)
	tabTo(p, "#live-decide button.act")
	p.press(kb.Enter)
}

// A person decides, in whatever way; the agent that waits over HTTP gets the
// outcome that follows, and the destination was asked once, or not at all.
func TestDecisionReachesTheWaitingAgent(t *testing.T) {
	s := theSite(t)
	const tenant = "decide"
	helper := s.agent(t, tenant)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			ada := s.person(t, tenant, "reviewer", "ada "+name)
			for choice, want := range map[string]struct {
				status  ledger.Status
				effects int
			}{"approve": {ledger.Verified, 1}, "deny": {ledger.Denied, 0}} {
				id := "dc-" + strings.ReplaceAll(name, " ", "-") + "-" + choice
				answers := helper.wait(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}))
				ada.open("/inbox")
				ada.text(id)
				if way.prepare != nil {
					way.prepare(ada)
				}
				ada.click("[data-row] .go")
				ada.until("the write's page", "location.pathname.startsWith('/writes/') && document.readyState === 'complete'")
				ada.text(id)
				if n := s.destinations["billing"].Changes(id); n != 0 {
					t.Errorf("%d effects before anybody decided", n)
				}
				way.decide(ada, choice, reason)
				decided(ada, string(want.status))
				ada.text(reason)
				if out := helper.hears(answers); out.Status != want.status {
					t.Errorf("%s: %s: the agent gets %q (%s), want %q", way.reason, choice, out.Status, out.Text, want.status)
				}
				if n := s.destinations["billing"].Changes(id); n != want.effects {
					t.Errorf("%s: %s: %d effects, want %d", way.reason, choice, n, want.effects)
				}
				if way.prepare != nil {
					ada.do("turn scripts on", emulation.SetScriptExecutionDisabled(false))
				}
			}
		})
	}
}

// The page refuses a decision without a reason, or with one that says nothing, and
// nothing happens: by the browser's own check, and by the server's where a browser
// does not look.
func TestDecisionNeedsAReason(t *testing.T) {
	s := theSite(t)
	const tenant, id = "reason", "rs-1"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	out := helper.settle(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}), ledger.StatusHeld)
	ada.open("/writes/" + string(out.ID))
	ada.click("#choice-approve")
	ada.click("#live-decide button.act")
	ada.until("the field that is asked for", "document.activeElement.id === 'decide-reason'")
	for _, why := range []string{"", "ok", "            "} {
		look[any](ada, "document.querySelector('#live-decide form').noValidate = true, document.querySelector('#decide-reason').value = "+quoted(why)+", document.querySelector('#decide-reason').removeAttribute('aria-invalid'), null")
		ada.click("#live-decide button.act")
		ada.until("the refusal", "document.readyState === 'complete' && document.querySelector('#decide-reason')?.getAttribute('aria-invalid') === 'true'")
		if !look[bool](ada, "document.querySelector('#choice-approve').checked") {
			t.Errorf("with the reason %q the choice is forgotten", why)
		}
	}
	if now, err := helper.outcome(out.ID); err != nil || now.Status != ledger.StatusHeld || s.destinations["billing"].Changes(id) != 0 {
		t.Errorf("the write is %q, with %d effects; %v", now.Status, s.destinations["billing"].Changes(id), err)
	}
}

// Password managers and other extensions change fields of a page. That is no news about the
// write: the form stays as it is, and says nothing.
func TestExtensionsChangeFields(t *testing.T) {
	s := theSite(t)
	const tenant, id = "extension", "ex-1"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	out := helper.settle(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}), ledger.StatusHeld)
	ada.do("install an extension", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`document.addEventListener("DOMContentLoaded", () => {
			document.querySelector("#decide-reason").setAttribute("data-filled-by", "an extension");
			document.querySelector("#choice-deny").checked = true;
		})`).Do(ctx)
		return err
	}))
	path := "/writes/" + string(out.ID)
	ada.open(path)
	ada.waitFor("the page to be asked for again", func() bool { return len(ada.asked(s.url+path)) > 1 })
	ada.do("read it once more, after which that answer was handled", chromedp.Evaluate("fetch(location.href).then((r) => r.text())", nil, awaited))
	if !look[bool](ada, "document.querySelector('[data-stale]').hidden && document.querySelector('#choice-deny').checked") {
		t.Error("the page says that the write has changed, or has lost a choice")
	}
}

// Of a write in review a person says that it is right as it is: that is the
// outcome, and nothing more is sent.
func TestReviewIsDecided(t *testing.T) {
	s := theSite(t)
	const tenant, id = "review", "rv-1"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	s.destinations["orders"].fault(t, orders.Fault{Kind: orders.DroppedField, Key: id, Field: "note"})
	answers := helper.wait(order("orders", "open_order", id, intent.Fields{"amount_cents": 1900, "note": "call first"}))
	ada.text(id)
	ada.click("[data-row] .go")
	ada.until("the form", "document.querySelector('#choice-accept')")
	ways["with the mouse"].decide(ada, "accept", reason)
	decided(ada, "accepted")
	if out := helper.hears(answers); out.Status != ledger.Accepted || s.destinations["orders"].Changes(id) != 1 {
		t.Errorf("the agent gets %q, and there are %d effects", out.Status, s.destinations["orders"].Changes(id))
	}
}

// Of two people with the same page open one decides; the other is told, before
// they have decided by the page, and after by the answer. There is one decision.
func TestTwoReviewersAtOnce(t *testing.T) {
	s := theSite(t)
	const tenant, id = "two", "tw-1"
	ada, ben, helper := s.person(t, tenant, "reviewer", "ada"), s.person(t, tenant, "reviewer", "ben"), s.agent(t, tenant)
	answers := helper.wait(order("billing", "refund", id, intent.Fields{"amount_cents": 4900}))
	for _, p := range []*person{ada, ben} {
		p.text(id)
		p.click("[data-row] .go")
		p.until("the form", "document.querySelector('#choice-deny')")
	}
	ben.click("#choice-deny")
	ben.write("#decide-reason", "this customer was refunded in May")

	ways["with the mouse"].decide(ada, "approve", reason)
	decided(ada, "verified")
	ben.until("the word that something has happened", "document.querySelector('[data-stale]') && !document.querySelector('[data-stale]').hidden")
	ben.click("#live-decide button.act")
	ben.until("the refusal", "document.readyState === 'complete' && document.querySelector('#live-decide [role=alert]')")
	decided(ben, "verified")
	if typed := look[string](ben, "document.querySelector('#typed').value"); typed != "this customer was refunded in May" {
		t.Errorf("what was typed is given back as %q", typed)
	}
	if out := helper.hears(answers); out.Status != ledger.Verified || s.destinations["billing"].Changes(id) != 1 {
		t.Errorf("the agent gets %q, and there are %d effects", out.Status, s.destinations["billing"].Changes(id))
	}
}
