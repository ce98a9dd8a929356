package imap

import (
	"fmt"
	"net"
	"sync/atomic"
)

// bounded is a connection on which the server may say only so much to each
// thing that the client says. go-imap reads whatever comes into memory.
type bounded struct {
	net.Conn
	said atomic.Int64 // since the client last spoke
}

// Write begins a new count.
func (b *bounded) Write(p []byte) (int, error) {
	b.said.Store(0)
	return b.Conn.Write(p)
}

// Read fails, with an error that wraps [ErrUnreadable], past maxAnswer bytes.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if b.said.Add(int64(n)) > maxAnswer {
		_ = b.Close() // there is nothing left to be said on it
		return 0, fmt.Errorf("%w: more than %d bytes", ErrUnreadable, maxAnswer)
	}
	return n, err
}
