package imap

import (
	"context"
	"net"
	"sync"
)

// dialer connects to one listener.
type dialer func(ctx context.Context) (net.Conn, error)

func dialerOf(ln net.Listener) dialer {
	if p, ok := ln.(*Pipes); ok {
		return p.Dial
	}
	return tcpDialer(ln.Addr().String())
}

func tcpDialer(addr string) dialer {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

func (o Options) listen() (net.Listener, error) {
	if o.InProcess {
		return NewPipes(), nil
	}
	return listen()
}

// Pipes is a listener whose connections never leave the process, for servers in
// testing/synctest bubbles. Make it with [NewPipes].
type Pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipes makes one. Close it.
func NewPipes() *Pipes {
	return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Dial connects to it and waits for Accept. The error is [net.ErrClosed] once it
// is closed.
func (p *Pipes) Dial(ctx context.Context) (net.Conn, error) {
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
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends it; connections that are open stay.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements [net.Listener]. It cannot be dialled.
func (p *Pipes) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

// Network implements [net.Addr].
func (nowhere) Network() string { return "pipe" }

func (nowhere) String() string { return "127.0.0.1:0" }
