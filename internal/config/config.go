package config

import (
	_ "embed" // for the template
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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
	// Ledger is the file of the ledger. What the configuration names is looked
	// for beside the configuration.
	Ledger string
	// Tenant is the tenant that is meant where none is named. Default
	// "default".
	Tenant string
	// Destinations are those that are named, in the order of the file.
	Destinations []Destination
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
	text, err := readBounded(path, maxFile)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	r := reader{}
	c := Config{Path: path, Tenant: defaultTenant}
	if body := r.parse(text); body != nil {
		r.config(&c, body)
	}
	if c.Ledger != "" && !filepath.IsAbs(c.Ledger) {
		c.Ledger = filepath.Join(filepath.Dir(path), c.Ledger)
	}
	return c, invalid(path, r.problems)
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: has more than %d bytes", path, most)
	}
	return text, err
}

// parse returns the one document of a file.
func (r *reader) parse(text []byte) ast.Node {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		r.explain("", err)
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 1:
		return bodies[0]
	case 0:
		r.say(0, "", "is empty; `readback init --force` writes one that works")
	default:
		r.say(lineOf(bodies[1]), "", "a second document begins here; want one")
	}
	return nil
}

func (r *reader) config(c *Config, body ast.Node) {
	seen := map[string]bool{}
	members := r.mapping(body, "")
	for _, e := range members {
		seen[e.name] = true
		switch e.name {
		case "ledger":
			c.Ledger = r.text(e, e.name)
		case "tenant":
			c.Tenant = r.text(e, e.name)
		case "destinations":
			c.Destinations = r.destinations(e)
		default:
			r.unknown(e, "", []string{"ledger", "tenant", "destinations"})
		}
	}
	if len(members) > 0 && !seen["ledger"] {
		r.say(0, "ledger", "is missing; want the file of the ledger, for example readback.db")
	}
}

func (r *reader) destinations(e entry) []Destination {
	var all []Destination
	if e.value.Type() == ast.NullType {
		return nil // the word alone, with everything below it commented out
	}
	for _, e := range r.mapping(e.value, "destinations") {
		d := Destination{Name: e.name, Line: e.line}
		if r.destination(&d, e.value) {
			all = append(all, d)
		}
	}
	return all
}
