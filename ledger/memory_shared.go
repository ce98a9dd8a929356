package ledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	_ Notes    = (*Memory)(nil)
	_ Pruner   = (*Memory)(nil)
	_ Surveyor = (*Memory)(nil)
	_ Waker    = (*Memory)(nil)
)

// Woken implements [Waker].
func (m *Memory) Woken(ctx context.Context) <-chan struct{} { return m.bell.Woken(ctx) }

// Notes implements [Notes].
func (m *Memory) Notes(ctx context.Context, prefix string) ([]Note, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Note
	for name, n := range m.notes {
		if strings.HasPrefix(name, prefix) && len(n.Value) > 0 {
			n.Value = bytes.Clone(n.Value)
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b Note) int { return cmp.Compare(a.Name, b.Name) })
	return found, m.now(), nil
}

// SetNote implements [Notes]. A note that was removed leaves its version
// behind, so that nobody takes another one of the same name for it.
func (m *Memory) SetNote(ctx context.Context, n Note) (Note, error) {
	if err := cmp.Or(ctx.Err(), n.Check()); err != nil {
		return Note{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.notes[n.Name]
	there := int64(0)
	if len(have.Value) > 0 {
		there = have.Version
	}
	if n.Version != there {
		return Note{}, fmt.Errorf("%w: note %q has version %d, not %d", ErrStale, n.Name, there, n.Version)
	}
	if m.notes == nil {
		m.notes = make(map[string]Note)
	}
	n.Version, n.Value, n.At = have.Version+1, bytes.Clone(n.Value), m.now()
	m.notes[n.Name] = n
	if len(n.Value) == 0 {
		return Note{Name: n.Name, At: n.At}, nil
	}
	n.Value = bytes.Clone(n.Value)
	return n, nil
}

// Prune implements [Pruner].
func (m *Memory) Prune(ctx context.Context, p Prune) (Pruned, error) {
	p, err := p.Checked()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return Pruned{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	did := Pruned{Changes: m.pruneChanges(now)}
	oldest := slices.SortedFunc(slices.Values(m.order), func(a, b ID) int {
		return m.records[a].SettledAt.Compare(m.records[b].SettledAt)
	})
	for _, id := range oldest {
		r := m.records[id]
		switch relatives := m.relatives(r); {
		case did.Buried+did.Forgotten == p.Limit:
			return did, nil
		case m.chronicle.unsealed(id):
		case p.Forgets(r, now, relatives...):
			m.chronicle.mark(p.Forgotten(r, now))
			delete(m.records, id)
			delete(m.events, id)
			delete(m.numbers, id)
			m.order = slices.DeleteFunc(m.order, func(other ID) bool { return other == id })
			m.commits++
			did.Forgotten++
		case p.Buries(r, now, relatives...) && !m.waitedFor(id):
			buried, err := p.Buried(Bury(r), now)
			if err != nil {
				return did, err
			}
			m.chronicle.mark(buried)
			m.records[id] = Bury(r)
			delete(m.events, id)
			m.commits++
			did.Buried++
		}
	}
	did.Papers = m.prunePapers(p, p.Limit-did.Buried-did.Forgotten, now)
	return did, nil
}

// relatives are the write that this one compensates and the one that
// compensates it, where they are there.
func (m *Memory) relatives(r Record) []Record {
	var found []Record
	for _, id := range []ID{r.Parent, r.Child} {
		if other, ok := m.records[id]; ok {
			found = append(found, other)
		}
	}
	return found
}

func (m *Memory) waitedFor(id ID) bool {
	for _, r := range m.records {
		if r.Behind == id {
			return true
		}
	}
	return false
}

// Survey implements [Surveyor].
func (m *Memory) Survey(ctx context.Context) (Survey, error) {
	if err := ctx.Err(); err != nil {
		return Survey{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Survey{Now: m.now()}
	at := make(map[Queue]int) // by the names alone
	for _, id := range m.order {
		r := m.records[id]
		if done(r) {
			continue
		}
		names := Queue{Tenant: r.Tenant, Destination: r.Destination, State: r.State}
		i, ok := at[names]
		if !ok {
			i = len(s.Queues)
			at[names], s.Queues = i, append(s.Queues, names)
		}
		s.Queues[i] = s.Queues[i].with(r, s.Now)
	}
	slices.SortFunc(s.Queues, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.State, b.State))
	})
	return s, nil
}

// with counts one more write.
func (q Queue) with(r Record, now time.Time) Queue {
	due := !r.Due.IsZero() && !r.Due.After(now)
	q.Count++
	switch {
	case r.LeaseUntil.After(now):
		q.Leased++
	case due && r.Owner != "":
		q.Orphaned++
	case due:
		q.Due++
	case r.Behind != "":
		q.Behind++
	}
	if due && !r.LeaseUntil.After(now) && (q.OldestDue.IsZero() || r.Due.Before(q.OldestDue)) {
		q.OldestDue = r.Due
	}
	if q.OldestCreated.IsZero() || r.Created.Before(q.OldestCreated) {
		q.OldestCreated = r.Created
	}
	return q
}
