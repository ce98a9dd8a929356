package ledgertest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

var reserving = map[string]scenario{
	"new": {
		"a write that is new belongs to its caller, before any other can see it",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			if rec.State != ledger.Sending || rec.Owner != "one" || rec.Fence < 1 || rec.Seq != 2 || rec.Sends != 1 {
				h.Errorf("got %s, owner %q, fence %d, seq %d, sends %d", rec.State, rec.Owner, rec.Fence, rec.Seq, rec.Sends)
			}
			if !rec.LeaseUntil.After(rec.Now) || rec.Created.IsZero() {
				h.Errorf("created %s, leased until %s, now %s", rec.Created, rec.LeaseUntil, rec.Now)
			}
			h.same(rec, h.get(rec))
		},
	},
	"read before another write": {
		"a pre-state that was read before another write of the record settled is older than that write: the new one only takes its place, and reads again",
		func(h *harness) {
			read := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "indeterminate"}
			res := h.reservation(about("k", "w2"), read, announced)
			res.Precheck = h.precheck(res.Record, ledger.Precheck{})
			first := h.fresh(about("k", "w1"), announced)
			h.append(first, sent, seen, verified)
			late := h.reserve(res)
			if late.State != ledger.Queued || late.QueuedBehind != "" || late.Sends != 0 || late.Reads != 0 || late.Owner != "one" || !late.LeaseUntil.After(late.Now) {
				h.Errorf("%s behind %q with %d sends, %d reads, owner %q; want it queued in its owner's hands, without the read", late.State, late.QueuedBehind, late.Sends, late.Reads, late.Owner)
			}
			third := h.reservation(about("k", "w3"), read, announced)
			third.Precheck = h.precheck(third.Record, ledger.Precheck{Contended: true})
			h.append(late, announced, sent, seen, verified)
			if got := h.reserve(third); got.State != ledger.Queued || got.Sends != 0 {
				h.Errorf("%s with %d sends; want it queued: the write before it was in the queue when it read", got.State, got.Sends)
			}
		},
	},
	"read before another record's write": {
		"writes of other records are no reason to read again, nor are those that settled before the read",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			h.append(first, sent, seen, verified)
			res := h.reservation(about("k", "w2"), ledger.Event{Kind: ledger.EvRead, Before: true}, announced)
			res.Precheck = h.precheck(res.Record, ledger.Precheck{})
			h.append(h.fresh(about("other", "w3"), announced), sent, seen, verified)
			if got := h.reserve(res); got.State != ledger.Sending || got.Reads != 1 {
				h.Errorf("%s with %d reads; want it announced in one commit", got.State, got.Reads)
			}
			if p, err := h.ledger.Precheck(context.Background(), res.Record); err != nil || !p.Recorded {
				h.Errorf("%+v, %v; want it recorded", p, err)
			}
		},
	},
	"read beside a held write": {
		"a held write may join the queue, be sent and leave it while another one reads",
		func(h *harness) {
			held := h.fresh(about("k", "w1"), ledger.Event{Kind: ledger.EvHeld, In: time.Hour})
			res := h.reservation(about("k", "w2"), announced)
			h.precheck(res.Record, ledger.Precheck{Contended: true})
			h.append(held, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Denied, By: "ann"})
			h.precheck(res.Record, ledger.Precheck{})
		},
	},
	"repeat in flight": {
		"a repeat must not get the lease: two would send",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced)
			first := h.reserve(res)
			h.same(first, h.replayed(res))
			res.Owner = "two"
			h.same(first, h.replayed(res))
			h.same(first, h.get(first))
		},
	},
	"repeat of a settled write": {
		"a repeat gets the recorded outcome, and the write is not done again",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced)
			last := h.append(h.reserve(res), sent, seen, verified)
			got := h.replayed(res)
			h.same(last, got)
			if got.State != ledger.Settled || got.Settlement != ledger.Verified || got.Owner != "" {
				h.Errorf("got %s of owner %q", got.Phase(), got.Owner)
			}
		},
	},
	"another digest": {
		"one logical write cannot change what it asks for; both digests are shown",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced)
			first := h.reserve(res)
			other := res
			other.Record.Digest = strings.Repeat("f", len(res.Record.Digest))
			_, fresh, err := h.ledger.Reserve(context.Background(), other)
			var mismatch *ledger.DigestMismatchError
			if fresh || !errors.As(err, &mismatch) || !errors.Is(err, ledger.ErrDigestMismatch) {
				h.Fatalf("fresh %v, error %v", fresh, err)
			}
			want := ledger.DigestMismatchError{ID: first.ID, Recorded: res.Record.Digest, Received: other.Record.Digest}
			if diff := cmp.Diff(want, *mismatch); diff != "" {
				h.Errorf("mismatch (-want +got):\n%s", diff)
			}
			h.same(first, h.get(first))
			if n := len(h.events(first)); n != 2 {
				h.Errorf("%d events after a refusal, want 2", n)
			}
		},
	},
	"calls of one step": {
		"a loop that calls a tool twice means two writes",
		func(h *harness) {
			w := wish("a", "w1")
			h.fresh(w)
			w.Call = 1
			h.fresh(w)
		},
	},
	"illegal first events": {
		"a reservation is applied whole or not at all",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced, verified)
			if _, _, err := h.ledger.Reserve(context.Background(), res); !errors.Is(err, ledger.ErrIllegalMove) {
				h.Fatalf("error %v, want an illegal move", err)
			}
			if _, err := h.ledger.Get(context.Background(), "a", res.Record.ID); !errors.Is(err, ledger.ErrNotFound) {
				h.Fatalf("get: error %v, want not found", err)
			}
			res.Events = nil
			h.reserve(res)
		},
	},
	"half a record": {
		"a record that could not be found again, or worked on, is refused",
		func(h *harness) {
			for name, spoil := range map[string]func(*ledger.Record){
				"no tenant":  func(r *ledger.Record) { r.Tenant = "" },
				"no intent":  func(r *ledger.Record) { r.Intent = nil },
				"another id": func(r *ledger.Record) { r.ID = ledger.IDOf(strings.Repeat("0", 64)) },
				"no id":      func(r *ledger.Record) { r.ID, r.StructuralKey = "", "" },
			} {
				res := h.reservation(wish("a", "w1"))
				spoil(&res.Record)
				if _, fresh, err := h.ledger.Reserve(context.Background(), res); err == nil || fresh || errors.Is(err, ledger.ErrCorrupt) {
					h.Errorf("%s: fresh %v, error %v", name, fresh, err)
				}
			}
			h.fresh(wish("a", "w1"))
		},
	},
	"only the identity": {
		"nothing can be reserved that claims to have happened already",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"))
			res.Record.State, res.Record.Settlement, res.Record.Sends, res.Record.Seq = ledger.Settled, ledger.Verified, 3, 9
			if rec := h.reserve(res); rec.State != ledger.Queued || rec.Settlement != "" || rec.Sends != 0 || rec.Seq != 1 {
				h.Errorf("got %s, %d sends, seq %d", rec.Phase(), rec.Sends, rec.Seq)
			}
		},
	},
	"held": {
		"a held write is recorded, no worker has it and nothing is due",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), held)
			if rec.State != ledger.Held || rec.Owner != "" || !rec.LeaseUntil.IsZero() || !rec.Due.IsZero() {
				h.Errorf("got %s, owner %q, due %s", rec.State, rec.Owner, rec.Due)
			}
		},
	},
	"cancelled": {
		"a caller that gave up before it began hears so, and has reserved nothing",
		func(h *harness) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			res := h.reservation(wish("a", "w1"))
			if _, _, err := h.ledger.Reserve(ctx, res); !errors.Is(err, context.Canceled) {
				h.Fatalf("error %v, want cancelled", err)
			}
			h.reserve(res)
		},
	},
}
