package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/readback-go/readback/ledger"
)

// Migrations are numbered from 1 without gaps and are never changed once
// released. The number of the last one is the version of the ledger, kept in
// ledger_meta. One with which programs of the version before can go on working
// (a new table or index, a column that may stay empty) leaves compatible_from as
// it is; any other sets it to its own number, after it has locked the tables
// that it changes.
//
// A field that is added to a body needs no migration: an older program leaves
// alone what it cannot read. A field that changes its meaning does.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versions is the texts of the migrations in order; the newest version this
// program knows is their number.
func versions() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = mustRead(migrations, name)
	}
	return texts
}

// prepare brings the ledger to the version of this program. A ledger that is of
// that version is not touched, so that a role without the right to create
// tables can open it.
func (l *Ledger) prepare(ctx context.Context, reset bool) error {
	err := l.check(ctx)
	if err == nil {
		err = l.migrate(ctx, versions())
	}
	if err == nil && reset {
		err = l.resetClock(ctx)
	}
	if err == nil {
		err = l.firstLook(ctx)
	}
	return err
}

// check refuses a database that no ledger can live in.
func (l *Ledger) check(ctx context.Context) error {
	var encoding, readOnly string
	var standby bool
	const query = "SELECT current_setting('server_encoding'), current_setting('transaction_read_only'), pg_is_in_recovery()"
	err := l.read(ctx, query, nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(&encoding, &readOnly, &standby)
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case standby:
		return l.usable(state{version: 1, standby: true})
	case readOnly == "on":
		return l.refused(&pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "a ledger must be written"})
	case encoding != "UTF8":
		return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, l.name, errEncoding)
	}
	return nil
}

// migrate runs the migrations that the ledger has not seen, each in a
// transaction of its own. Programs that start at the same time do it one after
// another, on the lock of the table that says the version.
func (l *Ledger) migrate(ctx context.Context, texts []string) error {
	for try := 0; ; try++ {
		have, err := l.haveVersion(ctx)
		switch {
		case err == nil && have > len(texts):
			return fmt.Errorf("%w: %s has version %d, this program knows versions up to %d: use the program that upgraded it, or a newer one; programs that run already go on as long as they can",
				ledger.ErrVersion, l.name, have, len(texts))
		case err == nil && have == len(texts):
			return nil
		case err == nil && have < 0:
			err = l.createMeta(ctx)
		case err == nil:
			err = l.migrateOnce(ctx, have, texts[have])
		}
		if err != nil && (!errors.Is(err, errAgain) || try == maxTries) {
			return err
		}
	}
}

// haveVersion is that of the ledger, 0 for one without tables, and -1 where
// not even the table is that says it.
func (l *Ledger) haveVersion(ctx context.Context) (version int, err error) {
	version = -1
	err = l.read(ctx, "SELECT to_regclass($1) IS NOT NULL", []any{qualified(l.schema, "@ledger_meta")}, func(rows pgx.Rows) error {
		there, err := pgx.CollectOneRow(rows, pgx.RowTo[bool])
		if err == nil && there {
			version = 0
		}
		return err
	})
	if err != nil || version < 0 {
		return version, err
	}
	err = l.read(ctx, qualified(l.schema, "SELECT version FROM @ledger_meta"), nil, func(rows pgx.Rows) error {
		version, err = pgx.CollectOneRow(rows, pgx.RowTo[int])
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, l.name)
		}
		return err
	})
	return version, err
}

// createMeta makes the table that says the version. It needs no lock: of two
// programs that do it at once one fails, and finds it at its next look.
func (l *Ledger) createMeta(ctx context.Context) error {
	text := qualified(l.schema, mustRead(texts, "sql/meta_table.sql"))
	if l.schema != "" {
		text = "CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{l.schema}.Sanitize() + ";\n" + text
	}
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "23505", "42P07", "42P06", "42710", "XX000": // it is just coming to exist
			return fmt.Errorf("%w: %w", errAgain, l.refused(pg))
		}
	}
	return l.brokenRead(ctx, err)
}

func (l *Ledger) migrateOnce(ctx context.Context, have int, text string) error {
	return l.script(ctx, func(tx pgx.Tx) error {
		// Not the lock of its row: a migration that then alters the table deadlocks
		// with every program that waits for the row. Programs that run can still
		// update it.
		if _, err := tx.Exec(ctx, qualified(l.schema, "LOCK TABLE @ledger_meta IN SHARE UPDATE EXCLUSIVE MODE")); err != nil {
			return err
		}
		var locked int
		err := tx.QueryRow(ctx, qualified(l.schema, "SELECT version FROM @ledger_meta"), l.args()...).Scan(&locked)
		if err != nil || locked != have { // another program was quicker
			return err
		}
		if _, err := tx.Exec(ctx, qualified(l.schema, text), pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %d: %w", have+1, err)
		}
		_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET version = $1, compatible_from = greatest(compatible_from, 1)"), l.args(have+1)...)
		return err
	})
}

// script runs what changes more than rows, in one transaction.
func (l *Ledger) script(ctx context.Context, f func(tx pgx.Tx) error) error {
	for try := 0; ; try++ {
		err := l.brokenRead(ctx, pgx.BeginFunc(ctx, l.pool, f))
		if !errors.Is(err, errAgain) || try == maxTries {
			return err
		}
	}
}

// resetClock takes the database's present time for the newest.
func (l *Ledger) resetClock(ctx context.Context) error {
	return l.script(ctx, func(tx pgx.Tx) error {
		s, err := l.lookIn(ctx, tx)
		if err == nil {
			_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET newest = $1"), l.args(s.now)...)
		}
		return err
	})
}

// firstLook fails early when the ledger cannot be used, and sets the clock.
func (l *Ledger) firstLook(ctx context.Context) error {
	return l.read(ctx, l.sql["look"], nil, func(rows pgx.Rows) error {
		s, err := look(rows)
		if err == nil {
			err = l.usable(s)
		}
		if err == nil {
			l.clock.set(s.now)
		}
		return err
	})
}
