package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// holds submits writes that wait for approval.
func (f fixture) holds(t *testing.T, n int, change func(i int, w *intent.WriteIntent)) (ids []ledger.ID) {
	t.Helper()
	for i := range n {
		out, err := f.Submit(t.Context(), who(engine.RoleAgent), order(fmt.Sprintf("I-%03d", i), func(w *intent.WriteIntent) {
			w.Risk = intent.RiskApprove
			if change != nil {
				change(i, w)
			}
		}), time.Hour)
		if err != nil || out.Status != ledger.StatusHeld {
			t.Fatalf("%+v, %v", out, err)
		}
		ids = append(ids, out.ID)
		time.Sleep(time.Second)
	}
	return ids
}

// listed are the writes of all pages of an inbox, and how many pages there were.
func (f fixture) listed(t *testing.T, as service.Who, q service.InboxQuery) (ids []ledger.ID, pages int) {
	t.Helper()
	for pages = 1; ; pages++ {
		in, err := f.Inbox(t.Context(), as, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Writes) > q.Limit && q.Limit > 0 || pages > 100 {
			t.Fatalf("page %d has %d writes, want at most %d", pages, len(in.Writes), q.Limit)
		}
		for _, w := range in.Writes {
			ids = append(ids, w.Record.ID)
		}
		if q.After = in.Next; in.Next == "" {
			return ids, pages
		}
	}
}

// Every write that waits is on one page, in the order of urgency, and of equally urgent ones in
// the order of age, whatever the size of a page is.
func TestInboxPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		tools := []string{"refund", "charge", "wire_money"}
		all := f.holds(t, 31, func(i int, w *intent.WriteIntent) { w.Tool = tools[i%3] })
		for _, limit := range []int{0, 1, 3, 10, 31} {
			got, _ := f.listed(t, who(engine.RoleReviewer), service.InboxQuery{Limit: limit})
			if diff := cmp.Diff(all, got); diff != "" {
				t.Errorf("in pages of %d (-want +got):\n%s", limit, diff)
			}
			got, _ = f.listed(t, who(engine.RoleReviewer), service.InboxQuery{Limit: limit, Tool: "refund"})
			var want []ledger.ID
			for i := 0; i < len(all); i += 3 {
				want = append(want, all[i])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("of one tool, in pages of %d (-want +got):\n%s", limit, diff)
			}
		}
		if _, err := f.Inbox(t.Context(), who(engine.RoleReviewer), service.InboxQuery{After: "x"}); !errors.Is(err, ledger.ErrCursor) {
			t.Errorf("a cursor that no inbox gave: %v", err)
		}
		one, err := f.Inbox(t.Context(), who(engine.RoleReviewer), service.InboxQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		foreign := service.Who{Tenant: "umbrella", Name: "eve", Role: engine.RoleReviewer}
		if _, err := f.Inbox(t.Context(), foreign, service.InboxQuery{After: one.Next}); !errors.Is(err, ledger.ErrCursor) {
			t.Errorf("a cursor of another tenant: %v", err)
		}
	})
}

// A filter reaches every write in the ledger, and the counts are of all of them.
func TestInboxFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		all := f.holds(t, 4, nil)
		time.Sleep(2 * time.Hour)
		late := f.holds(t, 2, func(i int, w *intent.WriteIntent) {
			w.Step, w.Key = fmt.Sprint("late-", i), intent.Fields{"order_id": fmt.Sprint("L-", i)}
		})
		for name, tt := range map[string]struct {
			q    service.InboxQuery
			want []ledger.ID
		}{
			"all":               {service.InboxQuery{}, slices.Concat(all, late)},
			"another tool":      {service.InboxQuery{Tool: "refund"}, nil},
			"destination":       {service.InboxQuery{Destination: "orders"}, slices.Concat(all, late)},
			"another one":       {service.InboxQuery{Destination: "order"}, nil},
			"reason":            {service.InboxQuery{Reason: service.WaitsApproval}, slices.Concat(all, late)},
			"another reason":    {service.InboxQuery{Reason: "mismatched"}, nil},
			"over an hour old":  {service.InboxQuery{Age: time.Hour}, all},
			"over a day old":    {service.InboxQuery{Age: 24 * time.Hour}, nil},
			"tool and age":      {service.InboxQuery{Tool: "charge", Age: time.Hour}, all},
			"assigned, to none": {service.InboxQuery{Mine: true}, nil},
		} {
			tt.q.Limit = 3
			if got, _ := f.listed(t, who(engine.RoleReviewer), tt.q); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
		in, err := f.Inbox(t.Context(), who(engine.RoleReviewer), service.InboxQuery{Limit: 1})
		if err != nil || len(in.Counts) != 1 || in.Counts[0].Count != 6 || in.Counts[0].Older != [3]int{4, 0, 0} || in.Uncounted {
			t.Errorf("%+v, %v, want one group of 6, 4 of which are over an hour old", in.Counts, err)
		}
	})
}

// With more groups than are counted every write is still listed, the oldest first.
func TestInboxOfTooManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range ledger.MaxWaits + 5 {
			w := order(fmt.Sprint("M-", i), func(w *intent.WriteIntent) { w.Tenant, w.Tool = "acme", fmt.Sprint("tool ", i) })
			rec, err := ledger.NewRecord(w)
			if err == nil {
				_, _, err = f.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvHeld}}, Owner: "x", LeaseFor: time.Second})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		in, err := f.Inbox(t.Context(), who(engine.RoleReviewer), service.InboxQuery{})
		if err != nil || !in.Uncounted || len(in.Writes) != service.MaxInbox {
			t.Fatalf("%d writes, uncounted %v, %v", len(in.Writes), in.Uncounted, err)
		}
		if got, _ := f.listed(t, who(engine.RoleReviewer), service.InboxQuery{Limit: 50}); len(got) != ledger.MaxWaits+5 {
			t.Errorf("%d writes are listed, want all %d", len(got), ledger.MaxWaits+5)
		}
		if got, _ := f.listed(t, who(engine.RoleReviewer), service.InboxQuery{Limit: 50, Tool: "tool 1003"}); len(got) != 1 {
			t.Errorf("of one tool %v, want one", got)
		}
	})
}

// A write that a reviewer has taken is shown as theirs to all, and prevents no decision.
func TestAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		rita, ben := who(engine.RoleReviewer), service.Who{Tenant: "acme", Name: "ben", Role: engine.RoleReviewer}
		ids := f.holds(t, 3, nil)
		assigned := func(as service.Who) (names []string, mine []ledger.ID) {
			in, err := f.Inbox(t.Context(), as, service.InboxQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range in.Writes {
				names = append(names, w.Assigned)
			}
			if mine, _ = f.listed(t, as, service.InboxQuery{Mine: true}); len(mine) != in.Mine {
				t.Errorf("%d are counted as assigned to %s, and %d are listed", in.Mine, as.Name, len(mine))
			}
			return names, mine
		}
		check := func(want []string, ritas, bens []ledger.ID) {
			t.Helper()
			names, mine := assigned(rita)
			_, others := assigned(ben)
			if !slices.Equal(names, want) || !slices.Equal(mine, ritas) || !slices.Equal(others, bens) {
				t.Errorf("assigned %q, to rita %v, to ben %v; want %q, %v, %v", names, mine, others, want, ritas, bens)
			}
		}
		do := func(as service.Who, id ledger.ID, take bool) {
			t.Helper()
			if err := f.Assign(t.Context(), as, id, take); err != nil {
				t.Fatal(err)
			}
		}
		check([]string{"", "", ""}, nil, nil)
		do(rita, ids[2], true)
		do(rita, ids[1], true)
		check([]string{"", rita.Name, rita.Name}, ids[1:], nil)
		do(ben, ids[2], true) // who takes it last has it
		check([]string{"", rita.Name, "ben"}, ids[1:2], ids[2:])
		do(ben, ids[2], false)
		check([]string{"", rita.Name, ""}, ids[1:2], nil)
		if _, err := f.Decide(t.Context(), ben, ids[1], engine.Decision{Word: engine.WordDeny, Reason: "rita is ill today"}, time.Minute); err != nil {
			t.Errorf("a write that another reviewer has taken: %v", err)
		}
		check([]string{"", ""}, nil, nil)
		if err := f.Assign(t.Context(), rita, ids[1], true); !errors.Is(err, engine.ErrNotWaiting) {
			t.Errorf("a write that waits no more is taken: %v", err)
		}
	})
}

// One reviewer's writes fit on one page; those that are decided about make room.
func TestAssignmentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		rita := who(engine.RoleReviewer)
		ids := f.holds(t, 101, nil)
		for _, id := range ids[:100] {
			if err := f.Assign(t.Context(), rita, id, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Assign(t.Context(), rita, ids[100], true); !errors.Is(err, access.ErrLimit) {
			t.Errorf("the 101st: %v", err)
		}
		if _, err := f.Decide(context.Background(), rita, ids[0], engine.Decision{Word: engine.WordDeny, Reason: "not this customer"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := f.Assign(t.Context(), rita, ids[100], true); err != nil {
			t.Errorf("after one was decided about: %v", err)
		}
	})
}
