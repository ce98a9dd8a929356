package sql_test

import (
	stdsql "database/sql"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
)

// TestQuery: rows have the values of JSON, numbers are exact, and nothing is changed.
func TestQuery(t *testing.T) {
	want := []intent.Fields{
		{"id": "A-1", "n": json.Number("9007199254740993"), "none": nil},
		{"id": "A-2", "n": json.Number("2.5"), "none": nil},
	}
	check := func(t *testing.T, query func(string, func(intent.Fields) error) error, changing ...string) {
		t.Helper()
		var got []intent.Fields
		err := query("SELECT 'A-1' AS id, 9007199254740993 AS n, NULL AS none UNION ALL SELECT 'A-2', 2.5, NULL ORDER BY id; ",
			func(f intent.Fields) error { got = append(got, f); return nil })
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
		for _, q := range changing {
			if err := query(q, func(intent.Fields) error { return nil }); err == nil {
				t.Errorf("%s is no error", q)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log.db")
		full, err := stdsql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = full.Close() }()
		if _, err := full.Exec("CREATE TABLE log (id TEXT)"); err != nil {
			t.Fatal(err)
		}
		db, err := stdsql.Open("sqlite", "file:"+path+"?mode=ro")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		check(t, func(q string, each func(intent.Fields) error) error { return sql.Query(t.Context(), db, q, each) },
			"INSERT INTO log VALUES ('A-3') RETURNING id", "SELECT 1 AS a, 2 AS a")
	})
	t.Run("postgresql", func(t *testing.T) {
		d := newBench(t, uniqueTable(), false, nil)
		d.exec("INSERT INTO unique_orders (order_id, note) VALUES ($1, 'theirs')", d.key(1)["order_id"])
		check(t, func(q string, each func(intent.Fields) error) error { return d.Query(t.Context(), q, each) },
			"SELECT 1) r; COMMIT; DELETE FROM unique_orders; SELECT row_to_json(r)::text FROM (SELECT 1",
			"WITH gone AS (DELETE FROM unique_orders RETURNING order_id) SELECT * FROM gone", "SELECT nextval('no_such')")
		if n := len(d.records(d.key(1))); n != 1 {
			t.Errorf("%d rows are left, want 1", n)
		}
	})
}
