package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// person is named in everything that the scenarios erase.
const person = "ada@example.com"

// naming is a wish about a person, who is named wherever a caller can name anything.
func naming(tenant, who string) intent.WriteIntent {
	w := named(tenant, "welcome "+who, "op "+who)
	w.Step, w.CorrelationID, w.Key = "step "+who, "case "+who, intent.Fields{"email": who}
	w.Expect = intent.Fields{"state": "open", "name": who}
	return w
}

// recordedOf is a settled write about a person, whom the destination and a reviewer name
// too.
func (h *harness) recordedOf(tenant, who string) ledger.Record {
	h.Helper()
	return h.append(h.fresh(naming(tenant, who), announced),
		ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: who, URL: "https://shop.invalid/" + who, Message: who, Answer: []byte(who)},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: json.RawMessage(`{"name": "` + who + `"}`)},
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, By: "ben", Rule: "seen", Reason: who + " is there"})
}

// erasure files the document that says who erases, and asks for the writes.
func (h *harness) erasure(id, tenant string, recs ...ledger.Record) ledger.Erasing {
	h.Helper()
	h.put(ledger.Document{Tenant: tenant, Kind: ledger.ErasureKind, ID: id, Body: []byte(`{"by": "ben"}`)})
	return ledger.Erasing{Tenant: tenant, Erasure: id, Writes: ids(recs)}
}

// erased erases, and says what must have been.
func (h *harness) erased(e ledger.Erasing, want ledger.Erased) {
	h.Helper()
	h.seal() // what is not sealed is not erased
	h.unsealedErased(e, want)
}

func (h *harness) unsealedErased(e ledger.Erasing, want ledger.Erased) {
	h.Helper()
	did, err := h.ledger.Erase(context.Background(), e)
	if err != nil {
		h.Fatalf("erase: %v", err)
	}
	why := cmp.Transformer("why", func(l ledger.LeftOver) string {
		why, _, _ := strings.Cut(l.Why, " ") // the first word
		return fmt.Sprint(l.Write, l.Document, " ", why)
	})
	if diff := cmp.Diff(want, did, why, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("erase (-want +got):\n%s", diff)
	}
}

// says reports whether anything that the ledger shows of a tenant names a person.
func (h *harness) says(tenant, who string) (where []string) {
	h.Helper()
	found := func(place string, what any) {
		if text, err := json.Marshal(what); err != nil || strings.Contains(string(text), who) {
			where = append(where, fmt.Sprintf("%s: %s %v", place, text, err))
		}
	}
	for _, life := range h.lives(100) {
		if life.Record.Tenant == tenant {
			found("write", life.Record)
			found("events", life.Events)
			if life.Unread != nil {
				h.Errorf("write %s cannot be read: %v", life.Record.ID, life.Unread)
			}
		}
	}
	for _, p := range h.kept() {
		if p.Tenant == tenant {
			found("document", p)
		}
	}
	return where
}

var erasing = map[string]scenario{
	"contents": {
		"a write that was erased says nothing of the person any more, and still how it ended; another tenant's, and another person's, stay",
		func(h *harness) {
			rec, other, theirs := h.recordedOf("a", person), h.recordedOf("a", "bob@example.com"), h.recordedOf("b", person)
			h.erased(h.erasure("er_1", "a", rec), ledger.Erased{Writes: 1})
			h.lost(rec)
			if where := h.says("a", person); len(where) > 0 {
				h.Errorf("still named:\n%s", strings.Join(where, "\n"))
			}
			got := h.get(rec)
			h.same(ledger.Erase(rec, "er_1"), got, "Fence")
			if got.Settlement != ledger.Verified || got.Erased != "er_1" || !got.Tombstone || got.Fence <= rec.Fence || got.Digest != rec.Digest {
				h.Errorf("the tombstone is %+v", got)
			}
			h.same(other, h.get(other))
			h.same(theirs, h.get(theirs))
			for _, s := range []ledger.Search{{CorrelationID: rec.CorrelationID}, {Workflow: rec.Workflow}} {
				s.Tenant = "a"
				if found, err := h.ledger.Find(context.Background(), s); err != nil || len(found.Records) > 0 {
					h.Errorf("it is found by what was erased: %v, error %v", ids(found.Records), err)
				}
			}
			if found, err := h.ledger.Find(context.Background(), ledger.Search{Tenant: "a", KeyDigest: rec.KeyDigest}); err != nil || len(found.Records) != 1 {
				h.Errorf("by the digest of its key it is found %d times, error %v", len(found.Records), err)
			}
		},
	},
	"no duplicate": {
		"a repeat of an erased write is answered and never sent again, nor is the operation begun elsewhere",
		func(h *harness) {
			rec := h.recordedOf("a", person)
			h.erased(h.erasure("er_1", "a", rec), ledger.Erased{Writes: 1})
			h.lost(rec)
			h.same(ledger.Erase(rec, "er_1"), h.replayed(h.reservation(naming("a", person))), "Fence")
			other := naming("a", person)
			other.Expect["state"] = "closed"
			if _, _, err := h.ledger.Reserve(context.Background(), h.reservation(other)); !errors.Is(err, ledger.ErrDigestMismatch) {
				h.Errorf("the same write with another content: error %v", err)
			}
			other.Workflow = "another"
			_, _, err := h.ledger.Reserve(context.Background(), h.reservation(other))
			blocked, ok := errors.AsType[*ledger.BlockedError](err)
			if !ok || blocked.Prior.ID != rec.ID || strings.Contains(err.Error(), person) {
				h.Errorf("the same operation elsewhere: error %v", err)
			}
			if found, err := h.ledger.Operation(context.Background(), "a", rec.Tool, rec.IdempotencyKey); err != nil || len(found) != 1 {
				h.Errorf("the operation is known by %d writes, error %v; want 1", len(found), err)
			}
			h.nothing(ledger.Claim{Tenant: "a", ID: rec.ID, Early: true})
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, ledger.Event{Kind: ledger.EvLate, By: "one", Ref: person})
			h.append(h.get(rec), yielded)
			other.Step = "after the release"
			h.fresh(other)
			if again := h.get(rec); !again.Yielded {
				h.Errorf("an operation whose write was erased cannot be released: %+v", again)
			}
		},
	},
	"two of one operation": {
		"writes of one business operation, each after the window of the one before, are all erased, together and one after another",
		func(h *harness) {
			later := func(workflow string) ledger.Record {
				h.sleep(2 * time.Hour)
				w := naming("a", person)
				w.Workflow = workflow + " " + person
				res := h.reservation(w, announced)
				res.Window = time.Hour
				return h.append(h.reserve(res), sent, seen, verified)
			}
			first, second := h.recordedOf("a", person), later("second")
			h.erased(h.erasure("er_1", "a", first, second), ledger.Erased{Writes: 2})
			third := later("third")
			h.erased(h.erasure("er_2", "a", third), ledger.Erased{Writes: 1})
			h.lost(first, second, third)
			if where := h.says("a", person); len(where) > 0 {
				h.Errorf("still named:\n%s", strings.Join(where, "\n"))
			}
			h.get(first)
			h.get(second)
			h.get(third)
		},
	},
	"pruned before": {
		"a tombstone still names the record and the keys: it is erased like any other write",
		func(h *harness) {
			rec := h.recordedOf("a", person)
			h.sleep(keep)
			h.pruned(ledger.Pruned{Compacted: 1})
			h.erased(h.erasure("er_1", "a", rec), ledger.Erased{Writes: 1})
			h.lost(rec)
			if where := h.says("a", person); len(where) > 0 {
				h.Errorf("still named:\n%s", strings.Join(where, "\n"))
			}
			h.sleep(remember - keep)
			h.pruned(ledger.Pruned{Forgotten: 1, Documents: 0})
			h.gone(rec)
		},
	},
	"again": {
		"an erasure that was killed is made once more, and does nothing twice",
		func(h *harness) {
			one, two := h.recordedOf("a", person), h.recordedOf("a", "bob@example.com")
			e := h.erasure("er_1", "a", one)
			h.erased(e, ledger.Erased{Writes: 1})
			before := h.get(one)
			e.Writes = ids([]ledger.Record{one, two, {ID: "wr_00000000000000000000000000000000"}})
			h.erased(e, ledger.Erased{Writes: 1})
			h.lost(one, two)
			h.same(before, h.get(one))
			third := h.recordedOf("a", "eve@example.com")
			e.Tenant, e.Writes = "b", append(e.Writes, third.ID)
			h.erasure("er_1", "b")
			h.erased(e, ledger.Erased{})
			h.same(third, h.get(third))
		},
	},
	"open stays": {
		"what is not settled, or has a pending recheck, is not erased, and it is named: it could be sent again",
		func(h *harness) {
			open := h.append(h.fresh(wish("a", "open"), announced), sent)
			pending := h.append(h.fresh(wish("a", "recheck"), announced), sent, seen,
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: time.Hour})
			parent := h.append(h.fresh(wish("a", "parent"), announced), sent, seen)
			undo := wish("a", "undo")
			undo.Compensates = string(parent.ID)
			child := h.append(h.fresh(undo, announced), sent, seen, verified)
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID})
			h.erased(h.erasure("er_1", "a", open, pending, parent, child), ledger.Erased{Left: []ledger.LeftOver{
				{Write: open.ID, Why: "it"}, {Write: pending.ID, Why: "it"}, {Write: parent.ID, Why: "it"}, {Write: child.ID, Why: "write"},
			}})
			h.same(open, h.get(open))
		},
	},
	"not before it is sealed": {
		"an erasure cannot hide what was done to events that are not sealed",
		func(h *harness) {
			rec := h.recordedOf("a", person)
			e := h.erasure("er_1", "a", rec)
			if h.recorded {
				h.unsealedErased(e, ledger.Erased{Left: []ledger.LeftOver{{Write: rec.ID, Why: "its"}}})
			}
			h.erased(e, ledger.Erased{Writes: 1})
			h.lost(rec)
			if got := marks(h.unsealed(10)); h.recorded && cmp.Diff([]string{fmt.Sprint("erased ", rec.ID, " ", rec.Seq)}, got) != "" {
				h.Errorf("marks %v", got)
			}
		},
	},
	"documents": {
		"the documents of an ended workflow and a finished saga go with all that they hold; what is under way stays",
		func(h *harness) {
			h.put(ledger.Document{Tenant: "a", Kind: "workflow", ID: "w", Collection: "w", Done: true, Body: []byte(`{"n": "` + person + `"}`)})
			h.put(ledger.Document{Tenant: "a", Kind: "step", ID: "w/1", Collection: "w", Body: []byte(`{"n": "` + person + `"}`)})
			h.put(ledger.Document{Tenant: "a", Kind: "saga", ID: "w", Done: true, Body: []byte(`{"n": "` + person + `"}`)})
			h.put(ledger.Document{Tenant: "a", Kind: "saga", ID: "open", Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "a", Kind: "workflow", ID: "due", Collection: "due", Done: true, Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "a", Kind: "step", ID: "due/1", Collection: "due", Due: time.Now().Add(time.Hour), Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "b", Kind: "saga", ID: "w", Done: true, Body: []byte(`{}`)})
			e := h.erasure("er_1", "a")
			for _, name := range [][2]string{{"workflow", "w"}, {"saga", "w"}, {"saga", "open"}, {"workflow", "due"}, {"saga", "no such"}, {ledger.ErasureKind, "er_1"}} {
				e.Documents = append(e.Documents, ledger.Document{Kind: name[0], ID: name[1]})
			}
			h.erased(e, ledger.Erased{Documents: 3, Left: []ledger.LeftOver{{Document: "saga open", Why: "the"}, {Document: "workflow due", Why: "the"}}})
			if where := h.says("a", person); len(where) > 0 {
				h.Errorf("still named:\n%s", strings.Join(where, "\n"))
			}
			if n := len(h.kept()); n != 5 {
				h.Errorf("%d documents are left, want 5", n)
			}
			h.erased(e, ledger.Erased{Left: []ledger.LeftOver{{Document: "saga open", Why: "the"}, {Document: "workflow due", Why: "the"}}})
		},
	},
	"bounds": {
		"each erasure has a record of who made it, and each transaction a bound",
		func(h *harness) {
			rec := h.recordedOf("a", person)
			h.erasure("er_1", "a")
			for reason, e := range map[string]ledger.Erasing{
				"no tenant":  {Erasure: "er_1", Writes: []ledger.ID{rec.ID}},
				"no erasure": {Tenant: "a", Writes: []ledger.ID{rec.ID}},
				"too many":   {Tenant: "a", Erasure: "er_1", Writes: make([]ledger.ID, ledger.MaxErasing+1)},
			} {
				if _, err := h.ledger.Erase(context.Background(), e); err == nil {
					h.Errorf("%s: no error", reason)
				}
			}
			_, err := h.ledger.Erase(context.Background(), ledger.Erasing{Tenant: "a", Erasure: "er_2", Writes: []ledger.ID{rec.ID}})
			if !errors.Is(err, ledger.ErrNoDocument) {
				h.Errorf("an erasure without a document: error %v", err)
			}
			h.same(rec, h.get(rec))
			if err := h.ledger.Scrub(context.Background()); err != nil {
				h.Errorf("scrub: %v", err)
			}
		},
	},
}

// hold adds a legal hold.
func (h *harness) hold(hold ledger.Hold) ledger.Document {
	h.Helper()
	hold.Reason, hold.By, hold.At = "court case 7", "ben", h.get(h.made[0]).Created
	p, err := hold.Document(ledger.Document{})
	if err != nil {
		h.Fatal(err)
	}
	return h.put(p)
}

// release ends one.
func (h *harness) endHold(p ledger.Document) {
	h.Helper()
	hold, err := ledger.HoldOf(p)
	if err != nil {
		h.Fatal(err)
	}
	hold.Released, hold.ReleasedBy, hold.Why = hold.At.Add(time.Minute), "eve", "it was closed"
	if p, err = hold.Document(p); err != nil {
		h.Fatal(err)
	}
	h.put(p)
}

var holding = map[string]scenario{
	"erase": {
		"what is under a legal hold is not erased; what is beside it is, and after its release it is too",
		func(h *harness) {
			rec, other := h.recordedOf("a", person), h.recordedOf("a", "bob@example.com")
			for i, hold := range []ledger.Hold{
				{Tenant: "a"}, {Tenant: "a", Destination: "shop"}, {Tenant: "a", Writes: []ledger.ID{rec.ID}},
				{Tenant: "a", Destination: "shop", KeyDigests: []string{"x", rec.KeyDigest}},
			} {
				hold.ID = fmt.Sprint("hold_", i)
				p := h.hold(hold)
				h.erased(h.erasure(fmt.Sprint("er_", i), "a", rec), ledger.Erased{Left: []ledger.LeftOver{{Write: rec.ID, Why: "legal"}}})
				h.endHold(p)
			}
			h.same(rec, h.get(rec))
			for i, hold := range []ledger.Hold{{Tenant: "b"}, {Tenant: "a", Destination: "mail"}, {Tenant: "a", Writes: []ledger.ID{other.ID}}, {Tenant: "a", KeyDigests: []string{other.KeyDigest}}} {
				hold.ID = fmt.Sprint("beside_", i)
				h.hold(hold)
			}
			h.erased(h.erasure("er_9", "a", rec), ledger.Erased{Writes: 1})
			h.lost(rec)
		},
	},
	"prune": {
		"retention touches nothing that is under a legal hold: neither writes nor tombstones, undoings nor documents",
		func(h *harness) {
			rec, theirs := h.done("w1"), h.append(h.fresh(wish("b", "w1"), announced), sent, seen, verified)
			parent := h.append(h.fresh(wish("a", "parent"), announced), sent, seen)
			undo := wish("a", "undo")
			undo.Compensates = string(parent.ID)
			child := h.append(h.fresh(undo, announced), sent, seen, verified)
			parent = h.append(parent, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID}, settled(ledger.Compensated))
			h.put(ledger.Document{Tenant: "a", Kind: "saga", ID: "s", Done: true, Body: []byte(`{}`)})
			h.put(ledger.Document{Tenant: "b", Kind: "saga", ID: "s", Done: true, Body: []byte(`{}`)})
			first, second := h.hold(ledger.Hold{ID: "one", Tenant: "a", Writes: []ledger.ID{rec.ID}}), h.hold(ledger.Hold{ID: "two", Tenant: "a", KeyDigests: []string{parent.KeyDigest}})
			h.sleep(remember)
			h.pruned(ledger.Pruned{Compacted: 1, Documents: 1})
			h.lost(theirs)
			h.same(rec, h.get(rec))
			h.same(child, h.get(child))
			h.endHold(first)
			h.pruned(ledger.Pruned{Compacted: 1, Forgotten: 1})
			h.endHold(second)
			h.hold(ledger.Hold{ID: "three", Tenant: "a", Writes: []ledger.ID{rec.ID}})
			h.lost(rec, parent, child)
			h.pruned(ledger.Pruned{Compacted: 2})
			h.pruned(ledger.Pruned{Forgotten: 2})
			if got := h.get(rec); !got.Tombstone {
				h.Errorf("the tombstone under a hold is %+v", got)
			}
		},
	},
	"cannot be read": {
		"a hold that cannot be read covers everything of its tenant: what it was to keep is not known",
		func(h *harness) {
			rec := h.recordedOf("a", person)
			p := h.hold(ledger.Hold{ID: "one", Tenant: "a", Writes: []ledger.ID{"another"}})
			p.Body = []byte(`{"id": "two"}`)
			h.put(p)
			h.erased(h.erasure("er_1", "a", rec), ledger.Erased{Left: []ledger.LeftOver{{Write: rec.ID, Why: "legal"}}})
		},
	},
	"documents": {
		"while a tenant has a hold, none of its documents is erased: a document does not say which record it is about",
		func(h *harness) {
			h.recordedOf("a", person)
			h.put(ledger.Document{Tenant: "a", Kind: "saga", ID: "s", Done: true, Body: []byte(`{}`)})
			p := h.hold(ledger.Hold{ID: "one", Tenant: "a", Destination: "another"})
			e := h.erasure("er_1", "a")
			e.Documents = []ledger.Document{{Kind: "saga", ID: "s"}, {Kind: ledger.HoldKind, ID: "one"}}
			h.erased(e, ledger.Erased{Left: []ledger.LeftOver{{Document: "saga s", Why: "legal"}}})
			h.endHold(p)
			h.erased(e, ledger.Erased{Documents: 1})
		},
	},
}
