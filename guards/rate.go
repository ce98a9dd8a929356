package guards

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// enterFor is how long Enter may wait for a permit. A shorter wait costs less than putting
	// the write back and taking it out again; a longer one keeps the worker from other writes.
	enterFor = time.Second
	// pauseFirst and pauseMost bound the pause after a destination throttled a send without a time;
	// each such answer after the last pause doubles it. pauseLongest bounds the pause that a
	// destination may ask for: an absurd value must not stop it forever.
	pauseFirst   = time.Second
	pauseMost    = 5 * time.Minute
	pauseLongest = time.Hour
	// damagedFor is how long an unreadable pause lasts.
	damagedFor = time.Minute
)

// rateNote is a destination's rate as shared by all workers.
type rateNote struct {
	Destination string        `json:"destination"`
	Calls       int           `json:"calls,omitempty"` // the last writer's rate, for display
	Per         time.Duration `json:"per,omitempty"`
	Next        time.Time     `json:"next,omitzero"`  // the time of the next permit at the earliest
	Pause       time.Time     `json:"pause,omitzero"` // nothing is sent before
	Since       time.Time     `json:"since,omitzero"` // when the pause was set
	Why         string        `json:"why,omitempty"`
	By          string        `json:"by,omitempty"`
	Hits        int           `json:"hits,omitempty"` // pauses in a row without a given time
}

// rates holds one destination's rate and pauses.
type rates struct {
	*shared
	name string // of the note
	what string // is throttled: "a send"
	set  atomic.Pointer[paced]
	lock timedMutex // serialises requests to the ledger for permits

	mu      sync.Mutex
	permits []time.Time // taken and not used: when each may be
	waiting int
	batch   int // how many to take at once
	until   time.Time
	news    *setback // not published yet
	calm    bool     // the end of a row of pauses is not published yet
	held    spread
}

// paced is a rate and its pace.
type paced struct {
	rate connectors.Rate
	pace pace
}

// keeps returns the current rate.
func (r *rates) keeps() paced { return *r.set.Load() }

// change replaces the rate from the next permit on. Permits of the old rate are not used.
func (r *rates) change(rate connectors.Rate) {
	next := &paced{rate: rate, pace: paceOf(rate)}
	if before := r.set.Swap(next); before == nil || before.rate == rate {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.permits, r.batch = nil, 0
}

// setback is an answer that asks for a pause.
type setback struct {
	asks    time.Duration // 0: it did not say how long
	at      time.Time
	entered time.Time // when the send passed
	why     string
}

// read is the effective note. An unreadable one pauses for a while from when it was written, and
// is then written anew.
func (r *rates) read(n ledger.Note) rateNote {
	note, ok := decoded[rateNote](n)
	if !ok {
		note = rateNote{Pause: n.At.Add(damagedFor), Since: n.At, Why: "the note of its rate cannot be read"}
	}
	if note.Pause.Sub(r.cache.clock.late()) > leaseLongest {
		note.Pause = time.Time{} // from a clock that was wrong
	}
	note.Destination, note.Calls, note.Per = r.destination, r.keeps().rate.Calls, r.keeps().rate.Per
	return note
}

// paused is how long sends pause at the destination's request.
func (r *rates) paused() (time.Duration, string) {
	note := r.read(r.cache.note(r.name))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cache.clock.early()
	why := note.Why
	if r.until.After(note.Pause) && r.news != nil {
		why = r.news.why
	}
	return max(latest(note.Pause, r.until).Sub(now), 0), why
}

// shut reports whether a send asked for now would be held.
func (r *rates) shut() bool {
	if wait, _ := r.paused(); wait > enterFor {
		return true
	}
	if !r.keeps().pace.bounded() {
		return false
	}
	note := r.read(r.cache.note(r.name))
	_, _, wait := r.keeps().pace.deal(note.Next, r.cache.clock.late(), 0, 0)
	return wait > enterFor
}

// permit waits for the right to send, but not beyond the deadline. Pass the returned time to live
// or back; it is zero if nothing is bounded.
func (r *rates) permit(ctx context.Context, deadline time.Time) (time.Time, *engine.Hold) {
	if wait, why := r.paused(); wait > 0 {
		if wait > time.Until(deadline) || !pause.For(ctx, wait) {
			return time.Time{}, r.hold(wait, "the destination asked for a pause: "+why)
		}
	}
	if !r.keeps().pace.bounded() {
		return time.Time{}, nil
	}
	r.wait(1)
	defer r.wait(-1)
	if !r.lock.take(ctx, deadline) {
		return time.Time{}, r.hold(r.keeps().pace.every, "many sends wait for the destination's rate")
	}
	at, hold := r.next(ctx, deadline)
	r.lock.give()
	if hold != nil {
		return time.Time{}, hold
	}
	if wait := at.Sub(r.cache.clock.early()); wait > 0 && !pause.For(ctx, wait) {
		r.back(at)
		return time.Time{}, r.hold(wait, "the send was given up while it waited for the destination's rate")
	}
	return at, nil
}

// next is a permit that was taken before, or the first of a new batch.
func (r *rates) next(ctx context.Context, deadline time.Time) (time.Time, *engine.Hold) {
	soon := min(time.Until(deadline), enterFor)
	if at, ok := r.pop(); ok {
		if wait := at.Sub(r.cache.clock.early()); wait > soon {
			r.back(at)
			return time.Time{}, r.hold(wait, r.limit())
		}
		return at, nil
	}
	want := r.want()
	var got []time.Time
	var wait time.Duration
	var reason string
	err := r.cache.change(ctx, r.name, func(n ledger.Note) []byte {
		note := r.read(n)
		if got, wait = nil, note.Pause.Sub(r.cache.clock.early()); wait > 0 {
			reason = "the destination asked for a pause: " + note.Why
			return nil
		}
		reason = r.limit()
		if got, note.Next, wait = r.keeps().pace.deal(note.Next, r.cache.clock.late(), want, soon); len(got) == 0 {
			return nil
		}
		return encoded(note)
	})
	switch {
	case err != nil: // a batch that was taken is lost
		return time.Time{}, r.hold(readFor, visible.Cut("the ledger gave no permit: "+err.Error(), maxReason))
	case len(got) == 0:
		return time.Time{}, r.hold(wait, reason)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.permits = append(r.permits, got[1:]...)
	return got[0], nil
}

func (r *rates) limit() string {
	return fmt.Sprintf("the destination takes %d calls in %s", r.keeps().rate.Calls, r.keeps().rate.Per)
}

// wait counts the callers that wait for a permit.
func (r *rates) wait(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting += n
}

// want is how many permits to take: one for each waiting caller, and if the last ones were used
// in time as many more as may be kept.
func (r *rates) want() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := max(r.batch, r.waiting, 1)
	r.batch = min(2*max(r.batch, 1), r.keeps().pace.batch)
	return n
}

// pop takes the next permit that is available and can still be used.
func (r *rates) pop() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.permits) > 0 {
		at := r.permits[0]
		r.permits = r.permits[1:]
		if r.live(at) {
			return at, true
		}
		r.batch = 1
	}
	return time.Time{}, false
}

// live reports whether a permit can still be used.
func (r *rates) live(at time.Time) bool {
	return !r.keeps().pace.bounded() || !r.cache.clock.late().After(at.Add(r.keeps().pace.life))
}

// back returns a permit that was not used.
func (r *rates) back(at time.Time) {
	if at.IsZero() || !r.keeps().pace.bounded() { // it was no permit, or none is needed any more
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.permits = append([]time.Time{at}, r.permits...)
}

// hold staggers held writes, so that each gets a permit when it asks again.
func (r *rates) hold(wait time.Duration, reason string) *engine.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := max(r.keeps().pace.every, time.Millisecond)
	return &engine.Hold{Rule: ruleRate, Reason: reason, For: r.held.next(time.Now(), max(wait, 0), step)}
}

// logged records the result of a send that passed at entered.
func (r *rates) logged(s engine.Sent, entered time.Time) {
	asks := min(max(s.RetryAfter, 0), pauseLongest)
	note := r.read(r.cache.note(r.name))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case asks == 0 && s.Fate != connectors.FateThrottled:
		responded := s.Fate == connectors.FateAnswered || s.Fate == connectors.FateRefused
		if !responded || note.Hits == 0 || !entered.After(note.Since) {
			return
		}
		r.calm = true
	default:
		news := &setback{asks: asks, at: r.cache.clock.late(), entered: entered, why: visible.Cut("it answered "+r.what+": "+worded(s), maxReason)}
		changed, after := news.applied(note)
		if !changed {
			return
		}
		if r.news == nil || after.Pause.After(r.until) {
			r.news = news
		}
		r.until = latest(r.until, after.Pause)
	}
	r.kick()
}

// applied is the note with the pause that the answer asks for. An answer to a send that passed
// before the current pause was set is ignored unless it asks for more.
func (s *setback) applied(n rateNote) (changed bool, after rateNote) {
	until := s.at.Add(s.asks)
	if s.asks == 0 {
		if !s.entered.After(n.Since) {
			return false, n
		}
		until = s.at.Add(grown(pauseFirst, n.Hits, pauseMost))
		n.Hits++
	}
	if !until.After(n.Pause) {
		return false, n
	}
	n.Pause, n.Since, n.Why = until, s.at, s.why
	return true, n
}

// grown doubles d that many times, up to most.
func grown(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

// tend publishes local changes, and reports whether work is left.
func (r *rates) tend(ctx context.Context) (bool, error) {
	r.mu.Lock()
	news, calm := r.news, r.calm
	r.mu.Unlock()
	if news == nil && !calm {
		return false, nil
	}
	err := r.cache.change(ctx, r.name, func(n ledger.Note) []byte {
		note, changed := r.read(n), false
		if calm && note.Hits > 0 {
			note.Hits, changed = 0, true
		}
		if news != nil {
			var paused bool
			if paused, note = news.applied(note); paused {
				changed, note.By = true, r.owner
			}
		}
		if !changed {
			return nil
		}
		return encoded(note)
	})
	if err != nil && !errors.Is(err, ledger.ErrStale) {
		return true, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return true, nil
	}
	if news != nil {
		r.log.Warn("a pause: the destination throttled "+r.what, "destination", r.destination, "answer", news.why)
	}
	if r.news == news {
		r.news = nil
	}
	r.calm = r.calm && !calm
	return r.news != nil || r.calm, nil
}
