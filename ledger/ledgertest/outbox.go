package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// enqueue puts intents into the outbox, in one transaction of a caller.
func (h *harness) enqueue(ws ...intent.WriteIntent) {
	h.Helper()
	if err := h.options.Enqueue(h.T, h.ledger, true, ws...); err != nil {
		h.Fatalf("enqueue: %v", err)
	}
}

// enqueueSealed is enqueue with an outbox that seals.
func (h *harness) enqueueSealed(ws ...intent.WriteIntent) {
	h.Helper()
	if err := h.options.EnqueueSealed(h.T, h.ledger, entryKeys{seal: sealedEntry}, ws...); err != nil {
		h.Fatalf("enqueue: %v", err)
	}
}

// entryKeys seal what waits in an outbox, and nothing else.
type entryKeys struct {
	ledger.Keys
	seal ledger.Seal
}

func (k entryKeys) SealEntry(id string, w intent.WriteIntent) ([]byte, error) { return k.seal(id, w) }

// sealedEntry hides an intent as a program that seals does, and opened is what opens that: it
// is not the ledger that must not know what is in it.
func sealedEntry(_ string, w intent.WriteIntent) ([]byte, error) {
	text, err := w.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string][]byte{"sealed": text})
}

func opened(rec ledger.Record) (ledger.Record, error) {
	var e struct{ Sealed []byte }
	if !ledger.SealedEntry(rec.Intent) {
		return rec, nil
	}
	if err := json.Unmarshal(rec.Intent, &e); err != nil {
		return rec, err
	}
	w, err := intent.Decode(e.Sealed)
	if err != nil {
		return rec, err
	}
	return ledger.NewRecord(w)
}

// update is the nth wish about one record.
func update(tenant, record string, n int) intent.WriteIntent {
	w := wish(tenant, fmt.Sprint(record, "-", n))
	w.Write, w.Key, w.Expect = intent.Update, intent.Fields{"number": record}, intent.Fields{"n": json.Number(fmt.Sprint(n))}
	return w
}

// id is the id of a wish.
func (h *harness) id(w intent.WriteIntent) ledger.ID {
	h.Helper()
	return ledger.IDOf(w.StructuralKey())
}

// absent says that a wish is in no part of the ledger.
func (h *harness) absent(w intent.WriteIntent) {
	h.Helper()
	if _, err := h.ledger.Get(context.Background(), w.Tenant, h.id(w)); !errors.Is(err, ledger.ErrNotFound) {
		h.Errorf("get %s: error %v, want that there is none", w.Workflow, err)
	}
}

// admitted claims whatever there is, until nothing is left: the order in which
// it was lent, each settled before the next claim.
func (h *harness) admitted() (order []ledger.ID) {
	h.Helper()
	for range 100 {
		got := h.claim(ledger.Claim{Limit: 10})
		for _, rec := range got {
			order = append(order, rec.ID)
			h.made = append(h.made, rec)
			h.append(rec, announced, sent, seen, verified)
		}
		if len(got) == 0 && h.queueStats().Outbox == 0 {
			return order
		}
	}
	h.Fatalf("still not all after 100 claims: %v", order)
	return nil
}

// reasonOf is why an entry was refused, as the stats list it.
func (h *harness) reasonOf(w intent.WriteIntent) string {
	h.Helper()
	for _, r := range h.queueStats().Refused {
		if r.ID == h.id(w) && r.Tenant == w.Tenant && !r.At.IsZero() {
			return r.Reason
		}
	}
	h.Fatalf("write of %s is not among the refused", w.Workflow)
	return ""
}

var outbox = map[string]scenario{
	"committed": {
		"what was committed with the caller's state is work like any other",
		func(h *harness) {
			w := wish("a", "w1")
			h.enqueue(w)
			if s := h.queueStats(); s.Outbox != 1 || s.Oldest.IsZero() || len(s.Queues) != 0 {
				h.Errorf("stats before: %+v", s)
			}
			got := h.claim(ledger.Claim{})
			if len(got) != 1 || got[0].ID != h.id(w) || got[0].State != ledger.Queued || got[0].Owner != "two" {
				h.Fatalf("claimed %+v", got)
			}
			h.made = append(h.made, got[0])
			want := h.reservation(w).Record
			h.same(h.digested(want), got[0].Identity())
			if s := h.queueStats(); s.Outbox != 0 || !s.Oldest.IsZero() {
				h.Errorf("stats after: %+v", s)
			}
			h.append(got[0], announced, sent, seen, verified)
		},
	},
	"rolled back": {
		"what was rolled back never was",
		func(h *harness) {
			if err := h.options.Enqueue(h.T, h.ledger, false, wish("a", "w1")); err != nil {
				h.Fatal(err)
			}
			h.absent(wish("a", "w1"))
			h.nothing(ledger.Claim{Limit: 10})
			if s := h.queueStats(); s.Outbox != 0 {
				h.Errorf("stats: %+v", s)
			}
			h.fresh(wish("a", "w1"))
		},
	},
	"looked up": {
		"who enqueued can ask at once, and no other actor",
		func(h *harness) {
			h.enqueue(wish("a", "w1"))
			if _, err := h.ledger.Get(context.Background(), "b", h.id(wish("a", "w1"))); !errors.Is(err, ledger.ErrNotFound) {
				h.Errorf("another tenant: error %v", err)
			}
			rec, err := h.ledger.Get(context.Background(), "a", h.id(wish("a", "w1")))
			if err != nil || rec.State != ledger.Queued || rec.Owner != "" || rec.Due.IsZero() {
				h.Fatalf("got %+v, error %v", rec, err)
			}
			h.made = append(h.made, rec)
			h.taken(rec, ledger.Claim{})
		},
	},
	"one by name": {
		"a caller that wants to work on what it enqueued finds it",
		func(h *harness) {
			h.enqueue(wish("a", "w1"), wish("a", "w2"))
			recs := h.claim(ledger.Claim{Tenant: "a", ID: h.id(wish("a", "w2"))})
			if len(recs) != 1 || recs[0].ID != h.id(wish("a", "w2")) {
				h.Fatalf("claimed %v", ids(recs))
			}
		},
	},
	"submitted as well": {
		"a write that was enqueued and is submitted too is one write",
		func(h *harness) {
			w := wish("a", "w1")
			h.enqueue(w)
			rec := h.replayed(h.reservation(w, announced))
			if rec.State != ledger.Queued || rec.Owner != "" {
				h.Errorf("state %s, owner %q: it was enqueued before", rec.State, rec.Owner)
			}
			h.enqueue(w)
			h.made = append(h.made, rec)
			if diff := cmp.Diff([]ledger.ID{h.id(w)}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
			if s := h.queueStats(); s.Refused != nil {
				h.Errorf("a repeat was refused: %v", s.Refused)
			}
		},
	},
	"order": {
		"two updates of one record never overtake each other, and nothing else waits",
		func(h *harness) {
			h.enqueue(update("a", "x", 1), update("a", "x", 2))
			h.enqueue(update("a", "y", 1))
			h.enqueue(update("a", "x", 3), update("b", "x", 1))
			first := h.claim(ledger.Claim{Limit: 10})
			want := []ledger.ID{h.id(update("a", "x", 1)), h.id(update("a", "y", 1)), h.id(update("b", "x", 1))}
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(ids(first)))); diff != "" {
				h.Fatalf("lent at first (-want +got):\n%s", diff)
			}
			for _, rec := range first {
				h.made = append(h.made, rec)
				h.append(rec, announced, sent, seen, verified)
			}
			if diff := cmp.Diff([]ledger.ID{h.id(update("a", "x", 2)), h.id(update("a", "x", 3))}, h.admitted()); diff != "" {
				h.Errorf("lent after (-want +got):\n%s", diff)
			}
		},
	},
	"behind what was submitted": {
		"there is one queue, whichever way its writes came",
		func(h *harness) {
			first := h.fresh(update("a", "x", 1), announced)
			h.enqueue(update("a", "x", 2))
			third := h.fresh(update("a", "x", 3))
			if third.QueuedBehind != h.id(update("a", "x", 2)) {
				h.Errorf("a write that was submitted later is behind %q: it overtook the one that was enqueued", third.QueuedBehind)
			}
			second := h.get(ledger.Record{Tenant: "a", ID: h.id(update("a", "x", 2))})
			if second.QueuedBehind != first.ID {
				h.Errorf("the one that was enqueued is behind %q", second.QueuedBehind)
			}
		},
	},
	"another digest": {
		"one logical write cannot change what it asks for, and its refusal holds nothing up",
		func(h *harness) {
			h.fresh(update("a", "x", 1), announced)
			changed := update("a", "x", 1)
			changed.Expect = intent.Fields{"n": json.Number("17")}
			h.enqueue(changed, update("a", "x", 2), update("a", "y", 1))
			if diff := cmp.Diff([]ledger.ID{h.id(update("a", "y", 1))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
			if reason := h.reasonOf(changed); reason == "" {
				h.Error("refused without a reason")
			}
			if rec := h.get(ledger.Record{Tenant: "a", ID: h.id(changed)}); rec.State != ledger.Sending {
				h.Errorf("the recorded write is %s", rec.State)
			}
			if second := h.get(ledger.Record{Tenant: "a", ID: h.id(update("a", "x", 2))}); second.QueuedBehind != h.id(changed) {
				h.Errorf("the next one is behind %q", second.QueuedBehind)
			}
		},
	},
	"erase": {
		"an entry that was refused keeps its intent in the clear: it is erased too, but for what is under a hold; one that waits is named",
		func(h *harness) {
			h.fresh(named("a", "w1", "invoice 7"), announced)
			second := named("a", "w2", "invoice 7")
			h.enqueue(second)
			h.nothing(ledger.Claim{})
			if reason := h.reasonOf(second); reason == "" {
				h.Error("refused without a reason")
			}
			waiting := wish("a", "w2") // about the same record
			waiting.Step = "another"
			h.enqueue(waiting)
			e := h.erasure("er_1", "a")
			digest := h.reservation(second).Record.KeyDigest
			e.KeyDigests = []string{digest}
			left := []ledger.LeftOver{{Write: h.id(waiting), Why: "it"}}
			p := h.hold(ledger.Hold{ID: "one", Tenant: "a", KeyDigests: []string{"another"}})
			h.unsealedErased(e, ledger.Erased{Left: left})
			h.sleep(remember)
			h.prune(0)
			if n := len(h.queueStats().Refused); n != 1 {
				h.Errorf("%d refused entries are left under a hold, want 1", n)
			}
			h.endHold(p)
			other := h.erasure("er_2", "b")
			other.KeyDigests = e.KeyDigests
			h.unsealedErased(other, ledger.Erased{})
			h.unsealedErased(e, ledger.Erased{Refused: 1, Left: left})
			if n := len(h.queueStats().Refused); n != 0 {
				h.Errorf("%d refused entries are left", n)
			}
		},
	},
	"blocked": {
		"an operation that another write has begun is not begun again, and who waits hears it",
		func(h *harness) {
			h.fresh(named("a", "w1", "invoice 7"), announced)
			second := named("a", "w2", "invoice 7")
			h.enqueue(second, wish("a", "w3"))
			_, err := h.ledger.Get(context.Background(), "a", h.id(second))
			if refused, ok := errors.AsType[*ledger.RefusedError](err); !ok || refused.ID != h.id(second) || refused.Reason == "" {
				h.Errorf("get: error %v, want a refusal", err)
			}
			if diff := cmp.Diff([]ledger.ID{h.id(wish("a", "w3"))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
			if reason := h.reasonOf(second); reason == "" {
				h.Error("refused without a reason")
			}
			h.sleep(keep)
			h.prune(0)
			if _, err := h.ledger.Get(context.Background(), "a", h.id(second)); !errors.Is(err, ledger.ErrRefused) {
				h.Errorf("get after a while: error %v", err)
			}
			h.sleep(remember)
			h.prune(0)
			h.lost(h.made...)
			h.absent(second)
		},
	},
	"refused in a queue": {
		"what is refused leaves the queue as it was",
		func(h *harness) {
			first := h.fresh(named("a", "w1", "invoice 7"), announced)
			again, next := named("a", "w2", "invoice 7"), wish("a", "w3")
			again.Key, next.Key = wish("a", "w1").Key, wish("a", "w1").Key
			h.enqueue(again)
			h.nothing(ledger.Claim{Limit: 10})
			if reason := h.reasonOf(again); reason == "" {
				h.Error("refused without a reason")
			}
			second := h.fresh(next)
			if second.QueuedBehind != first.ID {
				h.Errorf("the next one is behind %q", second.QueuedBehind)
			}
			h.append(first, sent, seen, verified)
			h.taken(second, ledger.Claim{})
		},
	},
	"many workers": {
		"however many read at once, each entry is taken once and in its order",
		func(h *harness) {
			const records, each = 3, 5
			for n := range each {
				for r := range records {
					h.enqueue(update("a", fmt.Sprint("r", r), n))
				}
			}
			var mu sync.Mutex
			order := map[string][]string{}
			together(4, func(i int) {
				for range 1000 {
					recs, err := h.ledger.Claim(context.Background(), ledger.Claim{Owner: fmt.Sprint("worker ", i), LeaseFor: lease, Limit: 2})
					if err != nil {
						h.Errorf("claim: %v", err)
						return
					}
					for _, rec := range recs {
						w, err := intent.DecodeStored(rec.Intent)
						if err != nil {
							h.Errorf("intent: %v", err)
							return
						}
						mu.Lock()
						record := fmt.Sprint(w.Key["number"])
						order[record] = append(order[record], fmt.Sprint(w.Expect["n"]))
						mu.Unlock()
						if _, err := h.ledger.Append(context.Background(), rec.ID, rec.Fence, announced, sent, seen, verified); err != nil {
							h.Errorf("append: %v", err)
						}
					}
					mu.Lock()
					all := 0
					for _, seen := range order {
						all += len(seen)
					}
					mu.Unlock()
					if all == records*each {
						return
					}
				}
			})
			for r := range records {
				if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}, order[fmt.Sprint("r", r)]); diff != "" {
					h.Errorf("record %d (-want +got):\n%s", r, diff)
				}
			}
		},
	},
	"undoing": {
		"the undoing of a settled write comes after what a caller's transaction enqueued before it",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "w1"), announced), sent, seen, verified)
			h.enqueue(about("k", "w2"))
			child := h.reserve(h.undoing(first))
			if second := h.get(ledger.Record{Tenant: "a", ID: h.id(about("k", "w2"))}); child.QueuedBehind != second.ID || second.QueuedBehind != "" {
				h.Errorf("the undoing waits behind %q, the entry of the outbox behind %q", child.QueuedBehind, second.QueuedBehind)
			}
		},
	},
	"sealed": {
		"what waits sealed is taken in by a process with the key, in its order, and by no other",
		func(h *harness) {
			first, second, other := update("a", "x", 1), update("a", "x", 2), update("a", "y", 1)
			first.Sensitive = []string{"/n"}
			h.enqueueSealed(first, second)
			h.enqueue(update("a", "x", 3), other)
			rec := h.claim(ledger.Claim{Limit: 10})
			if len(rec) != 1 || rec[0].ID != h.id(other) {
				h.Fatalf("without the key: lent %v, want only what is about another record", ids(rec))
			}
			h.append(rec[0], announced, sent, seen, verified)
			if _, _, err := h.ledger.Reserve(context.Background(), h.reservation(update("a", "x", 4), announced)); !errors.Is(err, ledger.ErrNoKey) {
				h.Errorf("reserved before what was enqueued: error %v, want the missing key", err)
			}
			if _, err := h.ledger.Get(context.Background(), "a", h.id(first)); !errors.Is(err, ledger.ErrNoKey) || !strings.Contains(err.Error(), string(h.id(first))) {
				h.Errorf("get: error %v, want the missing key", err)
			}
			if s := h.queueStats(); s.Outbox != 3 || len(s.Refused) != 0 {
				h.Errorf("%d wait, %d are refused; want 3 and none", s.Outbox, len(s.Refused))
			}
			h.ledger.KeepWith(opened)
			want := []ledger.ID{h.id(first), h.id(second), h.id(update("a", "x", 3))}
			if diff := cmp.Diff(want, h.admitted()); diff != "" {
				h.Errorf("lent with the key (-want +got):\n%s", diff)
			}
		},
	},
	"sealed and damaged": {
		"what does not open is refused with the reason, and keeps no other entry waiting",
		func(h *harness) {
			damaged := func(string, intent.WriteIntent) ([]byte, error) { return []byte(`{"sealed":"??"}`), nil }
			moved := func(string, intent.WriteIntent) ([]byte, error) { return sealedEntry("", update("b", "z", 1)) }
			for of, seal := range map[string]ledger.Seal{"x": damaged, "y": moved} {
				if err := h.options.EnqueueSealed(h.T, h.ledger, entryKeys{seal: seal}, update("a", of, 1)); err != nil {
					h.Fatal(err)
				}
			}
			h.ledger.KeepWith(opened)
			h.enqueueSealed(update("a", "x", 2))
			if diff := cmp.Diff([]ledger.ID{h.id(update("a", "x", 2))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
			for _, of := range []string{"x", "y"} {
				if h.reasonOf(update("a", of, 1)) == "" {
					h.Error("refused without a reason")
				}
			}
		},
	},
	"refused before": {
		"what can never be sent is refused where it is enqueued, and the caller's state with it",
		func(h *harness) {
			invalid, undo := wish("a", "w1"), wish("a", "w2")
			invalid.Expect = nil
			undo.Compensates = string(h.id(wish("a", "w3")))
			for name, w := range map[string]intent.WriteIntent{"invalid": invalid, "compensating": undo} {
				if err := h.options.Enqueue(h.T, h.ledger, true, w); !errors.Is(err, intent.ErrInvalid) {
					h.Errorf("%s: error %v, want that it is invalid", name, err)
				}
				h.absent(w)
			}
		},
	},
	"full": {
		"a full queue says so, and takes in what was there",
		func(h *harness) {
			h.enqueue(wish("a", "w1"))
			full := h.setNote(note("outbox/full", "on", 0))
			if err := h.options.Enqueue(h.T, h.ledger, true, wish("a", "w2")); !errors.Is(err, ledger.ErrFull) {
				h.Errorf("error %v, want that the queue is full", err)
			}
			if diff := cmp.Diff([]ledger.ID{h.id(wish("a", "w1"))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
			h.absent(wish("a", "w2"))
			h.setNote(note("outbox/full", "", full.Version))
			h.enqueue(wish("a", "w2"))
			if diff := cmp.Diff([]ledger.ID{h.id(wish("a", "w2"))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
		},
	},
	"hot line": {
		"a long queue of writes about one record keeps no other write waiting",
		func(h *harness) {
			var ws []intent.WriteIntent
			for n := range 300 {
				ws = append(ws, update("a", "hot", n))
			}
			h.enqueue(append(ws, update("b", "cold", 1))...)
			got := ids(h.claim(ledger.Claim{Limit: 10}))
			got = append(got, ids(h.claim(ledger.Claim{Limit: 10}))...) // a read takes in a bounded part
			if !slices.Contains(got, h.id(update("b", "cold", 1))) {
				h.Errorf("lent %v, want also the write of another queue", got)
			}
		},
	},
}
