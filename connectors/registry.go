package connectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ErrUnknownDestination is wrapped by lookups of an unregistered destination.
var ErrUnknownDestination = errors.New("unknown destination")

// Destination is a connector and what it can do, by kind of record.
type Destination struct {
	Connector Connector
	Profiles  map[string]Profile
	// Tenants may name it: its credentials are theirs. To every other tenant it is unknown.
	// Default: every tenant of the program that registers it, which chooses the tenants of its
	// intents itself. A configuration always sets them.
	Tenants []string
	// LoginRefused is called when the destination has refused the credentials, before they are
	// used again: a cache of them fetches them again. Default nil.
	LoginRefused func()
}

func (d Destination) serves(tenant string) bool {
	return len(d.Tenants) == 0 || slices.Contains(d.Tenants, tenant)
}

// Registry holds the destinations of one process. The zero value is empty and
// ready. It is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	known map[string]Destination
}

// Register adds a destination under a name. A name is registered once; the
// destination needs a connector and at least one profile.
func (r *Registry) Register(name string, d Destination) error {
	switch {
	case name == "":
		return errors.New("register destination: the name is empty")
	case d.Connector == nil:
		return fmt.Errorf("register destination %q: no connector", name)
	case len(d.Profiles) == 0:
		return fmt.Errorf("register destination %q: no profile; give one for each kind of record", name)
	}
	for _, kind := range slices.Sorted(maps.Keys(d.Profiles)) {
		if err := d.Profiles[kind].Valid(); err != nil {
			return fmt.Errorf("register destination %q: the profile of kind %q: %w", name, kind, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[name]; ok {
		return fmt.Errorf("register destination %q: registered already", name)
	}
	if r.known == nil {
		r.known = make(map[string]Destination)
	}
	d.Profiles, d.Tenants = maps.Clone(d.Profiles), slices.Clone(d.Tenants)
	r.known[name] = d
	return nil
}

// Lookup returns the connector and profile for a destination and a kind of record, whatever
// tenants it serves: it is for the operator. The error names the known ones and wraps
// [ErrUnknownDestination].
func (r *Registry) Lookup(name, kind string) (Connector, Profile, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return find(r.known, name, kind)
}

// LookupFor is Lookup for a tenant. A destination that does not serve it is unknown, with the
// same error as one that was never registered.
func (r *Registry) LookupFor(tenant, name, kind string) (Connector, Profile, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if d, ok := r.known[name]; ok && d.serves(tenant) {
		return find(r.known, name, kind) // called for each write: reads one entry only
	}
	return find(r.serving(tenant), name, kind)
}

// serving are the destinations that serve a tenant.
func (r *Registry) serving(tenant string) map[string]Destination {
	serving := make(map[string]Destination)
	for name, d := range r.known {
		if d.serves(tenant) {
			serving[name] = d
		}
	}
	return serving
}

func find(known map[string]Destination, name, kind string) (Connector, Profile, error) {
	d, ok := known[name]
	if !ok {
		return nil, Profile{}, fmt.Errorf("/destination: %w %q; registered: %s", ErrUnknownDestination, name, list(known))
	}
	p, ok := d.Profiles[kind]
	if !ok {
		return nil, Profile{}, fmt.Errorf("/kind: %w: %q has no kind %q; it has: %s", ErrUnknownDestination, name, kind, list(d.Profiles))
	}
	p.Destination, p.Kind = name, kind
	return d.Connector, p, nil
}

// LoginRefused records that a destination has refused the credentials.
func (r *Registry) LoginRefused(name string) {
	r.mu.RLock()
	d := r.known[name]
	r.mu.RUnlock()
	if d.LoginRefused != nil {
		d.LoginRefused()
	}
}

// Names lists the registered destinations in order.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.known))
}

// NamesFor lists those that serve a tenant, in order.
func (r *Registry) NamesFor(tenant string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.serving(tenant)))
}

func list[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// Profiles lists all profiles of all destinations, in no order, with the names
// under which they are registered.
func (r *Registry) Profiles() []Profile {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []Profile
	for name, d := range r.known {
		for kind, p := range d.Profiles {
			p.Destination, p.Kind = name, kind
			all = append(all, p)
		}
	}
	return all
}
