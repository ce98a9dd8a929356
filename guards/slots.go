package guards

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// leaseMore is how much longer slots are leased than they must last, so that a busy worker
	// renews them at this interval and not with every send.
	leaseMore = 15 * time.Second
	// idleSlots is how long a worker keeps unused slots.
	idleSlots = time.Second
	// busyRead is how often a worker that waits for a slot checks whether another one has
	// returned one.
	busyRead = 200 * time.Millisecond
	// busyFirst is the shortest time after which a write that got no slot asks again.
	busyFirst = 250 * time.Millisecond
	// deferredMore is how late a read that was put back may ask again and still come before the
	// sends: an idle worker searches for work every quarter of a second.
	deferredMore = time.Second
)

// slotsNote records which worker may have how many sends of a destination under way.
type slotsNote struct {
	Destination string   `json:"destination"`
	Limit       int      `json:"limit"` // the last writer's limit, for display
	Holders     []Holder `json:"holders,omitempty"`
}

// Holder is a worker that has slots.
type Holder struct {
	Owner string    `json:"owner"`
	Slots int       `json:"slots"`
	Until time.Time `json:"until"` // the end of its lease on the ledger's clock
}

// slots bounds the calls of one destination that are under way at once: sends and reads. A read
// after a send comes before all sends, since a send that was not read back is uncertain.
type slots struct {
	*shared
	name  string       // of the note
	most  atomic.Int64 // 0: unbounded
	local atomic.Bool  // of this process alone: no note is kept
	cover time.Duration
	lock  timedMutex // serialises requests to the ledger for slots

	mu            sync.Mutex
	held          int       // ours to use
	posted        int       // the most that the note may record for us
	until         time.Time // the end of our lease
	inUse         int
	peak          int // the most in use since checked
	checked       time.Time
	waiting       int
	first         int           // waiting reads after sends
	deferred      int           // reads after sends that were put back, until deferredUntil
	deferredUntil time.Time     // when the last of them has asked again
	freed         chan struct{} // closed when something changes
	took          time.Duration // what a send takes, about
	queue         spread        // of sends
	reads         spread        // after sends
}

// read is the note with the leases that still run. An unreadable one counts as all slots taken,
// for as long as a lease can last from when it was written.
func (s *slots) read(n ledger.Note) slotsNote {
	note, ok := decoded[slotsNote](n)
	if !ok {
		note = slotsNote{Holders: []Holder{{Owner: "unknown: the note cannot be read", Slots: s.limit(), Until: n.At.Add(s.lease())}}}
	}
	now := s.cache.clock.early()
	running := note.Holders[:0:0]
	for _, h := range note.Holders {
		if left := h.Until.Sub(now); left > 0 && left <= leaseLongest && h.Slots > 0 {
			running = append(running, h)
		}
	}
	return slotsNote{Destination: s.destination, Limit: s.limit(), Holders: running}
}

// limit is how many calls may be under way; 0: any number.
func (s *slots) limit() int { return int(s.most.Load()) }

func (s *slots) lease() time.Duration { return s.cover + leaseMore }

// others is the note without our own entry, and how many slots that leaves.
func (s *slots) others(n ledger.Note) (note slotsNote, free int) {
	note, free = s.read(n), s.limit()
	rest := note.Holders[:0:0]
	for _, h := range note.Holders {
		if h.Owner != s.owner {
			rest = append(rest, h)
			free -= h.Slots
		}
	}
	note.Holders = rest
	return note, max(free, 0)
}

// take waits for a slot, but not beyond the deadline; first is for a read after a send. It
// reports whether one was taken, which must be released; none is taken if nothing is bounded.
func (s *slots) take(ctx context.Context, deadline time.Time, first bool) (taken bool, hold *engine.Hold) {
	if s.limit() <= 0 {
		return false, nil
	}
	if s.grab(first) {
		return true, nil
	}
	s.wait(1, first)
	defer s.wait(-1, first)
	for {
		freed := s.news()
		if s.limit() <= 0 {
			return false, nil
		}
		if s.grab(first) {
			return true, nil
		}
		if !s.local.Load() && s.lock.take(ctx, deadline) {
			err := s.more(ctx)
			s.lock.give()
			if s.grab(first) {
				return true, nil
			}
			if err != nil && !errors.Is(err, ledger.ErrStale) {
				return false, s.hold(visible.Cut("the ledger gave no slot: "+err.Error(), maxReason), first)
			}
		}
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return false, s.hold(fmt.Sprintf("%d calls of it are under way, which is as many as may be", s.limit()), first)
		}
		timer := time.NewTimer(min(left, busyRead))
		select {
		case <-freed:
		case <-timer.C:
			if !s.local.Load() {
				_ = s.cache.fresh(ctx, busyRead/2) // otherwise the copy is good enough
			}
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// grab takes a slot of ours, if its lease lasts for a whole call and no read after a send comes
// first.
func (s *slots) grab(first bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.limit()
	if !s.local.Load() {
		if s.until.Sub(s.cache.clock.late()) < s.cover {
			return false
		}
		ours = min(s.held, ours)
	}
	if time.Now().After(s.deferredUntil) {
		s.deferred = 0
	}
	if !first {
		ours -= s.first + s.deferred
	}
	if s.inUse >= ours {
		return false
	}
	if first {
		s.deferred = max(s.deferred-1, 0)
	}
	s.inUse++
	s.peak = max(s.peak, s.inUse)
	return true
}

// release returns a slot after a call; took is 0 if the call was not made.
func (s *slots) release(taken bool, took time.Duration) {
	if !taken {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse--
	if took > 0 {
		s.took += (took - s.took) / 4
	}
	s.log()
}

// log wakes the waiting callers. The lock is held.
func (s *slots) log() {
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// news is closed at the next change.
func (s *slots) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

func (s *slots) wait(n int, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
	if first {
		if s.first += n; n < 0 {
			s.log() // sends may continue
		}
	}
}

// more leases slots for all waiting callers, or renews the lease. Its caller holds lock.
func (s *slots) more(ctx context.Context) error {
	s.mu.Lock()
	want := min(max(s.inUse+s.waiting, s.held), s.limit())
	s.mu.Unlock()
	return s.write(ctx, want)
}

// write records that we have that many slots, or as many as there are.
func (s *slots) write(ctx context.Context, want int) error {
	got, until, tried := 0, time.Time{}, false
	err := s.cache.change(ctx, s.name, func(n ledger.Note) []byte {
		note, free := s.others(n)
		got, until = min(want, free), s.cache.clock.late().Add(s.lease())
		if !s.worth(got) {
			got = -1
			return nil
		}
		tried = true
		if got > 0 {
			note.Holders = append(note.Holders, Holder{Owner: s.owner, Slots: got, Until: until})
		}
		return encoded(note)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && tried: // it may have been written
		s.posted = max(s.posted, got)
	case err == nil && got >= 0:
		s.held, s.posted, s.until = got, got, until
		s.log()
	}
	return err
}

// worth reports whether that many slots justify a write: more than we have, a longer lease, or
// fewer than in the note.
func (s *slots) worth(got int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return got > s.held || s.posted > got || got > 0 && s.expiring()
}

// expiring reports whether the lease is to be renewed. The lock is held.
func (s *slots) expiring() bool {
	return s.until.Sub(s.cache.clock.late()) < s.cover+leaseMore/3
}

// hold staggers held calls over the time in which slots are freed. Sends leave a slot to a read
// after a send until it has asked again.
func (s *slots) hold(reason string, first bool) *engine.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, queue := time.Now(), &s.queue
	if first {
		queue = &s.reads
	}
	step := max(s.took/time.Duration(max(s.limit(), 1)), time.Millisecond)
	again := queue.next(now, busyFirst, step)
	if first {
		s.deferred, s.deferredUntil = min(s.deferred+1, s.limit()), now.Add(again+enterFor+deferredMore)
	}
	return &engine.Hold{Rule: ruleBusy, Reason: reason, For: again}
}

// shut reports whether more sends would be held: none is free, and enough wait for those that
// will be.
func (s *slots) shut() bool {
	if s.limit() <= 0 {
		return false
	}
	ours, free := s.limit(), 0
	if !s.local.Load() {
		_, free = s.others(s.cache.note(s.name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.local.Load() {
		ours = s.held
	}
	return s.inUse >= max(ours, free) && s.waiting >= ours
}

// tend returns unused slots, or on closing all that are not in use, and renews the lease of the
// others. It reports whether work is left.
func (s *slots) tend(ctx context.Context, closing bool) (bool, error) {
	s.mu.Lock()
	idle := s.posted == 0
	s.mu.Unlock()
	if idle {
		return false, nil
	}
	if !s.lock.take(ctx, time.Now()) {
		return true, nil
	}
	defer s.lock.give()
	s.mu.Lock()
	if closing || time.Since(s.checked) >= idleSlots {
		s.held = min(s.held, max(s.limit(), s.inUse)) // the limit may have been lowered since they were taken
		if keep := max(s.peak, s.inUse); closing {
			s.held = s.inUse
		} else if s.waiting == 0 {
			s.held = min(s.held, keep)
		}
		s.peak, s.checked = s.inUse, time.Now()
	}
	want, due := s.held, s.posted > s.held || s.held > 0 && s.expiring()
	s.mu.Unlock()
	var err error
	if due {
		if err = s.write(ctx, want); errors.Is(err, ledger.ErrStale) {
			err = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posted > 0, err
}
