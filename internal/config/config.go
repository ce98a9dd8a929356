package config

import (
	_ "embed" // for the template
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/policies"
)

// FileName is the file that is looked for where none is named.
const FileName = "readback.yaml"

// Variable is the environment variable that names the file.
const Variable = "READBACK_CONFIG"

// defaultTenant owns what no tenant is named for.
const defaultTenant = "default"

//go:embed readback.yaml
var template []byte

// Template is a configuration with a comment on everything. It can be loaded
// as it is.
func Template() []byte { return append([]byte(nil), template...) }

// Config is what a configuration file says.
type Config struct {
	// Path is the file.
	Path string
	// Ledger is where the ledger is. What the configuration names is looked for
	// beside the configuration.
	Ledger Ledger
	// Tenant is the tenant that is meant where none is named. Default
	// "default".
	Tenant string
	// Destinations are those that are named, in the order of the file.
	Destinations []Destination
	// Retention says what may be forgotten. Default nothing.
	Retention Retention
	// Queue bounds what may wait. Default the engine's bounds.
	Queue Queue
	// Gate is the step gate. Default the gate's own settings, and no rules.
	Gate Gate
	// Risks raise the risk classes of writes and steps. Default none.
	Risks []policies.RiskRule
	// Metrics says where numbers are served. Default nowhere.
	Metrics Metrics
	// Server is what `readback serve` does. Default [DefaultServer].
	Server Server
	// MCP is the door for models. Default no tools.
	MCP MCP
	// Webhooks are told of changes. Default none.
	Webhooks []Webhook
	// Redaction says what is sensitive. Default nothing.
	Redaction Redaction
	// Telemetry says where spans, metrics and events go. Default nowhere.
	Telemetry Telemetry
	// Receipts says who signs receipts. Default nobody.
	Receipts Receipts
	// Audit says whether events are chained, and who keeps the heads. Default not.
	Audit Audit
	// Log is how logs are written, "text" or "json". Default "text".
	Log string

	said    map[string]string // in the file, by place
	files   []File            // it and those that it names
	secrets []string          // the variables that hold secrets
	sum     string            // the SHA-256 of the file as it was read
	keepers []keepSettings    // of heads
}

// Destination is one destination as the file names it.
type Destination struct {
	Name string
	Type string
	// Tenants are those that may name it, nil for all. Default: those of the gateways
	// in front of it, else the configuration's.
	Tenants []string
	// Line is where it stands in the file.
	Line int

	settings settings
}

// Find says which configuration is meant: the named one, the one in
// [Variable], or [FileName] in the working directory. It fails with
// [ErrMissing].
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

// Load reads a configuration that is used elsewhere, strictly: no variable but those
// that it names is looked at, and who can write it here does not matter. It fails
// with [ErrMissing] and [InvalidError].
func Load(path string) (Config, error) { return LoadOver(path, Environment{}) }

// LoadOver is Load for this process: with what the environment says over the file
// (see [Settings]), and [Config.Untrusted] files refused.
func LoadOver(path string, env Environment) (Config, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return read(path, text, env)
}

// LoadDestinations is LoadOver for who needs no ledger: the file may do without.
func LoadDestinations(path string, env Environment) (Config, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return readOver(&loading{reader: newReader(), noLedger: true}, path, text, env)
}

// Read is LoadOver for a text that is in no file. What it names is looked for in
// the working directory, and its name stands in messages.
func Read(name string, text []byte, env Environment) (Config, error) {
	c, err := readOver(&loading{reader: newReader(), noFile: true}, name, text, env)
	c.Path = ""
	return c, err
}

func read(path string, text []byte, env Environment) (Config, error) {
	return readOver(&loading{reader: newReader()}, path, text, env)
}

func readOver(l *loading, path string, text []byte, env Environment) (Config, error) {
	c := Config{Path: path, Tenant: defaultTenant, Log: "text"}
	if body, ok := l.Parse(text); ok {
		c.said = saidIn(body)
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

// Without is a configuration without a file: what the environment says, and a
// ledger in a file where it names none.
func Without(env Environment, ledgerFile string) (Config, error) {
	l := &loading{reader: newReader()}
	c := Config{Tenant: defaultTenant, Log: "text", Ledger: Ledger{File: ledgerFile}}
	l.environment(&c, env, nil)
	l.ledgerSaid = true
	l.finish(&c)
	l.named(&c, yamlfile.Node{})
	return c, invalid(environmentName, append(l.Problems, c.Untrusted()...))
}

// loading is one reading of a configuration.
type loading struct {
	*reader
	risks      []placed
	server     serverSettings
	ledgerSaid bool // the file says something of it, even if that is wrong
	noLedger   bool // nobody needs one
	noFile     bool // the text is in no file
}

func (l *loading) config(c *Config, body yamlfile.Node) {
	members := l.Mapping(body, "")
	l.ledgerSaid = len(members) == 0
	for _, e := range members {
		switch e.Name {
		case "ledger":
			c.Ledger, l.ledgerSaid = l.ledger(e, c.Path), true
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
		case "redaction":
			c.Redaction = l.redaction(e)
		case "telemetry":
			c.Telemetry = l.telemetry(e)
		case "receipts":
			c.Receipts = l.receipts(e)
		case "audit":
			c.Audit, c.keepers = l.audit(e)
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
var sections = []string{"ledger", "tenant", "destinations", "retention", "queue", "gate", "risk", "metrics", "telemetry", "mcp", "webhooks", "redaction", "receipts", "audit", "server", "log"}

// finish checks what fits only together.
func (l *loading) finish(c *Config) {
	c.Risks = l.checkRisks(l.risks, c.Destinations)
	l.checkGate(*c)
	l.checkHooks(*c)
	l.checkRedaction(*c)
	l.checkTools(c.MCP, c.Destinations)
	l.checkGateways(c.MCP.Gateways, c.Destinations, c.Tenant)
	l.checkTenants(c)
	line := c.Server.Line
	c.Server = l.checkServer(l.server, c.Path)
	c.Server.Line = line
	c.Server.OIDC = l.checkOIDC(l.server.OIDC, c.Server.PublicURL, c.Path, c.Tenant)
	c.Server.Sessions = l.checkSessions(l.server.Sessions, c.Path)
	if !l.ledgerSaid && !l.noLedger && c.Ledger.File == "" && !c.Ledger.Database() {
		l.Say(0, "ledger", "is missing; want the file of the ledger, for example readback.db, or a PostgreSQL database")
	}
}

func (r *reader) destinations(e yamlfile.Entry) []Destination {
	var all []Destination
	if e.Value.IsNull() {
		return nil // the word alone, with everything below it commented out
	}
	for _, e := range r.Mapping(e.Value, "destinations") {
		d := Destination{Name: e.Name, Line: e.Line}
		if r.destination(&d, e.Value) {
			all = append(all, d)
		}
	}
	return all
}
