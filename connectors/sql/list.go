package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
)

var _ connectors.Lister = (*Connector)(nil)

// rowsOf is the answer to a statement that returns all rows.
type rowsOf struct {
	strength connectors.Strength
	path     string
}

// errFull ends a list with too many rows.
var errFull = errors.New("more rows than a list holds")

// List reads every row of a table in one statement, which sees one state of it. A table has no
// time of its own: From and Until are ignored, and the listing says so. With Stamped, rows
// without a stamp are left out if the table has a column for it. The read timeout limits the wait
// for each row, not the statement: a table may be long.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	t, ok := c.tables[s.Kind]
	if !ok || len(s.Within) > 0 {
		return connectors.Listing{}, fmt.Errorf("%w: kind %q within %v; want the kind of a table, and no place within", connectors.ErrScope, clip(s.Kind), s.Within)
	}
	l := connectors.Listing{At: time.Now(), Stamped: s.Stamped && t.Stamp != ""}
	each := s.Each
	if each == nil {
		each = func(r connectors.Listed) error {
			if len(l.Records) >= connectors.MaxListed {
				return errFull
			}
			l.Records = append(l.Records, r)
			return nil
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wait := connectors.Profile{ReadTimeout: c.o.ReadTimeout}.ReadFor()
	timer := time.AfterFunc(wait, func() {
		cancel(fmt.Errorf("no row came for %v: %w", wait, context.DeadlineExceeded))
	})
	defer timer.Stop()
	var wanted error // why the caller ended the list
	rows, err := c.engine.list(ctx, t, c.dialect.all(t, l.Stamped), func(r connectors.Record) error {
		timer.Stop() // what the caller does with a row is not the destination's time
		defer timer.Reset(wait)
		if l.Stamped && !connectors.IsStamp(r.Stamp) {
			return nil
		}
		wanted = each(connectors.Listed{Record: r})
		return wanted
	})
	switch {
	case errors.Is(wanted, errFull):
		l.Why = fmt.Sprintf("there are more than %d rows", connectors.MaxListed)
	case wanted != nil:
		return connectors.Listing{}, wanted
	case err != nil && context.Cause(ctx) != nil:
		return connectors.Listing{}, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	case err != nil:
		return connectors.Listing{}, err
	}
	l.Strength, l.Path, l.Complete = rows.strength, rows.path, l.Why == ""
	return l, nil
}

// all selects every row, or every one that has a stamp.
func (d Dialect) all(t *table, stamped bool) *statement {
	s := &statement{d: d}
	s.add("SELECT ")
	s.record(t, columnNames(t))
	s.add(" FROM ", d.target(t))
	if stamped {
		s.add(" WHERE ", d.column(t.Stamp), " IS NOT NULL")
	}
	return s
}

func (p *plain) list(ctx context.Context, t *table, s *statement, each func(connectors.Record) error) (rowsOf, error) {
	out := rowsOf{path: pathSelect}
	if p.o.ReadYourWrites {
		out.strength = connectors.Strong
	}
	rows, err := p.readDB.QueryContext(ctx, s.String(), driverArgs(s)...)
	if err != nil {
		return out, doing("list", err)
	}
	defer func() { _ = rows.Close() }()
	names := columnNames(t)
	for rows.Next() {
		record, err := p.record(rows, t, names)
		if err == nil {
			err = each(record)
		}
		if err != nil {
			return out, err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return out, doing("list", err)
	}
	return out, nil
}

func (p *postgres) list(ctx context.Context, t *table, s *statement, each func(connectors.Record) error) (rowsOf, error) {
	primary, lost := p.askPrimary(ctx, t)
	conn, err := p.reads.acquire(ctx)
	if err != nil {
		return rowsOf{}, doing("connect for reading", err)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	defer rollback(ctx, pg)
	if _, err := pg.Exec(ctx, p.beginRead(ctx)).ReadAll(); err != nil {
		return rowsOf{}, doing("begin reading", err)
	}
	var out rowsOf
	if out.strength, out.path, err = p.relate(ctx, pg, t, primary, lost); err != nil {
		return out, err
	}
	// The server would count the time in which the caller takes its rows.
	if _, err := pg.Exec(ctx, "SET LOCAL statement_timeout = 0").ReadAll(); err != nil {
		return out, doing("begin reading", err)
	}
	names := columnNames(t)
	var unfit error
	err = askEach(ctx, pg, s, func(r row) error {
		record, err := nativeRecord(t, names, r)
		if err == nil {
			err = each(record)
		}
		unfit = err
		return err
	})
	if unfit == nil && err != nil {
		err = doing("list", err)
	}
	return out, err
}
