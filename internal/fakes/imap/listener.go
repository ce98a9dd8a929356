package imap

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Dialer connects to one listener.
type Dialer func(ctx context.Context) (net.Conn, error)

// DialerOf connects to a listener on this machine or in this process.
func DialerOf(ln net.Listener) Dialer {
	if p, ok := ln.(*pipes); ok {
		return p.dial
	}
	return TCPDialer(ln.Addr().String())
}

// TCPDialer connects to an address.
func TCPDialer(addr string) Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

// Listen listens on a free loopback port, or for connections that never leave the process.
func Listen(inProcess bool) (net.Listener, error) {
	if inProcess {
		return newPipes(), nil
	}
	return new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

// Proxy accepts the clients of a fake and connects each to a server without faults.
type Proxy struct {
	*Switches

	ln      net.Listener
	backend Dialer
	busy    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

// NewProxy makes one; secured is nil for no TLS.
func NewProxy(s *Switches, inProcess bool, secured *tls.Config, backend Dialer) (*Proxy, error) {
	ln, err := Listen(inProcess)
	if err != nil {
		return nil, err
	}
	if secured != nil {
		ln = tls.NewListener(ln, secured)
	}
	return &Proxy{Switches: s, ln: ln, backend: backend, conns: map[net.Conn]bool{}}, nil
}

// Serve serves each client, with its connection to the backend, in a goroutine.
func (p *Proxy) Serve(serve func(client, backend net.Conn)) {
	p.busy.Go(func() {
		for {
			client, err := p.ln.Accept()
			if err != nil {
				return // closed
			}
			if p.Shows(fault.Unreachable) {
				_ = client.Close()
				continue
			}
			p.busy.Go(func() { p.connect(client, serve) })
		}
	})
}

func (p *Proxy) connect(client net.Conn, serve func(client, backend net.Conn)) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	if secured, ok := client.(*tls.Conn); ok && secured.HandshakeContext(context.Background()) != nil {
		return
	}
	backend, err := p.backend(context.Background())
	if err != nil || !p.keep(backend) {
		return
	}
	defer p.drop(backend)
	serve(client, backend)
}

// Addr is the host and port it listens on.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Dial connects to it as a client, wherever it listens: for connectors with a dial option.
func (p *Proxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return DialerOf(p.ln)(ctx)
}

// Cut closes the listener and all connections. Wait waits for what they served.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	return p.ln.Close()
}

// Wait waits until no client is served.
func (p *Proxy) Wait() { p.busy.Wait() }

// Ended reports whether it was cut.
func (p *Proxy) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// keep remembers a connection for Cut. After Cut it closes the connection and returns false.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
