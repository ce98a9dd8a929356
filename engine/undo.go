package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// newUndoing returns the identity to reserve for the undo of a write. A value that was
// sensitive in the write is sensitive in the undo, wherever it appears. The digests are those
// of the unsealed intent.
func newUndoing(w intent.WriteIntent, of *redact.Scope) (ledger.Record, error) {
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return rec, err
	}
	return kept(of.Beside(string(rec.ID)), rec, w)
}

// openChild returns the compensating intent that a record stores, and the scope that opened it.
func (e *Engine) openChild(parent ledger.Record) (intent.WriteIntent, *redact.Scope, error) {
	s := e.sealer(ledger.Record{Tenant: parent.Tenant, ID: parent.Child, Destination: parent.Destination, Kind: parent.Kind})
	w, err := s.OpenIntent(parent.ChildIntent)
	if err != nil {
		err = unopened(parent.ID, "the stored compensation", err)
	}
	return w, s, err
}

// undoing returns the compensating intent with the fields that only the engine decides, and
// with the sensitive fields of the write itself.
func (t *task) undoing(w intent.WriteIntent) intent.WriteIntent {
	w = undoing(t.rec, w)
	w.Sensitive = redact.Marks(w.Sensitive, t.intent.Sensitive)
	return w
}

// undoing returns the compensating intent with the fields that only the engine decides.
func undoing(parent ledger.Record, w intent.WriteIntent) intent.WriteIntent {
	w.Tenant, w.Workflow, w.Step, w.Tool, w.Call = parent.Tenant, parent.Workflow, parent.Step, parent.Tool, parent.Call
	w.CorrelationID, w.Compensates = parent.CorrelationID, string(parent.ID)
	w.Risk, w.Reversibility, w.OnMismatch, w.IdempotencyKey = "", "", "", ""
	return w
}

// ruleUndo is the rule that undoes settled writes.
const ruleUndo = "undo"

// Undoing says who requests the undo of a settled write, and why.
type Undoing struct {
	// By and Reason are required, and recorded.
	By, Reason string
	// Intent is how to undo the record of the write: destination, kind and business key are the
	// write's. The engine sets tenant, workflow, step, tool, call, correlation id, idempotency
	// key and risk, whatever they contain. It also requires the record to be as the write left
	// it. Default: the connector's inverse.
	Intent *intent.WriteIntent
}

// Undo undoes a write that is settled as verified, with a separate write that is gated, sent,
// read back and recorded like any other, and waits for its outcome as [Engine.Do] does. It
// requires the record to be as the write left it, so that nothing is undone that another actor
// has changed since. The write then ends as compensated, or in review, where the reviewer sees
// the undo. A repeat, here or in another process, waits for the same end. A write of which
// nothing was sent, because the record was as declared before, has nothing to undo: its outcome
// is returned unchanged, verified with no sends.
//
// It fails with [ErrForbidden] under another caller's name, for a reviewer or an auditor, and
// for an agent that did not request the write itself; with [ledger.ErrNotFound]; with
// [ErrNotWaiting] for a write that is not settled as verified, or not declared compensable;
// with [intent.ErrInvalid] or [ledger.ErrDigestMismatch] for an Intent that is impossible, or
// differs from the one that was begun; with [ErrBusy] while a worker holds the write. Then
// nothing has changed.
func (e *Engine) Undo(ctx context.Context, tenant string, id ledger.ID, u Undoing) (Outcome, error) {
	if e.ctx.Err() != nil {
		return Outcome{}, ErrClosed
	}
	if u.By == "" || u.Reason == "" {
		return Outcome{}, errors.New("an undoing needs a name (by) and a reason")
	}
	asking := context.WithoutCancel(ctx)
	for pace := newFollowPace(); ; {
		rec, err := e.ledger.Get(asking, tenant, id)
		if err != nil {
			return Outcome{}, err
		}
		if err := u.allowed(ctx, rec); err != nil {
			return Outcome{}, err
		}
		begun, err := e.begunUndoing(rec, u)
		if err == nil && !begun {
			err = e.beginUndoing(asking, rec, u)
		}
		switch {
		case err == nil:
			return e.Wait(ctx, tenant, id, true)
		case !errors.Is(err, ErrBusy) || !sleep(ctx, e.ctx, pace.NextBackOff()):
			return Outcome{}, err
		}
	}
}

// allowed refuses an undo in another caller's name, and an agent's undo of a write that it did
// not request.
func (u Undoing) allowed(ctx context.Context, rec ledger.Record) error {
	who := Caller(ctx)
	if err := who.asks(); err != nil {
		return err
	}
	switch {
	case who.Scope != nil:
		return fmt.Errorf("%w: the credentials have a scope, which covers no undoing", ErrForbidden)
	case who.Name != "" && who.Name != u.By:
		return fmt.Errorf("%w: the undoing is in the name of %q, the credentials are those of %q", ErrForbidden, u.By, who.Name)
	case who.Role == RoleAgent && (who.Name == "" || who.Name != rec.RequestedBy):
		return fmt.Errorf("%w: an agent undoes only what it asked for itself", ErrForbidden)
	}
	return nil
}

// begunUndoing reports whether the caller only needs to wait for the end: the undo was begun,
// the write is in review, or there is nothing to undo.
func (e *Engine) begunUndoing(rec ledger.Record, u Undoing) (bool, error) {
	switch {
	case rec.Delegated, rec.Tombstone:
		return false, fmt.Errorf("%w: what write %s did is not known here", ErrNotWaiting, rec.ID)
	case rec.State == ledger.Compensating, rec.State == ledger.Review, rec.Settlement == ledger.Compensated:
		return true, e.sameUndoing(rec, u)
	case rec.Settlement != ledger.Verified:
		return false, fmt.Errorf("%w: %s is %s; only a verified write can be undone", ErrNotWaiting, rec.ID, rec.Phase())
	case rec.Sends == 0, foundSo(rec):
		return true, nil
	case rec.Child != "":
		return false, fmt.Errorf("%w: the undoing of %s, %s, came to nothing; one is all there ever is", ErrNotWaiting, rec.ID, rec.Child)
	}
	return false, nil
}

// sameUndoing refuses another undo than the one that was begun.
func (e *Engine) sameUndoing(rec ledger.Record, u Undoing) error {
	if u.Intent == nil || rec.Child == "" {
		return nil
	}
	w, s, err := e.openChild(rec)
	if err != nil {
		return err
	}
	asked := undoing(rec, *u.Intent)
	asked.Require = w.Require // the engine adds to it
	have, err := newUndoing(w, s)
	if err != nil {
		return err
	}
	received, err := newUndoing(asked, s)
	if err != nil {
		return err
	}
	return sameRequest(have, received)
}

// beginUndoing registers the undo. It needs no lease: the fence shows whether a worker took the
// write up meanwhile.
func (e *Engine) beginUndoing(ctx context.Context, rec ledger.Record, u Undoing) error {
	busy := fmt.Errorf("%w: %s, until %s", ErrBusy, rec.ID, rec.LeaseUntil.Format(time.RFC3339))
	if rec.LeaseUntil.After(rec.Now) && gone(rec.Owner) == "" {
		return busy
	}
	t, err := e.newTask(rec, time.Now(), e.lifetime())
	if err != nil {
		return err
	}
	if t.intent.Reversibility != intent.Compensable {
		return fmt.Errorf("%w: %s does not say that it is compensable", ErrNotWaiting, rec.ID)
	}
	ev, err := t.toBeUndone(ctx, u)
	if err != nil {
		return err
	}
	_, err = e.ledger.Append(ctx, rec.ID, rec.Fence, t.sealed(ev))
	if errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrIllegalMove) {
		return busy
	}
	return err
}

// toBeUndone returns the event that begins the undo, or that escalates the write to a reviewer
// where it cannot be undone.
func (t *task) toBeUndone(ctx context.Context, u Undoing) (ledger.Event, error) {
	ev := ledger.Event{Kind: ledger.EvEscalated, By: u.By, Rule: ruleUndo, Trace: causedBy(trace.SpanContextFromContext(ctx), t.rec)}
	escalated := func(why string) (ledger.Event, error) {
		ev.Reason = fmt.Sprintf("it was to be undone (%s), and cannot be: %s", u.Reason, why)
		return ev, nil
	}
	left, j, err := t.asSettled(ctx)
	if err != nil {
		return ev, err
	}
	c := t.policyCase()
	c.Judgement = j
	if d := policies.Undo(c, u.Intent != nil); d.Kind != policies.Compensate {
		return escalated(d.Reason)
	}
	w, why, err := t.wayBack(u, left)
	if err != nil || why != "" {
		if err == nil {
			return escalated(why)
		}
		return ev, err
	}
	child, err := newUndoing(w, t.scope())
	if err != nil {
		return ev, err
	}
	ev.Kind, ev.Child, ev.Evidence, ev.Reason = ledger.EvCompensating, child.ID, child.Intent, u.Reason
	return ev, nil
}

// asSettled returns the read that settled the write, and what it proves: later changes by other
// actors are not the write's.
func (t *task) asSettled(ctx context.Context) (connectors.Observation, verify.Judgement, error) {
	events, err := t.e.ledger.Events(ctx, t.rec.Tenant, t.rec.ID)
	if err != nil {
		return connectors.Observation{}, verify.Judgement{}, err
	}
	left, read, kept, err := leftBy(t.scope(), events)
	if err != nil {
		return left, verify.Judgement{}, unopened(t.rec.ID, "what it left", err)
	}
	if !kept {
		return left, verify.Judgement{Reason: "what it left is not kept"}, nil
	}
	k := t.judgeCase()
	k.Seen, k.Since = left, read.At.Add(-read.Ago).Sub(t.rec.LastSend)
	for _, e := range events { // the record has the names of the read since
		if e.Kind == ledger.EvSent && e.Fate == ledger.FateAnswered {
			if k.Receipt, err = t.receipt(e.Ref, e.Version); err != nil {
				return left, verify.Judgement{}, unopened(t.rec.ID, "the receipt", err)
			}
		}
	}
	return left, verify.Judge(k), nil
}

// leftBy returns what a write to be undone left, and the read that showed it; false where that
// is not stored.
func leftBy(s *redact.Scope, events []ledger.Event) (left connectors.Observation, read ledger.Event, kept bool, err error) {
	read, found := finalRead(events)
	if !found || tooLarge(read.Evidence) {
		return left, read, false, nil
	}
	text, err := s.Open(read.Evidence)
	if err != nil {
		return left, read, false, err
	}
	return left, read, decodeExact(text, &left) == nil, nil
}

// finalRead returns the read that shows what a write to be undone left: the one that settled
// it, or else the last one before.
func finalRead(events []ledger.Event) (read ledger.Event, found bool) {
	var last ledger.Event
	for _, e := range events {
		switch {
		case e.Kind == ledger.EvRead && !e.Before && e.Evidence != nil:
			last = e
		case e.Kind == ledger.EvSettled && e.Settlement == ledger.Verified,
			e.Kind == ledger.EvCompensating && e.Rule != ruleUndo:
			read, found = last, last.Evidence != nil
		}
	}
	return read, found
}

// wayBack returns the intent that undoes the write, or why there is none.
func (t *task) wayBack(u Undoing, left connectors.Observation) (w intent.WriteIntent, why string, err error) {
	if u.Intent != nil {
		if w, err = t.callersWay(*u.Intent, left); err != nil {
			return w, "", err
		}
		return w, "", verify.Fits(t.conn, t.profile, w)
	}
	inverter, ok := t.conn.(connectors.Inverter)
	if !ok {
		return w, "there is no way to undo this write at its destination", nil
	}
	if w, err = invert(inverter, t.intent, t.before, left); err == nil {
		w = t.undoing(w)
		if len(w.Require) == 0 {
			w = t.onlyAsLeft(w, left)
		}
		err = w.Validate()
	}
	if err != nil {
		return w, err.Error(), nil //nolint:nilerr // that it cannot be built is an answer
	}
	return w, "", nil
}

// callersWay returns the caller's undo, for the record of the write alone and under the same
// conditions as any other.
func (t *task) callersWay(w intent.WriteIntent, left connectors.Observation) (intent.WriteIntent, error) {
	encoded, err := w.Encode()
	if err = cmp.Or(err, redact.CheckClear(encoded)); err != nil {
		return w, err
	}
	w = t.undoing(w)
	w.Deadline = time.Time{}
	w = t.onlyAsLeft(w, left)
	if err := w.Validate(); err != nil {
		return w, err
	}
	about, err := w.KeyDigest()
	if err != nil {
		return w, err
	}
	mine, err := t.intent.KeyDigest()
	if err == nil && (about != mine || w.Destination != t.intent.Destination || w.Kind != t.intent.Kind) {
		err = fmt.Errorf("%w: /key: it is about another record than write %s; give destination, kind and key of that", intent.ErrInvalid, t.rec.ID)
	}
	return w, err
}

// onlyAsLeft requires the fields that the write set to be as it left them.
func (t *task) onlyAsLeft(w intent.WriteIntent, left connectors.Observation) intent.WriteIntent {
	if w.Write == intent.Create || len(left.Records) != 1 {
		return w
	}
	w.Require = maps.Clone(w.Require)
	if w.Require == nil {
		w.Require = intent.Fields{}
	}
	for name := range t.intent.Expect {
		place := string(intent.Pointer("").AppendToken(name))
		if slices.Contains(t.intent.Ignore, place) || slices.Contains(t.profile.Volatile, place) {
			continue
		}
		if value, there := left.Records[0].Fields[name]; there {
			w.Require[name] = value
		}
	}
	return w
}

// mayStillLand returns how long a send may still arrive, for a write that was settled while one
// was of unknown fate: its effect would outlive an undo.
func (t *task) mayStillLand() time.Duration {
	horizon, _ := t.profile.Horizon.Declared()
	c := t.policyCase()
	if !t.rec.LeftQueue || !t.rec.Unknown || t.rec.Sends-t.rec.Unsent < 2 || !policies.Counting(c) {
		return 0
	}
	return max(horizon-c.SinceSend, 0)
}

// changedSince describes what another actor changed, since the write that this one undoes, in
// the record that it is about to change or delete; "" when nothing. An undo requires the fields
// that it restores to be unchanged; deleting a record removes all of its fields.
func (t *task) changedSince(seen connectors.Observation) (string, error) {
	if t.rec.Parent == "" || t.intent.Write == intent.Create || len(seen.Records) != 1 {
		return "", nil
	}
	parent, err := t.e.ledger.Get(t.lifetime.hard, t.rec.Tenant, t.rec.Parent)
	if err != nil {
		return "", err
	}
	events, err := t.e.ledger.Events(t.lifetime.hard, parent.Tenant, parent.ID)
	if err != nil {
		return "", err
	}
	left, _, kept, err := leftBy(t.e.sealer(parent), events)
	if err != nil {
		return "", unopened(parent.ID, "what it left", err)
	}
	if !kept || len(left.Records) != 1 {
		return "", nil
	}
	switch was, now := left.Records[0], seen.Records[0]; {
	case differ(was.Ref, now.Ref):
		return fmt.Sprintf("the record is another one than write %s left, %q and not %q", parent.ID, now.Ref, was.Ref), nil
	case t.intent.Write != intent.Delete:
		return setAgain(parent, now)
	case differ(was.Stamp, now.Stamp):
		return fmt.Sprintf("the record has the stamp of another write than when write %s left it", parent.ID), nil
	default:
		return t.otherFields(parent.ID, was, now), nil
	}
}

// differ reports whether two names, where both are known, are not the same.
func differ(was, now string) bool { return was != "" && now != "" && was != now }

// setAgain describes what a record contains that a write removed from it. Its absence cannot be
// required.
func setAgain(by ledger.Record, now connectors.Record) (string, error) {
	w, err := intent.DecodeStored(by.Intent)
	if err != nil {
		return "", fmt.Errorf("%w: write %s: the stored intent: %w", ledger.ErrCorrupt, by.ID, err)
	}
	for _, place := range w.Absent {
		if _, there := intent.Lookup(now.Fields, place); there {
			return fmt.Sprintf("another actor set %q of the record again since write %s took it away", place, by.ID), nil
		}
	}
	return "", nil
}

// otherFields describes the fields that differ from how a write left the record, except those
// that the destination changes by itself and those that only one of two reads asked for.
func (t *task) otherFields(by ledger.ID, was, now connectors.Record) string {
	both := intent.Fields{}
	for name := range now.Fields {
		place := string(intent.Pointer("").AppendToken(name))
		switch value, there := was.Fields[name]; {
		case there:
			both[name] = value
		case !slices.Contains(t.profile.Volatile, place):
			return fmt.Sprintf("another actor added %q to the record since write %s", name, by)
		}
	}
	for _, m := range verify.Diff(intent.WriteIntent{Expect: both, Ignore: t.profile.Volatile}, t.profile.Compare, now.Fields) {
		return fmt.Sprintf("another actor changed %q of the record since write %s", m.Path, by)
	}
	return ""
}

// compensate registers the write that undoes this one. It is on disk, with what it needs,
// before anything of it is sent.
func (t *task) compensate(d policies.Decision) error {
	inverter, ok := t.conn.(connectors.Inverter)
	if !ok {
		d.Reason = "there is no way to undo this write at its destination"
		return t.escalate(d)
	}
	w, err := invert(inverter, t.intent, t.before, t.seen)
	if err == nil {
		w = t.undoing(w)
		err = w.Validate()
	}
	var child ledger.Record
	if err == nil {
		child, err = newUndoing(w, t.scope())
	}
	if err != nil {
		d.Reason = "it cannot be undone: " + err.Error()
		return t.escalate(d)
	}
	return t.commit(ledger.Event{Kind: ledger.EvCompensating, Child: child.ID, Evidence: child.Intent,
		Rule: d.Rule, Reason: d.Reason})
}

// invert asks the connector for the inverse. A panicking connector has none.
func invert(by connectors.Inverter, w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (undo intent.WriteIntent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the connector's invert panicked: %.*v", maxReason, p)
		}
	}()
	return by.Invert(w, before, after)
}

// compensating continues the compensating write. This write settles only after that one.
func (t *task) compensating() (parked bool, err error) {
	if wait := t.mayStillLand(); wait > 0 {
		return t.pause(wait, policies.Decision{Rule: "compensate", Reason: "an earlier send may still arrive: it is undone when none can"})
	}
	child, err := t.advanced()
	switch {
	case hopeless(err):
		return false, t.escalate(policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s cannot be made: %v", t.rec.Child, err)})
	case err != nil:
		return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "compensate", Reason: err.Error(), In: childMost})
	case child.Settlement == ledger.Verified:
		return false, t.commit(t.compensated(child))
	case child.State == ledger.Settled, child.State == ledger.Review, child.State == ledger.Held:
		return false, t.escalate(policies.Decision{Rule: "compensate",
			Reason: fmt.Sprintf("the compensating write %s is %s: %s", child.ID, child.Phase(), child.Reason)})
	}
	pause := min(max(t.now().Sub(child.Created)/2, childFirst), childMost)
	return t.pause(pause, policies.Decision{Rule: "compensate", Reason: fmt.Sprintf("the compensating write %s is %s", child.ID, child.Phase())})
}

// advanced continues the compensating write and keeps the lease on this one meanwhile: the
// compensating write makes sends, reads and pauses of its own.
func (t *task) advanced() (ledger.Record, error) {
	defer t.keepLease()()
	return t.e.advance(t.rec, t.lifetime)
}

// keepLease renews the lease until the returned function is called. Nothing may be noted or
// committed meanwhile. A failed renewal is retried. A worker that lost the write learns it at
// the next commit.
func (t *task) keepLease() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.e.ctx))
	rec, asked, done := t.rec, t.leased, make(chan struct{})
	go func() {
		defer close(done)
		for pause.For(ctx, rec.LeaseFor/3) {
			at := time.Now()
			if renewed, err := t.e.ledger.Append(ctx, rec.ID, rec.Fence); err == nil {
				rec, asked = renewed, at
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if asked != t.leased {
			t.adopt(rec, asked)
		}
	}
}

// hopeless reports whether a compensating write can never be made: the ledger or the registry
// refuses it. An unusable ledger or a closing engine proves nothing about it.
func hopeless(err error) bool {
	for _, final := range []error{ledger.ErrDigestMismatch, ledger.ErrBlocked, ledger.ErrCorrupt, intent.ErrInvalid, connectors.ErrUnknownDestination} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// compensated returns the event that settles a write whose undo was verified.
func (t *task) compensated(child ledger.Record) ledger.Event {
	return ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Compensated, Rule: "compensate",
		Reason: fmt.Sprintf("undone by write %s: %s", child.ID, child.Reason), In: t.recheckIn(ledger.Compensated), Until: t.recheckUntil(ledger.Compensated)}
}

// awaitUndoing handles the undo of a write in review. While the undo is open no read settles
// the write: the present effect can still be undone. It reports whether nothing else is left to
// do.
func (t *task) awaitUndoing() (handled bool, err error) {
	if t.rec.Child == "" {
		return false, nil
	}
	child, err := t.e.ledger.Get(t.e.ctx, t.rec.Tenant, t.rec.Child)
	switch {
	case errors.Is(err, ledger.ErrNotFound): // it never began
		return false, nil
	case err != nil:
		return true, err
	case child.Settlement == ledger.Verified:
		return true, t.commit(t.compensated(child))
	case child.Settlement == ledger.NotApplied, child.Settlement == ledger.Denied, child.Settlement == ledger.Expired:
		if t.rec.LeftQueue { // its outcome was returned before the undo: an effect as declared settles nothing
			return true, t.commit(ledger.Event{Kind: ledger.EvEscalated})
		}
		return false, nil
	}
	// The write's age does not matter: its end depends on the undo alone.
	open, most := t.now().Sub(child.Created), reviewMost
	if open > reviewEnd {
		most = undoingMost
	}
	return true, t.commit(ledger.Event{Kind: ledger.EvDeferred, In: min(max(open, reviewFirst), most)})
}

// advance continues the compensating write of a record as far as possible without a long wait,
// and returns its record.
func (e *Engine) advance(parent ledger.Record, l lifetime) (ledger.Record, error) {
	w, s, err := e.openChild(parent)
	if err != nil {
		return ledger.Record{}, err
	}
	rec, err := newUndoing(w, s)
	if err != nil {
		return ledger.Record{}, err
	}
	if rec.RequestedBy, err = e.undoer(parent, w); err != nil {
		return ledger.Record{}, err
	}
	rec.Trace = parent.Trace
	if parent.LeftQueue { // it has left its queue: its undo takes its own place
		rec.KeyDigest = parent.KeyDigest
	}
	f, began, err := e.startOrJoin(rec.ID, rec.Digest, false)
	if err != nil {
		return ledger.Record{}, &Error{ID: rec.ID, Known: KnownNothing, Err: err}
	}
	if began {
		err := e.beginOrContinue(rec, f, l)
		e.finish(rec.ID, f, err)
		if err != nil {
			return ledger.Record{}, err
		}
	}
	return e.ledger.Get(e.ctx, rec.Tenant, rec.ID)
}

// undoer returns the requester of an undo that needs approval: another actor must approve it.
func (e *Engine) undoer(parent ledger.Record, w intent.WriteIntent) (string, error) {
	if policies.Classify(e.risks(), w).Class != intent.RiskApprove {
		return parent.RequestedBy, nil
	}
	events, err := e.ledger.Events(e.ctx, parent.Tenant, parent.ID)
	if err != nil {
		return "", &Error{ID: parent.ID, Known: KnownNothing, Err: err}
	}
	who := parent.RequestedBy
	for _, ev := range events {
		directed := ev.Kind == ledger.EvDirected && ev.Directed == policies.DirectCompensate
		if directed || ev.Kind == ledger.EvCompensating && ev.Rule == ruleUndo {
			who = ev.By
		}
	}
	return who, nil
}

func (e *Engine) beginOrContinue(rec ledger.Record, f *inFlight, l lifetime) error {
	t, err := e.newTask(rec, time.Now(), l)
	if err != nil {
		return err
	}
	t.startRead = readRequest{} // it has no reads to continue
	fresh, err := t.begin(f, l)
	if err != nil || fresh {
		return err
	}
	have, err := e.ledger.Get(e.ctx, rec.Tenant, rec.ID)
	if err != nil {
		return err
	}
	if done(have) {
		return nil
	}
	return e.continueIfDue(have, l)
}
