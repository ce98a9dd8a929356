package sqlite

import (
	"context"
	"errors"
	"testing/fstest"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Path is the file of the ledger.
func (l *Ledger) Path() string { return l.path }

// Statements are the SQL texts by name.
var Statements = statements

// MaxPruned is how many writes one transaction reads to prune them, and MaxAdmit how many entries
// of the outbox one operation takes in.
const (
	MaxPruned = maxPruned
	MaxAdmit  = maxAdmit
)

// HardLog is the bound of the log, in pages, and CheckEvery after how many operations it is
// checked.
const (
	HardLog    = hardLog
	CheckEvery = checkEvery
)

// Upgrade opens a file as a program with one more migration does.
func Upgrade(path, migration string) error {
	files := fstest.MapFS{"migrations/9999_test.sql": {Data: []byte(migration)}}
	for _, name := range versions(migrations) {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	conn, err := connect(context.Background(), path)
	if err != nil {
		return err
	}
	_, err = migrate(conn, path, files, &Options{}, time.Now)
	return errors.Join(err, conn.Close())
}

// Change runs SQL as an operation of its own, which is committed.
func (l *Ledger) Change(sql string) error {
	return l.writer.do(context.Background(), func(t *tx) error {
		t.wrote = true
		clear(t.remembered)
		return sqlitex.ExecuteScript(t.conn, sql, nil)
	})
}

// Write runs SQL on the connection that writes, as an operation of its own that does not count:
// its changes are rolled back.
func (l *Ledger) Write(sql string) error {
	return l.writer.do(context.Background(), func(t *tx) error { return sqlitex.ExecuteScript(t.conn, sql, nil) })
}

// Read runs a query on a connection that reads and returns the first column.
func (l *Ledger) Read(query string) (values []string, err error) {
	err = l.read(context.Background(), func(conn *sqlite.Conn) error { return column(conn, query, &values) })
	return values, err
}

// WriterSays is Read on the connection that writes.
func (l *Ledger) WriterSays(query string) (values []string, err error) {
	err = l.writer.do(context.Background(), func(t *tx) error { return column(t.conn, query, &values) })
	return values, err
}

func column(conn *sqlite.Conn, query string, values *[]string) error {
	s, _, err := conn.PrepareTransient(query)
	if err != nil {
		return err
	}
	err = each("", s, func() error {
		*values = append(*values, s.ColumnText(s.ColumnCount()-1))
		return nil
	})
	return errors.Join(err, s.Finalize())
}

// Hold keeps the writer busy until the returned function is called. It returns
// when the writer is held.
func (l *Ledger) Hold() (release func()) {
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = l.writer.do(context.Background(), func(*tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func() { close(free); <-done }
}

// Recent returns the tickets of the runs that are kept for the sealer, and what they take.
func (l *Ledger) Recent() (tickets []int64, size int) { return l.writer.tx.recent.Tickets() }

// Spoil is an operation that ends the transaction it is part of, as SQLite itself does on a full
// disk.
func (l *Ledger) Spoil() error {
	return l.writer.do(context.Background(), func(t *tx) error {
		return sqlitex.ExecuteTransient(t.conn, "ROLLBACK", nil)
	})
}
