package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/readback-go/readback/internal/pgserver"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// database configures the connection to a ledger in PostgreSQL.
type database struct {
	URL            string `yaml:"url"`
	URLEnv         string `yaml:"url_env"`
	URLFile        string `yaml:"url_file"`
	URLArgv        argv   `yaml:"url_command"`
	PasswordEnv    string `yaml:"password_env"`
	PasswordFile   string `yaml:"password_file"`
	PasswordArgv   argv   `yaml:"password_command"`
	Plaintext      bool   `yaml:"plaintext"`
	MaxConnections int    `yaml:"max_connections"`
	Dialect        string `yaml:"dialect"`
}

// given reports whether any of its settings is set.
func (d database) given() bool { return !reflect.ValueOf(d).IsZero() }

func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

func (r *reader) databaseSettings(e yamlfile.Entry, d database, field string) {
	given := 0
	for _, is := range []bool{d.URL != "", d.URLEnv != "", d.URLFile != "", len(d.URLArgv) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		r.Say(e.Line, field, "want exactly one of url (without a password), url_env (the name of an environment variable), url_file (a path) and url_command (a program and its arguments)")
		return
	}
	if err := postgres.CheckDialect(yamlfile.Clip(d.Dialect)); err != nil {
		r.Say(e.Line, field+".dialect", "%v", err)
	}
	if d.MaxConnections > maxConnections {
		r.Say(e.Line, field+".max_connections", "is %d; want at most %d", d.MaxConnections, maxConnections)
	}
	if d.URL != "" {
		r.databaseURL(e, d, field+".url")
	}
}

// databaseURL checks a URL in the file. Problems do not repeat it: it may hold a secret.
func (r *reader) databaseURL(e yamlfile.Entry, d database, field string) {
	u, err := url.Parse(d.URL)
	hasPassword := err == nil && u.User != nil
	if hasPassword {
		_, hasPassword = u.User.Password()
	}
	switch {
	case hasPassword || passwordWord.MatchString(d.URL):
		r.Say(e.Line, field, "holds a password, which does not belong into this file; take it out and write password_env or password_file, or put the whole URL into an environment variable or a file and write url_env or url_file")
	case err != nil || !isURL(d.URL) || u.Host == "" && u.Query().Get("host") == "":
		r.Say(e.Line, field, "is no URL of a database; want one such as postgres://readback@db.example.org/readback?sslmode=verify-full")
	}
}

var passwordWord = regexp.MustCompile(`(?i)(?:^|[\s?&])(?:password|sslpassword)\s*=\s*([^\s&]*)`)

// dsn is the current connection string, with secrets from their sources. No error repeats
// it.
func (l Ledger) dsn(from origin) (string, error) {
	dsn, err := Secret{l.URLEnv, l.URLFile, l.URLArgv}.as("url").once(from)
	dsn = cmp.Or(l.URL, dsn)
	if err != nil {
		return "", err
	}
	password, err := Secret{l.PasswordEnv, l.PasswordFile, l.PasswordArgv}.as("password").once(from)
	if err != nil || password == "" {
		return dsn, err
	}
	u, err := url.Parse(dsn)
	if err != nil || !isURL(dsn) || u.User == nil {
		return "", errors.New("is no URL with a user name, so that a password cannot be added; want one such as postgres://readback@db.example.org/readback")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// openDatabase opens a ledger in PostgreSQL.
func (l Ledger) openDatabase(ctx context.Context, env func(string) string, o *OpenOptions) (*postgres.Ledger, io.Closer, error) {
	current := func(context.Context) (string, func(), error) {
		from := origin{l.dir(), env, o.Commands, new([]*command)}
		dsn, err := l.dsn(from)
		return dsn, from.refused(), err
	}
	dsn, _, err := current(ctx)
	if err != nil {
		return nil, nil, l.invalid(err)
	}
	host, err := pgserver.InTheClear(dsn)
	if err != nil {
		return nil, nil, l.invalid(withoutSecrets(fmt.Errorf("%w: %w", ledger.ErrUnavailable, err), dsn))
	}
	if host != "" && !l.Plaintext {
		return nil, nil, l.invalid(fmt.Errorf("may go to %s without TLS; want sslmode=verify-full in its URL, or plaintext: true", yamlfile.Clip(host)))
	}
	opened, err := postgres.Open(ctx, l.bounded(dsn), &postgres.Options{ResetClock: o.ResetClock, Window: o.Window, Login: current, Keys: o.keys(), Dialect: l.Dialect})
	if err != nil {
		return nil, nil, withoutSecrets(err, dsn)
	}
	return opened, opened, nil
}

// bounded is the connection string with our bounds, unless it sets its own.
func (l Ledger) bounded(dsn string) string {
	for _, p := range []struct {
		name  string
		value int
	}{{"pool_max_conns", cmp.Or(l.MaxConnections, defaultConnections)}, {"connect_timeout", connectSeconds}} {
		join := " "
		switch {
		case strings.Contains(dsn, p.name+"="):
			continue
		case isURL(dsn) && strings.Contains(dsn, "?"):
			join = "&"
		case isURL(dsn):
			join = "?"
		}
		dsn += fmt.Sprintf("%s%s=%d", join, p.name, p.value)
	}
	return dsn
}

// withoutSecrets hides the text of an error that repeats a connection string, or the
// password in it: the error still matches, but has another text.
func withoutSecrets(err error, dsn string) error {
	if err == nil {
		return nil
	}
	secrets := []string{dsn}
	if u, failed := url.Parse(dsn); failed == nil && u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password)
	}
	for _, found := range passwordWord.FindAllStringSubmatch(dsn, -1) {
		secrets = append(secrets, strings.Trim(found[1], "'"))
	}
	for _, s := range secrets {
		if s != "" && strings.Contains(err.Error(), s) {
			return fmt.Errorf("%w: what the driver says holds a secret and is left out; want a connection string of PostgreSQL, such as postgres://readback@db.example.org/readback", ledger.ErrUnavailable)
		}
	}
	return err
}
