package sql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/verifytest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestAudit: no wrong state of a row on a real server is called verified, and
// no right one is refused.
func TestAudit(t *testing.T) {
	need(t)
	for name, c := range map[string]struct {
		table     sql.Table
		onStandby bool
	}{
		"unique": {uniqueTable(), false}, "not unique": {plainTable(), false}, "standby": {plainTable(), true},
	} {
		t.Run(name, func(t *testing.T) {
			verifytest.Audit(t, verifytest.Harness{Suite: auditSuite(c.table, c.onStandby)})
		})
	}
}

func auditSuite(table sql.Table, onStandby bool) connectortest.Harness {
	lacks := map[string]string{connectortest.LacksNullField: "a column is NULL or has a value; it is never missing"}
	writes := []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	if table.Unique {
		writes = append(writes, intent.Upsert)
		lacks[string(fault.DuplicateBehindOurBack)] = "the server lets no second row under a unique key appear"
	}
	if !onStandby {
		lacks[string(fault.LaggingRead)] = "a primary shows what it has"
	}
	return connectortest.Harness{
		Open:        func(t *testing.T) *connectortest.Fixture { return seedable(newBench(t, table, onStandby, nil)) },
		Writes:      writes,
		Lacks:       lacks,
		RealTime:    true,
		SendTimeout: 2 * time.Second, // a connection and a transaction, on a busy machine
		Variants:    map[fault.Kind][]string{fault.PhantomSuccess: {"wire", "trigger"}},
	}
}

// seedable is the suite's fixture with what the audit seeds.
func seedable(d *bench) *connectortest.Fixture {
	f := fixture(d)
	f.Intent = func(w intent.WriteType, n int) intent.WriteIntent {
		in := d.order(w, n)
		if w == intent.Create { // no two records are alike
			in.Expect["note"] = fmt.Sprintf(" Note \"%d\" ", n)
		}
		return in
	}
	f.Put = func(fields intent.Fields, stamp string) error {
		_, err := d.c.admin.Exec(context.Background(), "INSERT INTO "+d.table+" (order_id, amount, note, customer, tags, stamp) VALUES ($1, $2::text::numeric, $3, $4, $5, NULLIF($6, ''))",
			fields["order_id"], plain(fields["amount"]), fields["note"], plain(fields["customer"]), fields["tags"], stamp)
		return err
	}
	f.Alter = func(key, fields intent.Fields) error {
		for name, v := range fields {
			change := map[string]string{"amount": "amount = $2::text::numeric", "customer": "customer = $2::text::jsonb", "note": "note = $2", "tags": "tags = $2"}[name]
			if change == "" {
				return fmt.Errorf("no column %s", name)
			}
			if name == "amount" || name == "customer" {
				v = plain(v)
			}
			if _, err := d.c.admin.Exec(context.Background(), "UPDATE "+d.table+" SET "+change+" WHERE order_id = $1", key["order_id"], v); err != nil {
				return err
			}
		}
		return nil
	}
	return f
}

// plain is a value as its JSON text, nil for none.
func plain(v any) any {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
