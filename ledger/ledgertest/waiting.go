package ledgertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// waitsOf are the groups of those that wait for a reviewer, in the order of their texts.
func waitsOf(all []ledger.Record) (kinds []ledger.WaitKind) {
	for _, r := range all {
		if k, ok := ledger.WaitKindOf(r); ok && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b ledger.WaitKind) int { return cmp.Compare(a.Text(), b.Text()) })
	return kinds
}

func (h *harness) waiting(tenant string, before ...time.Time) (found []ledger.Waiting, more bool) {
	h.Helper()
	var times [ledger.WaitAges]time.Time
	copy(times[:], before)
	found, more, err := h.ledger.Waiting(context.Background(), tenant, times)
	if err != nil {
		h.Fatalf("waiting: %v", err)
	}
	return found, more
}

// awaits compares the counts of a tenant.
func (h *harness) awaits(tenant string, want ...ledger.Waiting) {
	h.Helper()
	found, more := h.waiting(tenant)
	if diff := gocmp.Diff(want, found); diff != "" || more {
		h.Errorf("tenant %s, more %v (-want +got):\n%s", tenant, more, diff)
	}
}

var waitingCounts = map[string]scenario{
	"groups": {
		"a reviewer sees how many writes wait of each tool, destination and reason, of the own tenant alone",
		func(h *harness) {
			all := h.shelf()
			for _, tenant := range []string{"a", "b", "unused"} {
				counts := map[ledger.WaitKind]int{}
				for _, r := range all {
					if k, ok := ledger.WaitKindOf(r); ok && r.Tenant == tenant {
						counts[k]++
					}
				}
				var want []ledger.Waiting
				for _, k := range waitsOf(all) {
					if counts[k] > 0 {
						want = append(want, ledger.Waiting{WaitKind: k, Count: counts[k]})
					}
				}
				h.awaits(tenant, want...)
			}
		},
	},
	"through its life": {
		"a write is counted from when it waits until a reviewer has decided, as what it waits for now",
		func(h *harness) {
			w := wish("a", "w1")
			w.Tool, w.Risk = "pay & <go>", intent.RiskApprove
			rec := h.fresh(w, heldFor(1, time.Hour))
			kind := ledger.WaitKind{State: ledger.Held, Destination: w.Destination, Kind: w.Kind, Tool: w.Tool, Write: string(w.Write), Risk: "approve"}
			h.awaits("a", ledger.Waiting{WaitKind: kind, Count: 1})
			rec = h.append(rec, ledger.Event{Kind: ledger.EvOverdue, Reason: "late"})
			kind.Overdue = true
			h.awaits("a", ledger.Waiting{WaitKind: kind, Count: 1})
			rec = h.append(rec, ledger.Event{Kind: ledger.EvApproved, By: "ann", Digest: rec.Digest})
			h.awaits("a")
			rec = h.append(rec, announced, sent, seen, ledger.Event{Kind: ledger.EvEscalated, Verdict: "mismatched", Reason: "it differs"})
			kind.State, kind.Verdict = ledger.Review, "mismatched"
			h.awaits("a", ledger.Waiting{WaitKind: kind, Count: 1})
			if got := h.searched(ledger.Search{Tenant: "a", Waits: []ledger.WaitKind{kind}}); len(got) != 1 || got[0].ID != rec.ID {
				h.Errorf("found %v, want %s", ids(got), rec.ID)
			}
			h.append(rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "ann"})
			h.awaits("a")
		},
	},
	"ages": {
		"of each group those that were created before a time are counted",
		func(h *harness) {
			var times []time.Time
			for i := range 3 {
				w := wish("a", fmt.Sprint("w", i))
				w.Key = intent.Fields{"number": fmt.Sprint(i)}
				times = append(times, h.fresh(w, held).Created)
				h.sleep(time.Second)
			}
			found, _ := h.waiting("a", times[2].Add(1), times[1], times[0])
			if len(found) != 1 || found[0].Count != 3 || found[0].Older != [3]int{3, 1, 0} {
				h.Errorf("%+v, want 3 of which 3, 1 and 0 are older", found)
			}
		},
	},
	"bounded": {
		"more groups than a page can show are cut off, and the caller learns it",
		func(h *harness) {
			for i := range ledger.MaxWaits + 1 {
				w := wish("a", fmt.Sprint("w", i))
				w.Tool, w.Key = fmt.Sprint("tool ", i), intent.Fields{"number": fmt.Sprint(i)}
				if _, _, err := h.ledger.Reserve(context.Background(), h.reservation(w, held)); err != nil {
					h.Fatal(err)
				}
			}
			if found, more := h.waiting("a"); len(found) != ledger.MaxWaits || !more {
				h.Errorf("%d groups, more %v", len(found), more)
			}
			if _, err := h.ledger.Find(context.Background(), ledger.Search{Tenant: "a", Waits: make([]ledger.WaitKind, ledger.MaxWaits+1)}); err == nil {
				h.Error("a search for more groups was not refused")
			}
			if _, _, err := h.ledger.Waiting(context.Background(), "", [ledger.WaitAges]time.Time{}); err == nil {
				h.Error("a count without a tenant was not refused")
			}
		},
	},
	"long names": {
		"a write whose caller makes it itself may have names that no index holds, and waits all the same",
		func(h *harness) {
			o := operation("a", "w1", "s1", "invoice 1")
			o.Tool = strings.Repeat("字", 255)
			rec := h.reserve(h.handed(o))
			rec = h.append(rec, ledger.Event{Kind: ledger.EvEscalated, Reason: "unknown"})
			found, _ := h.waiting("a")
			if len(found) != 1 || len(found[0].Tool) > 257 {
				h.Fatalf("%+v, want one group with a bounded name", found)
			}
			if got := h.searched(ledger.Search{Tenant: "a", Waits: []ledger.WaitKind{found[0].WaitKind}}); len(got) != 1 || got[0].ID != rec.ID {
				h.Errorf("found %v, want %s", ids(got), rec.ID)
			}
		},
	},
}
