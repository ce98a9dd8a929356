package sqlite_test

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger/sqlite"
)

// plans are those of the statements that run while callers wait. They scan no ledger of millions,
// and sort none.
var plans = map[string]string{
	"find":         "SEARCH w USING INDEX sqlite_autoindex_ledger_writes_1 (id=?)",
	"operation":    "SEARCH w USING INDEX ledger_writes_operation (tenant=? AND idempotency_key=? AND tool=? AND <expr>>?); USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY", // of what is open
	"last":         "SEARCH w USING INDEX ledger_writes_queue (key_digest=? AND place>?)",
	"next":         "SEARCH w USING INDEX ledger_writes_queue (key_digest=? AND place>?)",
	"before":       "SEARCH w USING INDEX ledger_writes_queue (key_digest=? AND place<?)",
	"next_party":   "SEARCH w USING INDEX ledger_writes_work ((destination,tenant,state,due)>(?,?,?,?))",
	"due":          "SEARCH w USING INDEX ledger_writes_work (destination=? AND tenant=? AND state=? AND due<?)",
	"found":        "SEARCH w USING INTEGER PRIMARY KEY (rowid=?)",
	"numbered":     "SEARCH w USING INTEGER PRIMARY KEY (rowid=?)",
	"mark_damaged": "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
	"update":       "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
	"get":          "SCAN m; SEARCH w USING INDEX sqlite_autoindex_ledger_writes_1 (id=?) LEFT-JOIN",
	"events":       "SEARCH e USING PRIMARY KEY (write=?)",
	"of_record": "MERGE (UNION ALL); LEFT; SEARCH l USING COVERING INDEX ledger_writes_queue (key_digest=? AND place>?); SEARCH w USING INTEGER PRIMARY KEY (rowid=?); USE TEMP B-TREE FOR ORDER BY; " + // of one queue
		"RIGHT; SEARCH b USING INDEX ledger_writes_unordered (key_digest=? AND rowid<?); SEARCH w USING INTEGER PRIMARY KEY (rowid=?); USE TEMP B-TREE FOR ORDER BY",
	"meta":                      "SCAN ledger_meta",                         // of its one row
	"held_or_in_review":         "SCAN w USING INDEX ledger_writes_waiting", // of what is open and has no due time
	"change_numbers":            "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH o; SCALAR SUBQUERY 2; SEARCH l; SCALAR SUBQUERY 3; SEARCH h USING INTEGER PRIMARY KEY (rowid=?); SCALAR SUBQUERY 5; SEARCH m USING INTEGER PRIMARY KEY (rowid=?); SCALAR SUBQUERY 4; SEARCH x",
	"changes":                   "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
	"changes_of_tenant":         "SEARCH c USING INDEX ledger_changes_tenant (tenant=? AND n>?)",
	"change_at":                 "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
	"history":                   "SEARCH c USING INDEX ledger_changes_tenant (tenant=? AND n>?); USE TEMP B-TREE FOR GROUP BY", // of what is counted
	"old_changes":               "SEARCH c USING INTEGER PRIMARY KEY (rowid<?); SCALAR SUBQUERY 1; SEARCH l",
	"delete_changes":            "SEARCH ledger_changes USING INTEGER PRIMARY KEY (rowid<?)",
	"search_key_digest":         "SEARCH s USING COVERING INDEX ledger_writes_key_digest (<expr>=? AND key_digest=? AND tenant=? AND rowid<?)",
	"search_operation":          "SEARCH s USING COVERING INDEX ledger_writes_operation (tenant=? AND idempotency_key=?); USE TEMP B-TREE FOR ORDER BY", // of one for each window
	"search_not_blocking":       "SEARCH s USING COVERING INDEX ledger_writes_not_blocking (tenant=? AND idempotency_key=? AND rowid<?)",
	"search_correlation":        "SEARCH s USING COVERING INDEX ledger_search_correlation (tenant=? AND correlation_id=? AND n<?)",
	"search_workflow":           "SEARCH s USING PRIMARY KEY (tenant=? AND workflow=? AND n<?)",
	"search_terms":              "SEARCH s USING PRIMARY KEY (lot=? AND tenant=? AND term>? AND term<?); USE TEMP B-TREE FOR DISTINCT", // of one lot
	"search_id":                 "SEARCH s USING INDEX sqlite_autoindex_ledger_writes_1 (id>? AND id<?); USE TEMP B-TREE FOR ORDER BY", // of some
	"delete_terms":              "SEARCH ledger_terms USING PRIMARY KEY (lot=? AND tenant=?); LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"extent":                    "SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH f; SCALAR SUBQUERY 2; SEARCH l",
	"search_state":              "SEARCH s USING COVERING INDEX ledger_writes_listing (tenant=? AND state=? AND n<?)",
	"entries":                   "SEARCH o USING INDEX ledger_outbox_open (n>?)",
	"entries_of":                "SEARCH o USING INDEX ledger_outbox_queue (key_digest=?)",
	"entry":                     "SEARCH o USING INDEX ledger_outbox_id (id=?); USE TEMP B-TREE FOR ORDER BY",
	"delete_entry":              "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?)",
	"refuse_entry":              "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?)",
	"outbox_size":               "SCAN o USING INDEX ledger_outbox_open",
	"refused_entries":           "SCAN o USING INDEX ledger_outbox_refused",
	"damaged_writes":            "SCAN w USING INDEX ledger_writes_damaged",
	"notes":                     "SEARCH o USING INDEX sqlite_autoindex_ledger_notes_1 (name>?)",
	"note":                      "SEARCH o USING INDEX sqlite_autoindex_ledger_notes_1 (name=?)",
	"tombstones":                "SEARCH w USING INDEX ledger_writes_tombstones (settled_at>? AND settled_at<?)",
	"compactable":               "SEARCH w USING INDEX ledger_writes_compactable (tenant=? AND destination=? AND settled_at>? AND settled_at<?)",
	"next_compactable_party":    "SEARCH w USING INDEX ledger_writes_compactable ((tenant,destination,settled_at)>(?,?,?))",
	"has_follower":              "SEARCH w USING COVERING INDEX ledger_writes_queued_behind (queued_behind=?)",
	"clear_intent":              "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
	"delete_events":             "SEARCH ledger_events USING PRIMARY KEY (write=?)",
	"events_size":               "SEARCH e USING PRIMARY KEY (write=?)",
	"delete_write":              "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
	"delete_refused":            "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 2; SCAN o USING INDEX ledger_outbox_refused; LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"erase_write":               "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
	"erase_search":              "SEARCH ledger_search USING PRIMARY KEY (tenant=? AND workflow=? AND n=?)",
	"delete_refused_of_records": "SCAN ledger_outbox USING INDEX ledger_outbox_refused; LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"entries_of_records":        "SEARCH o USING INDEX ledger_outbox_queue (key_digest=?); LIST SUBQUERY 1; SCAN json_each VIRTUAL TABLE INDEX 1:; USE TEMP B-TREE FOR ORDER BY",
	"holds":                     "SEARCH p USING INDEX ledger_documents_due (kind=? AND due>?)",
	"collection_members":        "SEARCH p USING INDEX ledger_documents_collection (tenant=? AND collection=?)",
	"queue_stats":               "COMPOUND QUERY; LEFT-MOST SUBQUERY; SCAN w USING INDEX ledger_writes_work; UNION ALL; SCAN w USING INDEX ledger_writes_waiting",
	"document":                  "SEARCH p USING INDEX sqlite_autoindex_ledger_documents_1 (tenant=? AND kind=? AND id=?)",
	"update_document":           "SEARCH ledger_documents USING INTEGER PRIMARY KEY (rowid=?)",
	"numbered_document":         "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
	"documents_of_kind":         "SEARCH p USING COVERING INDEX ledger_documents_kind (tenant=? AND kind=?)",
	"documents_in_state":        "SEARCH p USING COVERING INDEX ledger_documents_state (tenant=? AND kind=? AND state=?)",
	"documents_of_subject":      "SEARCH p USING INDEX ledger_documents_subject (tenant=? AND kind=? AND subject=?); LIST SUBQUERY 1; SCAN s VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"documents_of_trace":        "SEARCH p USING INDEX ledger_documents_trace (tenant=? AND kind=? AND trace=?); LIST SUBQUERY 1; SCAN s VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"documents_in_collection":   "SEARCH p USING INDEX ledger_documents_collection (tenant=? AND collection=? AND kind=?); LIST SUBQUERY 1; SCAN s VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER",
	"due_documents":             "SEARCH p USING INDEX ledger_documents_due (kind=? AND due<?)",
	"done_documents":            "SEARCH p USING INDEX ledger_documents_done (updated>? AND updated<?)",
	"collection_in_use":         "SEARCH p USING INDEX ledger_documents_collection (tenant=? AND collection=?)",
	"delete_document":           "SEARCH ledger_documents USING INTEGER PRIMARY KEY (rowid=?)",
	"delete_members":            "SEARCH ledger_documents USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 1; SEARCH p USING COVERING INDEX ledger_documents_collection (tenant=? AND collection=?)",
}

func TestQueryPlans(t *testing.T) {
	l := open(t, file(t), nil)
	for name, query := range sqlite.Statements {
		plan, err := l.Read("EXPLAIN QUERY PLAN " + query) // which prepares it
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		listing, counts := strings.CutPrefix(name, "count_")
		search, upwards := strings.CutSuffix(listing, "_oldest_first")
		want, fast := plans[search]
		if upwards {
			want = strings.NewReplacer("n<?", "n>?", "rowid<?", "rowid>?").Replace(want)
		}
		if got := strings.Join(plan, "; "); fast && got != want && !(counts && strings.Contains(got, want)) {
			t.Errorf("%s: plan %q, want %q", name, got, want)
		}
	}
	for name := range plans {
		sqlite.Statements.Text(name)
	}
}
