package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
)

// ErrNoLedger reports that the file of the ledger does not exist yet.
var ErrNoLedger = fmt.Errorf("%w", ledger.ErrUnavailable)

// Ledger configures the ledger: in a file, in a PostgreSQL database, or in several.
type Ledger struct {
	// File is the SQLite file, "" for a database.
	File string
	// Shards are the partitions of a ledger in several databases. Default: it is in one.
	Shards []Shard
	// Directory is the partition with the directory, Default those of tenants that no partition
	// names. Default: the first one, and all.
	Directory string
	Default   []string

	path string // of the configuration
	line int
	database
}

// Database reports whether it is in a database.
func (l Ledger) Database() bool { return l.database.given() || len(l.Shards) > 0 }

// String names it, without a secret.
func (l Ledger) String() string {
	switch {
	case !l.Database():
		return l.File
	case len(l.Shards) > 0:
		return fmt.Sprintf("PostgreSQL, %d databases", len(l.Shards))
	case l.URL != "":
		return l.URL
	case l.URLEnv != "":
		return "PostgreSQL, as $" + yamlfile.Clip(l.URLEnv) + " says"
	case len(l.URLArgv) > 0:
		return "PostgreSQL, as " + yamlfile.Clip(l.URLArgv[0]) + " prints"
	}
	return "PostgreSQL, as " + yamlfile.Clip(l.URLFile) + " says"
}

// ledger reads the setting of the ledger: a path, a URL without a password, or a mapping.
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
		Parts    partitioned   `yaml:",inline"`
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return l
	}
	switch {
	case s.Type.Value == "sqlite" && s.File == "":
		r.Say(e.Line, "ledger.file", "is missing; want the file of the ledger, for example readback.db")
	case s.Type.Value == "sqlite" && (s.Database.given() || s.Parts.given()):
		r.Say(e.Line, "ledger", "is a file, and has settings of a database; want only type and file")
	case s.Type.Value == "sqlite":
		l.File = inPlace(path, s.File)
	case s.Type.Value != "postgres":
		r.Say(e.Line, "ledger.type", "is %q; want sqlite or postgres", yamlfile.Clip(s.Type.Value))
	case s.File != "":
		r.Say(e.Line, "ledger.file", "belongs to type: sqlite; a database has a url, url_env, url_file or url_command")
	case s.Parts.given():
		r.shards(e, &l, s.Parts, s.Database)
	default:
		l.database = s.Database
		r.databaseSettings(e, l.database, "ledger")
	}
	return l
}

func inPlace(config, path string) string {
	if path == "" {
		return ""
	}
	return beside(filepath.Dir(config), path)
}

// OpenOptions configures [Ledger.Open]. Nil and the zero value are valid.
type OpenOptions struct {
	// Create creates an empty file if there is none; a command that only reads must not,
	// since a name may be misspelt. The tables in a database are created by the first
	// process that opens it. Default false.
	Create bool
	// ResetClock accepts the current clock although the newest entry is later: this
	// machine's for a file, the database's own. Default false.
	ResetClock bool
	// Window is how long an idempotency key of an enqueued write blocks after it was
	// settled. Default 24 hours.
	Window time.Duration
	// Now is the clock of a file. Default [time.Now].
	Now func() time.Time
	// Commands configures the commands that print secrets. Default as in [Commands].
	Commands Commands
	// Vault seals the digest key of the ledger. Default: none, and a ledger whose digest
	// key is sealed can only be read.
	Vault *redact.Vault
	// Logger receives events of a ledger in several databases. Default: nothing.
	Logger *slog.Logger
	// Locked is why there is no Vault although the configuration has redaction keys. An
	// existing ledger is opened all the same, but no new one is created.
	Locked error
}

// keys are the keys with which a driver seals; nil for none.
func (o *OpenOptions) keys() ledger.Keys {
	switch {
	case o.Vault != nil && !o.Create:
		return asItIs{o.Vault}
	case o.Vault != nil:
		return o.Vault
	case o.Locked != nil:
		return locked{fmt.Errorf("%w: %w", ledger.ErrNoKey, o.Locked)}
	}
	return nil
}

// asItIs are the keys of a command that creates no ledger, such as list or doctor: it
// leaves a digest key sealed under its current redaction key. Otherwise an operator's own
// configuration, older than the server's, could seal it again under a key that is about
// to be removed.
type asItIs struct{ ledger.Keys }

func (k asItIs) OpenDigestKey(id, sealed string) (key []byte, current bool, err error) {
	key, _, err = k.Keys.OpenDigestKey(id, sealed)
	return key, true, err
}

// locked are redaction keys that could not be read: without them the digest key of a new
// ledger would be in the clear, and stay so in its backups.
type locked struct{ why error }

func (l locked) SealEntry(string, intent.WriteIntent) ([]byte, error)       { return nil, l.why }
func (l locked) SealDigestKey([]byte) (id, sealed string, err error)        { return "", "", l.why }
func (l locked) OpenDigestKey(string, string) (key []byte, _ bool, _ error) { return nil, false, l.why }

// Open opens the ledger, of either kind. The caller must close it. It fails with
// [InvalidError] if the configuration is incomplete, and with the errors of the driver;
// none holds a secret.
func (l Ledger) Open(ctx context.Context, env func(string) string, o *OpenOptions) (ledger.Ledger, io.Closer, error) {
	if o == nil {
		o = &OpenOptions{}
	}
	switch {
	case len(l.Shards) > 0:
		return l.openShards(ctx, env, o)
	case l.Database():
		opened, closer, err := l.openDatabase(ctx, env, o)
		if err != nil {
			return nil, nil, err
		}
		return opened, closer, nil
	}
	if _, err := os.Stat(l.File); !o.Create && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s (named by %s) does not exist; the first `readback submit` or `readback serve` makes it", ErrNoLedger, l.File, l.path)
	}
	f, err := sqlite.Open(ctx, l.File, &sqlite.Options{Now: o.Now, ResetClock: o.ResetClock, Window: o.Window, Keys: o.keys()})
	if err != nil {
		return nil, nil, err
	}
	return f, f, nil
}

func (l Ledger) dir() string { return filepath.Dir(l.path) }

func (l Ledger) invalid(err error) error {
	return invalid(l.path, []Problem{{Line: l.line, Field: "ledger", Problem: err.Error()}})
}
