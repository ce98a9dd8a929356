// Package sqlite keeps a ledger in one SQLite file: the embedded default.
//
// [Open] gives a [Ledger] that may be used by any number of goroutines, and
// any number of processes of one machine may open the same file. What a call
// changed is on disk when the call returns (write-ahead log, a full sync for
// each commit). Within a process one goroutine writes: it takes whatever has
// queued up while the commit before ran and makes one transaction of it, so
// that concurrent callers share a sync and a single caller waits for nobody.
// Reads run beside it on connections of their own, and so does the moving of
// the log into the file, which keeps the log at some tens of megabytes.
//
// The driver does not know what events mean: it stores what the pure functions
// of package ledger say. It does not work on network file systems, whose locks
// do not hold, and does not know machines: several hosts need package
// postgres.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Options of a ledger. Nil and the zero value work.
type Options struct {
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// ResetClock accepts the present time although the newest entry is later:
	// the way out when a clock once stood far ahead. Leases and due times that
	// were given then stay as they are. Default false.
	ResetClock bool
	// Window is how far back an equal idempotency key of another write blocks
	// one that was enqueued; below zero for ever. It should be that of the
	// engines on the ledger. Default 24 hours.
	Window time.Duration
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

// KeepWith implements [ledger.Keeper].
func (l *Ledger) KeepWith(keep func(ledger.Record) (ledger.Record, error)) { l.keeping.KeepWith(keep) }

// KeepUnlessTold implements [ledger.Keeper].
func (l *Ledger) KeepUnlessTold(keep func(ledger.Record) (ledger.Record, error)) {
	l.keeping.KeepUnlessTold(keep)
}

var _ ledger.Ledger = (*Ledger)(nil)

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
	if err := prepare(ctx, conn, path, o.ResetClock, l.now); err != nil {
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

// Close ends the ledger after whatever was begun. Calls that come later fail
// with [ledger.ErrUnavailable], but for another Close.
func (l *Ledger) Close() error { return l.close() }

// Stats counts since Open, for this process alone.
type Stats struct {
	Commits    int64 // transactions made durable, each with one sync of the log
	Operations int64 // calls that changed something
}

// Stats returns the counts so far.
func (l *Ledger) Stats() Stats {
	return Stats{Commits: l.writer.commits.Load(), Operations: l.writer.operations.Load()}
}

// create makes an empty file that only its owner can read. A file that exists
// is not even opened: closing it again would drop the locks that other
// connections of this process hold on it.
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

// connect opens the connection that writes. Until the context ends it waits
// for other processes that are starting on the same file.
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

// insist repeats what found the file locked. SQLite's own patience does not
// cover the change to the write-ahead log while another process makes it: that
// one holds the lock we would need, and we are told so at once.
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

// readOnly makes a connection of the pool fit for reading, and nothing else.
func readOnly(conn *sqlite.Conn) error {
	conn.SetBusyTimeout(maxBusy)
	return sqlitex.ExecuteTransient(conn, "PRAGMA query_only = on", nil)
}
