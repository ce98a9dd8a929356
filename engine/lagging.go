package engine

import (
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// paths remembers how records were read last, so that the first look at a
// write knows whose lag it has to expect.
type paths struct {
	mu   sync.Mutex
	last map[way]lastRead
}

// way is how records are asked for: by the destination's own id, or without.
type way struct {
	destination, kind string
	byRef             bool
}

type lastRead struct {
	path   string
	strong bool
}

func (t *task) way() way {
	return way{t.profile.Destination, t.profile.Kind, t.query().Ref != ""}
}

func (p *paths) of(w way) lastRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[w]
}

func (p *paths) keep(w way, seen connectors.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[way]lastRead)
	}
	p.last[w] = lastRead{path: seen.Path, strong: seen.Strength == connectors.Strong}
}

// looking is what a task knows of its looks since the last send.
type looking struct {
	looks         int
	missed, first time.Duration // since the send: the last look that showed no effect, the first that did
	shown         bool
	measured      bool // false where earlier looks, or a look put off, spoil the measure
	placed        bool // the moment of the first look was chosen before the write was put back
}

// lookingAt continues the looks of a record.
func lookingAt(r ledger.Record) looking {
	l := looking{measured: !r.EffectSeen && !r.Unverified, placed: r.State == ledger.Checking}
	if r.State == ledger.Checking && !r.FirstLook.IsZero() {
		l.looks, l.missed = 1, r.Updated.Sub(r.LastSend)
	}
	return l
}

// looked notes what a look showed.
func (t *task) lookedAt(j verify.Judgement, seen connectors.Observation) {
	if j.Verdict == verify.Unavailable {
		return
	}
	t.e.paths.keep(t.way(), seen)
	l := &t.looking
	l.looks++
	switch since := max(j.Since, 0); {
	case !j.Shows():
		l.missed = max(since, 1) // 0 says that there was no such look
	case !l.shown:
		l.shown, l.first = true, since
	}
}

func (t *task) lagPath() LagPath {
	return LagPath{Destination: t.profile.Destination, Kind: t.profile.Kind, Path: t.e.paths.of(t.way()).path}
}

// untilLikely is how long the first look after a send had better wait; 0 where
// nothing is known, nothing lags any more, or no effect is expected: what was
// refused is only looked at to be sure.
func (t *task) untilLikely(c policies.Case) time.Duration {
	lag, r := t.e.opts.Lag, t.rec
	fresh := r.FirstLook.IsZero() && t.looking.looks == 0 && !t.looking.placed && r.Sends > 0 && r.Directed == ""
	expected := r.Answered || r.Unknown
	settle, settles := t.profile.Settle.Declared()
	if lag == nil || !fresh || !expected || r.Unverified || settles && c.SinceSend >= settle || t.e.paths.of(t.way()).strong {
		return 0
	}
	pause, known := lag.Next(t.lagPath(), c.SinceSend, 0)
	if !known || pause <= 0 {
		return 0
	}
	return policies.WithinReason(c, pause)
}

// likelyNext is how long to wait before the next look at an effect that a read
// which may lag did not show; false where the standard pace is to be kept.
func (t *task) likelyNext(c policies.Case) (time.Duration, bool) {
	lag := t.e.opts.Lag
	if lag == nil || c.Firm || c.Conflict {
		return 0, false
	}
	switch c.Verdict {
	case verify.Absent, verify.Stale, verify.Indeterminate, verify.Mismatched:
	default:
		return 0, false
	}
	pause, known := lag.Next(t.lagPath(), c.SinceSend, t.looking.looks)
	if !known {
		return 0, false
	}
	return policies.WithinReason(c, max(pause, lagFloor)), true
}

// tellLag tells, of a write that was verified, how long its effect took to be
// seen, where that says something about the destination's lag: one send, which
// was answered, and looks from the first moment on.
func (t *task) tellLag() {
	l, r := t.looking, t.rec
	if t.e.opts.Lag == nil || !l.measured || !l.shown || r.Sends != 1 || r.Unknown || r.LastFate != ledger.FateAnswered {
		return
	}
	t.e.opts.Lag.Seen(t.lagPath(), l.missed, l.first)
}

// readers are what kinds of records are read through, where their destination
// answers many questions in one call.
type readers struct {
	mu    sync.Mutex
	known map[[2]string]connectors.Connector
}

// reader is what the write is looked for with.
func (t *task) reader() connectors.Connector { return t.e.reader(t.conn, t.profile) }

func (e *Engine) reader(conn connectors.Connector, p connectors.Profile) connectors.Connector {
	r := &e.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	of := [2]string{p.Destination, p.Kind}
	if r.known == nil {
		r.known = make(map[[2]string]connectors.Connector)
	}
	if r.known[of] == nil {
		r.known[of] = verify.NewCoalescer(conn, p, nil)
	}
	return r.known[of]
}
