package sqlite_test

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger/sqlite"
)

func TestPaperQueryPlans(t *testing.T) {
	l := open(t, file(t), nil)
	// What else a plan may do: look at the states that are asked for, and count.
	also := strings.NewReplacer("LIST SUBQUERY 1", "", "SCAN s VIRTUAL TABLE INDEX 1:", "", "CREATE BLOOM FILTER", "",
		"CO-ROUTINE (subquery-1)", "", "CO-ROUTINE (subquery-2)", "", "SCAN (subquery-1)", "", "SCAN (subquery-2)", "", "; ", "")
	want := map[string]string{
		"paper":        "SEARCH p USING INDEX sqlite_autoindex_ledger_papers_1 (tenant=? AND kind=? AND id=?)",
		"update":       "SEARCH ledger_papers USING INTEGER PRIMARY KEY (rowid=?)",
		"numbered":     "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
		"all":          "SEARCH p USING COVERING INDEX ledger_papers_kind (tenant=? AND kind=?)",
		"state":        "SEARCH p USING COVERING INDEX ledger_papers_state (tenant=? AND kind=? AND state=?)",
		"subject":      "SEARCH p USING INDEX ledger_papers_subject (tenant=? AND kind=? AND subject=?)",
		"trace":        "SEARCH p USING INDEX ledger_papers_trace (tenant=? AND kind=? AND trace=?)",
		"binder":       "SEARCH p USING INDEX ledger_papers_binder (tenant=? AND binder=? AND kind=?)",
		"count all":    "SEARCH p USING COVERING INDEX ledger_papers_kind (tenant=? AND kind=?)",
		"count state":  "SEARCH p USING COVERING INDEX ledger_papers_state (tenant=? AND kind=? AND state=?)",
		"count binder": "SEARCH p USING INDEX ledger_papers_binder (tenant=? AND binder=? AND kind=?)",
		"due":          "SEARCH p USING INDEX ledger_papers_due (kind=? AND due<?)",
		"done":         "SEARCH p USING INDEX ledger_papers_done (updated>? AND updated<?)",
		"stirring":     "SEARCH p USING INDEX ledger_papers_binder (tenant=? AND binder=?)",
		"forget":       "SEARCH ledger_papers USING INTEGER PRIMARY KEY (rowid=?)",
		"forget bound": "SEARCH ledger_papers USING INTEGER PRIMARY KEY (rowid=?)SEARCH p USING COVERING INDEX ledger_papers_binder (tenant=? AND binder=?)",
	}
	for name, query := range sqlite.PaperQueries {
		plan, err := l.Read("EXPLAIN QUERY PLAN " + query)
		must(t, err)
		if got := also.Replace(strings.Join(plan, "; ")); got != want[name] {
			t.Errorf("%s: plan %q, want %q; a ledger of millions must not be walked or sorted", name, got, want[name])
		}
	}
}
