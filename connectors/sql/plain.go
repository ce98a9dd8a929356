package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// plain is any database through database/sql.
type plain struct {
	o       Options
	dialect Dialect
	readDB  *stdsql.DB
}

func newPlain(o Options, d Dialect) *plain {
	readDB := o.ReadDB
	if readDB == nil {
		readDB = o.DB
	}
	return &plain{o: o, dialect: d, readDB: readDB}
}

func (p *plain) close() {}

// write runs the change in a transaction. Drivers may ignore ctx, so it runs concurrently; its
// result after we left is unknown.
func (p *plain) write(ctx context.Context, t *table, c change) (connectors.Receipt, error) {
	type result struct {
		receipt connectors.Receipt
		err     error
	}
	done, committing := make(chan result, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx) // so that what was not committed is rolled back
	defer cancel()
	go func() {
		receipt, err := p.transaction(ctx, t, c, committing)
		done <- result{receipt, err}
	}()
	select {
	case r := <-done:
		return r.receipt, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // it knows better
		return r.receipt, r.err
	case <-committing:
		return connectors.Receipt{}, fmt.Errorf("no answer to COMMIT: %w", context.Cause(ctx))
	default:
		// Not at COMMIT a moment ago: it may be by now.
		return connectors.Receipt{}, fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	}
}

func (p *plain) transaction(ctx context.Context, t *table, c change, committing chan<- struct{}) (connectors.Receipt, error) {
	conn, err := p.o.DB.Conn(ctx)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(doing("connect", err))
	}
	defer func() { _ = conn.Close() }() // back into the pool
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(doing("begin", err))
	}
	receipt, n, err := p.run(ctx, tx, t, c)
	switch {
	case err != nil && p.dialect.Conflict != nil && p.dialect.Conflict(err):
		err = connectors.Conflict("unique", doing(t.kind, err))
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = connectors.NotSent(fmt.Errorf("no COMMIT was sent: %w", doing(t.kind, err)))
	case err != nil:
		err = connectors.Refused("", doing(t.kind, err))
	case n != c.rows:
		err = c.missed(n)
	default:
		err = tooLate(ctx)
	}
	if err != nil {
		_ = tx.Rollback() // an error of it leaves the transaction to its end
		return connectors.Receipt{}, err
	}
	close(committing)
	if err := tx.Commit(); err != nil {
		// No driver marks which of its errors come before the commit. If one leaves the
		// transaction open (SQLite's BUSY), the next user of the connection must not commit it.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return connectors.Receipt{}, fmt.Errorf("no certain answer to COMMIT: %w", &serverWords{err})
	}
	receipt.Code = "COMMIT"
	return receipt, nil
}

// run carries out the statement and counts the rows.
func (p *plain) run(ctx context.Context, tx *stdsql.Tx, t *table, c change) (receipt connectors.Receipt, n int, err error) {
	if !p.dialect.Returning {
		res, err := tx.ExecContext(ctx, c.String(), driverArgs(c.statement)...)
		if err != nil {
			return receipt, 0, err
		}
		changed, err := res.RowsAffected()
		return receipt, int(changed), err
	}
	rows, err := tx.QueryContext(ctx, c.String(), driverArgs(c.statement)...)
	if err != nil {
		return receipt, 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
		kept := any(true)
		var also []any
		if c.keyed {
			also = []any{&kept}
		}
		record, err := p.record(rows, t, t.names(), also...)
		if err != nil {
			return receipt, n, err
		}
		if text := textOf(kept); text == nil || !slices.Contains([]string{"1", "t", "true"}, *text) {
			return receipt, n, errKeyChanged
		}
		receipt.Ref, receipt.Version = record.Ref, record.Version
	}
	return receipt, n, rows.Err()
}

func driverArgs(s *statement) []any {
	args := make([]any, len(s.args))
	for i, a := range s.args {
		args[i] = a.toDriver()
	}
	return args
}

// record scans one row, and what comes after its columns.
func (p *plain) record(rows *stdsql.Rows, t *table, names []string, also ...any) (connectors.Record, error) {
	count := len(names)
	for _, extra := range []string{t.Version, t.Stamp} {
		if extra != "" {
			count++
		}
	}
	values := make([]any, count)
	var into []any
	for i := range values {
		into = append(into, &values[i])
	}
	if err := rows.Scan(append(into, also...)...); err != nil {
		return connectors.Record{}, err
	}
	fields := intent.Fields{}
	for i, name := range names {
		v, err := fromDriver(t.columns[name], values[i])
		if err != nil {
			return connectors.Record{}, err
		}
		fields[name] = v
	}
	var extras row
	for _, v := range values[len(names):] {
		extras = append(extras, textOf(v))
	}
	record := connectors.Record{Fields: fields, Ref: t.ref(fields)}
	record.Version, record.Stamp = t.extras(extras)
	return record, nil
}

func textOf(v any) *string {
	var text string
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	return &text
}

// read answers the queries one by one.
func (p *plain) read(ctx context.Context, t *table, qs []question) error {
	strength := connectors.Weak
	if p.o.ReadYourWrites {
		strength = connectors.Strong
	}
	for i, q := range qs {
		q.answer.Observation.Strength, q.answer.Observation.Path = strength, pathSelect
		if err := p.readOne(ctx, t, q); err != nil {
			fail(qs[i:i+1], err)
		}
	}
	return nil
}

func (p *plain) readOne(ctx context.Context, t *table, q question) error {
	s := p.dialect.selection(q.plan)
	rows, err := p.readDB.QueryContext(ctx, s.String(), driverArgs(s)...)
	if err != nil {
		return doing("read", err)
	}
	defer func() { _ = rows.Close() }()
	for n := 1; rows.Next(); n++ {
		if n > maxRows {
			return answered(n, nil)
		}
		record, err := p.record(rows, t, columnNames(t))
		if err == nil {
			err = q.found(record)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return doing("read", err)
	}
	return nil
}

// probe selects nothing from the table, for writing and for reading, and checks the unique
// constraint.
func (p *plain) probe(ctx context.Context, t *table) error {
	s := &statement{d: p.dialect}
	s.add("SELECT ")
	s.record(t, columnNames(t))
	s.add(" FROM ", p.dialect.target(t), " WHERE 1 = 0")
	for _, db := range []*stdsql.DB{p.o.DB, p.readDB} {
		rows, err := db.QueryContext(ctx, s.String())
		if err == nil {
			err = errors.Join(rows.Err(), rows.Close())
		}
		if err != nil {
			return doing("probe "+t.kind, err)
		}
	}
	if !t.Unique || p.dialect.Unique == nil {
		return nil
	}
	unique, err := p.dialect.Unique(ctx, p.o.DB, t.Schema, t.Name, t.Key)
	switch {
	case err != nil:
		return doing("probe "+t.kind, err)
	case !unique:
		return fmt.Errorf("%w: %s: no unique constraint on exactly %s", errTable, t.kind, list(t.Key))
	}
	return nil
}
