package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/yamlfile"
)

// mcpSettings are the settings of a destination behind a server of the Model Context
// Protocol.
type mcpSettings struct {
	Type         string               `yaml:"type"`
	Command      []yamlfile.Text      `yaml:"command"`
	User         string               `yaml:"user"`
	Dir          string               `yaml:"dir"`
	Env          map[string]parameter `yaml:"env"`
	Secrets      map[string]Secret    `yaml:"secrets"`
	URL          string               `yaml:"url"`
	Headers      map[string]Secret    `yaml:"headers"`
	Connection   connection           `yaml:",inline"`
	Contract     string               `yaml:"contract"`
	Uncontracted string               `yaml:"uncontracted"`
	Protocol     string               `yaml:"protocol"`
	Promises     promises             `yaml:",inline"`
}

func (s *mcpSettings) promises() promises { return s.Promises }

func (s *mcpSettings) destination(from origin) (connectors.Destination, error) {
	if s.Uncontracted != "" && s.Uncontracted != "hide" && s.Uncontracted != "allow" {
		return connectors.Destination{}, fmt.Errorf("uncontracted: is %q; want hide, or allow: sent once and never verified", yamlfile.Clip(s.Uncontracted))
	}
	o := mcp.Options{WriteOnly: s.Uncontracted == "allow"}
	contract := mcp.None()
	var err error
	switch {
	case s.Contract != "":
		if contract, err = Contract(from.dir, s.Contract); err != nil {
			return connectors.Destination{}, fmt.Errorf("contract: %w", err)
		}
	case !o.WriteOnly:
		return connectors.Destination{}, fmt.Errorf("contract: is missing; want one of %s, or a file of yours (`readback contract suggest` drafts one); without any, uncontracted: allow", strings.Join(mcp.Shipped(), ", "))
	}
	if o.Server, err = s.server(from); err != nil {
		return connectors.Destination{}, err
	}
	c, err := mcp.New(contract, o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// server is the connection to the server.
func (s *mcpSettings) server(from origin) (mcp.Server, error) {
	on := mcp.Server{URL: s.URL, User: s.User, Protocol: s.Protocol, Env: map[string]string{}, Command: yamlfile.Values(s.Command)}
	if s.Dir != "" {
		on.Dir = beside(from.dir, s.Dir)
	} else if from.dir != "" {
		on.Dir = filepath.Clean(from.dir)
	}
	for name, v := range s.Env {
		on.Env[name] = v.value
	}
	var err error
	if on.Secrets, err = sources("secrets", s.Secrets, from); err != nil {
		return on, err
	}
	if on.Headers, err = sources("headers", s.Headers, from); err != nil {
		return on, err
	}
	on.RoundTripper, err = s.Connection.transport(s.Promises.Egress, s.URL, from)
	return on, err
}

// sources opens secrets by name.
func sources(field string, settings map[string]Secret, from origin) (map[string]func(context.Context) (string, error), error) {
	all := map[string]func(context.Context) (string, error){}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fetch, err := settings[name].as("").open(from)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", field, yamlfile.Clip(name), err)
		}
		all[name] = fetch
	}
	return all, nil
}

// Contract loads a contract: a built-in one by its name, or a file, whose path is
// relative to dir and contains a dot or a slash.
func Contract(dir, named string) (*mcp.Contract, error) {
	if !strings.ContainsAny(named, `./\`) {
		return mcp.ShippedContract(named)
	}
	text, err := yamlfile.ReadBounded(beside(dir, named), maxFile)
	if err != nil {
		return nil, err
	}
	return mcp.Load(text, named)
}

// Gateway is a gateway to a server of the Model Context Protocol.
type Gateway struct {
	// Name is the gateway's own: its path is /mcp/NAME.
	Name string
	// Destination is the server, a destination of type mcp.
	Destination string
	// Tenant is its owner. Default the configuration's.
	Tenant string
	// Reads are tools that only read, Hide those that are shown to no caller, besides
	// those of the contract.
	Reads, Hide []string
	// Wait is how long a call waits for its outcome. Default the gateway's own.
	Wait time.Duration

	at yamlfile.Place
}

type gatewaySettings struct {
	At          yamlfile.Place
	Destination yamlfile.Text   `yaml:"destination"`
	Tenant      yamlfile.Text   `yaml:"tenant"`
	Reads       []yamlfile.Text `yaml:"reads"`
	Hide        []yamlfile.Text `yaml:"hide"`
	Wait        yamlfile.Span   `yaml:"wait"`
}

var gatewayName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// maxGatewayWait is how long a call may wait: clients give up after a minute or
// so.
const maxGatewayWait = 50 * time.Second

// gateways reads those of a file, in the order of their names.
func (r *reader) gateways(from map[string]gatewaySettings) []Gateway {
	var all []Gateway
	for _, name := range slices.Sorted(maps.Keys(from)) {
		s := from[name]
		if !gatewayName.MatchString(name) {
			r.At(s.At, "has the name %q; want lower-case letters, digits and dashes", yamlfile.Clip(name))
		}
		if s.Destination.Value == "" {
			r.At(s.At, "has no destination; want the name of one of the type mcp")
		}
		if time.Duration(s.Wait) > maxGatewayWait {
			r.At(s.At, "waits %s; want at most %s", time.Duration(s.Wait), maxGatewayWait)
		}
		all = append(all, Gateway{Name: name, Destination: s.Destination.Value, Tenant: s.Tenant.Value,
			Reads: yamlfile.Values(s.Reads), Hide: yamlfile.Values(s.Hide), Wait: time.Duration(s.Wait), at: s.At})
	}
	return all
}

// checkGateways checks that each has a destination of its type, and gives those without a
// tenant the configuration's.
func (r *reader) checkGateways(all []Gateway, to []Destination, tenant string) {
	for i, g := range all {
		all[i].Tenant = cmp.Or(g.Tenant, tenant)
		at := slices.IndexFunc(to, func(d Destination) bool { return d.Name == g.Destination })
		if g.Destination != "" && (at < 0 || to[at].Type != "mcp") {
			r.At(g.at, "names the destination %q; want a destination of the type mcp", yamlfile.Clip(g.Destination))
		}
	}
}

// Program is a program that a destination starts.
type Program struct {
	// Destination is the destination that starts it.
	Destination string
	// User is the user that runs it, "" for the user of this process.
	User string
}

// Programs are the programs that the destinations start, in the order of the file.
func (c Config) Programs() []Program {
	var all []Program
	for _, d := range c.Destinations {
		if s, ok := d.settings.(*mcpSettings); ok && len(s.Command) > 0 {
			all = append(all, Program{d.Name, s.User})
		}
	}
	return all
}
