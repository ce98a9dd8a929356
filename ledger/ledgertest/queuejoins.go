package ledgertest

import (
	"time"

	"github.com/readback-go/readback/ledger"
)

// joining is how writes join a queue, and what that does to the one before.
var joining = map[string]scenario{
	"needs no line": {
		"what is appended to one mailbox would wait for whatever was appended before",
		func(h *harness) {
			first := h.fresh(about("k", "one"))
			next := h.queuedUp(about("k", "two"))
			h.queuedBehind(next, first)
			alone := announced
			alone.Unordered = true
			first = h.append(first, alone)
			if first.InQueue() || first.State != ledger.Sending {
				h.Errorf("%s, queued %v", first.State, first.InQueue())
			}
			h.append(h.atHead(next), alone)
			h.append(first, sent, escalated)
			if third := h.fresh(about("k", "three")); third.QueuedBehind != "" {
				h.Errorf("behind %s, which needs no line", third.QueuedBehind)
			}
		},
	},
	"held": {
		"a held write has no place: what waits for a reviewer must not hold up what does not",
		func(h *harness) {
			waits := h.fresh(about("k", "held"), held)
			if waits.QueuedBehind != "" || waits.State != ledger.Held {
				h.Errorf("%s behind %q", waits.State, waits.QueuedBehind)
			}
			first := h.fresh(about("k", "first"), announced)
			if first.State != ledger.Sending {
				h.Fatalf("%s behind %q", first.State, first.QueuedBehind)
			}
			later := h.fresh(about("k", "held later"), held)
			if later.QueuedBehind != "" || later.State != ledger.Held {
				h.Errorf("%s behind %q", later.State, later.QueuedBehind)
			}
			h.append(first, sent, seen, verified)
			h.nothing(ledger.Claim{Limit: 10})
		},
	},
	"approved": {
		"an approved write gets the last place, though it was asked for first",
		func(h *harness) {
			waits := h.fresh(about("k", "held"), held)
			first := h.fresh(about("k", "first"), announced)
			second := h.queuedUp(about("k", "second"))
			waits = h.append(waits, approved)
			h.queuedBehind(waits, second)
			third := h.queuedUp(about("k", "third"))
			h.queuedBehind(third, waits)
			h.inOrder(first.KeyDigest)
			h.append(first, sent, seen, verified)
			second = h.atHead(second)
			h.append(second, announced, sent, seen, verified)
			waits = h.atHead(waits)
			h.append(waits, announced, sent, seen, verified)
			h.atHead(third)
		},
	},
	"approved and worked on": {
		"an approver who continues at once must not overtake the queue",
		func(h *harness) {
			waits := h.fresh(about("k", "held"), held)
			first := h.fresh(about("k", "first"), announced)
			waits = h.taken(waits, ledger.Claim{Tenant: "a", ID: waits.ID, Early: true})
			h.refused(ledger.ErrIllegalMove, waits, waits.Fence, approved, announced)
			waits = h.append(waits, approved, deferred(0))
			h.queuedBehind(waits, first)
			h.append(first, sent, seen, verified)
			h.atHead(waits)
		},
	},
	"approved into an empty line": {
		"with none before it an approved write is work at once",
		func(h *harness) {
			first := h.fresh(about("k", "first"), announced)
			waits := h.fresh(about("k", "held"), held)
			h.append(first, sent, seen, verified)
			h.append(waits, approved)
			second := h.queuedUp(about("k", "second"))
			h.queuedBehind(second, waits)
			h.append(h.atHead(waits), announced, sent, seen, verified)
			h.atHead(second)
		},
	},
	"denied": {
		"a held write that is denied has never been queued, and frees no other",
		func(h *harness) {
			waits := h.fresh(about("k", "held"), held)
			first := h.fresh(about("k", "first"), announced)
			second := h.queuedUp(about("k", "second"))
			h.append(waits, settled(ledger.Denied))
			h.queuedBehind(second, first)
		},
	},
	"held queued": {
		"a write that is held while others wait for it lets them go",
		func(h *harness) {
			first := h.fresh(about("k", "first"))
			second := h.queuedUp(about("k", "second"))
			h.queuedBehind(second, first)
			first = h.append(first, held)
			second = h.atHead(second)
			first = h.append(first, approved)
			h.queuedBehind(first, second)
			h.inOrder(first.KeyDigest)
		},
	},
	"no owner's": {
		"a write without an owner is only queued: the next claim gets it",
		func(h *harness) {
			rec := h.queuedUp(about("k", "w1"))
			if rec.State != ledger.Queued || rec.Owner != "" || !rec.LeaseUntil.IsZero() || rec.Due.IsZero() || rec.QueuedBehind != "" {
				h.Errorf("%s, owner %q until %s, due %s, behind %q", rec.State, rec.Owner, rec.LeaseUntil, rec.Due, rec.QueuedBehind)
			}
			lent := h.taken(rec, ledger.Claim{Limit: 10})
			if lent.Fence <= rec.Fence {
				h.Errorf("fence %d after %d", lent.Fence, rec.Fence)
			}
			h.refused(ledger.ErrFenced, lent, rec.Fence, announced)
			h.append(lent, announced, sent, seen, verified)
		},
	},
	"put off": {
		"a read that was deferred because no caller waited is expedited when one does",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "first"), announced), sent, putOff)
			h.nothing(ledger.Claim{Limit: 10})
			second := h.queuedUp(about("k", "second"))
			h.queuedBehind(second, first)
			first = h.taken(first, ledger.Claim{Limit: 10})
			life := h.events(first)
			if last := life[len(life)-1]; last.Kind != ledger.EvDeferred || last.Rule != "line" {
				h.Errorf("its life ends with %+v; want why it was brought forward", last)
			}
			h.append(first, seen, verified)
			h.atHead(second)
		},
	},
	"put off before an approval": {
		"an approved write waits as any other does",
		func(h *harness) {
			waits := h.fresh(about("k", "held"), held)
			first := h.append(h.fresh(about("k", "first"), announced), sent, putOff)
			waits = h.append(waits, approved)
			h.queuedBehind(waits, first)
			first = h.taken(first, ledger.Claim{Limit: 10})
			h.append(first, seen, verified)
			h.atHead(waits)
		},
	},
	"put off and not last": {
		"only the one that is waited for directly is expedited: the others wait for themselves",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "first"), announced), sent, putOff)
			second := h.queuedUp(about("k", "second"))
			seq := h.get(first).Seq
			h.queuedBehind(h.queuedUp(about("k", "third")), second)
			if got := h.get(first).Seq; got != seq {
				h.Errorf("%d events of the first after %d", got, seq)
			}
		},
	},
	"put back for a reason": {
		"a write that waits on purpose (Retry-After, a poll) is not expedited",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "first"), announced), sent, missing, deferred(time.Hour))
			h.queuedUp(about("k", "second"))
			h.nothing(ledger.Claim{Limit: 10})
			if due := h.get(first).Due; !due.After(h.get(first).Now.Add(time.Minute)) {
				h.Errorf("due %s, now %s", due, h.get(first).Now)
			}
		},
	},
}
