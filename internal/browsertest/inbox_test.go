package browsertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// titles are what stands in the lists of a page, in their order.
const titles = "[...document.querySelectorAll('[data-row]')].map(r => r.querySelector('.badge').textContent.trim() + ' | ' + r.querySelector('.go').textContent)"

// The inbox fills while somebody looks at it, and empties, without being asked
// for again by the person: a write that a rule holds, and one of which the
// destination dropped a field. What may be wrong already stands before what may
// still go right.
func TestInboxFillsWhileItIsOpen(t *testing.T) {
	s := theSite(t)
	const tenant = "inbox"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	ada.text("Nothing waits for a reviewer")
	look[any](ada, "window.stillHere = true, null") // gone when the page is loaded anew

	s.destinations["orders"].fault(t, orders.Fault{Kind: orders.DroppedField, Key: "in-drop", Field: "note"})
	review := helper.settle(order("orders", "open_order", "in-drop", intent.Fields{"amount_cents": 1900, "note": "call first"}), ledger.StatusReview)
	ada.until("the write in review", "document.querySelectorAll('[data-row]').length === 1")
	ada.text("mismatched")

	refund := order("billing", "refund", "in-held", intent.Fields{"amount_cents": 4900})
	refund.Risk = intent.RiskApprove
	held := helper.settle(refund, ledger.StatusHeld)
	ada.until("the held write", "document.querySelectorAll('[data-row]').length === 2")
	ada.text("money is paid out")

	other := order("billing", "refund", "in-held-2", intent.Fields{"amount_cents": 1})
	other.Risk = intent.RiskApprove
	last := helper.settle(other, ledger.StatusHeld)
	ada.until("the third", "document.querySelectorAll('[data-row]').length === 3")
	links := "[...document.querySelectorAll('[data-row] .go')].map(a => new URL(a.href).pathname)"
	want := []string{"/writes/" + string(held.ID), "/writes/" + string(last.ID), "/writes/" + string(review.ID)}
	if diff := cmp.Diff(want, look[[]string](ada, links)); diff != "" {
		t.Errorf("the riskiest first, and of equal ones the oldest:\n%s\n%s", diff, strings.Join(look[[]string](ada, titles), "\n"))
	}
	if title := look[string](ada, "document.title"); !strings.HasPrefix(title, "(3) Inbox") {
		t.Errorf("the title is %q", title)
	}

	// Somebody else decides, over HTTP; the list follows.
	decided, answer, err := (&agent{t, s, tenant, s.token(t, tenant, "reviewer", "ben")}).ask(t.Context(), "POST", "/v1/writes/"+string(held.ID)+"/decision", map[string]any{"word": "deny", "reason": "not this customer"})
	if err != nil || decided != 200 {
		t.Fatalf("%d %s, %v", decided, answer, err)
	}
	ada.until("the rest", "document.querySelectorAll('[data-row]').length === 2")
	if !look[bool](ada, "window.stillHere === true") {
		t.Error("the page was loaded anew")
	}
	if n := s.destinations["billing"].Changes("in-held"); n != 0 {
		t.Errorf("a rejected write has %d effects", n)
	}
}
