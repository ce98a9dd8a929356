package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// Get implements [ledger.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	r, err := l.get(ctx, tenant, id)
	if err != nil {
		return ledger.Record{}, err
	}
	return r.rec, nil
}

// get reads one write of a tenant. A write of another tenant does not exist.
func (l *Ledger) get(ctx context.Context, tenant string, id ledger.ID) (row, error) {
	r, err := l.one(ctx, id, "get", string(id), tenant)
	if !errors.Is(err, ledger.ErrNotFound) {
		return r, err
	}
	if admitted, err := l.admitID(ctx, tenant, id, err); !admitted {
		return row{}, err
	}
	return l.one(ctx, id, "get", string(id), tenant)
}

// find is get for callers that may read all tenants.
func (l *Ledger) find(ctx context.Context, id ledger.ID) (row, error) {
	return l.one(ctx, id, "find", string(id))
}

func (l *Ledger) one(ctx context.Context, id ledger.ID, statement string, args ...any) (row, error) {
	found, err := l.rows(ctx, statement, args...)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	}
	if err != nil {
		return row{}, err
	}
	return found[0], found[0].unread
}

// rows reads the rows of a statement that returns the state of the database and then a row. An
// unreadable row does not affect others.
func (l *Ledger) rows(ctx context.Context, statement string, args ...any) (found []row, err error) {
	err = l.read(ctx, l.sql.Text(statement), args, func(rows pgx.Rows) error {
		found = nil
		var s state
		for rows.Next() {
			r, err := scanRow(rows, s.dest()...)
			if unfit := l.usable(s); unfit != nil {
				return unfit
			}
			if err != nil && !ofOneRow(err) {
				return err
			}
			if r.unread = err; r.n != 0 {
				r.rec.Now = clamp(at(s.now), r.rec)
				found = append(found, r)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	return found, err
}

// Precheck implements [ledger.Ledger].
func (l *Ledger) Precheck(ctx context.Context, r ledger.Record) (p ledger.Precheck, err error) {
	if r, err = l.keeping.Digests.OfRecord(r); err != nil {
		return p, err
	}
	err = l.read(ctx, l.sql.Text("precheck"), []any{string(r.ID), r.Tenant, r.KeyDigest}, func(rows pgx.Rows) error {
		var s state
		for rows.Next() {
			if err := rows.Scan(append(s.dest(), &p.Recorded, &p.Contended, &p.Newest)...); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	return p, err
}

// Events implements [ledger.Ledger].
func (l *Ledger) Events(ctx context.Context, tenant string, id ledger.ID) ([]ledger.Event, error) {
	if _, err := l.get(ctx, tenant, id); err != nil { // a row that contradicts itself is not trusted
		return nil, err
	}
	var events []ledger.Event
	var n, seq *int64
	var tombstone *bool
	err := l.read(ctx, l.sql.Text("events"), []any{string(id), tenant}, func(rows pgx.Rows) error {
		events, n = nil, nil
		var s state
		for rows.Next() {
			var at *int64
			var body *string
			var e ledger.Event
			if err := rows.Scan(append(s.dest(), &n, &seq, &tombstone, &at, &body, (*[]byte)(&e.Evidence), (*[]byte)(&e.Mismatches))...); err != nil {
				return err
			}
			if at == nil {
				continue
			}
			evidence, mismatches := e.Evidence, e.Mismatches
			if err := driver.Decode([]byte(*body), &e); err != nil {
				return fmt.Errorf("write %s: event %d: %w", id, *at, err)
			}
			e.Evidence, e.Mismatches = evidence, mismatches
			events = append(events, e)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	switch {
	case err != nil:
		return nil, err
	case n == nil: // pruned meanwhile
		return nil, fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	}
	return driver.Complete(ledger.Record{ID: id, Seq: *seq, Tombstone: *tombstone}, events)
}

// List implements [ledger.Ledger].
func (l *Ledger) List(ctx context.Context, f ledger.Filter) ([]ledger.Record, error) {
	f, err := f.Checked()
	if err == nil {
		f.KeyDigest, err = l.keeping.Digests.Of(f.KeyDigest)
	}
	if err != nil {
		return nil, err
	}
	before := int64(math.MaxInt64)
	if f.Before != "" {
		r, err := l.one(ctx, f.Before, "get", string(f.Before), f.Tenant)
		if err != nil && r.unread == nil { // what came before it is known all the same
			return nil, fmt.Errorf("list: before: %w", err)
		}
		before = r.n
	}
	wanted := f.States
	if len(wanted) == 0 {
		wanted = driver.States
	}
	names := make([]string, 0, len(wanted))
	for _, state := range slices.Compact(slices.Sorted(slices.Values(wanted))) {
		names = append(names, string(state))
	}
	page := ledger.NewPage(f)
	for want := page.Want(); want > 0; want = page.Want() {
		statement, args := "list", []any{f.Tenant, names, before, int64(want)}
		if f.KeyDigest != "" {
			statement, args = "of_record", append(args, f.KeyDigest)
		}
		found, err := l.rows(ctx, statement, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			before = r.n
			page.Add(r.rec, r.unread)
		}
		if len(found) < want {
			break
		}
	}
	return page.Result()
}
