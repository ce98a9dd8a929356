package main

import (
	"context"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/metrics"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/lag"
)

// shared is what all workers on a ledger share through its notes. The zero
// value shares nothing.
type shared struct {
	guards *guards.Guards
	lag    *lag.Book
}

// stand sets up what is shared, and holds the sends of a ledger that is an older copy.
func (d *opened) stand(ctx context.Context, reg *connectors.Registry) error {
	d.reg = reg
	if err := d.holdOlder(ctx); err != nil {
		return err
	}
	d.shared = shared{
		guards: guards.New(d.ledger, reg, &guards.Options{Destinations: d.config.Limits(), Logger: d.log}),
		lag:    lag.New(d.ledger, &lag.Options{Logger: d.log}),
	}
	return nil
}

// into adds it to the options of an engine.
func (s shared) into(o *engine.Options) {
	if s.guards != nil {
		o.Guards, o.Lag = s.guards, s.lag
	}
}

// leave releases what this process holds, and shares what it learned.
func (d *opened) leave() {
	if d.shared.guards == nil {
		return
	}
	if err := d.shared.guards.Close(); err != nil {
		d.log.Warn("what this process holds of the guards is given back by time", "error", err)
	}
	if err := d.shared.lag.Close(); err != nil {
		d.log.Warn("what was learned about lags is lost", "error", err)
	}
	d.shared = shared{}
}

// measured is the state of the guards, for metrics.
func (d *opened) measured(ctx context.Context) (metrics.Status, error) {
	found, err := guards.Status(ctx, d.ledger)
	if err != nil {
		return metrics.Status{}, err
	}
	lines, err := lag.Quantiles(ctx, d.ledger)
	if err != nil {
		return metrics.Status{}, err
	}
	return measuredOf(found, lines, d.destinations()), nil
}

func (d *opened) destinations() []string {
	var all []string
	for _, each := range d.config.Destinations {
		all = append(all, each.Name)
	}
	return all
}

// serves reports whether a destination of the configuration, or of a webhook, serves a
// tenant.
func (d *opened) serves(tenant, name string) bool {
	by := func(tenants []string) bool { return tenants == nil || slices.Contains(tenants, tenant) }
	return slices.ContainsFunc(d.config.Destinations, func(c config.Destination) bool { return c.Name == name && by(c.Tenants) }) ||
		slices.ContainsFunc(d.config.Webhooks, func(w config.Webhook) bool { return webhooks.Prefix+w.Name == name })
}

func measuredOf(found guards.InForce, lines []lag.PathLag, names []string) metrics.Status {
	m := metrics.Status{Breakers: map[string]string{}, LoginRefused: map[string]time.Duration{}, Stops: map[string]int{}}
	stopped := map[string]bool{}
	for _, s := range found.Stops {
		if !s.Active {
			continue
		}
		m.Stops[scopeWord(s.Scope)]++
		if s.Tenant == "" && s.Tool == "" {
			stopped[s.Destination] = true // "" for all
		}
	}
	shut := map[string]bool{}
	for _, dest := range found.Destinations {
		m.Breakers[dest.Name] = dest.Breaker.State
		if since := dest.Breaker.Login; !since.IsZero() {
			m.LoginRefused[dest.Name] = max(found.Now.Sub(since), time.Second)
		}
		shut[dest.Name] = dest.Breaker.State == "open" || dest.Pause.After(found.Now)
	}
	for _, name := range names {
		if stopped[""] || stopped[name] || shut[name] {
			m.Paused = append(m.Paused, name)
		}
	}
	for _, l := range lines {
		m.Lags = append(m.Lags, metrics.Lag{Destination: l.Destination, Kind: l.Kind, Path: l.Path, P50: l.P50, P90: l.P90, P99: l.P99})
	}
	return m
}

// scopeWord says what the scope of a stop names.
func scopeWord(s guards.Scope) string {
	word, named := "all", 0
	for _, p := range []struct{ what, name string }{{"tenant", s.Tenant}, {"destination", s.Destination}, {"tool", s.Tool}} {
		if p.name != "" {
			word, named = p.what, named+1
		}
	}
	if named > 1 {
		return "several"
	}
	return word
}
