package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrCursor says that a cursor is none that a ledger gave, or is of another kind of
// listing. Nothing was looked at.
var ErrCursor = errors.New("not a cursor of this ledger")

// Place is where a cursor stands: behind the change, or the write, of a number.
// It is for drivers; to everybody else a cursor is a text without a meaning.
type Place struct {
	N int64 // 0: before all
	// Mark tells a thing from another one that had its number in a ledger that
	// was put back from a copy: when a change happened. 0 for writes.
	Mark int64
}

const (
	changeCursor = "c" // of changes
	writeCursor  = "w" // of writes
)

// Cursor is the place as a cursor of changes.
func (p Place) Cursor() string {
	return changeCursor + strconv.FormatInt(p.N, 10) + "-" + strconv.FormatUint(uint64(p.Mark), 36)
}

// PlaceOf reads a cursor of changes; "" is before all. The error wraps
// [ErrCursor].
func PlaceOf(cursor string) (Place, error) {
	if cursor == "" {
		return Place{}, nil
	}
	number, mark, _ := strings.Cut(strings.TrimPrefix(cursor, changeCursor), "-")
	n, err := strconv.ParseInt(number, 10, 64)
	m, bad := strconv.ParseUint(mark, 36, 64)
	p := Place{N: n, Mark: int64(m)}
	if err != nil || bad != nil || n < 0 || p.Cursor() != cursor { // there is one way to write each
		return Place{}, fmt.Errorf("%w: %.40q; want one that Follow or Latest gave, or none to begin at what is still there", ErrCursor, cursor)
	}
	return p, nil
}

// Reaches says whether all that comes behind a place is still there, in a ledger
// whose changes have the numbers from oldest to newest without gaps (oldest is
// newest + 1 where there are none). Have is when the change of that number
// happened, where it is there. The error wraps [ErrTooFar].
func (p Place) Reaches(oldest, newest int64, have *int64) error {
	switch {
	case p.N < oldest-1:
		return fmt.Errorf("%w: it is behind change %d, and the oldest that is still there is %d; look up what you want to know, and go on from Latest", ErrTooFar, p.N, oldest)
	case p.N > newest || have != nil && p.N > 0 && *have != p.Mark:
		return fmt.Errorf("%w: it is behind change %d, which this ledger does not know: it is another one, or was put back to an earlier state; look up what you want to know, and go on from Latest", ErrTooFar, p.N)
	}
	return nil
}

// Next is the cursor to go on from behind some changes that were asked for from a
// place on, in a ledger whose newest change of all tenants is at newest.
func (q Following) Next(changes []Change, newest Place) string {
	switch n := len(changes); {
	case n == q.Limit:
		return changes[n-1].Cursor
	case newest.N > 0:
		return newest.Cursor()
	}
	return q.After
}

// FoundCursor is a cursor of writes: behind the one with a number.
func FoundCursor(n int64) string { return writeCursor + strconv.FormatInt(n, 10) }

// FoundAfter reads a cursor of writes. The error wraps [ErrCursor].
func FoundAfter(cursor string) (n int64, err error) {
	n, err = strconv.ParseInt(strings.TrimPrefix(cursor, writeCursor), 10, 64)
	if err != nil || n < 0 || FoundCursor(n) != cursor {
		return 0, fmt.Errorf("%w: %.40q; want what a search said comes next, or none to begin at its start", ErrCursor, cursor)
	}
	return n, nil
}
