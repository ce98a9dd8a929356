package ledgertest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// at is a wish of a tenant for a destination.
func at(tenant, destination, workflow string) intent.WriteIntent {
	w := wish(tenant, workflow)
	w.Destination = destination
	return w
}

// backlog queues many writes of one tenant for one destination.
func (h *harness) backlog(tenant, destination string, n int) {
	h.Helper()
	reservations := make([]ledger.Reservation, n)
	for i := range reservations {
		reservations[i] = h.reservation(at(tenant, destination, fmt.Sprint(destination, " ", i)))
		reservations[i].Owner, reservations[i].LeaseFor = "", 0
	}
	const hands = 50
	together(hands, func(hand int) {
		for i := hand; i < n; i += hands {
			if _, fresh, err := h.ledger.Reserve(context.Background(), reservations[i]); err != nil || !fresh {
				h.Errorf("reserve: fresh %v, error %v", fresh, err)
			}
		}
	})
}

// shares counts what was lent of each tenant and destination.
func shares(recs []ledger.Record) map[string]int {
	got := map[string]int{}
	for _, r := range recs {
		got[r.Tenant+" "+r.Destination]++
	}
	return got
}

func (h *harness) shared(c ledger.Claim, want map[string]int) {
	h.Helper()
	if diff := cmp.Diff(want, shares(h.claim(c))); diff != "" {
		h.Errorf("shares of %+v (-want +got):\n%s", c, diff)
	}
}

var fairness = map[string]scenario{
	"one with a thousand": {
		"no backlog of one tenant or destination keeps another waiting",
		func(h *harness) {
			h.backlog("a", "d1", 1000)
			want := map[string]int{"a d1": 1}
			for _, tenant := range []string{"a", "b", "c"} {
				for _, destination := range []string{"d1", "d2", "d3"} {
					if tenant+destination != "ad1" {
						h.queuedUp(at(tenant, destination, tenant+destination))
						want[tenant+" "+destination] = 1
					}
				}
			}
			h.shared(ledger.Claim{Limit: 9}, want)
			h.shared(ledger.Claim{Limit: 20}, map[string]int{"a d1": 20})
		},
	},
	"the rest goes to who has more": {
		"a place in the rotation that no party needs is not lost",
		func(h *harness) {
			h.backlog("a", "d1", 20)
			h.backlog("b", "d1", 3)
			h.backlog("b", "d2", 1)
			h.shared(ledger.Claim{Limit: 12}, map[string]int{"a d1": 8, "b d1": 3, "b d2": 1})
		},
	},
	"oldest of each": {
		"each party gives what waits longest there",
		func(h *harness) {
			var want []ledger.ID
			for _, in := range []time.Duration{5 * time.Minute, 3 * time.Minute, 4 * time.Minute} {
				for _, destination := range []string{"d1", "d2"} {
					rec := h.append(h.fresh(at("a", destination, destination+in.String())), deferred(in))
					if in == 3*time.Minute {
						want = append(want, rec.ID)
					}
				}
			}
			h.sleep(10 * time.Minute)
			got := map[ledger.ID]bool{}
			for _, r := range h.claim(ledger.Claim{Limit: 2}) {
				got[r.ID] = true
			}
			if diff := cmp.Diff(map[ledger.ID]bool{want[0]: true, want[1]: true}, got); diff != "" {
				h.Errorf("(-want +got):\n%s", diff)
			}
		},
	},
	"states in one place": {
		"queued sends and pending rechecks of one party share its place in the rotation, oldest due first",
		func(h *harness) {
			pending := verified
			pending.In = time.Minute
			old := h.append(h.fresh(at("a", "d1", "w1"), announced), sent, seen, pending)
			h.sleep(2 * time.Minute)
			young := h.queuedUp(at("a", "d1", "w2"))
			other := h.queuedUp(at("b", "d1", "w3"))
			if diff := cmp.Diff([]ledger.ID{old.ID, other.ID}, ids(h.claim(ledger.Claim{Limit: 2}))); diff != "" {
				h.Errorf("(-want +got):\n%s", diff)
			}
			h.taken(young, ledger.Claim{Limit: 2})
		},
	},
	"most": {
		"a destination that can take no more gets no more, and the others do",
		func(h *harness) {
			h.backlog("a", "d1", 10)
			h.backlog("b", "d1", 10)
			h.backlog("a", "d2", 10)
			h.backlog("a", "d3", 4)
			h.shared(ledger.Claim{Limit: 12, Most: map[string]int{"d1": 3, "d2": 0}},
				map[string]int{"a d1": 2, "b d1": 1, "a d3": 4})
			h.shared(ledger.Claim{Limit: 30, Most: map[string]int{"d1": 100}},
				map[string]int{"a d1": 8, "b d1": 9, "a d2": 10})
		},
	},
	"paused": {
		"a destination that is stopped gets no sends; what was sent is read back all the same",
		func(h *harness) {
			h.backlog("a", "d1", 20)
			h.backlog("a", "d2", 2)
			pending := verified
			pending.In = time.Minute
			h.append(h.fresh(at("a", "d1", "w1"), announced), sent, seen, pending)
			h.append(h.fresh(at("a", "d1", "w2"), announced), sent, missing, deferred(time.Minute))
			h.fresh(at("a", "d1", "w3"), announced)
			h.sleep(2 * lease)
			c := ledger.Claim{Limit: 40, Paused: []string{"d1", "d9"}}
			recs := h.claim(c)
			got := map[string]int{}
			for _, r := range recs {
				got[r.Destination+" "+string(r.State)]++
			}
			want := map[string]int{"d1 settled": 1, "d1 checking": 1, "d1 sending": 1, "d2 queued": 2}
			if diff := cmp.Diff(want, got); diff != "" {
				h.Errorf("(-want +got):\n%s", diff)
			}
			h.nothing(c)
			h.shared(ledger.Claim{Limit: 40}, map[string]int{"a d1": 20})
		},
	},
	"paused by name": {
		"who asks for one write by its name hears that it is stopped as well",
		func(h *harness) {
			rec := h.queuedUp(at("a", "d1", "w1"))
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID, Paused: []string{"d1"}})
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID, Most: map[string]int{"d1": 0}})
			h.taken(rec, ledger.Claim{Tenant: "a", ID: rec.ID, Paused: []string{"d2"}, Most: map[string]int{"d1": 1}})
		},
	},
}
