package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// Notes implements [ledger.Documents].
func (l *Ledger) Notes(ctx context.Context, prefix string) (notes []ledger.Note, now time.Time, err error) {
	err = l.read(ctx, l.sql.Text("notes"), []any{prefix}, func(rows pgx.Rows) error {
		notes = nil
		var s state
		for rows.Next() {
			var n ledger.Note
			var ns int64
			if err := rows.Scan(append(s.dest(), &n.Name, &n.Version, &n.Value, &ns)...); err != nil {
				return err
			}
			if n.Name != "" {
				n.At = at(ns)
				notes = append(notes, n)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		now = at(s.now)
		return l.usable(s)
	})
	return notes, now, err
}

// SetNote implements [ledger.Documents]. It still works when the clock is before the newest entry, so
// that a destination can be stopped.
func (l *Ledger) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if err := n.Check(); err != nil {
		return ledger.Note{}, err
	}
	if n.Value == nil {
		n.Value = []byte{}
	}
	statement, args := "update_note", []any{l.version, n.Name, n.Value, n.Version}
	if n.Version == 0 {
		statement, args = "insert_note", args[:3]
	}
	for try := 0; ; try++ {
		set, err := l.putNote(ctx, statement, args)
		switch {
		case l.repeat(ctx, try, &err):
			continue
		case err != nil:
			return ledger.Note{}, err
		case set.Version == 0:
			return ledger.Note{}, fmt.Errorf("%w: note %q no longer has version %d", ledger.ErrStale, n.Name, n.Version)
		}
		set.Name, set.Value = n.Name, n.Value
		if len(n.Value) == 0 {
			set.Version, set.Value = 0, nil
		}
		return set, nil
	}
}

// putNote runs a statement that changes a note, and returns its new version, 0 for none. It is
// not retried on another connection: it may have been applied.
func (l *Ledger) putNote(ctx context.Context, statement string, args []any) (set ledger.Note, err error) {
	err = l.change(ctx, statement, args, func(rows pgx.Rows) error {
		var s state
		var ns int64
		for rows.Next() {
			if err := rows.Scan(append(s.dest(), &set.Version, &ns)...); err != nil {
				return err
			}
		}
		set.At = at(ns)
		if err := rows.Err(); err != nil {
			return err
		}
		return l.usable(s)
	})
	return set, l.broken(err)
}
