package ledgertest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// about is a wish for one record, whichever workflow asks.
func about(key, workflow string) intent.WriteIntent {
	w := wish("a", workflow)
	w.Key = intent.Fields{"number": key}
	return w
}

// queuedUp reserves a wish that only waits for a claim.
func (h *harness) queuedUp(w intent.WriteIntent) ledger.Record {
	h.Helper()
	res := h.reservation(w)
	res.Owner, res.LeaseFor = "", 0
	return h.reserve(res)
}

// queuedBehind checks that a write waits behind another one: with no lease and no
// due time, and that no claim gets it, by whatever name.
func (h *harness) queuedBehind(r, before ledger.Record) {
	h.Helper()
	got := h.get(r)
	if got.QueuedBehind != before.ID || got.State != ledger.Queued || !got.Due.IsZero() || got.Owner != "" || !got.LeaseUntil.IsZero() || got.Sends != 0 {
		h.Errorf("write %s: %s behind %q, due %s, owner %q until %s, %d sends; want it queued behind %s, in no actor's hands",
			r.ID, got.State, got.QueuedBehind, got.Due, got.Owner, got.LeaseUntil, got.Sends, before.ID)
	}
	h.nothing(ledger.Claim{Tenant: r.Tenant, ID: r.ID})
	h.nothing(ledger.Claim{Tenant: r.Tenant, ID: r.ID, Early: true})
}

// atHead checks that a write that waited may continue, and claims it.
func (h *harness) atHead(r ledger.Record) ledger.Record {
	h.Helper()
	if got := h.get(r); got.QueuedBehind != "" || got.State == ledger.Queued && got.Due.IsZero() {
		h.Fatalf("write %s waits behind %q, due %s; want it at the head", r.ID, got.QueuedBehind, got.Due)
	}
	return h.taken(r, ledger.Claim{Tenant: r.Tenant, ID: r.ID})
}

// queueProblem returns what is wrong with the queue of a key digest, or "": of those in
// it exactly one is first, and each other one is behind exactly one.
func queueProblem(ctx context.Context, l ledger.Ledger, tenant, keyDigest string) (string, error) {
	recs, err := l.List(ctx, ledger.Filter{Tenant: tenant, KeyDigest: keyDigest, Limit: 1000})
	if err != nil {
		return "", err
	}
	followers, in := map[ledger.ID][]ledger.ID{}, 0
	for _, r := range recs {
		if r.InQueue() {
			in++
			followers[r.QueuedBehind] = append(followers[r.QueuedBehind], r.ID)
		}
		if r.QueuedBehind != "" && (!r.Due.IsZero() || r.Owner != "") {
			return "write " + string(r.ID) + " waits and has a due time or an owner", nil
		}
	}
	seen, at := 0, ledger.ID("")
	for ; len(followers[at]) > 0; seen++ {
		if len(followers[at]) > 1 {
			return "several are behind " + string(at) + " (none: first)", nil
		}
		at = followers[at][0]
	}
	if seen != in {
		return "some of the queue wait for what is not in it", nil
	}
	return "", nil
}

func (h *harness) inOrder(keyDigest string) {
	h.Helper()
	if wrong, err := queueProblem(context.Background(), h.ledger, "a", keyDigest); wrong != "" || err != nil {
		h.Errorf("%s; error %v", wrong, err)
	}
}

// putOff ends the work on a write whose send was answered: it is read
// later, and no caller waits for it.
var putOff = ledger.Event{Kind: ledger.EvDeferred, In: time.Hour, Unverified: true}

var approved = ledger.Event{Kind: ledger.EvApproved, By: "ann"}

var queueOrder = map[string]scenario{
	"one after another": {
		"two updates of one record never overtake each other",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second := h.fresh(about("k", "w2"), announced)
			h.queuedBehind(second, first)
			h.sleep(2 * lease)
			h.queuedBehind(second, first)
			first = h.taken(first, ledger.Claim{Limit: 10})
			h.append(first, sent, seen)
			h.queuedBehind(second, first)
			h.append(first, verified)
			freed := h.atHead(second)
			if freed.QueuedAt.Before(h.get(first).SettledAt) {
				h.Errorf("queued since %s: before it was the head, at %s", freed.QueuedAt, h.get(first).SettledAt)
			}
			last := h.events(second)[1]
			if last.Kind != ledger.EvFreed || ledger.ID(last.By) != first.ID {
				h.Errorf("its life says %+v; want that it was freed by %s", last, first.ID)
			}
			h.append(freed, announced, sent, seen, verified)
		},
	},
	"found by any claim": {
		"a write that is freed is work for the first claim, and none that waits is",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second, third := h.queuedUp(about("k", "w2")), h.queuedUp(about("k", "w3"))
			h.nothing(ledger.Claim{Limit: 10})
			h.append(first, sent, seen, verified)
			second = h.taken(second, ledger.Claim{Limit: 10})
			h.nothing(ledger.Claim{Limit: 10})
			h.append(second, announced, sent, seen, verified)
			h.taken(third, ledger.Claim{Limit: 10})
		},
	},
	"the last one": {
		"a queue has one order: each waits for the one that came before it",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second, third := h.queuedUp(about("k", "w2")), h.queuedUp(about("k", "w3"))
			fourth := h.queuedUp(about("k", "w4"))
			h.queuedBehind(second, first)
			h.queuedBehind(third, second)
			h.queuedBehind(fourth, third)
			h.inOrder(first.KeyDigest)
		},
	},
	"held, and read after a restore": {
		"what may have been approved and sent is read in its turn, and held again it is in no queue",
		func(h *harness) {
			res := h.reservation(about("k", "w1"), held)
			first := h.reserve(res)
			second := h.fresh(about("k", "w2"), announced)
			lost := ledger.Event{Kind: ledger.EvRestored, LostFrom: first.Created.Add(-time.Hour), LostUntil: first.Created.Add(-time.Minute)}
			first = h.append(h.taken(first, ledger.Claim{Tenant: "a", ID: first.ID, Early: true}), lost)
			if first.State != ledger.Queued || first.QueuedBehind != second.ID || first.Owner != "" {
				h.Errorf("%s behind %q, owner %q; want it in its queue", first.State, first.QueuedBehind, first.Owner)
			}
			h.inOrder(second.KeyDigest)
			h.append(second, sent, seen, verified)
			first = h.taken(first, ledger.Claim{Limit: 10})
			third := h.queuedUp(about("k", "w3"))
			first = h.append(first, lost, missing)
			h.queuedBehind(third, first)
			if first.State != ledger.Checking || first.Sends != 1 || !first.Restored.Equal(lost.LostUntil) {
				h.Errorf("%s after %d sends, restored %s", first.State, first.Sends, first.Restored)
			}
			h.same(first, h.get(first))
			h.append(first, held)
			h.inOrder(first.KeyDigest)
			h.taken(third, ledger.Claim{Limit: 10})
		},
	},
	"one leaves the middle": {
		"the write behind it waits for what it waited for, and is neither first nor forgotten",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second, third := h.queuedUp(about("k", "w2")), h.queuedUp(about("k", "w3"))
			h.append(second, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "withdrawn"})
			h.queuedBehind(third, first)
			h.inOrder(first.KeyDigest)
			fourth := h.queuedUp(about("k", "w4"))
			h.queuedBehind(fourth, third)
			h.append(first, sent, seen, verified)
			third = h.atHead(third)
			h.append(third, announced, sent, seen, verified)
			h.atHead(fourth)
		},
	},
	"the last one leaves": {
		"no caller waits for what is gone",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second := h.queuedUp(about("k", "w2"))
			h.append(second, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "withdrawn"})
			h.queuedBehind(h.queuedUp(about("k", "w3")), first)
			h.inOrder(first.KeyDigest)
		},
	},
	"other records": {
		"only writes of one tenant about one record at one destination wait for each other",
		func(h *harness) {
			h.fresh(about("k", "w1"), announced)
			h.fresh(about("l", "w2"), announced)
			for what, change := range map[string]func(*intent.WriteIntent){
				"tenant":      func(w *intent.WriteIntent) { w.Tenant = "b" },
				"destination": func(w *intent.WriteIntent) { w.Destination = "warehouse" },
				"kind":        func(w *intent.WriteIntent) { w.Kind = "invoice" },
			} {
				w := about("k", "w of another "+what)
				change(&w)
				if rec := h.fresh(w, announced); rec.QueuedBehind != "" || rec.State != ledger.Sending {
					h.Errorf("another %s waits behind %s", what, rec.QueuedBehind)
				}
			}
		},
	},
	"what its caller would do": {
		"a write that is not the head was not announced, whatever its caller wanted to do first",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second := h.fresh(about("k", "w2"), ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "absent"}, announced)
			h.queuedBehind(second, first)
			h.refused(ledger.ErrIllegalMove, second, second.Fence, announced)
			if life := h.events(second); len(life) != 1 || life[0].QueuedBehind != first.ID {
				h.Errorf("its life: %+v", life)
			}
		},
	},
	"asked again": {
		"a repeat of a write that waits gets that one, and not a second place",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			second := h.queuedUp(about("k", "w2"))
			h.same(second, h.replayed(h.reservation(about("k", "w2"))))
			h.same(first, h.replayed(h.reservation(about("k", "w1"))))
			h.queuedBehind(h.queuedUp(about("k", "w3")), second)
		},
	},
	"review": {
		"what is unknown about the one before may yet land: a write in review holds its place",
		func(h *harness) {
			first := h.fresh(about("k", "w1"), announced)
			first = h.append(first, sent, missing, escalated)
			second := h.queuedUp(about("k", "w2"))
			h.queuedBehind(second, first)
			h.nothing(ledger.Claim{Limit: 10})
			first = h.taken(first, ledger.Claim{Tenant: "a", ID: first.ID, Early: true})
			h.append(first, ledger.Event{Kind: ledger.EvDirected, By: "ann", Reason: "check", Directed: "retry"}, deferred(time.Minute))
			h.queuedBehind(second, first)
			h.append(h.get(first), settled(ledger.Abandoned))
			h.atHead(second)
		},
	},
	"every ending": {
		"whatever way a write ends, the next one continues",
		func(h *harness) {
			for _, how := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned} {
				first := h.fresh(about(string(how), string(how)+" w1"), announced)
				second := h.queuedUp(about(string(how), string(how)+" w2"))
				h.append(first, sent, seen, settled(how))
				h.atHead(second)
			}
		},
	},
	"re-opened": {
		"a write that was done once delays no other again, also when a recheck re-opens it",
		func(h *harness) {
			pending := verified
			pending.In = time.Minute
			first := h.append(h.fresh(about("k", "w1"), announced), sent, seen, pending)
			h.sleep(2 * time.Minute)
			first = h.taken(first, ledger.Claim{Limit: 10})
			second := h.fresh(about("k", "w2"), announced)
			if second.QueuedBehind != "" || second.State != ledger.Sending {
				h.Fatalf("it waits behind %s", second.QueuedBehind)
			}
			third := h.queuedUp(about("k", "w3"))
			first = h.append(first, missing, escalated)
			h.queuedBehind(third, second)
			h.append(first, settled(ledger.Accepted))
			h.queuedBehind(third, second)
			h.append(second, sent, seen, verified)
			h.atHead(third)
		},
	},
	"compensation": {
		"an undoing acts in the place of the write that it undoes, which stays queued: it must not wait for it",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "w1"), announced), sent, missing)
			undoing := about("k", "w1")
			undoing.Compensates, undoing.Write, undoing.Expect = string(first.ID), intent.Delete, nil
			child := h.fresh(undoing, announced)
			if child.QueuedBehind != "" || child.State != ledger.Sending {
				h.Fatalf("the undoing waits behind %s", child.QueuedBehind)
			}
			first = h.append(first, ledger.Event{Kind: ledger.EvCompensating, Child: child.ID})
			second := h.queuedUp(about("k", "w2"))
			h.queuedBehind(second, first)
			h.append(child, sent, seen, verified)
			h.queuedBehind(second, first)
			h.append(first, settled(ledger.Compensated))
			h.atHead(second)
		},
	},
	"compensation of what was settled": {
		"a write that was settled has left its queue: its undo must overtake no other, and no other it",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "w1"), announced), sent, seen, verified)
			second := h.fresh(about("k", "w2"), announced)
			first = h.append(first, ledger.Event{Kind: ledger.EvCompensating, Child: "wr_0", By: "ann"})
			child := h.reserve(h.undoing(first))
			h.queuedBehind(child, second)
			h.same(child, h.get(child))
			third := h.queuedUp(about("k", "w3"))
			h.queuedBehind(third, child)
			h.append(second, sent, seen, verified)
			child = h.atHead(child)
			h.queuedBehind(third, child)
			h.append(child, announced, sent, seen, verified)
			h.atHead(third)
			h.append(first, settled(ledger.Compensated))
		},
	},
}

// undoing is the reservation of what undoes a settled write, in a place of its
// own.
func (h *harness) undoing(r ledger.Record) ledger.Reservation {
	h.Helper()
	w := about("k", r.Workflow)
	w.Compensates, w.Write, w.Expect = string(r.ID), intent.Delete, nil
	res := h.reservation(w, announced)
	res.Record.KeyDigest = r.KeyDigest
	return res
}

// aboutOne is the writes that a filter finds, in its order.
func (h *harness) aboutOne(f ledger.Filter, want ...ledger.Record) {
	h.Helper()
	f.Tenant = "a"
	if diff := cmp.Diff(ids(want), ids(h.list(f))); diff != "" {
		h.Errorf("%+v (-want +got):\n%s", f, diff)
	}
}

var keyDigests = map[string]scenario{
	"open or pending": {
		"what is still to be done about one record is found without a scan of all that was ever done",
		func(h *harness) {
			pending := verified
			pending.In = time.Hour
			h.append(h.fresh(about("k", "done"), announced), sent, seen, verified)
			rechecked := h.append(h.fresh(about("k", "recheck"), announced), sent, seen, pending)
			waits := h.fresh(about("k", "held"), held)
			first := h.fresh(about("k", "first"), announced)
			h.fresh(about("l", "another"), announced)
			second := h.queuedUp(about("k", "second"))
			all := []ledger.Record{second, first, waits, rechecked}
			f := ledger.Filter{KeyDigest: first.KeyDigest}
			h.aboutOne(f, all...)
			f.Limit = 3
			h.aboutOne(f, all[:3]...)
			f.Before = waits.ID
			h.aboutOne(f, rechecked)
			f = ledger.Filter{Tenant: "a", KeyDigest: first.KeyDigest, States: []ledger.State{ledger.Settled, ledger.Held}}
			h.aboutOne(f, waits, rechecked)
			recs := h.list(f)
			h.same(h.get(waits), recs[0])
			h.same(h.get(rechecked), recs[1])
			if got := h.list(ledger.Filter{Tenant: "b", KeyDigest: first.KeyDigest}); len(got) != 0 {
				h.Errorf("another tenant sees %v", ids(got))
			}
		},
	},
	"re-opened": {
		"a write that a recheck re-opened is still to be done",
		func(h *harness) {
			first := h.append(h.fresh(about("k", "w1"), announced), sent, seen, verified)
			h.aboutOne(ledger.Filter{KeyDigest: first.KeyDigest})
			first = h.taken(first, ledger.Claim{Tenant: "a", ID: first.ID, Early: true})
			h.append(first, missing, escalated)
			h.aboutOne(ledger.Filter{KeyDigest: first.KeyDigest}, first)
		},
	},
}
