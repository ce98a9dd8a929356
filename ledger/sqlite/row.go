package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// row is one write with its number.
type row struct {
	n   int64
	rec ledger.Record
}

// columns are what a row repeats of its body so that it can be searched.
type columns struct {
	id, tenant, tool, structuralKey, idempotencyKey, state string
	created, due, leaseUntil, fence, seq                   int64
	dueSet                                                 bool
}

func columnsOf(r ledger.Record) columns {
	c := columns{
		id: string(r.ID), tenant: r.Tenant, tool: r.Tool, structuralKey: r.StructuralKey,
		idempotencyKey: r.IdempotencyKey, state: string(r.State),
		created: nanos(r.Created), fence: r.Fence, seq: r.Seq,
	}
	if c.dueSet = !r.Due.IsZero(); c.dueSet {
		c.due = nanos(r.Due)
	}
	if !r.LeaseUntil.IsZero() {
		c.leaseUntil = nanos(r.LeaseUntil)
	}
	return c
}

// scan reads the columns of a write from column at on, in the order in which
// every query lists them.
func scan(s *sqlite.Stmt, at int) (row, error) {
	c := columns{
		id: s.ColumnText(at + 1), tenant: s.ColumnText(at + 2), tool: s.ColumnText(at + 3),
		structuralKey: s.ColumnText(at + 4), idempotencyKey: s.ColumnText(at + 5),
		created: s.ColumnInt64(at + 6), state: s.ColumnText(at + 7),
		due: s.ColumnInt64(at + 8), dueSet: !s.ColumnIsNull(at + 8),
		leaseUntil: s.ColumnInt64(at + 9), fence: s.ColumnInt64(at + 10), seq: s.ColumnInt64(at + 11),
	}
	r := row{n: s.ColumnInt64(at)}
	if err := decode(text(s, at+13), &r.rec); err != nil {
		return row{}, fmt.Errorf("write %s: its body: %w", c.id, err)
	}
	if want := columnsOf(r.rec); c != want {
		return row{}, fmt.Errorf("%w: write %s: the columns of its row (%+v) contradict its body (%+v)", ledger.ErrCorrupt, c.id, c, want)
	}
	r.rec.Intent = text(s, at+12)
	for i, raw := range raws(&r.rec) {
		*raw = text(s, at+14+i)
	}
	return r, nil
}

// decode reads a body. What this program does not know was written by a newer
// one that works on the same file, and must not be dropped when the body is
// written again.
func decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "unknown field"): // encoding/json has no other sign for it
		return fmt.Errorf("%w: %w; use the program that wrote it, or a newer one", ledger.ErrVersion, err)
	}
	return fmt.Errorf("%w: cannot be read: %w", ledger.ErrCorrupt, err)
}

// text is the bytes of a column, or nil for NULL.
func text(s *sqlite.Stmt, col int) []byte {
	if s.ColumnIsNull(col) {
		return nil
	}
	b := make([]byte, s.ColumnLen(col))
	s.ColumnBytes(col, b)
	return b
}

// raws are what changes in the life of a write and must come back byte for
// byte, which encoding/json does not promise for raw messages. They have
// columns of their own, in this order, as the intent has.
func raws(r *ledger.Record) []*json.RawMessage {
	return []*json.RawMessage{&r.Before, &r.Evidence, &r.Mismatches, &r.ChildIntent}
}

// encode is the body of a record: everything but the raw messages.
func encode(r ledger.Record) (string, error) {
	r.Intent = nil
	for _, raw := range raws(&r) {
		*raw = nil
	}
	b, err := json.Marshal(r)
	return string(b), err
}

func encodeEvent(e ledger.Event) (string, error) {
	e.Evidence, e.Mismatches = nil, nil
	b, err := json.Marshal(e)
	return string(b), err
}

func scanEvent(s *sqlite.Stmt) (ledger.Event, error) {
	var e ledger.Event
	if err := decode(text(s, 0), &e); err != nil {
		return e, fmt.Errorf("an event: %w", err)
	}
	e.Evidence, e.Mismatches = text(s, 1), text(s, 2)
	return e, nil
}

// bindRaw binds JSON that must come back byte for byte.
func bindRaw(s *sqlite.Stmt, param int, raw json.RawMessage) {
	if raw == nil {
		s.BindNull(param)
		return
	}
	s.BindText(param, string(raw))
}

func bindTime(s *sqlite.Stmt, param int, t time.Time) {
	s.BindInt64(param, nanos(t))
}
