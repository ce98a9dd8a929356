package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
)

// maxServerText is how much of the server's own text an error contains.
const maxServerText = 200

var (
	// ErrOptions is wrapped by New's errors.
	ErrOptions = errors.New("sql options")
	// ErrIntent is wrapped by errors about an intent that the table cannot hold or query. They
	// name the field and what is accepted.
	ErrIntent = errors.New("not for this table")
	// ErrExists is wrapped when a create meets a row under its key.
	ErrExists = errors.New("a row under the key exists already")
	// ErrMatches is wrapped when a change would touch another number of rows
	// than declared, or rows that are no longer as they were read.
	ErrMatches = errors.New("other than the declared number of rows match, or they have changed")
	// ErrUnreadable is wrapped when the answer to a read does not match the query.
	ErrUnreadable = errors.New("the answer of the database cannot be used")
	// ErrBehind is wrapped when a read is not shown to have everything that the
	// primary has, and a settle time is declared that would make absence of it.
	ErrBehind = errors.New("the server that was read is not shown to have caught up with the primary")
	// ErrElsewhere is wrapped when the read connection leads to another primary
	// or another table than the write connection.
	ErrElsewhere = errors.New("reads and writes lead to different places")
	// ErrKeyChanged is wrapped when the database keeps another key than it was
	// given (rounded, cut, altered by a trigger): the row could not be found
	// again, so it was rolled back.
	ErrKeyChanged = errors.New("the database changes the key, so that the row could not be found again; it was rolled back; want a key that the column keeps as it is")
	// ErrInexact is wrapped when a text key matches a row whose key is spelled differently: the
	// column's collation treats them as equal.
	ErrInexact = errors.New("the key matches a row whose key is another text; declare the column as CaseFold or give it an exact collation")
	// ErrNoUndo is wrapped by Invert for what cannot be undone.
	ErrNoUndo = errors.New("cannot be undone")
	// ErrTable is wrapped by Probe when the table is not as declared.
	ErrTable = errors.New("the table is not as declared")
	// ErrSample is wrapped by Sample when the configuration lacks something.
	ErrSample = errors.New("no sample")
)

// unusable is an error about one field of an intent.
func unusable(path, problem, want string) error {
	return connectors.WrongField(path, fmt.Errorf("%w: %s %s; want %s", ErrIntent, path, problem, want))
}

// serverWords is an error that may contain the server's own text: truncated and made printable,
// since it is shown and recorded.
type serverWords struct{ err error }

func (e *serverWords) Error() string { return clip(e.err.Error()) }
func (e *serverWords) Unwrap() error { return e.err }

// Is reports that the table or a column does not exist, as [connectors.ErrNoTarget].
func (e *serverWords) Is(target error) bool {
	if target != connectors.ErrNoTarget {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(e.err, &pg) {
		return slices.Contains([]string{"3D000", "3F000", "42P01", "42703"}, pg.Code)
	}
	return strings.Contains(e.err.Error(), "no such table: ") || strings.Contains(e.err.Error(), "no such column: ") // SQLite has one code for all
}

func doing(what string, err error) error { return fmt.Errorf("%s: %w", what, &serverWords{err}) }

// clip makes foreign text fit to be shown.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxServerText {
		s = strings.ToValidUTF8(s[:maxServerText], "") + "…"
	}
	return s
}
