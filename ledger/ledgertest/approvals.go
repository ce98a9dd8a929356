package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/ledger"
)

// heldFor holds a write for so many reviewers, until a time.
func heldFor(need int, in time.Duration) ledger.Event {
	return ledger.Event{Kind: ledger.EvHeld, Need: need, In: in, Rule: "risk", Reason: "it is dear"}
}

func approvedBy(by string) ledger.Event { return ledger.Event{Kind: ledger.EvApproved, By: by} }

func agreedBy(by string) ledger.Event { return ledger.Event{Kind: ledger.EvAgreed, By: by} }

// asking reserves a wish in the name of an agent.
func (h *harness) asking(workflow string, events ...ledger.Event) ledger.Record {
	h.Helper()
	res := h.reservation(wish("a", workflow), events...)
	res.Record.RequestedBy = "agent"
	return h.reserve(res)
}

var approvals = map[string]scenario{
	"two reviewers": {
		"where two are asked for, two different ones must agree, and the time does not begin anew",
		func(h *harness) {
			rec := h.asking("w1", heldFor(2, time.Hour))
			until := rec.Due
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("ann"))
			h.sleep(time.Minute)
			rec = h.append(rec, agreedBy("ann"))
			if rec.State != ledger.Held || !rec.Due.Equal(until) || len(rec.Agreed) != 1 || rec.Need != 2 || rec.Owner != "" {
				h.Errorf("after one: %s, due %s, agreed %v of %d", rec.State, rec.Due, rec.Agreed, rec.Need)
			}
			h.same(rec, h.get(rec))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("ann"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, agreedBy("ann"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("Ann "))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, agreedBy("bob"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("agent"))
			rec = h.append(rec, approvedBy("bob"))
			if rec.State != ledger.Queued || len(rec.Agreed) != 2 {
				h.Errorf("after two: %s, agreed %v", rec.State, rec.Agreed)
			}
			h.same(rec, h.get(rec))
			h.taken(rec, ledger.Claim{})
		},
	},
	"of what was seen": {
		"an approval is for what the reviewer saw",
		func(h *harness) {
			rec := h.asking("w1", held)
			other := approvedBy("ann")
			other.Digest = "another"
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, other)
			other.Digest = rec.Digest
			rec = h.append(rec, other)
			if life := h.events(rec); life[len(life)-1].Digest != rec.Digest || life[len(life)-1].By != "ann" {
				h.Errorf("the event says %+v", life[len(life)-1])
			}
		},
	},
	"not by who asked": {
		"no reviewer approves a write of their own",
		func(h *harness) {
			rec := h.asking("w1", held)
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("agent"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("Agent"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy(""))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy(" "))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Denied})
			h.append(rec, approvedBy("ann"))
		},
	},
	"ended without approval": {
		"what a reviewer has can be sent again: what was never approved must not get there",
		func(h *harness) {
			for how, rec := range map[ledger.Status]ledger.Record{ledger.Denied: h.asking("w1", held), ledger.Expired: h.asking("w2", heldFor(0, time.Hour))} {
				rec = h.append(rec, ledger.Event{Kind: ledger.EvSettled, Settlement: how, By: "ann", Reason: "for the test"})
				h.refused(ledger.ErrIllegalMove, rec, rec.Fence, escalated)
				h.refused(ledger.ErrIllegalMove, rec, rec.Fence, announced)
			}
		},
	},
	"due": {
		"a hold whose time is over is work: a worker has to end it. Until then it is not",
		func(h *harness) {
			rec := h.asking("w1", heldFor(0, time.Hour))
			never := h.asking("w2", held)
			h.sleep(59 * time.Minute)
			h.nothing(ledger.Claim{Limit: 10})
			h.sleep(2 * time.Minute)
			h.counted(ledger.Queue{Tenant: "a", Destination: "shop", State: ledger.Held, Count: 2, Due: 1})
			rec = h.taken(rec, ledger.Claim{Limit: 10, Paused: []string{"shop"}})
			if rec.State != ledger.Held {
				h.Fatalf("lent in state %s", rec.State)
			}
			rec = h.append(rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired, By: "worker", Reason: "no decision"})
			if rec.Phase() != "settled (expired)" || rec.Owner != "" || !rec.Due.IsZero() {
				h.Errorf("%s, owner %q, due %s", rec.Phase(), rec.Owner, rec.Due)
			}
			h.same(rec, h.get(rec))
			h.sleep(100 * lease)
			h.nothing(ledger.Claim{Limit: 10})
			h.same(never, h.get(never))
		},
	},
	"too late": {
		"an approval that comes too late sends nothing, also when no worker has ended the hold yet",
		func(h *harness) {
			rec := h.asking("w1", heldFor(0, time.Hour))
			two := h.asking("w2", heldFor(2, time.Hour))
			h.sleep(time.Hour)
			h.refused(ledger.ErrExpired, rec, rec.Fence, approvedBy("ann"))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, approvedBy("ann"))
			h.refused(ledger.ErrExpired, two, two.Fence, agreedBy("ann"))
		},
	},
	"overdue": {
		"where others are notified instead, the write still waits, and can be approved",
		func(h *harness) {
			rec := h.asking("w1", heldFor(0, time.Hour))
			h.sleep(2 * time.Hour)
			rec = h.append(h.taken(rec, ledger.Claim{}), ledger.Event{Kind: ledger.EvOverdue, By: "worker", Reason: "notified the others"})
			if !rec.Overdue || rec.State != ledger.Held || !rec.Due.IsZero() || rec.Owner != "" {
				h.Errorf("overdue %v, %s, due %s, owner %q", rec.Overdue, rec.State, rec.Due, rec.Owner)
			}
			h.same(rec, h.get(rec))
			h.sleep(100 * time.Hour)
			h.nothing(ledger.Claim{Limit: 10})
			h.append(rec, approvedBy("ann"))
		},
	},
	"once": {
		"of any number of reviewers who approve at once, one causes the send",
		func(h *harness) {
			rec := h.asking("w1", held)
			var won atomic.Int32
			together(16, func(i int) {
				_, err := h.ledger.Append(context.Background(), rec.ID, rec.Fence, approvedBy(fmt.Sprint("reviewer ", i)))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ledger.ErrIllegalMove):
					h.Errorf("append: %v", err)
				}
			})
			if got := h.get(rec); won.Load() != 1 || len(got.Agreed) != 1 || got.State != ledger.Queued {
				h.Errorf("%d approved it: %s, by %v", won.Load(), got.State, got.Agreed)
			}
		},
	},
	"joins its queue": {
		"a write that was approved by two goes behind what was reserved meanwhile",
		func(h *harness) {
			res := h.reservation(update("a", "x", 1), heldFor(2, time.Hour))
			rec := h.reserve(res)
			first := h.fresh(update("a", "x", 2), announced)
			rec = h.append(rec, agreedBy("ann"))
			if rec.QueuedBehind != "" {
				h.Errorf("behind %q while it is held", rec.QueuedBehind)
			}
			rec = h.append(rec, approvedBy("bob"))
			if rec.QueuedBehind != first.ID || !rec.Due.IsZero() {
				h.Errorf("behind %q, due %s", rec.QueuedBehind, rec.Due)
			}
			h.append(first, sent, seen, verified)
			h.taken(rec, ledger.Claim{})
		},
	},
	"undone later": {
		"a write that was settled as verified can be undone only by a named actor",
		func(h *harness) {
			parent := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			behind := h.fresh(update("a", "x", 1), announced)
			child := ledger.Event{Kind: ledger.EvCompensating, Child: "wr_2", Evidence: awkward.raw, Reason: "wrong customer"}
			h.refused(ledger.ErrIllegalMove, parent, parent.Fence, child)
			child.By = "ann"
			refused := h.append(h.fresh(wish("a", "w2"), announced), sent, missing, settled(ledger.NotApplied))
			h.refused(ledger.ErrIllegalMove, refused, refused.Fence, child)
			parent = h.append(parent, child)
			if parent.State != ledger.Compensating || parent.Settlement != "" || !parent.SettledAt.IsZero() || parent.Due.IsZero() {
				h.Errorf("%s, due %s", parent.Phase(), parent.Due)
			}
			h.same(parent, h.get(parent))
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), parent) // it is unknown yet
			parent = h.append(h.taken(parent, ledger.Claim{}), settled(ledger.Compensated))
			h.same(parent, h.get(parent))
			h.fresh(named("a", "w3", "invoice 7"))
			h.append(behind, sent, seen, verified)
		},
	},
}
