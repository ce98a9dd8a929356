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
	// Log is how logs are written, "text" or "json". Default "text".
	Log string
}

// Destination is one destination as the file names it.
type Destination struct {
	Name string
	Type string
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

// Load reads a configuration strictly. It fails with [ErrMissing] and
// [InvalidError].
func Load(path string) (Config, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	r := newReader()
	c := Config{Path: path, Tenant: defaultTenant, Log: "text"}
	if body, ok := r.Parse(text); ok {
		r.config(&c, body)
	}
	return c, invalid(path, r.Problems)
}

func (r *reader) config(c *Config, body yamlfile.Node) {
	seen := map[string]bool{}
	members := r.Mapping(body, "")
	var risks []placed
	var server serverSettings
	for _, e := range members {
		seen[e.Name] = true
		switch e.Name {
		case "ledger":
			c.Ledger = r.ledger(e, c.Path)
		case "tenant":
			c.Tenant = r.Text(e, e.Name)
		case "destinations":
			c.Destinations = r.destinations(e)
		case "retention":
			c.Retention = r.retention(e)
		case "queue":
			c.Queue = r.queue(e)
		case "gate":
			c.Gate = r.gate(e, c.Path)
		case "risk":
			risks = r.risks(e)
		case "metrics":
			c.Metrics = r.metrics(e)
		case "server":
			r.Fill(e.Value, e.Name, &server)
			c.Server.Line = e.Line
		case "log":
			c.Log = r.logForm(e)
		default:
			r.Unknown(e, "", []string{"ledger", "tenant", "destinations", "retention", "queue", "gate", "risk", "metrics", "server", "log"})
		}
	}
	c.Risks = r.checkRisks(risks, c.Destinations)
	r.checkGate(*c)
	line := c.Server.Line
	c.Server = r.checkServer(server, c.Path)
	c.Server.Line = line
	if len(members) > 0 && !seen["ledger"] {
		r.Say(0, "ledger", "is missing; want the file of the ledger, for example readback.db, or a PostgreSQL database")
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
