package ledgertest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

var claiming = map[string]scenario{
	"nothing": {
		"an empty ledger has no work, and that is no error",
		func(h *harness) { h.nothing(ledger.Claim{Limit: 10}) },
	},
	"oldest due first": {
		"work that waits longest comes first, or some of it waits for ever",
		func(h *harness) {
			var want []ledger.ID
			recs := map[time.Duration]ledger.Record{}
			for _, in := range []time.Duration{3 * time.Minute, time.Minute, 2 * time.Minute, 4 * time.Minute} {
				recs[in] = h.append(h.fresh(wish("a", in.String())), deferred(in))
			}
			h.sleep(3*time.Minute + time.Second)
			for _, in := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute} {
				want = append(want, recs[in].ID)
			}
			if diff := cmp.Diff(want[:2], ids(h.claim(ledger.Claim{Limit: 2}))); diff != "" {
				h.Errorf("first two (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want[2:], ids(h.claim(ledger.Claim{Limit: 10}))); diff != "" {
				h.Errorf("the rest (-want +got):\n%s", diff)
			}
			h.sleep(2 * time.Minute)
			h.taken(recs[4*time.Minute], ledger.Claim{})
		},
	},
	"one by default": {
		"a claim that names no limit takes one record, not all",
		func(h *harness) {
			for _, name := range []string{"w1", "w2"} {
				h.append(h.fresh(wish("a", name)), deferred(0))
			}
			if got := h.claim(ledger.Claim{}); len(got) != 1 {
				h.Errorf("got %v", ids(got))
			}
		},
	},
	"not yet due": {
		"what was put back rests until its time",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1")), deferred(time.Minute))
			h.nothing(ledger.Claim{})
			h.sleep(59 * time.Second)
			h.nothing(ledger.Claim{})
			h.sleep(2 * time.Second)
			h.taken(rec, ledger.Claim{})
		},
	},
	"lease": {
		"a lease is respected, even by the same worker: it is not re-entrant",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.nothing(ledger.Claim{Owner: "two"})
			h.nothing(ledger.Claim{Owner: "one"})
			h.nothing(ledger.Claim{Owner: "one", Tenant: "a", ID: rec.ID})
			h.nothing(ledger.Claim{Owner: "one", Tenant: "a", ID: rec.ID, Early: true})
			h.same(rec, h.get(rec))
		},
	},
	"orphan": {
		"a worker that died leaves its record to the next one, under a higher fence",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease - time.Minute)
			h.nothing(ledger.Claim{})
			h.sleep(2 * time.Minute)
			next := h.taken(rec, ledger.Claim{})
			if next.Fence <= rec.Fence || next.Owner != "two" || next.State != ledger.Sending || next.Seq != rec.Seq {
				h.Errorf("got fence %d after %d, owner %q, %s", next.Fence, rec.Fence, next.Owner, next.State)
			}
			h.same(next, h.get(rec))
			h.nothing(ledger.Claim{Owner: "three"})
			h.sleep(lease + time.Minute)
			if third := h.taken(rec, ledger.Claim{Owner: "three"}); third.Fence <= next.Fence {
				h.Errorf("got fence %d after %d", third.Fence, next.Fence)
			}
		},
	},
	"append extends": {
		"a worker keeps its record",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.sleep(lease - time.Minute)
			rec = h.append(rec, sent)
			h.sleep(2 * time.Minute)
			h.nothing(ledger.Claim{})
			h.sleep(lease - 3*time.Minute)
			rec = h.append(rec) // a sign of life, and nothing else
			if rec.Seq != 3 {
				h.Errorf("an append of nothing made event %d", rec.Seq)
			}
			h.sleep(2 * time.Minute)
			h.nothing(ledger.Claim{})
		},
	},
	"one record": {
		"a claim that names a record gets that one or nothing",
		func(h *harness) {
			first := h.append(h.fresh(wish("a", "w1")), deferred(0))
			second := h.append(h.fresh(wish("a", "w2")), deferred(0))
			h.taken(second, ledger.Claim{Tenant: "a", ID: second.ID, Limit: 10})
			h.nothing(ledger.Claim{Tenant: "a", ID: second.ID})
			h.nothing(ledger.Claim{Tenant: "a", ID: ledger.IDOf("0")})
			h.taken(first, ledger.Claim{Limit: 10})
		},
	},
	"early": {
		"a reviewer's decision need not wait until a record is due; a poll must",
		func(h *harness) {
			later := h.append(h.fresh(wish("a", "w1")), deferred(time.Minute))
			never := h.append(h.fresh(wish("a", "w2")), escalated)
			h.nothing(ledger.Claim{Early: true, Limit: 10})
			h.nothing(ledger.Claim{Tenant: "a", ID: later.ID})
			h.taken(later, ledger.Claim{Tenant: "a", ID: later.ID, Early: true})
			h.taken(never, ledger.Claim{Tenant: "a", ID: never.ID, Early: true})
		},
	},
	"half a name": {
		"a claim for a tenant that forgot the record must not take everybody's",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1")), deferred(0))
			for _, c := range []ledger.Claim{{Tenant: "a"}, {ID: rec.ID}} {
				c.Owner, c.LeaseFor = "two", lease
				if recs, err := h.ledger.Claim(context.Background(), c); err == nil {
					h.Errorf("%+v: got %v, want an error", c, ids(recs))
				}
			}
		},
	},
	"settled": {
		"a settled write is work only while a recheck is pending",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			pending := verified
			pending.In = time.Minute
			rec := h.append(h.fresh(wish("a", "w2"), announced), sent, seen, pending)
			h.nothing(ledger.Claim{Limit: 10})
			h.sleep(2 * time.Minute)
			rec = h.taken(rec, ledger.Claim{Limit: 10})
			h.append(rec, ledger.Event{Kind: ledger.EvRechecked})
			h.sleep(2 * lease)
			h.nothing(ledger.Claim{Limit: 10})
		},
	},
	"gone": {
		"the lease of a process that has ended counts for nothing, and that process is fenced",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.nothing(ledger.Claim{Owner: "two", Gone: rec.Owner, Limit: 10})
			h.nothing(ledger.Claim{Owner: "two", Gone: "two", Tenant: "a", ID: rec.ID})
			h.taken(rec, ledger.Claim{Owner: "two", Gone: rec.Owner, Tenant: "a", ID: rec.ID})
			h.refused(ledger.ErrFenced, rec, rec.Fence, sent)
			free := h.append(h.fresh(wish("a", "w2")), deferred(time.Minute))
			h.nothing(ledger.Claim{Owner: "two", Tenant: "a", ID: free.ID})
		},
	},
	"held": {
		"nothing that waits for a reviewer is work, until the reviewer has spoken",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), held)
			h.sleep(2 * lease)
			h.nothing(ledger.Claim{Limit: 10})
			rec = h.taken(rec, ledger.Claim{Tenant: "a", ID: rec.ID, Early: true})
			h.append(rec, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, deferred(0))
			h.taken(rec, ledger.Claim{Owner: "three"})
		},
	},
}
