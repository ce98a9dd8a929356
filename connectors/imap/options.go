package imap

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// The kinds of record.
const (
	// KindMessage is a message whose Message-ID a create makes from the stamp.
	// No other message can have it, so a create needs no look beforehand.
	KindMessage = "message"
	// KindNamed is a message whose Message-ID the caller gives.
	KindNamed = "named_message"
)

// Security is how the connection is protected.
type Security string

// The kinds of protection. The zero value is TLS from the first byte.
const (
	TLS      Security = ""         // implicit TLS, usually port 993
	StartTLS Security = "starttls" // plain at first; the password is sent only after the change to TLS
	Insecure Security = "insecure" // no protection; loopback addresses only
)

// Options say where the mailboxes are and what their server promises. Addr,
// Username and Password (or Auth) are required; every other zero value is the
// careful one.
type Options struct {
	// Addr is host and port, "imap.example.org:993". Required.
	Addr string
	// Security is how the connection is protected. Default implicit TLS.
	Security Security
	// TLSConfig is the TLS configuration. Default: the system's roots, the
	// host of Addr as server name.
	TLSConfig *tls.Config
	// Dial opens the connection below TLS: through a tunnel, or in memory for
	// tests. Default: a TCP connection to Addr.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Username is who logs in. Required unless Auth is set.
	Username string
	// Password fetches the password for each login. Required unless Auth is
	// set.
	Password func(ctx context.Context) (string, error)
	// Auth makes the SASL client for each login (OAUTHBEARER and the like).
	// Default: LOGIN with Username and Password.
	Auth func(ctx context.Context) (sasl.Client, error)

	// Mailbox is used where a business key names none. Default: keys must
	// name one.
	Mailbox string
	// Domain is the right side of the Message-IDs made from stamps. Default
	// "readback.invalid".
	Domain string

	// SingleStore says that what one session committed every other session
	// sees at once, in SEARCH too: one Dovecot, one Cyrus. Reads are strong
	// then. Default false, which is right for Gmail, Exchange Online and
	// whatever else is a cluster: their search index lags, so reads are weak
	// and absence is shown by Settle alone.
	SingleStore bool
	// CondStore says that the server has CONDSTORE, which makes updates and
	// deletes conditional on request. Probe checks it. Default false.
	CondStore bool
	// NoUIDPlus says that the server has no UIDPLUS. Deletes are refused then,
	// with or without this; set, the profile says so and Probe accepts it.
	// Default false.
	NoUIDPlus bool

	// Settle is how long reads may lag. Default 60 s, or none for a
	// SingleStore; negative means undeclared.
	Settle time.Duration
	// Horizon is how long an APPEND may still land after it was given up.
	// Default 60 s; negative means undeclared.
	Horizon time.Duration
	// SendTimeout and ReadTimeout bound one write and one read. A search by
	// header can take long in a mailbox of a hundred thousand messages.
	// Default 30 s and 10 s.
	SendTimeout, ReadTimeout time.Duration
	// MaxConnections is how many connections are open at a time; further
	// writes and reads wait. Default 4.
	MaxConnections int
}

// Connector is an IMAP account as a destination. Each write and each read has
// a connection of its own: a read never comes from a session that knows of the
// write, and a connection found dead never makes a write doubtful that was not
// sent. It is safe for concurrent use.
type Connector struct {
	o     Options
	slots chan struct{}
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Inverter   = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
)

var domainForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,200}[A-Za-z0-9])?$`)

// New checks the options. It does no I/O. The error wraps [ErrOptions] and
// names the field.
func New(o Options) (*Connector, error) {
	if o.Domain == "" {
		o.Domain = "readback.invalid"
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return &Connector{o: o, slots: make(chan struct{}, o.MaxConnections)}, nil
}

func (o Options) check() error {
	host, port, err := net.SplitHostPort(o.Addr)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("the option Addr is %q; want host:port", o.Addr)
	case o.Security != TLS && o.Security != StartTLS && o.Security != Insecure:
		return fmt.Errorf("the option Security is %q; want %q, %q or %q", o.Security, TLS, StartTLS, Insecure)
	case o.Security == Insecure && !loopback(host):
		return fmt.Errorf("the option Security is %q for %s; want TLS or StartTLS: the password would cross a network in the clear", o.Security, host)
	case o.Auth == nil && (o.Username == "" || o.Password == nil):
		return fmt.Errorf("the option Username or Password is missing; want both, or Auth")
	case !domainForm.MatchString(o.Domain):
		return fmt.Errorf("the option Domain is %q; want a host name", o.Domain)
	case o.Mailbox != "" && mailboxProblem(o.Mailbox) != "":
		return fmt.Errorf("the option Mailbox %s", mailboxProblem(o.Mailbox))
	case o.MaxConnections < 0:
		return fmt.Errorf("the option MaxConnections is %d; want 1 or more", o.MaxConnections)
	}
	return nil
}

// loopback is true only for what cannot leave this machine. Names other than
// localhost are not looked up: what they mean may change.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Profiles is what the account can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	p := connectors.Profile{
		Writes:    []intent.WriteType{intent.Create, intent.Update},
		Unique:    []intent.WriteType{intent.Update},
		Stamped:   true,
		Settle:    bound(c.o.Settle, defaultSettle),
		Horizon:   bound(c.o.Horizon, defaultHorizon),
		Undo:      []intent.WriteType{intent.Update},
		Reads:     c.reads(),
		BulkLimit: bulkLimit,

		SendTimeout: c.o.SendTimeout,
		ReadTimeout: c.o.ReadTimeout,
		Compare: map[string]intent.Comparison{
			"/subject":  {{Name: intent.RuleTrim}},
			"/body":     {{Name: intent.RuleCRLF}},
			"/date":     {{Name: intent.RuleTime, Precision: "1s"}},
			"/flags":    {{Name: intent.RuleFold}, {Name: intent.RuleSet}},
			"/keywords": {{Name: intent.RuleFold}, {Name: intent.RuleSet}},
		},
	}
	if c.o.SingleStore && c.o.Settle == 0 {
		p.Settle = connectors.Within(0)
	}
	if !c.o.NoUIDPlus {
		// Flags are set on a UID, and UIDs are never used again: a repeat
		// meets the same message or none.
		p.Unique = append(p.Unique, intent.Delete)
		p.Writes = append(p.Writes, intent.Delete)
		p.Undo = append(p.Undo, intent.Create)
	}
	if c.o.CondStore {
		p.Conditional = slices.Clone(p.Unique)
	}
	fresh := p
	fresh.FreshKeys = true
	return map[string]connectors.Profile{KindMessage: fresh, KindNamed: p}
}

// reads are one way: a search by both headers, to which the UID is added where
// it is known.
func (c *Connector) reads() []connectors.ReadPath {
	var paths []connectors.ReadPath
	for _, by := range []string{"ref", "key", "stamp"} {
		paths = append(paths, connectors.ReadPath{Path: pathSearch, By: by, Strength: c.strength()})
	}
	return paths
}

// pathSearch names the way of reading in observations.
const pathSearch = "search"

func bound(d, otherwise time.Duration) connectors.Bound {
	switch {
	case d < 0:
		return connectors.Bound{}
	case d == 0:
		return connectors.Within(otherwise)
	}
	return connectors.Within(d)
}
