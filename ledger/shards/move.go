package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// A move is a row of decisions, each of which can be made again:
//
//  1. the directory says draining, and where to;
//  2. the source is draining: it begins and leases nothing, and what workers have is finished;
//  3. the source gives the tenant up, in the next epoch: nothing of it changes any more there;
//  4. the target copies everything and owns the tenant in that epoch, in one transaction;
//  5. the directory says active, in the target;
//  6. the source forgets the rows, when no copy of the directory is older than the move.
//
// Between 3 and 4 no partition owns it. A program that dies between two steps leaves a move that
// [Ledger.Resume] ends. Until 4, [Ledger.Abandon] gives it up: first the target refuses the epoch, so
// that no program that is still copying can own the tenant there, then the source owns it again.

// leaseCheck is how often a move counts what workers still have.
const leaseCheck = 200 * time.Millisecond

// ErrMove means that a move cannot be done as requested. Nothing was changed.
var ErrMove = errors.New("the tenant cannot be moved")

// Step is what a move has done.
type Step struct {
	Tenant   string `json:"tenant"`
	From, To string
	// Text says what was done.
	Text string `json:"text"`
	// Leased is how many writes workers still have.
	Leased int `json:"leased,omitempty"`
}

// Move moves a tenant to another partition, and calls report, which may be nil, after each step. Until
// the tenant is there its writes are refused with [ledger.ErrUnavailable]: what workers have is
// finished first. If ctx ends before, or the program dies, nothing is lost: [Ledger.Resume] and
// [Ledger.Abandon] continue. For a tenant that is there already it deletes what is left where it was.
func (l *Ledger) Move(ctx context.Context, tenant, to string, report func(Step)) error {
	target := l.named(to)
	if target == nil {
		return fmt.Errorf("%w: %q is no partition of the configuration", ErrMove, to)
	}
	if _, err := l.open(ctx, target); err != nil {
		return err
	}
	where, err := l.placeOf(ctx, tenant, true, false)
	switch {
	case err != nil:
		return err
	case where.Epoch == 0:
		return fmt.Errorf("%w: the directory has no tenant %q", ErrMove, tenant)
	case where.State == ledger.TenantDraining && where.Target != to:
		return fmt.Errorf("%w: tenant %q is being moved to %q; resume or abandon that first", ErrMove, tenant, where.Target)
	case where.State == ledger.TenantDraining:
		return l.Resume(ctx, tenant, report)
	case where.Partition == to:
		return l.tidy(ctx, where.Placement)
	}
	home, err := l.open(ctx, l.home)
	if err != nil {
		return err
	}
	begun := where.Placement
	begun.State, begun.Target = ledger.TenantDraining, to
	if err := home.Place(ctx, begun, where.Placement); err != nil {
		return err
	}
	return l.Resume(ctx, tenant, report)
}

// tidy deletes what is left of a tenant where it was before, if the program that moved it died then. It
// waits until every router reads where the tenant is.
func (l *Ledger) tidy(ctx context.Context, p ledger.Placement) error {
	s := l.named(p.Previous)
	if s == nil {
		return nil
	}
	if !pause.For(ctx, 2*l.o.Cache) {
		return ctx.Err()
	}
	from, err := l.open(ctx, s)
	if err == nil {
		err = from.Forget(ctx, ledger.Ownership{Tenant: p.Tenant, Epoch: p.Epoch})
	}
	if errors.Is(err, ledger.ErrStale) {
		return nil
	}
	return err
}

// Resume continues a move.
func (l *Ledger) Resume(ctx context.Context, tenant string, report func(Step)) error {
	home, err := l.open(ctx, l.home)
	if err != nil {
		return err
	}
	where, err := home.Placement(ctx, tenant)
	if err != nil {
		return err
	}
	if where.State != ledger.TenantDraining || where.Target == where.Partition { // it is being placed
		return fmt.Errorf("%w: tenant %q is not being moved", ErrMove, tenant)
	}
	m := &moving{l: l, home: home, where: where, report: report}
	for _, end := range []struct {
		name string
		into *ledger.Partition
	}{{where.Partition, &m.from}, {where.Target, &m.to}} {
		s := l.named(end.name)
		if s == nil {
			return l.missing(ledger.Placement{Tenant: tenant, Partition: end.name})
		}
		if *end.into, err = l.open(ctx, s); err != nil {
			return err
		}
	}
	return m.run(ctx)
}

// moving is a move under way.
type moving struct {
	l        *Ledger
	home     ledger.Partition
	from, to ledger.Partition
	where    ledger.Placement
	report   func(Step)
}

func (m *moving) did(leased int, format string, args ...any) {
	if m.report != nil {
		m.report(Step{Tenant: m.where.Tenant, From: m.where.Partition, To: m.where.Target, Text: fmt.Sprintf(format, args...), Leased: leased})
	}
}

func (m *moving) run(ctx context.Context) error {
	next := ledger.Ownership{Tenant: m.where.Tenant, Epoch: m.where.Epoch + 1, State: ledger.TenantMoved}
	have, err := m.from.Ownership(ctx, m.where.Tenant)
	if err != nil {
		return err
	}
	if have.Epoch == m.where.Epoch && have.State == ledger.TenantActive {
		draining := have
		draining.State = ledger.TenantDraining
		if err := m.from.Own(ctx, draining, have); err != nil {
			return err
		}
		have = draining
		m.did(0, "partition %s begins no further write", m.where.Partition)
	}
	switch have {
	case ledger.Ownership{Tenant: m.where.Tenant, Epoch: m.where.Epoch, State: ledger.TenantDraining}:
		if err := m.drained(ctx); err != nil {
			return err
		}
	case next: // and a program that died may not have waited for the last writers
	default:
		return fmt.Errorf("%w: partition %q keeps tenant %q as %s since epoch %d; want it in epoch %d; run `readback shards check`", ErrMove, m.where.Partition, m.where.Tenant, have.State, have.Epoch, m.where.Epoch)
	}
	if err := m.from.Own(ctx, next, have); err != nil {
		return err
	}
	m.did(0, "partition %s no longer owns the tenant", m.where.Partition)
	if _, err := m.to.Receive(ctx, m.from, next); err != nil {
		return err
	}
	m.did(0, "partition %s has everything and owns the tenant", m.where.Target)
	done := m.where
	done.Partition, done.Epoch, done.State, done.Target, done.Previous = m.where.Target, next.Epoch, ledger.TenantActive, "", m.where.Partition
	if err := m.home.Place(ctx, done, m.where); err != nil {
		now, failed := m.home.Placement(ctx, m.where.Tenant)
		if failed != nil || now != done {
			return err
		}
	}
	m.l.forget(m.where.Tenant)
	m.did(0, "the directory names the new partition")
	if !pause.For(ctx, 2*m.l.o.Cache) { // until every router reads there
		return ctx.Err()
	}
	if err := m.from.Forget(ctx, next); err != nil && !errors.Is(err, ledger.ErrStale) {
		return err
	}
	m.did(0, "partition %s has nothing of the tenant any more", m.where.Partition)
	return nil
}

// drained waits until no worker has a write of the tenant.
func (m *moving) drained(ctx context.Context) error {
	for last := -1; ; {
		n, err := m.from.Leased(ctx, m.where.Tenant)
		if err != nil || n == 0 {
			return err
		}
		if n != last {
			m.did(n, "workers finish %d writes", n)
		}
		last = n
		if !pause.For(ctx, leaseCheck) {
			return fmt.Errorf("%d writes are still with workers; `readback shards resume` continues, `readback shards abandon` gives the move up: %w", n, ctx.Err())
		}
	}
}

// forget makes the next call read the directory.
func (l *Ledger) forget(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, tenant)
}

// Abandon gives a move up: the tenant stays where it is. It fails with [ErrMove] when the target owns
// the tenant already; then only [Ledger.Resume] is left.
func (l *Ledger) Abandon(ctx context.Context, tenant string) error {
	home, err := l.open(ctx, l.home)
	if err != nil {
		return err
	}
	where, err := home.Placement(ctx, tenant)
	if err != nil {
		return err
	}
	if where.State != ledger.TenantDraining || where.Target == where.Partition {
		return fmt.Errorf("%w: tenant %q is not being moved", ErrMove, tenant)
	}
	source, target := l.named(where.Partition), l.named(where.Target)
	if source == nil || target == nil {
		return l.missing(where)
	}
	from, err := l.open(ctx, source)
	if err != nil {
		return err
	}
	to, err := l.open(ctx, target)
	if err != nil {
		return err
	}
	next := where.Epoch + 1
	there, err := to.Ownership(ctx, tenant)
	switch {
	case err != nil:
		return err
	case there.Epoch >= next && there.State != ledger.TenantMoved:
		return fmt.Errorf("%w: partition %q owns tenant %q already; `readback shards resume` ends the move", ErrMove, where.Target, tenant)
	case there.Epoch < next:
		if err := to.Own(ctx, ledger.Ownership{Tenant: tenant, Epoch: next, State: ledger.TenantMoved}, there); err != nil {
			return err
		}
	}
	here, err := from.Ownership(ctx, tenant)
	if err == nil && (here.Epoch != next || here.State != ledger.TenantActive) {
		err = from.Own(ctx, ledger.Ownership{Tenant: tenant, Epoch: next, State: ledger.TenantActive}, here)
	}
	if err != nil {
		return err
	}
	done := where
	done.Epoch, done.State, done.Target = next, ledger.TenantActive, ""
	l.forget(tenant)
	return home.Place(ctx, done, where)
}

// Keep decides which of several partitions has a tenant that is refused. All others give it up; what
// they have of it stays there, and is ignored.
func (l *Ledger) Keep(ctx context.Context, tenant, in string) error {
	if l.named(in) == nil {
		return fmt.Errorf("%w: %q is no partition of the configuration", ErrMove, in)
	}
	v, found, err := l.contradictions(ctx)
	if err == nil {
		err = errors.Join(v.errs...) // each must give it up
	}
	if err != nil {
		return err
	}
	home, err := l.open(ctx, l.home)
	if err != nil {
		return err
	}
	where, err := home.Placement(ctx, tenant)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Tenant == tenant }) {
		return fmt.Errorf("%w: the partitions and the directory agree where tenant %q is", ErrMove, tenant)
	}
	switch o, has := v.owned[slices.Index(l.shards, l.named(in))][tenant]; {
	case !has:
		return fmt.Errorf("%w: partition %q has nothing of tenant %q", ErrMove, in, tenant)
	case o.State == ledger.TenantMoved && len(v.owners(tenant)) > 0:
		return fmt.Errorf("%w: partition %q gave tenant %q up in epoch %d, and another one owns it", ErrMove, in, tenant, o.Epoch)
	}
	epoch := where.Epoch
	for _, all := range v.owned {
		epoch = max(epoch, all[tenant].Epoch)
	}
	epoch++
	var owner ledger.Partition
	var was ledger.Ownership
	for i, s := range l.shards {
		o, has := v.owned[i][tenant]
		p, err := l.open(ctx, s)
		if err != nil {
			return err
		}
		if s.Name == in {
			owner, was = p, o
			continue
		}
		if has && o.State != ledger.TenantMoved {
			if err := p.Own(ctx, ledger.Ownership{Tenant: tenant, Epoch: epoch, State: ledger.TenantMoved}, o); err != nil {
				return err
			}
		}
	}
	if err := owner.Own(ctx, ledger.Ownership{Tenant: tenant, Epoch: epoch, State: ledger.TenantActive}, was); err != nil {
		return err
	}
	if err := home.Place(ctx, ledger.Placement{Tenant: tenant, Partition: in, Epoch: epoch, State: ledger.TenantActive}, where); err != nil {
		return err
	}
	return l.reconcile(ctx)
}
