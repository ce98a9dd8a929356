package imap

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailconn"
)

const (
	// bulkLimit is how many queries one bulk read takes: five searches on one
	// connection, which stays well inside a read time-out.
	bulkLimit = 100
	// defaultConnections is how many connections are open at a time. Gmail allows 15 for an
	// account, shared with the users' own mail programs.
	defaultConnections = 4
	// defaultSettle is how long reads may lag behind writes if nothing better is known. No
	// provider publishes a number; a minute is above what is seen in practice.
	defaultSettle = 60 * time.Second
	// defaultHorizon is how long an APPEND may still be applied after we gave up. A server drops
	// an unfinished literal with its connection, but one that has read the whole literal may
	// commit later (a lock, a slow disk, a proxy that still holds the bytes). No server publishes
	// a number.
	defaultHorizon = 60 * time.Second
)

// The kinds of record.
const (
	// KindMessage is a message whose Message-ID a create makes from the stamp. No other message
	// can have it, so a create needs no read beforehand.
	KindMessage = "message"
	// KindNamed is a message whose Message-ID the caller sets.
	KindNamed = "named_message"
)

// Security is how the connection is protected.
type Security = mailconn.Security

// The kinds of protection. The zero value is TLS from the first byte.
const (
	TLS      = mailconn.TLS      // implicit TLS, usually port 993
	StartTLS = mailconn.StartTLS // plain at first; the password is sent only after the change to TLS
	Insecure = mailconn.Insecure // no protection; loopback addresses only
)

// Options define the mailboxes and what their server promises. Addr, Username and Password (or
// Auth) are required; every other zero value is the cautious one.
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

	// Username is the login. Required unless Auth is set.
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

	// SingleStore means that every other session sees at once what one session committed, in
	// SEARCH too: one Dovecot, one Cyrus. Reads are strong then. Default false, which is right
	// for Gmail, Exchange Online and every other cluster: their search index lags, so reads are
	// weak and only Settle shows absence.
	SingleStore bool
	// CondStore means that the server has CONDSTORE, which makes updates and deletes conditional
	// on request. Probe checks it. Default false.
	CondStore bool
	// NoUIDPlus means that the server has no UIDPLUS. Deletes are refused then, with or without
	// this; if set, the profile says so and Probe accepts it. Default false.
	NoUIDPlus bool

	// Settle is how long reads may lag. Default 60 s, or none for a
	// SingleStore; negative means undeclared.
	Settle time.Duration
	// Horizon is how long an APPEND may still be applied after we gave up. Default 60 s; negative
	// means undeclared.
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
	o    Options
	pool *mailconn.Pool
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Inverter   = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
)

// New checks the options. It does no I/O. The error names the field.
func New(o Options) (*Connector, error) {
	if o.Domain == "" {
		o.Domain = "readback.invalid"
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
	server := mailconn.Server{
		Addr: o.Addr, Security: o.Security, TLSConfig: o.TLSConfig, Dial: o.Dial,
		Limit: maxAnswer, TooMuch: errUnreadable, Connections: o.MaxConnections,
	}
	if err := cmp.Or(server.Check("the password"), o.check()); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	return &Connector{o: o, pool: mailconn.NewPool(server)}, nil
}

func (o Options) check() error {
	switch {
	case o.Auth == nil && (o.Username == "" || o.Password == nil):
		return fmt.Errorf("the option Username or Password is missing; want both, or Auth")
	case !mailconn.IsHost(o.Domain):
		return fmt.Errorf("the option Domain is %q; want a host name", o.Domain)
	case o.Mailbox != "" && mailboxProblem(o.Mailbox) != "":
		return fmt.Errorf("the option Mailbox %s", mailboxProblem(o.Mailbox))
	}
	return nil
}

// Profiles is what the account can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	p := connectors.Profile{
		Summary:   connectors.Summary{Text: "a message in {mailbox}[: {subject}]", Subject: "/subject", Customer: "/to"},
		Writes:    []intent.WriteType{intent.Create, intent.Update},
		Unique:    []intent.WriteType{intent.Update},
		Stamped:   true,
		Settle:    connectors.WithinOr(c.o.Settle, defaultSettle),
		Horizon:   connectors.WithinOr(c.o.Horizon, defaultHorizon),
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
