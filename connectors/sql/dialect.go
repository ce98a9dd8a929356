package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Dialect describes the SQL of a database used through database/sql. [SQLite] is one; callers
// define others. The zero value is standard SQL: names in double quotes, question marks for
// parameters, and nothing else.
type Dialect struct {
	// Quote quotes an identifier. Default: in double quotes, doubled within.
	Quote func(name string) string
	// Placeholder is the n-th parameter, counted from 1. Default "?".
	Placeholder func(n int) string
	// OnConflict means that the database has INSERT … ON CONFLICT (key) DO NOTHING and DO UPDATE,
	// which needs a unique constraint on the key. Default false: there are no upserts.
	OnConflict bool
	// Returning means that the database has RETURNING. Default false: receipts do not name the
	// row.
	Returning bool
	// Conflict recognises the error of a violated unique constraint. Default:
	// none is recognised, and such an error is a plain refusal.
	Conflict func(err error) bool
	// Unique reports whether the database enforces the key columns as unique, for Probe. Default:
	// no check.
	Unique func(ctx context.Context, db *stdsql.DB, schema, table string, key []string) (bool, error)
	native bool // PostgreSQL through pgx
}

// SQLite is the dialect of SQLite 3.35 and later.
func SQLite() Dialect {
	return Dialect{OnConflict: true, Returning: true, Unique: sqliteUnique,
		Conflict: func(err error) bool {
			// 2067 and 1555: SQLITE_CONSTRAINT_UNIQUE and _PRIMARYKEY. Drivers
			// have types of their own for the code; most have this method.
			var coded interface{ Code() int }
			return errors.As(err, &coded) && (coded.Code() == 2067 || coded.Code() == 1555)
		}}
}

// postgreSQL is the dialect of PostgreSQL through pgx.
func postgreSQL() Dialect {
	return Dialect{OnConflict: true, Returning: true, native: true,
		Quote:       func(name string) string { return pgx.Identifier{name}.Sanitize() },
		Placeholder: func(n int) string { return "$" + strconv.Itoa(n) }}
}

func (d Dialect) withDefaults() Dialect {
	if d.Quote == nil {
		d.Quote = func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	}
	if d.Placeholder == nil {
		d.Placeholder = func(int) string { return "?" }
	}
	return d
}

// sqliteUnique reports whether a unique index, not a partial one, covers exactly the key.
func sqliteUnique(ctx context.Context, db *stdsql.DB, schema, table string, key []string) (bool, error) {
	if schema == "" {
		schema = "main"
	}
	rows, err := db.QueryContext(ctx, `SELECT l.name, i.name FROM pragma_index_list(?, ?) AS l, pragma_index_info(l.name, ?) AS i
		WHERE l."unique" = 1 AND l.partial = 0
		UNION ALL SELECT 'rowid', name FROM pragma_table_info(?, ?) WHERE pk = 1 AND upper(type) = 'INTEGER'
		AND (SELECT count(*) FROM pragma_table_info(?, ?) WHERE pk > 0) = 1`, table, schema, schema, table, schema, table, schema)
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	indexes := map[string][]string{}
	for rows.Next() {
		var index string
		var column stdsql.NullString // NULL for an expression
		if err := rows.Scan(&index, &column); err != nil {
			return false, err
		}
		indexes[index] = append(indexes[index], column.String)
	}
	for _, columns := range indexes {
		if sameNames(columns, key) {
			return true, rows.Err()
		}
	}
	return false, rows.Err()
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// name is the quoted name of a table.
func (d Dialect) name(t *table) string {
	if t.Schema == "" {
		return d.Quote(t.Name)
	}
	return d.Quote(t.Schema) + "." + d.Quote(t.Name)
}

// target is the table as statements name it, and column a column of it.
// PostgreSQL needs an alias, since a column is ambiguous in DO UPDATE; SQLite
// does not know one in RETURNING.
func (d Dialect) target(t *table) string {
	if d.native {
		return d.name(t) + " AS t"
	}
	return d.name(t)
}

func (d Dialect) column(name string) string {
	switch {
	case name == XMin && d.native:
		return "t.xmin::text" // xid has no comparison with text
	case d.native:
		return "t." + d.Quote(name)
	}
	return d.Quote(name)
}

// statement is SQL with its parameters.
type statement struct {
	strings.Builder
	d    Dialect
	args []value
}

func (s *statement) add(parts ...string) {
	for _, p := range parts {
		s.WriteString(p)
	}
}

// param adds a parameter and returns its place.
func (s *statement) param(v value) string {
	s.args = append(s.args, v)
	return s.d.Placeholder(len(s.args))
}

func (s *statement) textParam(text string) string { return s.param(value{text: text}) }

// version is a column of the table as the text that records show.
func (d Dialect) version(name string) string {
	if d.native && name != XMin {
		return fmt.Sprintf("t.%s::text", d.Quote(name))
	}
	return d.column(name)
}
