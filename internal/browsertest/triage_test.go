package browsertest

import (
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

var waiting = flag.Int("waiting", 2000, "how many writes wait in TestTriageOfMany")

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

// The counts are of every write that waits, and the first page leads to the next, however many wait.
// The log has how long the server took.
func TestTriageOfMany(t *testing.T) {
	s := theSite(t)
	const tenant = "many"
	l, err := sqlite.Open(t.Context(), filepath.Join(s.dir, "readback.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const at = 32
	for worker := range at {
		all.Go(func() {
			for i := worker; i < *waiting; i += at {
				w := order("billing", fmt.Sprint("tool ", i%20), fmt.Sprint("many-", i), intent.Fields{"amount_cents": i})
				w.Tenant = tenant
				rec, err := ledger.NewRecord(w)
				if err == nil {
					_, _, err = l.Reserve(t.Context(), ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvHeld, Reason: "money is paid out"}}, Owner: "many", LeaseFor: time.Second})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil || t.Failed() {
		t.Fatal(err)
	}
	ada := s.person(t, tenant, "reviewer", "ada")
	for _, path := range []string{"/inbox", "/inbox?tool=tool+7", "/inbox?reason=approval"} {
		ada.open(path)
		ada.text(fmt.Sprint(*waiting, " held"))
		if n := look[int](ada, "document.querySelectorAll('[data-row]').length"); n != 50 {
			t.Errorf("%s has %d rows, want 50", path, n)
		}
		t.Logf("%s with %d writes: %.0f ms", path, *waiting, look[float64](ada, "(() => { const n = performance.getEntriesByType('navigation')[0]; return n.responseEnd - n.requestStart; })()"))
	}
	first := look[string](ada, "document.querySelector('.go').textContent")
	ada.click(".pages .next")
	ada.until("the next page", "document.readyState === 'complete' && document.querySelector('.pages [rel=first]') && document.querySelector('.go').textContent !== "+quoted(first))
}
