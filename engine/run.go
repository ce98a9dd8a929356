package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// begin reserves a write and works on it as far as it goes without a long
// wait. It reports whether the write is new.
func (e *Engine) begin(w intent.WriteIntent, rec ledger.Record, f *flight, l life) (fresh bool, err error) {
	conn, profile, err := e.reg.LookupFor(rec.Tenant, w.Destination, w.Kind)
	if err != nil {
		return false, err
	}
	// As the ledger keeps it: a repeat after a crash must be the same to the
	// letter, or a destination that compares it will refuse it.
	seals := e.sealerAt(rec, profile)
	if w, err = seals.OpenIntent(rec.Intent); err != nil {
		return false, err
	}
	l, s := e.stretch(l, &rec, stageNew)
	defer s.end()
	fresh, err = e.beginIn(&task{e: e, life: l, intent: w, conn: conn, profile: profile, seals: seals}, rec, f)
	return fresh, s.done(err)
}

// beginIn is begin in a stretch of work.
func (e *Engine) beginIn(t *task, rec ledger.Record, f *flight) (fresh bool, err error) {
	defer t.unsent()
	rec.Now = time.Now()
	t.adopt(rec, rec.Now)
	events, precheck, err := t.opening()
	if err != nil {
		return false, err
	}
	for i := range events {
		events[i] = t.sealed(events[i])
		events[i].By = e.opts.Owner
	}
	asked := time.Now()
	reserved, fresh, err := e.reserve(e.ctx, t.life, ledger.Reservation{
		Record: rec, Events: events, Precheck: precheck, Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Window: e.opts.Window})
	if err != nil {
		return false, e.refusedReservation(rec, err)
	}
	f.fresh, f.first = fresh, reserved
	f.keep()
	if !fresh {
		return false, nil
	}
	t.adopt(reserved, asked)
	if t.rec.Owner == "" { // it waits: in line, for a person or until it is due
		if t.rec.Behind == "" {
			t.tellHeld()
		}
		t.tellEnded(ledger.Record{})
		f.last = t.rec
		return true, nil
	}
	if t.mine = reserved.State == ledger.Sending; !t.mine {
		t.before = nil // what was read, if anything, was read too early: it is read again
	}
	if err = t.run(); err == nil { // else rec may be ahead of the ledger
		f.last = t.rec
	}
	return true, err
}

// refusedReservation says what a failed reservation means for the effect.
func (e *Engine) refusedReservation(rec ledger.Record, err error) error {
	if errors.Is(err, ledger.ErrDigestMismatch) || errors.Is(err, ledger.ErrBlocked) {
		return e.refused(rec, err)
	}
	return e.unrecorded(rec, err)
}

// refused tells an operator of a write that was not recorded since another one has
// its name: the ledger keeps nothing that would say so later.
func (e *Engine) refused(rec ledger.Record, why error) error {
	e.log(rec).Info("a write was refused, and not recorded", "reason", errorType(why), "error", e.text(rec, why.Error()))
	return why
}

// unrecorded is a failure of the ledger before a write was recorded, by this
// call: nothing will be sent where the ledger says that it does not hold the
// write. Where it cannot say, an earlier call may have had it sent.
func (e *Engine) unrecorded(rec ledger.Record, err error) error {
	known := KnownNothing
	if !errors.Is(err, ledger.ErrUnsure) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), unrecordedTime)
		defer cancel()
		if _, get := e.ledger.Get(ctx, rec.Tenant, rec.ID); errors.Is(get, ledger.ErrNotFound) {
			known = KnownNotApplied
		}
	}
	return &Error{ID: rec.ID, Known: known, Err: err}
}

// opening are the first events of a new write: held, or the pre-state where
// the plan needs it, and the announcement. They go into the ledger with the
// reservation, so that the happy path needs no commit between reserve and
// send. The pre-state depends on what the ledger held when the read began.
func (t *task) opening() ([]ledger.Event, *ledger.Precheck, error) {
	if events := t.turnedDown(); events != nil {
		return events, nil, nil
	}
	// Nor may a repeat take a permit, or a breaker's only probe, from a send.
	if _, prepares := t.conn.(connectors.Preparer); !prepares && !t.needsBefore() && t.e.opts.Guards == nil {
		return t.firstEvents(0), nil, nil
	}
	precheck, err := t.e.ledger.Precheck(t.e.ctx, t.rec)
	switch {
	case err != nil:
		return nil, nil, t.e.unrecorded(t.rec, err)
	case precheck.Recorded: // a repeat: there is nothing to prepare, Reserve tells
		return nil, nil, nil
	case !t.needsBefore():
		return t.firstEvents(0), nil, nil
	case precheck.Contended: // the record may change until it is this write's turn
		return nil, &precheck, nil
	}
	return t.firstEvents(0), &precheck, nil
}

// firstEvents are what leads to the first send of a write accepted age ago: the
// pre-state where the plan needs it, and the announcement, unless a guard holds
// it back. It is asked before anything is read, so that no read is made for
// nothing, and again where the read took long.
func (t *task) firstEvents(age time.Duration) []ledger.Event {
	if wait, why := t.lateCreate(); wait > 0 {
		return []ledger.Event{{Kind: ledger.EvDeferred, Rule: "line", Reason: why, In: wait}}
	}
	if hold := t.enter(); hold != nil {
		return []ledger.Event{t.putBack(hold)}
	}
	var events []ledger.Event
	if t.needsBefore() {
		events = t.prepare(age)
	} else {
		events = []ledger.Event{t.firstAnnouncement()}
	}
	last := len(events) - 1
	if events[last].Kind != ledger.EvAnnounced {
		t.unsent()
		return events
	}
	if hold := t.enter(); hold != nil {
		events[last] = t.putBack(hold)
	}
	return events
}

// lateCreate is how long a delete or upsert has to wait for a create of the same
// record, of which an earlier send may still arrive, and why. Such a create has a
// recheck pending, by which it is found.
func (t *task) lateCreate() (wait time.Duration, why string) {
	if t.rec.KeyDigest == "" || t.intent.Write != intent.Delete && t.intent.Write != intent.Upsert {
		return 0, ""
	}
	asked := time.Now()
	found, err := t.e.ledger.List(t.life.hard, ledger.Filter{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: lateCreates})
	var unread *ledger.UnreadError // what cannot be read cannot be sent again either
	if err != nil && !errors.As(err, &unread) {
		return lateCreateRetry, "whether an earlier create of the record may still arrive could not be found out: " + err.Error()
	}
	for _, r := range found {
		w, err := intent.DecodeStored(r.Intent)
		if err != nil || r.ID == t.rec.ID {
			continue
		}
		t.e.clock.hear(r.Now, asked) // this can be the first that the process hears of it
		if still := policies.StillCreates(caseOf(r, w, t.profile, r.Now, &t.e.clock)); still > wait {
			wait, why = still, fmt.Sprintf("an earlier send of write %s, which creates this record, may still arrive", r.ID)
		}
	}
	return wait, why
}

// turnedDown is what ends or holds a write before anything of it is done.
func (t *task) turnedDown() []ledger.Event {
	switch {
	case t.late():
		return []ledger.Event{notSent("deadline", "the deadline had passed when it was asked for")}
	case t.risk() == intent.RiskApprove: // a person must approve first
		return []ledger.Event{t.held()}
	}
	return nil
}

// risk is the intent's own risk class, or the higher one that it was raised to.
func (t *task) risk() intent.Risk { return policies.Classify(t.e.risks(), t.intent).Class }

// needsBefore reports whether the pre-state must be read: to find out whether
// there is something to do, to tell a lagging read from a mismatch, to make
// the write conditional, to undo it, and, for a create, to see whether the key
// is taken where the destination would not refuse it.
func (t *task) needsBefore() bool {
	if t.profile.Blind {
		return false
	}
	if t.intent.Write != intent.Create || t.intent.Reversibility == intent.Compensable && !t.profile.FreshKeys {
		return true
	}
	enforced := t.profile.Stamped && slices.Contains(t.profile.Unique, intent.Create)
	return !t.profile.FreshKeys && !enforced
}

// firstAnnouncement announces the first send with what the connector builds for
// all of them, or ends the write when that cannot be built: nothing was sent
// yet.
func (t *task) firstAnnouncement() ledger.Event { return t.ready(t.announcement(policies.Permit{})) }

func (t *task) ready(ev ledger.Event) ledger.Event {
	if t.rec.Sends > 0 {
		return ev
	}
	r := t.request()
	r.Prepared = nil // what was built for a send that a guard held back
	prepared, err := verify.Prepare(t.life.hard, t.conn, t.profile, r)
	if err != nil {
		return notSent("prepare", "what is to be sent cannot be built: "+err.Error())
	}
	if ev.Prepared, err = t.scope().SealBytes(prepared); err != nil {
		return notSent("prepare", "what is to be sent cannot be kept: "+err.Error())
	}
	t.prepared = prepared
	return ev
}

// request is a send of this write, but for what is known at its moment alone.
func (t *task) request() connectors.Request {
	if t.rec.Repaired {
		return connectors.Request{Intent: t.repair(), Stamp: t.intent.Stamp(), IdempotencyKey: intent.SendKey(t.rec.StructuralKey, t.rec.Generation)}
	}
	return connectors.Request{Intent: t.intent, Stamp: t.intent.Stamp(), Prepared: t.prepared,
		IdempotencyKey: intent.SendKey(t.rec.StructuralKey, t.rec.Generation)}
}

// announcement says that a send is about to be made. A worker that was frozen
// after it still sends within its lease or not at all, so by the end of the
// lease the send has ended.
func (t *task) announcement(p policies.Permit) ledger.Event {
	generation := t.rec.Generation
	if p.NewKey {
		generation++
	}
	write, before := t.intent.Write, t.before
	if p.Repair {
		write, before = intent.Update, &t.seen
	}
	return ledger.Event{Kind: ledger.EvAnnounced, Rule: p.Row, Reason: p.Reason, Generation: generation,
		Alone:       t.rec.KeyDigest != "" && alone(t.intent, t.profile), // from an outbox, which knows no profiles
		Conditional: t.conditional(write, before), Repair: p.Repair, SendFor: max(t.rec.LeaseFor, t.e.leaseFor(t.rec)), OwesRecheck: p.OwesRecheck}
}

// conditional reports whether a send carries a condition. All of them do where the
// destination has it, so that none can land on a record that another one changed.
func (t *task) conditional(w intent.WriteType, before *connectors.Observation) bool {
	return before != nil && slices.Contains(t.profile.Conditional, w)
}

// repair is the update of the record with what the destination did not store, going
// by the last read. Nothing else is sent, so that it replaces no other field.
func (t *task) repair() intent.WriteIntent {
	w := t.intent
	w.Write, w.Expect, w.Absent, w.Require = intent.Update, make(intent.Fields), nil, nil
	for _, m := range t.judged.Mismatches {
		if slices.Contains(t.intent.Absent, m.Path) {
			w.Absent = append(w.Absent, m.Path)
			continue
		}
		for name := range intent.Pointer(m.Path).Tokens() {
			w.Expect[name] = t.intent.Expect[name] // whole: no connector updates a part of a field
			break
		}
	}
	return w
}

// run works on the write until it is done, handed to a person, or put back to
// wait in the ledger.
func (t *task) run() error {
	for {
		parked, err := t.step()
		if err != nil || parked {
			return err
		}
		if ended(t.rec) {
			return nil
		}
	}
}

// ended reports whether nothing more is to be done about a write now.
func ended(rec ledger.Record) bool {
	return rec.State == ledger.Settled || rec.State == ledger.Review || rec.State == ledger.Held
}

// step does the one thing that the state asks for, and reports whether the
// write was put back.
func (t *task) step() (parked bool, err error) {
	switch t.rec.State {
	case ledger.Queued:
		if t.rec.Behind != "" {
			return true, t.letGo()
		}
		return t.queued()
	case ledger.Sending:
		if t.mine {
			return false, t.send()
		}
		return false, t.note(t.recovered())
	case ledger.Checking:
		return t.check()
	case ledger.Compensating:
		return t.compensating()
	}
	return true, nil
}

// recovered says that a write was found announced. Its send may still be under way,
// unless the process that announced it is known to have ended.
func (t *task) recovered() ledger.Event {
	ev := ledger.Event{Kind: ledger.EvRecovered, Rule: "recovery", OwesRecheck: true, SendFor: t.e.leaseFor(t.rec),
		Reason: "found announced with nobody at work: it may have been sent, or may yet be by a process that stood still"}
	events, err := t.e.ledger.Events(t.life.hard, t.rec.Tenant, t.rec.ID)
	if err != nil { // then nothing is known of that process
		return ev
	}
	for _, announced := range slices.Backward(events) {
		if announced.Kind == ledger.EvAnnounced {
			if ev.SendFor = announced.SendFor; gone(announced.By) != "" {
				ev.SendFor = 0
			}
			break
		}
	}
	return ev
}

// letGo ends the lease on a write that waits behind another one.
func (t *task) letGo() error {
	if t.rec.Owner == "" {
		return nil
	}
	return t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "line",
		Reason: fmt.Sprintf("write %s of the same business key comes first", t.rec.Behind)})
}

// send makes the announced send, unless so much time has passed since the
// announcement that another worker may have taken the write over.
func (t *task) send() error {
	t.mine = false
	if why, lost := t.overtaken(); why != "" {
		t.unsent()
		t.log().Warn("an announced send was not made", "reason", why)
		ev := ledger.Event{Kind: ledger.EvSent, Fate: string(connectors.FateNotSent), Reason: why}
		if lost {
			return t.commit(ev) // which fails, and leaves it as evidence
		}
		return t.note(ev)
	}
	// Frozen from here on, it still ends with the lease.
	ctx, cancel := context.WithDeadline(t.life.hard, t.leased.Add(t.rec.LeaseFor))
	defer cancel()
	r := t.request()
	r.Attempt, r.Before = t.rec.Sends, t.before
	if t.rec.Repaired {
		r.Before = &t.seen
	}
	r.Conditional = t.conditional(r.Intent.Write, r.Before)
	began := time.Now()
	res := t.sending(ctx, r)
	s := Sent{Fate: res.Fate, Code: t.scope().Text(res.Code), RetryAfter: res.RetryAfter, Took: time.Since(began)}
	_, later := t.batched()
	s.Unread = t.profile.Blind || later
	t.left(s)
	t.e.meter.Sent(t.rec, s)
	ev := ledger.Event{Kind: ledger.EvSent, Fate: string(res.Fate), Code: res.Code, Conflict: res.Conflict, RetryAfter: res.RetryAfter,
		Ref: res.Receipt.Ref, URL: res.Receipt.URL, Version: res.Receipt.Version, Replayed: res.Receipt.Replay}
	t.said(&ev, r, res.Receipt.Said)
	if res.Err != nil {
		ev.Reason = res.Err.Error()
	}
	t.judged, t.agreeing, t.pace, t.looking = verify.Judgement{}, 0, nil, looking{measured: true}
	return t.note(ev)
}

// queued prepares a write of which nothing was sent, and announces it.
func (t *task) queued() (parked bool, err error) {
	unapproved, err := t.unapproved()
	if err != nil {
		return false, err
	}
	wrong, err := t.removesWrongly()
	if err != nil {
		return false, err
	}
	var events []ledger.Event
	switch unfit := verify.Fits(t.conn, t.profile, t.intent); {
	case t.life.ending.Err() != nil:
		events = []ledger.Event{handBack}
	case t.late():
		events = []ledger.Event{notSent("deadline", "the deadline passed before it could be sent")}
	case unfit != nil:
		events = []ledger.Event{notSent("unfit", "its destination can never serve it: "+unfit.Error())}
	case unapproved:
		events = []ledger.Event{t.held()}
	case wrong != "":
		events = []ledger.Event{notSent(ruleSurplus, wrong)}
	default:
		events = t.firstEvents(t.now().Sub(t.rec.QueuedAt))
	}
	if err := t.commit(events...); err != nil {
		return false, err
	}
	t.tellHeld()
	t.mine = t.rec.State == ledger.Sending
	return t.rec.State == ledger.Queued, nil
}

// unapproved reports whether a queued write asks for an approval that nobody
// gave: it came by a way that does not look at risks, the outbox, or under rules
// that have become stricter.
func (t *task) unapproved() (bool, error) {
	if t.risk() != intent.RiskApprove || t.rec.Sends > 0 || len(t.rec.Agreed) > 0 {
		return false, nil
	}
	events, err := t.e.ledger.Events(t.life.hard, t.rec.Tenant, t.rec.ID)
	if err != nil {
		return false, &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	}
	approves := func(ev ledger.Event) bool { return ev.Kind == ledger.EvApproved }
	return !slices.ContainsFunc(events, approves), nil
}

// prepare reads the pre-state of a write accepted age ago and says what
// follows: the announcement, a wait, or the end.
func (t *task) prepare(age time.Duration) []ledger.Event {
	began := time.Now()
	ctx, span := t.reading()
	seen, err := verify.Read(ctx, t.reader(), t.profile, t.query())
	if err != nil {
		t.wasRead(span, verify.Judgement{Verdict: verify.Unavailable}, seen, true)
		if connectors.FateOf(err) == connectors.FateLogin {
			return []ledger.Event{t.loginRefused(age, err)}
		}
		if errors.Is(err, connectors.ErrNoTarget) {
			return []ledger.Event{notSent("pre-state", "the destination cannot be read: "+err.Error())}
		}
		return t.cannotPrepare(age, verify.Judgement{Verdict: verify.Unavailable, Reason: "the destination could not be read before the write: " + err.Error()})
	}
	k := t.judgeCase()
	k.Seen, k.Since = seen, age-max(began.Sub(seen.At), 0)
	j := verify.JudgeBefore(k)
	t.wasRead(span, j, seen, true)
	read := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: j.Verdict.String(), Reason: j.Reason}
	if read.Evidence, err = t.scope().SealObservation(seen); err != nil {
		return []ledger.Event{read, notSent("pre-state", "the record before the write cannot be kept: "+err.Error())}
	}
	if j.Record != nil {
		read.Ref, read.URL, read.Version = j.Record.Ref, j.Record.URL, j.Record.Version
	}
	if len(read.Evidence) > maxEvidence {
		read.Evidence = nil
		return []ledger.Event{read, notSent("pre-state", fmt.Sprintf("the record before the write is larger than %d bytes; it cannot be kept", maxEvidence))}
	}
	if j.Verdict == verify.Indeterminate {
		if t.rec.Parent != "" && !j.Firm && !slices.Contains(t.profile.Conditional, t.intent.Write) {
			j.Reason = "the read before an undoing may be older than what others did to the record since"
			return t.cannotPrepare(k.Since, j)
		}
		switch changed, err := t.changedSince(seen); {
		case err != nil:
			return t.cannotPrepare(age, verify.Judgement{Verdict: verify.Unavailable, Reason: "what it undoes could not be looked up: " + err.Error()})
		case changed != "":
			return []ledger.Event{read, notSent("pre-state", changed)}
		}
		t.before = &seen
		return []ledger.Event{read, t.firstAnnouncement()}
	}
	read.Mismatches = t.differences(j.Mismatches)
	if earlier, found := t.madeBy(seen); found && t.intent.Write == intent.Create {
		rec := seen.Records[0]
		switch {
		case !j.Firm: // the record may be gone, though the read shows it
			return t.cannotPrepare(k.Since, j)
		case earlier.Settlement != ledger.Verified:
			return []ledger.Event{read, notSent("pre-state", fmt.Sprintf("write %s made the record under the business key, and is %s", earlier.ID, earlier.Phase()))}
		case len(verify.Diff(t.intent, t.profile.Compare, rec.Fields)) > 0:
			return []ledger.Event{read, notSent("pre-state", fmt.Sprintf("write %s made the record under the business key, and it differs from what is declared", earlier.ID))}
		}
		read.Ref, read.URL, read.Version = rec.Ref, rec.URL, rec.Version
		return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: verify.Vacuous.String(), Rule: "pre-state",
			Reason: fmt.Sprintf("write %s made the record as declared: nothing to send", earlier.ID)}}
	}
	return append([]ledger.Event{read}, t.concluded(age, j)...)
}

// madeBy is another write of this ledger whose stamp the one record found bears: what
// is in the way of a create is then no other actor's. It is verified or not settled.
// It counts for none where the ledger cannot be asked.
func (t *task) madeBy(seen connectors.Observation) (maker ledger.Record, found bool) {
	if len(seen.Records) != 1 || seen.Records[0].Stamp == "" || t.rec.KeyDigest == "" {
		return maker, false
	}
	writes, err := t.e.ledger.Find(t.life.hard, ledger.Search{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: 200})
	if err != nil {
		t.log().Warn("whether an earlier write made the record could not be found out", "error", err)
		return maker, false
	}
	for _, r := range writes.Records {
		if r.State == ledger.Settled && r.Settlement != ledger.Verified || r.Sends == r.Unsent {
			continue // it should not be there: a reviewer decides
		}
		if w, err := intent.DecodeStored(r.Intent); err == nil && r.ID != t.rec.ID && w.Stamp() == seen.Records[0].Stamp {
			return r, true
		}
	}
	return maker, false
}

// loginRefused puts back a write whose read before the send was refused for its
// credentials. That concerns the destination, so that the guards learn of it as
// they do from a send, and the write waits however long it takes.
func (t *task) loginRefused(age time.Duration, err error) ledger.Event {
	s := Sent{Fate: connectors.FateLogin}
	var e *connectors.Error
	if errors.As(err, &e) {
		s.Code = t.scope().Text(e.Code)
	}
	t.left(s)
	return ledger.Event{Kind: ledger.EvDeferred, Verdict: verify.Unavailable.String(), Rule: "login",
		Reason: "the destination refused the login: " + err.Error(), In: policies.PausePreparing(age)}
}

// concluded says how a write ends, or waits, on its pre-state alone.
func (t *task) concluded(age time.Duration, j verify.Judgement) []ledger.Event {
	switch {
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		return []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason}}
	case t.intent.Write == intent.Create:
		return []ledger.Event{{Kind: ledger.EvEscalated, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason + "; nothing was sent"}}
	case j.Firm:
		return []ledger.Event{notSent("pre-state", j.Reason)}
	}
	return t.cannotPrepare(age, j)
}

// cannotPrepare waits for a pre-state that can be relied on, and gives up when
// it took too long: nothing was sent, so that is known.
func (t *task) cannotPrepare(age time.Duration, j verify.Judgement) []ledger.Event {
	untried := j.Verdict == verify.Unavailable && t.rec.Rule != "pre-state" // something else put it back last
	if policies.PreparingTooLong(t.profile, j, age) && !untried {
		return []ledger.Event{notSent("pre-state", j.Reason)}
	}
	return []ledger.Event{{Kind: ledger.EvDeferred, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason, In: policies.PausePreparing(age)}}
}

// handBack puts a write back for others.
var handBack = ledger.Event{Kind: ledger.EvDeferred, Rule: "closing", Reason: "the worker is closing"}

func notSent(rule, reason string) ledger.Event {
	return ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: rule, Reason: reason + "; nothing was sent"}
}
