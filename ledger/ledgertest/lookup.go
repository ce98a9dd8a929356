package ledgertest

import (
	"context"
	"time"

	"github.com/readback-go/readback/ledger"
)

// holders reads which workflows have begun a business operation, and expects these.
func (h *harness) holders(tenant, tool, key string, want ...ledger.Record) {
	h.Helper()
	got, err := h.ledger.Operation(context.Background(), tenant, tool, key)
	if err != nil {
		h.Fatal(err)
	}
	if len(got) != len(want) {
		h.Fatalf("%d writes have begun operation %q, want %d", len(got), key, len(want))
	}
	for i := range want {
		h.same(h.get(want[i]), got[i])
		if got[i].Now.Before(got[i].Updated) {
			h.Errorf("the time of the look-up is %s, before the write was changed", got[i].Now)
		}
	}
}

var lookups = map[string]scenario{
	"open before settled": {
		"who is asked about an operation must see first what is still open",
		func(h *harness) {
			first := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			h.sleep(48 * time.Hour)
			res := h.reservation(named("a", "w2", "invoice 7"))
			res.Window = 24 * time.Hour
			second := h.append(h.reserve(res), announced, sent, seen, verified)
			h.sleep(48 * time.Hour)
			res = h.reservation(named("a", "w3", "invoice 7"))
			res.Window = 24 * time.Hour
			third := h.reserve(res)
			tool := named("a", "w1", "invoice 7").Tool
			h.holders("a", tool, "invoice 7", third, second, first)
		},
	},
	"in the order of their ends": {
		"of several prior writes the one that ended last is reported, whichever began first",
		func(h *harness) {
			first := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.sleep(time.Minute)
			second := h.append(h.reserve(h.handed(operation("a", "w1", "s2", "invoice 7"))), reported)
			h.sleep(time.Minute)
			first = h.append(first, reported)
			h.holders("a", first.Tool, "invoice 7", first, second)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), first)
		},
	},
	"no other actor's": {
		"no answer crosses tenants, tools or keys",
		func(h *harness) {
			mine := h.fresh(named("a", "w1", "invoice 7"))
			h.fresh(named("b", "w2", "invoice 7"))
			h.fresh(wish("a", "w3"))
			tool := named("a", "w1", "invoice 7").Tool
			h.holders("a", tool, "invoice 7", mine)
			h.holders("a", tool, "invoice 8")
			h.holders("a", "another", "invoice 7")
			h.holders("c", tool, "invoice 7")
			h.holders("a", tool, "")
		},
	},
	"what steps do": {
		"a step's own operation stops others like any write, and so does what is written in it",
		func(h *harness) {
			step := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.holders("a", step.Tool, "invoice 7", step)
			h.append(step, reported)
			h.holders("a", step.Tool, "invoice 7", step)
		},
	},
	"came to nothing": {
		"what is known not to have happened, or was released, blocks no other write",
		func(h *harness) {
			h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen,
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "not applied", Reason: "refused"})
			second := h.fresh(named("a", "w2", "invoice 7"))
			tool := named("a", "w1", "invoice 7").Tool
			h.holders("a", tool, "invoice 7", second)
			h.append(second, ledger.Event{Kind: ledger.EvYielded, By: "ann", Reason: "the bank refuses"})
			h.holders("a", tool, "invoice 7")
		},
	},
}
