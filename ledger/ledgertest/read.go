package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

var reading = map[string]scenario{
	"not there": {
		"absence has its own error",
		func(h *harness) {
			h.fresh(wish("a", "w1"))
			id := ledger.IDOf("0")
			if _, err := h.ledger.Get(context.Background(), "a", id); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("get: error %v", err)
			}
			if _, err := h.ledger.Events(context.Background(), "a", id); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("events: error %v", err)
			}
			if _, err := h.ledger.List(context.Background(), ledger.Filter{Tenant: "a", Before: id}); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("list: error %v: an empty page would look like the last one", err)
			}
		},
	},
	"now": {
		"a read of a record returns the time on the ledger's clock",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"))
			h.sleep(lease)
			for name, got := range map[string]ledger.Record{
				"get": h.get(rec), "list": h.list(ledger.Filter{Tenant: "a"})[0],
				"reserve": h.replayed(h.reservation(wish("a", "w1"))),
			} {
				if got.Now.Before(rec.Created.Add(lease)) {
					h.Errorf("%s: now %s, created %s", name, got.Now, rec.Created)
				}
			}
		},
	},
	"newest first": {
		"a listing begins with what happened last, in every state and page size",
		func(h *harness) {
			var all []ledger.ID
			for i := range 7 {
				rec := h.fresh(wish("a", fmt.Sprint("w", i)))
				if i%3 == 1 {
					h.append(rec, escalated)
				}
				if i%3 == 2 {
					h.append(rec, announced, sent, seen, verified)
				}
				all = append(all, rec.ID)
			}
			slices.Reverse(all)
			review, both := []ledger.ID{all[2], all[5]}, []ledger.ID{all[1], all[2], all[4], all[5]}
			for name, c := range map[string]struct {
				f    ledger.Filter
				want []ledger.ID
			}{
				"all":          {ledger.Filter{}, all},
				"limit":        {ledger.Filter{Limit: 3}, all[:3]},
				"before":       {ledger.Filter{Before: all[2]}, all[3:]},
				"before limit": {ledger.Filter{Before: all[2], Limit: 2}, all[3:5]},
				"last":         {ledger.Filter{Before: all[6]}, []ledger.ID{}},
				"state":        {ledger.Filter{States: []ledger.State{ledger.Review}}, review},
				"two states":   {ledger.Filter{States: []ledger.State{ledger.Review, ledger.Settled}}, both},
				"state twice":  {ledger.Filter{States: []ledger.State{ledger.Review, ledger.Review}}, review},
				"none in it":   {ledger.Filter{States: []ledger.State{ledger.Held}}, []ledger.ID{}},
				"state before": {ledger.Filter{States: []ledger.State{ledger.Review}, Before: all[3]}, review[1:]},
			} {
				c.f.Tenant = "a"
				if diff := cmp.Diff(c.want, ids(h.list(c.f))); diff != "" {
					h.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		},
	},
	"whole records": {
		"a listing shows what a read of each record shows",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			h.fresh(wish("a", "w2"), held)
			for _, rec := range h.list(ledger.Filter{Tenant: "a"}) {
				h.same(h.get(rec), rec)
			}
		},
	},
	"bounded": {
		"a listing that names no limit is a page, and no page is endless",
		func(h *harness) {
			for i := range 120 {
				res := h.reservation(wish("a", fmt.Sprint("w", i)))
				if _, _, err := h.ledger.Reserve(context.Background(), res); err != nil {
					h.Fatal(err)
				}
			}
			for limit, want := range map[int]int{0: 100, 110: 110, 100000: 120} {
				if got := len(h.list(ledger.Filter{Tenant: "a", Limit: limit})); got != want {
					h.Errorf("limit %d: %d records, want %d", limit, got, want)
				}
			}
		},
	},
}

var tenants = map[string]scenario{
	"apart": {
		"no tenant sees or takes what belongs to another",
		func(h *harness) {
			mine := h.append(h.fresh(wish("a", "w1")), deferred(0))
			yours := h.append(h.fresh(wish("b", "w1")), deferred(0))
			if mine.ID == yours.ID {
				h.Fatal("one id for two tenants")
			}
			if _, err := h.ledger.Get(context.Background(), "a", yours.ID); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("get: error %v", err)
			}
			if _, err := h.ledger.Events(context.Background(), "a", yours.ID); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("events: error %v", err)
			}
			if _, err := h.ledger.List(context.Background(), ledger.Filter{Tenant: "a", Before: yours.ID}); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("list: error %v", err)
			}
			if diff := cmp.Diff([]ledger.ID{mine.ID}, ids(h.list(ledger.Filter{Tenant: "a"}))); diff != "" {
				h.Errorf("list (-want +got):\n%s", diff)
			}
			h.nothing(ledger.Claim{Tenant: "a", ID: yours.ID})
			h.nothing(ledger.Claim{Tenant: "a", ID: yours.ID, Early: true})
		},
	},
	"required": {
		"a forgotten tenant must not mean everybody's",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"))
			if recs, err := h.ledger.List(context.Background(), ledger.Filter{}); err == nil {
				h.Errorf("list: got %v, want an error", ids(recs))
			}
			if _, err := h.ledger.Get(context.Background(), "", rec.ID); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("get: error %v", err)
			}
		},
	},
	"workers serve all": {
		"a worker of the process takes work of any tenant",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1")), deferred(0))
			h.append(h.fresh(wish("b", "w1")), deferred(0))
			if got := h.claim(ledger.Claim{Limit: 10}); len(got) != 2 {
				h.Errorf("got %v", ids(got))
			}
		},
	},
}
