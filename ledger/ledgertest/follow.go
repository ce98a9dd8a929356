package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// follow is what comes behind a cursor, at once.
func (h *harness) follow(q ledger.Following) ([]ledger.Change, string) {
	h.Helper()
	changes, next, err := h.ledger.Follow(context.Background(), q)
	if err != nil {
		h.Fatalf("follow: %v", err)
	}
	return changes, next
}

func (h *harness) latest() string {
	h.Helper()
	cursor, err := h.ledger.Latest(context.Background())
	if err != nil {
		h.Fatalf("latest: %v", err)
	}
	return cursor
}

// followed is all that comes behind a cursor, in pages.
func (h *harness) followed(q ledger.Following) (all []ledger.Change) {
	h.Helper()
	for range 10_000 {
		changes, next := h.follow(q)
		want := h.latest()
		if _, nothing := h.places(want, func(p ledger.Place) ledger.Place { return p }); nothing {
			want = q.After
		}
		if q.Limit > 0 && len(changes) == q.Limit {
			want = changes[q.Limit-1].Cursor
		}
		if !h.sameCursor(next, want) {
			h.Fatalf("follow: %d changes behind %q and cursor %q, want %q", len(changes), q.After, next, want)
		}
		if len(changes) == 0 {
			return all
		}
		all, q.After = append(all, changes...), next
	}
	h.Fatal("follow: it never ends")
	return nil
}

// places applies a function to the places of a cursor, and reports whether all are before all
// changes.
func (h *harness) places(cursor string, f func(ledger.Place) ledger.Place) (changed string, nothing bool) {
	h.Helper()
	each := h.options.Places
	if each == nil {
		each = func(cursor string, f func(ledger.Place) ledger.Place) (string, error) {
			p, err := ledger.PlaceOf(cursor)
			return f(p).Cursor(), err
		}
	}
	nothing = true
	changed, err := each(cursor, func(p ledger.Place) ledger.Place {
		nothing = nothing && p.N == 0
		return f(p)
	})
	if err != nil {
		h.Fatal(err)
	}
	return changed, nothing
}

// sameCursor compares cursors. One of several places may name those before all changes, or not.
func (h *harness) sameCursor(a, b string) bool {
	h.Helper()
	if a == b || h.options.Places == nil {
		return a == b
	}
	same := func(p ledger.Place) ledger.Place { return p }
	a, _ = h.places(a, same)
	b, _ = h.places(b, same)
	return a == b
}

// tooFar follows from a cursor whose changes have gone.
func (h *harness) tooFar(cursor string) {
	h.Helper()
	for _, tenant := range []string{"", "a"} {
		changes, next, err := h.ledger.Follow(context.Background(), ledger.Following{Tenant: tenant, After: cursor})
		if !errors.Is(err, ledger.ErrTooFar) || changes != nil || next != "" {
			h.Errorf("follow from %q: %d changes, next %q, error %v; want that it is too far behind", cursor, len(changes), next, err)
		}
	}
}

// published holds the changes that are reported of every record that was made against its
// events.
func (h *harness) published() {
	h.Helper()
	seen, of := make(map[string]bool), make(map[ledger.ID][]ledger.Change)
	for q := (ledger.Following{Limit: 7}); ; {
		changes, next, err := h.ledger.Follow(context.Background(), q)
		if err != nil {
			h.Fatalf("follow: %v", err)
		}
		for _, c := range changes {
			if seen[c.Cursor] {
				h.Errorf("cursor %q came twice", c.Cursor)
			}
			seen[c.Cursor] = true
			of[c.ID] = append(of[c.ID], c)
		}
		if len(changes) == 0 {
			break
		}
		if q.After == next {
			h.Fatalf("follow: %d changes behind %q, and the same cursor", len(changes), next)
		}
		q.After = next
	}
	for _, made := range h.made {
		got, now := of[made.ID], h.get(made)
		got = slices.DeleteFunc(got, func(c ledger.Change) bool { return c.At.Before(now.Created) }) // of one that was forgotten
		want := ledger.ChangesOf(made.Identity(), now, h.events(made))
		for len(want) > len(got) && now.Now.Sub(want[0].At) >= ledger.ChangesKept { // it may have been pruned
			want = want[1:]
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Change{}, "Cursor"), cmpopts.EquateEmpty()); diff != "" {
			h.Errorf("write %s: its changes differ from its events (-want +got):\n%s", made.ID, diff)
		}
	}
}

// kinds are what happened to which write.
func kinds(changes []ledger.Change) (out []string) {
	for _, c := range changes {
		out = append(out, fmt.Sprint(c.ID, " ", c.Kind, " ", c.Settlement))
	}
	return out
}

var following = map[string]scenario{
	"what is published": {
		"a follower gets a change when a write goes to a reviewer, comes back and ends, and no other",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, missing, deferred(0))
			if changes, next := h.follow(ledger.Following{}); len(changes) != 0 || next != "" {
				h.Errorf("%v were published, next %q; want nothing yet", kinds(changes), next)
			}
			rec = h.append(rec, escalated)
			rec = h.append(rec, ledger.Event{Kind: ledger.EvDirected, By: "ann", Reason: "check again", Directed: "check"})
			rec = h.append(rec, seen, verified)
			changes := h.followed(ledger.Following{})
			want := []ledger.Change{
				{Tenant: "a", ID: rec.ID, Kind: ledger.EvEscalated, Destination: "shop", Sends: 1, Reads: 1},
				{Tenant: "a", ID: rec.ID, Kind: ledger.EvDirected, Destination: "shop", Sends: 1, Reads: 1},
				{Tenant: "a", ID: rec.ID, Kind: ledger.EvSettled, Settlement: ledger.Verified, Destination: "shop", Sends: 1, Reads: 2},
			}
			if diff := cmp.Diff(want, changes, cmpopts.IgnoreFields(ledger.Change{}, "Cursor", "At", "Seq")); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
	"saved": {
		"a prevented duplicate is reported for the write that was not sent again, and for no other",
		func(h *harness) {
			unknown := ledger.Event{Kind: ledger.EvSent}
			unsent := ledger.Event{Kind: ledger.EvSent, Fate: "not_sent"}
			h.append(h.fresh(wish("a", "w1"), announced), unknown, seen, verified)
			h.append(h.fresh(wish("a", "w2"), announced), sent, seen, verified)
			h.append(h.fresh(wish("a", "w3"), announced), unknown, missing, announced, sent, seen, verified)
			h.append(h.fresh(wish("a", "w4"), announced), unsent, missing, announced, unknown, seen, verified)
			h.append(h.fresh(wish("a", "w5"), announced), unknown, missing, settled(ledger.NotApplied))
			var saved []bool
			for _, c := range h.followed(ledger.Following{}) {
				saved = append(saved, c.Saved)
			}
			if diff := cmp.Diff([]bool{true, false, false, true, false}, saved); diff != "" {
				h.Errorf("saved (-want +got):\n%s", diff)
			}
		},
	},
	"several events": {
		"of several events of one append each is published with the state of that time",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, missing, escalated,
				ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Count: 3}, verified)
			want := []ledger.Change{
				{Tenant: "a", ID: rec.ID, Seq: 5, Kind: ledger.EvEscalated, Destination: "shop", Sends: 1, Reads: 1},
				{Tenant: "a", ID: rec.ID, Seq: 7, Kind: ledger.EvSettled, Settlement: ledger.Verified, Destination: "shop", Sends: 1, Reads: 4},
			}
			if diff := cmp.Diff(want, h.followed(ledger.Following{Limit: 1}), cmpopts.IgnoreFields(ledger.Change{}, "Cursor", "At")); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
	"held from the start": {
		"a write that is held with its reservation is reported",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), held)
			h.append(rec, ledger.Event{Kind: ledger.EvApproved, By: "ann"})
			want := []string{fmt.Sprint(rec.ID, " held "), fmt.Sprint(rec.ID, " approved ")}
			if diff := cmp.Diff(want, kinds(h.followed(ledger.Following{}))); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
	"entrusted": {
		"what a caller makes itself ends like any other write, and is released like any other",
		func(h *harness) {
			rec := h.reserve(h.handed(operation("a", "w1", "s1", "invoice 7")))
			h.append(rec, reported)
			h.append(rec, yielded)
			want := []string{fmt.Sprint(rec.ID, " settled reported"), fmt.Sprint(rec.ID, " yielded ")}
			if diff := cmp.Diff(want, kinds(h.followed(ledger.Following{}))); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
	"refused": {
		"what was refused did not happen",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			h.refused(ledger.ErrFenced, rec, rec.Fence+1, sent, escalated)
			h.refused(ledger.ErrIllegalMove, rec, rec.Fence, sent, escalated, sent)
			h.replayed(h.reservation(wish("a", "w1"), held))
			if changes, _ := h.follow(ledger.Following{}); len(changes) != 0 {
				h.Errorf("changes: %v", kinds(changes))
			}
		},
	},
	"pages": {
		"whatever the size of a page, everything comes once and in one order, of all tenants and of each",
		func(h *harness) {
			of := make(map[string][]string)
			for i := range 23 {
				tenant := []string{"a", "b", "c"}[i%3*(i%2)]
				rec := h.append(h.fresh(wish(tenant, fmt.Sprint("w", i)), announced), sent, escalated)
				text := fmt.Sprint(rec.ID, " escalated ")
				of[""], of[tenant] = append(of[""], text), append(of[tenant], text)
			}
			for _, tenant := range []string{"", "a", "b", "c", "unused"} {
				all := h.followed(ledger.Following{Tenant: tenant})
				if diff := cmp.Diff(of[tenant], kinds(all)); diff != "" {
					h.Fatalf("tenant %q (-want +got):\n%s", tenant, diff)
				}
				for _, limit := range []int{1, 2, 5, 22, 23, 24, 1000} {
					if diff := cmp.Diff(all, h.followed(ledger.Following{Tenant: tenant, Limit: limit})); diff != "" {
						h.Fatalf("limit %d, tenant %q (-want +got):\n%s", limit, tenant, diff)
					}
				}
				for i, c := range all {
					rest := h.followed(ledger.Following{Tenant: tenant, After: c.Cursor})
					if diff := cmp.Diff(all[i+1:], rest, cmpopts.EquateEmpty()); diff != "" {
						h.Fatalf("behind change %d of tenant %q (-want +got):\n%s", i, tenant, diff)
					}
				}
			}
		},
	},
	"latest": {
		"who begins at the latest cursor hears what comes, and nothing that was",
		func(h *harness) {
			empty := h.latest()
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, escalated)
			if got := kinds(h.followed(ledger.Following{After: empty})); len(got) != 1 {
				h.Errorf("from the latest of an empty ledger: %v", got)
			}
			from := h.latest()
			changes, next := h.follow(ledger.Following{After: from})
			if len(changes) != 0 || next != from {
				h.Errorf("changes %v, next %q; want nothing, and the same cursor %q", kinds(changes), next, from)
			}
			h.append(rec, seen, verified)
			for _, tenant := range []string{"", "a"} {
				changes, next = h.follow(ledger.Following{Tenant: tenant, After: from})
				if len(changes) != 1 || changes[0].Kind != ledger.EvSettled || next != h.latest() || next != changes[0].Cursor {
					h.Errorf("changes %v, next %q; want that it is settled, and the latest cursor", kinds(changes), next)
				}
			}
		},
	},
	"no such cursor": {
		"a cursor is one that was given, or an error: never a guess where to continue",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1"), announced), sent, escalated)
			good := h.latest()
			h.latest()
			for _, cursor := range []string{
				" ", "0", "1", "-1", "c", "c-", "c1", "c1-", "c-1-0", "c01-0", "c+1-0", "c1-0 ", " c1-0", "c1-0-0", "c1-00", "c1-G", "C1-0", "w1", "c1.5-0",
				"c9223372036854775808-0", "c1-zzzzzzzzzzzzzzzzzzzzzz", good + "0\x00", good + "\n", "' OR 1=1 --", "\xff\xfe", string(make([]byte, 1<<16)),
			} {
				changes, next, err := h.ledger.Follow(context.Background(), ledger.Following{After: cursor})
				if !errors.Is(err, ledger.ErrCursor) || changes != nil || next != "" {
					h.Errorf("cursor %.40q: %d changes, next %q, error %v", cursor, len(changes), next, err)
				}
				if err != nil && len(err.Error()) > 500 {
					h.Errorf("cursor %.40q: the error is %d bytes long", cursor, len(err.Error()))
				}
			}
		},
	},
	"another ledger's": {
		"a cursor from before the ledger was put back to an earlier state must not pass over what happened since",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1"), announced), sent, escalated)
			latest := h.latest()
			later, _ := h.places(latest, func(p ledger.Place) ledger.Place { p.N++; return p })
			other, _ := h.places(latest, func(p ledger.Place) ledger.Place { p.Mark++; return p })
			h.tooFar(later)
			h.tooFar(other)
		},
	},
	"bounds": {
		"a request is bounded, and the bound is reported",
		func(h *harness) {
			for _, limit := range []int{-1, 1001} {
				if _, _, err := h.ledger.Follow(context.Background(), ledger.Following{Limit: limit}); err == nil {
					h.Errorf("limit %d: no error", limit)
				}
			}
			for i := range 101 {
				h.append(h.fresh(wish("a", fmt.Sprint("w", i)), announced), sent, escalated)
			}
			if changes, _ := h.follow(ledger.Following{}); len(changes) != 100 {
				h.Errorf("%d without a limit, want 100", len(changes))
			}
		},
	},
	"pruned": {
		"a follower that was away for too long is told that it missed changes, one just within the bound is not",
		func(h *harness) {
			var cursors []string
			rec := h.fresh(wish("a", "w0"), announced)
			begin := h.latest()
			for i := range 3 {
				h.append(h.fresh(wish("a", fmt.Sprint("old", i)), announced), sent, escalated)
				cursors = append(cursors, h.latest())
			}
			h.sleep(ledger.ChangesKept - time.Hour)
			h.prune(0)
			if got := h.followed(ledger.Following{}); len(got) != 3 {
				h.Fatalf("%v are left; want all that are younger than a week", kinds(got))
			}
			h.append(rec, sent, escalated)
			young := h.append(h.fresh(wish("a", "young"), announced), sent, escalated)
			h.sleep(time.Hour)
			if got := h.prune(0); got.Changes != 3 {
				h.Errorf("%d changes were pruned, want 3", got.Changes)
			}
			h.tooFar(begin)
			h.tooFar(cursors[0])
			h.tooFar(cursors[1])
			want := []string{fmt.Sprint(rec.ID, " escalated "), fmt.Sprint(young.ID, " escalated ")}
			for _, q := range []ledger.Following{{}, {After: cursors[2]}, {Tenant: "a"}, {Tenant: "a", After: cursors[2]}} {
				if diff := cmp.Diff(want, kinds(h.followed(q))); diff != "" {
					h.Errorf("%+v (-want +got):\n%s", q, diff)
				}
			}
		},
	},
	"a quiet tenant": {
		"who hears nothing of its own for weeks, and follows all the same, has missed nothing",
		func(h *harness) {
			rec := h.append(h.fresh(wish("b", "w0"), announced), sent, escalated)
			_, next := h.follow(ledger.Following{Tenant: "b"})
			for day := range 20 {
				h.append(h.fresh(wish("a", fmt.Sprint("w", day)), announced), sent, escalated)
				var changes []ledger.Change
				if changes, next = h.follow(ledger.Following{Tenant: "b", After: next}); len(changes) != 0 || !h.sameCursor(next, h.latest()) {
					h.Fatalf("day %d: changes %v, next %q; want nothing, and the latest cursor", day, kinds(changes), next)
				}
				h.sleep(24 * time.Hour)
				h.prune(0)
			}
			h.append(rec, seen, verified)
			if got := h.followed(ledger.Following{Tenant: "b", After: next}); len(got) != 1 || got[0].Kind != ledger.EvSettled {
				h.Errorf("changes %v; want that it is settled", kinds(got))
			}
		},
	},
	"pruned to the last": {
		"a ledger in which nothing happens any more keeps its place, so that no cursor is given twice",
		func(h *harness) {
			h.append(h.fresh(wish("a", "w1"), announced), sent, escalated)
			rec := h.append(h.fresh(wish("a", "w2"), announced), sent, escalated)
			last := h.latest()
			h.sleep(2 * ledger.ChangesKept)
			h.prune(0)
			h.prune(0)
			if got := h.latest(); got != last {
				h.Errorf("the latest cursor was %q, and is %q", last, got)
			}
			h.append(rec, seen, verified)
			if got := h.followed(ledger.Following{After: last}); len(got) != 1 || got[0].Kind != ledger.EvSettled {
				h.Errorf("changes %v; want that it is settled", kinds(got))
			}
		},
	},
	"woken": {
		"who follows need not ask again and again",
		func(h *harness) {
			ctx, end := context.WithTimeout(context.Background(), time.Minute)
			defer end()
			notified := h.ledger.Changed(ctx)
			h.append(h.fresh(wish("a", "w1"), announced), sent, seen, verified)
			select {
			case <-notified:
			case <-ctx.Done():
				h.Error("no notification was sent")
			}
		},
	},
	"together": {
		"while many write, each of several who follow hears everything once, and all in one order",
		func(h *harness) {
			const writers, each = 6, 8
			var mu sync.Mutex
			var made []ledger.Record
			done := make(chan struct{})
			received := make([][]ledger.Change, 3)
			var readers sync.WaitGroup
			for i := range received {
				readers.Go(func() {
					received[i] = h.received(ledger.Following{Limit: 1 + 3*i, Tenant: []string{"", "", "a"}[i]}, done)
				})
			}
			together(writers, func(i int) {
				for n := range each {
					rec, _, err := h.ledger.Reserve(context.Background(), h.reservation(wish([]string{"a", "b"}[i%2], fmt.Sprint("w", i, "-", n)), announced))
					if err == nil {
						_, err = h.ledger.Append(context.Background(), rec.ID, rec.Fence, sent, seen, verified)
					}
					if err != nil {
						h.Error(err)
					}
					mu.Lock()
					made = append(made, rec)
					mu.Unlock()
				}
			})
			close(done)
			readers.Wait()
			h.made = append(h.made, made...)
			if diff := cmp.Diff(received[0], received[1]); diff != "" {
				h.Errorf("two followers got different changes:\n%s", diff)
			}
			ofA := slices.DeleteFunc(slices.Clone(received[0]), func(c ledger.Change) bool { return c.Tenant != "a" })
			if diff := cmp.Diff(ofA, received[2]); diff != "" || len(received[0]) != writers*each {
				h.Errorf("%d changes of %d arrived; of tenant a:\n%s", len(received[0]), writers*each, diff)
			}
		},
	},
}

// received follows until the others are done and nothing more comes.
func (h *harness) received(q ledger.Following, done <-chan struct{}) (received []ledger.Change) {
	for ended := false; ; {
		changes, next, err := h.ledger.Follow(context.Background(), q)
		if err != nil || len(changes) > 0 && next == q.After {
			h.Errorf("follow: %d changes behind %q, next %q, error %v", len(changes), q.After, next, err)
			return received
		}
		received, q.After = append(received, changes...), next
		if ended && len(changes) == 0 {
			return received
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
}
