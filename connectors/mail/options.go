package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailconn"
)

const (
	// bulkLimit is how many queries one bulk read takes, as in package imap.
	bulkLimit = 100
	// defaultConnections is how many SMTP connections are open at a time.
	// Providers allow few for an account; Exchange Online has three.
	defaultConnections = 3
	// defaultSendTimeout limits one submission. RFC 5321 (4.5.3.2.6) requires clients to wait ten
	// minutes for the answer to the dot, because giving up earlier makes duplicates elsewhere.
	// Here the mailbox then decides, and a caller waits: two minutes let a virus scanner finish.
	defaultSendTimeout = 2 * time.Minute
	// defaultReadTimeout bounds one read: a login, and a search by header in a
	// mailbox that keeps everything ever sent.
	defaultReadTimeout = 30 * time.Second
	// settleFiled is how long a provider may take to file a sent mail and to index it. No number
	// is published; seconds are seen in practice.
	settleFiled = 5 * time.Minute
	// settleCopied is how long a copy may be in transit: through a queue whose first repeat, in
	// Postfix, comes after five minutes, and past a greylist that requires one.
	settleCopied = 30 * time.Minute
	// bouncesWithin is how long after a mail was sent its bounce is searched for. An address that
	// does not exist is refused in seconds, or minutes past a greylist; delivery to an
	// unreachable server is tried for days.
	bouncesWithin = time.Hour
	// defaultHorizon is how long a submission may still be accepted after we
	// gave it up: as long as RFC 5321 allows a server to take over the dot.
	defaultHorizon = 10 * time.Minute
)

// The kinds of record.
const (
	// KindMessage is a mail whose Message-ID is made from the stamp. No other mail can have it,
	// so a create needs no read beforehand.
	KindMessage = "message"
	// KindNamed is a mail whose Message-ID the caller sets. An existing mail with it blocks a
	// create.
	KindNamed = "named_message"
)

// Security is how the connection is protected.
type Security = mailconn.Security

// The kinds of protection. The zero value is TLS from the first byte.
const (
	TLS      = mailconn.TLS      // implicit TLS, usually port 465
	StartTLS = mailconn.StartTLS // plain at first, usually port 587; nothing is sent without the change to TLS
	Insecure = mailconn.Insecure // no protection; loopback addresses only
)

// Proof is where sent mail is read.
type Proof string

// The proofs. The zero value is none, which [New] refuses.
const (
	// Filed: the server that accepts the mail files it in the mailbox for sent mail, as Gmail and
	// Exchange Online do. The connector never files it itself: that would prove nothing, and make
	// a duplicate.
	Filed Proof = "filed"
	// Copied: the mail goes to a mailbox of ours as well, as a recipient that
	// no header names.
	Copied Proof = "copied"
)

// Options define how mail is sent and where it is read. Addr, Proof and IMAP are required; every
// other zero value is the cautious one.
type Options struct {
	// Addr is host and port of the submission server,
	// "smtp.example.org:465". Required.
	Addr string
	// Security is how the connection is protected. Default implicit TLS.
	Security Security
	// TLSConfig is the TLS configuration. Default: the system's roots, the
	// host of Addr as server name.
	TLSConfig *tls.Config
	// Dial opens the connection below TLS. Default: a TCP connection to Addr.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Hello is the name that we give ourselves. Default "localhost".
	Hello string

	// Username is the login. Default: none, for a relay that accepts our network address.
	Username string
	// Password fetches the password for each login. Required with Username
	// unless Auth is set.
	Password func(ctx context.Context) (string, error)
	// Auth makes the SASL client for each login (OAUTHBEARER and the like).
	// Default: PLAIN, or LOGIN where the server has only that, with Username
	// and Password.
	Auth func(ctx context.Context) (sasl.Client, error)

	// Account is what business keys call the account that is sent from.
	// Default: Username, else the host of Addr.
	Account string
	// From is the sender of mails whose intent expects none. Default: an intent must set one.
	From string
	// Sender is the address that bounces go to (MAIL FROM). Default: the
	// address of the mail's sender.
	Sender string
	// Domain is the right side of the Message-IDs made from stamps. Default:
	// the domain of From, else of Username, else "readback.invalid". After a
	// change, mails sent before are found by their stamp alone.
	Domain string

	// Proof is where sent mail is read. Required: a mail that cannot be read back cannot be
	// verified.
	Proof Proof
	// CopyTo is the address that gets the copies. Anyone who can write to its mailbox can forge
	// them, so keep it secret. A mailing list that sends its mailbox a second copy makes it look
	// as if two mails had been sent. Required for Copied.
	CopyTo string
	// IMAP is the account with that mailbox. Its Addr is required. Its login defaults to that of
	// SMTP. Its options for writes, lag and mailboxes are not used.
	IMAP imap.Options
	// Mailbox is where mails are read. Default: for Filed the one marked \Sent, whatever its
	// name; for Copied INBOX.
	Mailbox string

	// Bounces is the mailbox of the same account that receives the reports of undelivered mails
	// (RFC 3464). Such a report about a mail moves a verified write to review. Every read of the
	// mail searches for it, the last an hour after it was sent. Default: for Filed without a
	// Sender INBOX; otherwise, and for "-", none, and a bounced mail stays verified.
	Bounces string

	// TrustDeferral treats an answer of 4yz to the whole message as proof that the server does
	// not have it, and sends again. Set it only if the server queues mail itself: one that
	// forwards it while we wait, or has a filter before its queue, also answers so when it loses
	// the connection to the server that has just accepted the mail. 421 is never trusted. Default
	// false: the mailbox decides, otherwise a reviewer.
	TrustDeferral bool

	// Settle is how long after its acceptance a mail may be missing from the
	// mailbox. Default 5 min for Filed and 30 min for Copied; negative means
	// undeclared.
	Settle time.Duration
	// Horizon is how long a mail may still be accepted after we gave up. Default 10 min; negative
	// means undeclared.
	Horizon time.Duration
	// SendTimeout and ReadTimeout bound one write and one read. Default 2 min
	// and 30 s.
	SendTimeout, ReadTimeout time.Duration
	// MaxConnections is how many SMTP connections are open at a time; further
	// writes wait. Those of IMAP are counted in IMAP. Default 3.
	MaxConnections int
}

// Connector is a mail account as a destination. Each write has a connection of
// its own, and so has each read. It is safe for concurrent use.
type Connector struct {
	o    Options
	box  *imap.Connector
	pool *mailconn.Pool
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.Preparer   = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
	_ connectors.Sampler    = (*Connector)(nil)
)

// New checks the options. It does no I/O. The error names the field.
func New(o Options) (*Connector, error) {
	host, _, _ := net.SplitHostPort(o.Addr)
	o.Hello = cmp.Or(o.Hello, "localhost")
	o.Account = cmp.Or(o.Account, o.Username, host)
	o.Domain = cmp.Or(o.Domain, domainOf(o.From), domainOf(o.Username), "readback.invalid")
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
	if o.IMAP.Username == "" && o.IMAP.Auth == nil {
		o.IMAP.Username, o.IMAP.Password, o.IMAP.Auth = o.Username, o.Password, o.Auth
	}
	if o.Mailbox == "" && o.Proof == Copied {
		o.Mailbox = "INBOX"
	}
	server := mailconn.Server{
		Addr: o.Addr, Security: o.Security, TLSConfig: o.TLSConfig, Dial: o.Dial,
		Limit: maxAnswer, TooMuch: errTooMuch, Connections: o.MaxConnections,
	}
	if err := cmp.Or(server.Check("mail and password"), o.check()); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	o.IMAP.Mailbox = o.Mailbox
	box, err := imap.New(o.IMAP)
	if err != nil {
		return nil, fmt.Errorf("%w: the option IMAP: %w", errOptions, err)
	}
	if o.bounces() != "" {
		reports := o.IMAP
		reports.Mailbox = o.bounces()
		if _, err := imap.New(reports); err != nil {
			return nil, fmt.Errorf("%w: the options Bounces and IMAP: %w", errOptions, err)
		}
	}
	return &Connector{o: o, box: box, pool: mailconn.NewPool(server)}, nil
}

// bounces is the mailbox of reports, "" for none.
func (o Options) bounces() string {
	switch {
	case o.Bounces == "-":
		return ""
	case o.Bounces == "" && o.Proof == Filed && o.Sender == "":
		return "INBOX"
	}
	return o.Bounces
}

func (o Options) check() error {
	switch {
	case o.Username != "" && o.Password == nil && o.Auth == nil:
		return fmt.Errorf("the option Password is missing; want it with Username, or Auth")
	case !mailconn.IsHost(o.Hello):
		return fmt.Errorf("the option Hello is %q; want a host name", o.Hello)
	case !mailconn.IsHost(o.Domain):
		return fmt.Errorf("the option Domain is %q; want a host name", o.Domain)
	}
	if err := o.checkAddresses(); err != nil {
		return err
	}
	return o.checkProof()
}

func (o Options) checkAddresses() error {
	for name, address := range map[string]string{"Sender": o.Sender, "CopyTo": o.CopyTo} {
		if address != "" && !isAddress(address) {
			return fmt.Errorf("the option %s is %q; want an address, a@example.org", name, address)
		}
	}
	if o.From == "" {
		return nil
	}
	_, p := addressOf(o.From)
	return wrong.Text("the option From", p)
}

func (o Options) checkProof() error {
	switch {
	case o.Proof == "":
		return fmt.Errorf("the option Proof is missing; want %q where the server files what is sent, or %q with the option CopyTo: a relay that does neither cannot be verified", Filed, Copied)
	case o.Proof != Filed && o.Proof != Copied:
		return fmt.Errorf("the option Proof is %q; want %q or %q", o.Proof, Filed, Copied)
	case o.Proof == Copied && o.CopyTo == "":
		return fmt.Errorf("the option CopyTo is missing; want the address that gets the copies")
	case o.Proof == Filed && o.CopyTo != "":
		return fmt.Errorf("the option CopyTo is for the proof %q; leave it out for %q", Copied, Filed)
	case o.IMAP.Addr == "":
		return fmt.Errorf("the option IMAP has no Addr; want the account in which mails are seen")
	}
	return nil
}

// domainOf is the right side of an address, "" where there is none.
func domainOf(address string) string {
	_, domain, _ := strings.Cut(strings.TrimSuffix(address, ">"), "@")
	if !mailconn.IsHost(domain) {
		return ""
	}
	return domain
}

// Profiles is what the account can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile { return profiles(c.o) }

func profiles(o Options) map[string]connectors.Profile {
	settle, proof := settleFiled, "a copy in the mailbox of what was sent, and not that a recipient received it"
	if o.Proof == Copied {
		settle, proof = settleCopied, "a copy in a mailbox of ours, and not that a recipient received it"
	}
	p := connectors.Profile{
		Summary:      connectors.Summary{Text: "a mail[ to {customer}][: {subject}]", Verb: "send", Subject: "/subject", Customer: "/to"},
		Writes:       []intent.WriteType{intent.Create},
		Stamped:      true,
		Irreversible: []intent.WriteType{intent.Create},
		Settle:       connectors.WithinOr(o.Settle, settle),
		Horizon:      connectors.WithinOr(o.Horizon, defaultHorizon),
		Reads:        []connectors.ReadPath{{Path: string(o.Proof), By: "stamp", Strength: connectors.Weak, Independent: independent}},
		Proof:        proof,
		BulkLimit:    bulkLimit,
		SendTimeout:  defaultSendTimeout,
		ReadTimeout:  defaultReadTimeout,
		Compare: map[string]intent.Comparison{
			"/subject": {{Name: intent.RuleTrim}},
			// SMTP ends every text with a line end; there is no rule for that alone.
			"/body": {{Name: intent.RuleCRLF}, {Name: intent.RuleTrim}},
		},
	}
	if o.bounces() != "" {
		p.Recheck = connectors.Within(bouncesWithin)
	}
	if o.SendTimeout > 0 {
		p.SendTimeout = o.SendTimeout
	}
	if o.ReadTimeout > 0 {
		p.ReadTimeout = o.ReadTimeout
	}
	fresh := p
	fresh.FreshKeys = true
	return map[string]connectors.Profile{KindMessage: fresh, KindNamed: p}
}
