// Package mailconn opens connections to mail servers, for IMAP and for SMTP: a limited number at
// a time, protected by TLS, closed when their context ends, and limited in how much the server
// may send for each command.
//
// It knows neither protocol: the greeting, the login and what a refusal means are the
// connector's.
package mailconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"sync/atomic"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailtext"
)

// Security is how a connection is protected.
type Security string

// The kinds of protection. The zero value is TLS from the first byte.
const (
	TLS      Security = ""         // implicit TLS
	StartTLS Security = "starttls" // plain at first; nothing secret is sent before the change to TLS
	Insecure Security = "insecure" // no protection; loopback addresses only
)

// Server is where a server is and how it is reached, as the options of both connectors have it.
type Server struct {
	Addr      string
	Security  Security
	TLSConfig *tls.Config
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	// Limit is how many bytes the server may send per command. Beyond it reads fail with an
	// error that wraps TooMuch.
	Limit   int64
	TooMuch error
	// Connections is how many connections are open at a time.
	Connections int
}

// Check returns the first option that cannot be used. Secret is what would cross the network in
// the clear without protection.
func (s Server) Check(secret string) error {
	host, port, err := net.SplitHostPort(s.Addr)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("the option Addr is %q; want host:port", s.Addr)
	case s.Security != TLS && s.Security != StartTLS && s.Security != Insecure:
		return fmt.Errorf("the option Security is %q; want %q, %q or %q", s.Security, TLS, StartTLS, Insecure)
	case s.Security == Insecure && !loopback(host):
		return fmt.Errorf("the option Security is %q for %s; want TLS or StartTLS: %s would cross a network in the clear", s.Security, host, secret)
	case s.Connections < 0:
		return fmt.Errorf("the option MaxConnections is %d; want 1 or more", s.Connections)
	}
	return nil
}

// loopback is true only for hosts that are surely this machine. Names other than localhost are
// not resolved: their addresses may change.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,200}[A-Za-z0-9])?$`)

// IsHost reports whether a name can be the host of a greeting, an address or a Message-ID.
func IsHost(name string) bool { return hostForm.MatchString(name) }

// Pool opens connections to one server. It is safe for concurrent use.
type Pool struct {
	server Server
	slots  chan struct{}
}

// NewPool returns a pool without connections. The server was checked.
func NewPool(s Server) *Pool { return &Pool{s, make(chan struct{}, s.Connections)} }

// Conn is one connection. It is closed when the context that it was opened with ends, since the
// clients of both protocols know no context: whatever waits returns then. The caller calls Close
// once.
type Conn struct {
	pool   *Pool
	socket net.Conn
	stop   func() bool
}

// Open connects as soon as fewer than the allowed connections are open. It sends nothing.
func (p *Pool) Open(ctx context.Context) (*Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d connections: %w", cap(p.slots), context.Cause(ctx))
	}
	connectors.TraceServer(ctx, &url.URL{Host: p.server.Addr})
	dial := p.server.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, "tcp", p.server.Addr)
	if err != nil {
		<-p.slots
		return nil, fmt.Errorf("connect: %w", err)
	}
	// The socket itself is closed, not the client or the TLS layer, which
	// may wait for the other side.
	return &Conn{p, socket, context.AfterFunc(ctx, func() { _ = socket.Close() })}, nil
}

// Close closes the socket without waiting for the server.
func (c *Conn) Close() {
	c.stop()
	_ = c.socket.Close()
	<-c.pool.slots
}

// Protected makes the TLS handshake that the server's Security requires before the first byte,
// with the protocol as ALPN unless it is empty, and limits what is read.
func (c *Conn) Protected(ctx context.Context, protocol string) (net.Conn, error) {
	if c.pool.server.Security != TLS {
		return c.limited(c.socket), nil
	}
	config := c.TLSConfig()
	if config.NextProtos == nil && protocol != "" {
		config.NextProtos = []string{protocol}
	}
	conn := tls.Client(c.socket, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return c.limited(conn), nil
}

// TLSConfig is the server's configuration for TLS, with the host of its address as name unless
// it has another.
func (c *Conn) TLSConfig() *tls.Config {
	config := &tls.Config{}
	if given := c.pool.server.TLSConfig; given != nil {
		config = given.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(c.pool.server.Addr) // checked before
	}
	return config
}

func (c *Conn) limited(conn net.Conn) net.Conn {
	return &limited{Conn: conn, limit: c.pool.server.Limit, tooMuch: c.pool.server.TooMuch}
}

// limited is a connection that limits how much the server may send for each command of the
// client: the clients of both protocols read an answer into memory.
type limited struct {
	net.Conn
	limit    int64
	tooMuch  error
	received atomic.Int64 // since the client last sent
}

// Write begins a new count.
func (l *limited) Write(p []byte) (int, error) {
	l.received.Store(0)
	return l.Conn.Write(p)
}

// Read fails past the limit.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.received.Add(int64(n)) > l.limit {
		_ = l.Close() // the connection is unusable
		return 0, fmt.Errorf("%w: more than %d bytes", l.tooMuch, l.limit)
	}
	return n, err
}

// Wrong makes errors about the fields of an intent, which wrap Err.
type Wrong struct{ Err error }

// Field is an error about a field that cannot be used.
func (w Wrong) Field(path, problem, want string) error {
	return connectors.WrongField(path, w.err(path, problem, want))
}

// Value is an error about the value of a field, which takes others, such as the example.
func (w Wrong) Value(path, problem, want string, example any) error {
	return connectors.WrongValue(path, example, w.err(path, problem, want))
}

// Text is the error about the text at path; nil where there is no problem.
func (w Wrong) Text(path string, p *mailtext.Problem) error {
	switch {
	case p == nil:
		return nil
	case p.Value:
		return w.Value(path+p.At, p.Is, p.Want, p.Example)
	}
	return w.Field(path+p.At, p.Is, p.Want)
}

func (w Wrong) err(path, problem, want string) error {
	return fmt.Errorf("%w: %s %s; want %s", w.Err, path, problem, want)
}
