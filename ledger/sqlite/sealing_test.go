package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/driver"
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

// What is kept for the sealer is bounded: what was sealed is dropped, and all is when it becomes
// too much or the sealer no longer reads. What is not kept is read.
func TestKeptRunsAreBounded(t *testing.T) { synctest.Test(t, keptRunsAreBounded) }

func keptRunsAreBounded(t *testing.T) {
	l := open(t, file(t), nil)
	if _, err := l.BeginSealing(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []int64
	unsealed := func() {
		t.Helper()
		runs, err := l.Unsealed(t.Context(), 0, 1000)
		if err != nil || len(runs) != len(want) {
			t.Fatalf("%d runs, want %d: %v", len(runs), len(want), err)
		}
		for i, run := range runs {
			if run.Ticket != want[i] || len(run.Events) != 2 {
				t.Fatalf("run %d with %d events, want run %d", run.Ticket, len(run.Events), want[i])
			}
		}
	}
	ticket := int64(0)
	commit := func() {
		t.Helper()
		ticket++
		reserve(t, l, fmt.Sprint("w", ticket))
		want = append(want, ticket)
	}
	kept := func(reason string, tickets ...int64) {
		t.Helper()
		have, size := l.Recent()
		if !slices.Equal(have, tickets) || (size != 0) != (len(tickets) > 0) {
			t.Errorf("%s: runs %v of %d bytes are kept, want %v", reason, have, size, tickets)
		}
	}
	seal := func() {
		t.Helper()
		if err := l.Sealed(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		want = nil
	}

	commit()
	kept("no sealer reads")
	unsealed()
	commit()
	kept("the sealer reads", 2)
	unsealed()
	seal()
	kept("all are sealed")
	commit()
	time.Sleep(driver.RecentFor - 1)
	commit()
	kept("the sealer read lately", 3, 4)
	time.Sleep(time.Nanosecond)
	commit()
	kept("the sealer reads no more")
	commit()
	kept("nor since")
	unsealed()

	const long = 128 << 10
	for range driver.MaxRecent / long {
		ticket++
		w := asked(fmt.Sprint("w", ticket))
		w.Payload = intent.Fields{"text": strings.Repeat("x", long)}
		if _, _, err := l.Reserve(t.Context(), reservation(t, w)); err != nil {
			t.Fatal(err)
		}
		want = append(want, ticket)
		if _, size := l.Recent(); size > driver.MaxRecent {
			t.Fatalf("%d bytes are kept", size)
		}
	}
	kept("they were too many")
	unsealed()
	commit()
	kept("the sealer reads again", ticket)
}
