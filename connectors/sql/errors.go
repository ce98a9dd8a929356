package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/visible"
)

// maxServerText is how much of the server's own text an error contains.
const maxServerText = 200

var (
	// errOptions is wrapped by New's errors.
	errOptions = errors.New("sql options")
	// errIntent is wrapped by errors about an intent that the table cannot hold or query. They
	// name the field and what is accepted.
	errIntent = errors.New("not for this table")
	// errExists is wrapped when a create meets a row under its key.
	errExists = errors.New("a row under the key exists already")
	// errMatches is wrapped when a change would touch another number of rows
	// than declared, or rows that are no longer as they were read.
	errMatches = errors.New("other than the declared number of rows match, or they have changed")
	// errUnreadable is wrapped when the answer to a read does not match the query.
	errUnreadable = errors.New("the answer of the database cannot be used")
	// errBehind is wrapped when a read is not shown to have everything that the
	// primary has, and a settle time is declared that would make absence of it.
	errBehind = errors.New("the server that was read is not shown to have caught up with the primary")
	// errElsewhere is wrapped when the read connection leads to another primary
	// or another table than the write connection.
	errElsewhere = errors.New("reads and writes lead to different places")
	// errKeyChanged is wrapped when the database keeps another key than it was
	// given (rounded, cut, altered by a trigger): the row could not be found
	// again, so it was rolled back.
	errKeyChanged = errors.New("the database changes the key, so that the row could not be found again; it was rolled back; want a key that the column keeps as it is")
	// errInexact is wrapped when a text key matches a row whose key is spelled differently: the
	// column's collation treats them as equal.
	errInexact = errors.New("the key matches a row whose key is another text; declare the column as CaseFold or give it an exact collation")
	// errNoUndo is wrapped by Invert for what cannot be undone.
	errNoUndo = errors.New("cannot be undone")
	// errTable is wrapped by Probe when the table is not as declared.
	errTable = errors.New("the table is not as declared")
	// errSample is wrapped by Sample when the configuration lacks something.
	errSample = errors.New("no sample")
)

// unusable is an error about one field of an intent.
func unusable(path, problem, want string) error {
	return connectors.WrongField(path, fmt.Errorf("%w: %s %s; want %s", errIntent, path, problem, want))
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
	words := strings.FieldsFunc(strings.ToValidUTF8(s, "?"), unicode.IsControl)
	return visible.Cut(strings.Join(words, " "), maxServerText)
}
