package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
)

func conflict(t *testing.T, err error, why string) {
	t.Helper()
	var e *connectors.Error
	if !errors.As(err, &e) || e.Fate != connectors.FateRefused || !e.Conflict {
		t.Errorf("the write says %v, want a refusal marked as a conflict: %s", err, why)
	}
}

// TestDeclaredNumber: a change touches the declared number of rows or none.
func TestDeclaredNumber(t *testing.T) {
	d := newBench(t, plainTable(), false, nil)
	for range 2 {
		d.exec("INSERT INTO orders (order_id, note) VALUES ($1, 'theirs')", d.key(1)["order_id"])
	}
	was := d.records(d.key(1))
	for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
		_, err := d.Write(t.Context(), d.request(w, 1, nil))
		conflict(t, err, "two rows match, one was declared")
	}
	if diff := cmp.Diff(was, d.records(d.key(1))); diff != "" {
		t.Errorf("the refused changes left (-before +after)\n%s", diff)
	}
	r := d.request(intent.Update, 1, nil)
	r.Intent.Count = 2
	if _, err := d.Write(t.Context(), r); err != nil {
		t.Error(err)
	}
	for _, row := range d.records(d.key(1)) {
		if row.Fields["note"] != "Changed" || row.Stamp != r.Stamp {
			t.Errorf("row %v, want both changed, and stamped", row)
		}
	}
}

// TestTakenKey: a create under a taken key changes nothing, whatever actor took it.
func TestTakenKey(t *testing.T) {
	d := newBench(t, uniqueTable(), false, nil)
	d.exec("INSERT INTO unique_orders (order_id, note) VALUES ($1, 'theirs')", d.key(1)["order_id"])
	was := d.records(d.key(1))
	_, err := d.Write(t.Context(), d.request(intent.Create, 1, nil))
	conflict(t, err, "a row is there")
	if !errors.Is(err, sql.ErrExists) {
		t.Errorf("error %v, want ErrExists", err)
	}
	if strings.Contains(err.Error(), "23505") || !strings.Contains(err.Error(), "or a trigger swallowed the insert") {
		t.Errorf("error %v, want no code that the server did not send, and both causes", err)
	}
	none := connectors.Observation{}
	r := d.request(intent.Upsert, 1, &none)
	r.Conditional = true
	_, err = d.Write(t.Context(), r)
	conflict(t, err, "none was there when it was read")
	if diff := cmp.Diff(was, d.records(d.key(1))); diff != "" || d.effects(d.key(1)) != 0 {
		t.Errorf("the refused writes left (-before +after)\n%s", diff)
	}
}

// TestAnotherRow: the row that was read is the row that is changed; one that
// took its key since is not.
func TestAnotherRow(t *testing.T) {
	for _, table := range []sql.Table{uniqueTable(), plainTable()} {
		d := newBench(t, table, false, nil)
		d.wrote(intent.Create, 1, nil)
		before, err := d.Read(t.Context(), d.query(intent.Create, 1))
		if err != nil {
			t.Fatal(err)
		}
		d.exec("DELETE FROM "+d.table+" WHERE order_id = $1", d.key(1)["order_id"])
		d.exec("INSERT INTO "+d.table+" (order_id, note) VALUES ($1, 'another')", d.key(1)["order_id"])
		was := d.records(d.key(1))
		for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
			_, err := d.Write(t.Context(), d.request(w, 1, &before))
			conflict(t, err, "it is another row")
		}
		if diff := cmp.Diff(was, d.records(d.key(1))); diff != "" {
			t.Errorf("the other row was changed (-before +after)\n%s", diff)
		}
	}
}

// TestUndoRefused: what cannot be undone as it was is not undone at all.
func TestUndoRefused(t *testing.T) {
	half := uniqueTable()
	half.Whole = false
	d, partly := newBench(t, uniqueTable(), false, nil), newBench(t, half, false, nil)
	create, update := d.request(intent.Create, 1, nil).Intent, d.request(intent.Update, 1, nil).Intent
	row := func(ref, stamp, note string) connectors.Observation {
		return connectors.Observation{Records: []connectors.Record{{Ref: ref, Stamp: stamp,
			Fields: intent.Fields{"id": nil, "order_id": d.key(1)["order_id"], "note": note}}}}
	}
	none, ours, theirs := connectors.Observation{}, row("1", create.Stamp(), "x"), row("1", "rb-theirs", "x")
	before, other := row("1", "", "before"), row("2", "", "another")
	for name, c := range map[string]struct {
		c      *bench
		in     intent.WriteIntent
		before *connectors.Observation
		after  connectors.Observation
		ok     bool
		reason string
	}{
		"ours":            {d, create, &none, ours, true, "we made it"},
		"another stamp":   {d, create, &none, theirs, false, "another actor made it"},
		"no read before":  {d, create, nil, ours, false, "it may have been there"},
		"half a row":      {partly, create, &none, ours, false, "the rest of it is unknown"},
		"changed back":    {d, update, &before, ours, true, "the note before is known"},
		"another row":     {d, update, &before, other, false, "the values are not its own"},
		"nothing changed": {d, update, &before, before, false, "there is nothing to undo"},
		"two rows":        {d, update, &before, connectors.Observation{Records: append(ours.Records, other.Records...)}, false, "which of them"},
	} {
		t.Run(name, func(t *testing.T) {
			undo, err := c.c.Invert(c.in, c.before, c.after)
			if c.ok != (err == nil) || (err != nil && !errors.Is(err, sql.ErrNoUndo)) {
				t.Errorf("%v, %v; want an inverse: %t, since %s", undo, err, c.ok, c.reason)
			}
		})
	}
}

// TestQuietPrimary: what ends the log and is no commit stays off the standby;
// a read is strong all the same.
func TestQuietPrimary(t *testing.T) {
	d := newBench(t, uniqueTable(), true, nil)
	d.wrote(intent.Create, 1, nil)
	tx, err := d.c.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "INSERT INTO effects VALUES ('not committed')"); err != nil {
		t.Fatal(err)
	}
	if o, err := d.Read(t.Context(), d.query(intent.Create, 1)); err != nil || o.Strength != connectors.Strong || len(o.Records) != 1 {
		t.Errorf("%d rows, %q (%v); want 1, strong", len(o.Records), o.Strength, err)
	}
}
