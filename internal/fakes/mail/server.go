package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"slices"
	"sync"
	"time"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Options configure the account. The zero value is valid.
type Options struct {
	// Address is the account's address and its user name, Password its
	// password at both servers. Default "alice@example.org" and "password".
	Address, Password string
	// Sent is the mailbox for sent mail, marked as such. Default "Gesendet".
	Sent string
	// Unmarked makes it a server without SPECIAL-USE. Default false.
	Unmarked bool
	// FilesNothing makes it a server that does not file what is sent. Default
	// false.
	FilesNothing bool
	// Lag is how late FiledLate files and LateCommit takes over. Default 100 ms.
	Lag time.Duration
	// TLS is the configuration of a server with implicit TLS, StartTLS of one
	// that offers STARTTLS. Default none: no protection, on loopback.
	TLS, StartTLS *tls.Config
	// InProcess carries connections through memory, so that all of it can live
	// in a testing/synctest bubble: only Dial reaches it. In memory only, and
	// without TLS. Default false: on loopback.
	InProcess bool
}

func (o *Options) defaults() {
	if o.Address == "" {
		o.Address = "alice@example.org"
	}
	if o.Password == "" {
		o.Password = "password"
	}
	if o.Sent == "" {
		o.Sent = "Gesendet"
	}
	if o.Lag == 0 {
		o.Lag = 100 * time.Millisecond
	}
}

// Message is one message as SMTP carried it.
type Message struct {
	From string
	To   []string // as they were given, in their order
	Raw  []byte   // without the dot and what was stuffed
}

// ID is its Message-ID as the header has it, "" for none.
func (m Message) ID() string { return header(m.Raw, "Message-Id") }

func header(raw []byte, name string) string {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	return m.Header.Get(name)
}

// Server is a running account with faults: a proxy before a submission server
// that has none.
type Server struct {
	// Mailbox is the account's IMAP server, with faults of its own.
	Mailbox *fakeimap.Server
	*fakeimap.Switches

	options Options
	behind  func(ctx context.Context) (net.Conn, error) // dials the submission server
	ln      net.Listener
	end     func() error // of the server
	busy    sync.WaitGroup

	mu                 sync.Mutex
	closed             bool
	conns              map[net.Conn]bool
	late               []*time.Timer
	attempts           int
	received, accepted []Message
}

// newFront puts the faults before a submission server.
func newFront(o Options, box *fakeimap.Server, behind func(ctx context.Context) (net.Conn, error), end func() error) (*Server, error) {
	ln, err := o.listen()
	if err != nil {
		return nil, fmt.Errorf("fakes/mail: %w", err)
	}
	if o.TLS != nil {
		ln = tls.NewListener(ln, o.TLS)
	}
	s := &Server{Mailbox: box, Switches: fakeimap.NewSwitches(Forms), options: o, behind: behind, ln: ln, end: end,
		conns: map[net.Conn]bool{}}
	s.busy.Go(s.accept)
	return s, nil
}

func (o Options) listen() (net.Listener, error) {
	if o.InProcess {
		return fakeimap.NewPipes(), nil
	}
	return new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

func dialerOf(ln net.Listener) func(ctx context.Context) (net.Conn, error) {
	if p, ok := ln.(*fakeimap.Pipes); ok {
		return p.Dial
	}
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	}
}

// Addr is the host and port of the submission server.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Dial connects to the submission server, wherever it listens: for connectors with a dial option.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) { return dialerOf(s.ln)(ctx) }

// Account is the address, which is the user name, and the password.
func (s *Server) Account() (address, password string) { return s.options.Address, s.options.Password }

// Sent is the mailbox for sent mail.
func (s *Server) Sent() string { return s.options.Sent }

// Received lists every message that came in whole, dot and all, whatever became
// of it.
func (s *Server) Received() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Accepted lists the messages that the server took over for a client, as they
// were given to it.
func (s *Server) Accepted() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// Attempts is how many submissions began (MAIL), including refused ones.
func (s *Server) Attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}

// Close ends the account, its connections and its mailboxes.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	for _, t := range s.late {
		t.Stop()
	}
	s.mu.Unlock()
	go s.Release() // nothing is done any more
	err := s.ln.Close()
	s.busy.Wait()
	return errors.Join(err, s.end(), s.Mailbox.Close())
}

func (s *Server) accept() {
	for {
		client, err := s.ln.Accept()
		if err != nil {
			return // closed
		}
		if s.Shows(fault.Unreachable) {
			_ = client.Close()
			continue
		}
		s.busy.Go(func() { s.serve(client) })
	}
}

// keep remembers a connection to be cut by Close. After Close it cuts the connection
// itself and returns false.
func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) drop(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
