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
	"github.com/readback-go/readback/ledger"
)

// standing is what all workers on a ledger share through its notes. The zero
// value shares nothing.
type standing struct {
	guards *guards.Guards
	lag    *lag.Book
}

// stand sets up what is shared, and holds the sends of a ledger that is an older
// copy. A ledger without notes shares nothing.
func (d *desk) stand(ctx context.Context, reg *connectors.Registry) error {
	d.reg = reg
	notes, ok := d.ledger.(ledger.Notes)
	if !ok {
		return nil
	}
	if err := d.holdOlder(ctx, notes); err != nil {
		return err
	}
	d.standing = standing{
		guards: guards.New(notes, reg, &guards.Options{Destinations: settings(d.config.Limits()), Logger: d.log}),
		lag:    lag.New(notes, &lag.Options{Logger: d.log}),
	}
	return nil
}

// settings are the guards of destinations as the configuration has them.
func settings(limits map[string]config.Limits) map[string]guards.Settings {
	all := make(map[string]guards.Settings, len(limits))
	for name, l := range limits {
		s := guards.Settings{Rate: l.Rate, Concurrency: l.Concurrency,
			Breaker: guards.Breaker{Failures: l.Breaker.Failures, Window: l.Breaker.Window, Open: l.Breaker.Open}}
		if l.Breaker.Off {
			s.Breaker.Failures = -1
		}
		all[name] = s
	}
	return all
}

// into gives it to an engine.
func (s standing) into(o *engine.Options) {
	if s.guards != nil {
		o.Guards, o.Lag = s.guards, s.lag
	}
}

// leave gives back what this process holds, and shares what it learned.
func (d *desk) leave() {
	if d.standing.guards == nil {
		return
	}
	if err := d.standing.guards.Close(); err != nil {
		d.log.Warn("what this process holds of the guards is given back by time", "error", err)
	}
	if err := d.standing.lag.Close(); err != nil {
		d.log.Warn("what was learned about lags is lost", "error", err)
	}
	d.standing = standing{}
}

// measured is what stands, for metrics.
func (d *desk) measured(ctx context.Context) (metrics.Standing, error) {
	notes, ok := d.ledger.(ledger.Notes)
	if !ok {
		return metrics.Standing{}, nil
	}
	found, err := guards.Status(ctx, notes)
	if err != nil {
		return metrics.Standing{}, err
	}
	lines, err := lag.Quantiles(ctx, notes)
	if err != nil {
		return metrics.Standing{}, err
	}
	return measuredOf(found, lines, d.destinations()), nil
}

func (d *desk) destinations() []string {
	var all []string
	for _, each := range d.config.Destinations {
		all = append(all, each.Name)
	}
	return all
}

// serves reports whether a destination of the configuration, or of a webhook, serves a
// tenant.
func (d *desk) serves(tenant, name string) bool {
	by := func(tenants []string) bool { return tenants == nil || slices.Contains(tenants, tenant) }
	return slices.ContainsFunc(d.config.Destinations, func(c config.Destination) bool { return c.Name == name && by(c.Tenants) }) ||
		slices.ContainsFunc(d.config.Webhooks, func(w config.Webhook) bool { return webhooks.Prefix+w.Name == name })
}

func measuredOf(found guards.Standing, lines []lag.Line, names []string) metrics.Standing {
	m := metrics.Standing{Breakers: map[string]string{}, LoginRefused: map[string]time.Duration{}, Stops: map[string]int{}}
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
