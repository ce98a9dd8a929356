package ledger

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Memory is a ledger in memory, for tests and for programs that can afford to lose it. It loses
// everything when the process ends.
type Memory struct {
	now       func() time.Time
	mu        sync.Mutex
	records   map[ID]Record
	events    map[ID][]Event
	order     []ID
	commits   int
	notes     map[string]Note // also the removed ones, with an empty value
	notifier  Notifier
	documents map[documentName]Document
	// documentOrder is the order in which documents were created.
	documentOrder []documentName
	feed          feed
	numbers       map[ID]int64 // of writes, in the order of their creation
	reserved      int64        // the last of them
	changes       []Change
	changed       int64 // the number of the last one
	mark          int64 // of this ledger, in cursors
	subscribers   Notifier
	digests       KeyDigests
}

// NewMemory returns an empty ledger in memory.
func NewMemory() *Memory {
	m := &Memory{
		now:     time.Now,
		records: make(map[ID]Record), events: make(map[ID][]Event), documents: make(map[documentName]Document),
		numbers: make(map[ID]int64), mark: rand.Int64(),
	}
	kept, err := NewDigestKey(nil)
	if err == nil {
		m.digests, err = OpenKeyDigests(kept, nil)
	}
	if err != nil {
		panic(err) // only without random bytes
	}
	return m
}

// KeyDigests implements [Maintenance].
func (m *Memory) KeyDigests() KeyDigests { return m.digests }

// SetClock replaces the ledger's clock, so that a test can step it. Like every ledger's clock it
// must never run backwards. Call it before the first write.
func (m *Memory) SetClock(now func() time.Time) { m.now = now }

// Commits counts the calls that changed a write.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Precheck implements [Ledger].
func (m *Memory) Precheck(ctx context.Context, r Record) (Precheck, error) {
	r, err := m.digests.OfRecord(r)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return Precheck{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have, recorded := m.records[r.ID]
	p := Precheck{Recorded: recorded && have.Tenant == r.Tenant, Newest: m.reserved}
	for _, other := range m.records {
		p.Contended = p.Contended || r.KeyDigest != "" && other.KeyDigest == r.KeyDigest && (other.InQueue() || other.State == Held)
	}
	return p, nil
}

// recordedSince reports whether a write with this key digest is newer than a
// number.
func (m *Memory) recordedSince(keyDigest string, newest int64) bool {
	for id, r := range m.records {
		if keyDigest != "" && r.KeyDigest == keyDigest && m.numbers[id] > newest {
			return true
		}
	}
	return false
}

// Reserve implements [Ledger].
func (m *Memory) Reserve(ctx context.Context, res Reservation) (Record, bool, error) {
	var err error
	res.Record, err = m.digests.OfRecord(res.Record)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return Record{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserve(res, m.now())
}

func (m *Memory) reserve(res Reservation, now time.Time) (Record, bool, error) {
	if have, ok := m.records[res.Record.ID]; ok {
		if err := Same(have, res); err != nil {
			return Record{}, false, err
		}
		have.Now = now
		return have, false, nil
	}
	if prior, blocked := m.prior(res, now); blocked {
		prior.Now = now
		return Record{}, false, BlockedBy(prior, res)
	}
	last, _ := m.last(res.Record.KeyDigest)
	if res.Precheck != nil && m.recordedSince(res.Record.KeyDigest, res.Precheck.Newest) {
		res.Events = nil
	}
	rec, events, err := Begin(res, last.ID, now)
	if err != nil {
		return Record{}, false, err
	}
	if rec.QueuedBehind != "" {
		m.expedite(last, now)
	}
	m.order = append(m.order, rec.ID)
	m.reserved++
	m.numbers[rec.ID] = m.reserved
	m.store(rec.Identity(), rec, events)
	return rec, true, nil
}

// prior returns the write that blocks a reservation: the newest open one, or else the one that
// was settled last.
func (m *Memory) prior(res Reservation, now time.Time) (prior Record, blocked bool) {
	for _, id := range slices.Backward(m.order) {
		r := m.records[id]
		first := !blocked || prior.State == Settled && (r.State != Settled || r.SettledAt.After(prior.SettledAt))
		if first && Blocks(r, res, now) {
			prior, blocked = r, true
		}
	}
	return prior, blocked
}

// last returns the last write in the queue.
func (m *Memory) last(keyDigest string) (last Record, found bool) {
	if keyDigest == "" {
		return Record{}, false
	}
	followed := make(map[ID]bool)
	for _, r := range m.records {
		followed[r.QueuedBehind] = true
	}
	for _, id := range m.order {
		if r := m.records[id]; r.KeyDigest == keyDigest && r.InQueue() && !followed[id] {
			last, found = r, true
		}
	}
	return last, found
}

// expedite brings forward the read of a write that another one is now queued behind.
func (m *Memory) expedite(last Record, now time.Time) {
	if expedited, events, changed := Expedite(last, now); changed {
		m.store(last, expedited, events)
	}
}

// free frees the write that was queued behind one that left its queue.
func (m *Memory) free(before, after Record, now time.Time) error {
	if !Left(before, after) {
		return nil
	}
	for _, id := range m.order {
		if r := m.records[id]; r.QueuedBehind == before.ID {
			freed, events, err := Free(r, before, now)
			if err != nil {
				return err
			}
			m.store(r, freed, events)
		}
	}
	return nil
}

func (m *Memory) store(before, rec Record, events []Event) {
	m.records[rec.ID] = rec
	m.events[rec.ID] = append(m.events[rec.ID], events...)
	m.commits++
	if len(events) > 0 {
		m.feed.add(Run{Tenant: rec.Tenant, ID: rec.ID, First: events[0].Seq, Last: events[len(events)-1].Seq}, events[len(events)-1].At)
	}
	m.publish(ChangesOf(before, rec, events))
	if Wakes(rec) {
		m.notifier.Notify()
	}
}

// Claim implements [Ledger].
func (m *Memory) Claim(ctx context.Context, c Claim) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var due []Record
	for _, id := range m.order {
		r := m.records[id]
		narrowed := c.ID == "" || (r.ID == c.ID && r.Tenant == c.Tenant)
		if narrowed && c.Freed(r).Claimable(now, c.Early) {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b Record) int { return a.Due.Compare(b.Due) })
	due = c.Share(due)
	for i, r := range due {
		due[i] = r.Lend(c.Owner, c.Lease(r.Destination), now)
		m.store(r, due[i], nil)
	}
	return due, nil
}

// Append implements [Ledger].
func (m *Memory) Append(ctx context.Context, id ID, fence int64, events ...Event) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.append(id, fence, events, m.now())
}

func (m *Memory) append(id ID, fence int64, events []Event, now time.Time) (Record, error) {
	rec, ok := m.records[id]
	if !ok {
		return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	var last Record
	if Joins(rec, events) {
		last, _ = m.last(rec.KeyDigest)
		events = QueueBehind(events, last.ID)
	}
	next, stamped, err := Advance(rec, fence, events, now)
	if err != nil {
		return Record{}, err
	}
	m.store(rec, next, stamped)
	if next.QueuedBehind != "" && rec.QueuedBehind == "" {
		m.expedite(last, now)
	}
	return next, m.free(rec, next, now)
}

// Get implements [Ledger].
func (m *Memory) Get(ctx context.Context, tenant string, id ID) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.records[id]
	if !ok || rec.Tenant != tenant {
		return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	rec.Now = m.now()
	return rec, nil
}

// Events implements [Ledger].
func (m *Memory) Events(ctx context.Context, tenant string, id ID) ([]Event, error) {
	if _, err := m.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events[id]), nil
}

// List implements [Ledger].
func (m *Memory) List(ctx context.Context, f Filter) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := f.Checked()
	if err == nil {
		f.KeyDigest, err = m.digests.Of(f.KeyDigest)
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Before != "" && m.records[f.Before].Tenant != f.Tenant {
		return nil, fmt.Errorf("list: before: %w: %s", ErrNotFound, f.Before)
	}
	older, now := f.Before == "", m.now()
	var found []Record
	for _, id := range slices.Backward(m.order) {
		r := m.records[id]
		asked := f.KeyDigest == "" || f.KeyDigest == r.KeyDigest && (r.State != Settled || !r.Due.IsZero())
		if older && asked && r.Tenant == f.Tenant && (len(f.States) == 0 || slices.Contains(f.States, r.State)) && len(found) < f.Limit {
			r.Now = now
			found = append(found, r)
		}
		older = older || id == f.Before
	}
	return found, nil
}

// Woken implements [Ledger].
func (m *Memory) Woken(ctx context.Context) <-chan struct{} { return m.notifier.Woken(ctx) }

// KeepWith implements [Ledger]. A memory ledger has no outbox.
func (m *Memory) KeepWith(func(Record) (Record, error)) {}

// KeepByDefault implements [Ledger].
func (m *Memory) KeepByDefault(func(Record) (Record, error)) {}
