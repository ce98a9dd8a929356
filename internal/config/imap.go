package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/internal/yamlfile"
)

// account is how to reach a mail server and log in there.
type account struct {
	Addr         string `yaml:"addr"`
	TLS          string `yaml:"tls"`
	CAFile       string `yaml:"ca_file"`
	Username     string `yaml:"username"`
	PasswordEnv  string `yaml:"password_env"`
	PasswordFile string `yaml:"password_file"`
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

func (s *imapSettings) destination(dir string, env func(string) string) (connectors.Destination, error) {
	o, err := s.Account.imap(dir, env)
	if err != nil {
		return connectors.Destination{}, err
	}
	o.Mailbox, o.Domain, o.MaxConnections = s.Mailbox, s.Domain, s.MaxConnections
	o.SingleStore, o.CondStore, o.NoUIDPlus = s.SingleStore, s.CondStore, s.NoUIDPlus
	c, err := imap.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// imap are the options of a connection to an IMAP server.
func (a account) imap(dir string, env func(string) string) (imap.Options, error) {
	security, roots, err := a.protection(dir)
	if err != nil {
		return imap.Options{}, err
	}
	password, err := a.password().open(dir, env)
	return imap.Options{Addr: a.Addr, Security: security, TLSConfig: roots, Username: a.Username, Password: password}, err
}

func (a account) password() source {
	return source{asVariable: "password_env", asFile: "password_file", variable: a.PasswordEnv, file: a.PasswordFile}
}

// securities are the words of the file for how a connection is protected.
var securities = map[string]imap.Security{"": imap.TLS, "implicit": imap.TLS, "starttls": imap.StartTLS, "none": imap.Insecure}

// protection is how the connection is protected, with the certificates that
// the server's is checked against, nil for the system's.
func (a account) protection(dir string) (imap.Security, *tls.Config, error) {
	security, ok := securities[a.TLS]
	if !ok {
		return "", nil, fmt.Errorf("tls: is %q; want implicit, starttls, or none (loopback addresses only)", yamlfile.Clip(a.TLS))
	}
	if strings.Contains(a.Addr, "@") {
		return "", nil, errors.New("addr: holds a user name or a password; want host:port")
	}
	if a.CAFile == "" {
		return security, nil, nil
	}
	text, err := yamlfile.ReadBounded(beside(dir, a.CAFile), maxFile)
	if err != nil {
		return "", nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return "", nil, fmt.Errorf("ca_file: %s holds no certificate; want PEM", a.CAFile)
	}
	return security, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
