package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
)

var _ connectors.Lister = (*Connector)(nil)

// rowsOf is what one statement gave, and how strong that read was.
type rowsOf struct {
	records  []connectors.Record
	more     bool // there are more than were asked for
	strength connectors.Strength
	path     string
}

// List reads every row of a table in one statement, which sees one state of it. A
// table has no time of its own: From and Until are not heeded, and the listing
// says so. Rows without a stamp are left out where the table has a column for it.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	t, ok := c.tables[s.Kind]
	if !ok || len(s.Within) > 0 {
		return connectors.Listing{}, fmt.Errorf("%w: kind %q within %v; want the kind of a table, and no place within", connectors.ErrScope, clip(s.Kind), s.Within)
	}
	l := connectors.Listing{At: time.Now(), Stamped: s.Stamped && t.Stamp != ""}
	ctx, cancel := context.WithTimeout(ctx, connectors.Profile{ReadTimeout: c.o.ReadTimeout}.ReadFor())
	defer cancel()
	rows, err := c.engine.list(ctx, t, c.dialect.all(t, l.Stamped), connectors.MaxListed)
	if err != nil {
		return connectors.Listing{}, err
	}
	l.Strength, l.Path, l.Complete = rows.strength, rows.path, !rows.more
	if rows.more {
		l.Why = fmt.Sprintf("there are more than %d rows", connectors.MaxListed)
	}
	for _, r := range rows.records {
		if !l.Stamped || connectors.IsStamp(r.Stamp) {
			l.Records = append(l.Records, connectors.Listed{Record: r})
		}
	}
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

func (p *plain) list(ctx context.Context, t *table, s *statement, most int) (rowsOf, error) {
	out := rowsOf{path: pathSelect}
	if p.o.ReadYourWrites {
		out.strength = connectors.Strong
	}
	rows, err := p.readDB.QueryContext(ctx, s.String(), driverArgs(s)...)
	if err != nil {
		return out, doing("list", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if out.more = len(out.records) >= most; out.more {
			return out, nil
		}
		record, err := p.record(rows, t, columnNames(t))
		if err != nil {
			return out, err
		}
		out.records = append(out.records, record)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return out, doing("list", err)
	}
	return out, nil
}

func (p *postgres) list(ctx context.Context, t *table, s *statement, most int) (rowsOf, error) {
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
	rows, n, err := ask(ctx, pg, s, most)
	if err != nil {
		return out, doing("list", err)
	}
	out.more = n > most
	for _, r := range rows {
		record, err := nativeRecord(t, columnNames(t), r)
		if err != nil {
			return out, err
		}
		out.records = append(out.records, record)
	}
	return out, nil
}
