package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/readback-go/readback/ledger"
)

// errAgain says that a transaction came to nothing because another one was
// quicker, and that it may be run again.
var errAgain = errors.New("another transaction was quicker")

// hints say what to do about what goes wrong around a database, by its code.
var hints = map[string]string{
	"25006": "the database can only be read: it is a standby, or default_transaction_read_only is on: connect to the primary",
	"53100": "the disk of the database is full: free some space, nothing needs repair",
	"53200": "the database is out of memory",
	"53300": "the database has no connection left: raise max_connections, or give each process a smaller pool (pool_max_conns)",
	"57P01": "the database is being shut down",
	"57P03": "the database is starting or shutting down",
	"42501": "the role lacks a privilege on the ledger's tables",
	"28P01": "the password is not the role's",
	"3D000": "the database does not exist",
}

// failed turns what the driver says into an error of package ledger.
// Committing says that the database may have committed when the error came.
func (l *Ledger) failed(err error, committing bool) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	answered := errors.As(err, &pg)
	switch {
	case answered && nameless(pg.Code):
		l.unnamed.Store(true)
		return fmt.Errorf("%w: %s: %w", errAgain, l.name, err)
	case answered && again(pg.Code):
		return fmt.Errorf("%w: %s: %w", errAgain, l.name, err)
	case answered && len(pg.Code) == 5 && !isFatal(pg) && !(committing && ambiguous(pg.Code)):
		return l.refused(pg)
	case committing && !unsent(err):
		return fmt.Errorf("%w: %s: %w: %w", ledger.ErrUnavailable, l.name, ledger.ErrUnsure, err)
	case answered && hints[pg.Code] != "":
		return fmt.Errorf("%w: %s: %w: %s", ledger.ErrUnavailable, l.name, err, hints[pg.Code])
	}
	return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, l.name, err)
}

// refused is about an error that the database answered with, after which it
// went on: nothing was applied.
func (l *Ledger) refused(pg *pgconn.PgError) error {
	if hint := hints[pg.Code]; hint != "" {
		return fmt.Errorf("%w: %s: %w: %s", ledger.ErrUnavailable, l.name, pg, hint)
	}
	switch pg.Code[:2] {
	case "22", "54": // NUL in a text, or a key beyond what an index holds
		return fmt.Errorf("%s cannot store this: %w", l.name, pg)
	case "23", "42", "3F", "XX":
		return fmt.Errorf("%w: %s: %w", ledger.ErrCorrupt, l.name, pg)
	}
	return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, l.name, pg)
}

// again says that the database rolled back because of what others did.
func again(code string) bool {
	const serialization, deadlock = "40001", "40P01"
	return code == serialization || code == deadlock
}

// ambiguous says that whoever answered does not know what became of the
// transaction: a pooler that lost the database behind it and keeps its client
// (class 08), or a distributed database that lost its own answer.
func ambiguous(code string) bool {
	const unknown = "40003"
	return code == unknown || strings.HasPrefix(code, "08")
}

// errLate says that a statement came to nothing because it took longer than the time
// that it was to write was good for: it waited for a lock, or it was too large for a
// busy machine.
var errLate = errors.New("its time was over before it was done")

// waited says that a statement came to nothing because a lock kept it waiting for
// longer than the time that it was to write was good for.
func waited(err error) bool {
	const divisionByZero = "22012"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == divisionByZero
}

// locked says that a transaction came to nothing because somebody else would not
// let go of what it had to wait for.
func locked(err error) bool {
	const notAvailable = "55P03"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == notAvailable
}

// nameless says that a statement was not where it was prepared, or is where it
// was not: a pooler stands between that gives each transaction another
// connection and does not know of prepared statements. Nothing was run.
func nameless(code string) bool {
	const missing, duplicate = "26000", "42P05"
	return code == missing || code == duplicate
}

// isFatal says that the error ended the connection. It may have come after a
// commit.
func isFatal(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" || pg.Severity == "FATAL" || pg.Severity == "PANIC"
}

// unsent says that the database cannot have got what was meant for it. That the
// connection is closed does not say so: pgx says it of a COMMIT too whose answer
// was lost with the connection, and calls that safe to try again.
func unsent(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// lost says that a connection broke, or none was to be had: another one may
// serve.
func lost(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return isFatal(pg)
	case known(err) && !errors.Is(err, ledger.ErrUnavailable):
		return false // it is about what was read
	}
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, pgx.ErrNoRows)
}

// errNotAsked marks an error that came before the database was asked for
// anything that matters.
var errNotAsked = errors.New("nothing was asked of the database")

// parted is lost, and has the pool throw away the connections that lie idle: a
// restart breaks them all at once.
func (l *Ledger) parted(err error) bool {
	if !lost(err) {
		return false
	}
	l.pool.Reset()
	return true
}

// gaveUp is the error of a caller that gave up before anything was applied, or
// nil when it did not.
func gaveUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was applied: %w", err)
	}
	return nil
}
