package sqlite_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// What a process committed while its sealer reads is sealed as it was committed, and equals what
// another process reads. What another run has the ticket of is read.
func TestRunsAreSealedAsCommitted(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	if _, err := l.BeginSealing(t.Context()); err != nil {
		t.Fatal(err)
	}
	unsealed := func(l *sqlite.Ledger) []ledger.Run {
		t.Helper()
		runs, err := l.Unsealed(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	if runs := unsealed(l); len(runs) != 0 {
		t.Fatalf("unsealed: %v", runs)
	}
	for _, workflow := range []string{"one", "two"} {
		res := reservation(t, asked(workflow))
		rec, _, err := l.Reserve(t.Context(), res)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), rec.ID, rec.Fence, evSent, evRead, evSettle); err != nil {
			t.Fatal(err)
		}
	}
	committed := unsealed(l)
	if diff := cmp.Diff(unsealed(open(t, path, nil)), committed); len(committed) != 4 || diff != "" {
		t.Fatalf("%d runs; (-read +committed):\n%s", len(committed), diff)
	}
	other := outsider(t, path)
	sql(t, other, "DELETE FROM ledger_events")
	if diff := cmp.Diff(committed, unsealed(l)); diff != "" {
		t.Errorf("events that are gone (-committed +now):\n%s", diff)
	}
	sql(t, other, "UPDATE ledger_unsealed SET write = write + 1 WHERE ticket = 1")
	if runs := unsealed(l); len(runs) != 4 || runs[0].ID != committed[2].ID || len(runs[0].Events) != 0 {
		t.Errorf("the run of another write with a known ticket is one of %s with %d events", runs[0].ID, len(runs[0].Events))
	}
	if err := l.Sealed(t.Context(), []int64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(committed[3:], unsealed(l)); diff != "" {
		t.Errorf("after some were sealed (-want +got):\n%s", diff)
	}
}

// Of a batch that is rolled back within a transaction of others nothing is kept.
func TestRolledBackRunsAreNotKept(t *testing.T) { synctest.Test(t, rolledBackRunsAreNotKept) }

func rolledBackRunsAreNotKept(t *testing.T) {
	l := open(t, file(t), nil)
	first := reserve(t, l, "first")
	if _, err := l.BeginSealing(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Unsealed(t.Context(), 0, 10); err != nil {
		t.Fatal(err)
	}
	release := l.Hold()
	var wg sync.WaitGroup
	wg.Go(func() { reserve(t, l, "kept") })
	wg.Go(func() {
		_, err := l.Commit(context.Background(), ledger.Batch{
			Reserve: delegated(t, "refused", "s", "op"),
			Append:  []ledger.Appending{{ID: first.ID, Fence: first.Fence + 1, Events: []ledger.Event{evSent}}},
		})
		if !errors.Is(err, ledger.ErrFenced) {
			t.Errorf("error %v, want that it is fenced", err)
		}
	})
	synctest.Wait() // until both have queued up
	release()
	wg.Wait()
	runs, err := l.Unsealed(t.Context(), 0, 10)
	if err != nil || len(runs) != 2 {
		t.Fatalf("unsealed: %v, %v", runs, err)
	}
	if kept, _ := l.Recent(); !slices.Equal(kept, []int64{runs[1].Ticket}) {
		t.Errorf("runs %v are kept, want %d", kept, runs[1].Ticket)
	}
}
