package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

// asDelegated is an event that lets a write go to its caller.
var asDelegated = ledger.Event{Kind: ledger.EvDelegated, By: "agent"}

// operation is what a step does by itself, under the tool of [wish].
func operation(tenant, workflow, step, key string) ledger.Operation {
	return ledger.Operation{
		Tenant: tenant, Workflow: workflow, Step: step, Tool: "tool", IdempotencyKey: key,
		Digest: "digest of " + key, Asked: json.RawMessage(`{"amount":1.0}`), RequestedBy: "agent",
	}
}

// handed is the reservation of what a step does by itself. Without events it is
// approved at once.
func (h *harness) handed(o ledger.Operation, events ...ledger.Event) ledger.Reservation {
	h.Helper()
	rec, err := ledger.NewDelegated(o)
	if err != nil {
		h.Fatal(err)
	}
	if len(events) == 0 {
		events = []ledger.Event{asDelegated}
	}
	return ledger.Reservation{Record: rec, Events: events}
}

// reported ends a write that was approved: its caller reports it as done.
var reported = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"}

// yielded lets the business operation of a write go.
var yielded = ledger.Event{Kind: ledger.EvYielded, By: "ann", Reason: "made by hand"}

var delegating = map[string]scenario{
	"a life": {
		"what a caller makes itself is known like any other write, and comes back as it was",
		func(h *harness) {
			o := operation("a", "w1", "s1", "invoice 7")
			o.Asked, o.Destination, o.Kind, o.CorrelationID = awkward.raw, "shop", "order", "trace"
			rec := h.reserve(h.handed(o))
			if rec.State != ledger.Delegated || !rec.Delegated || rec.RequestedBy != "agent" || rec.KeyDigest != "" || !rec.Due.IsZero() || rec.Owner != "" {
				h.Errorf("reserved %+v", rec)
			}
			h.same(rec, h.get(rec))
			if diff := cmp.Diff(string(awkward.raw), string(h.get(rec).Intent)); diff != "" {
				h.Errorf("what it asks for (-want +got):\n%s", diff)
			}
			rec = h.append(rec, asDelegated)
			rec = h.append(rec, ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "absent", Evidence: awkward.raw}, seen)
			h.same(rec, h.get(rec))
			rec = h.append(rec, reported)
			if rec.Phase() != "settled (reported)" || rec.SettledAt.IsZero() || rec.Sends != 0 {
				h.Errorf("ended %s at %s after %d sends", rec.Phase(), rec.SettledAt, rec.Sends)
			}
			h.same(rec, h.get(rec))
			h.same(rec, h.list(ledger.Filter{Tenant: "a", States: []ledger.State{ledger.Settled}})[0])
			h.same(rec, h.replayed(h.handed(o)))
		},
	},
	"verified": {
		"what was seen is verified, and not only reported",
		func(h *harness) {
			rec := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, verified)
			h.append(rec, seen, verified)
		},
	},
	"held": {
		"what a step does by itself can wait for a reviewer, and its caller asks again",
		func(h *harness) {
			rec := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7"), ledger.Event{Kind: ledger.EvHeld, In: time.Hour}))
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, asDelegated)
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, ledger.Event{Kind: ledger.EvApproved, By: "agent"})
			rec = h.append(rec, ledger.Event{Kind: ledger.EvApproved, By: "ann"})
			if rec.State != ledger.Delegated || !rec.Due.IsZero() || rec.Owner != "" || rec.QueuedBehind != "" {
				h.Errorf("approved: %s, due %s, owner %q", rec.State, rec.Due, rec.Owner)
			}
			h.same(rec, h.get(rec))
			h.sleep(2 * time.Hour)
			h.nothing(ledger.Claim{Limit: 10})
		},
	},
	"never lent": {
		"only its caller makes the write",
		func(h *harness) {
			rec := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.sleep(1000 * time.Hour)
			h.nothing(ledger.Claim{Limit: 10})
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID})
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID, Early: true})
			h.same(rec, h.get(rec))
			for _, e := range []ledger.Event{announced, deferred(0), {Kind: ledger.EvDirected, By: "p", Reason: "r"}, {Kind: ledger.EvCompensating, Child: "wr_0", By: "p"}} {
				h.refused(ledger.ErrIllegalMove, rec, rec.Fence, e)
			}
			h.append(rec, escalated)
			h.nothing(ledger.Claim{Limit: 10})
			h.taken(rec, ledger.Claim{Tenant: "a", ID: rec.ID, Early: true}) // for a reviewer's decision
		},
	},
	"not without its events": {
		"a write that may not be sent must not be in the queue",
		func(h *harness) {
			res := h.handed(operation("a", "w1", "s1", "invoice 7"))
			res.Events = nil
			if _, _, err := h.ledger.Reserve(context.Background(), res); err == nil {
				h.Error("reserved without an event")
			}
			h.fresh(wish("a", "w1"))
			if recs := h.list(ledger.Filter{Tenant: "a"}); len(recs) != 1 {
				h.Errorf("%d writes, want 1", len(recs))
			}
		},
	},
	"stats": {
		"what is in callers' hands is counted as open, and as no actor's work",
		func(h *harness) {
			o := operation("a", "w1", "s1", "invoice 7")
			o.Destination = "shop"
			rec := h.reserve(h.handed(o))
			want := []ledger.Queue{{Tenant: "a", Destination: "shop", State: ledger.Delegated, Count: 1, Bytes: int64(len(rec.Intent)), OldestCreated: rec.Created}}
			if diff := cmp.Diff(want, h.queueStats().Queues); diff != "" {
				h.Errorf("queues (-want +got):\n%s", diff)
			}
			if recs := h.list(ledger.Filter{Tenant: "a", States: []ledger.State{ledger.Delegated}}); len(recs) != 1 || recs[0].ID != rec.ID {
				h.Errorf("listed %v", ids(recs))
			}
			h.append(rec, reported)
			if queues := h.queueStats().Queues; len(queues) != 0 {
				h.Errorf("queues when it is done: %v", queues)
			}
		},
	},
	"prune": {
		"what is in a caller's hands is never forgotten; when it is done, it is like any other",
		func(h *harness) {
			open := h.reserve(h.handed(operation("a", "w1", "s1", "open")))
			done := h.append(h.reserve(h.handed(operation("a", "w1", "s2", "done"))), reported)
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.lost(done)
			h.same(ledger.Compact(done), h.get(done), "Fence")
			h.blocked(h.reservation(named("a", "w2", "done")), h.get(done))
			h.sleep(remember)
			h.pruned(ledger.Pruned{Forgotten: 1})
			h.gone(done)
			h.same(open, h.get(open))
			h.fresh(named("a", "w2", "done"))
			h.blocked(h.reservation(named("a", "w3", "open")), open)
		},
	},
	"another digest": {
		"a step cannot change what it asks for",
		func(h *harness) {
			h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			o := operation("a", "w1", "s1", "invoice 7")
			o.Digest = "another"
			if _, _, err := h.ledger.Reserve(context.Background(), h.handed(o)); !errors.Is(err, ledger.ErrDigestMismatch) {
				h.Errorf("error %v", err)
			}
		},
	},
}

var stepOperations = map[string]scenario{
	"step and write": {
		"an operation is done once, whether readback makes the write or the caller does",
		func(h *harness) {
			step := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), step)
			h.blocked(h.handed(operation("a", "w2", "s1", "invoice 7")), step)
			write := h.fresh(named("a", "w3", "invoice 8"), announced)
			h.blocked(h.handed(operation("a", "w4", "s1", "invoice 8")), write)
			h.append(step, reported)
			h.append(write, sent, seen, verified)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), h.get(step))
			h.blocked(h.handed(operation("a", "w4", "s1", "invoice 8")), h.get(write))
		},
	},
	"of one workflow": {
		"a step and what is written in it are one operation, and its steps are the gate's business",
		func(h *harness) {
			h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.fresh(named("a", "w1", "invoice 7"), announced)
			h.reserve(h.handed(operation("a", "w1", "s2", "invoice 7")))
			second := named("a", "w1", "invoice 7")
			second.Step = "another"
			h.blocked(h.reservation(second), h.get(ledger.Record{Tenant: "a", ID: h.id(named("a", "w1", "invoice 7"))}))
			for _, step := range []string{"s3", "s4"} { // a write was first
				h.reserve(h.handed(operation("a", "w1", step, "invoice 7")))
			}
		},
	},
	"behind many of one workflow": {
		"a workflow's own steps do not hide another's",
		func(h *harness) {
			for i := range 5 {
				h.append(h.reserve(h.handed(operation("a", "w1", fmt.Sprint("s", i), "invoice 7"))), reported)
			}
			_, _, err := h.ledger.Reserve(context.Background(), h.handed(operation("a", "w2", "s1", "invoice 7")))
			if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || blocked.Prior.Workflow != "w1" {
				h.Fatalf("error %v", err)
			}
			h.reserve(h.handed(operation("a", "w1", "s9", "invoice 7")))
		},
	},
	"window": {
		"what was reported blocks for the window; what has not ended blocks however old it is",
		func(h *harness) {
			within := func(res ledger.Reservation) ledger.Reservation { res.Window = 24 * time.Hour; return res }
			open := h.reserve(h.handed(operation("a", "w1", "s1", "open")))
			done := h.append(h.reserve(h.handed(operation("a", "w1", "s2", "done"))), reported)
			review := h.append(h.reserve(h.handed(operation("a", "w1", "s3", "review"))), escalated)
			h.sleep(23 * time.Hour)
			h.blocked(within(h.reservation(named("a", "w2", "done"))), done)
			h.sleep(2 * time.Hour)
			h.blocked(within(h.reservation(named("a", "w2", "open"))), open)
			h.blocked(within(h.handed(operation("a", "w2", "s2", "review"))), review)
			h.blocked(h.reservation(named("a", "w2", "done")), done) // without a window: for ever
			h.reserve(within(h.reservation(named("a", "w2", "done"))))
		},
	},
	"came to nothing": {
		"an operation may be begun again when it is known that it was not done",
		func(h *harness) {
			for how, end := range map[string][]ledger.Event{
				"not applied": {settled(ledger.NotApplied)}, "yielded": {yielded}, "yielded later": {reported, yielded},
				"yielded in review": {escalated, yielded},
			} {
				prior := h.append(h.reserve(h.handed(operation("a", "w1", how, how))), end...)
				h.same(prior, h.get(prior))
				h.fresh(named("a", "w2 "+how, how))
			}
			for how, end := range map[string]ledger.Status{"denied": ledger.Denied, "expired": ledger.Expired} {
				prior := h.append(h.reserve(h.handed(operation("a", "w1", how, how), held)), settled(end))
				h.same(prior, h.get(prior))
				h.reserve(h.handed(operation("a", "w2 "+how, "s1", how)))
			}
		},
	},
	"yielded write": {
		"a reviewer can let the operation of a write go as well, by name and with a reason",
		func(h *harness) {
			prior := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, escalated)
			for _, e := range []ledger.Event{{Kind: ledger.EvYielded, By: "ann"}, {Kind: ledger.EvYielded, Reason: "r"}} {
				h.refused(ledger.ErrIllegalMove, prior, prior.Fence, e)
			}
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), prior)
			prior = h.append(prior, yielded)
			if !prior.Yielded || prior.State != ledger.Review || prior.Reason != "it is unknown" {
				h.Errorf("yielded %v, %s, reason %q", prior.Yielded, prior.State, prior.Reason)
			}
			h.same(prior, h.get(prior))
			second := h.fresh(named("a", "w2", "invoice 7"), announced)
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), second)
		},
	},
	"doubted again": {
		"a write that was thought not applied, and was found after all, blocks again",
		func(h *harness) {
			pending := settled(ledger.NotApplied)
			pending.In = time.Minute
			prior := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, missing, pending)
			h.sleep(2 * time.Minute)
			prior = h.append(h.taken(prior, ledger.Claim{}), seen, escalated)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), prior)
		},
	},
	"open first": {
		"of several that block, a caller hears of one that it can wait for",
		func(h *harness) {
			window := func(res ledger.Reservation) ledger.Reservation { res.Window = time.Hour; return res }
			h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			h.sleep(2 * time.Hour)
			open := h.reserve(window(h.handed(operation("a", "w2", "s1", "invoice 7"))))
			h.sleep(time.Minute)
			later := h.append(h.reserve(window(h.handed(operation("a", "w2", "s2", "invoice 7")))), reported)
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), open)
			h.append(open, yielded)
			h.blocked(h.reservation(named("a", "w3", "invoice 7")), later)
		},
	},
	"received": {
		"a key that was given to two different things is refused with both digests",
		func(h *harness) {
			prior := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			res := h.reservation(named("a", "w2", "invoice 7"))
			_, _, err := h.ledger.Reserve(context.Background(), res)
			if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || blocked.Received != res.Record.Digest || blocked.Prior.Digest != prior.Digest {
				h.Errorf("error %+v", err)
			}
		},
	},
	"other tenants": {
		"no tenant ever hears of another's operations",
		func(h *harness) {
			h.reserve(h.handed(operation("b", "w1", "s1", "invoice 7")))
			h.fresh(named("c", "w1", "invoice 7"), announced)
			h.reserve(h.handed(operation("a", "w2", "s1", "invoice 7")))
			o := operation("a", "w3", "s1", "invoice 7")
			o.Tool = "another"
			h.reserve(h.handed(o))
			if recs := h.list(ledger.Filter{Tenant: "a"}); len(recs) != 2 {
				h.Errorf("%d writes", len(recs))
			}
		},
	},
	"in one batch": {
		"a gate's step and its operation are taken together, or another workflow's is reported",
		func(h *harness) {
			did := h.file(batchOf(reserves(h.handed(operation("a", "w1", "s1", "invoice 7"))), writes(document("a", "w1/s1"))))
			_, err := h.ledger.Commit(context.Background(), batchOf(reserves(h.handed(operation("a", "w2", "s1", "invoice 7"))), writes(document("a", "w2/s1"))))
			if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || blocked.Prior.ID != did.Reserved.ID {
				h.Errorf("error %v", err)
			}
			h.noDocument(document("a", "w2/s1"))
			rec := did.Reserved
			p := did.Documents[0]
			did = h.file(batchOf(writes(p), changes(rec, reported)))
			if did.Documents[0].Version != 2 || did.Appended[0].Settlement != ledger.Reported {
				h.Errorf("completed: %+v", did)
			}
		},
	},
}
