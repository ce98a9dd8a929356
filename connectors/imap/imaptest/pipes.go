package imaptest

import (
	"context"
	"net"
	"sync"
)

// dialer connects to one listener.
type dialer func(ctx context.Context) (net.Conn, error)

func dialerOf(ln net.Listener) dialer {
	if p, ok := ln.(*pipes); ok {
		return p.dial
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
		return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, nil
	}
	return listen()
}

// pipes is a listener whose connections never leave the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

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

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements [net.Listener]. Nobody can dial it.
func (p *pipes) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

// Network implements [net.Addr].
func (nowhere) Network() string { return "pipe" }

func (nowhere) String() string { return "127.0.0.1:0" }
