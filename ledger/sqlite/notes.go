package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// Notes implements [ledger.Documents].
func (l *Ledger) Notes(ctx context.Context, prefix string) (notes []ledger.Note, now time.Time, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, at time.Time) error {
		now = at
		s, err := l.statement(conn, "notes")
		if err != nil {
			return err
		}
		s.BindText(1, prefix)
		return each(l.path, s, func() error {
			notes = append(notes, ledger.Note{
				Name: s.ColumnText(0), Version: s.ColumnInt64(1), Value: text(s, 2), At: time.Unix(0, s.ColumnInt64(3)).UTC(),
			})
			return nil
		})
	})
	return notes, now, err
}

// SetNote implements [ledger.Documents]. It still works when the clock is before the newest entry, so
// that a destination can be stopped.
func (l *Ledger) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if err := n.Check(); err != nil {
		return ledger.Note{}, err
	}
	var set ledger.Note
	err := l.writer.do(ctx, func(t *tx) (err error) {
		set, err = t.putNote(n)
		return err
	})
	if err != nil {
		return ledger.Note{}, err
	}
	return set, nil
}

// putNote writes a note. A removed one leaves its row, with its version, so that no later one of
// the same name is mistaken for it.
func (t *tx) putNote(n ledger.Note) (ledger.Note, error) {
	last, there := int64(0), int64(0)
	t.note.BindText(1, n.Name)
	err := each(t.path, t.note, func() error {
		if last = t.note.ColumnInt64(0); t.note.ColumnInt64(1) > 0 {
			there = last
		}
		return nil
	})
	if err != nil {
		return ledger.Note{}, err
	}
	if n.Version != there {
		return ledger.Note{}, fmt.Errorf("%w: note %q has version %d, not %d", ledger.ErrStale, n.Name, there, n.Version)
	}
	n.Version, n.At = last+1, t.stamp()
	t.wrote = true
	t.setNote.BindText(1, n.Name)
	t.setNote.BindInt64(2, n.Version)
	t.setNote.BindBytes(3, n.Value)
	bindTime(t.setNote, 4, n.At)
	if len(n.Value) == 0 {
		n.Version, n.Value = 0, nil
	}
	return n, exec(t.path, t.setNote)
}
