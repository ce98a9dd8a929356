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

// Migrations are numbered from 1 without gaps and are never changed once released. The number of
// the last one is the version of the file. It is kept in ledger_meta and not in user_version, so
// that the tables can be in another program's database.
//
// A field that is added to a body needs no migration: an older program refuses bodies with
// unknown fields. A field that changes its meaning does, even an empty one. A migration that an
// older program could mishandle sets ledger_meta.compatible_from as well.
//
//go:embed migrations/*.sql
var migrations embed.FS

// newestVersion is the newest version that this program knows.
var newestVersion = len(versions(migrations))

// versions returns the names of the migrations in order.
func versions(files fs.FS) []string {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return names
}

// prepare upgrades the file to the version of this program. Programs that start at the same time
// do it one after another.
func prepare(ctx context.Context, conn *sqlite.Conn, path string, o *Options, now func() time.Time) (ledger.KeyDigests, error) {
	digests, err := migrate(conn, path, migrations, o, now)
	switch {
	case err == nil, errors.Is(err, ledger.ErrVersion), errors.Is(err, ledger.ErrCorrupt):
		return digests, err
	case ctx.Err() != nil:
		return digests, ctx.Err()
	}
	return digests, explain(path, err)
}

func migrate(conn *sqlite.Conn, path string, files fs.FS, o *Options, now func() time.Time) (digests ledger.KeyDigests, err error) {
	// A transaction that writes nothing, when the file is up to date, still shows whether it can
	// be written.
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return digests, err
	}
	defer end(&err)
	have, compatible, err := version(conn, path)
	if err != nil {
		return digests, err
	}
	names := versions(files)
	if err := known(path, have, compatible); err != nil {
		return digests, err
	}
	for _, name := range names[min(have, len(names)):] {
		if err := sqlitex.ExecuteScriptFS(conn, files, name, nil); err != nil {
			return digests, fmt.Errorf("%s: %w", name, err)
		}
	}
	if have < len(names) {
		if err := sqlitex.Execute(conn, "UPDATE ledger_meta SET version = ?", &sqlitex.ExecOptions{Args: []any{len(names)}}); err != nil {
			return digests, err
		}
	}
	if digests, err = openDigests(conn, path, have == 0, o.Keys); err != nil {
		return digests, err
	}
	if o.ResetClock {
		return digests, sqlitex.Execute(conn, statements.Text("tick"), &sqlitex.ExecOptions{Args: []any{nanos(now()), nil}})
	}
	return digests, nil
}

// openDigests returns how the ledger stores digests of business keys. Only here does a new ledger
// get its digest key.
func openDigests(conn *sqlite.Conn, path string, fresh bool, keys ledger.Keys) (digests ledger.KeyDigests, err error) {
	keep := func(kept string) error {
		return sqlitex.Execute(conn, "UPDATE ledger_meta SET digest_key = ?", &sqlitex.ExecOptions{Args: []any{kept}})
	}
	if fresh {
		kept, err := ledger.NewDigestKey(keys)
		if err == nil {
			err = keep(kept)
		}
		if err != nil {
			return digests, err
		}
	}
	kept := ""
	err = sqlitex.Execute(conn, statements.Text("digest_key"), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { kept = s.ColumnText(0); return nil },
	})
	if err != nil {
		return digests, err
	}
	if digests, err = ledger.OpenKeyDigests(kept, keys); err != nil {
		return digests, fmt.Errorf("%s: %w", path, err)
	}
	instead, err := digests.Seal(keys)
	if err == nil && instead != "" {
		err = keep(instead)
	}
	return digests, err
}

// version returns the version of the file, or 0 for one without a ledger, and that of the oldest
// compatible program.
func version(conn *sqlite.Conn, path string) (have, compatible int, err error) {
	tables := 0
	err = sqlitex.Execute(conn, "SELECT count(*) FROM sqlite_schema WHERE name = 'ledger_meta'", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { tables = s.ColumnInt(0); return nil },
	})
	if err != nil || tables == 0 {
		return 0, 0, err
	}
	err = sqlitex.Execute(conn, "SELECT version, compatible_from FROM ledger_meta", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { have, compatible = s.ColumnInt(0), s.ColumnInt(1); return nil },
	})
	if err == nil && have < 1 {
		err = fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, path)
	}
	return have, compatible, err
}

// known refuses a file that a newer program has changed so that this one cannot use it. It is
// checked in every transaction: another program may upgrade a file that this one has open.
func known(path string, version, compatible int) error {
	if compatible > newestVersion {
		return fmt.Errorf("%w: %s has version %d and needs a program that knows version %d, this one knows versions up to %d; use the program that upgraded it, or a newer one",
			ledger.ErrVersion, path, version, compatible, newestVersion)
	}
	return nil
}

// Version returns the version of the file, and the newest that this program knows. This program
// can use the file even if its version is newer.
func (l *Ledger) Version(ctx context.Context) (have, known int, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) (err error) {
		have, _, err = version(conn, l.path)
		return err
	})
	return have, newestVersion, err
}
