package config

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Setting is one environment variable that says what a configuration says, and
// comes before it.
type Setting struct {
	// Variable is its name, Path the setting in the file.
	Variable, Path string

	set func(l *loading, c *Config, e yamlfile.Entry)
}

// Settings are the environment variables that are looked at, besides [Variable].
// No other setting can be made so. A path in one of them is relative to the
// working directory.
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
	server("DESK", "desk", func(s *serverSettings) any { return &s.Desk }),
}

func server(variable, path string, at func(*serverSettings) any) Setting {
	return Setting{"READBACK_SERVER_" + variable, "server." + path, func(l *loading, _ *Config, e yamlfile.Entry) {
		into := at(&l.server)
		l.Fill(e.Value, e.Name, into)
		if text, ok := into.(*yamlfile.Text); ok {
			text.Line = 0 // in no file
		}
	}}
}

// ledgerFrom takes the ledger from the environment: a file, or the URL of a
// database, which stays there, since there may be a password in it.
func (l *loading) ledgerFrom(c *Config, e yamlfile.Entry) {
	text := l.Text(e, e.Name)
	kept := c.Ledger.database
	c.Ledger = Ledger{path: cmp.Or(c.Path, environmentName)}
	if !isURL(text) {
		c.Ledger.File = text
		return
	}
	kept.URL, kept.URLEnv, kept.URLFile = "", e.Name, ""
	c.Ledger.database = kept
}

// environmentName stands in messages where a file would.
const environmentName = "the environment"

// Environment is what the variables of a process say: the value of one, and
// "name=value" of all.
type Environment struct {
	Get func(string) string
	All func() []string
}

// plainValue is what YAML takes for no text, and a setting may want. A number with
// a zero before it is not the same text as the number.
var plainValue = regexp.MustCompile(`^(true|false|0|[1-9][0-9]{0,17})$`)

// environment reads what the environment says over what the file said. Problems
// are those of variables.
func (l *loading) environment(c *Config, env Environment, file []byte) {
	if env.Get == nil {
		return
	}
	for _, o := range overrides {
		value := env.Get(o.Variable)
		if value == "" { // as where it is not set: containers set variables they leave empty
			continue
		}
		text := []byte(value)
		if !plainValue.Match(text) {
			text, _ = json.Marshal(value) // a string can always be
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
			l.Problems[before+i].Line = 0 // of the variable, not of the file
		}
	}
	l.strangers(env, file)
}

// strangers refuses variables that are meant as settings and are none: one that
// is misspelt would be overlooked. Those that the file names hold secrets, and
// others are none of ours.
func (l *loading) strangers(env Environment, file []byte) {
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
			l.Say(0, yamlfile.Clip(name), "is not known; docs/deploying.md lists the variables that are looked at")
		}
	}
}

// named reports whether a file holds a word.
func named(file []byte, word string) bool {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(word) + `([^A-Za-z0-9_]|$)`).Match(file)
}
