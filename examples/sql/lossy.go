package main

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"modernc.org/sqlite"
)

// lossy is a driver that commits and loses the configured number of answers.
type lossy struct {
	path         string
	toLose, lost atomic.Int64
}

func (l *lossy) lose(n int64) { l.toLose.Store(n) }

// open makes the file and its table.
func open(ctx context.Context, path string) (*stdsql.DB, *lossy, error) {
	l := &lossy{path: "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(5000)"}
	db := stdsql.OpenDB(l)
	_, err := db.ExecContext(ctx, "CREATE TABLE invoices (number TEXT PRIMARY KEY, cents INTEGER, note TEXT, stamp TEXT)")
	return db, l, err
}

// Connect opens a connection of SQLite's own driver.
func (l *lossy) Connect(context.Context) (driver.Conn, error) {
	c, err := (&sqlite.Driver{}).Open(l.path)
	if err != nil {
		return nil, err
	}
	return conn{c.(sqliteConn), l}, nil
}

// Driver is SQLite's.
func (l *lossy) Driver() driver.Driver { return &sqlite.Driver{} }

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type conn struct {
	sqliteConn
	l *lossy
}

// BeginTx begins a transaction whose COMMIT may go unanswered.
func (c conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	t, err := c.sqliteConn.BeginTx(ctx, o)
	return tx{t, c.l}, err
}

type tx struct {
	driver.Tx
	l *lossy
}

// Commit commits, and reports a broken connection.
func (t tx) Commit() error {
	err := t.Tx.Commit()
	if err == nil && t.l.toLose.Add(-1) >= 0 {
		t.l.lost.Add(1)
		return errors.New("the connection broke before the answer to COMMIT came")
	}
	return err
}
