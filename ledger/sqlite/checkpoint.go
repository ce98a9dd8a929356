package sqlite

import (
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	// maxLog is how many pages (of 4 KiB) the log may hold before they are moved into the file.
	// More would slow down a start after a crash, and reads search more of it; fewer would move
	// pages again and again that the next writes change anyway.
	maxLog = 2000

	// hardLog is how many pages the log may hold before callers must wait until they are moved:
	// when the disk cannot keep up, the log must not fill it.
	hardLog = 4 * maxLog
)

// checkpointer moves the contents of the log (-wal) into the file, so that the log does not grow
// without bound. It runs in parallel with the writer, on its own connection. While the writer
// continues, some of the log always remains, and a log restarts only when nothing remains. So the
// writer is asked to move the rest, which is little, between two of its transactions.
//
// The contents of the log are durable all the same. A failed checkpoint is repeated with the next
// one, and affects only the size of the log. A very long read (a backup) blocks the log for as
// long.
type checkpointer struct {
	wake  chan struct{} // of capacity 1: the log has grown
	ended chan struct{}
	rest  atomic.Bool // the writer should move the rest

	mu   sync.Mutex // held while a checkpoint runs
	conn *sqlite.Conn
}

func newCheckpointer(path string) (*checkpointer, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, explain(path, err)
	}
	c := &checkpointer{conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go c.loop()
	return c, nil
}

func (c *checkpointer) loop() {
	defer close(c.ended)
	for range c.wake {
		c.rest.Store(c.move(c.conn) == nil)
	}
}

// move moves what can be moved, on a connection.
func (c *checkpointer) move(conn *sqlite.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := frames(conn, "PASSIVE")
	return err
}

// tend keeps the log short. The writer calls it between two transactions.
func (c *checkpointer) tend(conn *sqlite.Conn) {
	left, err := frames(conn, "NOOP")
	switch {
	case err != nil || left < maxLog:
	case left >= hardLog:
		_ = c.move(conn) // and wait for it; a failure is retried at the next check
	default:
		c.nudge()
	}
}

// nudge requests a check of the log. It never waits.
func (c *checkpointer) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) close() error {
	close(c.wake)
	<-c.ended
	return c.conn.Close()
}

// frames runs a checkpoint of a mode (NOOP does nothing), and returns how many pages in the log
// are still to be moved.
func frames(conn *sqlite.Conn, mode string) (left int, err error) {
	err = sqlitex.Execute(conn, "PRAGMA wal_checkpoint("+mode+")", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			left = s.ColumnInt(1) - s.ColumnInt(2)
			return nil
		},
	})
	return left, err
}
