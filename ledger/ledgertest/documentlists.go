package ledgertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

// finds says what a query must find and how many there are in all.
func (h *harness) finds(q ledger.DocumentQuery, total int, want ...string) {
	h.Helper()
	got, all := h.find(q)
	if diff := cmp.Diff(want, got); diff != "" || all != total {
		h.Errorf("%+v: %d in all, want %d (-want +got):\n%s", q, all, total, diff)
	}
}

// steps is a query for documents of kind "step" of tenant "a".
func steps(change func(*ledger.DocumentQuery)) ledger.DocumentQuery {
	q := ledger.DocumentQuery{Tenant: "a", Kind: "step"}
	if change != nil {
		change(&q)
	}
	return q
}

// library files documents s0 to s9 of tenant a, each with one collection of two, one
// state of three, one subject of two and one trace of five; and others beside.
func (h *harness) library() {
	h.Helper()
	for i := range 10 {
		p := document("a", fmt.Sprint("s", i))
		p.Collection, p.State = fmt.Sprint("w", i%2), []string{"open", "held", "over"}[i%3]
		p.Subject, p.Trace = fmt.Sprint("who", i/5), fmt.Sprint("t", i/2)
		h.put(p)
		p.Tenant = "b"
		h.put(p)
		p.Tenant, p.Kind = "a", "saga"
		h.put(p)
	}
}

var documentLists = map[string]scenario{
	"newest first": {
		"who lists documents sees what came last, of one tenant and kind, in whatever order they were changed",
		func(h *harness) {
			h.library()
			h.put(h.document(document("a", "s2")))
			h.finds(steps(nil), 10, "s9", "s8", "s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0")
			h.finds(ledger.DocumentQuery{Tenant: "c", Kind: "step"}, 0)
			h.finds(ledger.DocumentQuery{Tenant: "a", Kind: "other"}, 0)
		},
	},
	"narrowed": {
		"each word narrows a listing, alone and with the others",
		func(h *harness) {
			h.library()
			h.finds(steps(func(q *ledger.DocumentQuery) { q.States = []string{"held"} }), 3, "s7", "s4", "s1")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.States = []string{"open", "held", "held"} }), 7, "s9", "s7", "s6", "s4", "s3", "s1", "s0")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.States = []string{"none", "op", "open,held"} }), 0)
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Subject = "who1" }), 5, "s9", "s8", "s7", "s6", "s5")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Trace = "t2" }), 2, "s5", "s4")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Subject, q.States = "who1", []string{"over", "held"} }), 3, "s8", "s7", "s5")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Subject, q.Trace = "who1", "t2" }), 1, "s5")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Trace, q.States = "t2", []string{"held"} }), 1, "s4")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Trace, q.Subject, q.States = "t2", "who0", []string{"open"} }), 0)
		},
	},
	"collection": {
		"what is in one collection is read in the order in which it came",
		func(h *harness) {
			h.library()
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Collection = "w1" }), 5, "s1", "s3", "s5", "s7", "s9")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Collection, q.Limit, q.Offset = "w1", 2, 1 }), 5, "s3", "s5")
			h.finds(steps(func(q *ledger.DocumentQuery) {
				q.Collection, q.States, q.Subject = "w1", []string{"held", "over"}, "who1"
			}), 2, "s5", "s7")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Collection, q.Trace = "w1", "t2" }), 1, "s5")
			h.finds(steps(func(q *ledger.DocumentQuery) { q.Collection = "w2" }), 0)
		},
	},
	"pages": {
		"pages of any size show each document once, and the count is of all of them",
		func(h *harness) {
			h.library()
			for name, change := range map[string]func(*ledger.DocumentQuery){
				"all":        func(*ledger.DocumentQuery) {},
				"states":     func(q *ledger.DocumentQuery) { q.States = []string{"over", "open", "held"} },
				"collection": func(q *ledger.DocumentQuery) { q.Collection = "w0" },
				"subject":    func(q *ledger.DocumentQuery) { q.Subject = "who0" },
				"trace":      func(q *ledger.DocumentQuery) { q.Trace = "t3" },
			} {
				whole, total := h.find(steps(change))
				for size := 1; size <= 4; size++ {
					var pages []string
					for len(pages) < total {
						page, all := h.find(steps(func(q *ledger.DocumentQuery) { change(q); q.Limit, q.Offset = size, len(pages) }))
						if all != total || len(page) == 0 || len(page) > size {
							h.Fatalf("%s, pages of %d: %v of %d in all, want %d", name, size, page, all, total)
						}
						pages = append(pages, page...)
					}
					if diff := cmp.Diff(whole, pages); diff != "" {
						h.Errorf("%s, pages of %d (-whole +pages):\n%s", name, size, diff)
					}
				}
				h.finds(steps(func(q *ledger.DocumentQuery) { change(q); q.Offset = 10 }), total)
			}
		},
	},
	"a new state": {
		"a document is listed under the state that it has now",
		func(h *harness) {
			p := document("a", "s1")
			p.State = "held"
			p = h.put(p)
			p.State = "open"
			h.put(p)
			h.finds(steps(func(q *ledger.DocumentQuery) { q.States = []string{"held"} }), 0)
			h.finds(steps(func(q *ledger.DocumentQuery) { q.States = []string{"open"} }), 1, "s1")
		},
	},
	"whole": {
		"what is listed is the whole document",
		func(h *harness) {
			p := document("a", "s1")
			p.Collection, p.State, p.Body = "w1", "held", awkward.raw
			p = h.put(p)
			for _, q := range []ledger.DocumentQuery{steps(nil), steps(func(q *ledger.DocumentQuery) { q.Collection = "w1" })} {
				found, _, err := h.ledger.FindDocuments(context.Background(), q)
				if err != nil || len(found) != 1 || found[0].Now.IsZero() {
					h.Fatalf("found %v, error %v", found, err)
				}
				h.sameDocument(p, found[0])
			}
		},
	},
	"bounds": {
		"a listing of everybody's documents, or of endless ones, is a mistake",
		func(h *harness) {
			for name, q := range map[string]ledger.DocumentQuery{
				"no tenant": {Kind: "step"}, "no kind": {Tenant: "a"}, "offset below zero": {Tenant: "a", Kind: "step", Offset: -1},
			} {
				if found, _, err := h.ledger.FindDocuments(context.Background(), q); err == nil {
					h.Errorf("%s: found %v, want an error", name, found)
				}
			}
			for from := 0; from < 1001; from += 91 {
				var f ledger.Batch
				for i := from; i < from+91; i++ {
					f.Documents = append(f.Documents, document("a", fmt.Sprint("s", i)))
				}
				h.file(f)
			}
			for limit, want := range map[int]int{0: 100, -1: 100, 1000: 1000, 5000: 1000} {
				if found, total := h.find(steps(func(q *ledger.DocumentQuery) { q.Limit = limit })); len(found) != want || total != 1001 {
					h.Errorf("limit %d: found %d of %d", limit, len(found), total)
				}
			}
		},
	},
}

// cover makes a document that covers its collection, with some documents in it.
func (h *harness) cover(tenant, id string, bound int) ledger.Document {
	h.Helper()
	p := ledger.Document{Tenant: tenant, Kind: "workflow", ID: id, Collection: id, Body: json.RawMessage("{}")}
	p = h.put(p)
	for i := range bound {
		s := document(tenant, fmt.Sprint(id, "/", i))
		s.Collection = id
		h.put(s)
	}
	return p
}

var documentPruning = map[string]scenario{
	"done": {
		"a document that is done is forgotten as long after its last change as a write; no other ever is",
		func(h *harness) {
			open := h.put(document("a", "open"))
			over := h.put(document("a", "over"))
			h.sleep(time.Hour)
			over.Done = true
			over = h.put(over)
			h.sleep(remember - time.Minute)
			h.pruned(ledger.Pruned{})
			h.sameDocument(over, h.document(over))
			h.sleep(2 * time.Minute)
			h.pruned(ledger.Pruned{Documents: 1})
			h.noDocument(over)
			h.finds(steps(nil), 1, "open")
			h.sameDocument(open, h.document(open))
			over.Version, over.Done = 0, false
			if again := h.put(over); again.Version != 1 {
				h.Errorf("made anew with version %d", again.Version)
			}
			h.sleep(10 * remember)
			h.pruned(ledger.Pruned{})
		},
	},
	"done and due": {
		"it is due for a check, whatever it contains; and what continues after all is not done",
		func(h *harness) {
			p := document("a", "due")
			p.Done, p.Due = true, h.put(document("a", "s0")).Now.Add(time.Hour)
			p = h.put(p)
			again := document("a", "resumed")
			again.Done = true
			again = h.put(again)
			again.Done = false
			h.put(again)
			h.sleep(2 * remember)
			h.pruned(ledger.Pruned{})
			p.Due = time.Time{}
			h.put(p)
			h.sleep(remember)
			h.pruned(ledger.Pruned{Documents: 1})
			h.noDocument(p)
		},
	},
	"collection": {
		"what is in a collection is forgotten with its cover, and with nothing else",
		func(h *harness) {
			cover := h.cover("a", "w1", 3)
			h.cover("b", "w1", 1)
			h.cover("a", "w2", 1)
			saga := ledger.Document{Tenant: "a", Kind: "saga", ID: "w1", Done: true, Body: json.RawMessage("{}")} // covers nothing
			h.put(saga)
			h.sleep(remember)
			h.pruned(ledger.Pruned{Documents: 1})
			h.noDocument(saga)
			cover.Done = true
			h.put(cover)
			h.sleep(remember)
			h.pruned(ledger.Pruned{Documents: 4})
			h.noDocument(cover)
			h.finds(steps(nil), 1, "w2/0")
			h.finds(ledger.DocumentQuery{Tenant: "b", Kind: "step"}, 1, "w1/0")
		},
	},
	"collection in use": {
		"a collection of which something is due, or was changed of late, is forgotten as a whole and later",
		func(h *harness) {
			cover := h.cover("a", "w1", 2)
			cover.Done = true
			now := h.put(cover).Now
			h.sleep(time.Hour)
			step := h.document(document("a", "w1/0"))
			step.Due = now.Add(2 * remember)
			step = h.put(step)
			h.sleep(2 * remember)
			h.pruned(ledger.Pruned{})
			step.Due = time.Time{}
			h.put(step)
			h.sleep(remember - time.Minute)
			h.pruned(ledger.Pruned{})
			h.sleep(2 * time.Minute)
			h.pruned(ledger.Pruned{Documents: 3})
		},
	},
	"limit": {
		"one call does a bounded part, and the next ones the rest; a cover is there as long as its collection",
		func(h *harness) {
			cover := h.cover("a", "w1", 150)
			cover.Done = true
			h.put(cover)
			write := h.done("w9")
			h.lost(write)
			h.sleep(remember)
			if got := h.prune(1); got != (ledger.Pruned{Compacted: 1}) { // writes first
				h.Fatalf("pruned %+v", got)
			}
			h.sleep(remember)
			want := []ledger.Pruned{{Forgotten: 1, Documents: 69}, {Documents: 70}, {Documents: 12}, {}}
			var got []ledger.Pruned
			for i := range want {
				got = append(got, h.prune(70))
				if _, left := h.find(steps(nil)); left > 0 {
					h.document(cover)
				} else if i < 2 {
					h.Error("all of it went at once")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				h.Errorf("pruned (-want +got):\n%s", diff)
			}
			h.noDocument(cover)
		},
	},
	"past what stays": {
		"collections that cannot be forgotten yet do not keep the later ones",
		func(h *harness) {
			var later []ledger.Document
			for i := range 70 {
				cover := h.cover("a", fmt.Sprint("w", i), 1)
				step := h.document(document("a", cover.ID+"/0"))
				step.Due = cover.Now.Add(10 * remember)
				h.put(step)
				cover.Done = true
				later = append(later, h.put(cover))
			}
			h.sleep(time.Second)
			p := document("a", "ripe")
			p.Done = true
			h.put(p)
			h.sleep(remember)
			h.pruned(ledger.Pruned{Documents: 1})
			h.noDocument(p)
			if slices.ContainsFunc(later, func(p ledger.Document) bool { return h.document(p).Version != p.Version }) {
				h.Error("a collection was changed")
			}
		},
	},
}
