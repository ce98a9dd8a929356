package mail

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// session is one connection, logged in. go-smtp knows no context: when ctx
// ends, the socket is closed under it, and whatever waits returns.
type session struct {
	ctx    context.Context
	o      Options
	client *smtp.Client
	close  func()
}

// open connects and logs in. No mail was sent when it fails.
func (c *Connector) open(ctx context.Context) (*session, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d connections: %w", cap(c.slots), context.Cause(ctx))
	}
	s, err := c.connect(ctx)
	if err != nil {
		<-c.slots
		return nil, err
	}
	hangUp := s.close
	s.close = func() { hangUp(); <-c.slots }
	return s, nil
}

func (c *Connector) connect(ctx context.Context) (*session, error) {
	dial := c.o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, "tcp", c.o.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	// The socket itself is closed, not the client or the TLS layer, which
	// may wait for the other side.
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	s := &session{ctx: ctx, o: c.o, close: func() { stop(); _ = socket.Close() }}
	if err := s.start(socket); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) start(socket net.Conn) error {
	if err := s.protect(&bounded{Conn: socket}); err != nil {
		return s.said("connect", err)
	}
	if err := s.client.Hello(s.o.Hello); err != nil {
		return s.said("greeting", err)
	}
	return s.login()
}

// protect makes the client. No debug writer is ever set: it would write the
// password.
func (s *session) protect(socket net.Conn) (err error) {
	o := s.o
	if o.Security == Insecure {
		s.client = smtp.NewClient(socket)
		return nil
	}
	config := &tls.Config{}
	if o.TLSConfig != nil {
		config = o.TLSConfig.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(o.Addr) // checked by New
	}
	if o.Security == StartTLS {
		s.client, err = smtp.NewClientStartTLS(socket, config)
		if err != nil && strings.Contains(err.Error(), "doesn't support STARTTLS") {
			err = ErrNoStartTLS
		}
		return err
	}
	conn := tls.Client(socket, config)
	if err := conn.HandshakeContext(s.ctx); err != nil {
		return err
	}
	s.client = smtp.NewClient(conn)
	return nil
}

// login keeps the server's words out of its error: some repeat the command,
// password and all.
func (s *session) login() error {
	if s.o.Auth == nil && s.o.Username == "" {
		return nil
	}
	mechanism, err := s.mechanism()
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	err = s.client.Auth(mechanism)
	if err == nil {
		return nil
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return fmt.Errorf("log in: %w", cause)
	}
	if no, ok := answerOf(err); ok {
		return &refusedLogin{no.Code}
	}
	return fmt.Errorf("log in: the connection broke or the answer cannot be used")
}

// mechanism fetches what the login needs. A password is asked for only where
// the server offers to take it.
func (s *session) mechanism() (sasl.Client, error) {
	o := s.o
	if o.Auth != nil {
		client, err := o.Auth(s.ctx)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		return client, nil
	}
	plain := s.client.SupportsAuth(sasl.Plain)
	if !plain && !s.client.SupportsAuth(sasl.Login) {
		return nil, ErrNoAuth
	}
	password, err := o.Password(s.ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("credentials: %w", err)
	case plain:
		return sasl.NewPlainClient("", o.Username, password), nil
	}
	return sasl.NewLoginClient(o.Username, password), nil
}

// leave ends the session politely. It must never follow a message that was
// begun and not ended: go-smtp ends an open message before any next command,
// and the server would take what there is of it for the whole.
func (s *session) leave() {
	s.client.CommandTimeout = goodbye
	_ = s.client.Quit() // decides nothing
	s.close()
}

// bounded is a connection on which the server may say only so much to each
// thing that the client says. go-smtp reads the longest answer into memory.
type bounded struct {
	net.Conn
	heard atomic.Int64 // since the client last spoke
}

// Write begins a new count.
func (b *bounded) Write(p []byte) (int, error) {
	b.heard.Store(0)
	return b.Conn.Write(p)
}

// Read fails, with an error that wraps [ErrTooMuch], past maxAnswer bytes.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if b.heard.Add(int64(n)) > maxAnswer {
		_ = b.Close() // there is nothing left to be said on it
		return 0, fmt.Errorf("%w: over %d bytes", ErrTooMuch, maxAnswer)
	}
	return n, err
}
