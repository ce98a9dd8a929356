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
	sealing bool      // a sealer has begun
	since   time.Time // when the newest run that was deleted without being sealed was committed
	runs    []timed   // events are read when they are requested
	ticket  int64
}

// timed is a run, and when it was committed.
type timed struct {
	Run
	at time.Time
}

func (c *feed) add(r Run, at time.Time) {
	c.ticket++
	r.Ticket = c.ticket
	c.runs = append(c.runs, timed{r, at}) // a snapshot's slice must not change
}

// mark adds a mark, if there is one.
func (c *feed) mark(m *Mark, now time.Time) {
	if m != nil {
		c.add(Run{Tenant: m.Tenant, ID: m.Write, Mark: m}, now)
	}
}

// unname adds the mark of an erased document. Where there is no sealer, nothing names the document
// any more: a later one does not know that it existed.
func (c *feed) unname(m *Mark, now time.Time) {
	if c.sealing {
		c.mark(m, now)
		return
	}
	c.runs = slices.DeleteFunc(slices.Clone(c.runs), func(r timed) bool {
		return r.Mark != nil && m != nil && r.Mark.Tenant == m.Tenant && r.Mark.DocumentKind == m.DocumentKind && r.Mark.DocumentID == m.DocumentID
	})
}

// unsealed reports whether a sealer has yet to seal some events of a write.
func (c *feed) unsealed(id ID) bool {
	return c.sealing && slices.ContainsFunc(c.runs, func(r timed) bool { return r.Mark == nil && r.ID == id })
}

// prune deletes runs that are too old to be kept for a sealer that may begin.
func (c *feed) prune(now time.Time) {
	if c.sealing {
		return
	}
	kept := slices.IndexFunc(c.runs, func(r timed) bool { return now.Sub(r.at) < ChangesKept })
	if kept < 0 {
		kept = len(c.runs)
	}
	if kept > 0 {
		c.since = c.runs[kept-1].at
	}
	c.runs = slices.Clone(c.runs[kept:])
}

// BeginSealing implements [Feed].
func (m *Memory) BeginSealing(ctx context.Context) (since time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil || m.feed.sealing {
		return m.feed.since, err
	}
	m.feed.sealing = true
	m.feed.runs = slices.DeleteFunc(slices.Clone(m.feed.runs), func(r timed) bool {
		kept := slices.ContainsFunc(m.events[r.ID], func(e Event) bool { return e.Seq >= r.First && e.Seq <= r.Last })
		return r.Mark == nil && !kept // its events were pruned, which has a mark
	})
	return m.feed.since, nil
}

// Unsealed implements [Feed].
func (m *Memory) Unsealed(ctx context.Context, after int64, limit int) (runs []Run, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.feed.sealing {
		return nil, nil
	}
	all := m.feed.runs
	from, _ := slices.BinarySearchFunc(all, after+1, func(r timed, ticket int64) int { return cmp.Compare(r.Ticket, ticket) })
	for _, of := range all[from:min(from+RunLimit(limit), len(all))] {
		r := of.Run
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
	var left []timed
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
