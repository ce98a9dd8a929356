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

// papers is the ledger as one that keeps papers. A ledger that keeps none is
// not asked further.
func (h *harness) papers() ledger.Papers {
	h.Helper()
	papers, ok := h.ledger.(ledger.Papers)
	if !ok {
		h.Skip("this ledger keeps no papers")
	}
	return papers
}

func (h *harness) file(f ledger.Filing) ledger.Filed {
	h.Helper()
	did, err := h.papers().File(context.Background(), f)
	if err != nil {
		h.Fatalf("file: %v", err)
	}
	if did.Fresh {
		h.made = append(h.made, did.Reserved)
	}
	return did
}

// put files one paper.
func (h *harness) put(p ledger.Paper) ledger.Paper {
	h.Helper()
	return h.file(ledger.Filing{Papers: []ledger.Paper{p}}).Papers[0]
}

// overtaken files what somebody else has changed meanwhile.
func (h *harness) overtaken(f ledger.Filing) {
	h.Helper()
	if did, err := h.papers().File(context.Background(), f); !errors.Is(err, ledger.ErrStale) {
		h.Errorf("file: %+v, error %v; want that it is stale", did, err)
	}
}

func (h *harness) paper(p ledger.Paper) ledger.Paper {
	h.Helper()
	got, err := h.papers().Paper(context.Background(), p.Tenant, p.Kind, p.ID)
	if err != nil {
		h.Fatalf("paper: %v", err)
	}
	return got
}

// noPaper says that there is none of a name.
func (h *harness) noPaper(p ledger.Paper) {
	h.Helper()
	if got, err := h.papers().Paper(context.Background(), p.Tenant, p.Kind, p.ID); !errors.Is(err, ledger.ErrNoPaper) || !errors.Is(err, ledger.ErrNotFound) {
		h.Errorf("paper %s: %+v, error %v; want that there is none", p.ID, got, err)
	}
}

func (h *harness) find(q ledger.PaperQuery) (names []string, total int) {
	h.Helper()
	found, total, err := h.papers().FindPapers(context.Background(), q)
	if err != nil {
		h.Fatalf("find papers: %v", err)
	}
	return idsOf(found), total
}

// due is what is due of a kind, oldest first.
func (h *harness) due(kind string, limit int) []ledger.Paper {
	h.Helper()
	due, now, err := h.papers().DuePapers(context.Background(), kind, limit)
	if err != nil || now.IsZero() {
		h.Fatalf("due papers: at %s, error %v", now, err)
	}
	return due
}

func idsOf(papers []ledger.Paper) (names []string) {
	for _, p := range papers {
		names = append(names, p.ID)
	}
	return names
}

// samePaper compares papers, but for the time at which they were looked at.
func (h *harness) samePaper(want, got ledger.Paper) {
	h.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Paper{}, "Now")); diff != "" {
		h.Errorf("papers differ (-want +got):\n%s", diff)
	}
}

// paper is a new one of kind "step".
func paper(tenant, id string) ledger.Paper {
	return ledger.Paper{Tenant: tenant, Kind: "step", ID: id, Body: json.RawMessage(`{"id":"` + id + `"}`)}
}

var papers = map[string]scenario{
	"round trip": {
		"what is filed comes back as it was, to the byte and the nanosecond",
		func(h *harness) {
			now := h.put(paper("a", "first")).Now
			want := ledger.Paper{
				Tenant: "ténant", Kind: "schritt", ID: "w/1 🙂'\"\\%_", Binder: "mappe «1»", Subject: "who", Trace: "00-trace",
				State: "held", Due: now.Add(1234567891), Done: true, Body: awkward.raw,
			}
			filed := h.put(want)
			if filed.Version != 1 || filed.Created.IsZero() || !filed.Updated.Equal(filed.Created) || filed.Now.Before(filed.Updated) {
				h.Errorf("version %d, created %s, updated %s, now %s", filed.Version, filed.Created, filed.Updated, filed.Now)
			}
			want.Version, want.Created, want.Updated, want.Due = 1, filed.Created, filed.Updated, want.Due.UTC()
			h.samePaper(want, filed)
			h.samePaper(filed, h.paper(want))
			if diff := cmp.Diff(string(awkward.raw), string(h.paper(want).Body)); diff != "" {
				h.Errorf("body (-want +got):\n%s", diff)
			}
		},
	},
	"changed": {
		"a paper is changed over the version that was read; what it belongs to never changes",
		func(h *harness) {
			p := paper("a", "s1")
			p.Binder, p.Subject, p.Trace, p.Due = "w1", "who", "trace", h.put(paper("a", "s0")).Now.Add(time.Hour)
			first := h.put(p)
			h.sleep(time.Minute)
			next := first
			next.Binder, next.Subject, next.Trace, next.Created = "w2", "somebody", "another", time.Time{}
			next.State, next.Due, next.Done, next.Body = "over", time.Time{}, true, json.RawMessage(`[]`)
			second := h.put(next)
			if second.Updated.Sub(first.Updated) < time.Minute {
				h.Errorf("updated %s, then %s", first.Updated, second.Updated)
			}
			want := first
			want.State, want.Due, want.Done, want.Body, want.Version, want.Updated = "over", time.Time{}, true, json.RawMessage(`[]`), 2, second.Updated
			h.samePaper(want, second)
			h.samePaper(want, h.paper(first))
		},
	},
	"stale": {
		"who has not seen what stands there must not write over it",
		func(h *harness) {
			p := paper("a", "s1")
			guess := p
			guess.Version = 1
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{guess}})
			first := h.put(p)
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{p}})
			second := h.put(first)
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{first}})
			guess.Version = 3
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{guess}})
			h.samePaper(second, h.paper(p))
		},
	},
	"unchanged": {
		"a decision that rests on another paper falls when that one was changed",
		func(h *harness) {
			w := h.put(paper("a", "w"))
			absent := paper("a", "x")
			h.file(ledger.Filing{Papers: []ledger.Paper{paper("a", "s1")}, Unchanged: []ledger.Paper{w, absent}})
			h.samePaper(w, h.paper(w))
			h.noPaper(absent)
			h.put(w)
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{paper("a", "s2")}, Unchanged: []ledger.Paper{w}})
			h.put(absent)
			h.overtaken(ledger.Filing{Papers: []ledger.Paper{paper("a", "s2")}, Unchanged: []ledger.Paper{absent}})
			h.noPaper(paper("a", "s2"))
		},
	},
	"names": {
		"papers of other tenants, kinds and ids are other papers",
		func(h *harness) {
			h.noPaper(paper("a", "s1"))
			for i, p := range []ledger.Paper{paper("a", "s1"), paper("b", "s1"), paper("a", "S1"), {Tenant: "a", Kind: "saga", ID: "s1"}} {
				p.Body = json.RawMessage(fmt.Sprint(i))
				h.put(p)
				if got := h.paper(p); string(got.Body) != fmt.Sprint(i) {
					h.Errorf("paper %d says %s", i, got.Body)
				}
			}
			h.noPaper(paper("c", "s1"))
			h.noPaper(paper("b", "S1"))
		},
	},
	"reused buffers": {
		"a caller that writes the next body into the same memory must not change the paper",
		func(h *harness) {
			p := paper("a", "s1")
			p.Body = json.RawMessage(`{"state":"open"}`)
			filed := h.put(p)
			copy(p.Body, `{"state":"gone"}`)
			copy(filed.Body, `{"state":"lost"}`)
			copy(h.paper(p).Body, `{"state":"shut"}`)
			if got := h.paper(p); string(got.Body) != `{"state":"open"}` {
				h.Errorf("body %s", got.Body)
			}
		},
	},
	"one winner": {
		"of any number of workers that change a paper at once, one does for each version, and the others hear it",
		func(h *harness) {
			at := h.put(paper("a", "s1"))
			for round := range 5 {
				var won, lost atomic.Int32
				filed := make([]ledger.Filed, 16)
				together(len(filed), func(i int) {
					p := at
					p.Body = json.RawMessage(fmt.Sprintf("[%d,%d]", round, i))
					var err error
					switch filed[i], err = h.papers().File(context.Background(), ledger.Filing{Papers: []ledger.Paper{p}}); {
					case err == nil:
						won.Add(1)
					case errors.Is(err, ledger.ErrStale):
						lost.Add(1)
					default:
						h.Errorf("file: %v", err)
					}
				})
				if won.Load() != 1 || int(lost.Load()) != len(filed)-1 {
					h.Fatalf("round %d: %d won, %d lost", round, won.Load(), lost.Load())
				}
				winner := filed[slices.IndexFunc(filed, func(f ledger.Filed) bool { return f.Papers != nil })].Papers[0]
				at = h.paper(at)
				h.samePaper(winner, at)
			}
		},
	},
	"one maker": {
		"the same for a paper that is not there yet",
		func(h *harness) {
			var won atomic.Int32
			together(16, func(i int) {
				p := paper("a", "new")
				p.Body = json.RawMessage(fmt.Sprint(i))
				_, err := h.papers().File(context.Background(), ledger.Filing{Papers: []ledger.Paper{p}})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ledger.ErrStale):
					h.Errorf("file: %v", err)
				}
			})
			if won.Load() != 1 || h.paper(paper("a", "new")).Version != 1 {
				h.Errorf("%d made it", won.Load())
			}
		},
	},
	"due": {
		"what is to be looked at is found when its time has come, of all tenants, oldest first",
		func(h *harness) {
			now := h.put(paper("a", "never")).Now
			for id, in := range map[string]time.Duration{"third": 3 * time.Minute, "first": time.Minute, "second": 2 * time.Minute, "later": time.Hour} {
				p := paper(id, id)
				p.Due = now.Add(in)
				h.put(p)
			}
			saga := paper("a", "saga")
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
			h.samePaper(h.paper(got), got)
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
		"of any number of workers that see a paper is due, one works on it",
		func(h *harness) {
			p := paper("a", "s1")
			p.Due = h.put(paper("a", "s0")).Now.Add(time.Second)
			h.put(p)
			h.sleep(time.Minute)
			var took atomic.Int32
			together(8, func(int) {
				due, now, err := h.papers().DuePapers(context.Background(), "step", 5)
				if err != nil {
					h.Errorf("due: %v", err)
				}
				for _, p := range due {
					p.Due = now.Add(time.Minute)
					if _, err := h.papers().File(context.Background(), ledger.Filing{Papers: []ledger.Paper{p}}); err == nil {
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
			p := paper("a", "s1")
			p.Due = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			h.put(p)
			if due := h.due("step", 1); len(due) != 0 || h.paper(p).Due.Year() < 2200 {
				h.Errorf("due %v, at %s", idsOf(due), h.paper(p).Due)
			}
		},
	},
	"first due": {
		"the time at which the stores' counting begins is long past, and not never",
		func(h *harness) {
			p := paper("a", "s1")
			p.Due = time.Unix(0, 0)
			h.samePaper(h.put(p), h.paper(p))
			if due := h.due("step", 1); len(due) != 1 || !due[0].Due.Equal(p.Due) {
				h.Errorf("due %v, want it", due)
			}
		},
	},
	"bounds": {
		"a paper is small: what is too large is refused with the name of the field, and what fits is kept",
		func(h *harness) {
			long := func(n int) string { return strings.Repeat("n", n) }
			largest := ledger.Paper{
				Tenant: long(255), Kind: long(32), ID: long(600), Binder: long(255), Subject: long(255), Trace: long(1024), State: long(32),
				Body: json.RawMessage(`"` + long(1<<20-2) + `"`),
			}
			filed := h.put(largest)
			h.samePaper(filed, h.paper(largest))
			for field, change := range map[string]func(*ledger.Paper){
				"tenant": func(p *ledger.Paper) { p.Tenant += "n" }, "kind": func(p *ledger.Paper) { p.Kind += "n" },
				"its id": func(p *ledger.Paper) { p.ID += "n" }, "binder": func(p *ledger.Paper) { p.Binder += "n" },
				"subject": func(p *ledger.Paper) { p.Subject = "a\x00" }, "trace": func(p *ledger.Paper) { p.Trace = "a\xff" },
				"state": func(p *ledger.Paper) { p.State += "n" }, "version": func(p *ledger.Paper) { p.Version = -1 },
				"its body has": func(p *ledger.Paper) { p.Body = append(slices.Clone(p.Body), ' ') },
				"the body":     func(p *ledger.Paper) { p.Body = nil }, "UTF-8": func(p *ledger.Paper) { p.Body = json.RawMessage("\"\xff\"") },
			} {
				p := largest
				change(&p)
				if _, err := h.papers().File(context.Background(), ledger.Filing{Papers: []ledger.Paper{p}}); err == nil || !strings.Contains(err.Error(), field) {
					h.Errorf("%s: error %.200v, want one that names it", field, err)
				}
			}
			if _, total := h.find(ledger.PaperQuery{Tenant: largest.Tenant, Kind: largest.Kind}); total != 1 {
				h.Errorf("%d papers, want 1", total)
			}
		},
	},
}
