package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

var followedBatches = map[string]scenario{
	"batch": {
		"what is reserved and changed together with documents is reported like any other change, or not at all",
		func(h *harness) {
			first := h.fresh(wish("a", "w1"), announced)
			next := h.reservation(wish("a", "w2"), held)
			f := ledger.Batch{Reserve: &next, Append: []ledger.Appending{{ID: first.ID, Fence: first.Fence + 1, Events: []ledger.Event{sent, escalated}}}}
			if _, err := h.ledger.Commit(context.Background(), f); !errors.Is(err, ledger.ErrFenced) {
				h.Fatalf("file: error %v", err)
			}
			if changes, _ := h.follow(ledger.Following{}); len(changes) != 0 {
				h.Errorf("changes of what was refused: %v", kinds(changes))
			}
			f.Append[0].Fence = first.Fence
			did, err := h.ledger.Commit(context.Background(), f)
			if err != nil {
				h.Fatal(err)
			}
			h.made = append(h.made, did.Reserved)
			want := []string{fmt.Sprint(did.Reserved.ID, " held "), fmt.Sprint(first.ID, " escalated ")}
			got := kinds(h.followed(ledger.Following{}))
			slices.Sort(want) // their order is not promised
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
	"one write": {
		"a batch that changes one write reports it",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), held)
			p := document("a", "s1")
			did, err := h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}, Reserve: &res})
			if err != nil {
				h.Fatal(err)
			}
			h.made = append(h.made, did.Reserved)
			p.Version = 1
			_, err = h.ledger.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}, Append: []ledger.Appending{{
				ID: did.Reserved.ID, Fence: did.Reserved.Fence, Events: []ledger.Event{settled(ledger.Denied)}}}})
			if err != nil {
				h.Fatal(err)
			}
			want := []string{fmt.Sprint(did.Reserved.ID, " held "), fmt.Sprint(did.Reserved.ID, " settled denied")}
			if diff := cmp.Diff(want, kinds(h.followed(ledger.Following{}))); diff != "" {
				h.Errorf("changes (-want +got):\n%s", diff)
			}
		},
	},
}
