package soak

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// explained compares the outcome of every write of a ledger, from its state, with the one from
// its events alone: a write's trace reproduces every outcome that was returned.
func explained(t *testing.T, book ledger.Ledger) {
	t.Helper()
	writes, wrong := 0, 0
	page := ledger.Filter{Tenant: tenant, Limit: 1000}
	for {
		recs, err := book.List(context.Background(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			writes++
			if diff := unlike(book, rec); diff != "" {
				if wrong++; wrong <= 5 { // the first ones are enough
					t.Errorf("write %s is not what its events say (-states +events):\n%s%s", rec.ID, diff, life(book, rec))
				}
			}
		}
		if len(recs) < page.Limit {
			break
		}
		page.Before = recs[len(recs)-1].ID
	}
	if writes == 0 || wrong > 0 {
		t.Errorf("%d of %d writes are not explained by their events", wrong, writes)
	}
	t.Logf("the outcomes of %d writes were rebuilt from their events alone", writes)
}

// unlike is how the outcome of a record differs from that of its events.
func unlike(book ledger.Ledger, rec ledger.Record) string {
	events, err := book.Events(context.Background(), rec.Tenant, rec.ID)
	if err != nil {
		return err.Error()
	}
	again, err := ledger.Rebuild(events)
	if err != nil {
		return err.Error()
	}
	again.Now = rec.Now // the time of the request, which is no event
	return cmp.Diff(engine.OutcomeOf(rec), engine.OutcomeOf(again))
}

// life is every event of a write, for failures.
func life(book ledger.Ledger, rec ledger.Record) string {
	events, err := book.Events(context.Background(), rec.Tenant, rec.ID)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "\n  %2d %s fence %d %-10s %s%s %s/%s", e.Seq, e.At.Format("15:04:05.000"), e.Fence, e.Kind, e.Fate, e.Verdict, e.Rule, e.Reason)
	}
	return b.String()
}
