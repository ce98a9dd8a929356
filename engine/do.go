package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Do carries out an intent and waits for its outcome or for the end of ctx. When ctx ends
// first, the outcome is in progress: the write is in the ledger and continues, and a later Do
// with the same intent returns its outcome. Repeats of one logical write, here or in other
// processes, share one send and one outcome.
//
// No destination delays the return: when ctx ends, reads that precede recording are abandoned,
// and the write is recorded at once. While [Engine.Work] runs, a worker continues a write whose
// callers have left from the ledger, after the call in progress. Otherwise a goroutine of this
// engine does. A Do that does not wait at all only records the write, within the bounds of
// [Engine.Enqueue].
//
// An error means that there is no outcome. It wraps [ErrForbidden] for a reviewer or an
// auditor, and with a [ScopeError] for a write outside the caller's scope; [intent.ErrInvalid],
// with [redact.ErrNoKey] where a key is missing; [connectors.ErrUnknownDestination];
// [ledger.ErrDigestMismatch]; [ledger.ErrBlocked]; [ledger.ErrFull]; one of the ledger's own
// errors; or [ErrClosed]. It is an [Error] where something is known about the effect.
func (e *Engine) Do(ctx context.Context, w intent.WriteIntent) (out Outcome, err error) {
	began := time.Now()
	defer func() {
		rec := ledger.Record{Tenant: w.Tenant, ID: out.ID, Tool: w.Tool, Destination: w.Destination, Kind: w.Kind}
		e.observe(Activity{Kind: ActivityCalled, Record: rec, Outcome: out, Err: err, Took: time.Since(began)})
	}()
	t, err := e.accept(ctx, w)
	if err != nil {
		return Outcome{}, e.rejected(ctx, w, err)
	}
	rec := t.rec // the work changes that of the task
	out, err = e.do(ctx, w, t)
	if err == nil && out.Replayed {
		e.observe(Activity{Kind: ActivityRepeated, Record: rec})
	}
	return out, err
}

func (e *Engine) do(ctx context.Context, w intent.WriteIntent, t *task) (Outcome, error) {
	var mine *inFlight
	defer func() { e.vacate(mine) }()
	if n := e.callers.Add(1); n > int64(e.opts.MaxInFlight) {
		return Outcome{}, e.rejected(ctx, w, fmt.Errorf("%w: %d calls are in hand already, at most %d may be", ledger.ErrFull, n-1, e.opts.MaxInFlight))
	}
	rec := t.rec
	f, began, err := e.startOrJoin(rec.ID, rec.Digest, false)
	if err != nil {
		return Outcome{}, e.rejected(ctx, w, err)
	}
	if !began {
		return e.join(ctx, f, rec)
	}
	mine = f
	if ctx.Err() != nil { // then nothing is read before the write is recorded
		e.leave(f)
	}
	id := rec.ID // rec is large, and would be copied once more for the goroutine
	go func() { e.finish(id, f, guarded(id, func() error { return e.beginWithin(ctx, t, f) })) }()
	return e.wait(ctx, f, rec, false)
}

// beginWithin begins a write, or finds it begun, within its tenant's bounds on open writes.
func (e *Engine) beginWithin(ctx context.Context, t *task, f *inFlight) error {
	rec := t.rec
	full := e.admit(rec, 0)
	if full != nil {
		if _, missing := e.ledger.Get(e.ctx, rec.Tenant, rec.ID); missing != nil {
			return full
		}
	}
	fresh, err := t.begin(f, e.lifetimeOf(ctx, f))
	if full == nil && (!fresh || f.last != nil && f.last.State == ledger.Settled) {
		e.queues.giveBack(rec, 0)
	}
	return err
}

// join waits for a write that another call of this process is making.
func (e *Engine) join(ctx context.Context, f *inFlight, rec ledger.Record) (out Outcome, err error) {
	_, s := e.startSpan(e.lifetimeFor(ctx), &rec, stageReplay)
	defer s.end()
	if err = sameRequest(ledger.Record{ID: rec.ID, Digest: f.digest}, rec); err != nil {
		err = e.refusedReservation(rec, err)
	} else {
		out, err = e.wait(ctx, f, rec, true)
	}
	return out, s.answered(out, err)
}

// accept refuses an intent that can never be carried out, and returns the task for its write
// with the record to reserve.
func (e *Engine) accept(ctx context.Context, w intent.WriteIntent) (*task, error) {
	f, err := wellFormed(w)
	if err := cmp.Or(Caller(ctx).asks(), err, foreign(ctx, w)); err != nil {
		return nil, err
	}
	t, err := e.requested(f, w)
	if err != nil { // another tenant's destination is unknown, whatever the scope lists
		return nil, err
	}
	if err := Caller(ctx).Scope.Covers(w); err != nil {
		return nil, err
	}
	t.rec.RequestedBy, t.rec.Trace = Caller(ctx).Name, Traceparent(ctx)
	if unordered(w, t.profile) {
		t.rec.KeyDigest = ""
	}
	if err := verify.Fits(t.conn, t.profile, w); err != nil {
		// A write that is in the ledger was acceptable when it was recorded.
		if _, missing := e.ledger.Get(context.WithoutCancel(ctx), t.rec.Tenant, t.rec.ID); missing != nil { // also for a caller that does not wait
			return nil, err
		}
	}
	return t, nil
}

// wellFormed validates a caller's intent, and brings it into its canonical form.
func wellFormed(w intent.WriteIntent) (intent.Form, error) {
	f, err := w.ValidForm()
	if err == nil && w.Compensates != "" {
		err = fmt.Errorf("%w: /compensates is set by the engine alone; leave it out", intent.ErrInvalid)
	}
	return f, err
}

// Check returns what is wrong with an intent, as far as [Engine.Do] would find out before it
// records anything, or nil. It asks neither the ledger nor the destination. It answers as to a
// caller of an API.
func (e *Engine) Check(w intent.WriteIntent) error {
	_, err := e.checked(w)
	return err
}

func (e *Engine) checked(w intent.WriteIntent) (*task, error) {
	f, err := wellFormed(w)
	if err := cmp.Or(err, foreignNames(w.Destination, w.Tool)); err != nil {
		return nil, err
	}
	t, err := e.requested(f, w)
	if err == nil {
		err = verify.Fits(t.conn, t.profile, w)
	}
	return t, err
}

// Profile returns what the destination of an intent supports for its kind of record. The error
// wraps [connectors.ErrUnknownDestination].
func (e *Engine) Profile(w intent.WriteIntent) (connectors.Profile, error) {
	_, p, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	return p, err
}

// unordered reports whether the write needs no place in a queue: it creates a record whose key
// is made for it, so that its business key names no record but a container, for example a
// mailbox.
func unordered(w intent.WriteIntent, p connectors.Profile) bool {
	return w.Write == intent.Create && p.FreshKeys
}

// requested returns the task for the write of a caller's intent, in which nothing is sealed, with
// its record as the ledger stores it. It is the one place where a call derives these. What is
// sensitive is learned from w, in which numbers are as the caller wrote them: texts quote them so.
func (e *Engine) requested(f intent.Form, w intent.WriteIntent) (*task, error) {
	if err := redact.CheckClear(f.Encoded); err != nil {
		return nil, err
	}
	t := &task{e: e, rec: ledger.RecordOf(f), intent: f.Intent, stamp: f.Intent.Stamp()}
	var unknown, err error
	t.conn, t.profile, unknown = e.reg.LookupFor(t.intent.Tenant, t.intent.Destination, t.intent.Kind)
	t.seals = e.sealerAt(t.rec, t.profile)
	unsealed := t.seals.Idle() && len(t.intent.Sensitive) == 0
	t.rec.NotChecked, t.rec.Proof = notChecked(t.conn, t.intent), t.profile.Proof
	t.rec, err = kept(t.seals, t.rec, w)
	if err == nil && !unsealed {
		t.seals = e.sealerAt(t.rec, t.profile)
		t.intent, err = t.seals.OpenIntent(t.rec.Intent)
	}
	return t, cmp.Or(err, unknown)
}

// begin reserves the write of a new task and works on it as far as possible without a long wait.
// It reports whether the write is new. What is sent is the intent as the ledger has it: a repeat
// after a crash must be identical byte for byte, or a destination that compares it refuses it.
func (t *task) begin(f *inFlight, l lifetime) (fresh bool, err error) {
	var s *workSpan
	t.lifetime, s = t.e.startSpan(l, &t.rec, stageNew)
	defer s.end()
	fresh, err = t.e.beginIn(t, t.rec, f)
	return fresh, s.done(err)
}

// beginIn is begin within a span.
func (e *Engine) beginIn(t *task, rec ledger.Record, f *inFlight) (fresh bool, err error) {
	defer t.unsent()
	rec.Now = time.Now()
	t.adopt(rec, rec.Now)
	if t.restore, err = e.restored(); err != nil {
		return false, e.unrecorded(rec, err)
	}
	events, precheck, err := t.openingIn(f.opening)
	if err != nil {
		return false, err
	}
	if f.ctx.Err() != nil { // its callers have left
		if rec, fresh, err = e.enqueue(e.ctx, t); err != nil {
			return false, err
		}
		f.fresh, f.first = fresh, rec
		if fresh {
			f.last = &f.first
		}
		if fresh && rec.State == ledger.Queued {
			e.queues.queued(rec)
		}
		return fresh, nil
	}
	for i := range events {
		events[i] = t.sealed(events[i])
		events[i].By = e.opts.Owner
	}
	asked := time.Now()
	reserved, fresh, err := e.reserve(e.ctx, t.lifetime, ledger.Reservation{
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
	if t.rec.Owner == "" { // it waits: in the queue, for an approval or until it is due
		if t.rec.QueuedBehind == "" {
			t.countHeld()
		}
		t.countEnded(phase{})
		f.last = &t.rec
		return true, nil
	}
	if t.mine = reserved.State == ledger.Sending; !t.mine {
		t.before = nil // anything read was read too early and is read again
	}
	if err = t.run(); err == nil { // else rec may be ahead of the ledger
		f.last = &t.rec
	}
	return true, err
}

// refusedReservation returns what a failed reservation means for the effect.
func (e *Engine) refusedReservation(rec ledger.Record, err error) error {
	if errors.Is(err, ledger.ErrDigestMismatch) || errors.Is(err, ledger.ErrBlocked) {
		return e.refused(rec, err)
	}
	if errors.Is(err, ledger.ErrNoKey) {
		err = fmt.Errorf("%w: %w", redact.ErrNoKey, err)
	}
	return e.unrecorded(rec, err)
}

// refused logs a write that was not recorded because another one has its name: the ledger keeps
// no record of it.
func (e *Engine) refused(rec ledger.Record, why error) error {
	e.log(rec).Info("a write was refused, and not recorded", "reason", errorType(why), "error", e.text(rec, why.Error()))
	return why
}

// unrecorded returns the error of a ledger that failed before this call recorded a write.
// Nothing will be sent if the ledger answers that it does not hold the write. If it cannot
// answer, an earlier call may have sent it.
func (e *Engine) unrecorded(rec ledger.Record, err error) error {
	known := KnownNothing
	if !errors.Is(err, ledger.ErrUnsure) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), unrecordedTime)
		defer cancel()
		_, get := e.ledger.Get(ctx, rec.Tenant, rec.ID)
		if last, err := e.restored(); err == nil && !last.Open() && errors.Is(get, ledger.ErrNotFound) {
			known = KnownNotApplied
		}
	}
	return &Error{ID: rec.ID, Known: known, Err: err}
}

// openingIn is opening until ctx ends. Longer reads are abandoned, and made when the write is
// recorded.
func (t *task) openingIn(ctx context.Context) (events []ledger.Event, precheck *ledger.Precheck, err error) {
	if ctx.Err() == nil {
		whole := t.lifetime
		if t.asks() {
			hard, cut := context.WithCancel(whole.hard)
			defer cut()
			ending, end := context.WithCancel(whole.ending)
			defer end()
			defer context.AfterFunc(ctx, func() { cut(); end() })()
			t.lifetime.hard, t.lifetime.ending = hard, ending
		}
		events, precheck, err = t.opening()
		t.lifetime = whole
	}
	if err != nil || ctx.Err() == nil {
		return events, precheck, err
	}
	t.unsent()
	t.before, t.prepared, t.hold = nil, nil, nil
	return t.refused(), nil, nil
}

// opening returns the first events of a new write: held, or the pre-state where the plan needs
// it, and the announcement. They are stored with the reservation, so that the happy path needs
// no commit between reserve and send. The pre-state depends on the ledger's state when the read
// began.
func (t *task) opening() ([]ledger.Event, *ledger.Precheck, error) {
	if events := t.refused(); events != nil {
		return events, nil, nil
	}
	if !t.asks() {
		return t.firstEvents(0), nil, nil
	}
	precheck, err := t.e.ledger.Precheck(t.e.ctx, t.rec)
	switch {
	case err != nil:
		return nil, nil, t.e.refusedReservation(t.rec, err)
	case precheck.Recorded: // a repeat: there is nothing to prepare, Reserve detects it
		return nil, nil, nil
	case !t.needsBefore():
		return t.firstEvents(0), nil, nil
	case precheck.Contended: // the record may change until this write is first in its queue
		return nil, &precheck, nil
	}
	return t.firstEvents(0), &precheck, nil
}

// asks reports whether anything is asked before the write is recorded, which can take long and
// which a repeat must not do: it must not take a permit, or a breaker's only probe, from a send.
func (t *task) asks() bool {
	_, prepares := t.conn.(connectors.Preparer)
	return prepares || t.needsBefore() || t.e.opts.Guards != nil
}

// firstEvents returns the events up to the first send of a write accepted age ago: the
// pre-state where the plan needs it, and the announcement, unless a guard holds it back. The
// guard is asked before the read, so that no read is wasted, and again if the read took long.
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

// lateCreate returns how long, and why, a delete or upsert must wait for a create of the same
// record whose earlier send may still arrive. Such a create is found by its pending recheck.
func (t *task) lateCreate() (wait time.Duration, why string) {
	if t.rec.KeyDigest == "" || t.intent.Write != intent.Delete && t.intent.Write != intent.Upsert {
		return 0, ""
	}
	asked := time.Now()
	found, err := t.e.ledger.List(t.lifetime.hard, ledger.Filter{Tenant: t.rec.Tenant, KeyDigest: t.rec.KeyDigest, Limit: lateCreates})
	var unread *ledger.UnreadError // an unreadable write cannot be sent again either
	if err != nil && !errors.As(err, &unread) {
		return lateCreateRetry, "whether an earlier create of the record may still arrive could not be found out: " + err.Error()
	}
	for _, r := range found {
		w, err := intent.DecodeStored(r.Intent)
		if err != nil || r.ID == t.rec.ID {
			continue
		}
		t.e.clock.record(r.Now, asked) // this may be the process's first reading of that clock
		if still := policies.StillCreates(caseOf(r, w, t.profile, r.Now, t.e.clock)); still > wait {
			wait, why = still, fmt.Sprintf("an earlier send of write %s, which creates this record, may still arrive", r.ID)
		}
	}
	return wait, why
}

// refused returns the event that ends or holds a write before any work on it.
func (t *task) refused() []ledger.Event {
	switch {
	case t.mayHaveBeenSent():
		return []ledger.Event{t.assumed()}
	case t.late():
		return []ledger.Event{t.notSent("deadline", "the deadline had passed when it was asked for")}
	case t.risk() == intent.RiskApprove: // a reviewer must approve first
		return []ledger.Event{t.held()}
	}
	return nil
}

// risk returns the intent's own risk class, or the higher class of a risk rule.
func (t *task) risk() intent.Risk { return policies.Classify(t.e.risks(), t.intent).Class }

// run works on the write until it is done, escalated to a reviewer, or put back to wait in the
// ledger.
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

// ended reports whether a write needs no more work now.
func ended(rec ledger.Record) bool {
	return rec.State == ledger.Settled || rec.State == ledger.Review || rec.State == ledger.Held
}

// step does the one thing that the state requires, and reports whether the write was put back.
func (t *task) step() (parked bool, err error) {
	switch t.rec.State {
	case ledger.Queued:
		if t.rec.QueuedBehind != "" {
			return true, t.releaseLease()
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

// inFlight is one write that this process works on now.
type inFlight struct {
	digest string

	// opening ends as soon as a caller stops waiting: reads before the write is recorded must
	// not delay that caller. ctx ends with the engine, and when the last caller has left and a
	// worker continues the write.
	opening, ctx    context.Context
	hasten, release context.CancelFunc
	waiting         int           // callers; under the engine's mu
	counted         *atomic.Int64 // the counter to decrement at the end; under the engine's mu
	over            bool          // under the engine's mu

	kept  chan struct{} // closed when the write is in the ledger, or the work has stopped
	done  chan struct{} // closed when the work has stopped, for any reason
	fresh bool          // it began the write; read after kept
	first ledger.Record // the write as reserved, if reserved here; read after kept
	err   error         // why the work failed; read after done

	// last is the write as last worked on, nil unless begun here; read after done. It is not
	// copied: its task has ended.
	last *ledger.Record
}

// failed reports whether the in-flight call failed. A fenced one did not: another worker
// continues the write.
func (f *inFlight) failed() bool {
	return f.err != nil && !errors.Is(f.err, ledger.ErrFenced)
}

// keep marks the write as recorded in the ledger. Only the caller that began the in-flight call
// uses it.
func (f *inFlight) keep() {
	select {
	case <-f.kept:
	default:
		close(f.kept)
	}
}

// startOrJoin joins the in-flight call of a write, or begins one; kept says that the write is in the
// ledger already. The caller that begins it must end it with finish.
func (e *Engine) startOrJoin(id ledger.ID, digest string, kept bool) (f *inFlight, began bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, ErrClosed
	}
	if f, ok := e.inFlight[id]; ok {
		return f, false, nil
	}
	f = &inFlight{digest: digest, kept: make(chan struct{}), done: make(chan struct{})}
	f.opening, f.hasten = context.WithCancel(context.Background())
	f.ctx, f.release = context.WithCancel(e.ctx)
	if kept {
		f.keep()
	}
	e.inFlight[id] = f
	e.wg.Add(1)
	return f, true, nil
}

func (e *Engine) finish(id ledger.ID, f *inFlight, err error) {
	e.mu.Lock()
	delete(e.inFlight, id)
	f.over = true
	if f.counted != nil {
		f.counted.Add(-1)
	}
	e.mu.Unlock()
	f.hasten()
	f.release()
	f.err = err
	close(f.done)
	f.keep()
	e.wg.Done()
}

// attend waits for an in-flight call on behalf of a caller, until ctx ends. It reports whether
// the call is over. A send in progress continues without the caller. The rest is then put back,
// and a worker of this process takes it from the ledger.
func (e *Engine) attend(ctx context.Context, f *inFlight) (over bool) {
	e.mu.Lock()
	f.waiting++
	e.mu.Unlock()
	select {
	case <-f.done:
		over = true
	case <-ctx.Done():
	}
	e.mu.Lock()
	f.waiting--
	e.mu.Unlock()
	if !over {
		e.leave(f)
	}
	return over
}

// leave is called for a caller that stops waiting for an in-flight call.
func (e *Engine) leave(f *inFlight) {
	if e.opts.OneShot {
		return
	}
	e.mu.Lock()
	last := f.waiting == 0
	e.mu.Unlock()
	if last && e.workers.Load() > 0 {
		f.release() // before it is expedited, which reads
	}
	f.hasten()
}

// vacate gives back the place of a caller. The place of a write still in work stays taken, so
// that a caller that does not wait cannot accumulate writes without bound. The exception is a
// write whose callers have left it to a worker: it ends with the call in progress and takes no
// place from waiting callers. There are at most as many of these.
func (e *Engine) vacate(f *inFlight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case f == nil || f.over:
		e.callers.Add(-1)
	case f.ctx.Err() != nil && e.left.Load() < int64(e.opts.MaxInFlight):
		e.callers.Add(-1)
		e.left.Add(1)
		f.counted = &e.left
	default:
		f.counted = &e.callers
	}
}

// guarded works on one write. A panic in a connector or hook must not end the process and all
// other writes with it. This write is continued from the ledger when its lease has ended.
func guarded(id ledger.ID, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{ID: id, Known: KnownNothing, Err: fmt.Errorf("the work on it panicked: %.*v", maxReason, p)}
		}
	}()
	return work()
}

// reserve reserves the structural key of a write.
func (e *Engine) reserve(ctx context.Context, l lifetime, res ledger.Reservation) (ledger.Record, bool, error) {
	_, span := e.part(l.hard, spanReserve, trace.SpanKindInternal)
	defer finish(span, "panic", func() []attribute.KeyValue { return nil }) // unless it has ended
	asked := time.Now()
	rec, fresh, err := e.ledger.Reserve(ctx, res)
	e.clock.record(rec.Now, asked)
	if span == nil {
		return rec, fresh, err
	}
	finish(span, errorType(err), func() []attribute.KeyValue {
		return []attribute.KeyValue{attribute.Bool("readback.replayed", err == nil && !fresh)}
	})
	switch {
	case err == nil && !fresh:
		l.span.replay(rec)
	case err == nil && rec.State == ledger.Held:
		e.approvals(l, rec, res.Events)
	}
	return rec, fresh, err
}
