package browsertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// row is what one field's row says: how it stands, what was declared and seen.
type row struct{ Mark, Stands, Want, Seen string }

// rows are the rows of the comparison on a write's page, by path.
func rows(p *person) map[string]row {
	p.t.Helper()
	all := look[map[string]map[string]string](p, `Object.fromEntries([...document.querySelectorAll("tr[data-path]")].map(r => {
		const cell = (label) => (r.querySelector('[data-label="' + label + '"]')?.innerText || "").trim();
		return [r.dataset.path, {mark: r.dataset.mark, stands: cell("Result"), want: cell("Requested"), seen: cell("Seen")}];
	}))`)
	found := map[string]row{}
	for path, r := range all {
		found[path] = row{r["mark"], r["stands"], r["want"], r["seen"]}
	}
	return found
}

// The page of a write marks the fields that differ and no others, and tells what
// happened. Null, missing and empty are three things there.
func TestWritePageMarksWhatDiffers(t *testing.T) {
	s := theSite(t)
	const tenant, id = "diff", "df-1"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	shop := s.destinations["orders"]
	shop.fault(t, orders.Fault{Kind: orders.DroppedField, Key: id, Field: "dropped"})
	shop.fault(t, orders.Fault{Kind: orders.NormalisedField, Key: id, Field: "name", How: "upper"})
	shop.meddle(id, func(orders.Order) intent.Fields {
		return intent.Fields{"nulled": nil, "emptied": "", "amount_cents": json.Number("1901"), "was_null": "", "line": "a long line of text with one wrong word in it"}
	})
	w := order("orders", "open_order", id, intent.Fields{
		"amount_cents": 1900, "currency": "EUR", "dropped": "x", "name": "Ada", "nulled": "x", "emptied": "x", "stays_null": nil, "was_null": nil, "stays_empty": "",
		"line": "a long line of text with one right word in it"})
	w.Payload = intent.Fields{"channel": "chat"}
	out := helper.settle(w, ledger.StatusReview)

	ada.open("/writes/" + string(out.ID))
	got := rows(ada)
	want := map[string]row{
		"/order_id":     {"same", "✓ as requested", `"df-1"`, `"df-1"`},
		"/currency":     {"same", "✓ as requested", `"EUR"`, `"EUR"`},
		"/stays_null":   {"same", "✓ as requested", "null", "null"},
		"/stays_empty":  {"same", "✓ as requested", `"" (empty text)`, `"" (empty text)`},
		"/amount_cents": {"differs", "≠ differs", "1900", "1901"},
		"/name":         {"differs", "≠ differs", `"Ada"`, `"ADA"`},
		"/dropped":      {"differs", "∅ not there", `"x"`, "not there"},
		"/nulled":       {"differs", "≠ differs text wanted, null seen", `"x"`, "null"},
		"/emptied":      {"differs", "≠ differs", `"x"`, `"" (empty text)`},
		"/was_null":     {"differs", "≠ differs null wanted, text seen", "null", `"" (empty text)`},
		"/line":         {"differs", "≠ differs", `"a long line of text with one right word in it"`, `"a long line of text with one wrong word in it"`},
		"/channel":      {"aside", "· sent, not verified", `"chat"`, `"chat"`},
	}
	for path, r := range want {
		if diff := cmp.Diff(r, got[path]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		delete(got, path)
	}
	for path, r := range got { // the destination's own fields, which nobody asked for
		if r.Mark == "differs" {
			t.Errorf("%s is marked: %v", path, r)
		}
	}
	marked := look[string](ada, `[...document.querySelectorAll('tr[data-path="/line"] mark')].map(m => m.textContent).join(" ")`)
	if marked != "right wrong" {
		t.Errorf("of the line %q is marked", marked)
	}
	ada.text("mismatched")
	checkLife(t, ada, "Reserved", "Read before the write", "Send 1 announced", "the destination answered with success (201)", "Read, mismatched: 7 fields differ", "Sent to a reviewer")
}

// checkLife checks what is told of the life of a write, in its order, each event
// at a time.
func checkLife(t *testing.T, p *person, want ...string) {
	t.Helper()
	told := look[[]string](p, `[...document.querySelectorAll(".life > li")].map(l => l.innerText.replace(/\s+/g, " "))`)
	times := look[[]string](p, `[...document.querySelectorAll(".life > li time")].map(t => t.dateTime)`)
	if len(told) != len(want) || len(times) != len(want) {
		t.Fatalf("%d events at %d times, want %d: %q", len(told), len(times), len(want), told)
	}
	for i, text := range want {
		if !strings.Contains(told[i], text) {
			t.Errorf("event %d is %q, want %q", i+1, told[i], text)
		}
		if i > 0 && times[i] < times[i-1] {
			t.Errorf("the events are not in their order: %q", times)
		}
	}
}
