package postgres

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// row is one write with its number. Followed says that another one may be queued behind it. In
// listings, unread is the reason why only its id is known.
type row struct {
	n        int64
	rec      ledger.Record
	followed bool
	unread   error
}

// columns are the fields that a row repeats from its body for queries.
type columns struct {
	id, tenant, destination, tool, structuralKey, idempotencyKey, keyDigest, state, queue, queuedBehind, waits string
	created, due, settledAt, seq                                                                               int64
	tombstone                                                                                                  bool
}

func columnsOf(r ledger.Record) columns {
	c := columns{
		id: string(r.ID), tenant: r.Tenant, destination: r.Destination, tool: r.Tool,
		structuralKey: r.StructuralKey, idempotencyKey: r.IdempotencyKey, keyDigest: r.KeyDigest,
		state: string(r.State), queuedBehind: string(r.QueuedBehind),
		created: nanos(r.Created), due: nanos(r.Due), settledAt: nanos(r.SettledAt), seq: r.Seq,
		tombstone: r.Tombstone, waits: r.Waits(),
	}
	if r.InQueue() {
		c.queue = r.KeyDigest
	}
	return c
}

// blocks returns the latest start of a window in which a write stops another one of its business
// operation; 0 for one that stops none.
func blocks(r ledger.Record) int64 {
	switch {
	case !r.Blocking():
		return 0
	case r.State != ledger.Settled:
		return math.MaxInt64
	}
	return nanos(r.SettledAt)
}

// scanRow reads columnsOfRow, after the columns before them. For a row that cannot be read it
// returns the number, the id, the tenant, the fence and the times of creation and settlement with
// the error.
func scanRow(rows pgx.Rows, before ...any) (row, error) {
	var c columns
	var r row
	var body string
	var leaseUntil int64
	var lease, raw ledger.Record
	dest := append(before, &r.n, &c.id, &c.tenant, &c.destination, &c.tool, &c.structuralKey, &c.idempotencyKey, &c.keyDigest,
		&c.created, &c.state, &c.due, &c.settledAt, &c.queue, &c.queuedBehind, &c.seq, &c.tombstone,
		&lease.Owner, &leaseUntil, &lease.LeaseFor, &lease.Fence, &r.followed, &c.waits, &body, (*[]byte)(&raw.Intent))
	for _, of := range driver.Raws(&raw) {
		dest = append(dest, (*[]byte)(of))
	}
	if err := rows.Scan(dest...); err != nil || r.n == 0 {
		return r, err
	}
	id := ledger.ID(c.id)
	unread := ledger.Record{ID: id, Tenant: c.tenant, Fence: lease.Fence, Created: at(c.created), SettledAt: at(c.settledAt)}
	if err := driver.Decode([]byte(body), &r.rec); err != nil {
		r.rec = unread
		return r, fmt.Errorf("write %s: its body: %w", id, err)
	}
	r.rec.Intent = raw.Intent
	if want := columnsOf(r.rec); c != want {
		r.rec = unread
		return r, fmt.Errorf("%w: write %s: the columns of its row (%+v) contradict its body (%+v)", ledger.ErrCorrupt, id, c, want)
	}
	r.rec.Owner, r.rec.LeaseFor, r.rec.Fence = lease.Owner, lease.LeaseFor, lease.Fence
	r.rec.LeaseUntil = at(leaseUntil)
	from := driver.Raws(&raw)
	for i, to := range driver.Raws(&r.rec) {
		*to = *from[i]
	}
	return r, nil
}

// ofOneRow reports whether an error of scanRow concerns this row only, and not the database.
func ofOneRow(err error) bool {
	return errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrVersion)
}

// unreadable returns why a damaged row cannot be read, and "" for any other error: then the fault
// is the database's, or a newer program wrote the row.
func unreadable(err error) string {
	if !errors.Is(err, ledger.ErrCorrupt) {
		return ""
	}
	return plain(err.Error())
}

// encode returns the body of a record: everything but the raw messages and the lease.
func encode(r ledger.Record) (string, error) {
	r.Owner, r.LeaseUntil, r.LeaseFor, r.Fence = "", time.Time{}, 0, 0
	body, err := driver.Encode(nil, r)
	return string(body), err
}

// nanos returns a time as stored in a column: ns since 1970, and 0 for the zero time. Times out
// of range become the nearest valid one.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(at(math.MinInt64)):
		return math.MinInt64
	case t.After(at(math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// at returns the time in a column.
func at(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
