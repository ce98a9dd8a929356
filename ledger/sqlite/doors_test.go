package sqlite_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func TestDoorQueryPlans(t *testing.T) {
	l := open(t, file(t), nil)
	want := map[string]string{
		"changes known":       "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH o; SCALAR SUBQUERY 2; SEARCH l; SCALAR SUBQUERY 3; SEARCH h USING INTEGER PRIMARY KEY (rowid=?)",
		"changes":             "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
		"changes of a tenant": "SEARCH c USING INDEX ledger_changes_tenant (tenant=? AND n>?)",
		"history":             "SEARCH c USING INDEX ledger_changes_time (tenant=? AND at>? AND at<?); USE TEMP B-TREE FOR GROUP BY", // of what is counted
		"old changes":         "SEARCH c USING INTEGER PRIMARY KEY (rowid<?); SCALAR SUBQUERY 1; SEARCH l",
		"forget changes":      "SEARCH ledger_changes USING INTEGER PRIMARY KEY (rowid<?)",
		"search about":        "SEARCH s USING COVERING INDEX ledger_search_about (tenant=? AND key_digest=? AND rowid<?)",
		"search operation":    "SEARCH s USING COVERING INDEX ledger_search_operation (tenant=? AND idempotency_key=? AND rowid<?)",
		"search correlation":  "SEARCH s USING COVERING INDEX ledger_search_correlation (tenant=? AND correlation_id=? AND rowid<?)",
		"search workflow":     "SEARCH s USING COVERING INDEX ledger_search_workflow (tenant=? AND workflow=? AND rowid<?)",
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
	must(t, l.Write("UPDATE ledger_writes SET body = 'torn' WHERE id = '"+string(all[0].ID)+"'"))
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
