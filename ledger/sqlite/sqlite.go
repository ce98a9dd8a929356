// Package sqlite keeps a ledger in one SQLite file: the embedded default.
//
// [Open] returns a [Ledger] that any number of goroutines may use. Any number of processes of one
// machine may open the same file. The changes of a call are on disk when the call returns
// (write-ahead log, a full sync for each commit). Within a process one goroutine writes: it makes
// one transaction of all calls that queued up during the previous commit, so that concurrent
// callers share a sync and a single caller does not wait. Reads run in parallel on their own
// connections. So do checkpoints, which keep the log at some tens of megabytes.
//
// The driver does not interpret events: it stores the results of the pure functions of package
// ledger. It does not work on network file systems, whose locks are unreliable, nor across
// machines: several hosts need package postgres.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	// maxBusy is how long a transaction waits for another process that holds the write lock. A
	// batch takes milliseconds. A process that holds it for seconds is stopped or stuck, and
	// callers must get that error.
	maxBusy = 10 * time.Second

	// The pause between two attempts at the write lock grows from the shortest to the longest,
	// with jitter, so that several processes alternate.
	minBusyPause = 200 * time.Microsecond
	maxBusyPause = 20 * time.Millisecond

	// readers is how many connections serve Get, Events and List. Reads are short and bound by
	// the processor; more than a few only wait for each other.
	readers = 4

	// fileMode is that of a new ledger file, for its owner only, since intents and evidence are
	// confidential.
	fileMode = 0o600

	// defaultWindow is that of the engine: longer than orchestrators repeat a step, and about as
	// long as destinations remember a key.
	defaultWindow = 24 * time.Hour
)

// Options configures a ledger. Nil and the zero value are valid.
type Options struct {
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// ResetClock accepts the present time although the newest entry is later: the remedy when a
	// clock was once far ahead. Existing leases and due times are unchanged. Default false.
	ResetClock bool
	// Window is how far back an equal idempotency key of another write blocks an enqueued one;
	// below zero for ever. It should equal that of the engines on the ledger. Default 24 hours.
	Window time.Duration
	// Keys seal the digest key of the ledger ([ledger.KeyDigests]): a redact.Vault with the
	// redaction keys. A digest key that is in the clear, or sealed under another key than the
	// first, is sealed when the ledger is opened. Default: a new digest key is in the clear, and
	// a ledger with a sealed one can only be read.
	Keys ledger.Keys
}

// Ledger is a ledger in an SQLite file. It implements [ledger.Ledger].
type Ledger struct {
	path    string
	now     func() time.Time
	writer  *writer
	readers *sqlitex.Pool
	close   func() error // once
	keeping ledger.Keeping
}

// KeepWith implements [ledger.Ledger].
func (l *Ledger) KeepWith(keep func(ledger.Record) (ledger.Record, error)) {
	l.keeping.KeepWith(keep)
	l.writer.tx.noKey.over.Store(true)
}

// KeepByDefault implements [ledger.Ledger].
func (l *Ledger) KeepByDefault(keep func(ledger.Record) (ledger.Record, error)) {
	l.keeping.KeepByDefault(keep)
	l.writer.tx.noKey.over.Store(true)
}

// KeyDigests implements [ledger.Maintenance].
func (l *Ledger) KeyDigests() ledger.KeyDigests { return l.keeping.Digests }

var _ ledger.Ledger = (*Ledger)(nil)

// OpenDB is Open for the file of the main database that db has open, which then holds the caller's
// tables and those of the ledger, and from then on has a write-ahead log. The ledger has connections of
// its own, and Close leaves db open. Both write to one file: db needs a busy timeout, and while a
// transaction of it has written and is not committed, calls of the ledger wait, and fail after some 10 s.
// The driver of db must be modernc.org/sqlite: two copies of SQLite in one process break each other's
// locks.
func OpenDB(ctx context.Context, db *sql.DB, o *Options) (*Ledger, error) {
	const driver = "modernc.org/sqlite"
	if t := reflect.TypeOf(db.Driver()); t.Kind() != reflect.Pointer || t.Elem().PkgPath() != driver {
		return nil, fmt.Errorf("%w: the driver of the database is a %v; want that of %s, or Open with the file in a process without another copy of SQLite", ledger.ErrUnavailable, t, driver)
	}
	var path string
	if err := db.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path); err != nil {
		return nil, fmt.Errorf("%w: which file the database has open: %w", ledger.ErrUnavailable, err)
	}
	if path == "" {
		return nil, fmt.Errorf("%w: the database is in memory or temporary; want one in a file", ledger.ErrUnavailable)
	}
	return Open(ctx, path, o)
}

// Open opens the ledger in the file at path, and creates or upgrades it. The
// directory must exist. It fails with [ledger.ErrUnavailable],
// [ledger.ErrCorrupt], or [ledger.ErrVersion] when the file was written by a
// newer version. The caller must Close it.
func Open(ctx context.Context, path string, o *Options) (*Ledger, error) {
	if o == nil {
		o = &Options{}
	}
	if err := create(path); err != nil {
		return nil, unavailable(path, err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, unavailable(path, err)
	}
	l := &Ledger{path: path, now: o.Now}
	if l.now == nil {
		l.now = time.Now
	}
	if err := oneName(path); err != nil {
		return nil, unavailable(path, err)
	}
	conn, err := connect(ctx, path)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), explain(path, err))
	}
	if l.keeping.Digests, err = prepare(ctx, conn, path, o, l.now); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	conn.SetInterrupt(nil)
	if l.writer, err = newWriter(conn, path, l.now); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.writer.tx.keeping = &l.keeping
	l.writer.tx.window = max(cmp.Or(o.Window, defaultWindow), 0)
	l.readers, err = sqlitex.NewPool(path, sqlitex.PoolOptions{
		Flags: sqlite.OpenReadWrite, PoolSize: readers, PrepareConn: readOnly,
	})
	if err != nil {
		return nil, errors.Join(explain(path, err), l.writer.close())
	}
	l.close = sync.OnceValue(func() error { return errors.Join(l.readers.Close(), l.writer.close()) })
	return l, nil
}

// Close closes the ledger after all calls in progress. Later calls fail with
// [ledger.ErrUnavailable], except another Close.
func (l *Ledger) Close() error { return l.close() }

// Stats counts since Open, for this process only.
type Stats struct {
	Commits    int64 // transactions made durable, each with one sync of the log
	Operations int64 // calls that changed something
}

// Stats returns the counts so far.
func (l *Ledger) Stats() Stats {
	return Stats{Commits: l.writer.commits.Load(), Operations: l.writer.operations.Load()}
}

// create creates an empty file that only its owner can read. It does not open an existing file:
// closing it again would drop the locks that other connections of this process hold on it.
func create(path string) error {
	if path == "" || path == ":memory:" {
		return fmt.Errorf("the path %q names no file; a ledger in memory is ledger.NewMemory", path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s does not exist", filepath.Dir(path))
	case err != nil:
		return err
	}
	return f.Close()
}

// connect opens the connection that writes. Until the context ends it waits for other processes
// that are starting on the same file.
func connect(ctx context.Context, path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(ctx.Done())
	conn.SetBusyTimeout(maxBusy)
	for _, pragma := range []string{
		"PRAGMA journal_mode = wal", "PRAGMA synchronous = full", "PRAGMA foreign_keys = on", "PRAGMA wal_autocheckpoint = 0",
	} {
		err := insist(ctx, func() error { return sqlitex.ExecuteTransient(conn, pragma, nil) })
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// insist repeats a call that found the file locked. SQLite's busy timeout does not cover the
// change to the write-ahead log while another process makes it: that process holds the lock that
// we need, and SQLite fails at once.
func insist(ctx context.Context, do func() error) error {
	began := time.Now()
	for pause := minBusyPause; ; pause = min(2*pause, maxBusyPause) {
		err := do()
		if !locked(err) || time.Since(began) >= maxBusy {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// readOnly restricts a connection of the pool to reading.
func readOnly(conn *sqlite.Conn) error {
	conn.SetBusyTimeout(maxBusy)
	return sqlitex.ExecuteTransient(conn, "PRAGMA query_only = on", nil)
}
