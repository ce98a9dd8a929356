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

// errAgain means that a transaction failed because of a concurrent one, and may be run again.
var errAgain = errors.New("another transaction was quicker")

// hints are remedies for common faults of a database, by its code.
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

// failed converts an error of the driver to an error of package ledger. Committing says that the
// database may have committed when the error came.
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

// refused converts an error response after which the database continued: nothing was applied.
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

// again reports whether the database rolled back because of concurrent transactions.
func again(code string) bool {
	const serialization, deadlock = "40001", "40P01"
	return code == serialization || code == deadlock
}

// ambiguous reports whether the sender of the error does not know the result of the transaction:
// a pooler that lost the database behind it and keeps its client (class 08), or a distributed
// database that lost its own answer.
func ambiguous(code string) bool {
	const unknown = "40003"
	return code == unknown || strings.HasPrefix(code, "08")
}

// errLate means that a statement failed because it took longer than its time was valid: it waited
// for a lock, or it was too large for a busy machine.
var errLate = errors.New("its time was over before it was done")

// waited reports whether a statement failed because a lock delayed it for longer than its time
// was valid.
func waited(err error) bool {
	const divisionByZero = "22012"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == divisionByZero
}

// locked reports whether a transaction failed because another one did not release its locks.
func locked(err error) bool {
	const notAvailable = "55P03"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == notAvailable
}

// nameless reports whether a prepared statement is missing, or exists already: a pooler that
// gives each transaction another connection does not support prepared statements. Nothing was
// run.
func nameless(code string) bool {
	const missing, duplicate = "26000", "42P05"
	return code == missing || code == duplicate
}

// isFatal reports whether the error ended the connection. It may have come after a commit.
func isFatal(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" || pg.Severity == "FATAL" || pg.Severity == "PANIC"
}

// unsent reports whether the request cannot have reached the database. A closed connection does
// not prove that: pgx also reports one for a COMMIT whose answer was lost with the connection,
// and calls that safe to retry.
func unsent(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// lost reports whether a connection broke, or none was available: another one may work.
func lost(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return isFatal(pg)
	case known(err) && !errors.Is(err, ledger.ErrUnavailable):
		return false // it is about the data that was read
	}
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, pgx.ErrNoRows)
}

// errNotAsked marks an error that came before any relevant request to the database.
var errNotAsked = errors.New("nothing was asked of the database")

// parted is lost, and makes the pool close its idle connections: a restart breaks them all at
// once.
func (l *Ledger) parted(err error) bool {
	if !lost(err) {
		return false
	}
	l.pool.Reset()
	return true
}

// gaveUp returns the error of a caller that gave up before anything was applied, or nil when it
// did not.
func gaveUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was applied: %w", err)
	}
	return nil
}
