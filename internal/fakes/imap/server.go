package imap

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
)

// Options configure the server. The zero value is valid.
type Options struct {
	// Username and Password are the one account. Default "user" and
	// "password".
	Username, Password string
	// Mailboxes exist from the beginning. Default INBOX and Sent.
	Mailboxes []string
	// SpecialUse marks mailboxes for their use (RFC 6154), by name:
	// {"Gesendet": `\Sent`}. They exist from the beginning too. In memory
	// only. Default none.
	SpecialUse map[string]string
	// InProcess carries connections through memory, so that all of it can live
	// in a testing/synctest bubble: only Dial reaches it. In memory only, and
	// without TLS. Default false: on loopback.
	InProcess bool
	// NoUIDPlus makes it an old server: IMAP4rev1 without UIDPLUS. Default
	// false: IMAP4rev1 and IMAP4rev2, which has it.
	NoUIDPlus bool
	// TLS is the configuration of a server with implicit TLS. Default none:
	// no protection, on loopback.
	TLS *tls.Config
}

// Server is a running server with faults: a proxy before one that has none.
type Server struct {
	*Proxy

	options Options
	direct  string // the address of the server without faults
	end     func() error

	mu      sync.Mutex
	sends   int
	effects []Effect
	ids     map[place]string // Message-IDs of what came through us
	newest  map[string]uint32
}

// NewServer starts a server in memory on a free loopback port. Close it.
func NewServer(o Options) (*Server, error) {
	o.defaults()
	user := imapmemserver.NewUser(o.Username, o.Password)
	if err := o.create(user); err != nil {
		return nil, err
	}
	memory := imapmemserver.New()
	memory.AddUser(user)
	caps := imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapIMAP4rev2: {}}
	if o.NoUIDPlus {
		caps = imap.CapSet{imap.CapIMAP4rev1: {}}
	}
	if len(o.SpecialUse) > 0 {
		caps[imap.CapSpecialUse], caps[imap.CapListExtended] = struct{}{}, struct{}{}
	}
	backend := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps: caps, InsecureAuth: true,
		Logger: quiet{},
	})
	ln, err := Listen(o.InProcess)
	if err != nil {
		return nil, fmt.Errorf("fakes/imap: %w", err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = backend.Serve(ln) // ends with Close
	}()
	return newServer(o, ln.Addr().String(), DialerOf(ln), func() error {
		_ = ln.Close() // by ourselves, since the server may not know it yet
		<-served
		return backend.Close()
	})
}

func (o Options) create(user *imapmemserver.User) error {
	names := slices.Clone(o.Mailboxes)
	for name := range o.SpecialUse {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := user.Create(name, nil); err != nil {
			return fmt.Errorf("fakes/imap: create mailbox %q: %w", name, err)
		}
	}
	return nil
}

// quiet is a logger for a server that complains of every cut connection.
type quiet struct{}

// Printf discards its arguments.
func (quiet) Printf(string, ...any) {}

func (o *Options) defaults() {
	if o.Username == "" {
		o.Username = "user"
	}
	if o.Password == "" {
		o.Password = "password"
	}
	if o.Mailboxes == nil {
		o.Mailboxes = []string{"INBOX", "Sent"}
	}
}

// newServer puts the faults before a server.
func newServer(o Options, direct string, backend Dialer, end func() error) (*Server, error) {
	proxy, err := NewProxy(NewSwitches(Forms), o.InProcess, o.TLS, backend)
	if err != nil {
		return nil, fmt.Errorf("fakes/imap: %w", err)
	}
	s := &Server{Proxy: proxy, options: o, direct: direct, end: end, ids: map[place]string{}, newest: map[string]uint32{}}
	s.Serve(s.serve)
	return s, nil
}

// Direct is where the same server listens without the faults and without TLS.
func (s *Server) Direct() string { return s.direct }

// Account is the user name and the password.
func (s *Server) Account() (username, password string) {
	return s.options.Username, s.options.Password
}

// Close ends the server, its connections and, for a real one, its process.
func (s *Server) Close() error {
	err := s.Cut()
	s.Wait()
	return errors.Join(err, s.end())
}
