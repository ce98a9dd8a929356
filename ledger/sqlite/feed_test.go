package sqlite_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// publishesAll compares the published changes with the settled writes: each once, in the order in
// which they were settled.
func publishesAll(t *testing.T, l *sqlite.Ledger) {
	t.Helper()
	count, last := map[ledger.ID]int{}, time.Time{}
	for q := (ledger.Following{}); ; {
		changes, next, err := l.Follow(t.Context(), q)
		must(t, err)
		if len(changes) == 0 {
			break
		}
		for _, c := range changes {
			if count[c.ID]++; c.At.Before(last) {
				t.Errorf("%s at %s comes after one at %s", c.ID, c.At, last)
			}
			last = c.At
		}
		q.After = next
	}
	settled, err := l.Read("SELECT id FROM ledger_writes WHERE state = 'settled'")
	must(t, err)
	for _, id := range settled {
		if count[ledger.ID(id)] != 1 {
			t.Errorf("%s was published %d times", id, count[ledger.ID(id)])
		}
	}
	if len(count) != len(settled) {
		t.Errorf("%d were published, %d are settled", len(count), len(settled))
	}
}

// Several processes write, and are killed, while others follow: all get the same changes.
func TestFollowWhileProcessesAreKilled(t *testing.T) {
	path := file(t)
	follow := func(l *sqlite.Ledger, after string, received *[]ledger.Change) string {
		changes, next, err := l.Follow(context.Background(), ledger.Following{After: after, Limit: 7})
		if err != nil {
			t.Error(err)
		}
		*received = append(*received, changes...)
		return next
	}
	received := make([][]ledger.Change, 2)
	var readers sync.WaitGroup
	var done atomic.Bool
	ledgers := []*sqlite.Ledger{open(t, path, nil), open(t, path, nil)}
	for i, l := range ledgers {
		readers.Go(func() {
			for after := ""; !t.Failed(); {
				ended := done.Load()
				next := follow(l, after, &received[i])
				if ended && next == after {
					return
				}
				after = next
			}
		})
	}
	untilKilled(t, "storm", path, "p", 150, 250, 350)
	done.Store(true)
	readers.Wait()
	publishesAll(t, ledgers[0])
	if diff := cmp.Diff(received[0], received[1]); diff != "" || len(received[0]) == 0 {
		t.Errorf("two got different changes, %d in all:\n%s", len(received[0]), diff)
	}
}

// A ledger that was restored from a copy continues with the same numbers: a follower that had
// received lost changes gets an error, and not half of the new ones.
func TestPutBack(t *testing.T) {
	path, c := file(t), newClock()
	l, err := sqlite.Open(t.Context(), path, &sqlite.Options{Now: c.now})
	must(t, err)
	must(t, pair(l, reservation(t, asked("w1"))))
	must(t, l.Close())
	copied, err := os.ReadFile(path)
	must(t, err)
	latest := func(names ...string) (cursor string) {
		l, err := sqlite.Open(t.Context(), path, &sqlite.Options{Now: c.now})
		must(t, err)
		defer l.Close()
		for _, name := range names {
			c.move(time.Second)
			must(t, pair(l, reservation(t, asked(name))))
		}
		cursor, err = l.Latest(t.Context())
		must(t, err)
		return cursor
	}
	before := latest("w2", "w3")
	must(t, os.WriteFile(path, copied, 0o600))
	latest("w4", "w5", "w6")
	l = open(t, path, nil)
	if _, _, err := l.Follow(t.Context(), ledger.Following{After: before}); !errors.Is(err, ledger.ErrTooFar) {
		t.Errorf("error %v, want that something was missed", err)
	}
}

// A change from before the clock was corrected, with a future time, does not keep later ones for
// ever.
func TestChangesAheadOfTheClock(t *testing.T) {
	c, path := newClock(), file(t)
	c.move(10_000 * time.Hour)
	l, err := sqlite.Open(t.Context(), path, &sqlite.Options{Now: c.now})
	must(t, err)
	must(t, pair(l, reservation(t, asked("w1"))))
	must(t, l.Close())
	c.move(-10_000 * time.Hour)
	l = open(t, path, &sqlite.Options{Now: c.now, ResetClock: true})
	must(t, pair(l, reservation(t, asked("w2"))))
	must(t, pair(l, reservation(t, asked("w3"))))
	did, err := l.Prune(t.Context(), ledger.Prune{Keep: time.Hour, Remember: time.Hour})
	if err != nil || did.Changes != 1 {
		t.Errorf("%d changes were pruned, error %v; want the one from the future", did.Changes, err)
	}
}
