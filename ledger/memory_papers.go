package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

var _ Papers = (*Memory)(nil)

type paperName struct{ tenant, kind, id string }

func (p Paper) name() paperName { return paperName{p.Tenant, p.Kind, p.ID} }

// File implements [Papers].
func (m *Memory) File(ctx context.Context, f Filing) (Filed, error) {
	if err := cmp.Or(ctx.Err(), f.Check()); err != nil {
		return Filed{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	did := Filed{Now: now}
	for _, p := range f.Unchanged {
		if _, err := p.Next(m.papers[p.name()], now); err != nil {
			return Filed{}, err
		}
	}
	for _, p := range f.Papers {
		next, err := p.Next(m.papers[p.name()], now)
		if err != nil {
			return Filed{}, err
		}
		did.Papers = append(did.Papers, next)
	}
	marks, err := filedMarks(did.Papers)
	if err != nil {
		return Filed{}, err
	}
	undo := m.snapshot()
	if err := m.fileWrites(f, &did, now); err != nil {
		m.restore(undo)
		return Filed{}, err
	}
	for i, p := range did.Papers {
		m.chronicle.mark(marks[i])
		if p.Version == 1 {
			m.paperOrder = append(m.paperOrder, p.name())
		}
		m.papers[p.name()] = p.read(now) // with a body of its own
	}
	return did, nil
}

func filedMarks(papers []Paper) (marks []*Mark, err error) {
	for _, p := range papers {
		mark, err := p.Filed()
		if err != nil {
			return nil, err
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

func (m *Memory) fileWrites(f Filing, did *Filed, now time.Time) (err error) {
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

// latest is a write as it stands after a later part of a filing.
func (m *Memory) latest(rec Record, now time.Time) Record {
	if r, there := m.records[rec.ID]; there {
		rec, rec.Now = r, now
	}
	return rec
}

// state is what a filing that fails half-way is taken back to.
type state struct {
	records   map[ID]Record
	events    map[ID][]Event
	order     []ID
	commits   int
	numbers   map[ID]int64
	changes   []Change
	last      [2]int64 // of writes and of changes
	chronicle chronicle
}

func (m *Memory) snapshot() state {
	return state{
		records: cloned(m.records), events: cloned(m.events), order: slices.Clone(m.order), commits: m.commits,
		numbers: cloned(m.numbers), changes: m.changes, last: [2]int64{m.reserved, m.changed}, chronicle: m.chronicle,
	}
}

func (m *Memory) restore(s state) {
	m.records, m.events, m.order, m.commits = s.records, s.events, s.order, s.commits
	m.numbers, m.changes, m.reserved, m.changed = s.numbers, s.changes, s.last[0], s.last[1]
	m.chronicle = s.chronicle
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Paper implements [Papers].
func (m *Memory) Paper(ctx context.Context, tenant, kind, id string) (Paper, error) {
	if err := ctx.Err(); err != nil {
		return Paper{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.papers[paperName{tenant, kind, id}]
	if !ok {
		return Paper{}, fmt.Errorf("%w: %s %q", ErrNoPaper, kind, id)
	}
	return p.read(m.now()), nil
}

func (p Paper) read(now time.Time) Paper {
	p.Body, p.Now = slices.Clone(p.Body), now
	return p
}

// FindPapers implements [Papers].
func (m *Memory) FindPapers(ctx context.Context, q PaperQuery) (found []Paper, total int, err error) {
	q, err = q.Checked()
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	order := slices.Clone(m.paperOrder)
	if q.Binder == "" {
		slices.Reverse(order)
	}
	now := m.now()
	for _, name := range order {
		p := m.papers[name]
		if !q.Selects(p) {
			continue
		}
		if total++; total > q.Offset && len(found) < q.Limit {
			found = append(found, p.read(now))
		}
	}
	return found, total, nil
}

// prunePapers forgets at most so many papers, oldest first.
func (m *Memory) prunePapers(p Prune, most int, now time.Time) (forgotten int) {
	oldest := slices.SortedStableFunc(slices.Values(m.paperOrder), func(a, b paperName) int {
		return m.papers[a].Updated.Compare(m.papers[b].Updated)
	})
	for _, name := range oldest {
		if forgotten == most {
			break
		}
		paper, there := m.papers[name]
		if !there || !p.ForgetsPaper(paper, now) {
			continue
		}
		bound := m.boundBy(paper)
		if slices.ContainsFunc(bound, func(n paperName) bool { return !p.Rests(m.papers[n], now) }) {
			continue
		}
		for _, n := range append(bound, name)[:min(len(bound)+1, most-forgotten)] {
			m.chronicle.mark(p.Dropped(n.tenant, n.kind, n.id, now))
			delete(m.papers, n)
			forgotten++
		}
	}
	m.paperOrder = slices.DeleteFunc(m.paperOrder, func(n paperName) bool { _, there := m.papers[n]; return !there })
	return forgotten
}

// boundBy are the papers of the binder that a paper covers, but for itself.
func (m *Memory) boundBy(cover Paper) (bound []paperName) {
	if !cover.Covers() {
		return nil
	}
	for _, n := range m.paperOrder {
		if p, there := m.papers[n]; there && p.Tenant == cover.Tenant && p.Binder == cover.Binder && n != cover.name() {
			bound = append(bound, n)
		}
	}
	return bound
}

// DuePapers implements [Papers].
func (m *Memory) DuePapers(ctx context.Context, kind string, limit int) (due []Paper, now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, now, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.now()
	for _, name := range m.paperOrder {
		if p := m.papers[name]; p.Kind == kind && !p.Due.IsZero() && !p.Due.After(now) {
			due = append(due, p.read(now))
		}
	}
	slices.SortStableFunc(due, func(a, b Paper) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), DueLimit(limit))], now, nil
}
