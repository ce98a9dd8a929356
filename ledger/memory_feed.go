package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// feed holds what is not sealed yet.
type feed struct {
	on     bool
	runs   []Run // events are read when they are requested
	ticket int64
}

func (c *feed) add(r Run) {
	if !c.on {
		return
	}
	c.ticket++
	r.Ticket = c.ticket
	c.runs = append(c.runs, r) // a snapshot's slice must not change
}

// mark adds a mark, if there is one.
func (c *feed) mark(m *Mark) {
	if m != nil {
		c.add(Run{Tenant: m.Tenant, ID: m.Write, Mark: m})
	}
}

// unsealed reports whether some events of a write are not sealed.
func (c *feed) unsealed(id ID) bool {
	return slices.ContainsFunc(c.runs, func(r Run) bool { return r.Mark == nil && r.ID == id })
}

// SetRecording implements [Feed].
func (m *Memory) SetRecording(ctx context.Context, on bool) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.feed.on == on {
		return false, nil
	}
	m.feed.on = on
	if !on {
		m.feed.runs = nil
		return true, nil
	}
	for _, id := range m.order {
		r := m.records[id]
		run := Run{Tenant: r.Tenant, ID: id, First: 1, Last: r.Seq, Backfilled: true}
		if r.Tombstone {
			if run.Mark, err = BackfillTombstone(r); err != nil {
				return false, err
			}
		}
		m.feed.add(run)
	}
	for _, name := range m.documentOrder {
		committed, err := m.documents[name].BackfillMark()
		if err != nil {
			return false, err
		}
		m.feed.mark(committed)
	}
	return true, nil
}

// BackfillTombstone returns the mark of a tombstone that existed when recording was switched on.
func BackfillTombstone(r Record) (*Mark, error) {
	digest, err := Tombstone(r)
	return &Mark{Kind: MarkPruned, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "found pruned when sealing began"}, err
}

// Unsealed implements [Feed].
func (m *Memory) Unsealed(ctx context.Context, after int64, limit int) (runs []Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.feed.runs
	from, _ := slices.BinarySearchFunc(all, after+1, func(r Run, ticket int64) int { return cmp.Compare(r.Ticket, ticket) })
	for _, r := range all[from:min(from+RunLimit(limit), len(all))] {
		if r.Mark == nil {
			for _, e := range m.events[r.ID] {
				if e.Seq >= r.First && e.Seq <= r.Last {
					r.Events = append(r.Events, e)
				}
			}
			if r.First == 1 {
				r.Intent = m.records[r.ID].Intent
			}
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Sealed implements [Feed].
func (m *Memory) Sealed(ctx context.Context, tickets []int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := make(map[int64]bool, len(tickets))
	for _, t := range tickets {
		gone[t] = true
	}
	var left []Run
	for _, r := range m.feed.runs {
		if !gone[r.Ticket] {
			left = append(left, r)
		}
	}
	m.feed.runs = left
	return nil
}

// Tenants implements [Feed].
func (m *Memory) Tenants(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]bool)
	for _, r := range m.records {
		all[r.Tenant] = true
	}
	for name := range m.documents {
		all[name.tenant] = true
	}
	return slices.Sorted(maps.Keys(all)), ctx.Err()
}

// Foreign implements [Feed]. A memory ledger has no schema.
func (m *Memory) Foreign(ctx context.Context) ([]string, error) { return nil, ctx.Err() }

// Lifetimes implements [Feed].
func (m *Memory) Lifetimes(ctx context.Context, after ID, limit int) (lives []Lifetime, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.records)) {
		if id > after && len(lives) < RunLimit(limit) {
			r := m.records[id]
			r.Now = time.Now()
			lives = append(lives, Lifetime{Record: r, Events: slices.Clone(m.events[id])})
		}
	}
	return lives, ctx.Err()
}

// Kept implements [Feed].
func (m *Memory) Kept(ctx context.Context, after Document, limit int) (kept []Document, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inOrder := func(a, b documentName) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.documents), inOrder) {
		if inOrder(name, after.name()) > 0 && name.kind != AuditKind && len(kept) < RunLimit(limit) {
			kept = append(kept, m.documents[name].read(time.Now()))
		}
	}
	return kept, ctx.Err()
}

// Finding implements [Feed]. A memory ledger backfills in one step.
func (m *Memory) Finding(ctx context.Context) (bool, error) { return false, ctx.Err() }
