package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

func (h *harness) file(f ledger.Batch) ledger.Committed {
	h.Helper()
	did, err := h.ledger.Commit(context.Background(), f)
	if err != nil {
		h.Fatalf("file: %v", err)
	}
	if did.Fresh {
		h.made = append(h.made, did.Reserved)
	}
	return did
}

// put files one document.
func (h *harness) put(p ledger.Document) ledger.Document {
	h.Helper()
	return h.file(ledger.Batch{Documents: []ledger.Document{p}}).Documents[0]
}

// overtaken files what another actor has changed meanwhile.
func (h *harness) overtaken(f ledger.Batch) {
	h.Helper()
	if did, err := h.ledger.Commit(context.Background(), f); !errors.Is(err, ledger.ErrStale) {
		h.Errorf("file: %+v, error %v; want that it is stale", did, err)
	}
}

func (h *harness) document(p ledger.Document) ledger.Document {
	h.Helper()
	got, err := h.ledger.Document(context.Background(), p.Tenant, p.Kind, p.ID)
	if err != nil {
		h.Fatalf("document: %v", err)
	}
	return got
}

// noDocument says that there is none of a name.
func (h *harness) noDocument(p ledger.Document) {
	h.Helper()
	if got, err := h.ledger.Document(context.Background(), p.Tenant, p.Kind, p.ID); !errors.Is(err, ledger.ErrNoDocument) || !errors.Is(err, ledger.ErrNotFound) {
		h.Errorf("document %s: %+v, error %v; want that there is none", p.ID, got, err)
	}
}

func (h *harness) find(q ledger.DocumentQuery) (names []string, total int) {
	h.Helper()
	found, total, err := h.ledger.FindDocuments(context.Background(), q)
	if err != nil {
		h.Fatalf("find documents: %v", err)
	}
	return idsOf(found), total
}

// due is what is due of a kind, oldest first.
func (h *harness) due(kind string, limit int) []ledger.Document {
	h.Helper()
	due, now, err := h.ledger.DueDocuments(context.Background(), kind, limit)
	if err != nil || now.IsZero() {
		h.Fatalf("due documents: at %s, error %v", now, err)
	}
	return due
}

func idsOf(documents []ledger.Document) (names []string) {
	for _, p := range documents {
		names = append(names, p.ID)
	}
	return names
}

// sameDocument compares documents, but for the time at which they were read.
func (h *harness) sameDocument(want, got ledger.Document) {
	h.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Document{}, "Now")); diff != "" {
		h.Errorf("documents differ (-want +got):\n%s", diff)
	}
}

// document is a new one of kind "step".
func document(tenant, id string) ledger.Document {
	return ledger.Document{Tenant: tenant, Kind: "step", ID: id, Body: json.RawMessage(`{"id":"` + id + `"}`)}
}

var documents = map[string]scenario{
	"round trip": {
		"what is committed comes back as it was, to the byte and the nanosecond",
		func(h *harness) {
			now := h.put(document("a", "first")).Now
			want := ledger.Document{
				Tenant: "ténant", Kind: "schritt", ID: "w/1 🙂'\"\\%_", Collection: "mappe «1»", Subject: "who", Trace: "00-trace",
				State: "held", Due: now.Add(1234567891), Done: true, Body: awkward.raw,
			}
			committed := h.put(want)
			if committed.Version != 1 || committed.Created.IsZero() || !committed.Updated.Equal(committed.Created) || committed.Now.Before(committed.Updated) {
				h.Errorf("version %d, created %s, updated %s, now %s", committed.Version, committed.Created, committed.Updated, committed.Now)
			}
			want.Version, want.Created, want.Updated, want.Due = 1, committed.Created, committed.Updated, want.Due.UTC()
			h.sameDocument(want, committed)
			h.sameDocument(committed, h.document(want))
			if diff := cmp.Diff(string(awkward.raw), string(h.document(want).Body)); diff != "" {
				h.Errorf("body (-want +got):\n%s", diff)
			}
		},
	},
	"changed": {
		"a document is changed over the version that was read; what it belongs to never changes",
		func(h *harness) {
			p := document("a", "s1")
			p.Collection, p.Subject, p.Trace, p.Due = "w1", "who", "trace", h.put(document("a", "s0")).Now.Add(time.Hour)
			first := h.put(p)
			h.sleep(time.Minute)
			next := first
			next.Collection, next.Subject, next.Trace, next.Created = "w2", "subject", "another", time.Time{}
			next.State, next.Due, next.Done, next.Body = "over", time.Time{}, true, json.RawMessage(`[]`)
			second := h.put(next)
			if second.Updated.Sub(first.Updated) < time.Minute {
				h.Errorf("updated %s, then %s", first.Updated, second.Updated)
			}
			want := first
			want.State, want.Due, want.Done, want.Body, want.Version, want.Updated = "over", time.Time{}, true, json.RawMessage(`[]`), 2, second.Updated
			h.sameDocument(want, second)
			h.sameDocument(want, h.document(first))
		},
	},
	"stale": {
		"a writer that has not read the present version must not write over it",
		func(h *harness) {
			p := document("a", "s1")
			guess := p
			guess.Version = 1
			h.overtaken(ledger.Batch{Documents: []ledger.Document{guess}})
			first := h.put(p)
			h.overtaken(ledger.Batch{Documents: []ledger.Document{p}})
			second := h.put(first)
			h.overtaken(ledger.Batch{Documents: []ledger.Document{first}})
			guess.Version = 3
			h.overtaken(ledger.Batch{Documents: []ledger.Document{guess}})
			h.sameDocument(second, h.document(p))
		},
	},
	"unchanged": {
		"a decision that rests on another document falls when that one was changed",
		func(h *harness) {
			w := h.put(document("a", "w"))
			absent := document("a", "x")
			h.file(ledger.Batch{Documents: []ledger.Document{document("a", "s1")}, Unchanged: []ledger.Document{w, absent}})
			h.sameDocument(w, h.document(w))
			h.noDocument(absent)
			h.put(w)
			h.overtaken(ledger.Batch{Documents: []ledger.Document{document("a", "s2")}, Unchanged: []ledger.Document{w}})
			h.put(absent)
			h.overtaken(ledger.Batch{Documents: []ledger.Document{document("a", "s2")}, Unchanged: []ledger.Document{absent}})
			h.noDocument(document("a", "s2"))
		},
	},
	"names": {
		"documents of other tenants, kinds and ids are other documents",
		func(h *harness) {
			h.noDocument(document("a", "s1"))
			for i, p := range []ledger.Document{document("a", "s1"), document("b", "s1"), document("a", "S1"), {Tenant: "a", Kind: "saga", ID: "s1"}} {
				p.Body = json.RawMessage(fmt.Sprint(i))
				h.put(p)
				if got := h.document(p); string(got.Body) != fmt.Sprint(i) {
					h.Errorf("document %d says %s", i, got.Body)
				}
			}
			h.noDocument(document("c", "s1"))
			h.noDocument(document("b", "S1"))
		},
	},
	"reused buffers": {
		"a caller that writes the next body into the same memory must not change the document",
		func(h *harness) {
			p := document("a", "s1")
			p.Body = json.RawMessage(`{"state":"open"}`)
			committed := h.put(p)
			copy(p.Body, `{"state":"gone"}`)
			copy(committed.Body, `{"state":"lost"}`)
			copy(h.document(p).Body, `{"state":"shut"}`)
			if got := h.document(p); string(got.Body) != `{"state":"open"}` {
				h.Errorf("body %s", got.Body)
			}
		},
	},
	"one winner": {
		"of any number of workers that change a document at once, one does for each version, and the others are refused",
		func(h *harness) {
			at := h.put(document("a", "s1"))
			for round := range 5 {
				committed := make([]ledger.Committed, 16)
				winner := h.oneWins(len(committed), func(i int) (err error) {
					p := at
					p.Body = json.RawMessage(fmt.Sprintf("[%d,%d]", round, i))
					committed[i], err = h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}})
					return err
				})
				at = h.document(at)
				h.sameDocument(committed[winner].Documents[0], at)
			}
		},
	},
	"one maker": {
		"the same for a document that is not there yet",
		func(h *harness) {
			h.oneWins(16, func(i int) error {
				p := document("a", "new")
				p.Body = json.RawMessage(fmt.Sprint(i))
				_, err := h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}})
				return err
			})
			if got := h.document(document("a", "new")); got.Version != 1 {
				h.Errorf("version %d", got.Version)
			}
		},
	},
	"due": {
		"what is to be read is found when its time has come, of all tenants, oldest first",
		func(h *harness) {
			now := h.put(document("a", "never")).Now
			for id, in := range map[string]time.Duration{"third": 3 * time.Minute, "first": time.Minute, "second": 2 * time.Minute, "later": time.Hour} {
				p := document(id, id)
				p.Due = now.Add(in)
				h.put(p)
			}
			saga := document("a", "saga")
			saga.Kind, saga.Due = "saga", now.Add(time.Second)
			h.put(saga)
			if due := h.due("step", 10); len(due) != 0 {
				h.Errorf("due at once: %v", idsOf(due))
			}
			h.sleep(5 * time.Minute)
			for limit, want := range map[int][]string{10: {"first", "second", "third"}, 2: {"first", "second"}, 0: {"first"}, -1: {"first"}} {
				if diff := cmp.Diff(want, idsOf(h.due("step", limit))); diff != "" {
					h.Errorf("due, limit %d (-want +got):\n%s", limit, diff)
				}
			}
			got := h.due("step", 1)[0]
			h.sameDocument(h.document(got), got)
			got.Due = got.Now.Add(time.Minute)
			h.put(got)
			if diff := cmp.Diff([]string{"second", "third"}, idsOf(h.due("step", 10))); diff != "" {
				h.Errorf("after one was taken (-want +got):\n%s", diff)
			}
			h.sleep(2 * time.Minute)
			if diff := cmp.Diff([]string{"second", "third", "first"}, idsOf(h.due("step", 10))); diff != "" {
				h.Errorf("when its time has come again (-want +got):\n%s", diff)
			}
		},
	},
	"taken once": {
		"of any number of workers that see a document is due, one works on it",
		func(h *harness) {
			p := document("a", "s1")
			p.Due = h.put(document("a", "s0")).Now.Add(time.Second)
			h.put(p)
			h.sleep(time.Minute)
			var took atomic.Int32
			together(8, func(int) {
				due, now, err := h.ledger.DueDocuments(context.Background(), "step", 5)
				if err != nil {
					h.Errorf("due: %v", err)
				}
				for _, p := range due {
					p.Due = now.Add(time.Minute)
					if _, err := h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}}); err == nil {
						took.Add(1)
					} else if !errors.Is(err, ledger.ErrStale) {
						h.Errorf("file: %v", err)
					}
				}
			})
			if took.Load() != 1 {
				h.Errorf("%d took it", took.Load())
			}
		},
	},
	"far due": {
		"a time beyond what a store can hold is late, not long past",
		func(h *harness) {
			p := document("a", "s1")
			p.Due = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			h.put(p)
			if due := h.due("step", 1); len(due) != 0 || h.document(p).Due.Year() < 2200 {
				h.Errorf("due %v, at %s", idsOf(due), h.document(p).Due)
			}
		},
	},
	"first due": {
		"the time at which the stores' counting begins is long past, and not never",
		func(h *harness) {
			p := document("a", "s1")
			p.Due = time.Unix(0, 0)
			h.sameDocument(h.put(p), h.document(p))
			if due := h.due("step", 1); len(due) != 1 || !due[0].Due.Equal(p.Due) {
				h.Errorf("due %v, want it", due)
			}
		},
	},
	"bounds": {
		"a document is small: what is too large is refused with the name of the field, and what fits is kept",
		func(h *harness) {
			long := func(n int) string { return strings.Repeat("n", n) }
			largest := ledger.Document{
				Tenant: long(255), Kind: long(32), ID: long(600), Collection: long(255), Subject: long(255), Trace: long(1024), State: long(32),
				Body: json.RawMessage(`"` + long(1<<20-2) + `"`),
			}
			committed := h.put(largest)
			h.sameDocument(committed, h.document(largest))
			for field, change := range map[string]func(*ledger.Document){
				"tenant": func(p *ledger.Document) { p.Tenant += "n" }, "kind": func(p *ledger.Document) { p.Kind += "n" },
				"its id": func(p *ledger.Document) { p.ID += "n" }, "collection": func(p *ledger.Document) { p.Collection += "n" },
				"subject": func(p *ledger.Document) { p.Subject = "a\x00" }, "trace": func(p *ledger.Document) { p.Trace = "a\xff" },
				"state": func(p *ledger.Document) { p.State += "n" }, "version": func(p *ledger.Document) { p.Version = -1 },
				"its body has": func(p *ledger.Document) { p.Body = append(slices.Clone(p.Body), ' ') },
				"the body":     func(p *ledger.Document) { p.Body = nil }, "UTF-8": func(p *ledger.Document) { p.Body = json.RawMessage("\"\xff\"") },
			} {
				p := largest
				change(&p)
				if _, err := h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}}); err == nil || !strings.Contains(err.Error(), field) {
					h.Errorf("%s: error %.200v, want one that names it", field, err)
				}
			}
			if _, total := h.find(ledger.DocumentQuery{Tenant: largest.Tenant, Kind: largest.Kind}); total != 1 {
				h.Errorf("%d documents, want 1", total)
			}
		},
	},
}
