package mail

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/readback-go/readback/internal/mailconn"
)

const (
	// maxAnswer is how many bytes a server may send per command. The longest honest answer, to
	// EHLO, has some kilobytes.
	maxAnswer = 1 << 20
	// goodbye is how long QUIT may take. It decides nothing.
	goodbye = 2 * time.Second
)

// session is one connection, logged in.
type session struct {
	ctx    context.Context
	o      Options
	conn   *mailconn.Conn
	client *smtp.Client
}

// open connects and logs in. No mail was sent when it fails.
func (c *Connector) open(ctx context.Context) (*session, error) {
	conn, err := c.pool.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{ctx: ctx, o: c.o, conn: conn}
	if err := s.start(); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) start() error {
	if err := s.protect(); err != nil {
		return s.fail("connect", err)
	}
	if err := s.client.Hello(s.o.Hello); err != nil {
		return s.fail("greeting", err)
	}
	return s.login()
}

// protect makes the client. No debug writer is ever set: it would write the
// password.
func (s *session) protect() error {
	conn, err := s.conn.Protected(s.ctx, "")
	if err != nil {
		return err
	}
	if s.o.Security == StartTLS {
		s.client, err = smtp.NewClientStartTLS(conn, s.conn.TLSConfig())
		if err != nil && strings.Contains(err.Error(), "doesn't support STARTTLS") {
			err = errNoStartTLS
		}
		return err
	}
	s.client = smtp.NewClient(conn)
	return nil
}

// login keeps the server's text out of its error: some servers repeat the command, including the
// password.
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

// mechanism fetches what the login needs. It fetches a password only if the server accepts one.
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
		return nil, errNoAuth
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

// leave ends the session politely. It must never follow an unfinished message: go-smtp ends an
// open message before any next command, and the server would treat the part as the whole.
func (s *session) leave() {
	s.client.CommandTimeout = goodbye
	_ = s.client.Quit() // decides nothing
	s.conn.Close()
}
