package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"math"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed sql/beyond_writes.sql
var sqlBeyondWrites string

//go:embed sql/beyond_papers.sql
var sqlBeyondPapers string

//go:embed sql/found_writes.sql
var sqlFoundWrites string

//go:embed sql/found_papers.sql
var sqlFoundPapers string

// allFound is how far the ledger was gone over when nothing is left.
const allFound = math.MaxInt64

// foundUpTo is how far a ledger was gone over since what is not sealed is remembered:
// up to which write, and up to which paper. What lies beyond leaves nothing when it
// changes: it is found with all that it has by then.
type foundUpTo struct{ writes, papers int64 }

// Chronicle implements [ledger.Chronicler]. Switching it on writes a small row
// for each write and each paper that is there, in portions between which others
// write. Whoever calls it goes on where somebody was interrupted, and several
// may do it at once.
func (l *Ledger) Chronicle(ctx context.Context, on bool) (changed bool, err error) {
	begun := false
	err = driver.InPortions(ctx, func() (bool, error) {
		var more, was bool // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			was = t.chronicle && (t.found == foundUpTo{allFound, allFound} || !on)
			more, err = t.switchOver(on, begun)
			return err
		})
		if err != nil {
			return false, err
		}
		changed, begun = changed || was != on, true
		return more, nil
	})
	return changed && err == nil, err
}

var _ ledger.PortionedChronicler = (*Ledger)(nil)

// Finding implements [ledger.PortionedChronicler].
func (l *Ledger) Finding(ctx context.Context) (finding bool, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		s, err := l.statement(conn, sqlMeta)
		if err != nil {
			return err
		}
		return each(l.path, s, func() error {
			finding = s.ColumnBool(3) && foundUpTo{s.ColumnInt64(5), s.ColumnInt64(6)} != foundUpTo{allFound, allFound}
			return known(l.path, s.ColumnInt(0), s.ColumnInt(1))
		})
	})
	return finding, err
}

// switchOver is one portion of what is to be done, and says whether there is more.
// What was begun, and switched off by somebody else meanwhile, is not begun anew.
func (t *tx) switchOver(on, begun bool) (more bool, err error) {
	switch {
	case !on && t.chronicle:
		t.wrote, t.chronicle, t.found = true, false, foundUpTo{allFound, allFound}
		return false, errors.Join(t.run("UPDATE ledger_meta SET chronicle = 0"), t.keepFound(), t.run("DELETE FROM ledger_unsealed"))
	case !on || begun && !t.chronicle:
		return false, nil
	case !t.chronicle:
		t.wrote, t.chronicle, t.found = true, true, foundUpTo{}
		return true, errors.Join(t.run("UPDATE ledger_meta SET chronicle = 1, compatible_from = max(compatible_from, ?1)", chronicleFrom), t.keepFound())
	case t.found.writes < allFound:
		err = t.findNext(sqlBeyondWrites, sqlFoundWrites, &t.found.writes)
	case t.found.papers < allFound:
		err = t.findNext(sqlBeyondPapers, sqlFoundPapers, &t.found.papers)
	}
	return t.found != foundUpTo{allFound, allFound}, err
}

// findNext leaves a row for each of the next writes or papers.
func (t *tx) findNext(beyond, leave string, upTo *int64) error {
	t.wrote = true
	last, many := int64(0), int64(0)
	err := explain(t.path, sqlitex.Execute(t.conn, beyond, &sqlitex.ExecOptions{Args: []any{*upTo, maxFound}, ResultFunc: func(s *sqlite.Stmt) error {
		last, many = s.ColumnInt64(0), s.ColumnInt64(1)
		return nil
	}}))
	if err == nil && many > 0 {
		err = t.run(leave, t.ticket, *upTo, last)
		t.ticket += int64(t.conn.Changes())
	}
	if *upTo = last; many < maxFound {
		*upTo = allFound
	}
	return errors.Join(err, t.keepFound())
}

func (t *tx) keepFound() error {
	return t.run("UPDATE ledger_meta SET found_writes = ?1, found_papers = ?2", t.found.writes, t.found.papers)
}
