package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/internal/yamlfile"
)

// account configures the address of a mail server and the login there.
type account struct {
	Addr         string     `yaml:"addr"`
	TLS          string     `yaml:"tls"`
	Connection   connection `yaml:",inline"`
	Username     string     `yaml:"username"`
	PasswordEnv  string     `yaml:"password_env"`
	PasswordFile string     `yaml:"password_file"`
	PasswordArgv argv       `yaml:"password_command"`
}

type imapSettings struct {
	Type           string   `yaml:"type"`
	Account        account  `yaml:",inline"`
	Mailbox        string   `yaml:"mailbox"`
	Domain         string   `yaml:"domain"`
	SingleStore    bool     `yaml:"single_store"`
	CondStore      bool     `yaml:"condstore"`
	NoUIDPlus      bool     `yaml:"no_uidplus"`
	MaxConnections int      `yaml:"max_connections"`
	Promises       promises `yaml:",inline"`
}

func (s *imapSettings) promises() promises { return s.Promises }

func (s *imapSettings) destination(from origin) (connectors.Destination, error) {
	o, err := s.Account.imap(from)
	if err != nil {
		return connectors.Destination{}, err
	}
	o.Dial = s.Promises.Egress.dial()
	o.Mailbox, o.Domain, o.MaxConnections = s.Mailbox, s.Domain, s.MaxConnections
	o.SingleStore, o.CondStore, o.NoUIDPlus = s.SingleStore, s.CondStore, s.NoUIDPlus
	c, err := imap.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// imap are the options of a connection to an IMAP server.
func (a account) imap(from origin) (imap.Options, error) {
	security, config, err := a.protection(from)
	if err != nil {
		return imap.Options{}, err
	}
	password, err := a.password().open(from)
	return imap.Options{Addr: a.Addr, Security: security, TLSConfig: config, Username: a.Username, Password: password}, err
}

func (a account) password() source {
	return Secret{a.PasswordEnv, a.PasswordFile, a.PasswordArgv}.as("password")
}

// securities are the file's words for the protection of a connection.
var securities = map[string]imap.Security{"": imap.TLS, "implicit": imap.TLS, "starttls": imap.StartTLS, "none": imap.Insecure}

// protection is the protection of the connection, with the TLS configuration, nil for the
// system's.
func (a account) protection(from origin) (imap.Security, *tls.Config, error) {
	security, ok := securities[a.TLS]
	if !ok {
		return "", nil, fmt.Errorf("tls: is %q; want implicit, starttls, or none (loopback addresses only)", yamlfile.Clip(a.TLS))
	}
	if strings.Contains(a.Addr, "@") {
		return "", nil, errors.New("addr: holds a user name or a password; want host:port")
	}
	config, err := a.Connection.tls(from)
	if err == nil && a.Connection.Certificate.given() && security == imap.Insecure {
		err = a.Connection.Certificate.wrong(errors.New("needs TLS, and the connection has none (tls: none); want tls: implicit or starttls"))
	}
	return security, config, err
}
