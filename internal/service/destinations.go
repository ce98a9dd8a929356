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

// maxRefused is how many of the newest writes of a destination are searched for its answers.
const maxRefused = 200

// Health is one destination with what is open and what it answered lately.
type Health struct {
	Destination
	// Queues count its open writes of the own tenant by state.
	Queues []ledger.Queue
	// Refused are the newest writes that it refused in words of its own, newest first, at
	// most ten.
	Refused []ledger.Record
	// Past are all stops of the own tenant and of all tenants that concern it, with their
	// history.
	Past []guards.Stopped
}

// Health is the state of one destination of the own tenant.
func (o *Service) Health(ctx context.Context, who Who, name string) (h Health, err error) {
	if err := who.May(access.Trace); err != nil {
		return h, err
	}
	all, err := o.Destinations(ctx, who)
	if err != nil {
		return h, err
	}
	i := slices.IndexFunc(all, func(d Destination) bool { return d.Name == name })
	if i < 0 {
		return h, fmt.Errorf("%w: %q", connectors.ErrUnknownDestination, name)
	}
	h.Destination = all[i]
	stats, err := o.parts.Ledger.QueueStats(ctx)
	if err != nil {
		return h, err
	}
	for _, q := range stats.Queues {
		if q.Tenant == who.Tenant && q.Destination == name {
			h.Queues = append(h.Queues, q)
		}
	}
	found, err := o.Find(ctx, who, ledger.Search{Destination: name, Limit: maxRefused})
	if err != nil {
		return h, err
	}
	for _, r := range found.Records {
		if r.Refusal != nil && len(h.Refused) < maxRefusals {
			h.Refused = append(h.Refused, r)
		}
	}
	stops, err := o.Stops(ctx, who)
	h.Past = slices.DeleteFunc(stops, func(s guards.Stopped) bool { return s.Destination != "" && s.Destination != name })
	return h, err
}

// maxRefusals is how many of its answers are shown.
const maxRefusals = 10

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
	if err := o.own(who, &s); err != nil {
		return err
	}
	o.Clean(who, &reason)
	err := do(ctx, o.parts.Ledger, s, who.Name, reason)
	o.describe(ctx, who, what, err, "scope", s.String())
	return err
}
