package sql_test

import (
	"encoding/json"
	"testing"

	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/probe"
)

// TestProbing: a real server is as the connector declares, and the samples are removed again.
func TestProbing(t *testing.T) {
	need(t)
	for name, c := range map[string]struct {
		table     sql.Table
		onStandby bool
	}{
		"unique": {uniqueTable(), false}, "not unique": {plainTable(), false}, "standby": {uniqueTable(), true},
	} {
		t.Run(name, func(t *testing.T) {
			c.table.Sample = sql.Sample{
				Create: intent.Fields{"note": "a sample", "amount": json.Number("1.5")},
				Update: intent.Fields{"note": "a sample, changed"},
			}
			d := newBench(t, c.table, c.onStandby, nil)
			rep, err := probe.Run(t.Context(), d, d.Profiles()["order"], "order", probe.Options{Rounds: 2})
			if err != nil || len(rep.Weaker) > 0 || len(rep.Left) > 0 {
				t.Errorf("error %v\n%s", err, rep.Text())
			}
			var left int
			row := d.c.admin.QueryRow(t.Context(), "SELECT count(*) FROM "+d.table+" WHERE order_id LIKE 'readback-sample-%'")
			if err := row.Scan(&left); err != nil || left != 0 {
				t.Errorf("%d rows are left (%v), want none", left, err)
			}
			t.Log("\n" + rep.Text())
		})
	}
}
