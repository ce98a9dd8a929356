package mail

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TB is the part of testing.TB that is needed here, as in fakes/imap.
type TB = fakeimap.TB

// Start starts an account in memory for one test and closes it afterwards.
func Start(tb TB, o Options) *Server {
	tb.Helper()
	s, err := NewServer(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// NewServer starts an account in memory: a submission server that files what it accepts in the
// mailbox for sent mail, and, if it is for the account itself, in INBOX. Close it.
func NewServer(o Options) (*Server, error) {
	o.defaults()
	boxes := fakeimap.Options{Username: o.Address, Password: o.Password, InProcess: o.InProcess, Mailboxes: []string{"INBOX", o.Sent}}
	if !o.Unmarked {
		boxes.SpecialUse = map[string]string{o.Sent: `\Sent`}
	}
	box, err := fakeimap.NewServer(boxes)
	if err != nil {
		return nil, err
	}
	back := &backend{options: o}
	server := smtp.NewServer(back)
	server.Domain, server.AllowInsecureAuth = "mailtest.invalid", true
	server.ErrorLog = quiet{}
	ln, err := fakeimap.Listen(o.InProcess)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fakes/mail: %w", err), box.Close())
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ln) // ends with Close
	}()
	s, err := newServer(o, box, fakeimap.DialerOf(ln), func() error {
		err := ln.Close() // by ourselves, since the server may not know it yet
		<-served
		return errors.Join(err, closed(server.Close()))
	})
	if err != nil {
		return nil, errors.Join(err, server.Close(), ln.Close(), box.Close())
	}
	back.proxy.Store(s)
	return s, nil
}

// quiet is a logger for a server that complains of every cut connection.
type quiet struct{}

// Printf discards its arguments.
func (quiet) Printf(string, ...any) {}

// Println discards its arguments.
func (quiet) Println(...any) {}

// closed is an error of Close, unless it only reports that it was closed.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// backend is the server in memory that the proxy uses.
type backend struct {
	options Options
	proxy   atomic.Pointer[Server]
}

// NewSession implements [smtp.Backend].
func (b *backend) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{back: b}, nil }

// session is one connection to the server in memory.
type session struct {
	back *backend
	in   bool // logged in
	now  Message
}

// AuthMechanisms implements [smtp.AuthSession].
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain, sasl.Login} }

// Auth implements [smtp.AuthSession].
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	check := func(username, password string) error {
		if username != s.back.options.Address || password != s.back.options.Password {
			return smtp.ErrAuthFailed
		}
		s.in = true
		return nil
	}
	switch mechanism {
	case sasl.Login:
		return &loginServer{check: check}, nil
	case sasl.Plain:
		return sasl.NewPlainServer(func(_, username, password string) error { return check(username, password) }), nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// loginServer is the LOGIN mechanism, which go-sasl knows for clients alone.
type loginServer struct {
	check    func(username, password string) error
	username string
}

// Next implements [sasl.Server].
func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	switch {
	case l.username != "":
		return nil, true, l.check(l.username, string(response))
	case len(response) == 0: // it did not come with the command
		return []byte("Username:"), false, nil
	}
	l.username = string(response)
	return []byte("Password:"), false, nil
}

// Mail implements [smtp.Session].
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.in {
		return smtp.ErrAuthRequired
	}
	s.now = Message{From: from}
	return nil
}

// Rcpt implements [smtp.Session].
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.To = append(s.now.To, to)
	return nil
}

// Data implements [smtp.Session].
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.now.Raw = raw
	return s.back.file(s.now)
}

// Reset implements [smtp.Session].
func (s *session) Reset() { s.now = Message{} }

// Logout implements [smtp.Session].
func (s *session) Logout() error { return nil }

// file does what a provider does with what it accepts.
func (b *backend) file(m Message) error {
	s := b.proxy.Load()
	if s.Shows(fault.LaggingRead) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, time.AfterFunc(b.options.Lag, func() {
			_ = s.fileNow(m) // the account may be closed
		}))
		return nil
	}
	return s.fileNow(m)
}

func (s *Server) fileNow(m Message) error {
	gone := s.Shows(fault.Rollback)
	place := func(mailbox string, raw []byte) error {
		uid, err := s.Mailbox.Deliver(mailbox, raw, `\Seen`)
		if err == nil && gone {
			err = s.Mailbox.Remove(mailbox, uid)
		}
		return err
	}
	if !s.options.FilesNothing {
		if err := place(s.options.Sent, m.Raw); err != nil {
			return err
		}
	}
	ours := func(to string) bool { return strings.EqualFold(to, s.options.Address) }
	if !slices.ContainsFunc(m.To, ours) {
		return nil
	}
	trace := "Return-Path: <" + m.From + ">\r\nReceived: from client by mailtest.invalid\r\n"
	return place("INBOX", append([]byte(trace), m.Raw...))
}
