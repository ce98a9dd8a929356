package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func TestDoorQueryPlans(t *testing.T) {
	l := open(t, file(t), nil)
	want := map[string]string{
		"changes known":       "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH o; SCALAR SUBQUERY 2; SEARCH l; SCALAR SUBQUERY 3; SEARCH h USING INTEGER PRIMARY KEY (rowid=?); SCALAR SUBQUERY 5; SEARCH m USING INTEGER PRIMARY KEY (rowid=?); SCALAR SUBQUERY 4; SEARCH x",
		"changes":             "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
		"changes of a tenant": "SEARCH c USING INDEX ledger_changes_tenant (tenant=? AND n>?)",
		"change at":           "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
		"history":             "SEARCH c USING INDEX ledger_changes_tenant (tenant=? AND n>?); USE TEMP B-TREE FOR GROUP BY", // of what is counted
		"old changes":         "SEARCH c USING INTEGER PRIMARY KEY (rowid<?); SCALAR SUBQUERY 1; SEARCH l",
		"forget changes":      "SEARCH ledger_changes USING INTEGER PRIMARY KEY (rowid<?)",
		"search about":        "SEARCH s USING COVERING INDEX ledger_writes_about (<expr>=? AND key_digest=? AND tenant=? AND rowid<?)",
		"search operation":    "SEARCH s USING INDEX ledger_writes_operation (tenant=? AND idempotency_key=?); USE TEMP B-TREE FOR ORDER BY", // of one for each window
		"search nothing":      "SEARCH s USING COVERING INDEX ledger_writes_nothing (tenant=? AND idempotency_key=? AND rowid<?)",
		"search correlation":  "SEARCH s USING COVERING INDEX ledger_workflows_correlation (tenant=? AND correlation_id=? AND n<?)",
		"search workflow":     "SEARCH s USING PRIMARY KEY (tenant=? AND workflow=? AND n<?)",
		"extent":              "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH f; SCALAR SUBQUERY 2; SEARCH l",
		"search state":        "SEARCH s USING COVERING INDEX ledger_writes_listing (tenant=? AND state=? AND n<?)",
	}
	for name, plan := range maps.Clone(want) {
		if strings.HasPrefix(name, "search") {
			want[name+", oldest first"] = strings.NewReplacer("n<?", "n>?", "rowid<?", "rowid>?").Replace(plan)
		}
	}
	for name, query := range sqlite.DoorQueries {
		plan, err := l.Read("EXPLAIN QUERY PLAN " + query)
		must(t, err)
		if got := strings.Join(plan, "; "); got != want[name] {
			t.Errorf("%s: plan %q, want %q; a ledger of millions must not be walked or sorted", name, got, want[name])
		}
	}
}

// What a ledger of version 3 holds is found after it was upgraded, and nothing of
// it is told: it happened before anybody could follow. A program of version 3
// stops, since it would tell nothing.
func TestVersion3(t *testing.T) {
	path, all := filepath.Join(t.TempDir(), "ledger.db"), []ledger.Record{}
	for i := range 3 {
		w := asked(fmt.Sprint("w", i))
		if i > 0 {
			w.CorrelationID = `a "trace" \ of ünïcode`
		}
		res := reservation(t, w)
		res.Events = []ledger.Event{{Kind: ledger.EvHeld}}
		rec, _, err := ledger.Begin(res, "", newClock().now())
		must(t, err)
		all = append(all, rec)
	}
	must(t, sqlite.Version3(path, all...))
	l := open(t, path, nil)
	must(t, l.Change("UPDATE ledger_writes SET body = 'torn' WHERE id = '"+string(all[0].ID)+"'"))
	for name, c := range map[string]struct {
		s    ledger.Search
		want []ledger.ID
	}{
		"correlation": {ledger.Search{CorrelationID: `a "trace" \ of ünïcode`}, []ledger.ID{all[2].ID, all[1].ID}},
		"workflow":    {ledger.Search{Workflow: "w1"}, []ledger.ID{all[1].ID}},
		"operation":   {ledger.Search{IdempotencyKey: all[2].IdempotencyKey}, []ledger.ID{all[2].ID}},
		"key":         {ledger.Search{KeyDigest: all[1].KeyDigest}, []ledger.ID{all[1].ID}},
	} {
		c.s.Tenant = "acme"
		found, err := l.Find(t.Context(), c.s)
		must(t, err)
		var got []ledger.ID
		for _, r := range found.Records {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("by its %s (-want +got):\n%s", name, diff)
		}
	}
	if changes, _, err := l.Follow(t.Context(), ledger.Following{}); err != nil || len(changes) != 0 {
		t.Errorf("%d changes, error %v", len(changes), err)
	}
	if needs, err := l.Read("SELECT compatible_from FROM ledger_meta"); err != nil || !slices.Equal(needs, []string{"4"}) {
		t.Errorf("a program needs to know version %v, error %v", needs, err)
	}
}

// tellsAll holds what a ledger tells against the writes that are settled in it:
// each once, in the order in which that happened.
func tellsAll(t *testing.T, l *sqlite.Ledger) {
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
			t.Errorf("%s was told %d times", id, count[ledger.ID(id)])
		}
	}
	if len(count) != len(settled) {
		t.Errorf("%d were told of, %d are settled", len(count), len(settled))
	}
}

// Several processes write, and are killed, while others follow: all hear the same.
func TestFollowWhileProcessesAreKilled(t *testing.T) {
	path := file(t)
	follow := func(l *sqlite.Ledger, after string, heard *[]ledger.Change) string {
		changes, next, err := l.Follow(context.Background(), ledger.Following{After: after, Limit: 7})
		if err != nil {
			t.Error(err)
		}
		*heard = append(*heard, changes...)
		return next
	}
	heard := make([][]ledger.Change, 2)
	var readers, writers sync.WaitGroup
	var done atomic.Bool
	ledgers := []*sqlite.Ledger{open(t, path, nil), open(t, path, nil)}
	for i, l := range ledgers {
		readers.Go(func() {
			for after := ""; !t.Failed(); {
				ended := done.Load()
				next := follow(l, after, &heard[i])
				if ended && next == after {
					return
				}
				after = next
			}
		})
	}
	for i := range 3 {
		cmd := process(t, "storm", path, fmt.Sprint("p", i))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		writers.Go(func() {
			lines := bufio.NewScanner(out)
			for n := 0; lines.Scan(); n++ {
				if n == 150+100*i {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait() // it was killed
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	tellsAll(t, ledgers[0])
	if diff := cmp.Diff(heard[0], heard[1]); diff != "" || len(heard[0]) == 0 {
		t.Errorf("two heard different things, %d in all:\n%s", len(heard[0]), diff)
	}
}

// A ledger that was put back from a copy goes on with the same numbers: who has
// heard what is lost hears so, and is not told half of it.
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

// What lay ahead of a clock that was set right does not keep what is behind it for
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
