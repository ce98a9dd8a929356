package ledgertest

import (
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// named is a wish for a business operation.
func named(tenant, workflow, key string) intent.WriteIntent {
	w := wish(tenant, workflow)
	w.IdempotencyKey = key
	return w
}

// blocked reserves what must be blocked by a prior write.
func (h *harness) blocked(res ledger.Reservation, prior ledger.Record) {
	h.Helper()
	_, fresh, err := h.ledger.Reserve(context.Background(), res)
	var block *ledger.BlockedError
	if fresh || !errors.As(err, &block) || !errors.Is(err, ledger.ErrBlocked) {
		h.Fatalf("fresh %v, error %v; want blocked", fresh, err)
	}
	h.same(h.get(prior), block.Prior)
	if _, err := h.ledger.Get(context.Background(), res.Record.Tenant, res.Record.ID); !errors.Is(err, ledger.ErrNotFound) {
		h.Errorf("get: error %v: a blocked write was recorded", err)
	}
}

var operations = map[string]scenario{
	"another workflow": {
		"a business operation is done once, whichever workflow asks",
		func(h *harness) {
			prior := h.fresh(named("a", "w1", "invoice 7"), announced)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), prior)
			prior = h.append(prior, sent, seen, verified)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), prior)
			h.replayed(h.reservation(named("a", "w1", "invoice 7")))
		},
	},
	"something else": {
		"only the same tenant, tool and key name the same operation",
		func(h *harness) {
			h.fresh(named("a", "w1", "invoice 7"))
			h.fresh(named("b", "w2", "invoice 7"))
			h.fresh(named("a", "w2", "invoice 8"))
			h.fresh(named("a", "w2b", "Invoice 7"))
			tool := named("a", "w3", "invoice 7")
			tool.Tool = "another"
			h.fresh(tool)
		},
	},
	"no key": {
		"writes that name no operation do not block each other",
		func(h *harness) {
			h.fresh(wish("a", "w1"))
			h.fresh(wish("a", "w2"))
		},
	},
	"window": {
		"a key may be used again when its window is over, and without a window never",
		func(h *harness) {
			prior := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			res := h.reservation(named("a", "w2", "invoice 7"))
			res.Window = 24 * time.Hour
			h.sleep(23 * time.Hour)
			h.blocked(res, prior)
			h.sleep(2 * time.Hour)
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), prior)
			second := h.reserve(res)
			res = h.reservation(named("a", "w4", "invoice 7"))
			res.Window = 24 * time.Hour
			h.blocked(res, second)
		},
	},
	"done long after it was begun": {
		"a caller that had to wait for it must not do it again the moment it is done",
		func(h *harness) {
			prior := h.fresh(named("a", "w1", "invoice 7"), held)
			res := h.reservation(named("a", "w2", "invoice 7"))
			res.Window = 24 * time.Hour
			h.sleep(72 * time.Hour)
			h.blocked(res, prior)
			prior = h.append(prior, approved)
			prior = h.append(h.taken(prior, ledger.Claim{Tenant: "a", ID: prior.ID}), announced, sent, seen, verified)
			h.sleep(23 * time.Hour)
			h.blocked(res, prior)
			h.sleep(2 * time.Hour)
			h.reserve(res)
		},
	},
	"open past its window": {
		"a write that was held for days can still be sent, and would be the second",
		func(h *harness) {
			prior := h.fresh(named("a", "w1", "invoice 7"), held)
			res := h.reservation(named("a", "w2", "invoice 7"))
			res.Window = 24 * time.Hour
			h.sleep(72 * time.Hour)
			h.blocked(res, prior)
			h.append(prior, settled(ledger.Denied))
			h.reserve(res)
		},
	},
	"came to nothing": {
		"a prior write blocks unless it is known to have no effect",
		func(h *harness) {
			for how, blocks := range map[ledger.Status]bool{
				ledger.Verified: true, ledger.Accepted: true, ledger.Abandoned: true,
				ledger.NotApplied: false, ledger.Compensated: false,
			} {
				first, again := named("a", "first "+string(how), string(how)), named("a", "again "+string(how), string(how))
				prior := h.append(h.fresh(first, announced), sent, seen, settled(how))
				if blocks {
					h.blocked(h.reservation(again), prior)
				} else {
					h.fresh(again)
				}
			}
			prior := h.append(h.fresh(named("a", "first denied", "denied"), held), settled(ledger.Denied))
			h.same(prior, h.get(prior))
			h.fresh(named("a", "again denied", "denied"))
			prior = h.append(h.fresh(named("a", "first review", "review"), announced), sent, escalated)
			h.blocked(h.reservation(named("a", "again review", "review")), prior)
		},
	},
	"one of several": {
		"a prior write that failed does not hide one that did not",
		func(h *harness) {
			h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, missing, settled(ledger.NotApplied))
			h.sleep(time.Minute)
			second := h.fresh(named("a", "w2", "invoice 7"), announced)
			h.sleep(time.Minute)
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), second)
		},
	},
	"released": {
		"a write that was settled before one window still blocks within a longer one, after the next one failed",
		func(h *harness) {
			prior := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			h.sleep(25 * time.Hour)
			res := h.reservation(named("a", "w2", "invoice 7"), announced)
			res.Window = 24 * time.Hour
			failed := h.append(h.reserve(res), sent, missing, settled(ledger.NotApplied))
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), prior)
			res = h.reservation(named("a", "w3", "invoice 7"), announced)
			res.Window = 24 * time.Hour
			h.meets(ledger.Search{Tenant: "a", IdempotencyKey: "invoice 7"}, []ledger.Record{prior, failed, h.reserve(res)})
		},
	},
	"denied at once": {
		"a write that ends with its reservation is of its operation too",
		func(h *harness) {
			prior := h.fresh(named("a", "w1", "invoice 7"), announced)
			h.blocked(h.reservation(named("a", "w2", "invoice 7"), held, settled(ledger.Denied)), prior)
		},
	},
	"undoing": {
		"the write that undoes an operation is neither blocked by it nor in the way of a new try",
		func(h *harness) {
			parent := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent)
			undo := named("a", "w1", "invoice 7")
			undo.Compensates = string(parent.ID)
			child := h.fresh(undo, announced)
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID})
			h.append(child, sent, seen, verified)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), parent)
			h.append(parent, settled(ledger.Compensated))
			h.fresh(named("a", "w2", "invoice 7"))
		},
	},
}
