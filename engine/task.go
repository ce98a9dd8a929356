package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// task is one write while this process works on it. What happens is applied to
// rec at once and kept in pending until the next commit; whatever was not
// committed is lost with the process, and the ledger's state then leads to a
// read.
type task struct {
	e       *Engine
	life    life
	rec     ledger.Record
	intent  intent.WriteIntent
	conn    connectors.Connector
	profile connectors.Profile
	before  *connectors.Observation
	// seals is what seals and opens for the write; prepared what is sent. Both
	// intent and before are in the clear.
	seals    *redact.Scope
	prepared []byte

	// base is the record as last committed; rec is base after pending.
	base    ledger.Record
	pending []pendingEvent
	// clock is the ledger's time at the moment read, on this machine's
	// monotonic clock; leased is when the lease was last extended, at the
	// earliest.
	clock, read, leased time.Time

	// mine says that this task made the present announcement: the send is its
	// to make. Never true after a crash.
	mine     bool
	seen     connectors.Observation
	judged   verify.Judgement
	agreeing int
	pace     backoff.BackOff
	looking  looking

	// leave gives back what a guard allowed at the time entered; hold is why it
	// did not.
	leave   func(Sent)
	entered time.Time
	hold    *Hold
}

// life says how long work may go on.
type life struct {
	ending  context.Context   // after it nothing is begun, and no pause sat out
	hard    context.Context   // after it calls of destinations are cut off
	from    trace.SpanContext // the caller's
	stretch *stretch          // what hard carries the span of; nil: nobody is told
}

// life is that of work for callers: it ends with the engine, which waits for
// the calls under way.
func (e *Engine) life() life { return life{ending: e.ctx, hard: context.WithoutCancel(e.ctx)} }

// log is a logger whose lines say which write they are about.
func (t *task) log() *slog.Logger { return t.e.log(t.rec) }

func (e *Engine) log(r ledger.Record) *slog.Logger {
	return e.opts.Logger.With("write", r.ID, "correlation", r.CorrelationID, "tenant", r.Tenant, "destination", r.Destination)
}

type pendingEvent struct {
	event ledger.Event
	at    time.Time
}

// newTask prepares to work on a record that this process holds since it asked
// for it at the time claimed.
func (e *Engine) newTask(rec ledger.Record, claimed time.Time, l life) (*task, error) {
	stored, err := e.open(rec)
	if err != nil {
		return nil, err
	}
	t := &task{e: e, life: l, intent: stored.intent, before: stored.before, seals: stored.seals, prepared: stored.prepared}
	if t.conn, t.profile, err = e.reg.LookupFor(rec.Tenant, t.intent.Destination, t.intent.Kind); err != nil {
		return nil, err
	}
	t.adopt(rec, claimed)
	t.looking = lookingAt(rec)
	return t, nil
}

// storedWrite is what a record keeps of its write, in the clear.
type storedWrite struct {
	intent   intent.WriteIntent
	before   *connectors.Observation // nil when no pre-state was read
	prepared []byte
	seals    *redact.Scope
}

// adopt takes over the record as the ledger returned it to a call made at the
// time asked: the lease may have begun as early as that.
func (t *task) adopt(rec ledger.Record, asked time.Time) {
	t.rec, t.base, t.pending = rec, rec, nil
	t.clock, t.read, t.leased = rec.Now, time.Now(), asked
	t.life.stretch.adopted(rec)
}

// now is the time on the ledger's clock.
func (t *task) now() time.Time { return t.clock.Add(time.Since(t.read)) }

// sinceSend is how long ago the last send ended at least, never negative, by what
// this process counted: a clock that stepped makes us wait longer.
func (t *task) sinceSend() time.Duration { return t.e.clock.sinceSend(t.rec, t.now()) }

// sinceByClock is the same by the ledger's clock, by which rechecks are due: they
// conclude nothing from time that has passed.
func (t *task) sinceByClock() time.Duration { return max(t.now().Sub(t.rec.LastSend), 0) }

// note applies an event now and keeps it for the next commit. Reads that say
// the same in a row are one event.
func (t *task) note(ev ledger.Event) error {
	ev.By = orElse(ev.By, t.e.opts.Owner)
	ev = t.sealed(ev)
	if n := len(t.pending); n > 0 && sameRead(t.pending[n-1].event, ev) {
		ev.Count = max(t.pending[n-1].event.Count, 1) + 1
		t.pending = t.pending[:n-1]
	}
	pending := append(slices.Clip(t.pending), pendingEvent{ev, time.Now()})
	rec := t.base
	for _, p := range pending {
		var err error
		if rec, err = ledger.Apply(rec, p.event, t.clock.Add(p.at.Sub(t.read))); err != nil {
			return err
		}
	}
	t.rec, t.pending = rec, pending
	return nil
}

func sameRead(a, b ledger.Event) bool {
	return a.Kind == ledger.EvRead && b.Kind == ledger.EvRead && !a.Before && !b.Before && a.Verdict == b.Verdict
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// commit makes the given events durable together with all pending ones. With
// none it renews the lease.
func (t *task) commit(events ...ledger.Event) error {
	for _, ev := range events {
		if err := t.note(ev); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.e.ctx), ledgerTimeout)
	defer cancel()
	asked, made := time.Now(), t.drain()
	rec, err := t.e.ledger.Append(ctx, t.rec.ID, t.rec.Fence, made...)
	if err != nil {
		return t.lost(ctx, err)
	}
	was := t.base
	t.e.clock.hear(rec.Now, asked)
	t.adopt(rec, asked)
	t.e.approvals(t.life, rec, made)
	t.tellEnded(was)
	return nil
}

// tellEnded counts a write that a commit settled, gave to a person, or left
// unverified.
func (t *task) tellEnded(was ledger.Record) {
	now := t.rec
	over := now.State == ledger.Settled || now.State == ledger.Review
	if over && was.State != now.State || unverified(now) && !unverified(was) {
		t.e.meter.Ended(now)
	}
}

// drain is the pending events with the time that passed since each.
func (t *task) drain() []ledger.Event {
	events := make([]ledger.Event, len(t.pending))
	for i, p := range t.pending {
		p.event.Ago = time.Since(p.at)
		events[i] = p.event
	}
	return events
}

// lost handles a commit that failed. When another worker took the write over,
// what this one learned is kept as evidence.
func (t *task) lost(ctx context.Context, err error) error {
	failure := &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	if !errors.Is(err, ledger.ErrFenced) {
		return failure
	}
	t.log().Warn("the lease was lost: another worker has taken the write over", "lease", t.rec.LeaseFor, "held", time.Since(t.leased))
	t.e.meter.Failed(t.rec, err)
	late, encodeErr := json.Marshal(t.drain())
	if encodeErr != nil {
		return failure
	}
	_, lateErr := t.e.ledger.Append(ctx, t.rec.ID, t.rec.Fence, ledger.Event{
		Kind: ledger.EvLate, By: t.e.opts.Owner, Evidence: late,
		Reason: "this worker had lost its lease; what it learned is kept as evidence"})
	if lateErr != nil {
		t.log().Warn("late evidence not recorded", "error", lateErr)
	}
	return failure
}

// query asks for every record of this write.
func (t *task) query() connectors.Query {
	q := connectors.Query{Intent: t.intent, Stamp: t.intent.Stamp()}
	switch {
	case t.rec.Answered:
		q.Ref = t.ref()
	case t.intent.Write != intent.Create && t.before != nil && len(t.before.Records) == 1:
		// The record that the write was aimed at may have lost its key since: it
		// is not gone because a look-up does not find it.
		q.Ref = t.before.Records[0].Ref
	}
	return q
}

func (t *task) judgeCase() verify.Case {
	k := verify.Case{Intent: t.intent, Profile: t.profile, Stamp: t.intent.Stamp(), Before: t.before, Since: t.sinceSend()}
	if t.rec.Answered {
		var err error
		if k.Receipt, err = t.receipt(t.rec.Ref, t.rec.Version); err != nil { // it was opened when the task began, or sealed by it
			t.log().Error("the receipt cannot be opened, and the record is judged without its names", "error", err)
		}
	}
	return k
}

// look reads once and notes what was found. Where nothing can be read nothing is
// asked, whoever calls.
func (t *task) look() error {
	if t.profile.Blind {
		t.judged, t.seen = verify.Judgement{Reason: connectors.ErrBlind.Error()}, connectors.Observation{}
		return nil
	}
	if o, ok := t.e.opts.Guards.(ReadObserver); ok {
		if hold := o.ReadHeld(t.rec); hold != nil {
			t.judged = verify.Judgement{Verdict: verify.Unavailable, Since: t.sinceSend(), Login: true, Reason: hold.Reason}
			t.seen, t.agreeing = connectors.Observation{}, 0
			return nil
		}
	}
	began := time.Now()
	ctx, span := t.reading()
	j, seen := verify.Look(ctx, t.reader(), t.query(), t.judgeCase())
	t.wasRead(span, j, seen, false)
	t.e.meter.Looked(t.rec, j.Verdict, time.Since(began))
	t.login(j)
	if j.Verdict == t.judged.Verdict {
		t.agreeing++
	} else {
		t.agreeing = 1
	}
	t.judged, t.seen = j, seen
	t.lookedAt(j, seen)
	ev := ledger.Event{Kind: ledger.EvRead, Verdict: j.Verdict.String(), Reason: j.Reason,
		Effect:   t.rec.Sends > 0 && j.Shows() && !t.anothers(j, seen),
		Unproven: j.Verdict == verify.Unavailable && !j.Login || j.Verdict == verify.Indeterminate}
	if ev.Effect {
		t.e.shown(t.rec, j)
	}
	if j.Verdict != verify.Unavailable {
		ev.Evidence = t.evidence(seen)
		ev.Mismatches = t.differences(j.Mismatches)
	}
	if j.Record != nil {
		ev.Ref, ev.URL, ev.Version = j.Record.Ref, j.Record.URL, j.Record.Version
	}
	return t.note(ev)
}

// anothers reports whether a read that may lag shows what another write left:
// every update of ours leaves our stamp there, and nothing bears it. It may be
// older than the pre-state, and says nothing of an effect.
func (t *task) anothers(j verify.Judgement, seen connectors.Observation) bool {
	if j.Firm || !t.profile.StampsUpdates || t.intent.Write == intent.Delete || j.Verdict == verify.Duplicated {
		return false
	}
	return !slices.ContainsFunc(seen.Records, func(r connectors.Record) bool { return r.Stamp == t.intent.Stamp() })
}

// policyCase is all that a decision may depend on.
func (t *task) policyCase() policies.Case {
	c := caseOf(t.rec, t.intent, t.profile, t.now(), &t.e.clock)
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

// budget is how many sends of one write may reach a destination.
func budget(all int, p connectors.Profile) int {
	if p.Sends > 0 {
		return p.Sends
	}
	return all
}

// caseOf is what a record says for a decision at a time, without what was read.
func caseOf(r ledger.Record, w intent.WriteIntent, p connectors.Profile, now time.Time, counted *clock) policies.Case {
	c := policies.CaseOf(r, w, p, now, counted.sinceSend(r, now), counted.atLeast(r.KeySend, now))
	c.SinceByClock = counted.byClock(r.LastSend, now)
	return c
}

// late reports whether the intent's deadline has passed.
func (t *task) late() bool { return policies.Late(t.intent, t.now()) }

// leaseFor is how long a lease on this record must last at least: longer than
// a send, a read and a pause together.
func (e *Engine) leaseFor(rec ledger.Record) time.Duration {
	return e.lease(e.profileOf(rec))
}

// lease is how long a lease on writes to such a destination lasts.
func (e *Engine) lease(p connectors.Profile) time.Duration {
	return p.SendFor() + p.ReadFor() + e.opts.Patience + e.opts.Slack
}

// tooLarge reports whether evidence is only the digest of what was seen.
func tooLarge(text json.RawMessage) bool {
	var cut struct {
		TooLarge int `json:"too_large"`
	}
	return json.Unmarshal(text, &cut) == nil && cut.TooLarge > 0
}

// encoded is a value as JSON, or nothing for nothing.
func encoded(v any) json.RawMessage {
	if list, ok := v.([]verify.Mismatch); ok && len(list) == 0 {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil { // decoded JSON always encodes; a value that does not is no evidence
		text, _ = json.Marshal(map[string]string{"not_encodable": err.Error()})
	}
	return text
}

// decodeExact reads back what encoded wrote; [intent.Fields] keep numbers
// exact by themselves.
func decodeExact(text []byte, into any) error { return json.Unmarshal(text, into) }
