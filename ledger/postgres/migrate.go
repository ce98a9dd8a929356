package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/readback-go/readback/internal/pgserver"
	"github.com/readback-go/readback/ledger"
)

// Migrations are numbered from 1 without gaps and are never changed once released. The number of
// the last one is the version of the ledger, kept in ledger_meta. A migration with which programs
// of the previous version can continue to work (a new table or index, a column that may stay
// empty) leaves compatible_from unchanged: it expands the ledger. Any other sets it to its own number,
// after it has locked the tables that it changes. What is to be removed or renamed is expanded in one
// release, and contracted in a later one, when no program of the earlier release runs. A test prepares
// the statements of earlier versions on the ledger as it is now.
//
// A field that is added to a body needs no migration: an older program does not touch what it
// cannot read. A field that changes its meaning does.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versions returns the texts of the migrations in order; their number is the newest version that
// this program knows.
func versions() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		texts[i] = string(text)
	}
	return texts
}

// prepare upgrades the ledger to the version of this program. A ledger of that version is not
// changed, so that a role without the right to create tables can open it.
func (l *Ledger) prepare(ctx context.Context, o *Options) error {
	err := l.speak(ctx, o.Dialect)
	if err == nil {
		err = l.check(ctx)
	}
	if err == nil {
		err = l.migrate(ctx, versions(), o.Keys)
	}
	if err == nil {
		l.keeping.Digests, err = l.openDigests(ctx, o.Keys)
	}
	if err == nil {
		err = l.ordered(ctx)
	}
	if err == nil && o.ResetClock {
		err = l.resetClock(ctx)
	}
	if err == nil {
		err = l.firstRead(ctx)
	}
	return err
}

// check refuses a database that cannot hold a ledger.
func (l *Ledger) check(ctx context.Context) error {
	var encoding, readOnly string
	var standby bool
	query := "SELECT current_setting('server_encoding'), current_setting('transaction_read_only'), pg_is_in_recovery()"
	if l.dialect.noStandby {
		query = strings.Replace(query, "pg_is_in_recovery()", "FALSE", 1)
	}
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

// migrate runs the missing migrations, each in a transaction of its own. A new ledger gets all of
// them and its digest key in one. Programs that start at the same time do it one after another,
// on the lock of the version table.
func (l *Ledger) migrate(ctx context.Context, texts []string, keys ledger.Keys) error {
	for try := 0; ; try++ {
		have, compatible, err := l.haveVersion(ctx)
		switch {
		case err == nil && compatible > len(texts):
			return fmt.Errorf("%w: %s has version %d and needs a program that knows version %d, this one knows versions up to %d: use the program that upgraded it, or a newer one",
				ledger.ErrVersion, l.name, have, compatible, len(texts))
		case err == nil && have >= len(texts): // a newer program has only added to it, or none has
			return nil
		case err == nil && have < 0:
			err = l.createMeta(ctx)
		case err == nil && have == 0:
			err = l.migrateOnce(ctx, have, texts, keys)
		case err == nil:
			err = l.migrateOnce(ctx, have, texts[have:have+1], keys)
		}
		if err != nil && !l.repeat(ctx, try, &err) {
			return err
		}
	}
}

// haveVersion returns the version of the ledger, 0 for one without tables, and -1 without the
// version table, and the version that a program must know to use it.
func (l *Ledger) haveVersion(ctx context.Context) (version, compatible int, err error) {
	version = -1
	err = l.read(ctx, "SELECT to_regclass($1) IS NOT NULL", []any{qualified(l.schema, "@ledger_meta")}, func(rows pgx.Rows) error {
		there, err := pgx.CollectOneRow(rows, pgx.RowTo[bool])
		if err == nil && there {
			version = 0
		}
		return err
	})
	if err != nil || version < 0 {
		return version, 0, err
	}
	err = l.read(ctx, qualified(l.schema, "SELECT version, compatible_from FROM @ledger_meta"), nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) { return struct{}{}, r.Scan(&version, &compatible) })
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, l.name)
		}
		return err
	})
	return version, compatible, err
}

// createMeta creates the version table. It needs no lock: of two programs that do it at once one
// fails, and finds the table when it reads next.
func (l *Ledger) createMeta(ctx context.Context) error {
	text := l.sql.Text("meta_table")
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
		case "23505", "42P07", "42P06", "42710", "XX000": // it is being created
			return fmt.Errorf("%w: %w", errAgain, l.refused(pg))
		}
	}
	return l.brokenRead(ctx, err)
}

func (l *Ledger) migrateOnce(ctx context.Context, have int, texts []string, keys ledger.Keys) error {
	return l.script(ctx, func(tx pgx.Tx) error {
		// Not the lock of its row: a migration that then alters the table deadlocks with every
		// program that waits for the row. Running programs can still update it.
		lock := "LOCK TABLE @ledger_meta IN SHARE UPDATE EXCLUSIVE MODE"
		if l.dialect.noLockTable {
			lock = "SELECT 1 FROM @ledger_meta FOR UPDATE"
		}
		if _, err := tx.Exec(ctx, qualified(l.schema, lock)); err != nil {
			return err
		}
		var locked int
		err := tx.QueryRow(ctx, qualified(l.schema, "SELECT version FROM @ledger_meta"), l.args()...).Scan(&locked)
		if err != nil || locked != have { // another program was quicker
			return err
		}
		for i, text := range texts {
			if _, err := tx.Exec(ctx, qualified(l.schema, l.dialect.plain(text)), pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("migration %d: %w", have+i+1, err)
			}
		}
		if have == 0 {
			kept, err := ledger.NewDigestKey(keys)
			if err == nil {
				_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET digest_key = $1"), l.args(kept)...)
			}
			if err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET version = $1"), l.args(have+len(texts))...)
		return err
	})
}

// openDigests returns how the ledger stores digests of business keys. Of programs that seal its
// digest key at the same time one does, and all have the same key.
func (l *Ledger) openDigests(ctx context.Context, keys ledger.Keys) (digests ledger.KeyDigests, err error) {
	kept := ""
	err = l.read(ctx, l.sql.Text("digest_key"), nil, func(rows pgx.Rows) error {
		kept, err = pgx.CollectOneRow(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return digests, err
	}
	if digests, err = ledger.OpenKeyDigests(kept, keys); err != nil {
		return digests, fmt.Errorf("%s: %w", l.name, err)
	}
	instead, err := digests.Seal(keys)
	if err != nil || instead == "" {
		return digests, err
	}
	return digests, l.script(ctx, func(tx pgx.Tx) error {
		// Compared here: as an argument it could appear in the log of the server.
		var locked string
		err := tx.QueryRow(ctx, l.sql.Text("digest_key")+" FOR UPDATE", l.args()...).Scan(&locked)
		if err == nil && locked == kept {
			_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET digest_key = $1"), l.args(instead)...)
		}
		return err
	})
}

// script runs changes of more than rows, in one transaction.
func (l *Ledger) script(ctx context.Context, f func(tx pgx.Tx) error) error {
	for try := 0; ; try++ {
		err := l.brokenRead(ctx, pgx.BeginFunc(ctx, l.pool, f))
		if !l.repeat(ctx, try, &err) {
			return err
		}
	}
}

// resetClock records the database's present time as the newest.
func (l *Ledger) resetClock(ctx context.Context) error {
	return l.script(ctx, func(tx pgx.Tx) error {
		s, err := l.stateIn(ctx, tx)
		if err == nil {
			_, err = tx.Exec(ctx, qualified(l.schema, "UPDATE @ledger_meta SET newest = $1"), l.args(s.now)...)
		}
		return err
	})
}

// firstRead fails early when the ledger cannot be used.
func (l *Ledger) firstRead(ctx context.Context) error {
	return l.read(ctx, l.sql.Text("state"), nil, func(rows pgx.Rows) error {
		s, err := scanState(rows)
		if err == nil {
			err = l.usable(s)
		}
		return err
	})
}

// Version returns the version of the ledger, and the newest that this program knows.
func (l *Ledger) Version(ctx context.Context) (have, known int, err error) {
	have, _, err = l.haveVersion(ctx)
	return have, l.version, err
}

// Weaknesses returns the settings of the server with which a crash or a failover can lose what it
// acknowledged, most severe first. The ledger's own transactions raise synchronous_commit, which
// is therefore not listed.
func (l *Ledger) Weaknesses(ctx context.Context) (weak []string, err error) {
	if l.dialect.noStandby {
		return nil, nil
	}
	err = l.read(ctx, pgserver.Weaknesses, nil, func(rows pgx.Rows) error {
		weak, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return weak, err
}
