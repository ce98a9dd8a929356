package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/pgserver"
)

// Probe connects for writing and for reading and compares each table with its declaration:
// columns and types, the unique constraint, that reads lead to the same table, and what the
// server promises. It writes nothing. If a declaration is wrong, the error says in
// which way.
func (c *Connector) Probe(ctx context.Context) error {
	var errs []error
	for _, t := range c.tables {
		if err := c.engine.probe(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.kind, err))
		}
	}
	return errors.Join(errs...)
}

// Weaknesses are the settings of the server with which a crash or a failover can
// lose what it acknowledged, most severe first. SQLite has none.
func (c *Connector) Weaknesses(ctx context.Context) ([]string, error) {
	p, ok := c.engine.(*postgres)
	if !ok {
		return nil, nil
	}
	conn, err := p.writes.acquire(ctx)
	if err != nil {
		return nil, doing("connect for writing", err)
	}
	defer conn.Release()
	rows, _, err := ask(ctx, conn.Conn().PgConn(), sqlOf(p.dialect, pgserver.Weaknesses), maxRows)
	if err != nil {
		return nil, doing("read the server's settings", err)
	}
	var weak []string
	for _, r := range rows {
		weak = append(weak, r.text(0))
	}
	return weak, nil
}

func (p *postgres) probe(ctx context.Context, t *table) error {
	conn, err := p.writes.acquire(ctx)
	if err != nil {
		return doing("connect for writing", err)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	at, err := p.placeOf(ctx, pg, t)
	if err != nil {
		return err
	}
	if at.table == "" {
		return fmt.Errorf("%w: there is no table %s", errTable, p.dialect.name(t))
	}
	checks := []func(context.Context, *pgconn.PgConn, *table, string) error{
		p.probeTable, p.probeColumns, p.probeUnique, p.probeServer,
	}
	for _, check := range checks {
		if err := check(ctx, pg, t, at.table); err != nil {
			return err
		}
	}
	return p.probeReads(ctx, t)
}

func (p *postgres) catalog(ctx context.Context, pg *pgconn.PgConn, oid, sql string) ([]row, error) {
	s := sqlOf(p.dialect, strings.ReplaceAll(sql, "$oid", "$1::oid"))
	s.textParam(oid)
	rows, _, err := ask(ctx, pg, s, maxRows)
	if err != nil {
		return nil, doing("probe", err)
	}
	return rows, nil
}

// probeTable: anything but a plain or partitioned table can hide rows (a view) or have rows
// outside its unique index (children that inherit).
func (p *postgres) probeTable(ctx context.Context, pg *pgconn.PgConn, t *table, oid string) error {
	rows, err := p.catalog(ctx, pg, oid, `SELECT c.relkind, (SELECT count(*) FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid WHERE i.inhparent = c.oid AND NOT k.relispartition)
		FROM pg_class c WHERE c.oid = $oid`)
	if err != nil || len(rows) != 1 {
		return errors.Join(err, fmt.Errorf("%w: %d relations", errTable, len(rows)))
	}
	kind, children := rows[0].text(0), rows[0].text(1)
	switch {
	case kind != "r" && kind != "p":
		return fmt.Errorf("%w: it is of the relation kind %q; want a table: anything else can hide rows", errTable, kind)
	case kind == "p" && t.Version == XMin:
		return fmt.Errorf("%w: it is partitioned, and the server does not return the xmin of what it writes there; want a version column", errTable)
	case t.Unique && children != "0":
		return fmt.Errorf("%w: %s tables inherit from it, which its unique index does not cover", errTable, children)
	}
	return nil
}

// typeNames are the names of PostgreSQL's types for each of ours; none means
// any.
var typeNames = map[Type][]string{
	Text: {"text", "varchar", "name"}, Char: {"bpchar"}, CaseFold: {"citext"},
	Integer: {"int2", "int4", "int8"}, Numeric: {"numeric"}, Float: {"float4", "float8"},
	Bool: {"bool"}, UUID: {"uuid"}, Timestamp: {"timestamptz"}, LocalTime: {"timestamp"},
	Date: {"date"}, JSON: {"json", "jsonb"}, Bytes: {"bytea"},
}

func (p *postgres) probeColumns(ctx context.Context, pg *pgconn.PgConn, t *table, oid string) error {
	rows, err := p.catalog(ctx, pg, oid, `SELECT a.attname, y.typname, y.typcategory, a.attgenerated <> '' OR a.attidentity = 'a'
		FROM pg_attribute a JOIN pg_type b ON b.oid = a.atttypid
		JOIN pg_type y ON y.oid = CASE WHEN b.typtype = 'd' THEN b.typbasetype ELSE b.oid END
		WHERE a.attrelid = $oid AND a.attnum > 0 AND NOT a.attisdropped`)
	if err != nil {
		return err
	}
	there := map[string]row{}
	for _, r := range rows {
		there[r.text(0)] = r
	}
	var errs []error
	say := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errTable}, args...)...))
	}
	for _, c := range t.Columns {
		r, ok := there[c.Name]
		want := typeNames[c.Type]
		switch {
		case !ok:
			say("there is no column %q", c.Name)
		case len(want) > 0 && !slices.Contains(want, r.text(1)), c.Type == Array && r.text(2) != "A":
			say("column %q is a %s, declared as %s", c.Name, r.text(1), c.Type)
		case r.text(3) == "t" && !c.ReadOnly:
			say("column %q is filled by the database; declare it as ReadOnly", c.Name)
		}
		delete(there, c.Name)
	}
	for what, name := range map[string]string{"stamp": t.Stamp, "version": t.Version} {
		r, ok := there[name]
		switch {
		case name == "" || name == XMin:
			continue
		case !ok:
			say("there is no %s column %q", what, name)
		case what == "stamp" && !slices.Contains(typeNames[Text], r.text(1)), what == "version" && t.bumped() && !slices.Contains(typeNames[Integer], r.text(1)):
			say("the %s column %q is a %s", what, name, r.text(1))
		}
		delete(there, name)
	}
	if t.Whole && len(there) > 0 {
		say("Whole is declared, and %d columns are not", len(there))
	}
	return errors.Join(errs...)
}

// probeUnique reads whether there is a unique index that ON CONFLICT can use, on exactly the key:
// valid, immediate, of plain columns, of all rows.
func (p *postgres) probeUnique(ctx context.Context, pg *pgconn.PgConn, t *table, oid string) error {
	if !t.Unique {
		return nil
	}
	rows, err := p.catalog(ctx, pg, oid, `SELECT (SELECT to_jsonb(array_agg(a.attname)) FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]))
		FROM pg_index i WHERE i.indrelid = $oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL`)
	if err != nil {
		return err
	}
	for _, r := range rows {
		columns, ok := document(r.text(0))
		names, isList := columns.([]any)
		if !ok || !isList {
			continue
		}
		var all []string
		for _, n := range names {
			all = append(all, fmt.Sprint(n))
		}
		if sameNames(all, t.Key) {
			return nil
		}
	}
	return fmt.Errorf("%w: no unique index, valid and not deferrable, on exactly %s", errTable, list(t.Key))
}

// probeServer: a commit that waits for a synchronous standby can wait for ever,
// and be seen after that.
func (p *postgres) probeServer(ctx context.Context, pg *pgconn.PgConn, _ *table, oid string) error {
	rows, err := p.catalog(ctx, pg, oid, `SELECT current_setting('synchronous_standby_names') FROM pg_class WHERE oid = $oid`)
	if err != nil || len(rows) != 1 {
		return err
	}
	if names := rows[0].text(0); names != "" && p.o.Horizon == 0 {
		return fmt.Errorf("%w: the server commits only when standbys have (synchronous_standby_names = %s), which has no bound; set the option Horizon", errTable, clip(names))
	}
	return nil
}

// probeReads makes a read of nothing.
func (p *postgres) probeReads(ctx context.Context, t *table) error {
	var answer connectors.BulkAnswer
	q := question{plan: plan{t: t}, answer: &answer}
	for _, name := range t.Key {
		q.key = append(q.key, value{column: t.columns[name], null: true})
	}
	return p.read(ctx, t, []question{q})
}
