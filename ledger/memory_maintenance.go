package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Prune implements [Maintenance].
func (m *Memory) Prune(ctx context.Context, p Prune) (Pruned, error) {
	p, err := p.Checked()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return Pruned{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if p.DryRun {
		return m.prunable(p, now)
	}
	did, holds := Pruned{Changes: m.pruneChanges(now)}, m.holds()
	m.feed.prune(now)
	oldest := slices.SortedFunc(slices.Values(m.order), func(a, b ID) int {
		return m.records[a].SettledAt.Compare(m.records[b].SettledAt)
	})
	for _, id := range oldest {
		r := m.records[id]
		relatives := m.relatives(r)
		_, held := holds.On(r, relatives...)
		switch {
		case did.Compacted+did.Forgotten == p.Limit:
			return did, nil
		case held:
		case m.feed.unsealed(id):
		case p.Forgets(r, now, relatives...):
			m.feed.mark(p.Forgotten(r, now), now)
			delete(m.records, id)
			delete(m.events, id)
			delete(m.numbers, id)
			m.order = slices.DeleteFunc(m.order, func(other ID) bool { return other == id })
			m.commits++
			did.Forgotten++
		case p.Compacts(r, now, relatives...) && !m.waitedFor(id):
			compacted, err := p.Compacted(Compact(r), now)
			if err != nil {
				return did, err
			}
			m.feed.mark(compacted, now)
			m.records[id] = Compact(r)
			delete(m.events, id)
			m.commits++
			did.Compacted++
		}
	}
	did.Documents = m.pruneDocuments(p, holds, p.Limit-did.Compacted-did.Forgotten, now)
	return did, nil
}

// prunable counts what a prune would delete.
func (m *Memory) prunable(p Prune, now time.Time) (did Pruned, err error) {
	holds := m.holds()
	kept := func(r Record) bool {
		_, held := holds.On(r, m.relatives(r)...)
		return held || m.feed.unsealed(r.ID)
	}
	compacts := func(r Record) (bool, error) {
		return !kept(r) && p.Compacts(r, now, m.relatives(r)...) && !m.waitedFor(r.ID), nil
	}
	for _, id := range m.order {
		r := m.records[id]
		compact, _ := compacts(r) // which never fails
		if !compact && (!r.Tombstone || kept(r)) {
			continue
		}
		forgets, err := p.ForgetsAlso(r, now, compacts, m.relatives(r)...)
		if err != nil {
			return did, err
		}
		if forgets {
			did.Forgotten++
		}
		if compact {
			did.Compacted++
		}
		if compact || forgets {
			did.Bytes += r.Contents()
			for _, e := range m.events[id] {
				did.Bytes += int64(len(e.Evidence) + len(e.Mismatches) + len(e.Prepared) + len(e.Reason))
			}
		}
	}
	return did, nil
}

// holds returns the active legal holds.
func (m *Memory) holds() Holds {
	var documents []Document
	for _, name := range m.documentOrder {
		if p := m.documents[name]; p.Kind == HoldKind && !p.Due.IsZero() {
			documents = append(documents, p)
		}
	}
	return HoldsOf(documents)
}

// Erase implements [Maintenance].
func (m *Memory) Erase(ctx context.Context, e Erasing) (did Erased, err error) {
	if err := cmp.Or(ctx.Err(), e.Check()); err != nil {
		return Erased{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.documents[documentName{e.Tenant, ErasureKind, e.Erasure}]; !ok {
		return Erased{}, fmt.Errorf("%w: %s %q", ErrNoDocument, ErasureKind, e.Erasure)
	}
	now, holds := m.now(), m.holds()
	for _, id := range e.Writes {
		r, there := m.records[id]
		if !there || r.Tenant != e.Tenant || r.Erased != "" {
			continue
		}
		why := e.Keeps(r, now, holds, m.waitedFor(id), m.relatives(r)...)
		if why == "" && m.feed.unsealed(id) {
			why = NotSealed
		}
		if why != "" {
			did.Left = append(did.Left, LeftOver{Write: id, Why: why})
			continue
		}
		erased := Erase(r, e.Erasure)
		mark, err := e.Mark(erased, now)
		if err != nil {
			return did, err
		}
		m.feed.mark(mark, now)
		m.records[id] = erased
		delete(m.events, id)
		m.commits++
		did.Writes++
	}
	m.eraseDocuments(e, holds, now, &did)
	return did, nil
}

// Scrub implements [Maintenance]. The garbage collector frees the memory.
func (m *Memory) Scrub(ctx context.Context) error { return ctx.Err() }

// relatives returns the write that this one compensates and the one that compensates it, where
// they exist.
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
		if r.QueuedBehind == id {
			return true
		}
	}
	return false
}

// QueueStats implements [Maintenance].
func (m *Memory) QueueStats(ctx context.Context) (QueueStats, error) {
	if err := ctx.Err(); err != nil {
		return QueueStats{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := QueueStats{Now: m.now()}
	at := make(map[Queue]int) // by the names only
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
	q.Bytes += int64(len(r.Intent))
	switch {
	case r.InHand(now):
		q.Leased++
	case due && r.Owner != "" && r.Owner != Dispatched:
		q.Orphaned++
	case due:
		q.Due++
	case r.QueuedBehind != "":
		q.Waiting++
	}
	if due && !r.InHand(now) && (q.OldestDue.IsZero() || r.Due.Before(q.OldestDue)) {
		q.OldestDue = r.Due
	}
	if q.OldestCreated.IsZero() || r.Created.Before(q.OldestCreated) {
		q.OldestCreated = r.Created
	}
	return q
}
