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

// needsBefore reports whether the pre-state must be read: to find out whether there is
// something to do, to distinguish a lagging read from a mismatch, to make the write conditional, to
// undo it, and, for a create, to check whether the key is taken where the destination would not
// refuse it.
func (t *task) needsBefore() bool {
	if t.profile.WriteOnly {
		return false
	}
	if t.intent.Write != intent.Create || t.intent.Reversibility == intent.Compensable && !t.profile.FreshKeys {
		return true
	}
	enforced := t.profile.Stamped && slices.Contains(t.profile.Unique, intent.Create)
	return !t.profile.FreshKeys && !enforced
}

// firstAnnouncement announces the first send with the request that the connector builds for all
// sends, or ends the write if that cannot be built: nothing was sent yet.
func (t *task) firstAnnouncement() ledger.Event { return t.ready(t.announcement(policies.Permit{})) }

func (t *task) ready(ev ledger.Event) ledger.Event {
	if _, prepares := t.conn.(connectors.Preparer); !prepares || t.rec.Sends > 0 && t.rec.Restored.IsZero() || t.rec.Prepared != nil {
		return ev
	}
	r := t.request()
	r.Prepared = nil // it was built for a send that a guard held back
	prepared, err := verify.Prepare(t.lifetime.hard, t.conn, t.profile, r)
	if err != nil {
		return t.notSent("prepare", "what is to be sent cannot be built: "+err.Error())
	}
	if ev.Prepared, err = t.scope().SealBytes(prepared); err != nil {
		return t.notSent("prepare", "what is to be sent cannot be kept: "+err.Error())
	}
	t.prepared = prepared
	return ev
}

// request returns a send of this write, without the parts that are known only when it is sent.
func (t *task) request() connectors.Request {
	if t.rec.Repaired {
		return connectors.Request{Intent: t.repair(), Stamp: t.stamp, IdempotencyKey: intent.SendKey(t.rec.StructuralKey, t.rec.Generation)}
	}
	return connectors.Request{Intent: t.intent, Stamp: t.stamp, Prepared: t.prepared,
		IdempotencyKey: intent.SendKey(t.rec.StructuralKey, t.rec.Generation)}
}

// announcement returns the event that a send is about to be made. A worker that was frozen
// after it still sends within its lease or not at all, so the send has ended when the lease
// ends.
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
		Unordered:   t.rec.KeyDigest != "" && unordered(t.intent, t.profile), // from an outbox, which knows no profiles
		Conditional: t.conditional(write, before), Repair: p.Repair, SendFor: max(t.rec.LeaseFor, t.e.leaseFor(t.rec)), NeedsRecheck: p.NeedsRecheck}
}

// conditional reports whether a send has a condition. All sends have one where the destination
// supports it, so that none can apply to a record that another actor changed.
func (t *task) conditional(w intent.WriteType, before *connectors.Observation) bool {
	return before != nil && slices.Contains(t.profile.Conditional, w)
}

// repair returns the update of the record with the values that the destination did not store,
// by the last read. It sends nothing else, so it replaces no other field.
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

// send makes the announced send, unless the announcement is so old that another worker may have
// taken the write over.
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
	// If the process freezes from here on, the call still ends with the lease.
	ctx, cancel := context.WithDeadline(t.lifetime.hard, t.leased.Add(t.rec.LeaseFor))
	defer cancel()
	r := t.request()
	r.Attempt, r.Before, r.FirstSent = t.rec.Sends, t.before, t.rec.FirstSend
	if t.rec.Repaired {
		r.Before = &t.seen
	}
	r.Conditional = t.conditional(r.Intent.Write, r.Before)
	var lost error
	r.Keep = func(_ context.Context, prepared []byte) error {
		ev, err := t.made(prepared)
		if err != nil {
			return err
		}
		lost = t.commit(ev)
		return lost
	}
	began := time.Now()
	res := t.sending(ctx, r)
	if lost != nil {
		return lost // another worker reads what became of it
	}
	if res.Fate == connectors.FateLogin {
		t.e.reg.LoginRefused(t.rec.Destination)
	}
	s := Sent{Fate: res.Fate, Code: t.scope().Text(res.Code), RetryAfter: res.RetryAfter, Took: time.Since(began)}
	_, later := t.batched()
	s.Unread = t.profile.WriteOnly || later
	t.left(s)
	t.e.observe(Activity{Kind: ActivitySent, Record: t.rec, Sent: s})
	ev := ledger.Event{Kind: ledger.EvSent, Fate: string(res.Fate), Code: res.Code, Conflict: res.Conflict, RetryAfter: res.RetryAfter,
		Ref: res.Receipt.Ref, URL: res.Receipt.URL, Version: res.Receipt.Version, Replayed: res.Receipt.Replay}
	t.setReply(&ev, r, res.Receipt.Reply)
	if res.Err != nil {
		ev.Reason = res.Err.Error()
	}
	t.judged, t.agreeing, t.pace, t.startRead = verify.Judgement{}, 0, nil, readRequest{measured: true}
	return t.note(ev)
}

// made returns the event of what a first call of the send made, which is recorded before the second.
func (t *task) made(prepared []byte) (ledger.Event, error) {
	if len(prepared) > connectors.MaxPrepared {
		return ledger.Event{}, fmt.Errorf("it has %d bytes, at most %d can be kept", len(prepared), connectors.MaxPrepared)
	}
	sealed, err := t.scope().SealBytes(prepared)
	if err != nil {
		return ledger.Event{}, err
	}
	t.prepared = slices.Clone(prepared)
	return ledger.Event{Kind: ledger.EvPrepared, Prepared: sealed}, nil
}

// queued prepares a write of which nothing was sent, and announces it.
func (t *task) queued() (parked bool, err error) {
	unapproved, err := t.unapproved()
	if err != nil {
		return false, err
	}
	var events []ledger.Event
	switch unfit := verify.Fits(t.conn, t.profile, t.intent); {
	case t.lifetime.ending.Err() != nil:
		events = []ledger.Event{handBack}
	case t.mayHaveBeenSent():
		events = []ledger.Event{t.assumed()}
	case t.late():
		events = []ledger.Event{t.notSent("deadline", "the deadline passed before it could be sent")}
	case unfit != nil:
		events = []ledger.Event{t.notSent("unfit", "its destination can never serve it: "+unfit.Error())}
	case unapproved:
		events = []ledger.Event{t.held()}
	default:
		events = t.firstEvents(t.now().Sub(t.rec.QueuedAt))
	}
	if err := t.commit(events...); err != nil {
		return false, err
	}
	t.countHeld()
	t.mine = t.rec.State == ledger.Sending
	return t.rec.State == ledger.Queued, nil
}

// unapproved reports whether a queued write needs an approval that it lacks: it came through
// the outbox, which ignores risks, or the rules have become stricter.
func (t *task) unapproved() (bool, error) {
	if t.risk() != intent.RiskApprove || t.rec.Sends > 0 && t.rec.Restored.IsZero() || len(t.rec.Agreed) > 0 {
		return false, nil
	}
	events, err := t.e.ledger.Events(t.lifetime.hard, t.rec.Tenant, t.rec.ID)
	if err != nil {
		return false, &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	}
	approves := func(ev ledger.Event) bool { return ev.Kind == ledger.EvApproved || ev.Kind == ledger.EvAnnounced }
	return !slices.ContainsFunc(events, approves), nil
}

// prepare reads the pre-state of a write accepted age ago and returns what follows: the
// announcement, a wait, or the end.
func (t *task) prepare(age time.Duration) []ledger.Event {
	began := time.Now()
	ctx, span := t.reading()
	ctx = connectors.CountCalls(ctx)
	seen, err := verify.Read(ctx, t.reader(), t.profile, t.query())
	if err != nil {
		j := verify.Unread(err)
		j.Reason = "the destination could not be read before the write: " + err.Error()
		t.wasRead(span, verify.Judgement{Verdict: verify.Unavailable}, seen, true)
		if j.Login {
			return []ledger.Event{t.loginRefused(age, err)}
		}
		if errors.Is(err, connectors.ErrNoTarget) {
			return []ledger.Event{t.notSent("pre-state", "the destination cannot be read: "+err.Error())}
		}
		if j.Throttled {
			t.left(fateOfRead(j, began)) // a send would need another read
		}
		return t.cannotPrepare(age, j)
	}
	k := t.judgeCase()
	k.Seen, k.Since = seen, age-max(began.Sub(seen.At), 0)
	j := verify.JudgeBefore(k)
	t.wasRead(span, j, seen, true)
	read := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: j.Verdict.String(), Reason: j.Reason, Calls: severalCalls(ctx)}
	if read.Evidence, err = t.scope().SealObservation(seen); err != nil {
		return []ledger.Event{read, t.notSent("pre-state", "the record before the write cannot be kept: "+err.Error())}
	}
	if j.Record != nil {
		read.Ref, read.URL, read.Version = j.Record.Ref, j.Record.URL, j.Record.Version
	}
	if len(read.Evidence) > maxEvidence {
		read.Evidence = nil
		return []ledger.Event{read, t.notSent("pre-state", fmt.Sprintf("the record before the write is larger than %d bytes; it cannot be kept", maxEvidence))}
	}
	if j.Verdict == verify.Indeterminate {
		if t.rec.Parent != "" && !j.Conclusive && !slices.Contains(t.profile.Conditional, t.intent.Write) {
			j.Reason = "the read before an undoing may be older than what others did to the record since"
			return t.cannotPrepare(k.Since, j)
		}
		switch changed, err := t.changedSince(seen); {
		case err != nil:
			return t.cannotPrepare(age, verify.Judgement{Verdict: verify.Unavailable, Reason: "the write that it undoes could not be read: " + err.Error()})
		case changed != "":
			return []ledger.Event{read, t.notSent("pre-state", changed)}
		}
		if changed := t.changedMeanwhile(seen); changed != "" {
			return []ledger.Event{read, {Kind: ledger.EvEscalated, Verdict: j.Verdict.String(), Rule: "pre-state",
				Reason: changed + " while the write waited; no send was taken up"}}
		}
		t.before = &seen
		return []ledger.Event{read, t.firstAnnouncement()}
	}
	read.Mismatches = t.differences(j.Mismatches)
	if earlier, found := t.madeBy(seen); found && t.intent.Write == intent.Create {
		rec := seen.Records[0]
		switch {
		case !j.Conclusive: // the record may be gone, though the read shows it
			return t.cannotPrepare(k.Since, j)
		case earlier.Settlement != ledger.Verified:
			return []ledger.Event{read, t.notSent("pre-state", fmt.Sprintf("write %s made the record with this key, and is %s", earlier.ID, earlier.Phase()))}
		case len(verify.Diff(t.intent, t.profile.Compare, rec.Fields)) > 0:
			return []ledger.Event{read, t.notSent("pre-state", fmt.Sprintf("write %s made the record with this key, and it differs from what is wanted", earlier.ID))}
		}
		read.Ref, read.URL, read.Version = rec.Ref, rec.URL, rec.Version
		return []ledger.Event{read, {Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: verify.Vacuous.String(), Rule: "pre-state",
			Reason: fmt.Sprintf("write %s made the record as requested: nothing to send", earlier.ID)}}
	}
	after := t.concluded(age, j)
	if t.rec.Sends > 0 && after[0].Kind == ledger.EvDeferred {
		return after // it may be older than the pre-state, with which the next read is compared
	}
	return append([]ledger.Event{read}, after...)
}

// changedMeanwhile describes what another actor did to what the write would replace or delete,
// since the read before a send that was not taken up; "" when nothing. The write did not know of
// that change, so it must not undo it.
func (t *task) changedMeanwhile(seen connectors.Observation) string {
	if t.rec.Sends == 0 || t.before == nil || t.intent.Write == intent.Create { // a create replaces nothing
		return ""
	}
	if len(t.before.Records) != 1 || len(seen.Records) != 1 { // only an upsert may be sent then
		if len(t.before.Records) != len(seen.Records) {
			return fmt.Sprintf("other actors left %d matching records where there had been %d,", len(seen.Records), len(t.before.Records))
		}
		return ""
	}
	was, now := t.before.Records[0], seen.Records[0]
	if differ(was.Ref, now.Ref) {
		return fmt.Sprintf("another actor replaced the record %q by %q", was.Ref, now.Ref)
	}
	for _, m := range verify.Replaced(t.intent, t.profile.Volatile, was.Fields, now.Fields) {
		return fmt.Sprintf("another actor changed %q of the record", m.Path)
	}
	return ""
}

// madeBy returns another write of this ledger whose stamp the one matching record has: then the
// obstacle to a create is no other actor's record. It is verified or not settled. If the ledger
// cannot be queried, there is none.
func (t *task) madeBy(seen connectors.Observation) (maker ledger.Record, found bool) {
	if len(seen.Records) != 1 || seen.Records[0].Stamp == "" || t.rec.KeyDigest == "" {
		return maker, false
	}
	writes, err := t.e.ledger.Find(t.lifetime.hard, ledger.Search{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: 200})
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

// loginRefused puts back a write whose read before the send was refused for its credentials.
// That concerns the destination, so the guards are notified as after a send, and the write
// waits as long as necessary.
func (t *task) loginRefused(age time.Duration, err error) ledger.Event {
	t.e.reg.LoginRefused(t.rec.Destination)
	s := Sent{Fate: connectors.FateLogin}
	var e *connectors.Error
	if errors.As(err, &e) {
		s.Code = t.scope().Text(e.Code)
	}
	t.left(s)
	return ledger.Event{Kind: ledger.EvDeferred, Verdict: verify.Unavailable.String(), Rule: "login",
		Reason: "the destination refused the login: " + err.Error(), In: policies.PausePreparing(age, verify.Judgement{})}
}

// concluded returns how a write ends, or waits, on its pre-state alone.
func (t *task) concluded(age time.Duration, j verify.Judgement) []ledger.Event {
	switch {
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		return []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason}}
	case t.intent.Write == intent.Create && t.rec.Sends > 0:
		return []ledger.Event{{Kind: ledger.EvEscalated, Verdict: j.Verdict.String(), Rule: "pre-state",
			Reason: "another actor made a record with this key while the write waited; no send was taken up"}}
	case t.intent.Write == intent.Create:
		return []ledger.Event{{Kind: ledger.EvEscalated, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason + "; nothing was sent"}}
	case j.Conclusive:
		return []ledger.Event{t.notSent("pre-state", j.Reason)}
	}
	return t.cannotPrepare(age, j)
}

// cannotPrepare waits for a reliable pre-state, and gives up if that takes too long: nothing
// was sent, so the outcome is known.
func (t *task) cannotPrepare(age time.Duration, j verify.Judgement) []ledger.Event {
	untried := j.Verdict == verify.Unavailable && t.rec.Rule != "pre-state" // another rule put it back last
	if policies.PreparingTooLong(t.profile, j, age) && !untried {
		return []ledger.Event{t.notSent("pre-state", j.Reason)}
	}
	return []ledger.Event{{Kind: ledger.EvDeferred, Verdict: j.Verdict.String(), Rule: "pre-state", Reason: j.Reason, In: policies.PausePreparing(age, j)}}
}

func (t *task) notSent(rule, reason string) ledger.Event {
	if !t.rec.Restored.IsZero() { // it may have been sent before
		return ledger.Event{Kind: ledger.EvEscalated, Rule: rule, Reason: reason}
	}
	why := "; nothing was sent"
	if t.rec.Sends > 0 {
		why = "; no send was taken up"
	}
	return ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: rule, Reason: reason + why}
}

// overtaken returns why the announced send must not be made any more, or "" if it may be made.
// A process that stalled since the announcement may have lost the write to another worker. If
// more than a moment has passed, it asks the ledger immediately before the send, and the guards
// whether sends were stopped.
func (t *task) overtaken() (why string, lost bool) {
	now := t.clock.Add(time.Since(t.leased)) // the latest that the ledger's clock can show: a response may come late
	if max(time.Since(t.leased), wallSince(t.leased)) > fenceFresh {
		if now, why, lost = t.askLedger(); why != "" {
			return why, lost
		}
	}
	asked := time.Now()
	if hold := t.stopped(); hold != nil {
		return "stopped before the send: " + hold.Reason, false
	}
	// Measured after the questions, which may have taken time too.
	now = now.Add(time.Since(asked))
	if policies.Late(t.intent, now) {
		return "stopped before the send: the deadline has passed", false
	}
	c := caseOf(t.rec, t.intent, t.profile, now, t.e.clock)
	if t.rec.Rule == policies.RowNativeKey && !policies.InWindow(c, 0) {
		return "stopped before the send: the destination may forget the key before the send has landed", false
	}
	if time.Since(t.leased) > t.rec.LeaseFor-t.profile.SendFor() {
		return "stopped before the send: too late under this lease", false
	}
	return "", false
}

// stopped asks again whether sends were stopped, if the guards' permission is too old.
func (t *task) stopped() *Hold {
	guards := t.e.opts.Guards
	if guards == nil || max(time.Since(t.entered), wallSince(t.entered)) <= guardFresh {
		return nil
	}
	return guards.Stopped(t.lifetime.ending, t.rec)
}

// askLedger compares the write with its present ledger record, and returns the latest time that
// the ledger's clock can show.
func (t *task) askLedger() (latest time.Time, why string, lost bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.e.ctx), fenceTimeout)
	defer cancel()
	asked := time.Now()
	now, err := t.e.ledger.Get(ctx, t.rec.Tenant, t.rec.ID)
	t.e.clock.record(now.Now, asked)
	switch {
	case err != nil:
		return latest, "stopped before the send: the ledger cannot say whether the write still is this worker's: " + err.Error(), false
	case now.Fence != t.rec.Fence, now.State != ledger.Sending:
		return latest, "stopped before the send: another worker has taken the write over", true
	case now.LeaseUntil.Sub(now.Now) < t.profile.SendFor():
		return latest, "stopped before the send: too late under this lease", false
	}
	return now.Now.Add(time.Since(asked)), "", false
}

// wallSince returns the time passed by the wall clock, which continues while a machine sleeps
// or migrates and its monotonic clock does not.
func wallSince(t time.Time) time.Duration { return time.Now().Round(0).Sub(t.Round(0)) }

// enter asks the guards for the next send. Nil permits its announcement, and the task must then
// give back the leave. A very recent permission is reused.
func (t *task) enter() *Hold {
	guards := t.e.opts.Guards
	if guards == nil {
		return nil
	}
	if t.leave != nil && time.Since(t.entered) <= guardFresh {
		return nil
	}
	t.left(Sent{Fate: connectors.FateNotSent})
	leave, hold := guards.Enter(t.lifetime.ending, t.rec)
	if hold != nil {
		return hold
	}
	t.entered, t.leave = time.Now(), leave
	return nil
}

// enterRead asks the guards for a read that no send's leave covers. The caller calls leave when
// the read has ended.
func (e *Engine) enterRead(l lifetime, rec ledger.Record) (leave func(Sent), hold *Hold) {
	if e.opts.Guards == nil {
		return func(Sent) {}, nil
	}
	return e.opts.Guards.EnterRead(l.ending, rec)
}

// left notifies the guard that permitted the send of its fate, once.
func (t *task) left(s Sent) {
	if leave := t.leave; leave != nil {
		t.leave = nil
		leave(s)
	}
}

// unsent gives back an unused leave. Every worker on a task defers it, so that all paths give
// it back.
func (t *task) unsent() { t.left(Sent{Fate: connectors.FateNotSent}) }

// putBack returns the event that a guard holds the write back. If something was sent before, it
// is read again before the next send, so the pauses grow.
func (t *task) putBack(h *Hold) ledger.Event {
	in := max(h.For, holdFloor)
	if t.rec.Sends > 0 {
		in = max(in, min(t.sinceSend()/holdShare, holdMost))
	}
	t.hold = h
	return ledger.Event{Kind: ledger.EvDeferred, Rule: h.Rule, Reason: h.Reason, In: in}
}

// holdBack records that a guard holds the next send back.
func (t *task) holdBack(h *Hold) error {
	err := t.commit(t.putBack(h))
	if err == nil {
		t.countHeld()
	}
	return err
}

// countHeld counts a hold that was recorded.
func (t *task) countHeld() {
	if t.hold == nil {
		return
	}
	t.e.observe(Activity{Kind: ActivityHeld, Record: t.rec, Hold: *t.hold})
	t.log().Debug("a guard holds the send back", "rule", t.hold.Rule, "reason", t.hold.Reason)
	t.hold = nil
}
