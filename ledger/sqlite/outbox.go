package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

const (
	// maxAdmit is how many entries of the outbox one operation takes in. Other callers wait for
	// it, a tenth of a second on a slow processor.
	maxAdmit = 256

	// noKeyPause is for how long outbox entries whose key is not available are not read again:
	// thousands of them cost half a second with each claim.
	noKeyPause = 10 * time.Second
)

// Outbox is where callers enqueue writes in transactions of their own. The zero value is valid.
type Outbox struct {
	// Keys seal waiting entries, and open the digest key of the ledger: a redact.Vault with the
	// keys of the workers. Default: entries are not sealed, an intent that marks fields as
	// sensitive is refused, and so is every one in a ledger whose digest key is sealed.
	Keys ledger.Keys
}

// Enqueue is [Outbox.Enqueue] of the zero Outbox.
func Enqueue(ctx context.Context, tx *sql.Tx, w intent.WriteIntent) (ledger.ID, error) {
	return Outbox{}.Enqueue(ctx, tx, w)
}

// Enqueue puts a write into the outbox of the ledger as part of a transaction of the caller: it
// is executed if and only if the transaction commits. A worker of the ledger takes it in from
// there; writes about one record run in the order in which they were enqueued. Get, and an engine
// that is asked for the same intent, know it from the commit on.
//
// The main database of the connection must be the ledger's file, which also holds the caller's
// tables. SQLite does not commit over several attached files as one step in WAL mode, so a ledger
// that is merely attached is not read. [Open] creates the tables. In the process that has the
// ledger open as well the driver must be modernc.org/sqlite: two copies of SQLite in one process
// break each other's locks. In other processes any driver will do.
//
// SQLite has one writer at a time. A transaction that reads before it enqueues should begin
// immediate ("_txlock=immediate"), and a connection should wait for others
// ("_pragma=busy_timeout(10000)"); otherwise either fails at once when another connection writes.
// While the transaction is open no other connection can write to the file, the ledger's included:
// keep it short, and make no remote calls in it.
//
// It fails with [intent.ErrInvalid], which names the field, before it queries the database, with
// [ledger.ErrNoKey], and with [ledger.ErrFull]; then nothing was enqueued, and the transaction
// can continue. Other errors are the driver's, and the transaction must be rolled back.
func (o Outbox) Enqueue(ctx context.Context, tx *sql.Tx, w intent.WriteIntent) (ledger.ID, error) {
	rec, err := ledger.ToEnqueue(w, o.Keys, func() (kept string, err error) {
		// A transaction that read first would be refused while another one writes: it waits here.
		if _, err = tx.ExecContext(ctx, statements.Text("lock_outbox")); err == nil {
			err = tx.QueryRowContext(ctx, statements.Text("digest_key")).Scan(&kept)
		}
		return kept, hinted(err)
	})
	if err != nil {
		return "", err
	}
	done, err := tx.ExecContext(ctx, statements.Text("enqueue"), string(rec.ID), rec.Tenant, rec.KeyDigest, string(rec.Intent), nanos(time.Now()))
	if err != nil {
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, hinted(err))
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

// hinted returns an error of a caller's connection, and explains a missing table.
func hinted(err error) error {
	if err == nil || !strings.Contains(err.Error(), "no such") {
		return err
	}
	return fmt.Errorf("%w: the main database of the connection must be the file of a ledger, which sqlite.Open makes and upgrades", err)
}

// entry is one row of the outbox with its number.
type entry struct {
	ledger.Entry
	n int64
}

// inOrder runs an operation when nothing that it must not overtake is left in the outbox. Line
// returns the queue whose entries are to be taken in first, or "".
func (l *Ledger) inOrder(ctx context.Context, queue func(*tx) (string, error), run func(*tx) error) error {
	for {
		var waiting string
		err := l.writer.do(ctx, func(t *tx) (err error) {
			if waiting, err = queue(t); err != nil || waiting != "" {
				return err
			}
			return run(t)
		})
		if err != nil || waiting == "" {
			return err
		}
		if err := l.admitQueue(ctx, waiting); err != nil {
			return err
		}
	}
}

// admitQueue takes in what was enqueued about one record. It is an operation of its own: the one
// that follows may be refused, and must not have changed anything then.
func (l *Ledger) admitQueue(ctx context.Context, keyDigest string) error {
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
			taken, err := t.admit(entries, map[string]bool{})
			if errors.Is(err, ledger.ErrNoKey) && taken > 0 { // earlier entries are to stay taken in
				left, err = true, nil
			}
			return err
		})
		if err != nil || !left {
			return err
		}
	}
}

// withoutKey is how far the outbox was read past entries whose key is not available.
type withoutKey struct {
	after   int64           // all up to this number wait
	records map[string]bool // their key digests, behind which others wait
	until   time.Time       // then it is read from its beginning again
	over    atomic.Bool     // read from its beginning at once
}

// admitSome takes in the oldest entries of the outbox, whatever they are about: the order of all
// is also that of each queue, and no other connection writes meanwhile. It reports whether there
// may be more.
func (t *tx) admitSome() (more bool, err error) {
	waiting := &t.noKey
	if now := time.Now(); waiting.over.Swap(false) || !now.Before(waiting.until) {
		waiting.after, waiting.records, waiting.until = 0, map[string]bool{}, now.Add(noKeyPause)
	}
	for {
		entries, err := t.entries(t.oldestEntries, func(s *sqlite.Stmt) {
			s.BindInt64(1, maxAdmit)
			s.BindInt64(2, waiting.after)
		})
		if err != nil {
			return false, err
		}
		taken, err := t.admit(entries, waiting.records)
		switch {
		case errors.Is(err, ledger.ErrVersion): // for a newer program
			return false, nil
		case err != nil && !errors.Is(err, ledger.ErrNoKey):
			return false, err
		case taken > 0 || len(entries) < maxAdmit:
			return len(entries) == maxAdmit, nil
		}
		waiting.after = entries[len(entries)-1].n
	}
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

// admit makes writes of entries, in their order: queued, without a lease. It counts those that it
// took in or refused. An entry whose key is not available waits, and so do all entries of its
// record behind it, which are skipped: then it fails with [ledger.ErrNoKey]. Waiting are the key
// digests of those records.
func (t *tx) admit(entries []entry, waiting map[string]bool) (taken int, err error) {
	changed := t.wrote
	defer func() { t.wrote = t.wrote || changed }()
	var noKey error
	for _, e := range entries {
		if waiting[e.KeyDigest] {
			continue
		}
		t.wrote = false
		res, err := t.keeping.Reservation(e.Entry, t.window)
		if err == nil {
			_, _, err = t.reserve(res)
			if errors.Is(err, ledger.ErrCorrupt) && unreadable(err) == "" { // the file, not a row
				return taken, err
			}
		}
		if errors.Is(err, ledger.ErrNoKey) && !t.wrote {
			waiting[e.KeyDigest], noKey = true, err
			continue
		}
		reason := ledger.OutboxRefusal(err)
		if err != nil && (t.wrote || reason == "") {
			return taken, err
		}
		if err := t.leave(e, reason); err != nil {
			return taken, err
		}
		changed = true
		taken++
	}
	return taken, noKey
}

// leave removes an entry from the outbox, or records why it stays.
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

// enqueued returns the queue of a record if the outbox has an entry about it.
func (t *tx) enqueued(keyDigest string) (queue string, err error) {
	if keyDigest == "" {
		return "", nil
	}
	found, err := t.entries(t.entriesOf, func(s *sqlite.Stmt) {
		s.BindText(1, keyDigest)
		s.BindInt64(2, 1)
	})
	if len(found) > 0 {
		queue = keyDigest
	}
	return queue, err
}

// enqueuedAs returns the queue of a write that is in the outbox.
func (t *tx) enqueuedAs(id ledger.ID) (queue string, err error) {
	t.entry.BindText(1, string(id))
	err = each(t.path, t.entry, func() error {
		if t.entry.ColumnIsNull(1) {
			queue = t.entry.ColumnText(0)
		}
		return nil
	})
	return queue, err
}

// enqueuedError means that a write is not in the ledger proper yet.
type enqueuedError struct{ keyDigest string }

func (e *enqueuedError) Error() string { return "still in the outbox" }
func (e *enqueuedError) Unwrap() error { return ledger.ErrNotFound }

// missed returns the error for a write that was not found, in the transaction that did not find
// it.
func (l *Ledger) missed(conn *sqlite.Conn, tenant string, id ledger.ID) error {
	s, err := l.statement(conn, "entry")
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
