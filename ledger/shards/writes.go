package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// epochShift is where the epoch of a tenant is in the number of a [ledger.Precheck]. The numbers of a
// partition mean nothing in another one.
const epochShift = 44

// Precheck implements [ledger.Ledger].
func (l *Ledger) Precheck(ctx context.Context, r ledger.Record) (found ledger.Precheck, err error) {
	err = l.read(ctx, r.Tenant, func(p ledger.Partition, epoch int64) error {
		found, err = p.Precheck(ctx, r)
		found.Newest |= epoch << epochShift
		return err
	})
	return found, err
}

// here returns a reservation with its precheck as the partition made it. After a move every earlier
// write of the record is newer than what was read.
func here(res ledger.Reservation, epoch int64) ledger.Reservation {
	if res.Precheck == nil {
		return res
	}
	p := *res.Precheck
	if p.Newest>>epochShift == epoch {
		p.Newest &= 1<<epochShift - 1
	} else {
		p.Newest = 0
	}
	res.Precheck = &p
	return res
}

// Reserve implements [ledger.Ledger].
func (l *Ledger) Reserve(ctx context.Context, res ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	err = l.at(ctx, res.Record.Tenant, true, func(p ledger.Partition, epoch int64) error {
		rec, fresh, err = p.Reserve(ctx, here(res, epoch))
		return err
	})
	l.know(rec)
	return rec, fresh, err
}

// Claim implements [ledger.Ledger]. Each claim begins with another partition.
func (l *Ledger) Claim(ctx context.Context, c ledger.Claim) (got []ledger.Record, err error) {
	if c, err = c.Checked(); err != nil {
		return nil, err
	}
	if c.ID != "" {
		err = l.at(ctx, c.Tenant, false, func(p ledger.Partition, _ int64) error {
			got, err = p.Claim(ctx, c)
			return err
		})
		l.know(got...)
		return got, err
	}
	got = []ledger.Record{}
	var errs []error
	first, rest, limit := l.rotate(), c, c.Limit
	// A share of each, and then what some do not need.
	for round := range 2 {
		for i := range l.shards {
			left := len(l.shards) - i
			if rest.Limit = (limit - len(got) + left - 1) / left; round == 1 {
				rest.Limit = limit - len(got)
			}
			if rest.Limit == 0 {
				break
			}
			rest.Most = without(c.Most, got)
			s := l.shards[(first+i)%len(l.shards)]
			p, err := l.open(ctx, s)
			var more []ledger.Record
			if err == nil {
				more, err = p.Claim(ctx, rest)
			}
			errs = append(errs, err)
			got = append(got, placedIn(ctx, l, s, more, func(r ledger.Record) string { return r.Tenant })...)
		}
		if len(got) == 0 {
			break
		}
	}
	l.know(got...)
	if len(got) > 0 || slices.Contains(errs, nil) {
		return got, nil // what was leased stays leased
	}
	return nil, errors.Join(errs...)
}

// placedIn returns what a partition has to be worked on of tenants that are there. Another tenant means that
// the partition was restored from a backup while this process runs: its writes may have been sent since.
func placedIn[T any](ctx context.Context, l *Ledger, s *shard, rows []T, tenant func(T) string) []T {
	misplaced := false
	rows = slices.DeleteFunc(rows, func(row T) bool {
		for now := false; ; now = true {
			where, err := l.placeOf(ctx, tenant(row), now, false)
			switch {
			case err != nil: // a lease ends by itself
				return true
			case where.Partition == s.Name || where.State == ledger.TenantDraining && where.Target == s.Name:
				return false
			case now:
				misplaced = true
				return true
			}
		}
	})
	if misplaced {
		if err := l.reconcile(ctx); err != nil {
			l.o.Logger.Error("the places of tenants cannot be compared", "error", err)
		}
	}
	return rows
}

// without returns the bounds of destinations less what was taken.
func without(most map[string]int, got []ledger.Record) map[string]int {
	if len(most) == 0 || len(got) == 0 {
		return most
	}
	left := make(map[string]int, len(most))
	for name, n := range most {
		left[name] = n
	}
	for _, r := range got {
		if n, bounded := left[r.Destination]; bounded {
			left[r.Destination] = max(0, n-1)
		}
	}
	return left
}

// Append implements [ledger.Ledger].
func (l *Ledger) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	tenant, err := l.tenantOf(ctx, id)
	if err != nil {
		return rec, err
	}
	err = l.at(ctx, tenant, false, func(p ledger.Partition, _ int64) error {
		rec, err = p.Append(ctx, id, fence, events...)
		return err
	})
	return rec, err
}

// Get implements [ledger.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, err error) {
	err = l.read(ctx, tenant, func(p ledger.Partition, _ int64) error {
		rec, err = p.Get(ctx, tenant, id)
		return err
	})
	l.know(rec)
	return rec, err
}

// Events implements [ledger.Ledger].
func (l *Ledger) Events(ctx context.Context, tenant string, id ledger.ID) (events []ledger.Event, err error) {
	err = l.read(ctx, tenant, func(p ledger.Partition, _ int64) error {
		events, err = p.Events(ctx, tenant, id)
		return err
	})
	return events, err
}

// List implements [ledger.Ledger].
func (l *Ledger) List(ctx context.Context, f ledger.Filter) (recs []ledger.Record, err error) {
	if f, err = f.Checked(); err != nil {
		return nil, err
	}
	err = l.read(ctx, f.Tenant, func(p ledger.Partition, _ int64) error {
		recs, err = p.List(ctx, f)
		return err
	})
	l.know(recs...)
	return recs, err
}

// Find implements [ledger.Ledger].
func (l *Ledger) Find(ctx context.Context, s ledger.Search) (found ledger.SearchResult, err error) {
	if s, err = s.Checked(); err != nil {
		return found, err
	}
	err = l.read(ctx, s.Tenant, func(p ledger.Partition, _ int64) error {
		found, err = p.Find(ctx, s)
		return err
	})
	l.know(found.Records...)
	return found, err
}

// Waiting implements [ledger.Ledger].
func (l *Ledger) Waiting(ctx context.Context, tenant string, before [ledger.WaitAges]time.Time) (found []ledger.Waiting, more bool, err error) {
	if err := ledger.CheckWaiting(tenant); err != nil {
		return nil, false, err
	}
	err = l.read(ctx, tenant, func(p ledger.Partition, _ int64) error {
		found, more, err = p.Waiting(ctx, tenant, before)
		return err
	})
	return found, more, err
}

// Operation implements [ledger.Ledger].
func (l *Ledger) Operation(ctx context.Context, tenant, tool, key string) (recs []ledger.Record, err error) {
	err = l.read(ctx, tenant, func(p ledger.Partition, _ int64) error {
		recs, err = p.Operation(ctx, tenant, tool, key)
		return err
	})
	l.know(recs...)
	return recs, err
}

// Woken implements [ledger.Ledger].
func (l *Ledger) Woken(ctx context.Context) <-chan struct{} { return l.woken.listen(ctx) }

// KeepWith implements [ledger.Ledger].
func (l *Ledger) KeepWith(keep func(ledger.Record) (ledger.Record, error)) {
	l.keepWith(func(p ledger.Ledger) { p.KeepWith(keep) })
}

// KeepByDefault implements [ledger.Ledger].
func (l *Ledger) KeepByDefault(keep func(ledger.Record) (ledger.Record, error)) {
	l.keepWith(func(p ledger.Ledger) { p.KeepByDefault(keep) })
}

// keepWith is for the partitions that are open, and for those that will be.
func (l *Ledger) keepWith(set func(ledger.Ledger)) {
	l.mu.Lock()
	l.keep = append(l.keep, set)
	l.mu.Unlock()
	for _, s := range l.shards {
		if p, _ := s.now(); p != nil {
			set(p)
		}
	}
}

// Commit implements [ledger.Documents]. All of a batch must be in one partition.
func (l *Ledger) Commit(ctx context.Context, f ledger.Batch) (did ledger.Committed, err error) {
	if err := f.Check(); err != nil {
		return did, err
	}
	tenants, begins, err := l.tenantsOf(ctx, f)
	if err != nil {
		return did, err
	}
	err = l.together(ctx, tenants, begins, func(p ledger.Partition, epoch int64) error {
		part := f
		if f.Reserve != nil {
			res := here(*f.Reserve, epoch)
			part.Reserve = &res
		}
		did, err = p.Commit(ctx, part)
		return err
	})
	l.know(did.Reserved)
	return did, err
}

// tenantsOf returns the tenants of a batch, and whether it may be the first about them.
func (l *Ledger) tenantsOf(ctx context.Context, f ledger.Batch) (tenants []string, begins bool, err error) {
	if f.Reserve != nil {
		tenants, begins = append(tenants, f.Reserve.Record.Tenant), true
	}
	for _, p := range slices.Concat(f.Documents, f.Unchanged) {
		tenants = append(tenants, p.Tenant)
	}
	begins = begins || slices.ContainsFunc(f.Documents, func(p ledger.Document) bool { return p.Version == 0 })
	for _, a := range f.Append {
		tenant, err := l.tenantOf(ctx, a.ID)
		if err != nil {
			return nil, false, err
		}
		tenants = append(tenants, tenant)
	}
	slices.Sort(tenants)
	return slices.Compact(tenants), begins, nil
}

// together is at for several tenants, which must be in one partition.
func (l *Ledger) together(ctx context.Context, tenants []string, begins bool, call func(p ledger.Partition, epoch int64) error) error {
	for _, other := range tenants[1:] {
		first, err := l.placeOf(ctx, tenants[0], false, begins)
		if err != nil {
			return err
		}
		where, err := l.placeOf(ctx, other, false, begins)
		if err != nil {
			return err
		}
		if where.Partition != first.Partition {
			return fmt.Errorf("a batch concerns tenants %q and %q, which are in the partitions %q and %q; commit them one by one", tenants[0], other, first.Partition, where.Partition)
		}
	}
	return l.at(ctx, tenants[0], begins, call)
}

// Document implements [ledger.Documents].
func (l *Ledger) Document(ctx context.Context, tenant, kind, id string) (doc ledger.Document, err error) {
	err = l.read(ctx, tenant, func(p ledger.Partition, _ int64) error {
		doc, err = p.Document(ctx, tenant, kind, id)
		return err
	})
	return doc, err
}

// FindDocuments implements [ledger.Documents].
func (l *Ledger) FindDocuments(ctx context.Context, q ledger.DocumentQuery) (found []ledger.Document, total int, err error) {
	if q, err = q.Checked(); err != nil {
		return nil, 0, err
	}
	err = l.read(ctx, q.Tenant, func(p ledger.Partition, _ int64) error {
		found, total, err = p.FindDocuments(ctx, q)
		return err
	})
	return found, total, err
}

// DueDocuments implements [ledger.Documents]. The time is the earliest of those of the partitions.
func (l *Ledger) DueDocuments(ctx context.Context, kind string, limit int) (due []ledger.Document, now time.Time, err error) {
	of, nows := make([][]ledger.Document, len(l.shards)), make([]time.Time, len(l.shards))
	err = l.each(ctx, func(i int, p ledger.Partition) (err error) {
		of[i], nows[i], err = p.DueDocuments(ctx, kind, limit)
		of[i] = placedIn(ctx, l, l.shards[i], of[i], func(d ledger.Document) string { return d.Tenant })
		return err
	})
	if err != nil {
		return nil, now, err
	}
	for _, t := range nows {
		if !t.IsZero() && (now.IsZero() || t.Before(now)) {
			now = t
		}
	}
	due = slices.Concat(of...)
	slices.SortStableFunc(due, func(a, b ledger.Document) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), ledger.DueLimit(limit))], now, nil
}

// Notes implements [ledger.Documents]. Notes are in the home. A worker reads often whether the outbox is
// full: partitions that could not be reached when that changed learn it then.
func (l *Ledger) Notes(ctx context.Context, prefix string) (notes []ledger.Note, now time.Time, err error) {
	p, err := l.open(ctx, l.home)
	if err != nil {
		return nil, now, err
	}
	if notes, now, err = p.Notes(ctx, prefix); err == nil && prefix == ledger.FullNote {
		full := ledger.Note{Name: ledger.FullNote}
		if i := slices.IndexFunc(notes, func(n ledger.Note) bool { return n.Name == full.Name }); i >= 0 {
			full = notes[i]
		}
		err = l.copyNote(ctx, full)
	}
	return notes, now, err
}

// SetNote implements [ledger.Documents]. That the outbox is full is a note in each partition too:
// callers enqueue where their tenant is.
func (l *Ledger) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	p, err := l.open(ctx, l.home)
	if err != nil {
		return ledger.Note{}, err
	}
	set, err := p.SetNote(ctx, n)
	if err == nil && n.Name == ledger.FullNote {
		err = l.copyNote(ctx, n)
	}
	return set, err
}

// copyNote gives a note in the other partitions, as far as they can be reached, the value of that in the
// home.
func (l *Ledger) copyNote(ctx context.Context, n ledger.Note) error {
	return l.each(ctx, func(i int, p ledger.Partition) error {
		if l.shards[i] == l.home {
			return nil
		}
		found, _, err := p.Notes(ctx, n.Name)
		there := ledger.Note{Name: n.Name}
		for _, have := range found {
			if have.Name == n.Name {
				there = have
			}
		}
		if err == nil && !bytes.Equal(there.Value, n.Value) {
			there.Value = n.Value
			_, err = p.SetNote(ctx, there)
		}
		return err
	})
}
