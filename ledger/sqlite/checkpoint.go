package sqlite

import (
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// checkpointer moves what is in the log (-wal) into the file, so that the log
// does not grow without bound. It does so beside the writer, on a connection
// of its own. While the writer goes on, some of the log always remains, and a
// log begins anew only when nothing remains: so the writer is asked to move
// the rest, which is little, between two of its transactions.
//
// What is in the log is durable all the same. A checkpoint that fails is tried
// again with the next one, and hurts nobody but the size of the log. Somebody
// who reads for very long (a backup) holds the log up for as long.
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

// tend keeps the log short. It is for the writer, between two transactions.
func (c *checkpointer) tend(conn *sqlite.Conn) {
	left, err := frames(conn, "NOOP")
	switch {
	case err != nil || left < maxLog:
	case left >= hardLog:
		_ = c.move(conn) // and wait for it; what fails is tried again with the next look
	default:
		c.nudge()
	}
}

// nudge asks for a look at the log. It never waits.
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

// frames runs a checkpoint of a mode, where NOOP does nothing, and returns how
// many pages in the log are still to be moved.
func frames(conn *sqlite.Conn, mode string) (left int, err error) {
	err = sqlitex.Execute(conn, "PRAGMA wal_checkpoint("+mode+")", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			left = s.ColumnInt(1) - s.ColumnInt(2)
			return nil
		},
	})
	return left, err
}
