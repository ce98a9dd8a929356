package sql_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestConformance runs the suite on a real server, with a table whose key is
// unique and with one whose key is not; and with reads from a real streaming
// standby that lags.
func TestConformance(t *testing.T) {
	need(t)
	for name, c := range map[string]struct {
		table     sql.Table
		onStandby bool
	}{
		"unique": {uniqueTable(), false}, "not unique": {plainTable(), false}, "standby": {uniqueTable(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance(t, c.table, c.onStandby)
		})
	}
}

func conformance(t *testing.T, table sql.Table, onStandby bool) {
	lacks := map[string]string{
		string(fault.Throttled):      "no SQLSTATE carries a time to wait; TestFates has the rest",
		connectortest.LacksNullField: "a column is NULL or has a value; it is never missing",
	}
	writes := []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	if table.Unique {
		writes = append(writes, intent.Upsert)
		lacks[string(fault.DuplicateBehindOurBack)] = "the server lets no second row under a unique key appear"
	}
	if !onStandby {
		lacks[string(fault.LaggingRead)] = "a primary shows what it has; the one on a standby has the rest"
	}
	gateways := []string{"FATAL:57P01", "FATAL:08006", "ERROR:40003", "ERROR:08P01", "ERROR:XX000"}
	if !table.Unique || onStandby {
		gateways = gateways[:1] // COMMIT is the same everywhere
	}
	connectortest.Run(t, connectortest.Harness{
		Open:        func(t *testing.T) *connectortest.Fixture { return fixture(newBench(t, table, onStandby, nil)) },
		Writes:      writes,
		Lacks:       lacks,
		RealTime:    true,
		SendTimeout: 2 * time.Second, // a connection and a transaction, on a busy machine
		Variants: map[fault.Kind][]string{
			fault.PhantomSuccess: {"wire", "trigger"},
			fault.BadGateway:     gateways,
			fault.UnreadableRead: {wireError, wireCut, wireGarbled, wireMangled},
		},
	})
}

func fixture(d *bench) *connectortest.Fixture {
	return &connectortest.Fixture{
		Connector: d,
		Profile:   d.Profiles()["order"],
		Shared:    "all checks write into the same tables",
		Intent:    d.order,
		Near:      d.near,
		Set:       d.set,
		Seed: func(w intent.WriteIntent) {
			customer, _ := json.Marshal(w.Expect["customer"])
			d.exec("INSERT INTO "+d.table+" (order_id, amount, note, customer, tags) VALUES ($1, $2, $3, $4, $5)",
				w.Key["order_id"], string(w.Expect["amount"].(json.Number)), w.Expect["note"], customer, w.Expect["tags"])
		},
		Change: func(key intent.Fields) {
			change := "note = 'another actor''s'"
			if d.table == `"orders"` {
				change += ", version = version + 1"
			}
			d.exec("UPDATE "+d.table+" SET "+change+" WHERE order_id = $1", key["order_id"])
		},
		Records: d.records,
		Effects: d.effects,
		Sends:   d.writes.sends,
		Elsewhere: func() (int, int) {
			if d.reads.target != d.c.standby.Addr() {
				return 0, 0 // reads go to the primary, whatever they could do
			}
			return d.reads.seen()
		},
		Same: same,
	}
}

// order is a good intent on order n.
func (d *bench) order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "order", Write: w, Key: d.key(n)}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"amount": json.Number("10.50"), "note": " Two \"Words\" ",
			"customer": map[string]any{"name": "Ada", "tags": []any{"a", "b"}, "since": json.Number("1815")},
			"tags":     []any{`a "quoted" one`, "NULL", "{}", "", `back\slash`}}
	case intent.Update:
		in.Expect = intent.Fields{"note": "Changed", "customer": map[string]any{"name": "Grace", "more": map[string]any{"deep": true}},
			"at": "2026-01-02T03:04:05.123456+01:00"}
		in.Absent = []string{"/customer/since"}
	case intent.Upsert:
		in.Expect = intent.Fields{"note": "Set", "amount": json.Number("3e1")}
	}
	return in
}

// near is orders whose ids are similar to that of n.
func (d *bench) near(n int) []intent.WriteIntent {
	id := d.key(n)["order_id"].(string)
	return connectortest.Near(d.order, "order_id", "o"+id[1:], id[:len(id)-1], id+"0", " "+id, id+" ", id+"%", "Order_"+id[6:])
}

// same compares as the profile does: times as points in time, numbers by value. A column is never
// missing: an unwritten one is null.
func same(field string, want, got any) bool {
	if field == "at" {
		a, errA := time.Parse(time.RFC3339Nano, fmt.Sprint(want))
		b, errB := time.Parse(time.RFC3339Nano, fmt.Sprint(got))
		return (errA == nil && errB == nil && a.Equal(b)) || (errA != nil && errB != nil)
	}
	return shows(orNull(want), orNull(got))
}

// shows compares what is wanted of an object, members that it does not name
// apart.
func shows(want, got any) bool {
	w, okW := want.(map[string]any)
	g, okG := got.(map[string]any)
	if !okW || !okG {
		return cmp.Equal(want, got, cmp.Comparer(func(a, b json.Number) bool {
			x, errX := a.Float64()
			y, errY := b.Float64()
			return errX == nil && errY == nil && x == y
		}))
	}
	for name, v := range w {
		if inner, there := g[name]; !there || !shows(v, inner) {
			return false
		}
	}
	return true
}

func orNull(v any) any {
	switch v.(type) {
	case bool, string, json.Number, []any, map[string]any:
		return v
	}
	return nil
}
