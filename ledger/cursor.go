package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrCursor means that a cursor was not issued by a ledger, or belongs to another kind of
// listing. Nothing was read.
var ErrCursor = errors.New("not a cursor of this ledger")

// Place is the position of a cursor: after the change, or the write, of a number. It is for
// drivers; for all other callers a cursor is opaque text.
type Place struct {
	N int64 // 0: before all
	// Mark distinguishes a change from another with the same number in a ledger that was restored
	// from a copy: it is the time of the change. 0 for writes.
	Mark int64
}

const (
	changeCursor = "c" // of changes
	writeCursor  = "w" // of writes
)

// Cursor returns the place as a cursor of changes.
func (p Place) Cursor() string {
	return changeCursor + strconv.FormatInt(p.N, 10) + "-" + strconv.FormatUint(uint64(p.Mark), 36)
}

// PlaceOf parses a cursor of changes; "" is before all. The error wraps [ErrCursor].
func PlaceOf(cursor string) (Place, error) {
	if cursor == "" {
		return Place{}, nil
	}
	number, mark, _ := strings.Cut(strings.TrimPrefix(cursor, changeCursor), "-")
	n, err := strconv.ParseInt(number, 10, 64)
	m, bad := strconv.ParseUint(mark, 36, 64)
	p := Place{N: n, Mark: int64(m)}
	if err != nil || bad != nil || n < 0 || p.Cursor() != cursor { // each has one spelling
		return Place{}, fmt.Errorf("%w: %.40q; want one that Follow or Latest gave, or none to begin at what is still there", ErrCursor, cursor)
	}
	return p, nil
}

// Reaches reports whether everything after a place still exists, in a ledger whose changes have
// the numbers from oldest to newest without gaps (oldest is newest + 1 where there are none).
// Have is the time of the change of that number, if it exists. The error wraps [ErrTooFar].
func (p Place) Reaches(oldest, newest int64, have *int64) error {
	switch {
	case p.N < oldest-1:
		return fmt.Errorf("%w: it is behind change %d, and the oldest that is still there is %d; read the current state, and continue from Latest", ErrTooFar, p.N, oldest)
	case p.N > newest || have != nil && p.N > 0 && *have != p.Mark:
		return fmt.Errorf("%w: it is behind change %d, which this ledger does not know: it is another one, or was put back to an earlier state; read the current state, and continue from Latest", ErrTooFar, p.N)
	}
	return nil
}

// Next returns the cursor to continue from after the changes of one call, in a ledger whose
// newest change of all tenants is at newest.
func (q Following) Next(changes []Change, newest Place) string {
	switch n := len(changes); {
	case n == q.Limit:
		return changes[n-1].Cursor
	case newest.N > 0:
		return newest.Cursor()
	}
	return q.After
}

// SearchCursor returns a cursor of writes: after the one with a number.
func SearchCursor(n int64) string { return writeCursor + strconv.FormatInt(n, 10) }

// ParseSearchCursor parses a cursor of writes. The error wraps [ErrCursor].
func ParseSearchCursor(cursor string) (n int64, err error) {
	n, err = strconv.ParseInt(strings.TrimPrefix(cursor, writeCursor), 10, 64)
	if err != nil || n < 0 || SearchCursor(n) != cursor {
		return 0, fmt.Errorf("%w: %.40q; want the cursor that a search returned, or none to begin at its start", ErrCursor, cursor)
	}
	return n, nil
}
