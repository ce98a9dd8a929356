package connectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ErrUnknownDestination is wrapped by lookups of what was not registered.
var ErrUnknownDestination = errors.New("unknown destination")

// Destination is a connector and what it can do, by kind of record.
type Destination struct {
	Connector Connector
	Profiles  map[string]Profile
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
	d.Profiles = maps.Clone(d.Profiles)
	r.known[name] = d
	return nil
}

// Lookup finds the connector and profile for a destination and a kind of
// record. The error names what is known instead and wraps
// [ErrUnknownDestination].
func (r *Registry) Lookup(name, kind string) (Connector, Profile, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	d, ok := r.known[name]
	if !ok {
		return nil, Profile{}, fmt.Errorf("/destination: %w %q; registered: %s", ErrUnknownDestination, name, list(r.known))
	}
	p, ok := d.Profiles[kind]
	if !ok {
		return nil, Profile{}, fmt.Errorf("/kind: %w: %q has no kind %q; it has: %s", ErrUnknownDestination, name, kind, list(d.Profiles))
	}
	p.Destination, p.Kind = name, kind
	return d.Connector, p, nil
}

// Names lists the registered destinations in order.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.known))
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
