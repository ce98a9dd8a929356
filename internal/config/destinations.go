package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/internal/yamlfile"
)

// settings are those of one type of destination.
type settings interface {
	// destination makes it. Paths are relative to dir.
	destination(dir string, env func(string) string) (connectors.Destination, error)
	// promises are the settings that every type has.
	promises() promises
}

// types makes empty settings by type.
var types = map[string]func() settings{
	"imap":      func() settings { return &imapSettings{} },
	"simulated": func() settings { return &simulatedSettings{Class: string(simulated.Plain)} },
}

// promises replace what a connector says about its destination, for whoever
// knows it better.
type promises struct {
	Settle      yamlfile.Bound `yaml:"settle"`
	Horizon     yamlfile.Bound `yaml:"horizon"`
	Recheck     yamlfile.Bound `yaml:"recheck"`
	SendTimeout yamlfile.Span  `yaml:"send_timeout"`
	ReadTimeout yamlfile.Span  `yaml:"read_timeout"`
}

func (p promises) apply(to connectors.Profile) connectors.Profile {
	for _, b := range []struct {
		from yamlfile.Bound
		to   *connectors.Bound
	}{{p.Settle, &to.Settle}, {p.Horizon, &to.Horizon}, {p.Recheck, &to.Recheck}} {
		switch {
		case b.from.Known:
			*b.to = connectors.Within(b.from.Time)
		case b.from.Set:
			*b.to = connectors.Bound{}
		}
	}
	if p.SendTimeout > 0 {
		to.SendTimeout = time.Duration(p.SendTimeout)
	}
	if p.ReadTimeout > 0 {
		to.ReadTimeout = time.Duration(p.ReadTimeout)
	}
	return to
}

// destination reads the settings of one destination.
func (r *reader) destination(d *Destination, n yamlfile.Node) bool {
	field := "destinations." + yamlfile.Clip(d.Name)
	if d.Name == "" {
		r.Say(d.Line, "destinations", "a name is empty")
		return false
	}
	before := len(r.Problems)
	for _, e := range r.Mapping(n, field) {
		if e.Name == "type" {
			d.Type = r.Text(e, field+".type")
		}
	}
	if len(r.Problems) > before {
		return false
	}
	empty, ok := types[d.Type]
	if !ok {
		r.Say(d.Line, field, "has the type %q; want one of %s", yamlfile.Clip(d.Type), strings.Join(slices.Sorted(maps.Keys(types)), ", "))
		return false
	}
	d.settings = empty()
	return r.Decode(n, field, d.settings)
}

// Registry makes the destinations. Secrets must be there by now, so that no
// write is recorded that cannot be sent for want of one. It fails with
// [InvalidError].
func (c Config) Registry(env func(string) string) (*connectors.Registry, error) {
	var reg connectors.Registry
	var problems []Problem
	for _, d := range c.Destinations {
		made, err := d.settings.destination(filepath.Dir(c.Path), env)
		if err == nil {
			made.Profiles = maps.Clone(made.Profiles)
			for kind, p := range made.Profiles {
				p.Destination, p.Kind = d.Name, kind
				made.Profiles[kind] = d.settings.promises().apply(p)
			}
			err = reg.Register(d.Name, made)
		}
		if err != nil {
			problems = append(problems, Problem{Line: d.Line, Field: "destinations." + d.Name, Problem: err.Error()})
		}
	}
	return &reg, invalid(c.Path, problems)
}

type simulatedSettings struct {
	Type     string   `yaml:"type"`
	URL      string   `yaml:"url"`
	Class    string   `yaml:"class"`
	Promises promises `yaml:",inline"`
}

func (s *simulatedSettings) promises() promises { return s.Promises }

func (s *simulatedSettings) destination(string, func(string) string) (connectors.Destination, error) {
	class := simulated.Class(s.Class)
	if !slices.Contains(simulated.Classes(), class) {
		return connectors.Destination{}, fmt.Errorf("class: is %q; want one of %v", yamlfile.Clip(s.Class), simulated.Classes())
	}
	if strings.Contains(s.URL, "@") { // also where it is no URL, which the connector would repeat
		return connectors.Destination{}, errors.New("url: holds a user name or a password; want http://host:port")
	}
	c, err := simulated.NewConnector(s.URL, class.Options(), nil)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("url: %w", err)
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

type imapSettings struct {
	Type           string   `yaml:"type"`
	Addr           string   `yaml:"addr"`
	TLS            string   `yaml:"tls"`
	CAFile         string   `yaml:"ca_file"`
	Username       string   `yaml:"username"`
	PasswordEnv    string   `yaml:"password_env"`
	PasswordFile   string   `yaml:"password_file"`
	Mailbox        string   `yaml:"mailbox"`
	Domain         string   `yaml:"domain"`
	SingleStore    bool     `yaml:"single_store"`
	CondStore      bool     `yaml:"condstore"`
	NoUIDPlus      bool     `yaml:"no_uidplus"`
	MaxConnections int      `yaml:"max_connections"`
	Promises       promises `yaml:",inline"`
}

func (s *imapSettings) promises() promises { return s.Promises }

// securities are the words of the file for how a connection is protected.
var securities = map[string]imap.Security{"": imap.TLS, "implicit": imap.TLS, "starttls": imap.StartTLS, "none": imap.Insecure}

func (s *imapSettings) destination(dir string, env func(string) string) (connectors.Destination, error) {
	security, ok := securities[s.TLS]
	if !ok {
		return connectors.Destination{}, fmt.Errorf("tls: is %q; want implicit, starttls, or none (loopback addresses only)", yamlfile.Clip(s.TLS))
	}
	if strings.Contains(s.Addr, "@") {
		return connectors.Destination{}, errors.New("addr: holds a user name or a password; want host:port")
	}
	roots, err := s.roots(dir)
	if err != nil {
		return connectors.Destination{}, err
	}
	password, err := secret(dir, env, s.PasswordEnv, s.PasswordFile)
	if err != nil {
		return connectors.Destination{}, err
	}
	c, err := imap.New(imap.Options{
		Addr: s.Addr, Security: security, TLSConfig: roots,
		Username: s.Username, Password: password,
		Mailbox: s.Mailbox, Domain: s.Domain,
		SingleStore: s.SingleStore, CondStore: s.CondStore, NoUIDPlus: s.NoUIDPlus,
		MaxConnections: s.MaxConnections,
	})
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// roots are the certificates that the server's is checked against, nil for the
// system's.
func (s *imapSettings) roots(dir string) (*tls.Config, error) {
	if s.CAFile == "" {
		return nil, nil
	}
	text, err := yamlfile.ReadBounded(beside(dir, s.CAFile), maxFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate; want PEM", s.CAFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret fetches a secret anew for each use, so that it can be changed under a
// running process. It is tried once here.
func secret(dir string, env func(string) string, variable, file string) (func(context.Context) (string, error), error) {
	var fetch func() (string, error)
	switch {
	case (variable == "") == (file == ""):
		return nil, errors.New("want exactly one of password_env (the name of an environment variable) and password_file (a path)")
	case variable != "" && !variableName.MatchString(variable): // and not repeated: people write the secret itself here
		return nil, errors.New("password_env: is not the name of an environment variable; want one such as MAIL_PASSWORD, which holds the secret")
	case variable != "":
		fetch = func() (string, error) {
			if v := env(variable); v != "" {
				return v, nil
			}
			return "", fmt.Errorf("password_env: the environment variable %s is not set, or empty", yamlfile.Clip(variable))
		}
	default:
		fetch = func() (string, error) { return secretFile(beside(dir, file)) }
	}
	_, err := fetch()
	return func(context.Context) (string, error) { return fetch() }, err
}

func secretFile(path string) (string, error) {
	text, err := yamlfile.ReadBounded(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("password_file: %w", err)
	}
	s := strings.TrimRight(string(text), "\r\n")
	if s == "" {
		return "", fmt.Errorf("password_file: %s is empty", path)
	}
	return s, nil
}
