package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/readback-go/readback/internal/pgserver"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// database is how to reach a ledger in PostgreSQL.
type database struct {
	URL            string `yaml:"url"`
	URLEnv         string `yaml:"url_env"`
	URLFile        string `yaml:"url_file"`
	PasswordEnv    string `yaml:"password_env"`
	PasswordFile   string `yaml:"password_file"`
	Plaintext      bool   `yaml:"plaintext"`
	MaxConnections int    `yaml:"max_connections"`
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

func (r *reader) databaseSettings(e yamlfile.Entry, d database) {
	given := 0
	for _, s := range []string{d.URL, d.URLEnv, d.URLFile} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		r.Say(e.Line, "ledger", "want exactly one of url (without a password), url_env (the name of an environment variable) and url_file (a path)")
		return
	}
	if d.MaxConnections > maxConnections {
		r.Say(e.Line, "ledger.max_connections", "is %d; want at most %d", d.MaxConnections, maxConnections)
	}
	if d.URL != "" {
		r.databaseURL(e, d, "ledger.url")
	}
}

// databaseURL checks a URL that stands in the file. What it holds is not
// repeated: it may be a secret.
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

// dsn is the connection string, with what was kept elsewhere. No error repeats
// it.
func (l Ledger) dsn(env func(string) string) (string, error) {
	from := source{asVariable: "url_env", asFile: "url_file", variable: l.URLEnv, file: l.URLFile}
	dsn, err := l.secret(from, env)
	dsn = cmp.Or(l.URL, dsn)
	if err != nil {
		return "", err
	}
	from = source{asVariable: "password_env", asFile: "password_file", variable: l.PasswordEnv, file: l.PasswordFile}
	password, err := l.secret(from, env)
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

// secret is what is kept elsewhere, "" where nothing is.
func (l Ledger) secret(from source, env func(string) string) (string, error) {
	fetch, err := from.openIfGiven(l.dir(), env)
	if err != nil || fetch == nil {
		return "", err
	}
	return fetch(context.Background())
}

// openDatabase opens a ledger in PostgreSQL.
func (l Ledger) openDatabase(ctx context.Context, env func(string) string, o *OpenOptions) (ledger.Ledger, io.Closer, error) {
	dsn, err := l.dsn(env)
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
	opened, err := postgres.Open(ctx, l.bounded(dsn), &postgres.Options{ResetClock: o.ResetClock, Window: o.Window})
	if err != nil {
		return nil, nil, withoutSecrets(err, dsn)
	}
	return opened, opened, nil
}

// bounded is the connection string with our bounds, where it has none of its
// own.
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

// withoutSecrets keeps an error whose text repeats a connection string, or the
// password in it, from being shown: what it is stays, what it says does not.
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
