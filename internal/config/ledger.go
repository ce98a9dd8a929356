package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// OpenOptions say how a ledger is opened. Nil and the zero value work.
type OpenOptions struct {
	// Create makes an empty file where there is none; a command that only looks
	// must not, since a name may be misspelt. The tables in a database are made by
	// whoever opens it first. Default false.
	Create bool
	// ResetClock accepts the clock as it is now although the newest entry is
	// later: this machine's for a file, the database's own. Default false.
	ResetClock bool
	// Window is how long after it was settled an idempotency key blocks what was enqueued.
	// Default 24 hours.
	Window time.Duration
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
		return l.openDatabase(ctx, env, o)
	}
	if _, err := os.Stat(l.File); !o.Create && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s (named by %s) does not exist; the first `readback submit` makes it", ledger.ErrUnavailable, l.File, l.path)
	}
	f, err := sqlite.Open(ctx, l.File, &sqlite.Options{Now: o.Now, ResetClock: o.ResetClock, Window: o.Window})
	if err != nil {
		return nil, nil, err
	}
	return f, f, nil
}

func (l Ledger) dir() string { return filepath.Dir(l.path) }

func (l Ledger) invalid(err error) error {
	return invalid(l.path, []Problem{{Line: l.line, Field: "ledger", Problem: err.Error()}})
}
