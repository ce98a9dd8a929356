package sqlite

import (
	"context"
	"errors"
	"math"

	"github.com/readback-go/readback/internal/driver"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// maxBackfilled is how many writes or documents one operation backfills: some milliseconds, in
// which no other caller can write.
const maxBackfilled = 1000

// allBackfilled is the backfill position when nothing is left.
const allBackfilled = math.MaxInt64

// backfilled is how far the backfill has come since recording was switched on: up to which write,
// and up to which document. Later rows leave no mark when they change: the backfill records them
// with everything they have by then.
type backfilled struct{ writes, documents int64 }

// SetRecording implements [ledger.Feed]. Switching it on writes a small row for each existing
// write and document, in portions between which others write. A call continues where an
// interrupted one ended, and several may run at once.
func (l *Ledger) SetRecording(ctx context.Context, on bool) (changed bool, err error) {
	begun := false
	err = driver.InPortions(ctx, func() (bool, error) {
		var more, was bool // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			was = t.sealing && (t.backfilled == backfilled{allBackfilled, allBackfilled} || !on)
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

// Finding implements [ledger.Feed].
func (l *Ledger) Finding(ctx context.Context) (finding bool, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		s, err := l.statement(conn, "meta")
		if err != nil {
			return err
		}
		return each(l.path, s, func() error {
			finding = s.ColumnBool(3) && backfilled{s.ColumnInt64(5), s.ColumnInt64(6)} != backfilled{allBackfilled, allBackfilled}
			return known(l.path, s.ColumnInt(0), s.ColumnInt(1))
		})
	})
	return finding, err
}

// switchOver does one portion of the work, and reports whether there is more. If it was begun,
// and another caller switched it off meanwhile, it is not begun anew.
func (t *tx) switchOver(on, begun bool) (more bool, err error) {
	switch {
	case !on && t.sealing:
		t.wrote, t.sealing, t.backfilled = true, false, backfilled{allBackfilled, allBackfilled}
		return false, errors.Join(t.run("UPDATE ledger_meta SET sealing = 0"), t.storeBackfilled(), t.run("DELETE FROM ledger_unsealed"))
	case !on || begun && !t.sealing:
		return false, nil
	case !t.sealing:
		t.wrote, t.sealing, t.backfilled = true, true, backfilled{}
		return true, errors.Join(t.run("UPDATE ledger_meta SET sealing = 1"), t.storeBackfilled())
	case t.backfilled.writes < allBackfilled:
		err = t.backfillNext("next_writes", "backfill_writes", &t.backfilled.writes)
	case t.backfilled.documents < allBackfilled:
		err = t.backfillNext("next_documents", "backfill_documents", &t.backfilled.documents)
	}
	return t.backfilled != backfilled{allBackfilled, allBackfilled}, err
}

// backfillNext inserts a row for each of the next writes or documents.
func (t *tx) backfillNext(beyond, leave string, upTo *int64) error {
	t.wrote = true
	last, many := int64(0), int64(0)
	err := explain(t.path, sqlitex.Execute(t.conn, statements.Text(beyond), &sqlitex.ExecOptions{Args: []any{*upTo, maxBackfilled}, ResultFunc: func(s *sqlite.Stmt) error {
		last, many = s.ColumnInt64(0), s.ColumnInt64(1)
		return nil
	}}))
	if err == nil && many > 0 {
		err = t.run(statements.Text(leave), t.ticket, *upTo, last)
		t.ticket += int64(t.conn.Changes())
	}
	if *upTo = last; many < maxBackfilled {
		*upTo = allBackfilled
	}
	return errors.Join(err, t.storeBackfilled())
}

func (t *tx) storeBackfilled() error {
	return t.run("UPDATE ledger_meta SET backfilled_write = ?1, backfilled_document = ?2", t.backfilled.writes, t.backfilled.documents)
}
