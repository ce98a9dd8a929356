package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"

	"github.com/readback-go/readback/ledger"
)

// loaded waits until a page is there.
func loaded(p *person, path string) {
	p.t.Helper()
	p.until(path, "document.readyState === 'complete' && location.pathname === "+quoted(path))
}

// Without scripts an operator finds a write by its order number, has it assigned, goes to the next
// one, and stops and releases a destination whose health they have looked at.
func TestPagesWithoutScripts(t *testing.T) {
	s := theSite(t)
	const tenant = "plain"
	ada, helper := s.person(t, tenant, "operator", "ada"), s.agent(t, tenant)
	ids := refunds(helper, "pl", 2)
	ada.do("turn scripts off", emulation.SetScriptExecutionDisabled(true))

	ada.open("/inbox")
	ada.write("#find", "pl-01")
	ada.click(".find button")
	loaded(ada, "/search")
	if got := look[[]string](ada, "[...document.querySelectorAll('[data-row] .id')].map(e => e.textContent)"); len(got) != 1 || got[0] != string(ids[1]) {
		t.Errorf("of pl-01 is found %q, want %s", got, ids[1])
	}
	ada.click("[data-row] .go")
	loaded(ada, "/writes/"+string(ids[1]))
	ada.click("button[name=assign][value=take]")
	ada.until("its release", "document.readyState === 'complete' && document.querySelector('button[name=assign][value=release]')")

	ada.open("/inbox?assigned=me")
	ada.until("it alone", "document.readyState === 'complete' && document.querySelectorAll('[data-row]').length === 1")
	ada.open("/inbox")
	ada.click("[data-row] .go")
	loaded(ada, "/writes/"+string(ids[0]))
	ada.click(".crumbs .next")
	loaded(ada, "/writes/"+string(ids[1]))

	ada.open("/destinations/billing/health")
	ada.click("nav.choices a:not([aria-current])")
	ada.until("another span of time", "document.readyState === 'complete' && location.search !== '' && document.querySelector('.charts svg')")
	ada.click("#live-health a[href^='/destinations/stop']")
	loaded(ada, "/destinations/stop")
	ada.text("held\t2\t")
	ada.write("#tool", "refund")
	ada.click("form.search .act")
	ada.until("the stop of the tool", "document.readyState === 'complete' && location.search.includes('tool=refund')")
	ada.write("#stop-reason", reason)
	ada.click("form[action='/destinations/stop'][method=post] button")
	loaded(ada, "/destinations")
	ada.click("#stops ~ ul .ask summary")
	ada.write("form[action='/destinations/release'] textarea", reason)
	ada.click("form[action='/destinations/release'] button")
	ada.until("nothing stopped", "document.readyState === 'complete' && document.querySelector('#stops').parentElement.innerText.includes('Nothing is stopped')")
	ada.text("Stops that were released (1)")
}

// With keys alone a reviewer selects a write of the inbox and decides about it.
func TestTriageByKeys(t *testing.T) {
	s := theSite(t)
	const tenant = "triagekeys"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	ids := refunds(helper, "tk", 2)
	ada.open("/inbox")
	tabTo(ada, ".pick")
	ada.press(" ")
	chosen := look[string](ada, "document.activeElement.name")
	tabTo(ada, "#many-choice")
	ada.press("D")
	if got := look[string](ada, "document.activeElement.value"); got != "deny" {
		t.Fatalf("the keys choose %q, want deny", got)
	}
	tabTo(ada, "#many-reason")
	ada.press(reason)
	tabTo(ada, ".many button.act")
	ada.press(kb.Enter)
	ada.text("1 decided, 0 not")
	for _, id := range ids {
		want := ledger.StatusHeld
		if strings.HasSuffix(chosen, string(id)) {
			want = ledger.Denied
		}
		if out, err := helper.outcome(id); err != nil || out.Status != want {
			t.Errorf("%s is %q, %v; want %q", id, out.Status, err, want)
		}
	}
}
