package ledgertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// beginSealing begins it, and returns until when commits may have left nothing to seal.
func (h *harness) beginSealing() (since time.Time) {
	h.Helper()
	since, err := h.ledger.BeginSealing(context.Background())
	if err != nil {
		h.Fatalf("begin sealing: %v", err)
	}
	return since
}

// record begins it for a scenario that is about something else.
func (h *harness) record(recorded bool) {
	h.Helper()
	if h.recorded = recorded; recorded {
		h.beginSealing()
	}
}

// unsealed is everything that is not sealed, in pages.
func (h *harness) unsealed(limit int) (all []ledger.Run) {
	h.Helper()
	for after := int64(0); ; {
		runs, err := h.ledger.Unsealed(context.Background(), after, limit)
		if err != nil {
			h.Fatalf("unsealed: %v", err)
		}
		if len(runs) == 0 {
			return all
		}
		if len(runs) > limit {
			h.Fatalf("unsealed: %d runs, want %d at the most", len(runs), limit)
		}
		for _, r := range runs {
			if r.Ticket <= after {
				h.Fatalf("unsealed behind %d: ticket %d", after, r.Ticket)
			}
			after = r.Ticket
		}
		all = append(all, runs...)
	}
}

// seal takes note of everything that is not sealed, and says that it is.
func (h *harness) seal() {
	h.Helper()
	runs := h.unsealed(1000)
	var tickets []int64
	for _, r := range runs {
		tickets = append(tickets, r.Ticket)
	}
	if err := h.ledger.Sealed(context.Background(), tickets); err != nil {
		h.Fatalf("sealed: %v", err)
	}
	h.runs = append(h.runs, runs...)
}

// checkFeed holds the runs that a scenario left with the events of every
// record that was made: each event is in exactly one.
func (h *harness) checkFeed() {
	h.Helper()
	if !h.recorded {
		return
	}
	h.seal()
	tickets, of := make(map[int64]bool), make(map[ledger.ID][]ledger.Event)
	for _, r := range h.runs {
		if tickets[r.Ticket] {
			h.Errorf("ticket %d came twice", r.Ticket)
		}
		tickets[r.Ticket] = true
		of[r.ID] = append(of[r.ID], r.Events...)
	}
	for _, made := range h.made {
		got, created := of[made.ID], h.get(made).Created
		got = slices.DeleteFunc(got, func(e ledger.Event) bool { return e.At.Before(created) }) // of one that was forgotten
		slices.SortStableFunc(got, func(a, b ledger.Event) int { return int(a.Seq - b.Seq) })
		if diff := cmp.Diff(h.events(made), got, cmpopts.EquateEmpty()); diff != "" {
			h.Errorf("write %s: its events, and what was to be sealed of them (-want +got):\n%s", made.ID, diff)
		}
	}
}

// marks are those of some runs, as words.
func marks(runs []ledger.Run) (texts []string) {
	for _, r := range runs {
		switch m := r.Mark; {
		case r.Unread != nil:
			texts = append(texts, fmt.Sprint("unread ", r.Unread))
		case m == nil:
			texts = append(texts, fmt.Sprintf("%s %d-%d of %d", r.ID, r.First, r.Last, len(r.Events)))
		case m.DocumentID != "":
			texts = append(texts, fmt.Sprintf("%s %s %s v%d", m.Kind, m.DocumentKind, m.DocumentID, m.Version))
		default:
			texts = append(texts, fmt.Sprintf("%s %s %d", m.Kind, m.Write, m.Seq))
		}
	}
	return texts
}

var recording = map[string]scenario{
	"on": {
		"of what is committed each event is in one run, with what it is about, and is there until it is sealed",
		func(h *harness) {
			for range 2 {
				if since := h.beginSealing(); !since.IsZero() {
					h.Fatalf("what was committed until %v may be missing", since)
				}
			}
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, seen)
			h.refused(ledger.ErrFenced, rec, rec.Fence+1, verified)
			rec = h.append(rec, verified)
			want := []string{fmt.Sprint(rec.ID, " 1-2 of 2"), fmt.Sprint(rec.ID, " 3-4 of 2"), fmt.Sprint(rec.ID, " 5-5 of 1")}
			runs := h.unsealed(10)
			if diff := cmp.Diff(want, marks(runs)); diff != "" {
				h.Fatalf("runs (-want +got):\n%s", diff)
			}
			for i, r := range runs {
				if r.Tenant != "a" || (r.Intent != nil) != (i == 0) {
					h.Errorf("run %d: tenant %q, intent %s", i, r.Tenant, r.Intent)
				}
			}
			if string(runs[0].Intent) != string(h.get(rec).Intent) {
				h.Errorf("the intent of the run is %s", runs[0].Intent)
			}
			sealed := []int64{runs[1].Ticket, 1 << 60}
			if err := h.ledger.Sealed(context.Background(), sealed); err != nil {
				h.Fatal(err)
			}
			if diff := cmp.Diff([]string{want[0], want[2]}, marks(h.unsealed(1))); diff != "" {
				h.Errorf("left (-want +got):\n%s", diff)
			}
			h.seal()
			again := h.append(h.fresh(wish("a", "w2")), deferred(0))
			if runs := h.unsealed(10); len(runs) != 2 || runs[0].Ticket <= sealed[0] || runs[0].ID != again.ID {
				h.Errorf("after all were sealed: %v", marks(runs))
			}
		},
	},
	"begun later": {
		"a sealer that begins later seals what is not pruned, and pruning waits for it from then on",
		func(h *harness) {
			old := h.append(h.done("w1"), ledger.Event{Kind: ledger.EvLate, Reason: "an answer"})
			rec := h.append(h.fresh(wish("a", "w2"), announced), sent)
			h.put(ledger.Document{Tenant: "a", Kind: "step", ID: "s", Body: []byte(`{}`)})
			if runs := h.unsealed(10); len(runs) != 0 {
				h.Errorf("there is no sealer, and for it %v", marks(runs))
			}
			h.sleep(keep)
			h.prune(0)
			late := h.append(h.get(old), yielded)
			h.lost(old)
			want := []string{
				fmt.Sprint(rec.ID, " 1-2 of 2"), fmt.Sprint(rec.ID, " 3-3 of 1"), "filed step s v1",
				fmt.Sprintf("pruned %s %d", old.ID, old.Seq), fmt.Sprintf("%s %d-%d of 1", old.ID, late.Seq, late.Seq),
			}
			if since := h.beginSealing(); !since.IsZero() {
				h.Errorf("what was committed until %v may be missing", since)
			}
			runs := h.unsealed(10)
			if diff := cmp.Diff(want, marks(runs)); diff != "" {
				h.Errorf("runs (-want +got):\n%s", diff)
			}
			h.append(rec, seen, verified)
			h.sleep(max(keep, 2*ledger.ChangesKept))
			if did := h.pruneUnsealed(); did.Compacted != 0 || len(h.unsealed(10)) != len(runs)+1 {
				h.Errorf("before it was sealed: %+v, left %v", did, marks(h.unsealed(10)))
			}
		},
	},
	"begun after a week": {
		"a ledger without a sealer does not grow for ever, and tells a later one what it lacks",
		func(h *harness) {
			old := h.append(h.fresh(wish("a", "w1"), announced), sent, seen)
			h.put(ledger.Document{Tenant: "a", Kind: "step", ID: "s", Body: []byte(`{}`)})
			h.sleep(ledger.ChangesKept - time.Hour)
			young := h.fresh(wish("a", "w2"))
			h.sleep(time.Hour)
			h.prune(0)
			document, events := h.kept()[0], h.events(old)
			since := h.beginSealing()
			if last := events[len(events)-1].At; since.Before(last) || since.Before(document.Updated) || !since.Before(young.Created) {
				h.Errorf("what was committed until %v may be missing; want %v, and not what came at %v", since, last, young.Created)
			}
			if diff := cmp.Diff([]string{fmt.Sprint(young.ID, " 1-1 of 1")}, marks(h.unsealed(10))); diff != "" {
				h.Errorf("runs (-want +got):\n%s", diff)
			}
			h.sleep(2 * ledger.ChangesKept)
			h.pruneUnsealed()
			if again := h.beginSealing(); !again.Equal(since) || len(h.unsealed(10)) != 1 {
				h.Errorf("later it is %v, and %v is to be sealed", again, marks(h.unsealed(10)))
			}
		},
	},
	"erased before": {
		"an erased document is not named to a sealer that begins later",
		func(h *harness) {
			named := h.put(ledger.Document{Tenant: "a", Kind: "step", ID: "of ada@example.com", Done: true, Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "b", Kind: "step", ID: named.ID, Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "a", Kind: ledger.ErasureKind, ID: "er_1", Body: []byte(`{}`)})
			did, err := h.ledger.Erase(context.Background(), ledger.Erasing{Tenant: "a", Erasure: "er_1", Documents: []ledger.Document{named}})
			if err != nil || did.Documents != 1 {
				h.Fatalf("erased %+v, error %v", did, err)
			}
			h.beginSealing()
			want := []string{"filed step " + named.ID + " v1", "filed erasure er_1 v1"}
			if runs := h.unsealed(10); cmp.Diff(want, marks(runs)) != "" || runs[0].Tenant != "b" {
				h.Errorf("%v of tenant %s; want %v, of the other tenant's", marks(runs), runs[0].Tenant, want)
			}
		},
	},
	"documents": {
		"an approval that is altered is to be found, so every batch leaves its digest, and nothing else does",
		func(h *harness) {
			h.beginSealing()
			p := h.put(ledger.Document{Tenant: "a", Kind: "gate", ID: "g", Collection: "b", State: "open", Body: []byte(`{"n": 1.0}`)})
			first := h.document(p)
			p.State, p.Body, p.Due, p.Collection = "closed", []byte(`{"n":2}`), time.Unix(7, 8), ""
			h.overtaken(ledger.Batch{Documents: []ledger.Document{{Tenant: "a", Kind: "gate", ID: "g", Body: []byte(`{}`)}}})
			p = h.put(p)
			h.put(ledger.Document{Tenant: "a", Kind: ledger.AuditKind, ID: "1", Body: []byte(`{}`)})
			h.file(ledger.Batch{Unchanged: []ledger.Document{p}, Documents: []ledger.Document{{Tenant: "b", Kind: "gate", ID: "g", Body: []byte(`{}`)}}})
			runs := h.unsealed(10)
			if diff := cmp.Diff([]string{"filed gate g v1", "filed gate g v2", "filed gate g v1"}, marks(runs)); diff != "" {
				h.Fatalf("runs (-want +got):\n%s", diff)
			}
			for i, want := range []ledger.Document{first, h.document(p)} {
				if digest, err := want.Digest(); err != nil || runs[i].Mark.Digest != digest || runs[i].Tenant != "a" {
					h.Errorf("version %d: mark %+v, want digest %s", i+1, runs[i].Mark, digest)
				}
			}
		},
	},
	"documents with writes": {
		"whatever else is done in the same step, a document leaves its mark and a write its run, or neither does",
		func(h *harness) {
			h.beginSealing()
			one, res := h.fresh(wish("a", "w1")), h.reservation(wish("a", "w2"))
			two := h.fresh(wish("a", "w3"))
			h.seal()
			page := func(id string) []ledger.Document {
				return []ledger.Document{{Tenant: "a", Kind: "step", ID: id, Body: []byte(`{}`)}}
			}
			h.file(ledger.Batch{Documents: page("s1"), Reserve: &res})
			h.made = append(h.made, res.Record)
			h.file(ledger.Batch{Documents: page("s2"), Append: []ledger.Appending{{ID: one.ID, Fence: one.Fence, Events: []ledger.Event{announced}}}})
			both := []ledger.Appending{
				{ID: one.ID, Fence: one.Fence, Events: []ledger.Event{sent}}, {ID: two.ID, Fence: two.Fence, Events: []ledger.Event{announced, sent}},
			}
			h.file(ledger.Batch{Documents: page("s3"), Append: both})
			both[1].Events = []ledger.Event{announced, announced}
			both[0].Events = []ledger.Event{seen}
			if _, err := h.ledger.Commit(context.Background(), ledger.Batch{Documents: page("s4"), Append: both}); err == nil {
				h.Fatal("a batch with an event that is not legal was done")
			}
			got := marks(h.unsealed(100))
			slices.Sort(got)
			want := []string{
				"filed step s1 v1", "filed step s2 v1", "filed step s3 v1", fmt.Sprint(res.Record.ID, " 1-1 of 1"),
				fmt.Sprint(one.ID, " 2-2 of 1"), fmt.Sprint(one.ID, " 3-3 of 1"), fmt.Sprint(two.ID, " 2-3 of 2"),
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				h.Errorf("runs (-want +got):\n%s", diff)
			}
			h.seal()
		},
	},
	"prune": {
		"what is not sealed is not forgotten, and what is forgotten says by which rule",
		func(h *harness) {
			h.beginSealing()
			rec := h.done("w1")
			h.sleep(keep)
			if did := h.pruneUnsealed(); did.Compacted != 0 {
				h.Fatalf("before its events were sealed: compacted %d", did.Compacted)
			}
			h.seal()
			h.pruned(ledger.Pruned{Compacted: 1})
			h.lost(rec)
			h.seal()
			runs := h.runs[len(h.runs)-1:]
			tombstone, _ := ledger.Tombstone(h.get(rec))
			m := runs[0].Mark
			if m == nil || m.Kind != ledger.MarkPruned || m.Write != rec.ID || m.Seq != rec.Seq || m.Rule == "" || m.At.IsZero() || m.Digest != tombstone {
				h.Fatalf("the mark of a burial: %+v", m)
			}
			h.append(h.get(rec), yielded)
			h.sleep(remember - keep)
			if did := h.pruneUnsealed(); did.Forgotten != 0 {
				h.Fatalf("before its last event was sealed: forgotten %d", did.Forgotten)
			}
			h.seal()
			h.pruned(ledger.Pruned{Forgotten: 1})
			if texts := marks(h.unsealed(10)); len(texts) != 1 || texts[0] != fmt.Sprintf("forgotten %s %d", rec.ID, rec.Seq+1) {
				h.Errorf("the mark of what is forgotten: %v", texts)
			}
		},
	},
	"prune documents": {
		"a document that retention forgets is distinguished from one that another actor deleted",
		func(h *harness) {
			h.beginSealing()
			cover := h.cover("a", "b1", 2)
			cover.Done = true
			h.put(cover)
			h.put(ledger.Document{Tenant: "a", Kind: "alone", ID: "x", Done: true, Body: []byte(`{}`)})
			h.seal()
			h.sleep(remember)
			h.prune(0)
			h.seal()
			var dropped []string
			for _, r := range h.runs {
				if r.Mark != nil && r.Mark.Kind == ledger.MarkDropped && r.Mark.Rule != "" {
					dropped = append(dropped, r.Mark.DocumentID)
				}
			}
			if kept := h.kept(); len(dropped) != 4 || len(kept) != 0 {
				h.Errorf("dropped %v, left %d", dropped, len(kept))
			}
		},
	},
	"under load": {
		"nothing is lost and nothing comes twice, however many write and however many seal",
		func(h *harness) {
			h.beginSealing()
			done, sealers := make(chan struct{}), sync.WaitGroup{}
			var mu sync.Mutex
			all := make(map[int64]ledger.Run)
			for range 2 {
				sealers.Go(func() {
					for stop := false; !stop; {
						select {
						case <-done:
							stop = true
						default:
						}
						h.collect(&mu, all)
					}
				})
			}
			var writers sync.WaitGroup
			made := make([]ledger.Record, 24)
			for i := range made {
				writers.Go(func() { made[i] = h.pressed(fmt.Sprint("w", i)) })
			}
			writers.Wait()
			close(done)
			sealers.Wait()
			h.collect(&mu, all)
			for _, r := range all {
				h.runs = append(h.runs, r)
			}
			h.made, h.recorded = append(h.made, made...), true
		},
	},
}

// pressed takes a write through its life, as one of many.
func (h *harness) pressed(workflow string) ledger.Record {
	ctx := context.Background()
	w := wish("a", workflow)
	w.Key["number"] = "of all" // one line
	rec, _, err := h.ledger.Reserve(ctx, h.reservation(w))
	for err == nil && rec.QueuedBehind != "" {
		runtime.Gosched() // to the writes before it
		rec, err = h.ledger.Get(ctx, "a", rec.ID)
	}
	if err == nil && rec.Owner == "" {
		var lent []ledger.Record
		if lent, err = h.ledger.Claim(ctx, ledger.Claim{Owner: "two", LeaseFor: lease, Tenant: "a", ID: rec.ID, Early: true}); len(lent) == 1 {
			rec = lent[0]
		}
	}
	for _, e := range [][]ledger.Event{{announced}, {sent, seen}, {verified}} {
		if err == nil {
			rec, err = h.ledger.Append(ctx, rec.ID, rec.Fence, e...)
		}
	}
	if err != nil {
		h.Errorf("write %s: %v", rec.ID, err)
	}
	return rec
}

// collect seals what is there, beside others who do.
func (h *harness) collect(mu *sync.Mutex, into map[int64]ledger.Run) {
	runs, err := h.ledger.Unsealed(context.Background(), 0, 7)
	if err != nil {
		h.Errorf("unsealed: %v", err)
	}
	var tickets []int64
	mu.Lock()
	for _, r := range runs {
		into[r.Ticket] = r
		tickets = append(tickets, r.Ticket)
	}
	mu.Unlock()
	if err := h.ledger.Sealed(context.Background(), tickets); err != nil {
		h.Errorf("sealed: %v", err)
	}
}
