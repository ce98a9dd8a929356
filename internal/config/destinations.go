package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/yamlfile"
)

// settings are the settings of one type of destination.
type settings interface {
	// destination creates it, with secrets and files of an origin.
	destination(from origin) (connectors.Destination, error)
	// promises are the settings that every type has.
	promises() promises
}

// types makes empty settings by type.
var types = map[string]func() settings{
	"imap":       func() settings { return &imapSettings{} },
	"jira":       func() settings { return &jiraSettings{} },
	"mail":       func() settings { return &mailSettings{} },
	"mcp":        func() settings { return &mcpSettings{} },
	"postgresql": func() settings { return &postgresSettings{} },
	"rest":       func() settings { return &restSettings{} },
	"s3":         func() settings { return &s3Settings{} },
	"simulated":  func() settings { return &simulatedSettings{Class: string(orders.Plain)} },
}

// Types lists the types of destinations, sorted.
func Types() []string { return slices.Sorted(maps.Keys(types)) }

// promises override a connector's profile of its destination, for an operator who knows
// it better, and bound its use.
type promises struct {
	Settle       yamlfile.Bound `yaml:"settle"`
	Horizon      yamlfile.Bound `yaml:"horizon"`
	Recheck      yamlfile.Bound `yaml:"recheck"`
	Rollback     yamlfile.Bound `yaml:"rollback"`
	SendTimeout  yamlfile.Span  `yaml:"send_timeout"`
	ReadTimeout  yamlfile.Span  `yaml:"read_timeout"`
	Rate         rate           `yaml:"rate"`
	Concurrency  count          `yaml:"concurrency"`
	Breaker      breaker        `yaml:"breaker"`
	Verify       verifySettings `yaml:"verify"`
	VerifyWithin yamlfile.Span  `yaml:"verify_within"`
	// Egress are the hosts and networks at which it may be reached.
	Egress egressList `yaml:"egress"`
	// Sensitive are paths of fields of its records that are never shown.
	Sensitive []yamlfile.Text `yaml:"sensitive"`
	// Tenants may name it.
	Tenants []yamlfile.Text `yaml:"tenants"`
}

// rate is how many calls a destination accepts.
type rate struct{ connectors.Rate }

// FillYAML reads it.
func (p *rate) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var s struct {
		Calls count         `yaml:"calls"`
		Per   yamlfile.Span `yaml:"per"`
	}
	if r.Fill(n, at.Field, &s) && (s.Calls == 0 || s.Per == 0) {
		r.At(at, "is not whole; want both calls and per, such as {calls: 100, per: 1m}")
	}
	p.Rate = connectors.Rate{Calls: int(s.Calls), Per: time.Duration(s.Per)}
}

func (p promises) apply(to connectors.Profile) connectors.Profile {
	for _, b := range []struct {
		from yamlfile.Bound
		to   *connectors.Bound
	}{{p.Settle, &to.Settle}, {p.Horizon, &to.Horizon}, {p.Recheck, &to.Recheck}, {p.Rollback, &to.Rollback}} {
		switch {
		case b.from.Known:
			*b.to = connectors.Within(b.from.Time)
		case b.from.Set:
			*b.to = connectors.Bound{}
		}
	}
	if p.SendTimeout > 0 {
		to.SendTimeout = time.Duration(p.SendTimeout)
	}
	if p.ReadTimeout > 0 {
		to.ReadTimeout = time.Duration(p.ReadTimeout)
	}
	if p.Rate.Calls > 0 {
		to.Rate = p.Rate.Rate
	}
	for _, path := range p.Sensitive {
		to.Sensitive = append(slices.Clip(to.Sensitive), path.Value)
	}
	return to
}

// destination reads the settings of one destination.
func (r *reader) destination(d *Destination, n yamlfile.Node) bool {
	field := "destinations." + yamlfile.Clip(d.Name)
	if d.Name == "" {
		r.Say(d.Line, "destinations", "a name is empty")
		return false
	}
	before := len(r.Problems)
	for _, e := range r.Mapping(n, field) {
		if e.Name == "type" {
			d.Type = r.Text(e, field+".type")
		}
	}
	if len(r.Problems) > before {
		return false
	}
	empty, ok := types[d.Type]
	if !ok {
		r.Say(d.Line, field, "has the type %q; want one of %s", yamlfile.Clip(d.Type), strings.Join(Types(), ", "))
		return false
	}
	d.settings = empty()
	r.Fill(n, field, d.settings)
	r.checkConnections(d.settings)
	return len(r.Problems) == before
}

// checkConnections refuses settings that cannot be applied to connections made by a
// foreign program.
func (r *reader) checkConnections(s settings) {
	m, ok := s.(*mcpSettings)
	if !ok || len(m.Command) == 0 {
		return
	}
	if at := m.Promises.Egress.at; at.Field != "" {
		r.At(at, "cannot limit a program (command), which makes its own connections; want it left out, and a limit of the operating system: a user of its own (user) and a firewall, or a container")
	}
	if at := m.Connection.place(); at.Field != "" {
		r.At(at, "is for a server at a url, and this one is a program (command); want it left out")
	}
}

// every is the word for all tenants.
const every = "*"

// checkTenants sets the tenants of each destination and each hook. The credentials of a
// destination are those of its tenants, so no other tenant may name it.
func (r *reader) checkTenants(c *Config) {
	for i := range c.Destinations {
		d := &c.Destinations[i]
		var tenants []string
		for _, g := range c.MCP.Gateways {
			if g.Destination == d.Name && !slices.Contains(tenants, g.Tenant) {
				tenants = append(tenants, g.Tenant)
			}
		}
		if len(tenants) == 0 {
			tenants = []string{c.Tenant}
		}
		d.Tenants = r.tenants(d.settings.promises().Tenants, tenants)
	}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		w.Hook.Tenants = r.tenants(w.settings.Tenants, []string{c.Tenant})
	}
	for _, g := range c.MCP.Gateways {
		for _, d := range c.Destinations {
			if d.Name == g.Destination && d.Tenants != nil && !slices.Contains(d.Tenants, g.Tenant) {
				r.At(g.at, "is of the tenant %q, which the destination %s does not serve; add it to destinations.%s.tenants", yamlfile.Clip(g.Tenant), d.Name, d.Name)
			}
		}
	}
}

// tenants are the named ones, the defaults if none is named, and nil for all.
func (r *reader) tenants(named []yamlfile.Text, otherwise []string) []string {
	var all []string
	for _, t := range named {
		switch {
		case t.Value == every && len(named) > 1:
			r.At(t.Place, "is %q among others; want it alone, for all tenants, or the names of some", every)
		case t.Value == every:
			return nil
		case t.Value != strings.TrimSpace(t.Value):
			r.At(t.Place, "is %q; want the name of a tenant, or %q for all", yamlfile.Clip(t.Value), every)
		case slices.Contains(all, t.Value):
			r.At(t.Place, "is %q a second time; leave one out", yamlfile.Clip(t.Value))
		default:
			all = append(all, t.Value)
		}
	}
	if len(named) == 0 {
		return otherwise
	}
	return all
}

// Registry creates the destinations. Secrets must be available by now, so that no write
// is recorded that cannot be sent without one. It fails with [InvalidError].
func (c Config) Registry(env func(string) string) (*connectors.Registry, error) {
	var reg connectors.Registry
	var problems []Problem
	there := map[string]bool{}
	for _, d := range c.Destinations {
		from := c.origin(env)
		made, err := d.settings.destination(from)
		if err == nil {
			made.Profiles = maps.Clone(made.Profiles)
			for kind, p := range made.Profiles {
				p.Destination, p.Kind = d.Name, kind
				made.Profiles[kind] = d.settings.promises().apply(p)
			}
			made.Tenants, made.LoginRefused = d.Tenants, from.refused()
			err = reg.Register(d.Name, made)
		}
		if err != nil {
			problems = append(problems, problemOf(err, yamlfile.Place{Line: d.Line, Field: "destinations." + d.Name}))
		}
		there[d.Name] = err == nil
	}
	problems = append(problems, c.registerHooks(&reg, c.origin(env))...)
	problems = append(problems, c.unfitNotifications(&reg, there)...)
	problems = append(problems, c.MCP.unfit(&reg, there)...)
	_, unusable := c.Redaction.keys(c.origin(env))
	problems = append(problems, unusable...)
	return &reg, invalid(c.Path, problems)
}

// breaker is the circuit breaker of a destination. The zero value has the defaults of
// package guards.
type breaker guards.Breaker

// FillYAML reads one: off, or a mapping.
func (b *breaker) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if !n.IsMapping() {
		word, ok := r.Scalar(n, at.Field)
		switch {
		case word == "off" || word == false: // older YAML readers read off as false
			b.Failures = -1
		case ok:
			r.At(at, "is not known; want off, or {failures: 5, window: 1m, open: 30s}")
		}
		return
	}
	var s struct {
		Failures count         `yaml:"failures"`
		Window   yamlfile.Span `yaml:"window"`
		Open     yamlfile.Span `yaml:"open"`
	}
	r.Fill(n, at.Field, &s)
	*b = breaker{Failures: int(s.Failures), Window: time.Duration(s.Window), Open: time.Duration(s.Open)}
}

// Limits are the guards of all destinations, by name.
func (c Config) Limits() map[string]guards.Settings {
	all := make(map[string]guards.Settings, len(c.Destinations))
	for _, d := range c.Destinations {
		p := d.settings.promises()
		all[d.Name] = guards.Settings{Rate: p.Rate.Rate, Concurrency: int(p.Concurrency), Breaker: guards.Breaker(p.Breaker)}
	}
	return all
}
