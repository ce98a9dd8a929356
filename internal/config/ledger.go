package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// Ledger says where the ledger is: in a file or in a PostgreSQL database.
type Ledger struct {
	// File is the SQLite file, "" for a database.
	File string

	path string // of the configuration
	line int
	database
}

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

// Database reports whether it is in a database.
func (l Ledger) Database() bool { return l.database != database{} }

// String names it, without a secret.
func (l Ledger) String() string {
	switch {
	case !l.Database():
		return l.File
	case l.URL != "":
		return l.URL
	case l.URLEnv != "":
		return "PostgreSQL, as $" + yamlfile.Clip(l.URLEnv) + " says"
	}
	return "PostgreSQL, as " + yamlfile.Clip(l.URLFile) + " says"
}

// ledger reads where the ledger is: a path, a URL without a password, or a
// mapping.
func (r *reader) ledger(e yamlfile.Entry, path string) Ledger {
	l := Ledger{path: path, line: e.Line}
	if !e.Value.IsMapping() {
		text := r.Text(e, e.Name)
		if !isURL(text) {
			l.File = inPlace(path, text)
			return l
		}
		l.URL = text
		r.databaseURL(e, l.database, "ledger")
		return l
	}
	var s struct {
		Type     yamlfile.Text `yaml:"type"`
		File     string        `yaml:"file"`
		Database database      `yaml:",inline"`
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return l
	}
	switch {
	case s.Type.Value == "sqlite" && s.File == "":
		r.Say(e.Line, "ledger.file", "is missing; want the file of the ledger, for example readback.db")
	case s.Type.Value == "sqlite" && s.Database != database{}:
		r.Say(e.Line, "ledger", "is a file, and has settings of a database; want only type and file")
	case s.Type.Value == "sqlite":
		l.File = inPlace(path, s.File)
	case s.Type.Value != "postgres":
		r.Say(e.Line, "ledger.type", "is %q; want sqlite or postgres", yamlfile.Clip(s.Type.Value))
	case s.File != "":
		r.Say(e.Line, "ledger.file", "belongs to type: sqlite; a database has a url, url_env or url_file")
	default:
		l.database = s.Database
		r.databaseSettings(e, l.database)
	}
	return l
}

func inPlace(config, path string) string {
	if path == "" {
		return ""
	}
	return beside(filepath.Dir(config), path)
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

var passwordWord = regexp.MustCompile(`(?i)(^|[\s?&])(password|sslpassword)\s*=`)

// dsn is the connection string, with what was kept elsewhere. No error repeats
// it.
func (l Ledger) dsn(env func(string) string) (string, error) {
	dir := filepath.Dir(l.path)
	dsn := l.URL
	if dsn == "" {
		from := source{asVariable: "url_env", asFile: "url_file", variable: l.URLEnv, file: l.URLFile}
		fetch, err := from.open(dir, env)
		if err != nil {
			return "", err
		}
		if dsn, err = fetch(context.Background()); err != nil {
			return "", err
		}
	}
	from := source{asVariable: "password_env", asFile: "password_file", variable: l.PasswordEnv, file: l.PasswordFile}
	fetch, err := from.openIfGiven(dir, env)
	if err != nil || fetch == nil {
		return dsn, err
	}
	password, err := fetch(context.Background())
	if err != nil {
		return "", err
	}
	u, err := url.Parse(dsn)
	if err != nil || !isURL(dsn) || u.User == nil {
		return "", errors.New("is no URL with a user name, so that a password cannot be added; want one such as postgres://readback@db.example.org/readback")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// OpenOptions say how a ledger is opened. Nil and the zero value work.
type OpenOptions struct {
	// Create makes an empty file, or the tables, where there is none; a command
	// that only looks must not, since a name may be misspelt. Default false.
	Create bool
	// ResetClock accepts this machine's clock although the newest entry of a file
	// is later. A database has its own clock.
	ResetClock bool
	// Now is the clock of a file. Default [time.Now].
	Now func() time.Time
}

// Open opens the ledger, of whatever kind. The caller must close it. It fails
// with [InvalidError] where the configuration does not say enough, and with the
// errors of the driver; none holds a secret.
func (l Ledger) Open(ctx context.Context, env func(string) string, o *OpenOptions) (ledger.Ledger, io.Closer, error) {
	if o == nil {
		o = &OpenOptions{}
	}
	if l.Database() {
		dsn, err := l.dsn(env)
		if err != nil {
			return nil, nil, l.invalid(err)
		}
		if o.ResetClock {
			return nil, nil, l.invalid(errors.New("is a database, which has a clock of its own; --reset-clock is for a ledger in a file"))
		}
		return l.openDatabase(ctx, dsn, o)
	}
	if _, err := os.Stat(l.File); !o.Create && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s (named by %s) does not exist; the first `readback submit` makes it", ledger.ErrUnavailable, l.File, l.path)
	}
	f, err := sqlite.Open(ctx, l.File, &sqlite.Options{Now: o.Now, ResetClock: o.ResetClock})
	if err != nil {
		return nil, nil, err
	}
	return f, f, nil
}

func (l Ledger) invalid(err error) error {
	return invalid(l.path, []Problem{{Line: l.line, Field: "ledger", Problem: err.Error()}})
}
