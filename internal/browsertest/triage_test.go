package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// refunds are writes that wait for approval.
func refunds(a *agent, prefix string, n int) (ids []ledger.ID) {
	a.t.Helper()
	for i := range n {
		ids = append(ids, a.settle(order("billing", "refund", fmt.Sprintf("%s-%02d", prefix, i), intent.Fields{"amount_cents": 100 + i}), ledger.StatusHeld).ID)
	}
	return ids
}

// Without scripts a reviewer decides about a page of writes at once, finds the rest on the next page,
// and gets from one write to the next.
func TestTriage(t *testing.T) {
	s := theSite(t)
	const tenant = "triage"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	ids := refunds(helper, "tr", 53)
	ada.do("turn scripts off", emulation.SetScriptExecutionDisabled(true))
	ada.open("/inbox?tool=refund")
	rows := "document.querySelectorAll('[data-row]').length"
	if n := look[int](ada, rows); n != 50 {
		t.Errorf("the first page has %d rows, want 50", n)
	}
	ada.text("53 held")
	ada.click(".picks a")
	ada.until("the page with all selected", "document.readyState === 'complete' && document.querySelectorAll('.pick:checked').length === 50")
	look[any](ada, "document.querySelector('#many-choice').value = 'deny', null")
	ada.write("#many-reason", reason)
	ada.click(".many button.act")
	ada.text("50 decided, 0 not")
	ada.click(".pages .next")
	ada.until("the rest", "document.readyState === 'complete' && "+rows+" === 3")
	ada.click("[data-row] .go")
	ada.until("the form", "document.querySelector('#choice-deny')")
	ways["without scripts"].decide(ada, "deny", reason)
	ada.text("You denied it.")
	ada.until("the next write", "document.readyState === 'complete' && location.pathname === '/writes/"+string(ids[51])+"'")
	for _, id := range ids[:51] {
		if out, err := helper.outcome(id); err != nil || out.Status != ledger.Denied {
			t.Errorf("%s is %q, %v", id, out.Status, err)
		}
	}
	if out, err := helper.outcome(ids[52]); err != nil || out.Status != ledger.StatusHeld {
		t.Errorf("the last one is %q, %v", out.Status, err)
	}
}

// Times are those of the reviewer, with UTC on hover, and UTC without scripts.
func TestTimesAreLocal(t *testing.T) {
	s := theSite(t)
	ada := s.person(t, "clock", "reviewer", "ada")
	ada.do("move to Kathmandu", emulation.SetTimezoneOverride("Asia/Kathmandu"))
	ada.open("/help")
	const shown = "(() => { const t = document.querySelector('footer time'); return [t.textContent, t.title, t.getAttribute('datetime')]; })()"
	ada.until("the local time", "document.querySelector('footer time').title !== ''")
	got := look[[]string](ada, shown)
	if want := look[string](ada, "(() => { const d = new Date(new Date("+quoted(got[2])+").getTime() + 345 * 60000).toISOString(); return d.slice(0, 10) + ' ' + d.slice(11, 19); })()"); got[0][:19] != want || got[1][:10]+"T"+got[1][11:19]+"Z" != got[2] {
		t.Errorf("the foot shows %q with %q on hover, of %s; want %s and the time in UTC", got[0], got[1], got[2], want)
	}
	ada.do("turn scripts off", emulation.SetScriptExecutionDisabled(true))
	ada.open("/help")
	if got := look[[]string](ada, shown); got[1] != "" || got[0][len(got[0])-1] != 'Z' {
		t.Errorf("without scripts the foot shows %q with %q on hover, want UTC", got[0], got[1])
	}
}

// What a reviewer has selected stays while the list changes, and the page says that it has.
func TestSelectionStays(t *testing.T) {
	s := theSite(t)
	const tenant = "select"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	refunds(helper, "se", 2)
	ada.until("both", "document.querySelectorAll('.pick').length === 2")
	ada.click("#pick-0")
	refunds(helper, "sf", 1)
	ada.text("3 held")
	ada.until("the word that the list has changed", "!document.querySelector('#live-writes [data-stale]').hidden")
	if !look[bool](ada, "document.querySelector('#pick-0').checked && document.querySelectorAll('.pick').length === 2") {
		t.Error("the selection is lost")
	}
}
