package simulated_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/intent"
)

// TestRemove: of two records under one key the one that is named goes, and it is
// read by its own id alone.
func TestRemove(t *testing.T) {
	for name, bulk := range map[string]bool{"one read": false, "many": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { removeOne(t, bulk) })
		})
	}
}

func removeOne(t *testing.T, bulk bool) {
	o := simulated.Plain.Options()
	o.Versions, o.Bulk = true, bulk
	w := newWorld(t, o)
	c := w.Connector()
	in := order(intent.Create, 1)
	in.Destination = "orders"
	for range 2 {
		if _, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err != nil || len(seen.Records) != 2 {
		t.Fatal(seen, err)
	}
	undo, err := c.Remove(in, seen.Records[0])
	if err != nil {
		t.Fatal(err)
	}
	look := func() connectors.Observation {
		q := connectors.Query{Intent: undo, Stamp: undo.Stamp()}
		if !bulk {
			obs, err := c.Read(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return obs
		}
		all, err := c.ReadMany(t.Context(), []connectors.Query{q})
		if err != nil || all[0].Err != nil {
			t.Fatal(all, err)
		}
		return all[0].Observation
	}
	before := look()
	if len(before.Records) != 1 || before.Records[0].Ref != seen.Records[0].Ref || before.Strength != connectors.Strong {
		t.Fatalf("%+v, want the one record", before)
	}
	if _, err := c.Write(t.Context(), connectors.Request{Intent: undo, Attempt: 1, Before: &before}); err != nil {
		t.Fatal(err)
	}
	if gone := look(); len(gone.Records) != 0 {
		t.Errorf("%+v is still there", gone)
	}
	if left := w.Records("Order-001"); len(left) != 1 || left[0].ID != seen.Records[1].Ref {
		t.Errorf("%+v left", left)
	}
}

func TestRemoveRefuses(t *testing.T) {
	in := order(intent.Create, 1)
	good := connectors.Record{Ref: "ord_000001", Stamp: in.Stamp(), Version: "1", Fields: intent.Fields{"order_id": "Order-001"}}
	changed, strange, more, closed := good, good, good, good
	more.Fields = intent.Fields{"order_id": "Order-001", "remark": "theirs"}
	closed.Fields = intent.Fields{"order_id": "Order-001", "status": "closed"}
	changed.Version, strange.Stamp = "2", "rb-other"
	bare := simulated.Plain.Options()
	bare.Stamps = false
	for name, tc := range map[string]struct {
		o       simulated.Options
		in      intent.WriteIntent
		surplus connectors.Record
		ok      bool
	}{
		"ours":           {simulated.Plain.Options(), in, good, true},
		"changed since":  {simulated.Plain.Options(), in, changed, false},
		"more in it":     {simulated.Plain.Options(), in, more, false},
		"gone on":        {simulated.Plain.Options(), in, closed, false},
		"somebody's":     {simulated.Plain.Options(), in, strange, false},
		"no stamps here": {bare, in, good, false},
		"an upsert":      {simulated.Plain.Options(), order(intent.Upsert, 1), good, false},
	} {
		undo, err := newWorld(t, tc.o).Connector().Remove(tc.in, tc.surplus)
		if tc.ok != (err == nil) || !tc.ok && !errors.Is(err, simulated.ErrIrreversible) {
			t.Errorf("%s: %+v, %v", name, undo, err)
		}
	}
}

// TestOwnIDIsForDeletes: no other write can be addressed by it.
func TestOwnIDIsForDeletes(t *testing.T) {
	c := newWorld(t, simulated.Plain.Options()).Connector()
	for _, w := range allWrites {
		err := c.Check(intent.WriteIntent{Kind: simulated.Kind, Write: w, Key: intent.Fields{"id": "ord_000001"}})
		if (err == nil) != (w == intent.Delete) {
			t.Errorf("%s by id: %v", w, err)
		}
	}
}
