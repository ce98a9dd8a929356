package guards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// sendSlack is the allowance between a guard's permission and the begin of its send, beyond
	// the time that a send takes: the commit of the announcement, and a stall. A slot is only
	// used while its lease lasts that long.
	sendSlack = 15 * time.Second
	// leaseLongest exceeds every lease and pause; a note with a longer one was written under a
	// wrong clock.
	leaseLongest = 2 * time.Hour
	// failShare times as many failures as successes open the breaker: a destination that answers
	// a third of its sends does more work than one that is asked once in five minutes.
	failShare = 3
	// rowFactor times as many failures in a row open the breaker whatever succeeded before in the
	// window: otherwise a busy destination that breaks down would be sent to for half a window.
	rowFactor = 4
	// breakerBuckets are the parts of the rolling window.
	breakerBuckets = 10
	// openMost bounds the time to the next probe, which doubles with each failed probe.
	openMost = 5 * time.Minute
	// probeRead is when to ask again while another worker probes, and how long an unused
	// permission to probe is kept for the next write.
	probeRead = time.Second
)

// breakerNote is a destination's breaker as shared by all workers. The zero value is open, and
// due for a probe.
type breakerNote struct {
	Destination string    `json:"destination"`
	Closed      bool      `json:"closed,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when it was opened or closed
	Until       time.Time `json:"until,omitzero"` // when a probe may be sent
	// Login is since when the destination has refused our credentials. Zero: the breaker opened
	// for another reason.
	Login time.Time `json:"login,omitzero"`
	// Read reports that a read's credentials were refused, so that a read can show that they are
	// valid again.
	Read   bool   `json:"read,omitempty"`
	Why    string `json:"why,omitempty"`
	By     string `json:"by,omitempty"`
	Failed int    `json:"failed,omitempty"` // probes that failed in a row
	Probe  *probe `json:"probe,omitempty"`
}

// probe is the one send that may be made while the breaker is half open.
type probe struct {
	Token string    `json:"token"`
	Owner string    `json:"owner"`
	Until time.Time `json:"until"` // then another one may probe
}

// result is what a send shows about the destination.
type result int

const (
	says   result = iota // nothing
	fails                // it is unreachable, or the effect is unknown
	works                // it answered, with any response
	denies               // it refused our credentials, and will refuse those of any write
)

// resultOf judges a send. A refusal is an answer: the request is wrong, not the destination. The
// rate handles throttling. A send that was not made shows nothing.
func resultOf(s engine.Sent) result {
	switch s.Fate {
	case connectors.FateAnswered, connectors.FateRefused:
		return works
	case connectors.FateLogin:
		return denies
	case connectors.FateThrottled:
		return says
	case connectors.FateNotSent:
		if unmade(s) {
			return says
		}
	}
	return fails
}

// unmade reports whether the send was not even tried: no time was spent on it and there is no
// response.
func unmade(s engine.Sent) bool {
	return s.Fate == connectors.FateNotSent && s.Took <= 0 && s.Code == "" && s.RetryAfter <= 0
}

// worded describes the result of a send.
func worded(s engine.Sent) string {
	fate := string(s.Fate)
	if s.Fate == connectors.FateUnknown {
		fate = "unknown whether applied"
	}
	if s.Fate == connectors.FateLogin {
		fate = "the login was refused"
	}
	if s.Code != "" {
		fate += " (" + s.Code + ")"
	}
	return fate
}

// breaker is one worker's part of a destination's breaker.
type breaker struct {
	*shared
	name  string // of the note
	set   atomic.Pointer[Breaker]
	cover time.Duration

	mu      sync.Mutex
	local   *gobreaker.TwoStepCircuitBreaker[any] // fed with our sends while the shared breaker is closed
	epoch   time.Time                             // when the shared breaker closed, as local was made
	tripped bool                                  // local has tripped and is no longer used
	changed bool                                  // local was made for other settings
	trip    *breakerNote                          // it tripped here; not published yet
	probed  *finding                              // the result of our probe; not published yet
	seen    *sighting                             // the result of our read; not published yet
	spare   *finding                              // an unused permission to probe
	spared  time.Time                             // since when
	reading time.Time                             // until then a read of ours tests whether the login of reads is still refused
}

// sighting is evidence from a read that can close an open breaker.
type sighting struct {
	sent  time.Time // the effect of a send made then; zero: of none
	login bool      // the credentials of reads are accepted
}

// closes reports whether the cause that opened the breaker is over: a send that was made since
// took effect, or the reads that were refused are answered.
func (s *sighting) closes(n breakerNote) bool {
	if !n.Login.IsZero() {
		return n.Read && s.login
	}
	return !n.Closed && s.sent.After(n.Since)
}

// finding is the result of a probe.
type finding struct {
	token string
	result
	why    string
	unread bool
}

// fresh is the library's state machine for one closed period: it counts in a rolling window and
// decides when to open. The open period is shared and follows from the note.
func (b *breaker) fresh() *gobreaker.TwoStepCircuitBreaker[any] {
	most := uint32(b.keeps().Failures)
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name: b.destination, Interval: b.keeps().Window, BucketPeriod: b.keeps().Window / breakerBuckets, Timeout: b.keeps().Open,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			mostly := c.TotalFailures >= most && c.TotalFailures > failShare*c.TotalSuccesses
			return mostly || c.ConsecutiveFailures >= rowFactor*most
		},
	})
}

// keeps returns the current settings.
func (b *breaker) keeps() Breaker { return *b.set.Load() }

// change replaces the settings from the next send on, and drops the counts under the old ones. An
// open breaker stays open until a probe closes it.
func (b *breaker) change(set Breaker) {
	if before := b.set.Swap(&set); before == nil || *before == set {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = true
}

func (b *breaker) off() bool { return b.keeps().Failures < 0 }

// open reports whether the note holds sends. A breaker that is switched off still opens for a
// refused login: further sends could only lock the account.
func (b *breaker) open(n breakerNote) bool { return !n.Closed && (!b.off() || !n.Login.IsZero()) }

// read is the effective note. An unreadable one is open.
func (b *breaker) read(n ledger.Note) breakerNote {
	if len(n.Value) == 0 {
		return breakerNote{Destination: b.destination, Closed: true}
	}
	note, ok := decoded[breakerNote](n)
	if !ok {
		note = breakerNote{Since: n.At, Until: n.At.Add(b.keeps().Open), Why: "the note of its breaker cannot be read"}
	}
	note.Destination = b.destination
	if note.Until.Sub(b.cache.clock.late()) > leaseLongest {
		note.Until = time.Time{} // from a clock that was wrong
	}
	return note
}

// waits is how long an open breaker holds all sends, 0 when a probe may be sent.
func (n breakerNote) waits(now time.Time) time.Duration {
	if wait := n.Until.Sub(now); wait > 0 {
		return wait
	}
	if n.Probe == nil {
		return 0
	}
	left := n.Probe.Until.Sub(now)
	if left <= 0 || left > leaseLongest {
		return 0
	}
	return min(probeRead, left)
}

// shut returns why every send would be held now, nil if one may pass.
func (b *breaker) shut() *engine.Hold {
	note := b.read(b.cache.note(b.name))
	if !b.open(note) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.trip != nil {
			return b.hold(b.keeps().Open, *b.trip)
		}
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := note.waits(b.cache.clock.early()); wait > 0 && !note.grants(b.spare) {
		return b.hold(wait, note)
	}
	return nil
}

// grants reports whether the note waits for the result of this probe.
func (n breakerNote) grants(f *finding) bool {
	return f != nil && !n.Closed && n.Probe != nil && n.Probe.Token == f.token
}

func (b *breaker) hold(wait time.Duration, note breakerNote) *engine.Hold {
	if !note.Login.IsZero() {
		return &engine.Hold{Rule: ruleLogin, For: wait, Reason: visible.Cut(fmt.Sprintf("%q has refused our login since %s: %s",
			b.destination, note.Login.UTC().Format(time.RFC3339), note.Why), maxReason)}
	}
	return &engine.Hold{Rule: ruleBreaker, For: wait, Reason: visible.Cut("its circuit breaker is open: "+note.Why, maxReason)}
}

// enter lets a send through: any while it is closed, one while it is half open. leave must be
// called with the result.
func (b *breaker) enter(ctx context.Context) (leave func(engine.Sent), hold *engine.Hold) {
	if hold := b.shut(); hold != nil {
		return nil, hold
	}
	note := b.read(b.cache.note(b.name))
	if b.open(note) {
		if f := b.unused(note); f != nil {
			return b.probing(f), nil
		}
		return b.probe(ctx)
	}
	if b.off() {
		return func(s engine.Sent) { b.count(s, nil) }, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.local == nil || b.changed || !b.epoch.Equal(note.Since) { // it was open meanwhile
		b.local, b.epoch, b.tripped, b.changed = b.fresh(), note.Since, false, false
	}
	done, err := b.local.Allow()
	if err != nil {
		return nil, b.hold(b.keeps().Open, breakerNote{Why: err.Error()})
	}
	return func(s engine.Sent) { b.count(s, done) }, nil
}

// count feeds the state machine; done is nil if the breaker is switched off. A refused login
// opens it at once.
func (b *breaker) count(s engine.Sent, done func(bool)) {
	r := resultOf(s)
	if r == says || r != denies && done == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cache.clock.late()
	trip := &breakerNote{Destination: b.destination, Since: now, Until: now.Add(b.keeps().Open), By: b.owner,
		Why: visible.Cut("sends failed, the last one: "+worded(s), maxReason)}
	if r == denies {
		trip.Login, trip.Why = now, visible.Cut(worded(s), maxReason)
		b.trip = trip
		b.kick()
		return
	}
	done(r == works)
	if b.tripped || b.local.State() == gobreaker.StateClosed {
		return
	}
	b.tripped, b.trip = true, trip
	b.kick()
}

// confirm counts a success: a read showed the effect of a send made at a time, which was counted
// as a failure, since it was not answered.
func (b *breaker) confirm(sent time.Time) {
	b.saw(sighting{sent: sent})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.local == nil || b.off() {
		return
	}
	if done, err := b.local.Allow(); err == nil {
		done(true)
	}
}

// readRefused opens the breaker: the credentials of a read were refused.
func (b *breaker) readRefused(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cache.clock.late()
	b.seen, b.reading = nil, time.Time{} // the later read counts
	b.trip = &breakerNote{Destination: b.destination, Since: now, Until: now.Add(b.keeps().Open), By: b.owner,
		Login: now, Read: true, Why: visible.Cut(why, maxReason)}
	b.kick()
}

// readHeld returns why no read is to be made now, while those of this destination are refused;
// nil if this one may test whether they still are.
func (b *breaker) readHeld() *engine.Hold {
	note := b.read(b.cache.note(b.name))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trip != nil && b.trip.Read {
		return b.hold(b.keeps().Open, *b.trip)
	}
	if !note.Read || note.Closed {
		return nil
	}
	now := b.cache.clock.early()
	if wait := note.Until.Sub(now); wait > 0 {
		return b.hold(wait, note)
	}
	if left := b.reading.Sub(now); left > 0 {
		return b.hold(min(probeRead, left), note)
	}
	b.reading = b.cache.clock.late().Add(b.cover)
	return nil
}

func (b *breaker) readAnswered() { b.saw(sighting{login: true}) }

// saw keeps the result of a read, if it closes the breaker.
func (b *breaker) saw(s sighting) {
	note := b.read(b.cache.note(b.name))
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.login {
		b.reading = time.Time{}
	}
	if s.login && b.trip != nil && b.trip.Read {
		b.trip = nil
	}
	if s.closes(note) {
		b.seen = &s
		b.kick()
	}
}

// probe takes the one permission to probe, across all workers.
func (b *breaker) probe(ctx context.Context) (leave func(engine.Sent), hold *engine.Hold) {
	token := rand.Text()
	b.mu.Lock()
	spare := b.spare // too old to be used
	b.mu.Unlock()
	var mine bool
	var note breakerNote
	err := b.cache.change(ctx, b.name, func(n ledger.Note) []byte {
		note = b.read(n)
		now := b.cache.clock
		if mine = !note.Closed && (note.waits(now.early()) == 0 || note.grants(spare)); !mine {
			return nil
		}
		note.Probe = &probe{Token: token, Owner: b.owner, Until: now.late().Add(b.cover)}
		return encoded(note)
	})
	switch {
	case err != nil:
		return nil, b.hold(probeRead, breakerNote{Why: "who may probe could not be recorded: " + err.Error()})
	case !mine && note.Closed:
		return nil, b.hold(0, breakerNote{Why: "it has just been closed"})
	case !mine:
		return nil, b.hold(max(note.waits(b.cache.clock.early()), time.Millisecond), note)
	}
	return b.probing(&finding{token: token}), nil
}

// unused takes the unused permission to probe, if one lasts for a send.
func (b *breaker) unused(note breakerNote) *finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !note.grants(b.spare) || note.Probe.Until.Sub(b.cache.clock.late()) < b.cover-sendSlack {
		return nil
	}
	f := b.spare
	b.spare = nil
	return f
}

// probing is the leave of a probe. The permission of an unmade probe is kept for a moment: a
// write that read for long before its send asks again at once.
func (b *breaker) probing(f *finding) func(engine.Sent) {
	return func(s engine.Sent) {
		b.mu.Lock()
		defer b.mu.Unlock()
		f.result, f.why, f.unread = resultOf(s), worded(s), s.Unread
		if unmade(s) {
			b.spare, b.spared = f, time.Now()
		} else {
			b.probed = f
		}
		b.kick()
	}
}

// closed is the note when the breaker closes.
func (n breakerNote) closed(why string, now time.Time, by string) breakerNote {
	return breakerNote{Destination: n.Destination, Closed: true, Since: now, Why: why, By: by}
}

// paused is the note after one more failed attempt.
func (n breakerNote) paused(now time.Time, set Breaker) breakerNote {
	n.Failed++
	n.Until = now.Add(max(set.Open, grown(set.Open, n.Failed, openMost)))
	return n
}

// after is the note with the result of the probe; false if it is not the probe that the note
// waits for.
func (n breakerNote) after(f *finding, now time.Time, set Breaker, by string) (breakerNote, bool) {
	if !n.grants(f) {
		return n, false
	}
	n.Probe = nil
	switch {
	case f.result == works && n.Read && !f.unread: // the read of that write shows whether reads are accepted
		n = n.paused(now, set)
	case f.result == works:
		n = n.closed("a probe succeeded: "+f.why, now, by)
	case f.result == fails, f.result == denies:
		if f.result == denies {
			n.Read = false // only a send shows that the credentials of sends work
			if n.Login.IsZero() {
				n.Login = now
			}
		}
		n = n.paused(now, set)
		n.Why = "the last probe failed: " + f.why
	}
	return n, true
}

// tend publishes local changes, and reports whether work is left.
func (b *breaker) tend(ctx context.Context, closing bool) (bool, error) {
	b.mu.Lock()
	if b.spare != nil && b.probed == nil && (closing || time.Since(b.spared) >= probeRead) {
		b.probed, b.spare = b.spare, nil
	}
	trip, found, seen, left := b.trip, b.probed, b.seen, b.spare != nil
	b.mu.Unlock()
	if trip == nil && found == nil && seen == nil {
		return left, nil
	}
	var after breakerNote
	changed := false
	err := b.cache.change(ctx, b.name, func(n ledger.Note) []byte {
		note := b.read(n)
		changed = false
		if found != nil {
			note, changed = note.after(found, b.cache.clock.late(), b.keeps(), b.owner)
		}
		switch {
		case seen != nil && seen.closes(note):
			note, changed = note.closed("a read showed that it works", b.cache.clock.late(), b.owner), true
		case trip != nil && trip.Read && note.Read && !note.Closed:
			note, changed = note.paused(b.cache.clock.late(), b.keeps()), true
		case trip != nil && (note.Closed || !trip.Login.IsZero() && note.Login.IsZero()):
			note, changed = *trip, true
		}
		if after = note; !changed {
			return nil
		}
		return encoded(note)
	})
	if errors.Is(err, ledger.ErrStale) {
		return true, nil
	} else if err != nil {
		return true, err
	}
	if changed {
		b.log.Warn("circuit breaker: "+map[bool]string{true: "closed", false: "open"}[after.Closed],
			"destination", b.destination, "why", after.Why, "until", fmt.Sprint(after.Until))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trip == trip {
		b.trip = nil
	}
	if b.probed == found {
		b.probed = nil
	}
	if b.seen == seen {
		b.seen = nil
	}
	return b.trip != nil || b.probed != nil || b.seen != nil || b.spare != nil, nil
}
