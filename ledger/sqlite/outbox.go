package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/enqueue.sql
var sqlEnqueue string

//go:embed sql/entries.sql
var sqlEntries string

//go:embed sql/entries_of.sql
var sqlEntriesOf string

//go:embed sql/entry.sql
var sqlEntry string

//go:embed sql/taken.sql
var sqlTaken string

//go:embed sql/refuse.sql
var sqlRefuse string

// Enqueue puts a write into the outbox of the ledger as part of a transaction
// of the caller: it will be done if the transaction commits, and never was if
// it does not. Whoever works on the ledger takes it in from there; writes about
// one record go in the order in which they were enqueued. Get, and an engine
// that is asked to do the same intent, know it from the commit on.
//
// The main database of the connection must be the ledger's file: the caller's
// tables stand beside the ledger's. Over several files that are attached to
// each other SQLite does not commit as one step in WAL mode, so that a ledger
// that is merely attached is not looked at. [Open] makes the tables. In the process that has
// the ledger open as well the driver must be modernc.org/sqlite: two copies of
// SQLite in one process undo each other's locks. Elsewhere any will do.
//
// SQLite has one writer at a time. A transaction that reads before it enqueues
// should begin immediate ("_txlock=immediate"), and a connection should wait
// for others ("_pragma=busy_timeout(10000)"); else either fails at once when
// somebody else writes. As long as the transaction is open nobody else writes
// to the file, the ledger included: keep it short, and call nobody in it.
//
// It fails with [intent.ErrInvalid], which names the field, before anything is
// asked of the database, and with [ledger.ErrFull]; then nothing was
// enqueued, and the transaction can go on. Other errors are the driver's, and
// the transaction is to be rolled back.
func Enqueue(ctx context.Context, tx *sql.Tx, w intent.WriteIntent) (ledger.ID, error) {
	rec, err := ledger.ToEnqueue(w)
	if err != nil {
		return "", err
	}
	done, err := tx.ExecContext(ctx, sqlEnqueue, string(rec.ID), rec.Tenant, rec.KeyDigest, string(rec.Intent), nanos(time.Now()))
	if err != nil {
		hint := ""
		if strings.Contains(err.Error(), "no such") {
			hint = ": the main database of the connection must be the file of a ledger, which sqlite.Open makes and upgrades"
		}
		return "", fmt.Errorf("enqueue write %s: %w%s", rec.ID, err, hint)
	}
	n, err := done.RowsAffected()
	switch {
	case err != nil:
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, err)
	case n == 0:
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, ledger.ErrFull)
	}
	return rec.ID, nil
}

// entry is one row of the outbox with its number.
type entry struct {
	ledger.Entry
	n int64
}

// inOrder runs an operation when nothing that it must not overtake is left in
// the outbox. Line names the line whose entries are to be taken in before, or
// "".
func (l *Ledger) inOrder(ctx context.Context, line func(*tx) (string, error), run func(*tx) error) error {
	for {
		var waiting string
		err := l.writer.do(ctx, func(t *tx) (err error) {
			if waiting, err = line(t); err != nil || waiting != "" {
				return err
			}
			return run(t)
		})
		if err != nil || waiting == "" {
			return err
		}
		if err := l.admitLine(ctx, waiting); err != nil {
			return err
		}
	}
}

// admitLine takes in what was enqueued about one record. It is an operation of
// its own: the one that follows may be refused, and must not have changed
// anything then.
func (l *Ledger) admitLine(ctx context.Context, keyDigest string) error {
	for {
		var left bool
		err := l.writer.do(ctx, func(t *tx) error {
			entries, err := t.entries(t.entriesOf, func(s *sqlite.Stmt) {
				s.BindText(1, keyDigest)
				s.BindInt64(2, maxAdmit)
			})
			left = len(entries) == maxAdmit
			if err != nil {
				return err
			}
			return t.admit(entries)
		})
		if err != nil || !left {
			return err
		}
	}
}

// admitSome takes in what has been in the outbox for longest, whatever it is
// about: the order of all is also that of each line, and this connection is
// the only one that writes meanwhile. It says whether there may be more.
func (t *tx) admitSome() (more bool, err error) {
	entries, err := t.entries(t.oldestEntries, func(s *sqlite.Stmt) { s.BindInt64(1, maxAdmit) })
	if err != nil {
		return false, err
	}
	err = t.admit(entries)
	if errors.Is(err, ledger.ErrVersion) { // for a newer program
		return false, nil
	}
	return len(entries) == maxAdmit, err
}

func (t *tx) entries(s *sqlite.Stmt, bind func(*sqlite.Stmt)) (found []entry, err error) {
	bind(s)
	err = each(t.path, s, func() error {
		found = append(found, entry{n: s.ColumnInt64(0), Entry: ledger.Entry{
			ID: ledger.ID(s.ColumnText(1)), Tenant: s.ColumnText(2), KeyDigest: s.ColumnText(3), Intent: text(s, 4),
		}})
		return nil
	})
	return found, err
}

// admit makes writes of entries, in their order: queued, in nobody's hands.
func (t *tx) admit(entries []entry) error {
	changed := t.wrote
	defer func() { t.wrote = t.wrote || changed }()
	for _, e := range entries {
		t.wrote = false
		res, err := t.keeping.Reservation(e.Entry, t.window)
		if err == nil {
			_, _, err = t.reserve(res)
			if errors.Is(err, ledger.ErrCorrupt) && unreadable(err) == "" { // not a row, but the file
				return err
			}
		}
		reason := ledger.Refusal(err)
		if err != nil && (t.wrote || reason == "") {
			return err
		}
		if err := t.leave(e, reason); err != nil {
			return err
		}
		changed = true
	}
	return nil
}

// leave ends the wait of an entry in the outbox, or says why it stays.
func (t *tx) leave(e entry, reason string) error {
	t.wrote = true
	s := t.taken
	if reason != "" {
		s = t.refuse
		s.BindText(2, reason)
		bindTime(s, 3, t.stamp())
	}
	s.BindInt64(1, e.n)
	return exec(t.path, s)
}

// enqueued is the line, when something about its record is in the outbox.
func (t *tx) enqueued(keyDigest string) (line string, err error) {
	if keyDigest == "" {
		return "", nil
	}
	found, err := t.entries(t.entriesOf, func(s *sqlite.Stmt) {
		s.BindText(1, keyDigest)
		s.BindInt64(2, 1)
	})
	if len(found) > 0 {
		line = keyDigest
	}
	return line, err
}

// enqueuedAs is the line of a write that is in the outbox.
func (t *tx) enqueuedAs(id ledger.ID) (line string, err error) {
	t.entry.BindText(1, string(id))
	err = each(t.path, t.entry, func() error {
		if t.entry.ColumnIsNull(1) {
			line = t.entry.ColumnText(0)
		}
		return nil
	})
	return line, err
}

// enqueuedError says that a write is not in the ledger proper yet.
type enqueuedError struct{ keyDigest string }

func (e *enqueuedError) Error() string { return "still in the outbox" }
func (e *enqueuedError) Unwrap() error { return ledger.ErrNotFound }

// missed is what to say about a write that was not found, in the transaction
// that has not found it.
func (l *Ledger) missed(conn *sqlite.Conn, tenant string, id ledger.ID) error {
	s, err := l.statement(conn, sqlEntry)
	if err != nil {
		return err
	}
	missing := fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
	s.BindText(1, string(id))
	err = each(l.path, s, func() error {
		switch {
		case s.ColumnText(2) != tenant:
		case s.ColumnIsNull(1):
			missing = &enqueuedError{s.ColumnText(0)}
		default:
			missing = &ledger.RefusedError{ID: id, Reason: s.ColumnText(1)}
		}
		return nil
	})
	return errors.Join(err, missing)
}
