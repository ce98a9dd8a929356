package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
)

// Tear damages the row of a write by hand, beside the ledger: its body can no
// longer be decoded, or, with contradict, a column says something else.
type Tear func(t *testing.T, id ledger.ID, contradict bool)

// Damage runs the scenarios of rows that were damaged by hand. Open must return
// an empty ledger each time, and how its rows are damaged.
func Damage(t *testing.T, open func(t *testing.T) (ledger.Ledger, Tear), o Options) {
	for _, name := range slices.Sorted(maps.Keys(damages)) {
		for kind, contradict := range map[string]bool{"undecodable": false, "contradicted": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := damages[name]
				l, tear := open(t)
				h := &harness{T: t, ledger: l, options: o, sleep: o.Sleep}
				s.run(h, func(r ledger.Record) { tear(t, r.ID, contradict) })
				if t.Failed() {
					t.Logf("reason: %s", s.reason)
				}
			})
		}
	}
}

type tearing struct {
	reason string
	run    func(h *harness, tear func(ledger.Record))
}

var damages = map[string]tearing{
	"every state": {
		"whatever state a damaged write is in, it is named, and costs no other",
		func(h *harness, tear func(ledger.Record)) {
			for name, begin := range inStates {
				before, bad, after := begin(h, name+" 1"), begin(h, name+" 2"), begin(h, name+" 3")
				tear(bad)
				f := ledger.Filter{Tenant: "a", States: []ledger.State{bad.State}}
				h.listedBut(f, []ledger.Record{after, before}, bad)
				f.Before = bad.ID
				h.listedBut(f, []ledger.Record{before})
				f = ledger.Filter{Tenant: "a", KeyDigest: bad.KeyDigest}
				if bad.State != ledger.Settled {
					h.listedBut(f, nil, bad)
				}
				h.unreadable(bad)
			}
		},
	},
	"pages": {
		"a listing in pages sees every write once, whatever lies between, and ends",
		func(h *harness, tear func(ledger.Record)) {
			var good, bad []ledger.Record
			for i := range 11 {
				rec := heldUp(h, fmt.Sprint("w", i))
				if i%2 == 0 || i == 5 { // the first, the last, and three in a row
					tear(rec)
					bad = append(bad, rec)
					continue
				}
				good = append(good, rec)
			}
			slices.Reverse(good)
			slices.Reverse(bad)
			for limit := 1; limit <= 12; limit++ {
				recs, unread := h.pages(ledger.Filter{Tenant: "a", Limit: limit})
				if !slices.Equal(ids(recs), ids(good)) || !slices.Equal(unread, ids(bad)) {
					h.Errorf("pages of %d: read %v, named %v; want %v and %v", limit, ids(recs), unread, ids(good), ids(bad))
				}
			}
		},
	},
	"nothing else": {
		"more damaged rows than one listing names end it before its time, and it can continue",
		func(h *harness, tear func(ledger.Record)) {
			oldest := heldUp(h, "oldest")
			for i := range ledger.MaxUnread + 5 {
				tear(heldUp(h, fmt.Sprint("w", i)))
			}
			recs, unread := h.pages(ledger.Filter{Tenant: "a"})
			if len(recs) != 1 || recs[0].ID != oldest.ID || len(unread) != ledger.MaxUnread+5 {
				h.Errorf("read %v, named %d; want %s, and %d", ids(recs), len(unread), oldest.ID, ledger.MaxUnread+5)
			}
			_, err := h.ledger.List(context.Background(), ledger.Filter{Tenant: "a"})
			if err == nil || len(err.Error()) > 16<<10 || !strings.Contains(err.Error(), "there may be more before wr_") {
				h.Errorf("error %v; want one that can be read, and says that there are more", err)
			}
		},
	},
	"search": {
		"a search passes over what cannot be read, names it, and finds all else, in pages of any size",
		func(h *harness, tear func(ledger.Record)) {
			var good, bad []ledger.Record
			for i := range 14 {
				rec := heldUp(h, fmt.Sprint("w", i))
				if i%2 == 0 || i > 10 { // the first, the last, and three in a row
					tear(rec)
					bad = append(bad, rec)
					continue
				}
				good = append(good, rec)
			}
			h.done("other")
			slices.Reverse(good)
			slices.Reverse(bad)
			for limit := 1; limit <= 15; limit++ {
				var recs []ledger.Record
				var unread []ledger.ID
				s := ledger.Search{Tenant: "a", States: []ledger.State{ledger.Held}, Destination: "shop", Limit: limit}
				for n := 0; ; n++ {
					found := h.search(s)
					recs = append(recs, found.Records...)
					for _, u := range found.Unread {
						if unread = append(unread, u.ID); !errors.Is(u.Err, ledger.ErrCorrupt) {
							h.Errorf("%s: error %v", u.ID, u.Err)
						}
					}
					if s.After = found.Next; found.Next == "" || n > 100 {
						break
					}
				}
				if !slices.Equal(ids(recs), ids(good)) || !slices.Equal(unread, ids(bad)) {
					h.Errorf("pages of %d: read %v, named %v; want %v and %v", limit, ids(recs), unread, ids(good), ids(bad))
				}
			}
			found := h.search(ledger.Search{Tenant: "a", Workflow: "w0"})
			if len(found.Records) != 0 || len(found.Unread) != 1 || found.Unread[0].ID != bad[len(bad)-1].ID {
				h.Errorf("by its workflow: %v, unread %v", ids(found.Records), found.Unread)
			}
		},
	},
	"waits for a reviewer": {
		"what only reviewers read is met by no worker: the inventory names it",
		func(h *harness, tear func(ledger.Record)) {
			bad := []ledger.Record{heldUp(h, "w1"), reviewed(h, "w2")}
			heldUp(h, "w3")
			for _, r := range bad {
				tear(r)
			}
			s, err := h.ledger.QueueStats(context.Background())
			if err != nil {
				h.Fatal(err)
			}
			got := map[ledger.ID]bool{}
			for _, d := range s.Damaged {
				if got[d.ID] = true; d.Tenant != "a" || d.Reason == "" || d.At.IsZero() {
					h.Errorf("%+v: want its tenant, since when it is there, and why it cannot be read", d)
				}
			}
			if len(s.Damaged) != 2 || !got[bad[0].ID] || !got[bad[1].ID] {
				h.Errorf("named as damaged: %+v; want %v", s.Damaged, ids(bad))
			}
		},
	},
	"prune": {
		"what cannot be read is not forgotten, is named, and keeps nothing else",
		func(h *harness, tear func(ledger.Record)) {
			var all []ledger.Record
			for i := range 3 {
				all = append(all, h.done(fmt.Sprint("w", i)))
			}
			tear(all[0])
			h.sleep(keep)
			for round, compacted := range []int{2, 0} {
				did, err := h.ledger.Prune(context.Background(), ledger.Prune{Keep: keep, Remember: remember})
				if did.Compacted != compacted {
					h.Errorf("round %d: %d compacted, want %d", round, did.Compacted, compacted)
				}
				h.names(err, all[0])
			}
		},
	},
}

// inStates begins a write that comes to rest in a state.
var inStates = map[string]func(h *harness, workflow string) ledger.Record{
	"held":   heldUp,
	"review": reviewed,
	"queued": func(h *harness, workflow string) ledger.Record {
		return h.queuedUp(wish("a", workflow))
	},
	"settled": func(h *harness, workflow string) ledger.Record { return h.done(workflow) },
	"sending": func(h *harness, workflow string) ledger.Record { return h.fresh(wish("a", workflow), announced) },
}

func heldUp(h *harness, workflow string) ledger.Record {
	return h.fresh(wish("a", workflow), held)
}

func reviewed(h *harness, workflow string) ledger.Record {
	return h.append(h.fresh(wish("a", workflow), announced), sent, escalated)
}

// listedBut wants a listing of these records, newest first, that names those as
// left out.
func (h *harness) listedBut(f ledger.Filter, want []ledger.Record, left ...ledger.Record) {
	h.Helper()
	recs, err := h.ledger.List(context.Background(), f)
	if !slices.Equal(ids(recs), ids(want)) {
		h.Errorf("list %+v: %v, want %v", f, ids(recs), ids(want))
	}
	if len(left) == 0 {
		if err != nil {
			h.Errorf("list %+v: error %v", f, err)
		}
		return
	}
	h.names(err, left...)
}

// names wants an error that says of these writes that they cannot be read.
func (h *harness) names(err error, left ...ledger.Record) {
	h.Helper()
	var unread *ledger.UnreadError
	if !errors.As(err, &unread) || !errors.Is(err, ledger.ErrCorrupt) || len(unread.Writes) != len(left) || unread.Next != "" {
		h.Errorf("error %v; want one that says that %v are corrupt", err, ids(left))
		return
	}
	for i, r := range left {
		if unread.Writes[i].ID != r.ID || !errors.Is(unread.Writes[i].Err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), string(r.ID)) {
			h.Errorf("error %v; want one that names %s", err, r.ID)
		}
	}
}

// unreadable checks that a read of this write reports it as damaged.
func (h *harness) unreadable(r ledger.Record) {
	h.Helper()
	_, getting := h.ledger.Get(context.Background(), r.Tenant, r.ID)
	_, living := h.ledger.Events(context.Background(), r.Tenant, r.ID)
	for call, err := range map[string]error{"get": getting, "events": living} {
		if !errors.Is(err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), string(r.ID)) {
			h.Errorf("%s: error %v; want one that says corrupt, and names %s", call, err, r.ID)
		}
	}
}

// pages lists all there is, page by page, as [ledger.UnreadError] says.
func (h *harness) pages(f ledger.Filter) (recs []ledger.Record, unread []ledger.ID) {
	h.Helper()
	for range 1000 {
		page, err := h.ledger.List(context.Background(), f)
		var left ledger.UnreadError
		if e := (*ledger.UnreadError)(nil); errors.As(err, &e) {
			left = *e
		} else if err != nil {
			h.Fatal(err)
		}
		recs = append(recs, page...)
		for _, w := range left.Writes {
			unread = append(unread, w.ID)
		}
		if left.Next == "" && (len(page) < f.Limit || f.Limit == 0) {
			return recs, unread
		}
		if f.Before = left.Next; left.Next == "" {
			f.Before = page[len(page)-1].ID
		}
	}
	h.Fatal("the listing does not end")
	return nil, nil
}
