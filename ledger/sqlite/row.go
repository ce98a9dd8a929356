package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// row is one write with its number and its place in the queue, 0 for none. In a listing, unread
// is the reason why only its id is known.
type row struct {
	n, place int64
	rec      ledger.Record
	unread   error
}

// columns are the fields that a row repeats from its body for queries.
type columns struct {
	id, tenant, tool, structuralKey, idempotencyKey, state string
	destination, keyDigest, queuedBehind, stepOf, waits    string
	created, due, leaseUntil, fence, seq, settledAt        int64
	dueSet, inQueue, tombstone, blocks                     bool
}

func columnsOf(r ledger.Record) columns {
	c := columns{
		id: string(r.ID), tenant: r.Tenant, tool: r.Tool, structuralKey: r.StructuralKey,
		idempotencyKey: r.IdempotencyKey, state: string(r.State),
		destination: r.Destination, keyDigest: r.KeyDigest, queuedBehind: string(r.QueuedBehind),
		created: nanos(r.Created), fence: r.Fence, seq: r.Seq,
		inQueue: r.InQueue(), tombstone: r.Tombstone, blocks: r.Blocking(), stepOf: r.StepOf(), waits: r.Waits(),
	}
	if c.dueSet = !r.Due.IsZero(); c.dueSet {
		c.due = nanos(r.Due)
	}
	if !r.LeaseUntil.IsZero() {
		c.leaseUntil = nanos(r.LeaseUntil)
	}
	if !r.SettledAt.IsZero() {
		c.settledAt = nanos(r.SettledAt)
	}
	return c
}

// scan reads the columns of a write from column at on, in the order in which every query lists
// them. It returns the id, the tenant, the number and the creation time even with an error.
func scan(s *sqlite.Stmt, at int) (row, error) {
	c := columns{
		id: s.ColumnText(at + 1), tenant: s.ColumnText(at + 2), tool: s.ColumnText(at + 3),
		structuralKey: s.ColumnText(at + 4), idempotencyKey: s.ColumnText(at + 5),
		created: s.ColumnInt64(at + 6), state: s.ColumnText(at + 7),
		due: s.ColumnInt64(at + 8), dueSet: !s.ColumnIsNull(at + 8),
		leaseUntil: s.ColumnInt64(at + 9), fence: s.ColumnInt64(at + 10), seq: s.ColumnInt64(at + 11),
		destination: s.ColumnText(at + 18), keyDigest: s.ColumnText(at + 19), inQueue: !s.ColumnIsNull(at + 20),
		queuedBehind: s.ColumnText(at + 21), settledAt: s.ColumnInt64(at + 22), tombstone: s.ColumnBool(at + 23),
		blocks: s.ColumnBool(at + 24), stepOf: s.ColumnText(at + 25), waits: s.ColumnText(at + 26),
	}
	r := row{n: s.ColumnInt64(at), place: s.ColumnInt64(at + 20)}
	unread := row{n: r.n, place: r.place, rec: ledger.Record{ID: ledger.ID(c.id), Tenant: c.tenant, Created: moment(s, at+6)}}
	if err := driver.Decode(text(s, at+13), &r.rec); err != nil {
		return unread, damaged(fmt.Errorf("write %s: its body: %w", c.id, err))
	}
	if r.rec.Intent = text(s, at+12); r.rec.Tombstone {
		r.rec.Intent = nil // the column is never NULL
	}
	if want := columnsOf(r.rec); c != want {
		return unread, damaged(fmt.Errorf("%w: write %s: the columns of its row (%+v) contradict its body (%+v)", ledger.ErrCorrupt, c.id, c, want))
	}
	for i, raw := range driver.Raws(&r.rec) {
		*raw = text(s, at+14+i)
	}
	return r, nil
}

// damagedError means that one row contradicts itself; the file may still be sound.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

func damaged(err error) error {
	if errors.Is(err, ledger.ErrCorrupt) {
		return &damagedError{err}
	}
	return err
}

// ofOneRow reports whether an error of scan concerns this row only, and not the file.
func ofOneRow(err error) bool { return unreadable(err) != "" || errors.Is(err, ledger.ErrVersion) }

// unreadable returns why a row cannot be read, or "" for any other error.
func unreadable(err error) string {
	var d *damagedError
	if errors.As(err, &d) {
		return d.Error()
	}
	return ""
}

// text returns the bytes of a column, or nil for NULL.
func text(s *sqlite.Stmt, col int) []byte {
	if s.ColumnIsNull(col) {
		return nil
	}
	b := make([]byte, s.ColumnLen(col))
	s.ColumnBytes(col, b)
	return b
}

// scanEvent reads the three columns of an event, starting at one.
func scanEvent(s *sqlite.Stmt, at int) (ledger.Event, error) {
	var e ledger.Event
	if err := driver.Decode(text(s, at), &e); err != nil {
		return e, fmt.Errorf("an event: %w", err)
	}
	e.Evidence, e.Mismatches = text(s, at+1), text(s, at+2)
	return e, nil
}

// bindRaw binds JSON that must be returned byte for byte. It is bound as bytes, of which no copy
// is made in Go, so that the statement must cast it to text.
func bindRaw(s *sqlite.Stmt, param int, raw json.RawMessage) {
	if raw == nil {
		s.BindNull(param)
		return
	}
	s.BindBytes(param, raw)
}

// bindSome binds text, or NULL for none.
func bindSome(s *sqlite.Stmt, param int, text string) {
	if text == "" {
		s.BindNull(param)
		return
	}
	s.BindText(param, text)
}

func bindTime(s *sqlite.Stmt, param int, t time.Time) {
	s.BindInt64(param, nanos(t))
}
