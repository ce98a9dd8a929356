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

func (s *mailSettings) destination(dir string, env func(string) string) (connectors.Destination, error) {
	security, roots, err := s.Account.protection(dir)
	if err != nil {
		return connectors.Destination{}, err
	}
	seen, err := s.seen(dir, env)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("imap: %w", err)
	}
	o := mail.Options{
		Addr: s.Account.Addr, Security: mail.Security(security), TLSConfig: roots, Username: s.Account.Username,
		Account: s.Name, From: s.From, Sender: s.Sender, Domain: s.Domain,
		Proof: mail.Proof(s.Proof), CopyTo: s.CopyTo, Mailbox: s.Mailbox, Bounces: s.Bounces, IMAP: seen, TrustDeferral: s.TrustDeferral, MaxConnections: s.MaxConnections,
		SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout),
	}
	if o.Password, err = s.Account.password().openIfGiven(dir, env); err != nil { // a relay may know us by where we are
		return connectors.Destination{}, err
	}
	c, err := mail.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// seen is the account with the mailbox in which a mail is looked for. Without
// a login of its own it has that of the submission.
func (s *mailSettings) seen(dir string, env func(string) string) (imap.Options, error) {
	a := s.IMAP
	if a.Username == "" && !a.password().given() {
		a.Username, a.PasswordEnv, a.PasswordFile = s.Account.Username, s.Account.PasswordEnv, s.Account.PasswordFile
	}
	return a.imap(dir, env)
}
