package sql

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
)

// beforeCommit classifies an error before COMMIT was sent. Nothing was applied: a server that
// never receives COMMIT rolls back.
func beforeCommit(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return connectors.NotSent(fmt.Errorf("no COMMIT was sent: %w", err))
	}
	switch class := classOf(e.Code); {
	case e.Code == "23505", e.Code == "23P01": // unique or exclusion violation
		return connectors.Conflict(e.Code, err)
	case class == "53": // too many connections, out of memory or disk
		return &connectors.Error{Fate: connectors.FateThrottled, Code: e.Code, Err: err}
	case class == "28": // no such role, or not with this password
		return connectors.LoginRefused(e.Code, err)
	case class == "08", class == "57" && e.Code != "57014":
		// No connection, shutting down or starting up.
		return &connectors.Error{Fate: connectors.FateNotSent, Code: e.Code, Err: err}
	}
	if slices.Contains(passing, e.Code) {
		return &connectors.Error{Fate: connectors.FateNotSent, Code: e.Code, Err: err}
	}
	return connectors.Refused(e.Code, err)
}

// passing are the errors that mean only a conflict with another actor, or a timeout: a rollback
// for serialisation, a deadlock, an unavailable lock, a cancelled statement, a transaction that
// the server ended since we let it wait.
var passing = []string{"25P03", "25P04", "40001", "40P01", "55P03", "57014"}

func classOf(code string) string { return code[:min(2, len(code))] }

// abortingClasses are the classes of errors with which PostgreSQL reports, when a COMMIT fails,
// that the transaction was rolled back: the cause is the data, a lock or a rule.
var abortingClasses = []string{"0A", "21", "22", "23", "25", "2D", "42", "44", "P0"}

// abortingCodes are single ones of other classes: rollbacks for the sake of
// serialisation and deadlocks, locks not to be had, and the cancelled statement.
var abortingCodes = []string{"40000", "40001", "40002", "40P01", "55000", "55P03", "57014"}

// atCommit classifies the failure of a COMMIT that was sent. Only the server's error, of level
// ERROR and of a kind that aborts, is proof. A FATAL can come after the commit (shutdown while it
// waits for a standby), 08 and 57P come from poolers too, 40003 itself means unknown, and so does
// no answer.
func atCommit(err error) error {
	var e *pgconn.PgError
	switch {
	case !errors.As(err, &e), e.SeverityUnlocalized != "ERROR":
		return fmt.Errorf("no answer to COMMIT: %w", err)
	case e.Code == "23505", e.Code == "23P01":
		return connectors.Conflict(e.Code, err)
	case slices.Contains(abortingCodes, e.Code), slices.Contains(abortingClasses, classOf(e.Code)):
		return connectors.Refused(e.Code, err)
	}
	return fmt.Errorf("no certain answer to COMMIT: %w", err)
}
