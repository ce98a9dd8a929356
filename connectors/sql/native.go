package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
)

// maxRows is how many rows a read of one key takes before it fails: an intent declares 10,000 at
// most, and a key that matches more is no key.
const maxRows = 10_001

// read answers queries of one table in one READ ONLY transaction.
func (p *postgres) read(ctx context.Context, t *table, qs []question) error {
	primary, lost := p.askPrimary(ctx, t)
	conn, err := p.reads.acquire(ctx)
	if err != nil {
		return doing("connect for reading", err)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	defer rollback(ctx, pg)
	if _, err := pg.Exec(ctx, p.beginRead(ctx)).ReadAll(); err != nil {
		return doing("begin reading", err)
	}
	strength, path, err := p.relate(ctx, pg, t, primary, lost)
	if err != nil {
		return err
	}
	for i := range qs {
		o := &qs[i].answer.Observation
		o.Strength, o.Path, o.Independent = strength, path, independence(strength, path)
	}
	if len(qs) == 1 {
		return p.readOne(ctx, pg, t, qs[0])
	}
	return p.readSeveral(ctx, pg, t, qs)
}

// beginRead: each statement sees what was committed when it began. Rows that a
// policy would hide from us are an error instead: hidden is not absent.
func (p *postgres) beginRead(ctx context.Context) string {
	left := connectors.Profile{ReadTimeout: p.o.ReadTimeout}.ReadFor()
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return fmt.Sprintf(`BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SET LOCAL statement_timeout = %d; SET LOCAL row_security = off;
SET LOCAL TimeZone = 'UTC'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1`, max(left.Milliseconds(), 1))
}

func (p *postgres) readOne(ctx context.Context, pg *pgconn.PgConn, t *table, q question) error {
	rows, n, err := ask(ctx, pg, p.dialect.selection(q.plan), maxRows)
	if err := answered(n, err); err != nil {
		return err
	}
	for _, r := range rows {
		record, err := nativeRecord(t, columnNames(t), r)
		if err == nil {
			err = q.found(record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func answered(n int, err error) error {
	switch {
	case err != nil:
		return doing("read", err)
	case n > maxRows:
		return fmt.Errorf("%w: %d rows, at most %d are read", errUnreadable, n, maxRows)
	}
	return nil
}

// readSeveral queries all at once. If the server refuses that, each is queried separately, so
// that one bad key affects no other answer.
func (p *postgres) readSeveral(ctx context.Context, pg *pgconn.PgConn, t *table, qs []question) error {
	plans := make([]plan, len(qs))
	for i, q := range qs {
		plans[i] = q.plan
	}
	if _, err := pg.Exec(ctx, "SAVEPOINT together").ReadAll(); err != nil {
		return doing("read", err)
	}
	rows, n, err := ask(ctx, pg, p.dialect.several(t, plans), maxRows)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !pg.IsClosed() && classOf(refused.Code) != "40" {
		return p.readEach(ctx, pg, t, qs)
	}
	if err := answered(n, err); err != nil {
		return err
	}
	for _, r := range rows {
		p.hand(t, qs, r)
	}
	return nil
}

// readEach queries one by one within the same transaction.
func (p *postgres) readEach(ctx context.Context, pg *pgconn.PgConn, t *table, qs []question) error {
	for i, q := range qs {
		if _, err := pg.Exec(ctx, "ROLLBACK TO SAVEPOINT together").ReadAll(); err != nil {
			fail(qs[i:], doing("read", err))
			return nil
		}
		if err := p.readOne(ctx, pg, t, q); err != nil {
			fail(qs[i:i+1], err)
		}
	}
	return nil
}

// hand assigns a row to each query that it answers.
func (p *postgres) hand(t *table, qs []question, r row) {
	marks := len(t.Key)
	if t.Stamp != "" {
		marks++
	}
	at := make([]map[string]bool, marks)
	for i := range at {
		at[i] = positions(r.text(i))
	}
	record, err := nativeRecord(t, columnNames(t), r[marks:])
	for n, q := range qs {
		place := strconv.Itoa(n + 1)
		matches := true
		for _, key := range at[:len(t.Key)] {
			matches = matches && key[place]
		}
		if t.Stamp != "" && q.stamp != "" && at[len(t.Key)][place] {
			matches = true
		}
		if !matches || q.answer.Err != nil {
			continue
		}
		if err == nil {
			err := q.found(record)
			if err == nil {
				continue
			}
			*q.answer = connectors.BulkAnswer{Err: err}
			continue
		}
		*q.answer = connectors.BulkAnswer{Err: err}
	}
}
