package config

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Setting is an environment variable that overrides a setting of the configuration.
type Setting struct {
	// Variable is its name, Path the setting in the file.
	Variable, Path string

	set func(l *loading, c *Config, e yamlfile.Entry)
}

// Settings are the environment variables that are read, besides [Variable]. No other
// setting can be set so. A path in one of them is relative to the working directory.
func Settings() []Setting { return slices.Clone(overrides) }

var overrides = []Setting{
	{"READBACK_LEDGER", "ledger", func(l *loading, c *Config, e yamlfile.Entry) { l.ledgerFrom(c, e) }},
	{"READBACK_LEDGER_PLAINTEXT", "ledger.plaintext", func(l *loading, c *Config, e yamlfile.Entry) {
		if !c.Ledger.Database() {
			l.Say(0, e.Name, "belongs to a ledger in a database, and this one is a file")
			return
		}
		l.Fill(e.Value, e.Name, &c.Ledger.Plaintext)
	}},
	{"READBACK_TENANT", "tenant", func(l *loading, c *Config, e yamlfile.Entry) { c.Tenant = l.Text(e, e.Name) }},
	{"READBACK_LOG", "log", func(l *loading, c *Config, e yamlfile.Entry) { c.Log = l.logForm(e) }},
	{"READBACK_METRICS", "metrics", func(l *loading, c *Config, e yamlfile.Entry) { c.Metrics = l.metrics(e) }},
	{"READBACK_GATE_RULES", "gate.rules", func(l *loading, c *Config, e yamlfile.Entry) { c.Gate.Rules = l.Text(e, e.Name) }},
	server("LISTEN", "listen", func(s *serverSettings) any { return &s.Listen }),
	server("PUBLIC_URL", "public_url", func(s *serverSettings) any { return &s.PublicURL }),
	server("TLS_CERT_FILE", "tls.cert_file", func(s *serverSettings) any { return &s.TLS.CertFile }),
	server("TLS_KEY_FILE", "tls.key_file", func(s *serverSettings) any { return &s.TLS.KeyFile }),
	server("PLAINTEXT", "plaintext", func(s *serverSettings) any { return &s.Plaintext }),
	server("MAX_WAIT", "max_wait", func(s *serverSettings) any { return &s.MaxWait }),
	server("GRACE", "grace", func(s *serverSettings) any { return &s.Grace }),
	server("PARALLEL", "parallel", func(s *serverSettings) any { return &s.Parallel }),
	server("API", "api", func(s *serverSettings) any { return &s.API }),
	server("GATE", "gate", func(s *serverSettings) any { return &s.Gate }),
	server("MCP", "mcp", func(s *serverSettings) any { return &s.MCP }),
	server("REVIEW_UI", "review_ui", func(s *serverSettings) any { return &s.ReviewUI }),
}

func server(variable, path string, at func(*serverSettings) any) Setting {
	return Setting{"READBACK_SERVER_" + variable, "server." + path, func(l *loading, _ *Config, e yamlfile.Entry) {
		into := at(&l.server)
		l.Fill(e.Value, e.Name, into)
		if text, ok := into.(*yamlfile.Text); ok {
			text.Line = 0 // it is in no file
		}
	}}
}

// ledgerFrom reads the ledger from the environment: a file, or the URL of a database. The
// URL stays in the environment, as it may contain a password.
func (l *loading) ledgerFrom(c *Config, e yamlfile.Entry) {
	text := l.Text(e, e.Name)
	kept := c.Ledger.database
	c.Ledger = Ledger{path: cmp.Or(c.Path, environmentName)}
	if !isURL(text) {
		c.Ledger.File = text
		return
	}
	kept.URL, kept.URLEnv, kept.URLFile, kept.URLArgv = "", e.Name, "", nil
	c.Ledger.database = kept
}

// environmentName replaces the file name in messages.
const environmentName = "the environment"

// Environment is the environment of a process: the value of one variable, and
// "name=value" of all.
type Environment struct {
	Get func(string) string
	All func() []string
}

// plainValue matches values that YAML does not read as text, and that a setting may need.
// A number with a leading zero is not the same text as the number.
var plainValue = regexp.MustCompile(`^(true|false|0|[1-9][0-9]{0,17})$`)

// environment applies the settings of the environment over those of the file. Problems
// are those of variables.
func (l *loading) environment(c *Config, env Environment, file []byte) {
	if env.Get == nil {
		return
	}
	for _, o := range overrides {
		value := env.Get(o.Variable)
		if value == "" { // as if unset: containers set variables that they leave empty
			continue
		}
		text := []byte(value)
		if !plainValue.Match(text) {
			text, _ = json.Marshal(value) // a string always marshals
		}
		apart := newReader()
		n, ok := apart.Parse(text)
		if !ok {
			l.Say(0, o.Variable, "cannot be read; want one line of text")
			continue
		}
		before := len(l.Problems)
		o.set(l, c, yamlfile.Entry{Name: o.Variable, Value: n})
		for i := range l.Problems[before:] {
			l.Problems[before+i].Line = 0 // it is the variable's, not the file's
		}
	}
	l.foreign(env, file)
}

// foreign refuses variables that look like settings and are none: a misspelt one would be
// ignored. Those that the file names hold secrets; others are not ours.
func (l *loading) foreign(env Environment, file []byte) {
	if env.All == nil {
		return
	}
	known := []string{Variable}
	for _, o := range overrides {
		known = append(known, o.Variable)
	}
	for _, each := range env.All() {
		name, _, _ := strings.Cut(each, "=")
		if !strings.HasPrefix(name, "READBACK_") || slices.Contains(known, name) || named(file, name) {
			continue
		}
		near, ok := yamlfile.Nearest(name, known)
		switch {
		case ok:
			l.Say(0, yamlfile.Clip(name), "is not known; did you mean %s?", near)
		case strings.HasPrefix(name, "READBACK_SERVER_"):
			l.Say(0, yamlfile.Clip(name), "is not known; docs/reference/config.md lists the variables that are read")
		}
	}
}

// named reports whether a file contains a word.
func named(file []byte, word string) bool {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(word) + `([^A-Za-z0-9_]|$)`).Match(file)
}
