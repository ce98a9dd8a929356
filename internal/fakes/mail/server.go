package mail

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"sync"
	"time"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
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
	*fakeimap.Proxy

	options Options
	end     func() error // of the server

	mu                 sync.Mutex
	late               []*time.Timer
	attempts           int
	received, accepted []Message
}

// newServer puts the faults before a submission server.
func newServer(o Options, box *fakeimap.Server, backend fakeimap.Dialer, end func() error) (*Server, error) {
	proxy, err := fakeimap.NewProxy(fakeimap.NewSwitches(Forms), o.InProcess, o.TLS, backend)
	if err != nil {
		return nil, fmt.Errorf("fakes/mail: %w", err)
	}
	s := &Server{Mailbox: box, Proxy: proxy, options: o, end: end}
	s.Serve(s.serve)
	return s, nil
}

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
	err := s.Cut()
	s.mu.Lock()
	for _, t := range s.late {
		t.Stop()
	}
	s.mu.Unlock()
	go s.Release() // has no effect any more
	s.Wait()
	return errors.Join(err, s.end(), s.Mailbox.Close())
}
