package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

const (
	keep     = 24 * time.Hour
	remember = 72 * time.Hour
)

// prune prunes what the scenarios' bounds allow, and says what was done.
func (h *harness) prune(limit int) ledger.Pruned {
	h.Helper()
	return h.pruneBy(ledger.Prune{Keep: keep, Remember: remember, Limit: limit})
}

// pruneBy prunes by other bounds.
func (h *harness) pruneBy(p ledger.Prune) ledger.Pruned {
	h.Helper()
	h.seal() // what is not sealed is not forgotten
	return h.pruneAsItIs(p)
}

// pruneUnsealed prunes without sealing first.
func (h *harness) pruneUnsealed() ledger.Pruned {
	h.Helper()
	return h.pruneAsItIs(ledger.Prune{Keep: keep, Remember: remember})
}

func (h *harness) pruneAsItIs(p ledger.Prune) ledger.Pruned {
	h.Helper()
	before := h.prunable(p)
	did, err := h.ledger.Prune(context.Background(), p)
	if err != nil {
		h.Fatalf("prune: %v", err)
	}
	after := h.prunable(p)
	nothing := did.Compacted+did.Forgotten == 0 && after.Compacted+after.Forgotten > 0
	if nothing || before.Compacted != did.Compacted+after.Compacted || before.Forgotten != did.Forgotten+after.Forgotten {
		h.Errorf("a dry run counted %+v; pruned were %+v, and then it counted %+v", before, did, after)
	}
	return did
}

// prunable counts what is left to prune.
func (h *harness) prunable(p ledger.Prune) ledger.Pruned {
	h.Helper()
	p.DryRun = true
	did, err := h.ledger.Prune(context.Background(), p)
	if err != nil {
		h.Fatalf("dry run: %v", err)
	}
	if (did.Bytes > 0) != (did.Compacted > 0) && did.Forgotten == 0 || did.Documents+did.Changes > 0 {
		h.Errorf("a dry run counted %+v", did)
	}
	return did
}

// pruned prunes, and says what must have gone, but for changes.
func (h *harness) pruned(want ledger.Pruned) {
	h.Helper()
	if diff := cmp.Diff(want, h.prune(0), cmpopts.IgnoreFields(ledger.Pruned{}, "Changes")); diff != "" {
		h.Fatalf("prune (-want +got):\n%s", diff)
	}
}

// lost says that the events of records are no longer all there, on purpose.
func (h *harness) lost(recs ...ledger.Record) {
	h.made = slices.DeleteFunc(h.made, func(made ledger.Record) bool {
		return slices.ContainsFunc(recs, func(r ledger.Record) bool { return r.ID == made.ID })
	})
}

// done makes a write that is settled as verified.
func (h *harness) done(workflow string) ledger.Record {
	h.Helper()
	return h.append(h.fresh(named("a", workflow, "op "+workflow), announced), sent, seen, verified)
}

func (h *harness) gone(r ledger.Record) {
	h.Helper()
	if _, err := h.ledger.Get(context.Background(), r.Tenant, r.ID); !errors.Is(err, ledger.ErrNotFound) {
		h.Errorf("get: error %v, want that the write is forgotten", err)
	}
}

// family is a write, and a verified one that undoes it.
func (h *harness) family(name string) (parent, child ledger.Record) {
	h.Helper()
	parent = h.append(h.fresh(wish("a", "parent"+name), announced), sent, seen)
	undo := wish("a", "undo"+name)
	undo.Compensates = string(parent.ID)
	return parent, h.append(h.fresh(undo, announced), sent, seen, verified)
}

var pruning = map[string]scenario{
	"tombstone": {
		"a write that was pruned is still known: it is not sent again, and it says how it ended",
		func(h *harness) {
			rec := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent,
				ledger.Event{Kind: ledger.EvRead, Verdict: "verified", URL: "https://shop.invalid/17", Evidence: []byte(`{"a": 1}`)},
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "seen", Reason: "all as asked"})
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.lost(rec)
			want := ledger.Compact(rec)
			h.same(want, h.get(rec), "Fence")
			if got := h.get(rec); got.Intent != nil || got.Evidence != nil || got.Fence <= rec.Fence {
				h.Errorf("the tombstone has intent %q, evidence %q, fence %d after %d", got.Intent, got.Evidence, got.Fence, rec.Fence)
			}
			if events := h.events(rec); len(events) != 0 {
				h.Errorf("%d events are left", len(events))
			}
			h.same(want, h.replayed(h.reservation(named("a", "w1", "invoice 7"))), "Fence")
			h.same(want, h.list(ledger.Filter{Tenant: "a"})[0], "Fence")
			h.pruned(ledger.Pruned{})
		},
	},
	"tombstone refuses": {
		"one logical write cannot change what it asks for, nor be begun elsewhere, because it is old",
		func(h *harness) {
			rec := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			h.sleep(keep)
			h.prune(0)
			h.lost(rec)
			other := named("a", "w1", "invoice 7")
			other.Expect["state"] = "closed"
			if _, _, err := h.ledger.Reserve(context.Background(), h.reservation(other)); !errors.Is(err, ledger.ErrDigestMismatch) {
				h.Errorf("another digest: error %v", err)
			}
			_, _, err := h.ledger.Reserve(context.Background(), h.reservation(named("a", "w2", "invoice 7")))
			if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || blocked.Prior.ID != rec.ID {
				h.Errorf("same operation elsewhere: error %v", err)
			}
		},
	},
	"tombstone lets its operation go": {
		"a reviewer can release what an old write blocks, for as long as it does so",
		func(h *harness) {
			rec := h.append(h.fresh(named("a", "w1", "invoice 7"), announced), sent, seen, verified)
			h.sleep(keep)
			h.prune(0)
			h.lost(rec)
			h.blocked(h.reservation(named("a", "w2", "invoice 7")), h.get(rec))
			if got := h.append(h.get(rec), yielded); !got.Tombstone || !got.Yielded {
				h.Errorf("tombstone %v, yielded %v", got.Tombstone, got.Yielded)
			}
			if events := h.events(rec); len(events) != 1 || events[0].By != yielded.By || events[0].Reason != yielded.Reason {
				h.Errorf("events %v, want who released it, and why", events)
			}
			h.fresh(named("a", "w2", "invoice 7"))
			h.sleep(remember - keep)
			h.prune(0)
			h.gone(rec)
		},
	},
	"tombstone is no work": {
		"no worker can continue a write without its intent; evidence of a past holder is kept",
		func(h *harness) {
			rec := h.done("w1")
			h.sleep(keep)
			h.prune(0)
			h.lost(rec)
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID, Early: true})
			h.refused(ledger.ErrFenced, rec, rec.Fence, escalated)
			h.refused(ledger.ErrIllegalMove, rec, h.get(rec).Fence, escalated)
			h.append(h.get(rec), ledger.Event{Kind: ledger.EvLate, By: "one", Ref: "18"})
			if events := h.events(rec); len(events) != 1 || events[0].Ref != "18" {
				h.Errorf("events %v, want the late one", events)
			}
		},
	},
	"forgotten": {
		"in the end nothing is left, and the keys are free",
		func(h *harness) {
			rec := h.done("w1")
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.sleep(remember - keep - time.Minute)
			h.pruned(ledger.Pruned{})
			h.sleep(time.Minute)
			h.pruned(ledger.Pruned{Forgotten: 1})
			h.lost(rec)
			h.gone(rec)
			h.fresh(named("a", "w2", "op w1"))
			h.fresh(named("a", "w1", "op of another kind"))
		},
	},
	"not before its time": {
		"the time runs from the settling, and not from the beginning",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, escalated)
			h.sleep(2 * remember)
			h.append(rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "ann"})
			h.sleep(keep - time.Minute)
			h.pruned(ledger.Pruned{})
			h.sleep(time.Minute)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.lost(rec)
		},
	},
	"open stays": {
		"what is not settled is never forgotten, however old; nor what needs a recheck or is read now",
		func(h *harness) {
			h.fresh(wish("a", "queued"))
			h.fresh(wish("a", "held"), held)
			h.fresh(wish("a", "sending"), announced)
			h.append(h.fresh(wish("a", "checking"), announced), sent, deferred(time.Hour))
			h.append(h.fresh(wish("a", "review"), announced), sent, escalated)
			h.append(h.fresh(wish("a", "recheck"), announced), sent, seen,
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: 10 * remember})
			leased := h.done("leased")
			h.sleep(2 * remember)
			h.taken(leased, ledger.Claim{Tenant: "a", ID: leased.ID, Early: true})
			h.pruned(ledger.Pruned{})
			if n := len(h.list(ledger.Filter{Tenant: "a"})); n != 7 {
				h.Errorf("%d of 7 writes are left", n)
			}
		},
	},
	"recheck made": {
		"a write is forgotten like any other after its recheck",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen,
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: time.Hour})
			h.sleep(2 * keep)
			h.pruned(ledger.Pruned{})
			h.append(h.taken(rec, ledger.Claim{}), ledger.Event{Kind: ledger.EvRechecked})
			h.pruned(ledger.Pruned{Compacted: 1})
			h.lost(rec)
		},
	},
	"family": {
		"a write and its undoing are needed together: neither goes before the other is done",
		func(h *harness) {
			parent, child := h.family("")
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID})
			h.sleep(2 * remember)
			h.pruned(ledger.Pruned{})
			h.append(parent, settled(ledger.Compensated))
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 2})
			h.lost(parent, child)
			h.pruned(ledger.Pruned{Forgotten: 1})
			h.gone(child)
			h.sleep(remember - keep)
			h.pruned(ledger.Pruned{Forgotten: 1})
			h.gone(parent)
		},
	},
	"re-opened": {
		"a reviewer still finds how the undo of a write ended",
		func(h *harness) {
			parent, child := h.family("")
			h.sleep(time.Second)
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID}, settled(ledger.Compensated))
			h.sleep(keep)
			if got := h.prune(1); got.Compacted != 1 || !h.get(child).Tombstone {
				h.Fatalf("compacted %d; want the undoing", got.Compacted)
			}
			h.lost(child)
			h.append(h.taken(parent, ledger.Claim{Tenant: "a", ID: parent.ID, Early: true}), escalated)
			h.sleep(2 * remember)
			h.pruned(ledger.Pruned{})
		},
	},
	"line": {
		"the head of a queue is not affected when the one before it is forgotten",
		func(h *harness) {
			first := h.fresh(wish("a", "w1"), announced)
			w := wish("a", "w2")
			w.Key = wish("a", "w1").Key
			second := h.fresh(w)
			h.append(first, sent, seen, verified)
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.sleep(remember)
			h.pruned(ledger.Pruned{Forgotten: 1})
			h.lost(first)
			h.taken(second, ledger.Claim{})
		},
	},
	"dry run": {
		"what is counted is what a prune deletes until nothing is left, and nothing is deleted",
		func(h *harness) {
			parent, child := h.family("")
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID}, settled(ledger.Compensated))
			h.sleep(remember - keep)
			later := h.done("later")
			open := h.fresh(wish("a", "open"))
			h.sleep(keep)
			h.seal()
			p := ledger.Prune{Keep: keep, Remember: remember, Limit: 1}
			want := h.prunable(p)
			if want.Compacted != 3 || want.Forgotten != 2 || want.Bytes < int64(len(parent.Intent)+len(child.Intent)+len(later.Intent)) {
				h.Errorf("counted %+v, want 3 compacted, and the 2 oldest forgotten after it", want)
			}
			for _, r := range []ledger.Record{parent, child, later, open} {
				h.same(r, h.get(r))
			}
			var did ledger.Pruned
			for {
				step := h.prune(1)
				if step.Compacted+step.Forgotten == 0 {
					break
				}
				did.Compacted, did.Forgotten = did.Compacted+step.Compacted, did.Forgotten+step.Forgotten
			}
			if did.Compacted != want.Compacted || did.Forgotten != want.Forgotten {
				h.Errorf("pruned %+v, counted %+v", did, want)
			}
			h.lost(parent, child, later)
		},
	},
	"limit": {
		"one call does a bounded part, oldest first, and the next ones the rest",
		func(h *harness) {
			var all []ledger.Record
			for i := range 7 {
				all = append(all, h.done(fmt.Sprint("w", i)))
				h.sleep(time.Second)
			}
			h.lost(all...)
			h.sleep(keep)
			for _, want := range []int{3, 3, 1, 0} {
				if got := h.prune(3); got.Compacted != want || got.Forgotten != 0 {
					h.Fatalf("compacted %d, forgotten %d; want %d compacted", got.Compacted, got.Forgotten, want)
				}
				if want == 3 && !h.get(all[0]).Tombstone {
					h.Error("the oldest was not taken first")
				}
			}
			h.sleep(remember)
			for _, want := range []int{5, 2, 0} {
				if got := h.prune(5); got.Forgotten != want || got.Compacted != 0 {
					h.Fatalf("compacted %d, forgotten %d; want %d forgotten", got.Compacted, got.Forgotten, want)
				}
			}
		},
	},
	"past what stays": {
		"writes that cannot be forgotten yet do not keep the later ones",
		func(h *harness) {
			for i := range 5 {
				parent, child := h.family(fmt.Sprint(i))
				h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID})
			}
			h.sleep(time.Second)
			later := h.done("later")
			h.sleep(keep)
			if got := h.prune(2); got.Compacted != 1 {
				h.Errorf("compacted %d, want the later one", got.Compacted)
			}
			h.lost(later)
		},
	},
	"bounds": {
		"a keep that was forgotten must not mean at once, and no memory may be shorter than the record",
		func(h *harness) {
			for reason, p := range map[string]ledger.Prune{
				"nothing": {}, "no keep": {Remember: keep}, "no remember": {Keep: keep},
				"remember is shorter": {Keep: remember, Remember: keep}, "below zero": {Keep: -1, Remember: -1},
				"no keep of a tenant":           {Keep: keep, Remember: remember, Tenants: map[string]time.Duration{"a": 0}},
				"a destination's is longer":     {Keep: keep, Remember: remember, Destinations: map[string]time.Duration{"shop": 2 * remember}},
				"kept for ever, not remembered": {Keep: ledger.Forever, Remember: remember},
			} {
				if _, err := h.ledger.Prune(context.Background(), p); err == nil {
					h.Errorf("%s: no error", reason)
				}
			}
		},
	},
	"parties": {
		"a destination's own time counts, or else the tenant's; of both the shorter one; or else the general one",
		func(h *harness) {
			p := ledger.Prune{Keep: 10 * time.Hour, Remember: remember,
				Tenants:      map[string]time.Duration{"brief": 5 * time.Hour, "lasting": 20 * time.Hour},
				Destinations: map[string]time.Duration{"short": 3 * time.Hour, "long": 15 * time.Hour}}
			due := map[int][]ledger.Record{} // by the hour
			for _, c := range []struct {
				tenant, destination string
				hours               int
			}{
				{"a", "short", 3}, {"brief", "short", 3}, {"lasting", "short", 3},
				{"brief", "shop", 5}, {"brief", "long", 5},
				{"a", "shop", 10}, {"b", "shop", 10},
				{"a", "long", 15}, {"lasting", "long", 15}, {"lasting", "shop", 20},
			} {
				w := wish(c.tenant, "w "+c.destination)
				w.Destination = c.destination
				due[c.hours] = append(due[c.hours], h.append(h.fresh(w, announced), sent, seen, verified))
			}
			for hour := 1; hour <= 21; hour++ {
				h.sleep(time.Hour - time.Minute)
				if got := h.pruneBy(p).Compacted; got != 0 {
					h.Errorf("%d became tombstones a minute before hour %d", got, hour)
				}
				h.sleep(time.Minute)
				if got := h.pruneBy(p).Compacted; got != len(due[hour]) {
					h.Errorf("%d became tombstones in hour %d, want %d", got, hour, len(due[hour]))
				}
				for _, r := range due[hour] {
					if !h.get(r).Tombstone {
						h.Errorf("hour %d: the write of %s to %s is no tombstone", hour, r.Tenant, r.Destination)
					}
				}
				h.lost(due[hour]...)
			}
			h.sleep(remember)
			if got := h.pruneBy(p).Forgotten; got != 10 {
				h.Errorf("%d were forgotten, want all 10: a tombstone has no time of its own", got)
			}
		},
	},
	"kept for ever": {
		"what is kept for ever stays with everything while other writes are pruned, of the one tenant or of all others",
		func(h *harness) {
			ever := map[string]time.Duration{"a": ledger.Forever}
			kept, other := h.done("w1"), h.append(h.fresh(wish("b", "w2"), announced), sent, seen, verified)
			h.sleep(100 * remember)
			if got := h.pruneBy(ledger.Prune{Keep: keep, Remember: remember, Tenants: ever}); got.Compacted != 1 || !h.get(other).Tombstone {
				h.Errorf("%d became tombstones, want the one of b", got.Compacted)
			}
			h.lost(other)
			all := ledger.Prune{Keep: ledger.Forever, Remember: ledger.Forever}
			if got := h.pruneBy(all); got.Compacted+got.Forgotten != 0 || !h.get(other).Tombstone {
				h.Errorf("%d became tombstones and %d were forgotten, want none", got.Compacted, got.Forgotten)
			}
			if h.get(kept).Tombstone {
				h.Error("the write of a is a tombstone")
			}
			all.Tenants = map[string]time.Duration{"a": keep}
			if got := h.pruneBy(all); got.Compacted != 1 || !h.get(kept).Tombstone {
				h.Errorf("%d became tombstones, want the one of a, and everything of the others stays", got.Compacted)
			}
			h.lost(kept)
		},
	},
	"limit of parties": {
		"one call does a bounded part of all tenants and destinations together, and the next ones the rest",
		func(h *harness) {
			for i := range 5 {
				h.lost(h.append(h.fresh(wish(fmt.Sprint("t", i), "w"), announced), sent, seen, verified))
			}
			h.sleep(keep)
			for _, want := range []int{2, 2, 1, 0} {
				if got := h.prune(2); got.Compacted != want {
					h.Fatalf("%d became tombstones, want %d", got.Compacted, want)
				}
			}
		},
	},
	"together": {
		"workers that prune at the same time do it once",
		func(h *harness) {
			for i := range 20 {
				h.lost(h.done(fmt.Sprint("w", i)))
			}
			h.seal()
			h.sleep(keep)
			did := make([]ledger.Pruned, 4)
			p := h.ledger
			together(len(did), func(i int) {
				var err error
				if did[i], err = p.Prune(context.Background(), ledger.Prune{Keep: keep, Remember: remember}); err != nil {
					h.Errorf("prune: %v", err)
				}
			})
			compacted := 0
			for _, d := range did {
				compacted += d.Compacted
			}
			if compacted != 20 || h.prune(0).Compacted != 0 {
				h.Errorf("%d were compacted, want 20", compacted)
			}
		},
	},
}
