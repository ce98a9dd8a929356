package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// check reads the destination back, decides what follows, and does it.
func (t *task) check() (parked bool, err error) {
	if t.mayHaveBeenSent() {
		if err := t.note(t.assumed()); err != nil {
			return false, err
		}
	}
	if t.needsRead() && !t.profile.WriteOnly {
		if off, err := t.putOff(); off || err != nil {
			return off, err
		}
		if pause := t.untilLikely(t.policyCase()); pause > 0 {
			parked, err := t.pause(pause, policies.Decision{Rule: "lag", Reason: "its effect is not likely to be seen sooner"})
			if parked || err != nil {
				return parked, err
			}
		}
		if parked, err := t.readBack(); parked || err != nil {
			return parked, err
		}
	}
	c := t.policyCase()
	return t.act(c, t.decide(c))
}

// needsRead reports whether the destination must be read. It need not be if no send was ever
// accepted.
func (t *task) needsRead() bool {
	r := t.rec
	nothing := slices.Contains([]connectors.Fate{connectors.FateNotSent, connectors.FateThrottled, connectors.FateLogin}, connectors.Fate(r.LastFate))
	return !nothing || r.Unknown || r.Answered || r.Directed != ""
}

// act carries out a decision.
func (t *task) act(c policies.Case, d policies.Decision) (parked bool, err error) {
	switch d.Kind {
	case policies.Accept:
		return false, t.settle(ledger.Verified, d)
	case policies.Fail:
		return false, t.settle(ledger.NotApplied, d)
	case policies.Report:
		return false, t.settle(ledger.Reported, d)
	case policies.Wait:
		pause := d.After
		if pause <= 0 {
			pause = t.nextRead(c)
		}
		return t.pause(pause, d)
	case policies.Retry:
		return t.announce(d)
	case policies.Compensate:
		return false, t.compensate(d)
	}
	return false, t.escalate(d)
}

// nextRead returns the pause before the next read. Reads that must agree are made in a row: a
// worker that puts the write back counts from one again.
func (t *task) nextRead(c policies.Case) time.Duration {
	if pause, known := t.likelyNext(c); known {
		return pause
	}
	if t.pace == nil {
		t.pace = policies.ResumePace(c.SinceSend)
	}
	pause := policies.ReadPause(c, t.pace)
	if c.Verdict == verify.Verified {
		pause = min(pause, t.e.opts.Patience)
	}
	return pause
}

func (t *task) settle(how ledger.Status, d policies.Decision) error {
	if how == ledger.Verified {
		t.recordLag()
	}
	return t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: how, Verdict: t.judged.Verdict.String(),
		Rule: d.Rule, Reason: d.Reason, In: t.recheckIn(how), Until: t.recheckUntil(how)})
}

func (t *task) escalate(d policies.Decision) error {
	if t.rec.Sends > 0 && !t.profile.WriteOnly {
		return t.escalateFor(d, reviewFirst)
	}
	return t.escalateFor(d, 0)
}

// escalateFor hands the write to a reviewer and schedules another read after a while. 0
// schedules none.
func (t *task) escalateFor(d policies.Decision, again time.Duration) error {
	t.log().Warn("a reviewer must decide", "reason", t.scope().Text(d.Reason))
	return t.commit(ledger.Event{Kind: ledger.EvEscalated, Verdict: t.judged.Verdict.String(), Rule: d.Rule, Reason: d.Reason, In: again})
}

// announce makes the next send durable before sending it.
func (t *task) announce(d policies.Decision) (parked bool, err error) {
	if t.lifetime.ending.Err() != nil {
		return true, t.commit(handBack)
	}
	if d.Permit.Repair {
		if unfit := verify.Fits(t.conn, t.profile, t.repair()); unfit != nil {
			d.Reason = "it cannot be repaired by an update: " + unfit.Error()
			return false, t.escalate(d)
		}
	}
	events, err := t.firstAfterRestore()
	if err != nil {
		return false, err
	}
	if len(events) > 0 && events[0].Kind == ledger.EvHeld {
		err := t.commit(events...)
		t.countHeld()
		return false, err
	}
	ev := t.announcement(d.Permit)
	if d.Permit.Conditional && !ev.Conditional {
		// The table allowed a conditional send only. It must not be made without its condition.
		d.Reason = "a conditional repeat was allowed, and there is no pre-state to make it conditional on"
		return false, t.escalate(d)
	}
	if hold := t.enter(); hold != nil {
		return true, t.holdBack(hold)
	}
	events = append(events, t.ready(ev))
	if t.rec.Sends == t.rec.Unsent && t.before != nil {
		// No send was taken up, and others may have changed the record while the write waited: what was
		// read before is no pre-state any more.
		events = t.firstEvents(t.now().Sub(t.rec.QueuedAt))
		last := &events[len(events)-1]
		if last.Kind != ledger.EvAnnounced {
			err := t.commit(events...)
			t.countHeld()
			return t.rec.State == ledger.Checking, err
		}
		*last = t.announcement(d.Permit)
	}
	if err := t.commit(events...); err != nil {
		return false, err
	}
	t.mine = t.rec.State == ledger.Sending
	return false, nil
}

// pause waits. A short pause holds the lease; a longer one waits in the ledger.
func (t *task) pause(d time.Duration, why policies.Decision) (parked bool, err error) {
	if d > t.e.opts.Patience || t.lifetime.ending.Err() != nil {
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, In: max(d, 0), Rule: why.Rule, Reason: why.Reason})
	}
	if time.Since(t.leased) > t.rec.LeaseFor/3 {
		if err := t.commit(); err != nil {
			return false, err
		}
	}
	if !sleep(t.lifetime.ending, t.e.ctx, d) {
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: why.Rule, Reason: why.Reason})
	}
	return false, nil
}

// query returns the query for every record of this write.
func (t *task) query() connectors.Query {
	q := connectors.Query{Intent: t.intent, Stamp: t.stamp, Once: t.rec.Sends == 1 && t.rec.Restored.IsZero(), Prepared: t.prepared}
	// A read that begins at the first send trusts that two clocks agree. So it is no read on which
	// absence, and a second send, may rest: those begin when the horizon has passed.
	horizon, bounded := t.profile.Horizon.Declared()
	if t.rec.State == ledger.Settled || !bounded || t.sinceSend()+time.Second < horizon {
		q.FirstSent = t.rec.FirstSend
	}
	switch {
	case t.rec.Answered:
		q.Ref = t.ref()
	case t.intent.Write != intent.Create && t.before != nil && len(t.before.Records) == 1:
		// The target record may have lost its key since: a failed look-up by key does not prove
		// it gone.
		q.Ref = t.before.Records[0].Ref
	}
	return q
}

func (t *task) judgeCase() verify.Case {
	k := verify.Case{Intent: t.intent, Profile: t.profile, Stamp: t.stamp, Before: t.before, Since: t.sinceSend(), Assumed: !t.rec.Restored.IsZero()}
	if t.rec.Answered {
		var err error
		if k.Receipt, err = t.receipt(t.rec.Ref, t.rec.Version); err != nil { // it was opened when the task began, or sealed by it
			t.log().Error("the receipt cannot be opened, and the record is judged without its names", "error", err)
		}
	}
	return k
}

// readBack reads once and records the result. It reports whether the write was put back
// instead, because the maximum of concurrent calls of its destination is reached. The reason
// for a settlement or review does not change.
func (t *task) readBack() (parked bool, err error) {
	hold, err := t.readUnlessHeld()
	if hold == nil || err != nil {
		return false, err
	}
	ev := ledger.Event{Kind: ledger.EvDeferred, In: max(hold.For, holdFloor)}
	if t.rec.State == ledger.Checking {
		ev.Rule, ev.Reason = hold.Rule, hold.Reason
	}
	return true, t.commit(ev)
}

// readUnlessHeld reads once and records the result. It asks nothing of a destination that
// cannot be read.
func (t *task) readUnlessHeld() (*Hold, error) {
	if t.profile.WriteOnly {
		t.judged, t.seen = verify.Judgement{Reason: connectors.ErrWriteOnly.Error()}, connectors.Observation{}
		return nil, nil
	}
	if guards := t.e.opts.Guards; guards != nil {
		if hold := guards.ReadHeld(t.rec); hold != nil {
			t.judged = verify.Judgement{Verdict: verify.Unavailable, Since: t.sinceSend(), Login: true, Reason: hold.Reason}
			t.seen, t.agreeing = connectors.Observation{}, 0
			return nil, nil
		}
	}
	leave, hold := t.e.enterRead(t.lifetime, t.rec)
	if hold != nil {
		return hold, nil
	}
	began, end := time.Now(), Sent{}
	defer func() { leave(end) }()
	ctx, span := t.reading()
	ctx = connectors.CountCalls(ctx)
	j, seen := verify.ReadOnce(ctx, t.reader(), t.query(), t.judgeCase())
	end = fateOfRead(j, began)
	t.wasRead(span, j, seen, false)
	read := Activity{Kind: ActivityRead, Record: t.rec, Verdict: j.Verdict, Took: time.Since(began), Calls: connectors.Calls(ctx)}
	if j.Login {
		t.e.reg.LoginRefused(t.rec.Destination)
		read.Login = t.scope().Text(j.Reason)
	}
	t.e.observe(read)
	if j.Verdict == t.judged.Verdict {
		t.agreeing++
	} else {
		t.agreeing = 1
	}
	t.judged, t.seen = j, seen
	t.recordRead(j, seen)
	ev := ledger.Event{Kind: ledger.EvRead, Verdict: j.Verdict.String(), Reason: j.Reason,
		Effect:   t.rec.Sends > 0 && j.Shows() && !t.anothers(j, seen),
		Unproven: j.Verdict == verify.Unavailable && !j.Login || j.Verdict == verify.Indeterminate}
	ev.Calls = severalCalls(ctx)
	if ev.Effect && !t.rec.EffectSeen {
		t.e.observe(Activity{Kind: ActivityShown, Record: t.rec, Verdict: j.Verdict, Took: max(j.Since, 0)})
	}
	if j.Verdict != verify.Unavailable {
		ev.Evidence = t.evidence(seen)
		ev.Mismatches = t.differences(j.Mismatches)
	}
	if j.Record != nil {
		ev.Ref, ev.URL, ev.Version = j.Record.Ref, j.Record.URL, j.Record.Version
	}
	return nil, t.note(ev)
}

// severalCalls returns how many calls a read took, 0 for one.
func severalCalls(ctx context.Context) int {
	if n := connectors.Calls(ctx); n > 1 {
		return n
	}
	return 0
}

// fateOfRead returns the fate of a read that was begun then, for the guards.
func fateOfRead(j verify.Judgement, began time.Time) Sent {
	s := Sent{Fate: connectors.FateAnswered, RetryAfter: j.ReadAfter, Took: time.Since(began)}
	switch {
	case j.Throttled:
		s.Fate = connectors.FateThrottled
	case j.Login:
		s.Fate = connectors.FateLogin
	case j.Verdict == verify.Unavailable:
		s.Fate = connectors.FateUnknown
	}
	return s
}

// anothers reports whether a read that may lag shows the state of another write: every update
// of ours leaves our stamp there, and no record has it. The state may be older than the
// pre-state, and proves no effect.
func (t *task) anothers(j verify.Judgement, seen connectors.Observation) bool {
	if j.Conclusive || !t.profile.StampsUpdates || t.intent.Write == intent.Delete || j.Verdict == verify.Duplicated {
		return false
	}
	return !slices.ContainsFunc(seen.Records, func(r connectors.Record) bool { return r.Stamp == t.stamp })
}

// policyCase returns everything that a decision may depend on.
func (t *task) policyCase() policies.Case {
	c := caseOf(t.rec, t.intent, t.profile, t.now(), t.e.clock)
	_, c.Invertible = t.conn.(connectors.Inverter)
	if c.Named != "" {
		c.Named = t.ref()
	}
	if t.judged.Conflict && t.intent.Write == intent.Create {
		maker, _ := t.madeBy(t.seen)
		c.MadeBy = string(maker.ID)
	}
	c.Judgement, c.Agreeing, c.Budget = t.judged, t.agreeing, budget(t.e.opts.Budget, t.profile)
	return c
}

// paths remembers how records were last read, so that the first read of a write knows which lag
// to expect.
type paths struct {
	mu   sync.Mutex
	last map[way]lastRead
}

// way is how records are queried: by the destination's own id, or without it.
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

// readRequest is what a task knows of its reads since the last send.
type readRequest struct {
	reads         int
	missed, first time.Duration // since the send: the last read without an effect, the first with one
	shown         bool
	measured      bool // false where earlier or postponed reads spoil the measurement
	placed        bool // the time of the first read was chosen before the write was put back
}

// readingOf continues the reads of a record.
func readingOf(r ledger.Record) readRequest {
	l := readRequest{measured: !r.EffectSeen && !r.Unverified, placed: r.State == ledger.Checking}
	if r.State == ledger.Checking && !r.FirstRead.IsZero() {
		l.reads, l.missed = 1, r.Updated.Sub(r.LastSend)
	}
	return l
}

// recordRead records what a read showed.
func (t *task) recordRead(j verify.Judgement, seen connectors.Observation) {
	if j.Verdict == verify.Unavailable {
		return
	}
	t.e.paths.keep(t.way(), seen)
	l := &t.startRead
	l.reads++
	switch since := max(j.Since, 0); {
	case !j.Shows():
		l.missed = max(since, 1) // 0 means that there was no such read
	case !l.shown:
		l.shown, l.first = true, since
	}
}

func (t *task) lagPath() lag.Key {
	return lag.Key{Destination: t.profile.Destination, Kind: t.profile.Kind, Path: t.e.paths.of(t.way()).path}
}

// untilLikely returns how long to wait before the first read after a send. It returns 0 where
// nothing is known, nothing lags any more, or no effect is expected: a refused send is only
// read back for certainty.
func (t *task) untilLikely(c policies.Case) time.Duration {
	r := t.rec
	fresh := r.FirstRead.IsZero() && t.startRead.reads == 0 && !t.startRead.placed && r.Sends > 0 && r.Directed == ""
	expected := r.Answered || r.Unknown
	settle, settles := t.profile.Settle.Declared()
	if !fresh || !expected || r.Unverified || settles && c.SinceSend >= settle || t.e.paths.of(t.way()).strong {
		return 0
	}
	pause, known := t.e.opts.Lag.Next(t.lagPath(), c.SinceSend, 0)
	if !known || pause <= 0 {
		return 0
	}
	return policies.WithinReason(c, pause)
}

// likelyNext returns how long to wait before the next read, after a read that may lag showed no
// effect. It returns false where the standard pace applies.
func (t *task) likelyNext(c policies.Case) (time.Duration, bool) {
	if c.Conclusive || c.Conflict {
		return 0, false
	}
	switch c.Verdict {
	case verify.Absent, verify.Stale, verify.Indeterminate, verify.Mismatched:
	default:
		return 0, false
	}
	pause, known := t.e.opts.Lag.Next(t.lagPath(), c.SinceSend, t.startRead.reads)
	if !known {
		return 0, false
	}
	return policies.WithinReason(c, max(pause, lagFloor)), true
}

// recordLag reports how long the effect of a verified write took to become visible, if that
// measures the destination's lag: one send, which was answered, with reads from the first
// moment on.
func (t *task) recordLag() {
	l, r := t.startRead, t.rec
	if !l.measured || !l.shown || r.Sends != 1 || r.Unknown || r.LastFate != ledger.FateAnswered {
		return
	}
	t.e.opts.Lag.Seen(t.lagPath(), l.missed, l.first)
}

// readers holds the connectors that batch reads, by kind of record, where the destination
// answers many queries in one call.
type readers struct {
	mu    sync.Mutex
	known map[[2]string]connectors.Connector
}

// reader returns the connector that reads the write back.
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

// unverified reports whether the read of an answered send was postponed on purpose.
func unverified(rec ledger.Record) bool { return rec.Status() == ledger.Unverified }

// putOff leaves an answered write unverified until a batch reads it, if the verification rules
// say so. Its caller need not wait. The write stays in the queue; a write queued behind it
// expedites its read.
func (t *task) putOff() (off bool, err error) {
	within, later := t.readLater()
	if !later {
		return false, nil
	}
	err = t.commit(ledger.Event{Kind: ledger.EvDeferred, Unverified: true, In: batchIn(t.now(), within),
		Rule: "verify", Reason: "the destination accepted it; it is read back in a batch"})
	if err != nil {
		return false, err
	}
	return t.expedited()
}

// readLater reports whether the needed read may be postponed, and for how long: only the first
// read of the only send, which was answered.
func (t *task) readLater() (time.Duration, bool) {
	r := t.rec
	plain := r.State == ledger.Checking && r.Sends == 1 && r.LastFate == ledger.FateAnswered && !r.Unknown && r.Directed == ""
	if !plain || !r.FirstRead.IsZero() || r.Unverified || r.Parent != "" {
		return 0, false
	}
	return t.batched()
}

// batched reports whether the verification rules have the write read in a batch, and within how
// long.
func (t *task) batched() (time.Duration, bool) {
	if len(t.e.opts.Verify) == 0 {
		return 0, false
	}
	w := t.intent
	w.Risk = t.risk()
	return policies.ReadLater(t.e.opts.Verify, w, t.profile)
}

// batchIn returns when a batch reads: at the last of a few clock times within the limit. These
// are the same for all writes, so that one call reads many, but several, so that not all are
// read at once.
func batchIn(now time.Time, within time.Duration) time.Duration {
	step := within / batchSteps
	if step <= 0 {
		return within
	}
	return now.Add(within).Truncate(step).Sub(now)
}

// expedited takes up a just-postponed write again if another one is queued behind it that arrived
// before the ledger knew of the postponement.
func (t *task) expedited() (off bool, err error) {
	if t.rec.KeyDigest == "" {
		return true, nil
	}
	queued, err := t.e.ledger.List(t.lifetime.hard, ledger.Filter{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, States: []ledger.State{ledger.Queued}})
	for _, other := range queued {
		if other.QueuedBehind == "" {
			continue
		}
		claimed, asked, err := t.e.lent(t.lifetime.hard, ledger.Claim{Owner: t.e.opts.Owner, LeaseFor: t.e.leaseFor(t.rec), Tenant: t.rec.Tenant, ID: t.rec.ID, Early: true})
		switch {
		case err != nil: // it is postponed, and that is its outcome for now
			t.log().Warn("the read that another write waits for could not be expedited", "error", err)
			return true, nil
		case len(claimed) == 0: // another caller expedited it
			return true, nil
		}
		t.adopt(claimed[0], asked)
		return false, nil
	}
	if err != nil { // it is due soon enough; the waiting write loses nothing
		t.log().Warn("whether another write waits was not found out", "error", err)
	}
	return true, nil
}
