package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// Destination is the description and state of one destination. It holds no name of a
// worker and nothing of another tenant.
type Destination struct {
	Name     string
	Type     string // "" where it is not known
	Profiles []connectors.Profile
	// Lags are the observed times until effects become visible, by kind and way of
	// reading.
	Lags []lag.PathLag
	// Breaker, Pause (until when, zero for not at all) and PauseWhy say whether sends are
	// made now. Limit is the most concurrent sends, 0 for unbounded; InUse is their
	// current number.
	Breaker  guards.BreakerState
	Pause    time.Time
	PauseWhy string
	Rate     connectors.Rate
	Limit    int
	InUse    int
	// Stops are the stops in force that hold sends of this tenant to it.
	Stops []guards.Stopped
}

// Destinations lists the destinations that serve the tenant and that the scope of the
// caller covers, by name.
func (o *Service) Destinations(ctx context.Context, who Who) ([]Destination, error) {
	if err := who.May(access.Read); err != nil {
		return nil, err
	}
	status, err := guards.Status(ctx, o.parts.Ledger)
	if err != nil {
		return nil, err
	}
	lines, err := lag.Quantiles(ctx, o.parts.Ledger)
	if err != nil {
		return nil, err
	}
	var all []Destination
	profiles := o.parts.Registry.Profiles()
	for _, name := range o.parts.Registry.NamesFor(who.Tenant) {
		if !who.Scope.Reaches(name) {
			continue
		}
		d := Destination{Name: name, Type: o.parts.Types[name], Breaker: guards.BreakerState{State: "closed"}}
		for _, p := range profiles {
			if p.Destination == name {
				d.Profiles = append(d.Profiles, p)
			}
		}
		for _, l := range lines {
			if l.Destination == name {
				d.Lags = append(d.Lags, l)
			}
		}
		for _, g := range status.Destinations {
			if g.Name == name {
				d.stand(g)
			}
		}
		for _, s := range inScope(status.Stops, who) {
			if s.Active && (s.Destination == "" || s.Destination == name) {
				d.Stops = append(d.Stops, s)
			}
		}
		all = append(all, d)
	}
	return all, nil
}

func (d *Destination) stand(g guards.Destination) {
	d.Breaker, d.Pause, d.PauseWhy, d.Rate, d.Limit, d.InUse = g.Breaker, g.Pause, g.PauseWhy, g.Rate, g.Limit, g.InUse()
	d.Breaker.By, d.Breaker.Probe = "", ""
}

// inScope are the stops that hold sends of the caller's tenant, its own and those of all
// tenants, and that are within the scope of the caller.
func inScope(stops []guards.Stopped, who Who) []guards.Stopped {
	return slices.DeleteFunc(slices.Clone(stops), func(s guards.Stopped) bool {
		return s.Tenant != "" && s.Tenant != who.Tenant || s.Destination != "" && !who.Scope.Reaches(s.Destination)
	})
}

// Stops lists the stops that hold sends of the own tenant, and the records of those that
// were released.
func (o *Service) Stops(ctx context.Context, who Who) ([]guards.Stopped, error) {
	if err := who.May(access.Read); err != nil {
		return nil, err
	}
	stops, err := guards.Stops(ctx, o.parts.Ledger)
	return inScope(stops, who), err
}

// Stop holds sends of the own tenant; see [guards.Stop]. Only the command line can stop
// those of all tenants.
func (o *Service) Stop(ctx context.Context, who Who, s guards.Scope, reason string) error {
	return o.switched(ctx, who, s, reason, "sends are stopped", guards.Stop)
}

// Release ends a stop of the own tenant; see [guards.Release].
func (o *Service) Release(ctx context.Context, who Who, s guards.Scope, reason string) error {
	return o.switched(ctx, who, s, reason, "sends are released", guards.Release)
}

type switching func(ctx context.Context, notes ledger.Documents, s guards.Scope, by, reason string) error

func (o *Service) switched(ctx context.Context, who Who, s guards.Scope, reason, what string, do switching) error {
	if err := who.May(access.Operate); err != nil {
		return err
	}
	if s.Tenant != "" && s.Tenant != who.Tenant {
		return fmt.Errorf("%w: a stop of another tenant", ErrTenant)
	}
	s.Tenant = who.Tenant
	if s.Destination != "" && !slices.Contains(o.parts.Registry.NamesFor(who.Tenant), s.Destination) {
		return fmt.Errorf("%w: %q", connectors.ErrUnknownDestination, s.Destination)
	}
	o.Clean(who, &reason)
	err := do(ctx, o.parts.Ledger, s, who.Name, reason)
	o.describe(ctx, who, what, err, "scope", s.String())
	return err
}
