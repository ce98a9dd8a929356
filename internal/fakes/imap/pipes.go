package imap

import (
	"context"
	"net"
	"sync"
)

// pipes is a listener whose connections never leave the process, for servers in
// testing/synctest bubbles.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
}

// dial connects to it and waits for Accept. The error is [net.ErrClosed] once it
// is closed.
func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends it; connections that are open stay.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements [net.Listener]. It cannot be dialled.
func (p *pipes) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

// Network implements [net.Addr].
func (nowhere) Network() string { return "pipe" }

func (nowhere) String() string { return "127.0.0.1:0" }
