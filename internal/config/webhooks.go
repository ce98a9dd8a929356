package config

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Webhook is a subscriber to changes.
type Webhook struct {
	// Hook configures which changes. Its destination is registered by [Config.Registry].
	webhooks.Hook

	settings webhookSettings
}

type webhookSettings struct {
	At                 yamlfile.Place
	Name               yamlfile.Text   `yaml:"name"`
	URL                yamlfile.Text   `yaml:"url"`
	SecretEnv          string          `yaml:"secret_env"`
	SecretFile         string          `yaml:"secret_file"`
	SecretArgv         argv            `yaml:"secret_command"`
	PreviousSecretEnv  string          `yaml:"previous_secret_env"`
	PreviousSecretFile string          `yaml:"previous_secret_file"`
	PreviousSecretArgv argv            `yaml:"previous_secret_command"`
	Events             []yamlfile.Text `yaml:"events"`
	Tenants            []yamlfile.Text `yaml:"tenants"`
	Destinations       []yamlfile.Text `yaml:"destinations"`
	Connection         connection      `yaml:",inline"`
	AllowPrivate       []yamlfile.Text `yaml:"allow_private"`
	Window             yamlfile.Bound  `yaml:"window"`
	Sends              count           `yaml:"sends"`
	Timeout            yamlfile.Span   `yaml:"timeout"`
}

// hookName matches the name of a hook: it is part of names of destinations, notes and
// workflows.
var hookName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// webhooks reads the list of hooks.
func (r *reader) webhooks(e yamlfile.Entry) []Webhook {
	var list []webhookSettings
	if e.Value.IsNull() || !r.Fill(e.Value, e.Name, &list) {
		return nil
	}
	var all []Webhook
	for _, s := range list {
		before := len(r.Problems)
		r.checkHook(s)
		if slices.ContainsFunc(all, func(w Webhook) bool { return w.Name == s.Name.Value }) {
			r.At(cmp.Or(s.Name.Place, s.At), "is %q, as that of another hook; want another one: it names the cursor of each", yamlfile.Clip(s.Name.Value))
		}
		if len(r.Problems) == before {
			all = append(all, Webhook{settings: s, Hook: webhooks.Hook{
				Name: s.Name.Value, Events: yamlfile.Values(s.Events), Tenants: yamlfile.Values(s.Tenants), Destinations: yamlfile.Values(s.Destinations)}})
		}
	}
	return all
}

func (r *reader) checkHook(s webhookSettings) {
	switch {
	case s.Name.Value == "":
		r.At(s.At, "has no name; want one such as ops: it names the cursor of the hook")
	case !hookName.MatchString(s.Name.Value):
		r.At(s.Name.Place, "is %q; want lower-case letters, digits, - and _, at most 64", yamlfile.Clip(s.Name.Value))
	}
	if s.URL.Value == "" {
		r.At(s.At, "has no url; want where messages are posted to, https://host/path")
	}
	for _, e := range s.Events {
		if !slices.Contains(webhooks.Events(), e.Value) {
			r.At(e.Place, "is %q; want %s", yamlfile.Clip(e.Value), strings.Join(webhooks.Events(), ", "))
		}
	}
	for _, p := range s.AllowPrivate {
		if _, err := netip.ParsePrefix(p.Value); err != nil {
			r.At(p.Place, "is %q; want a network such as 10.0.0.0/8", yamlfile.Clip(p.Value))
		}
	}
}

// checkHooks checks settings that depend on the rest of the configuration.
func (r *reader) checkHooks(c Config) {
	for _, d := range c.Destinations {
		if strings.HasPrefix(d.Name, webhooks.Prefix) {
			r.Say(d.Line, "destinations."+yamlfile.Clip(d.Name), "begins with %s, as the destinations of webhooks do; want another name", webhooks.Prefix)
		}
	}
	for _, w := range c.Webhooks {
		for _, name := range w.settings.Destinations {
			known := func(d Destination) bool { return d.Name == name.Value }
			if !slices.ContainsFunc(c.Destinations, known) {
				r.At(name.Place, "is %q, which no destination is called", yamlfile.Clip(name.Value))
			}
		}
	}
}

// Hooks are those of all webhooks, for a sender.
func (c Config) Hooks() []webhooks.Hook {
	var all []webhooks.Hook
	for _, w := range c.Webhooks {
		all = append(all, w.Hook)
	}
	return all
}

// registerHooks creates the destinations of the hooks.
func (c Config) registerHooks(reg *connectors.Registry, from origin) (problems []Problem) {
	for _, w := range c.Webhooks {
		made, err := w.settings.destination(from)
		if err == nil {
			made.Tenants = w.Tenants
			err = reg.Register(webhooks.Prefix+w.Name, made)
		}
		if err != nil {
			problems = append(problems, problemOf(err, w.settings.At))
		}
	}
	return problems
}

func (s webhookSettings) destination(from origin) (d connectors.Destination, err error) {
	o := webhook.Options{URL: s.URL.Value, Sends: int(s.Sends), Timeout: time.Duration(s.Timeout)}
	if s.Window.Set {
		o.Window = cmp.Or(s.Window.Time, -1) // unknown: the receiver promises nothing
	}
	for _, p := range s.AllowPrivate {
		o.Private = append(o.Private, netip.MustParsePrefix(p.Value))
	}
	if o.TLS, err = s.Connection.https(s.URL.Value, from); err != nil {
		return d, err
	}
	secret, err := Secret{s.SecretEnv, s.SecretFile, s.SecretArgv}.as("secret").open(from)
	if err != nil {
		return d, err
	}
	previous, err := Secret{s.PreviousSecretEnv, s.PreviousSecretFile, s.PreviousSecretArgv}.as("previous_secret").openIfGiven(from)
	if err != nil {
		return d, err
	}
	o.Secrets = func(ctx context.Context) (now, before string, err error) {
		if now, err = secret(ctx); err == nil && previous != nil {
			before, err = previous(ctx)
		}
		return now, before, err
	}
	if o.Secret, o.Previous, err = o.Secrets(context.Background()); err != nil {
		return d, err
	}
	if o.Previous == o.Secret {
		return d, errors.New("previous_secret: is the same as the secret; leave it out")
	}
	c, err := webhook.New(o)
	if err != nil {
		return d, err
	}
	return c.Destination(), nil
}
