package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Migrations are numbered from 1 without gaps and are never changed once
// released. The number of the last one is the version of the file, kept in
// ledger_meta and not in user_version, so that the tables can live in a
// database that belongs to somebody else.
//
// A field that is added to a body needs no migration: an older program refuses
// bodies with fields that it does not know. A field that changes its meaning
// does, be it an empty one. What an older program could go wrong about sets
// ledger_meta.compatible_from as well.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versions is the names of the migrations in order; the newest version this
// program knows is their number.
func versions() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return names
}

// prepare brings the file to the version of this program. Programs that start
// at the same time do it one after another.
func prepare(ctx context.Context, conn *sqlite.Conn, path string, reset bool, now func() time.Time) error {
	err := migrate(conn, path, reset, now)
	switch {
	case err == nil, errors.Is(err, ledger.ErrVersion), errors.Is(err, ledger.ErrCorrupt):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return explain(path, err)
}

func migrate(conn *sqlite.Conn, path string, reset bool, now func() time.Time) (err error) {
	// A transaction that writes nothing, when the file is up to date, still
	// shows whether it can be written.
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	have, compatible, err := version(conn, path)
	if err != nil {
		return err
	}
	names := versions()
	if err := known(path, have, compatible); err != nil {
		return err
	}
	for _, name := range names[min(have, len(names)):] {
		if err := sqlitex.ExecuteScriptFS(conn, migrations, name, nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if have < len(names) {
		if err := sqlitex.Execute(conn, "UPDATE ledger_meta SET version = ?", &sqlitex.ExecOptions{Args: []any{len(names)}}); err != nil {
			return err
		}
	}
	if reset {
		return sqlitex.Execute(conn, sqlTick, &sqlitex.ExecOptions{Args: []any{nanos(now()), nil}})
	}
	return nil
}

// version is that of the file, or 0 for one without a ledger, and that of the
// oldest program that can still work on it.
func version(conn *sqlite.Conn, path string) (have, compatible int, err error) {
	tables := 0
	err = sqlitex.Execute(conn, "SELECT count(*) FROM sqlite_schema WHERE name = 'ledger_meta'", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { tables = s.ColumnInt(0); return nil },
	})
	if err != nil || tables == 0 {
		return 0, 0, err
	}
	read := func(query string, to *int) error {
		return sqlitex.Execute(conn, query, &sqlitex.ExecOptions{
			ResultFunc: func(s *sqlite.Stmt) error { *to = s.ColumnInt(0); return nil },
		})
	}
	if err := read("SELECT version FROM ledger_meta", &have); err != nil {
		return 0, 0, err
	}
	if have < 1 {
		return 0, 0, fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, path)
	}
	if have > 1 { // version 1 did not have the column
		err = read("SELECT compatible_from FROM ledger_meta", &compatible)
	}
	return have, compatible, err
}

// known refuses a file that a newer program has changed so that this one
// cannot work on it. It is asked in every transaction: another program may
// upgrade a file that this one has open.
func known(path string, version, compatible int) error {
	if newest := len(versions()); compatible > newest {
		return fmt.Errorf("%w: %s has version %d and needs a program that knows version %d, this one knows versions up to %d; use the program that upgraded it, or a newer one",
			ledger.ErrVersion, path, version, compatible, newest)
	}
	return nil
}
