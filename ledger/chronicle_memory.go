package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

var (
	_ Chronicler = (*Memory)(nil)
	_ Witness    = (*Memory)(nil)
)

// chronicle is what nobody has sealed yet.
type chronicle struct {
	on     bool
	runs   []Run // events are looked up when they are asked for
	ticket int64
}

func (c *chronicle) add(r Run) {
	if !c.on {
		return
	}
	c.ticket++
	r.Ticket = c.ticket
	c.runs = append(c.runs, r) // what a snapshot holds of the list stays as it is
}

// mark adds a mark, if there is one.
func (c *chronicle) mark(m *Mark) {
	if m != nil {
		c.add(Run{Tenant: m.Tenant, ID: m.Write, Mark: m})
	}
}

// unsealed reports whether some events of a write are not sealed.
func (c *chronicle) unsealed(id ID) bool {
	return slices.ContainsFunc(c.runs, func(r Run) bool { return r.Mark == nil && r.ID == id })
}

// Chronicle implements [Chronicler].
func (m *Memory) Chronicle(ctx context.Context, on bool) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chronicle.on == on {
		return false, nil
	}
	m.chronicle.on = on
	if !on {
		m.chronicle.runs = nil
		return true, nil
	}
	for _, id := range m.order {
		r := m.records[id]
		run := Run{Tenant: r.Tenant, ID: id, First: 1, Last: r.Seq, Found: true}
		if r.Tombstone {
			if run.Mark, err = FoundBuried(r); err != nil {
				return false, err
			}
		}
		m.chronicle.add(run)
	}
	for _, name := range m.paperOrder {
		filed, err := m.papers[name].Found()
		if err != nil {
			return false, err
		}
		m.chronicle.mark(filed)
	}
	return true, nil
}

// FoundBuried is the mark of a tombstone that was there when chronicling was
// switched on.
func FoundBuried(r Record) (*Mark, error) {
	digest, err := Stone(r)
	return &Mark{Kind: MarkPruned, Tenant: r.Tenant, Write: r.ID, Seq: r.Seq, Digest: digest, Rule: "found pruned when sealing began"}, err
}

// Unsealed implements [Chronicler].
func (m *Memory) Unsealed(ctx context.Context, after int64, limit int) (runs []Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.chronicle.runs
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

// Sealed implements [Chronicler].
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
	for _, r := range m.chronicle.runs {
		if !gone[r.Ticket] {
			left = append(left, r)
		}
	}
	m.chronicle.runs = left
	return nil
}

// Tenants implements [Witness].
func (m *Memory) Tenants(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]bool)
	for _, r := range m.records {
		all[r.Tenant] = true
	}
	for name := range m.papers {
		all[name.tenant] = true
	}
	return slices.Sorted(maps.Keys(all)), ctx.Err()
}

// Foreign implements [Witness]. There is no schema here.
func (m *Memory) Foreign(ctx context.Context) ([]string, error) { return nil, ctx.Err() }

// Lives implements [Witness].
func (m *Memory) Lives(ctx context.Context, after ID, limit int) (lives []Life, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.records)) {
		if id > after && len(lives) < RunLimit(limit) {
			r := m.records[id]
			r.Now = time.Now()
			lives = append(lives, Life{Record: r, Events: slices.Clone(m.events[id])})
		}
	}
	return lives, ctx.Err()
}

// Kept implements [Witness].
func (m *Memory) Kept(ctx context.Context, after Paper, limit int) (kept []Paper, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inOrder := func(a, b paperName) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.papers), inOrder) {
		if inOrder(name, after.name()) > 0 && name.kind != AuditKind && len(kept) < RunLimit(limit) {
			kept = append(kept, m.papers[name].read(time.Now()))
		}
	}
	return kept, ctx.Err()
}
