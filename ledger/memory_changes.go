package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Changed implements [Feed].
func (m *Memory) Changed(ctx context.Context) <-chan struct{} { return m.subscribers.Woken(ctx) }

// publish keeps changes for followers.
func (m *Memory) publish(changes []Change) {
	for _, c := range changes {
		m.changed++
		c.Cursor = m.place(m.changed).Cursor()
		m.changes = append(m.changes, c)
		m.subscribers.Notify()
	}
}

func (m *Memory) place(n int64) Place { return Place{N: n, Mark: m.mark} }

// Follow implements [Feed].
func (m *Memory) Follow(ctx context.Context, q Following) (changes []Change, next string, err error) {
	q, err = q.Checked()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return nil, "", err
	}
	after, err := PlaceOf(q.After)
	if err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest := m.changed - int64(len(m.changes)) + 1
	from := oldest
	if q.After != "" {
		if err := after.Reaches(oldest, m.changed, &m.mark); err != nil {
			return nil, "", err
		}
		from = after.N + 1
	}
	next = q.After
	for _, c := range m.changes[from-oldest:] {
		if len(changes) == q.Limit {
			break
		}
		if next = c.Cursor; q.Tenant == "" || q.Tenant == c.Tenant {
			changes = append(changes, c)
		}
	}
	return changes, next, nil
}

// Latest implements [Feed].
func (m *Memory) Latest(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.place(m.changed).Cursor(), ctx.Err()
}

// pruneChanges deletes those that are too old to be followed.
func (m *Memory) pruneChanges(now time.Time) (forgotten int) {
	for forgotten < min(len(m.changes)-1, MaxChangesPruned) && now.Sub(m.changes[forgotten].At) >= ChangesKept {
		forgotten++
	}
	m.changes = slices.Clone(m.changes[forgotten:])
	return forgotten
}

// History implements [Feed].
func (m *Memory) History(ctx context.Context, q Past) ([]Span, error) {
	q, err := q.Checked()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var counts []Counted
	for _, c := range m.changes {
		if of, in := q.Counted(c); in {
			counts = append(counts, of)
		}
	}
	return q.Spans(counts), nil
}

// Find implements [Ledger].
func (m *Memory) Find(ctx context.Context, s Search) (SearchResult, error) {
	s, err := s.Checked()
	if err == nil {
		s.KeyDigest, err = m.digests.Of(s.KeyDigest)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return SearchResult{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.queuedBehind(s)
	var found SearchResult
	now := m.now()
	for i, id := range ids {
		if len(found.Records) == s.Limit || i == MaxScanned {
			found.Next = SearchCursor(m.numbers[ids[i-1]])
			break
		}
		r := m.records[id]
		if s.Ends(r.Created) {
			break
		}
		if s.Selects(r) {
			r.Now, r.Before, r.Evidence, r.ChildIntent = now, nil, nil, nil
			found.Records = append(found.Records, r)
		}
	}
	return found, nil
}

// queuedBehind returns the writes after the cursor of a search, in its order.
func (m *Memory) queuedBehind(s Search) []ID {
	ids := slices.Clone(m.order) // in the order of their numbers
	at := len(ids)
	if s.Oldest {
		at = 0
	}
	if s.After != "" {
		n, _ := ParseSearchCursor(s.After) // already checked
		var there bool
		at, there = slices.BinarySearchFunc(ids, n, func(id ID, n int64) int { return cmp.Compare(m.numbers[id], n) })
		if there && s.Oldest {
			at++
		}
	}
	if s.Oldest {
		return ids[at:]
	}
	ids = ids[:at]
	slices.Reverse(ids)
	return ids
}
