package config

import (
	_ "embed" // for the template
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/policies"
)

// FileName is the default configuration file.
const FileName = "readback.yaml"

// Variable is the environment variable that names the file.
const Variable = "READBACK_CONFIG"

// defaultTenant is the default tenant.
const defaultTenant = "default"

//go:embed readback.yaml
var template []byte

// Template is a configuration with a comment on everything. It can be loaded unchanged.
func Template() []byte { return append([]byte(nil), template...) }

// TemplateFor is the template with another destination than the one to try out: an entry
// of `destinations`, indented by two spaces. The tools, which are for the one to try out,
// become comments.
func TemplateFor(destination string) []byte {
	var b strings.Builder
	section, replaced := "", false
	for line := range strings.Lines(string(template)) {
		switch {
		case line != "" && !strings.ContainsAny(line[:1], " #\n"):
			section, _, _ = strings.Cut(line, ":")
		case section != "destinations":
		case strings.HasPrefix(line, "  orders:"), strings.HasPrefix(line, "    "):
			if !replaced {
				b.WriteString(destination)
			}
			replaced = true
			continue
		case !replaced && line != "\n":
			continue // what is said about the one to try out
		}
		if section == "mcp" && line != "\n" && !strings.HasPrefix(line, "#") {
			line = "#" + line
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}

// Config is the content of a configuration file.
type Config struct {
	// Path is the path of the file.
	Path string
	// Ledger configures the ledger. Relative paths in the configuration are relative to
	// its folder.
	Ledger Ledger
	// Tenant is the tenant of commands that name none. Default "default".
	Tenant string
	// Destinations are the configured ones, in the order of the file.
	Destinations []Destination
	// Retention says what may be pruned.
	Retention Retention
	// Queue bounds the waiting writes. Default the engine's bounds.
	Queue Queue
	// Gate configures the step gate. Default the gate's own settings, and no rules.
	Gate Gate
	// Risks raise the risk classes of writes and steps. Default none.
	Risks []policies.RiskRule
	// Metrics says where metrics are served. Default nowhere.
	Metrics Metrics
	// Server configures `readback serve`. Default [DefaultServer].
	Server Server
	// MCP configures the API for models. Default no tools.
	MCP MCP
	// Webhooks are notified of changes. Default none.
	Webhooks []Webhook
	// Notifications are messages to people about what waits for a reviewer. Default none.
	Notifications []Notification
	// Redaction says what is sensitive. Default nothing.
	Redaction Redaction
	// Telemetry says where spans, metrics and events are sent. Default nowhere.
	Telemetry Telemetry
	// Receipts configures the keys of receipts. Default none.
	Receipts Receipts
	// Audit configures whether events are chained, and where heads are kept. Default not.
	Audit Audit
	// Commands configures the commands that print secrets.
	Commands Commands
	// Log is the form of logs, "text" or "json". Default "text".
	Log string

	values  map[string]string // values of the file, by path
	files   []File            // it and the files that it names
	secrets []string          // the variables that hold secrets
	sum     string            // the SHA-256 of the file as it was read
	keepers []keepSettings    // of heads
}

// Destination is one destination as the file names it.
type Destination struct {
	Name string
	Type string
	// Tenants may name it, nil for all. Default: those of the gateways in front of it,
	// else the configuration's.
	Tenants []string
	// Line is its line in the file.
	Line int

	settings settings
}

// Find returns the path of the configuration: the named one, the one in [Variable], or
// [FileName] in the working directory. It fails with [ErrMissing].
func Find(named string, env func(string) string) (string, error) {
	why := ""
	switch {
	case named != "":
	case env(Variable) != "":
		named, why = env(Variable), " (named by "+Variable+")"
	default:
		named = FileName
	}
	_, err := os.Stat(named)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s%s does not exist; `readback init` writes one, --config and %s name another", ErrMissing, named, why, Variable)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return named, nil
}

// Load reads a configuration that is used elsewhere, strictly: it reads only the
// variables that the file names, and ignores who can write the file here. It fails with
// [ErrMissing] and [InvalidError].
func Load(path string) (Config, error) { return LoadOver(path, Environment{}) }

// LoadOver is Load for this process: settings of the environment override the file (see
// [Settings]), and [Config.Untrusted] files are refused.
func LoadOver(path string, env Environment) (Config, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return read(path, text, env)
}

// LoadDestinations is LoadOver for callers that need no ledger: the file may have none.
func LoadDestinations(path string, env Environment) (Config, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return readOver(&loading{reader: newReader(), noLedger: true}, path, text, env)
}

// Read is LoadOver for a text that is in no file. Its paths are relative to the working
// directory, and name is used in messages.
func Read(name string, text []byte, env Environment) (Config, error) {
	c, err := readOver(&loading{reader: newReader(), noFile: true}, name, text, env)
	c.Path = ""
	return c, err
}

// Parse is [Load] for the text of a file that is not written yet.
func Parse(path string, text []byte) (Config, error) { return read(path, text, Environment{}) }

func read(path string, text []byte, env Environment) (Config, error) {
	return readOver(&loading{reader: newReader()}, path, text, env)
}

func readOver(l *loading, path string, text []byte, env Environment) (Config, error) {
	c := Config{Path: path, Tenant: defaultTenant, Log: "text"}
	if body, ok := l.Parse(text); ok {
		c.values = valuesIn(body)
		l.config(&c, body)
		l.environment(&c, env, text)
		l.finish(&c)
		c.sum = hexDigest(text)
		l.named(&c, body)
	}
	if env.Get != nil {
		l.Problems = append(l.Problems, c.Untrusted()...)
	}
	return c, invalid(path, l.Problems)
}

// Without is a configuration without a file: the settings of the environment, and a
// ledger in a file if they name none.
func Without(env Environment, ledgerFile string) (Config, error) {
	l := &loading{reader: newReader()}
	c := Config{Tenant: defaultTenant, Log: "text", Ledger: Ledger{File: ledgerFile}}
	l.environment(&c, env, nil)
	l.ledgerSet = true
	l.finish(&c)
	l.named(&c, yamlfile.Node{})
	return c, invalid(environmentName, append(l.Problems, c.Untrusted()...))
}

// loading is one reading of a configuration.
type loading struct {
	*reader
	risks     []placed
	server    serverSettings
	ledgerSet bool // the file sets it, even if wrongly
	noLedger  bool // none is needed
	noFile    bool // the text is in no file
}

func (l *loading) config(c *Config, body yamlfile.Node) {
	members := l.Mapping(body, "")
	l.ledgerSet = len(members) == 0
	for _, e := range members {
		switch e.Name {
		case "ledger":
			c.Ledger, l.ledgerSet = l.ledger(e, c.Path), true
		case "tenant":
			c.Tenant = l.Text(e, e.Name)
		case "destinations":
			c.Destinations = l.destinations(e)
		case "retention":
			c.Retention = l.retention(e)
		case "queue":
			c.Queue = l.queue(e)
		case "gate":
			c.Gate = l.gate(e, c.Path)
		case "risk":
			l.risks = l.readRisks(e)
		case "metrics":
			c.Metrics = l.metrics(e)
		case "mcp":
			c.MCP = l.mcp(e)
		case "webhooks":
			c.Webhooks = l.webhooks(e)
		case "notifications":
			c.Notifications = l.notifications(e)
		case "redaction":
			c.Redaction = l.redaction(e)
		case "telemetry":
			c.Telemetry = l.telemetry(e)
		case "receipts":
			c.Receipts = l.receipts(e)
		case "audit":
			c.Audit, c.keepers = l.audit(e)
		case "secrets":
			c.Commands = l.commands(e)
		case "server":
			l.Fill(e.Value, e.Name, &l.server)
			c.Server.Line = e.Line
		case "log":
			c.Log = l.logForm(e)
		default:
			l.Unknown(e, "", sections)
		}
	}
}

// sections are the names on the first level.
var sections = []string{"ledger", "tenant", "destinations", "retention", "queue", "gate", "risk", "metrics", "telemetry", "mcp", "webhooks", "notifications", "redaction", "receipts", "audit", "secrets", "server", "log"}

// finish checks settings that depend on each other.
func (l *loading) finish(c *Config) {
	c.Risks = l.checkRisks(l.risks, c.Destinations)
	if c.Retention.Line == 0 {
		c.Retention = defaultRetention(c.Gate)
	}
	l.checkGate(*c)
	l.checkHooks(*c)
	l.checkRedaction(*c)
	l.checkTools(c.MCP, c.Destinations)
	l.checkGateways(c.MCP.Gateways, c.Destinations, c.Tenant)
	l.checkTenants(c)
	l.checkNotifications(c)
	line := c.Server.Line
	c.Server = l.checkServer(l.server, c.Path)
	c.Server.Line = line
	c.Server.OIDC = l.checkOIDC(l.server.OIDC, c.Server.PublicURL, c.Path, c.Tenant)
	c.Server.Sessions = l.checkSessions(l.server.Sessions, c.Path)
	if !l.ledgerSet && !l.noLedger && c.Ledger.File == "" && !c.Ledger.Database() {
		l.Say(0, "ledger", "is missing; want the file of the ledger, for example readback.db, or a PostgreSQL database")
	}
}

func (r *reader) destinations(e yamlfile.Entry) []Destination {
	var all []Destination
	if e.Value.IsNull() {
		return nil // an empty section, with everything below it commented out
	}
	for _, e := range r.Mapping(e.Value, "destinations") {
		d := Destination{Name: e.Name, Line: e.Line}
		if r.destination(&d, e.Value) {
			all = append(all, d)
		}
	}
	return all
}
