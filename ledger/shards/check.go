package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Finding is something that is wrong with the place of a tenant.
type Finding struct {
	Tenant string
	// Partitions own it, or should.
	Partitions []string
	// Text says what is wrong and what to do.
	Text string

	place ledger.Placement // in the directory
}

// ErrSplit means that the tenant is refused: two partitions own it, or its own does not have it.
var ErrSplit = errors.New("the place of the tenant is not known")

// Partition is the state of one partition.
type Partition struct {
	Name string
	Home bool
	// Err is why it cannot be reached, nil if it can.
	Err error
	// Tenants counts those that it owns.
	Tenants int
}

// survey is what the directory and the partitions say.
type survey struct {
	placements []ledger.Placement
	owned      []map[string]ledger.Ownership // by partition and tenant; nil if it could not be read
	errs       []error
}

func (l *Ledger) survey(ctx context.Context) (v survey, err error) {
	home, err := l.open(ctx, l.home)
	if err == nil {
		v.placements, err = home.Placements(ctx)
	}
	if err != nil {
		return v, fmt.Errorf("the directory: %w", err)
	}
	v.owned = make([]map[string]ledger.Ownership, len(l.shards))
	v.errs = l.all(ctx, func(i int, p ledger.Partition) error {
		all, err := p.Ownerships(ctx)
		if err == nil {
			v.owned[i] = make(map[string]ledger.Ownership, len(all))
			for _, o := range all {
				v.owned[i][o.Tenant] = o
			}
		}
		return err
	})
	return v, nil
}

// owners returns the partitions that own a tenant.
func (v survey) owners(tenant string) (of []int) {
	for i, all := range v.owned {
		if o, has := all[tenant]; has && o.State != ledger.TenantMoved {
			of = append(of, i)
		}
	}
	return of
}

// Partitions returns the state of each partition.
func (l *Ledger) Partitions(ctx context.Context) ([]Partition, error) {
	v, err := l.survey(ctx)
	if err != nil {
		return nil, err
	}
	var all []Partition
	for i, s := range l.shards {
		p := Partition{Name: s.Name, Home: s == l.home, Err: v.errs[i]}
		for _, o := range v.owned[i] {
			if o.State != ledger.TenantMoved {
				p.Tenants++
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// Placements returns the directory.
func (l *Ledger) Placements(ctx context.Context) ([]ledger.Placement, error) {
	home, err := l.open(ctx, l.home)
	if err != nil {
		return nil, err
	}
	return home.Placements(ctx)
}

// Check compares the directory with what the partitions own, as far as they can be reached, and
// returns what contradicts. It changes nothing.
func (l *Ledger) Check(ctx context.Context) ([]Finding, error) {
	_, found, err := l.contradictions(ctx)
	return found, err
}

// contradictions returns what two surveys have found, and the second one: in one survey a move between
// the reads of two partitions looks like a tenant in both or in none.
func (l *Ledger) contradictions(ctx context.Context) (v survey, found []Finding, err error) {
	v, err = l.survey(ctx)
	before := l.findings(v)
	if err != nil || len(before) == 0 {
		return v, nil, err
	}
	v, err = l.survey(ctx)
	return v, slices.DeleteFunc(l.findings(v), func(f Finding) bool {
		return !slices.ContainsFunc(before, func(was Finding) bool { return was.place == f.place && was.Text == f.Text })
	}), err
}

func (l *Ledger) findings(v survey) (found []Finding) {
	placed := map[string]ledger.Placement{}
	for _, p := range v.placements {
		placed[p.Tenant] = p
	}
	tenants := map[string]bool{}
	for _, p := range v.placements {
		tenants[p.Tenant] = true
	}
	for _, all := range v.owned {
		for tenant := range all {
			tenants[tenant] = true
		}
	}
	for tenant := range tenants {
		if f := l.finding(v, tenant, placed[tenant]); f.Text != "" {
			f.Tenant, f.place = tenant, placed[tenant]
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Tenant, b.Tenant) })
	return found
}

func (l *Ledger) finding(v survey, tenant string, p ledger.Placement) Finding {
	var names []string
	of := v.owners(tenant)
	for _, i := range of {
		names = append(names, fmt.Sprintf("%q (epoch %d)", l.shards[i].Name, v.owned[i][tenant].Epoch))
	}
	f := Finding{}
	for _, i := range of {
		f.Partitions = append(f.Partitions, l.shards[i].Name)
	}
	moving := p.State == ledger.TenantDraining
	at := slices.IndexFunc(l.shards, func(s *shard) bool { return s.Name == p.Partition })
	switch {
	case len(of) > 1:
		f.Text = fmt.Sprintf("tenant %q is in %d partitions: %s; it is refused: find out which one is right (the other is a restored backup, or was changed by hand), and run `readback shards keep`", tenant, len(of), strings.Join(names, ", "))
	case p.Epoch > 0 && at < 0:
		f.Partitions = []string{p.Partition}
		f.Text = fmt.Sprintf("tenant %q is in partition %q, which is not configured; it is refused: add the partition to the shards of the ledger", tenant, p.Partition)
	case p.Epoch > 0 && !moving && v.owned[at] != nil && len(of) == 0:
		f.Partitions = []string{p.Partition}
		f.Text = fmt.Sprintf("the directory says that tenant %q is in partition %q, which does not have it; it is refused: the database is another one, or was restored from a backup", tenant, p.Partition)
	case p.Epoch > 0 && !moving && len(of) == 1 && (of[0] != at || v.owned[at][tenant].Epoch != p.Epoch):
		f.Text = fmt.Sprintf("the directory says that tenant %q is in partition %q (epoch %d), and partition %s owns it; it is refused: one of the two databases was restored from a backup; find out which one is right, and run `readback shards keep`", tenant, p.Partition, p.Epoch, names[0])
	case p.Epoch > 0 && !moving && len(of) == 1 && v.owned[at][tenant].State == ledger.TenantDraining:
		f.Text = fmt.Sprintf("tenant %q is in partition %s, which begins nothing, and no move is under way; it is refused: it was in two partitions before; run `readback shards keep`", tenant, names[0])
	}
	return f
}

// reconcile enters tenants into the directory that a partition had before it joined, and refuses those
// of which it is not known where they are: no partition begins or leases anything of them any more.
func (l *Ledger) reconcile(ctx context.Context) error {
	v, found, err := l.contradictions(ctx)
	if err != nil {
		return err
	}
	home, err := l.open(ctx, l.home)
	if err != nil {
		return err
	}
	refused := map[string]error{}
	for _, f := range found {
		l.o.Logger.Error("a tenant is refused", "tenant", f.Tenant, "partitions", f.Partitions, "problem", f.Text)
		refused[f.Tenant] = fmt.Errorf("%w: %w: %s", ledger.ErrUnavailable, ErrSplit, f.Text)
	}
	placed := map[string]bool{}
	for _, p := range v.placements {
		placed[p.Tenant] = true
	}
	for i, all := range v.owned {
		for tenant, o := range all {
			switch {
			case refused[tenant] != nil && o.State == ledger.TenantActive:
				still := o
				still.State = ledger.TenantDraining
				p, err := l.open(ctx, l.shards[i])
				if err == nil {
					err = p.Own(ctx, still, o)
				}
				if err != nil && !errors.Is(err, ledger.ErrStale) {
					return err
				}
			case refused[tenant] == nil && !placed[tenant] && o.State != ledger.TenantMoved:
				err := home.Place(ctx, ledger.Placement{Tenant: tenant, Partition: l.shards[i].Name, Epoch: o.Epoch, State: ledger.TenantActive}, ledger.Placement{})
				if err != nil && !errors.Is(err, ledger.ErrStale) {
					return err
				}
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.split, l.checked = refused, time.Now()
	clear(l.places)
	return nil
}

// UnreachableError names partitions that cannot be reached. The tenants of all others are served.
type UnreachableError struct {
	Partitions []string
	Err        error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("partitions that cannot be reached: %s: %v", strings.Join(e.Partitions, ", "), e.Err)
}

// Unwrap returns the reasons.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Ready fails if the home cannot be reached, and with [UnreachableError] if another partition cannot.
func (l *Ledger) Ready(ctx context.Context) error {
	errs := l.all(ctx, func(_ int, p ledger.Partition) error {
		_, _, err := p.Notes(ctx, ledger.FullNote)
		return err
	})
	some := &UnreachableError{Err: errors.Join(errs...)}
	for i, err := range errs {
		switch {
		case err != nil && l.shards[i] == l.home:
			return err
		case err != nil:
			some.Partitions = append(some.Partitions, l.shards[i].Name)
		}
	}
	if len(some.Partitions) > 0 {
		return some
	}
	return nil
}

// Weaknesses names the settings of servers with which a crash or a failover can lose what they
// acknowledged.
func (l *Ledger) Weaknesses(ctx context.Context) (weak []string, err error) {
	all := make([][]string, len(l.shards))
	err = l.every(ctx, func(i int, p ledger.Partition) (err error) {
		if server, ok := p.(interface {
			Weaknesses(ctx context.Context) ([]string, error)
		}); ok {
			all[i], err = server.Weaknesses(ctx)
		}
		return err
	})
	for _, those := range all {
		for _, one := range those {
			if !slices.Contains(weak, one) {
				weak = append(weak, one)
			}
		}
	}
	return weak, err
}
