package office

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

// Destination is what is known about one destination and how it stands. No name
// of a worker and nothing of another tenant is in it.
type Destination struct {
	Name     string
	Type     string // "" where it is not known
	Profiles []connectors.Profile
	// Lags is how long effects take to become visible, as was observed, by kind
	// and way of reading.
	Lags []lag.Line
	// Breaker, Pause (until when, zero for not at all) and PauseWhy say whether
	// something is sent now; Limit is how many sends may be under way, 0 for
	// unbounded, InUse how many are.
	Breaker  guards.BreakerState
	Pause    time.Time
	PauseWhy string
	Rate     connectors.Rate
	Limit    int
	InUse    int
	// Stops are those in force that hold sends of this tenant to it.
	Stops []guards.Stopped
}

// Destinations lists the destinations that there are, by name.
func (o *Office) Destinations(ctx context.Context, who Who) ([]Destination, error) {
	if err := who.May(access.Read); err != nil {
		return nil, err
	}
	var standing guards.Standing
	var lines []lag.Line
	if notes, ok := o.parts.Ledger.(ledger.Notes); ok {
		var err error
		if standing, err = guards.Status(ctx, notes); err != nil {
			return nil, err
		}
		if lines, err = lag.Quantiles(ctx, notes); err != nil {
			return nil, err
		}
	}
	var all []Destination
	profiles := o.parts.Registry.Profiles()
	for _, name := range o.parts.Registry.NamesFor(who.Tenant) {
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
		for _, g := range standing.Destinations {
			if g.Name == name {
				d.stand(g)
			}
		}
		for _, s := range visible(standing.Stops, who) {
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

// visible are the stops that hold sends of somebody's tenant: its own and those
// of all tenants.
func visible(stops []guards.Stopped, who Who) []guards.Stopped {
	return slices.DeleteFunc(slices.Clone(stops), func(s guards.Stopped) bool {
		return s.Tenant != "" && s.Tenant != who.Tenant
	})
}

// Stops lists the stops that hold sends of the own tenant, and what is remembered
// of such as were released.
func (o *Office) Stops(ctx context.Context, who Who) ([]guards.Stopped, error) {
	if err := who.May(access.Read); err != nil {
		return nil, err
	}
	notes, err := o.notes()
	if err != nil {
		return nil, err
	}
	stops, err := guards.Stops(ctx, notes)
	return visible(stops, who), err
}

func (o *Office) notes() (ledger.Notes, error) {
	notes, ok := o.parts.Ledger.(ledger.Notes)
	if !ok {
		return nil, fmt.Errorf("%w: this ledger keeps no stops", ErrUnsupported)
	}
	return notes, nil
}

// Stop holds sends of the own tenant; see [guards.Stop]. Those of all tenants are
// stopped on the command line alone.
func (o *Office) Stop(ctx context.Context, who Who, s guards.Scope, reason string) error {
	return o.switched(ctx, who, s, reason, "sends are stopped", guards.Stop)
}

// Release ends a stop of the own tenant; see [guards.Release].
func (o *Office) Release(ctx context.Context, who Who, s guards.Scope, reason string) error {
	return o.switched(ctx, who, s, reason, "sends are released", guards.Release)
}

type switching func(ctx context.Context, notes ledger.Notes, s guards.Scope, by, reason string) error

func (o *Office) switched(ctx context.Context, who Who, s guards.Scope, reason, what string, do switching) error {
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
	notes, err := o.notes()
	if err != nil {
		return err
	}
	o.Clean(who, &reason)
	err = do(ctx, notes, s, who.Name, reason)
	o.tell(ctx, who, what, err, "scope", s.String())
	return err
}
