package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The check for another write of the same operation costs one search of one index, in the
// transaction of the reservation, and no commit.
func TestOperationIsOneProbe(t *testing.T) {
	l := open(t, file(t), nil)
	plan, err := l.Read("EXPLAIN QUERY PLAN " + sqlite.Statements.Text("operation"))
	must(t, err)
	sorted := "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY" // those that are open beside each other, and no others
	if len(plan) != 2 || plan[1] != sorted || !strings.HasPrefix(plan[0], "SEARCH w USING INDEX ledger_writes_operation (tenant=? AND idempotency_key=? AND tool=? AND ") {
		t.Errorf("plan %q: want one search of the index of operations, by all of its columns", plan)
	}
	for name, c := range map[string]struct {
		reason  string
		do      func() error
		commits int64
		fails   error
	}{
		"without a key": {"a reservation is one commit", func() error {
			w := asked("plain")
			w.IdempotencyKey = ""
			_, _, err := l.Reserve(t.Context(), reservation(t, w))
			return err
		}, 1, nil},
		"with a key": {"and so it is when another actor may have begun the same", func() error {
			_, _, err := l.Reserve(t.Context(), reservation(t, asked("first")))
			return err
		}, 1, nil},
		"in a batch": {"a step's document comes with it", func() error {
			_, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{step("s1")}, Reserve: delegated(t, "w1", "s1", "op 1")})
			return err
		}, 1, nil},
		"several writes": {"and whatever else belongs together", func() error {
			rec := reserve(t, l, "changed")
			_, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{step("s2")}, Reserve: delegated(t, "w1", "s2", "op 2"),
				Append: []ledger.Appending{{ID: rec.ID, Fence: rec.Fence, Events: []ledger.Event{evSent, evRead, evSettle}}}})
			return err
		}, 2, nil}, // with the reservation before it
		"blocked": {"what changes nothing is none", func() error {
			reserve(t, l, "prior")
			w := asked("second")
			w.IdempotencyKey = asked("prior").IdempotencyKey
			_, _, err := l.Reserve(t.Context(), reservation(t, w))
			return err
		}, 1, ledger.ErrBlocked}, // of the prior one
	} {
		before := l.Stats()
		err := c.do()
		if got := l.Stats().Commits - before.Commits; got != c.commits || !errors.Is(err, c.fails) {
			t.Errorf("%s: %d commits, error %v; want %d; reason: %s", name, got, err, c.commits, c.reason)
		}
	}
}

func step(id string) ledger.Document {
	return ledger.Document{Tenant: "acme", Kind: "step", ID: id, Body: json.RawMessage("{}")}
}

// delegated returns the reservation of a delegated step, under the tool of [asked].
func delegated(t testing.TB, workflow, step, key string) *ledger.Reservation {
	t.Helper()
	rec, err := ledger.NewDelegated(ledger.Operation{Tenant: "acme", Workflow: workflow, Step: step, Tool: asked("").Tool,
		IdempotencyKey: key, Digest: "digest", Asked: json.RawMessage("{}")})
	must(t, err)
	return &ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvDelegated}}, Window: 24 * time.Hour}
}

// A query for an operation reads none of its failed attempts, nor those from before the window,
// however many: here all of them are damaged, and no caller notices.
func TestOperationMeetsOnlyWhatBlocks(t *testing.T) {
	const many = 30
	report := ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"}
	nothing := ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
	for name, c := range map[string]struct {
		reason string
		prior  func(n int) *ledger.Reservation
		end    []ledger.Event
		age    time.Duration
		next   *ledger.Reservation
		met    bool
	}{
		"not applied": {"tries that failed stand in no index",
			func(n int) *ledger.Reservation { return delegated(t, fmt.Sprint("w", n), "s", "op") }, []ledger.Event{nothing}, 0, delegated(t, "next", "s", "op"), false},
		"yielded": {"nor do those that an operator released",
			func(n int) *ledger.Reservation { return delegated(t, fmt.Sprint("w", n), "s", "op") },
			[]ledger.Event{{Kind: ledger.EvYielded, By: "p", Reason: "r"}}, 0, delegated(t, "next", "s", "op"), false},
		"before the window": {"the index is entered where the window begins",
			func(n int) *ledger.Reservation { return delegated(t, "w", fmt.Sprint("s", n), "op") }, []ledger.Event{report}, 25 * time.Hour, delegated(t, "next", "s", "op"), false},
		"of the same workflow": {"a workflow's own steps are distinguished in the index",
			func(n int) *ledger.Reservation { return delegated(t, "w", fmt.Sprint("s", n), "op") }, []ledger.Event{report}, 0, delegated(t, "w", "next", "op"), false},
		"one that blocks": {"this test can fail: what blocks is read, and damage is reported",
			func(n int) *ledger.Reservation { return delegated(t, "w", fmt.Sprint("s", n), "op") }, []ledger.Event{report}, 0, delegated(t, "next", "s", "op"), true},
		"an open one": {"likewise, however old it is",
			func(n int) *ledger.Reservation { return delegated(t, "w", fmt.Sprint("s", n), "op") }, nil, 100 * time.Hour, delegated(t, "next", "s", "op"), true},
	} {
		t.Run(name, func(t *testing.T) {
			clock, path := newClock(), file(t)
			l := open(t, path, &sqlite.Options{Now: clock.now})
			for n := range many {
				rec, fresh, err := l.Reserve(t.Context(), *c.prior(n))
				if err != nil || !fresh {
					t.Fatalf("fresh %v, error %v", fresh, err)
				}
				_, err = l.Append(t.Context(), rec.ID, rec.Fence, c.end...)
				must(t, err)
			}
			sql(t, outsider(t, path), "UPDATE ledger_writes SET body = 'x' || body")
			clock.move(c.age)
			_, _, err := l.Reserve(t.Context(), *c.next)
			if c.met != errors.Is(err, ledger.ErrCorrupt) || !c.met && err != nil {
				t.Errorf("error %v; reason: %s", err, c.reason)
			}
		})
	}
}

// A batch of several writes that is refused half-way affects no other: the others share its
// commit, and see the state from before it.
func TestGroupBatches(t *testing.T) { synctest.Test(t, groupBatches) }

func groupBatches(t *testing.T) {
	const callers = 10
	l := open(t, file(t), nil)
	first := reserve(t, l, "first")
	before := l.Stats()
	release := l.Hold()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			_, err := l.Commit(context.Background(), ledger.Batch{
				Documents: []ledger.Document{step(fmt.Sprint("s", i))}, Reserve: delegated(t, "w", fmt.Sprint("s", i), "op"),
			})
			if err != nil {
				t.Errorf("commit: %v", err)
			}
		})
		wg.Go(func() {
			_, err := l.Commit(context.Background(), ledger.Batch{
				Documents: []ledger.Document{step(fmt.Sprint("x", i))}, Reserve: delegated(t, "x", fmt.Sprint("s", i), fmt.Sprint("op ", i)),
				Append: []ledger.Appending{
					{ID: first.ID, Fence: first.Fence, Events: []ledger.Event{evSent, evRead, evSettle}},
					{ID: first.ID, Fence: first.Fence, Events: []ledger.Event{evSent}},
				},
			})
			if !errors.Is(err, ledger.ErrIllegalMove) || strings.Contains(err.Error(), "rolled back") {
				t.Errorf("commit: error %v, want an illegal move, and nothing about others", err)
			}
		})
	}
	synctest.Wait() // until all have queued up
	release()
	wg.Wait()
	if got := l.Stats(); got.Commits != before.Commits+1 || got.Operations != before.Operations+callers {
		t.Errorf("got %+v after %+v, want one commit of %d operations", got, before, callers)
	}
	for _, query := range []string{
		"SELECT count(*) FROM ledger_documents", "SELECT count(*) FROM ledger_writes WHERE state = 'entrusted'",
	} {
		if got, err := l.Read(query); err != nil || got[0] != fmt.Sprint(callers) {
			t.Errorf("%s: %v, error %v; want %d", query, got, err, callers)
		}
	}
	if _, err := l.Append(t.Context(), first.ID, first.Fence, evSent, evRead, evSettle); err != nil {
		t.Errorf("the write that was not changed after all: %v", err)
	}
}
