package config

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
)

type mailSettings struct {
	Type           string   `yaml:"type"`
	Account        account  `yaml:",inline"`
	Name           string   `yaml:"account"`
	From           string   `yaml:"from"`
	Sender         string   `yaml:"sender"`
	Domain         string   `yaml:"domain"`
	Proof          string   `yaml:"proof"`
	CopyTo         string   `yaml:"copy_to"`
	Mailbox        string   `yaml:"mailbox"`
	Bounces        string   `yaml:"bounces"`
	IMAP           account  `yaml:"imap"`
	TrustDeferral  bool     `yaml:"trust_deferral"`
	MaxConnections int      `yaml:"max_connections"`
	Promises       promises `yaml:",inline"`
}

func (s *mailSettings) promises() promises { return s.Promises }

func (s *mailSettings) destination(from origin) (connectors.Destination, error) {
	security, config, err := s.Account.protection(from)
	if err != nil {
		return connectors.Destination{}, err
	}
	seen, err := s.seen(from)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("imap: %w", err)
	}
	seen.Dial = s.Promises.Egress.dial()
	o := mail.Options{
		Dial: s.Promises.Egress.dial(),
		Addr: s.Account.Addr, Security: security, TLSConfig: config, Username: s.Account.Username,
		Account: s.Name, From: s.From, Sender: s.Sender, Domain: s.Domain,
		Proof: mail.Proof(s.Proof), CopyTo: s.CopyTo, Mailbox: s.Mailbox, Bounces: s.Bounces, IMAP: seen, TrustDeferral: s.TrustDeferral, MaxConnections: s.MaxConnections,
		SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout),
	}
	if o.Password, err = s.Account.password().openIfGiven(from); err != nil { // a relay may authenticate us by address
		return connectors.Destination{}, err
	}
	c, err := mail.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// seen is the account of the mailbox in which a mail is read back. Without a login of its
// own it uses that of the submission.
func (s *mailSettings) seen(from origin) (imap.Options, error) {
	a := s.IMAP
	if a.Username == "" && !a.password().Given() {
		a.Username, a.PasswordEnv, a.PasswordFile, a.PasswordArgv = s.Account.Username, s.Account.PasswordEnv, s.Account.PasswordFile, s.Account.PasswordArgv
	}
	return a.imap(from)
}
