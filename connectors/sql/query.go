package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
)

// Query makes one query in a READ ONLY transaction of the connections for reading, and gives each
// row: its columns by name, with the values that JSON has for them. It serves programs that compare
// a log of writes; the engine does not use it. The read timeout does not limit it; ctx does.
func (c *Connector) Query(ctx context.Context, query string, each func(intent.Fields) error) error {
	return c.engine.query(ctx, query, each)
}

func (p *postgres) query(ctx context.Context, query string, each func(intent.Fields) error) error {
	conn, err := p.reads.acquire(ctx)
	if err != nil {
		return doing("connect for reading", err)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	defer rollback(ctx, pg)
	if _, err := pg.Exec(ctx, p.beginRead(ctx)+"; SET LOCAL statement_timeout = 0").ReadAll(); err != nil {
		return doing("begin reading", err)
	}
	// The extended protocol takes one statement: what ends the query early begins no other.
	all := sqlOf(p.dialect, "SELECT row_to_json(readback_row)::text FROM (", strings.TrimRight(query, "; \t\r\n"), "\n) readback_row")
	var given error
	err = askEach(ctx, pg, all, func(r row) error {
		fields, err := decodeRow(r.text(0))
		if err == nil {
			err = each(fields)
		}
		given = err
		return err
	})
	if given != nil || err == nil {
		return given
	}
	return doing("query", err)
}

func decodeRow(text string) (fields intent.Fields, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return fields, d.Decode(&fields)
}

func (p *plain) query(ctx context.Context, query string, each func(intent.Fields) error) error {
	return Query(ctx, p.readDB, query, each)
}

// Query is [Connector.Query] of a database without tables of its own. Whether a READ ONLY
// transaction can write depends on the driver: open SQLite with mode=ro.
func Query(ctx context.Context, db *stdsql.DB, query string, each func(intent.Fields) error) error {
	tx, err := db.BeginTx(ctx, &stdsql.TxOptions{ReadOnly: true})
	if err != nil {
		return doing("begin reading", err)
	}
	defer func() { _ = tx.Rollback() }() // it changed nothing
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return doing("query", err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return doing("query", err)
	}
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return doing("query", err)
		}
		all := map[string]any{}
		for i, name := range names {
			switch v := values[i].(type) {
			case []byte:
				all[name] = string(v)
			case time.Time:
				all[name] = v.Format(time.RFC3339Nano)
			default:
				all[name] = v
			}
		}
		if len(all) < len(names) {
			return fmt.Errorf("%w: two columns of the query have one name; want AS with a name of its own for each", errUnreadable)
		}
		text, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		fields, err := decodeRow(string(text))
		if err == nil {
			err = each(fields)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return doing("query", err)
	}
	return nil
}
