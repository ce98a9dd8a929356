package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

func (h *harness) search(s ledger.Search) ledger.SearchResult {
	h.Helper()
	found, err := h.ledger.Find(context.Background(), s)
	if err != nil {
		h.Fatalf("find: %v", err)
	}
	return found
}

// searched is all that a search finds, in pages.
func (h *harness) searched(s ledger.Search) (all []ledger.Record) {
	h.Helper()
	for range 10_000 {
		found := h.search(s)
		if most := s.Limit; most > 0 && len(found.Records) > most {
			h.Fatalf("find: %d found, want %d at the most", len(found.Records), most)
		}
		if all = append(all, found.Records...); found.Next == "" {
			return all
		}
		s.After = found.Next
	}
	h.Fatal("find: it never ends")
	return nil
}

// meets wants a search to find these writes, in their order, in pages of any
// size, and backwards.
func (h *harness) meets(s ledger.Search, want []ledger.Record) {
	h.Helper()
	for _, oldest := range []bool{false, true} {
		for _, limit := range []int{0, 1, 3} {
			s.Oldest, s.Limit = oldest, limit
			got := h.searched(s)
			expect := slices.Clone(want)
			for i := range expect {
				expect[i].Before, expect[i].Evidence, expect[i].ChildIntent = nil, nil, nil
			}
			if !oldest {
				slices.Reverse(expect)
			}
			if diff := cmp.Diff(expect, got, cmpopts.IgnoreFields(ledger.Record{}, "Now"), cmpopts.EquateEmpty()); diff != "" {
				h.Errorf("search %+v: found %v, want %v (-want +got):\n%s", s, ids(got), ids(expect), diff)
				return
			}
		}
	}
}

// shelf is writes of many kinds, in the order of their creation: of two tenants,
// in every state, ended in several ways.
func (h *harness) shelf() (all []ledger.Record) {
	h.Helper()
	denied := ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Denied, By: "ann"}
	before := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "absent", Evidence: []byte(`{"before":1}`)}
	after := ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"after":1}`)}
	lives := [][2][]ledger.Event{
		{{held}, nil}, {nil, nil}, {{announced}, nil}, {{announced}, {sent}}, {{announced}, {sent, escalated}},
		{{before, announced}, {sent, after, verified}}, {{announced}, {sent, missing, settled(ledger.NotApplied)}}, {{held}, {denied}},
		{{announced}, {sent, seen, {Kind: ledger.EvCompensating, Child: "wr_child", Evidence: []byte(`{}`)}}},
	}
	for round := range 3 {
		for i, life := range lives {
			n := round*len(lives) + i
			w := wish([]string{"a", "a", "b"}[n%3], fmt.Sprint("w", n%4))
			w.Step, w.Key = fmt.Sprint("s", n), intent.Fields{"number": fmt.Sprint(n % 11)}
			w.Destination = []string{"shop", "bank"}[n%2]
			if n%5 > 0 {
				w.CorrelationID = fmt.Sprint("trace ", n%5)
			}
			if n%3 > 0 {
				w.Tool, w.IdempotencyKey = fmt.Sprint("tool ", n), fmt.Sprint("invoice ", n%3)
			}
			rec := h.fresh(w, life[0]...)
			if rec.QueuedBehind == "" && len(life[1]) > 0 {
				rec = h.append(rec, life[1]...)
			}
			all = append(all, rec)
			h.sleep(time.Second)
		}
	}
	o := operation("a", "w1", "s1", "invoice 1")
	o.Destination, o.CorrelationID, o.Tool = "bank", "trace 1", "by hand"
	rec := h.reserve(h.handed(o))
	all = append(all, rec)
	o = operation("a", "w2", "s2", "invoice 2")
	o.Tool = "by hand"
	all = append(all, h.append(h.reserve(h.handed(o)), reported))
	for i, r := range all { // others may have brought it forward
		all[i] = h.get(r)
	}
	return all
}

// narrowed are the ways to narrow a search, by what they narrow.
func narrowed(all []ledger.Record) map[string][]func(*ledger.Search) {
	first, middle := all[0].Created, all[len(all)/2]
	return map[string][]func(*ledger.Search){
		"phase": {
			func(s *ledger.Search) { s.States = []ledger.State{ledger.Held} },
			func(s *ledger.Search) { s.States = []ledger.State{ledger.Review, ledger.Queued, ledger.Review} },
			func(s *ledger.Search) { s.Settlements = []ledger.Status{ledger.Verified, ledger.Denied} },
			func(s *ledger.Search) {
				s.States, s.Settlements = []ledger.State{ledger.Review}, []ledger.Status{ledger.Denied}
			},
			func(s *ledger.Search) {
				s.States, s.Settlements = []ledger.State{ledger.Settled}, []ledger.Status{ledger.Denied}
			},
			func(s *ledger.Search) {
				s.States = []ledger.State{ledger.Delegated, ledger.Compensating, ledger.Sending}
			},
			func(s *ledger.Search) { s.Settlements = []ledger.Status{ledger.Abandoned} },
		},
		"destination": {
			func(s *ledger.Search) { s.Destination = "shop" }, func(s *ledger.Search) { s.Destination = "sho" },
		},
		"workflow": {
			func(s *ledger.Search) { s.Workflow = "w1" }, func(s *ledger.Search) { s.Workflow = "w" }, func(s *ledger.Search) { s.Workflow = "%" },
		},
		"correlation": {
			func(s *ledger.Search) { s.CorrelationID = "trace 1" }, func(s *ledger.Search) { s.CorrelationID = "TRACE 1" },
		},
		"idempotency": {
			func(s *ledger.Search) { s.IdempotencyKey = "invoice 1" }, func(s *ledger.Search) { s.IdempotencyKey = "invoice" },
		},
		"key": {
			func(s *ledger.Search) { s.KeyDigest = middle.KeyDigest }, func(s *ledger.Search) { s.KeyDigest = "no such" },
		},
		"waits": {
			func(s *ledger.Search) { s.Waits = waitsOf(all) },
			func(s *ledger.Search) { s.Waits = append(waitsOf(all)[:1], waitsOf(all)[0]) },
			func(s *ledger.Search) { s.Waits = []ledger.WaitKind{{State: ledger.Held, Destination: "sho"}} },
		},
		"since": {
			func(s *ledger.Search) { s.Since = middle.Created },
			func(s *ledger.Search) { s.Since = middle.Created.Add(1) },
			func(s *ledger.Search) { s.Since = first.Add(-time.Hour) },
		},
		"until": {
			func(s *ledger.Search) { s.Until = middle.Created },
			func(s *ledger.Search) { s.Until = middle.Created.Add(1) },
			func(s *ledger.Search) { s.Until = first.Add(24 * time.Hour) },
			func(s *ledger.Search) { s.Until = first.Add(-24 * time.Hour) },
		},
	}
}

// selected are the records that a search selects.
func selected(s ledger.Search, all []ledger.Record) (want []ledger.Record) {
	for _, r := range all {
		if s.Selects(r) {
			want = append(want, r)
		}
	}
	return want
}

var searching = map[string]scenario{
	"each filter": {
		"what is asked for is found, all of it, and nothing else",
		func(h *harness) {
			all := h.shelf()
			h.meets(ledger.Search{Tenant: "a"}, selected(ledger.Search{Tenant: "a"}, all))
			h.meets(ledger.Search{Tenant: "unused"}, nil)
			for _, ways := range narrowed(all) {
				for _, way := range ways {
					s := ledger.Search{Tenant: "a"}
					way(&s)
					h.meets(s, selected(s, all))
				}
			}
		},
	},
	"filters together": {
		"all that is given must fit",
		func(h *harness) {
			all := h.shelf()
			ways, found := narrowed(all), 0
			for one := range ways {
				for other := range ways {
					if one >= other {
						continue
					}
					for i, a := range ways[one] {
						s := ledger.Search{Tenant: []string{"a", "b"}[i%2]}
						a(&s)
						ways[other][i%len(ways[other])](&s)
						want := selected(s, all)
						found += len(want)
						got := h.searched(s)
						slices.Reverse(got)
						if diff := cmp.Diff(ids(want), ids(got)); diff != "" {
							h.Errorf("search %+v (-want +got):\n%s", s, diff)
						}
					}
				}
			}
			if found < 20 {
				h.Errorf("%d were found in all: the searches are of no use", found)
			}
		},
	},
	"everything at once": {
		"a search by all that is known of a write finds that write",
		func(h *harness) {
			for _, r := range h.shelf() {
				s := ledger.Search{Tenant: r.Tenant, States: []ledger.State{r.State}, Destination: r.Destination, Workflow: r.Workflow,
					CorrelationID: r.CorrelationID, IdempotencyKey: r.IdempotencyKey, KeyDigest: r.KeyDigest,
					Since: r.Created, Until: r.Created.Add(1)}
				h.meets(s, []ledger.Record{r})
				s.Tenant = "c"
				h.meets(s, nil)
			}
		},
	},
	"how it ended": {
		"what ended in one way is found among many that ended in others, also where their texts speak of it",
		func(h *harness) {
			var all []ledger.Record
			for i := range 30 {
				how := verified
				if how.Reason = `"settlement":"not_applied"`; i%10 == 4 {
					how = settled(ledger.NotApplied)
				}
				all = append(all, h.append(h.fresh(wish("a", fmt.Sprint("w", i)), announced), sent, seen, how))
			}
			for _, s := range []ledger.Search{
				{Settlements: []ledger.Status{ledger.NotApplied}}, {Settlements: []ledger.Status{ledger.NotApplied, ledger.Verified}},
				{Settlements: []ledger.Status{ledger.NotApplied}, States: []ledger.State{ledger.Review}},
			} {
				s.Tenant = "a"
				h.meets(s, selected(s, all))
			}
		},
	},
	"settled long ago": {
		"a record at the destination is looked up by its key even when nothing is open about it any more",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			h.meets(ledger.Search{Tenant: "a", KeyDigest: rec.KeyDigest}, []ledger.Record{rec})
			h.sleep(keep)
			h.prune(0)
			h.lost(rec)
			rec = h.get(rec)
			h.meets(ledger.Search{Tenant: "a", KeyDigest: rec.KeyDigest}, []ledger.Record{rec})
			h.meets(ledger.Search{Tenant: "a", Workflow: "w1"}, []ledger.Record{rec})
			h.sleep(remember)
			h.prune(0)
			for _, s := range []ledger.Search{{}, {KeyDigest: rec.KeyDigest}, {Workflow: "w1"}} {
				s.Tenant = "a"
				h.meets(s, nil)
			}
		},
	},
	"what was enqueued": {
		"what came through the outbox is found like anything else once it was taken in",
		func(h *harness) {
			if h.options.Enqueue == nil {
				h.Skip("this ledger has no outbox")
			}
			w := named("a", "w1", "invoice 7")
			w.CorrelationID = "trace"
			h.enqueue(w)
			h.admitted()
			rec, err := h.ledger.Get(context.Background(), "a", h.id(w))
			if err != nil {
				h.Fatal(err)
			}
			for _, s := range []ledger.Search{{}, {Workflow: "w1"}, {CorrelationID: "trace"}, {IdempotencyKey: "invoice 7"}, {KeyDigest: rec.KeyDigest}, {Query: "INVOICE"}} {
				s.Tenant = "a"
				h.meets(s, []ledger.Record{rec})
			}
		},
	},
	"refused": {
		"a search without a tenant, a page beyond the bound, or a cursor that was not given finds nothing",
		func(h *harness) {
			h.fresh(wish("a", "w1"))
			for _, s := range []ledger.Search{{}, {Workflow: "w1"}, {Tenant: "a", Limit: -1}, {Tenant: "a", Limit: 201}} {
				if found, err := h.ledger.Find(context.Background(), s); err == nil || found.Records != nil {
					h.Errorf("search %+v: %d found, error %v", s, len(found.Records), err)
				}
			}
			for _, after := range []string{"1", "w", "w-1", "w01", "w1 ", "W1", "c1-0", "w9223372036854775808", "' OR 1=1", "\x00", string(make([]byte, 1<<16))} {
				found, err := h.ledger.Find(context.Background(), ledger.Search{Tenant: "a", After: after})
				if !errors.Is(err, ledger.ErrCursor) || found.Records != nil {
					h.Errorf("after %.20q: %d found, error %v", after, len(found.Records), err)
				}
			}
		},
	},
}

var searchPages = map[string]scenario{
	"while rows are added": {
		"what was there when a scan began is met once, whatever comes and changes meanwhile",
		func(h *harness) {
			for _, oldest := range []bool{false, true} {
				prefix := fmt.Sprint("w", oldest)
				var was []ledger.ID
				for i := range 20 {
					was = append(was, h.append(h.fresh(wish("a", fmt.Sprint(prefix, i)), announced), sent).ID)
				}
				met := make(map[ledger.ID]int)
				s := ledger.Search{Tenant: "a", Limit: 3, Oldest: oldest}
				for n := 0; ; n++ {
					found := h.search(s)
					for _, r := range found.Records {
						met[r.ID]++
					}
					if s.After = found.Next; found.Next == "" || n > 100 {
						break
					}
					if n < 8 {
						h.fresh(wish("a", fmt.Sprint(prefix, "new", n)))
						rec := h.get(ledger.Record{Tenant: "a", ID: was[(7*n)%20]})
						if rec.State == ledger.Checking {
							h.append(rec, seen, verified)
						}
					}
				}
				for _, id := range was {
					if met[id] != 1 {
						h.Errorf("oldest first %v: %s was met %d times", oldest, id, met[id])
					}
				}
			}
		},
	},
	"bounded": {
		"a search that finds nothing among many ends its page, and says where to continue",
		func(h *harness) {
			target := h.fresh(wish("a", "target"))
			for i := range ledger.MaxScanned + 10 {
				w := wish("a", "crowd")
				w.Step, w.Key, w.Destination = fmt.Sprint("s", i), intent.Fields{"number": fmt.Sprint(i)}, "bank"
				if _, _, err := h.ledger.Reserve(context.Background(), h.reservation(w)); err != nil {
					h.Fatal(err)
				}
			}
			for _, s := range []ledger.Search{{Destination: "shop"}, {Workflow: "crowd", Destination: "shop"}, {Query: "crowd", Destination: "shop"}} {
				s.Tenant = "a"
				found := h.search(s)
				if len(found.Records) != 0 || found.Next == "" {
					h.Errorf("%+v: %d found, next %q; want an empty page, and where to continue", s, len(found.Records), found.Next)
				}
			}
			for _, s := range []ledger.Search{{Destination: "shop"}, {Query: "target"}, {Query: string(target.ID)}, {Query: "target", Oldest: true}} {
				s.Tenant = "a"
				if got := h.searched(s); len(got) != 1 || got[0].ID != target.ID {
					h.Errorf("%+v: found %v in all, want %s", s, ids(got), target.ID)
				}
			}
		},
	},
	"page sizes": {
		"a page has so many as were asked for, and a next one where there is more",
		func(h *harness) {
			for i := range 201 {
				h.fresh(wish("a", fmt.Sprint("w", i)))
			}
			for limit, want := range map[int]int{0: 50, 1: 1, 200: 200} {
				if found := h.search(ledger.Search{Tenant: "a", Limit: limit}); len(found.Records) != want || found.Next == "" {
					h.Errorf("limit %d: %d found, next %q", limit, len(found.Records), found.Next)
				}
			}
			found := h.search(ledger.Search{Tenant: "a", Limit: 200, After: h.search(ledger.Search{Tenant: "a", Limit: 1}).Next})
			if len(found.Records) != 200 || found.Next != "" {
				h.Errorf("the last page: %d found, next %q; want it full, and nothing behind it", len(found.Records), found.Next)
			}
		},
	},
}
