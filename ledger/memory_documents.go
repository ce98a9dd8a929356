package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

type documentName struct{ tenant, kind, id string }

func (p Document) name() documentName { return documentName{p.Tenant, p.Kind, p.ID} }

// Commit implements [Documents].
func (m *Memory) Commit(ctx context.Context, f Batch) (Committed, error) {
	if err := cmp.Or(ctx.Err(), f.Check()); err != nil {
		return Committed{}, err
	}
	f, err := m.digests.OfBatch(f)
	if err != nil {
		return Committed{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	did := Committed{Now: now}
	for _, p := range f.Unchanged {
		if _, err := p.Next(m.documents[p.name()], now); err != nil {
			return Committed{}, err
		}
	}
	for _, p := range f.Documents {
		next, err := p.Next(m.documents[p.name()], now)
		if err != nil {
			return Committed{}, err
		}
		did.Documents = append(did.Documents, next)
	}
	marks, err := committedMarks(did.Documents)
	if err != nil {
		return Committed{}, err
	}
	undo := m.snapshot()
	if err := m.fileWrites(f, &did, now); err != nil {
		m.restore(undo)
		return Committed{}, err
	}
	for i, p := range did.Documents {
		m.feed.mark(marks[i], now)
		if p.Version == 1 {
			m.documentOrder = append(m.documentOrder, p.name())
		}
		m.documents[p.name()] = p.read(now) // with a copy of the body
	}
	return did, nil
}

func committedMarks(documents []Document) (marks []*Mark, err error) {
	for _, p := range documents {
		mark, err := p.CommitMark()
		if err != nil {
			return nil, err
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

func (m *Memory) fileWrites(f Batch, did *Committed, now time.Time) (err error) {
	if f.Reserve != nil {
		if did.Reserved, did.Fresh, err = m.reserve(*f.Reserve, now); err != nil {
			return err
		}
	}
	for _, a := range f.Append {
		rec, err := m.append(a.ID, a.Fence, a.Events, now)
		if err != nil {
			return err
		}
		did.Appended = append(did.Appended, rec)
	}
	for i, rec := range did.Appended {
		did.Appended[i] = m.latest(rec, now)
	}
	did.Reserved = m.latest(did.Reserved, now)
	return nil
}

// latest returns a write as it is after a later part of a batch.
func (m *Memory) latest(rec Record, now time.Time) Record {
	if r, there := m.records[rec.ID]; there {
		rec, rec.Now = r, now
	}
	return rec
}

// state is what a failed batch is rolled back to.
type state struct {
	records map[ID]Record
	events  map[ID][]Event
	order   []ID
	commits int
	numbers map[ID]int64
	changes []Change
	last    [2]int64 // of writes and of changes
	feed    feed
}

func (m *Memory) snapshot() state {
	return state{
		records: cloned(m.records), events: cloned(m.events), order: slices.Clone(m.order), commits: m.commits,
		numbers: cloned(m.numbers), changes: m.changes, last: [2]int64{m.reserved, m.changed}, feed: m.feed,
	}
}

func (m *Memory) restore(s state) {
	m.records, m.events, m.order, m.commits = s.records, s.events, s.order, s.commits
	m.numbers, m.changes, m.reserved, m.changed = s.numbers, s.changes, s.last[0], s.last[1]
	m.feed = s.feed
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Document implements [Documents].
func (m *Memory) Document(ctx context.Context, tenant, kind, id string) (Document, error) {
	if err := ctx.Err(); err != nil {
		return Document{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.documents[documentName{tenant, kind, id}]
	if !ok {
		return Document{}, fmt.Errorf("%w: %s %q", ErrNoDocument, kind, id)
	}
	return p.read(m.now()), nil
}

func (p Document) read(now time.Time) Document {
	p.Body, p.Now = slices.Clone(p.Body), now
	return p
}

// FindDocuments implements [Documents].
func (m *Memory) FindDocuments(ctx context.Context, q DocumentQuery) (found []Document, total int, err error) {
	q, err = q.Checked()
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	order := slices.Clone(m.documentOrder)
	if q.Collection == "" {
		slices.Reverse(order)
	}
	now := m.now()
	for _, name := range order {
		p := m.documents[name]
		if !q.Selects(p) {
			continue
		}
		if total++; total > q.Offset && len(found) < q.Limit {
			found = append(found, p.read(now))
		}
	}
	return found, total, nil
}

// pruneDocuments deletes at most that many documents, oldest first.
func (m *Memory) pruneDocuments(p Prune, holds Holds, most int, now time.Time) (forgotten int) {
	oldest := slices.SortedStableFunc(slices.Values(m.documentOrder), func(a, b documentName) int {
		return m.documents[a].Updated.Compare(m.documents[b].Updated)
	})
	for _, name := range oldest {
		if forgotten == most {
			break
		}
		document, there := m.documents[name]
		if _, held := holds.OfTenant(name.tenant); held || !there || !p.ForgetsDocument(document, now) {
			continue
		}
		bound := m.boundBy(document)
		if slices.ContainsFunc(bound, func(n documentName) bool { return !p.Rests(m.documents[n], now) }) {
			continue
		}
		for _, n := range append(bound, name)[:min(len(bound)+1, most-forgotten)] {
			m.feed.mark(p.Dropped(n.tenant, n.kind, n.id, now), now)
			delete(m.documents, n)
			forgotten++
		}
	}
	m.documentOrder = slices.DeleteFunc(m.documentOrder, func(n documentName) bool { _, there := m.documents[n]; return !there })
	return forgotten
}

// eraseDocuments deletes documents that are done, with their collections.
func (m *Memory) eraseDocuments(e Erasing, holds Holds, now time.Time, did *Erased) {
	for _, asked := range e.Deletes() {
		p, there := m.documents[documentName{e.Tenant, asked.Kind, asked.ID}]
		if !there {
			continue
		}
		names := m.boundBy(p)
		var bound []Document
		for _, n := range names {
			bound = append(bound, m.documents[n])
		}
		if why := e.KeepsDocument(p, holds, bound...); why != "" {
			did.Left = append(did.Left, LeftOver{Document: p.Kind + " " + p.ID, Why: why})
			continue
		}
		for _, n := range append(names, p.name()) {
			m.feed.unname(e.Dropped(n.kind, n.id, now), now)
			delete(m.documents, n)
			did.Documents++
		}
	}
	m.documentOrder = slices.DeleteFunc(m.documentOrder, func(n documentName) bool { _, there := m.documents[n]; return !there })
}

// boundBy returns the documents of the collection that a document covers, without itself.
func (m *Memory) boundBy(cover Document) (bound []documentName) {
	if !cover.Covers() {
		return nil
	}
	for _, n := range m.documentOrder {
		if p, there := m.documents[n]; there && p.Tenant == cover.Tenant && p.Collection == cover.Collection && n != cover.name() {
			bound = append(bound, n)
		}
	}
	return bound
}

// DueDocuments implements [Documents].
func (m *Memory) DueDocuments(ctx context.Context, kind string, limit int) (due []Document, now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, now, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.now()
	for _, name := range m.documentOrder {
		if p := m.documents[name]; p.Kind == kind && !p.Due.IsZero() && !p.Due.After(now) {
			due = append(due, p.read(now))
		}
	}
	slices.SortStableFunc(due, func(a, b Document) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), DueLimit(limit))], now, nil
}
