package guards

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// slotsNote says who may have how many sends of a destination under way.
type slotsNote struct {
	Destination string   `json:"destination"`
	Limit       int      `json:"limit"` // of who wrote last, for people
	Holders     []Holder `json:"holders,omitempty"`
}

// Holder is a worker that has slots.
type Holder struct {
	Owner string    `json:"owner"`
	Slots int       `json:"slots"`
	Until time.Time `json:"until"` // the end of its lease on the ledger's clock
}

// slots bounds the sends of one destination that are under way at once.
type slots struct {
	*shared
	name  string       // of the note
	most  atomic.Int64 // over all workers; 0: unbounded
	cover time.Duration
	turn  turn // asking the ledger for slots

	mu      sync.Mutex
	held    int       // ours to use
	posted  int       // what the note may say that we have
	until   time.Time // the end of our lease
	inUse   int
	peak    int // the most in use since checked
	checked time.Time
	waiting int
	freed   chan struct{} // closed when something changes
	took    time.Duration // what a send takes, about
	queue   spread
}

// read is the note with the leases that still run. One that cannot be read
// counts as all slots taken, for as long as a lease can last from when it was
// written.
func (s *slots) read(n ledger.Note) slotsNote {
	note, ok := decoded[slotsNote](n)
	if !ok {
		note = slotsNote{Holders: []Holder{{Owner: "unknown: the note cannot be read", Slots: s.limit(), Until: n.At.Add(s.lease())}}}
	}
	now := s.board.clock.early()
	running := note.Holders[:0:0]
	for _, h := range note.Holders {
		if left := h.Until.Sub(now); left > 0 && left <= leaseLongest && h.Slots > 0 {
			running = append(running, h)
		}
	}
	return slotsNote{Destination: s.destination, Limit: s.limit(), Holders: running}
}

// limit is how many sends may be under way, over all workers; 0: any number.
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

// take waits for a slot, but not beyond the deadline. It reports whether one was
// taken, which is to be released; none is where nothing is bounded.
func (s *slots) take(ctx context.Context, deadline time.Time) (taken bool, hold *engine.Hold) {
	if s.limit() <= 0 {
		return false, nil
	}
	if s.grab() {
		return true, nil
	}
	s.wait(1)
	defer s.wait(-1)
	for {
		freed := s.news()
		if s.limit() <= 0 {
			return false, nil
		}
		if s.grab() {
			return true, nil
		}
		if s.turn.take(ctx, deadline) {
			err := s.more(ctx)
			s.turn.give()
			if s.grab() {
				return true, nil
			}
			if err != nil && !errors.Is(err, ledger.ErrStale) {
				return false, s.hold(clip("the ledger gave no slot: "+err.Error(), maxReason))
			}
		}
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return false, s.hold(fmt.Sprintf("%d sends to it are under way, which is as many as may be", s.limit()))
		}
		timer := time.NewTimer(min(left, busyLook))
		select {
		case <-freed:
		case <-timer.C:
			_ = s.board.fresh(ctx, busyLook/2) // else the copy is good enough
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// grab takes a slot that is ours, if its lease lasts for a whole send.
func (s *slots) grab() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse >= min(s.held, s.limit()) || s.until.Sub(s.board.clock.late()) < s.cover {
		return false
	}
	s.inUse++
	s.peak = max(s.peak, s.inUse)
	return true
}

// release gives a slot that was taken back after a send, of which 0 says that it
// was not made.
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
	s.tell()
}

// tell wakes whoever waits. The lock is held.
func (s *slots) tell() {
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

func (s *slots) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
}

// more leases slots for all who wait, or renews the lease. Whoever calls it has
// the turn.
func (s *slots) more(ctx context.Context) error {
	s.mu.Lock()
	want := min(max(s.inUse+s.waiting, s.held), s.limit())
	s.mu.Unlock()
	return s.write(ctx, want)
}

// write puts into the note that we have so many slots, or as many as there are.
func (s *slots) write(ctx context.Context, want int) error {
	got, until, tried := 0, time.Time{}, false
	err := s.board.change(ctx, s.name, func(n ledger.Note) []byte {
		note, free := s.others(n)
		got, until = min(want, free), s.board.clock.late().Add(s.lease())
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
		s.tell()
	}
	return err
}

// worth reports whether so many slots are worth a write: more than we have, a
// longer lease, or fewer than the note says.
func (s *slots) worth(got int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return got > s.held || s.posted > got || got > 0 && s.expiring()
}

// expiring reports whether the lease is to be renewed. The lock is held.
func (s *slots) expiring() bool {
	return s.until.Sub(s.board.clock.late()) < s.cover+leaseMore/3
}

// hold spreads those who are held over the time in which slots come free.
func (s *slots) hold(reason string) *engine.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := max(s.took/time.Duration(max(s.limit(), 1)), time.Millisecond)
	return &engine.Hold{Rule: ruleBusy, Reason: reason, For: s.queue.next(time.Now(), busyFirst, step)}
}

// shut reports whether more sends would be held: none is free, and enough wait
// for those that will be.
func (s *slots) shut() bool {
	if s.limit() <= 0 {
		return false
	}
	_, free := s.others(s.board.note(s.name))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse >= max(s.held, free) && s.waiting >= s.held
}

// tend gives back what is not used, or on closing all that is not in use, and
// renews the lease of what is. It reports whether something is left to do.
func (s *slots) tend(ctx context.Context, closing bool) (bool, error) {
	s.mu.Lock()
	idle := s.posted == 0
	s.mu.Unlock()
	if idle {
		return false, nil
	}
	if !s.turn.take(ctx, time.Now()) {
		return true, nil
	}
	defer s.turn.give()
	s.mu.Lock()
	if closing || time.Since(s.checked) >= idleSlots {
		s.held = min(s.held, max(s.limit(), s.inUse)) // fewer may be now than when they were taken
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
