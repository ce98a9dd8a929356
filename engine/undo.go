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
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// ruleUndo is the rule by which settled writes are undone.
const ruleUndo = "undo"

// Undoing says who undoes a settled write, and why.
type Undoing struct {
	// By and Reason are required, and kept.
	By, Reason string
	// Intent is how, for the record that the write is about: destination, kind
	// and business key are the write's. Tenant, workflow, step, tool, call,
	// correlation id, idempotency key and risk are the engine's, whatever stands
	// there. What the write left is required of the record besides. Default: as
	// the connector undoes it.
	Intent *intent.WriteIntent
}

// Undo undoes a write that is settled as verified, by a write of its own that is
// gated, sent, read back and recorded like any other, and waits for what comes of
// it as [Engine.Do] does. What the write left is required of the record, so that
// nothing is undone that somebody else has changed since. The write then ends as
// compensated, or with a person, who has the undoing before them. A repeat, here
// or in another process, waits for the same end. A write of which nothing was
// sent, since its wish was fulfilled before, has nothing to be undone: its
// outcome is returned as it stands, verified with no sends.
//
// It fails with [ErrForbidden] under another's name, for a reviewer or an auditor,
// and for an agent that did not ask for the write itself; with [ledger.ErrNotFound]; with [ErrNotWaiting] for a write that is
// not settled as verified, or does not say that it is compensable; with
// [intent.ErrInvalid] or [ledger.ErrDigestMismatch] for a way that cannot be, or
// is not the one that was begun; with [ErrBusy] while a worker holds the write;
// then nothing has changed.
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

// allowed refuses an undoing in another's name, and an agent's of what it did not
// ask for.
func (u Undoing) allowed(ctx context.Context, rec ledger.Record) error {
	who := Caller(ctx)
	if err := who.asks(); err != nil {
		return err
	}
	switch {
	case who.Name != "" && who.Name != u.By:
		return fmt.Errorf("%w: the undoing is in the name of %q, the credentials are those of %q", ErrForbidden, u.By, who.Name)
	case who.Role == RoleAgent && (who.Name == "" || who.Name != rec.RequestedBy):
		return fmt.Errorf("%w: an agent undoes only what it asked for itself", ErrForbidden)
	}
	return nil
}

// begunUndoing reports whether there is only to be waited for the end: the undoing
// was begun, a person has the write, or there is nothing to undo.
func (e *Engine) begunUndoing(rec ledger.Record, u Undoing) (bool, error) {
	switch {
	case rec.Entrusted, rec.Tombstone:
		return false, fmt.Errorf("%w: what write %s did is not known here", ErrNotWaiting, rec.ID)
	case rec.State == ledger.Compensating, rec.State == ledger.Review, rec.Settlement == ledger.Compensated:
		return true, e.sameUndoing(rec, u)
	case rec.Settlement != ledger.Verified:
		return false, fmt.Errorf("%w: %s is %s; only a verified write can be undone", ErrNotWaiting, rec.ID, rec.Phase())
	case rec.Sends == 0:
		return true, nil
	case rec.Child != "":
		return false, fmt.Errorf("%w: the undoing of %s, %s, came to nothing; one is all there ever is", ErrNotWaiting, rec.ID, rec.Child)
	}
	return false, nil
}

// sameUndoing refuses another way of undoing than the one that was begun.
func (e *Engine) sameUndoing(rec ledger.Record, u Undoing) error {
	if u.Intent == nil || rec.Child == "" {
		return nil
	}
	w, _, err := e.openChild(rec)
	if err != nil {
		return err
	}
	asked := undoing(rec, *u.Intent)
	asked.Require = w.Require // the engine adds to it
	recorded, err := w.Digest()
	if err != nil {
		return err
	}
	received, err := asked.Digest()
	if err == nil && recorded != received {
		err = &ledger.DigestMismatchError{ID: rec.Child, Recorded: recorded, Received: received}
	}
	return err
}

// beginUndoing registers the undoing. It needs no lease: the fence says whether
// anybody took the write up meanwhile.
func (e *Engine) beginUndoing(ctx context.Context, rec ledger.Record, u Undoing) error {
	busy := fmt.Errorf("%w: %s, until %s", ErrBusy, rec.ID, rec.LeaseUntil.Format(time.RFC3339))
	if rec.LeaseUntil.After(rec.Now) {
		return busy
	}
	t, err := e.newTask(rec, time.Now(), e.life())
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

// toBeUndone is the event that begins the undoing, or hands the write to a person
// where it cannot be.
func (t *task) toBeUndone(ctx context.Context, u Undoing) (ledger.Event, error) {
	ev := ledger.Event{Kind: ledger.EvEscalated, By: u.By, Rule: ruleUndo, Trace: causedBy(trace.SpanContextFromContext(ctx), t.rec)}
	person := func(why string) (ledger.Event, error) {
		ev.Reason = fmt.Sprintf("it was to be undone (%s), and cannot be: %s", u.Reason, why)
		return ev, nil
	}
	switch _, err := t.e.ledger.Get(ctx, t.rec.Tenant, undoingID(t.rec)); {
	case err == nil:
		return person("a surplus record of it was removed before, and one removal or undoing is all there ever is")
	case !errors.Is(err, ledger.ErrNotFound):
		return ev, err
	}
	left, j, err := t.asSettled(ctx)
	if err != nil {
		return ev, err
	}
	c := t.policyCase()
	c.Judgement = j
	if d := policies.Undo(c, u.Intent != nil); d.Kind != policies.Compensate {
		return person(d.Reason)
	}
	w, why, err := t.wayBack(u, left)
	if err != nil || why != "" {
		if err == nil {
			return person(why)
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

// asSettled is what the look found by which the write was settled, and what it
// proves: what others did to the record since is none of the write's doing.
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
	for _, e := range events { // the record has the names that the read gave it since
		if e.Kind == ledger.EvSent && e.Fate == ledger.FateAnswered {
			if k.Receipt, err = t.receipt(e.Ref, e.Version); err != nil {
				return left, verify.Judgement{}, unopened(t.rec.ID, "the receipt", err)
			}
		}
	}
	return left, verify.Judge(k), nil
}

// leftBy is what a write left, when it is undone, and the look that saw it; false
// where that is not kept.
func leftBy(s *redact.Scope, events []ledger.Event) (left connectors.Observation, look ledger.Event, kept bool, err error) {
	look, found := lastLook(events)
	if !found || tooLarge(look.Evidence) {
		return left, look, false, nil
	}
	text, err := s.Open(look.Evidence)
	if err != nil {
		return left, look, false, err
	}
	return left, look, decodeExact(text, &left) == nil, nil
}

// lastLook is the look that says what a write left, when it is undone: the one
// by which it was settled, or else the last one before.
func lastLook(events []ledger.Event) (look ledger.Event, found bool) {
	var last ledger.Event
	for _, e := range events {
		switch {
		case e.Kind == ledger.EvRead && !e.Before && e.Evidence != nil:
			last = e
		case e.Kind == ledger.EvSettled && e.Settlement == ledger.Verified,
			e.Kind == ledger.EvCompensating && e.Rule != ruleUndo:
			look, found = last, last.Evidence != nil
		}
	}
	return look, found
}

// wayBack is the intent that undoes the write, or why there is none.
func (t *task) wayBack(u Undoing, left connectors.Observation) (w intent.WriteIntent, why string, err error) {
	if u.Intent != nil {
		if w, err = t.toldWay(*u.Intent, left); err != nil {
			return w, "", err
		}
		return w, "", verify.Fits(t.conn, t.profile, w)
	}
	inverter, ok := t.conn.(connectors.Inverter)
	if !ok {
		return w, "the connector cannot undo this write", nil
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

// toldWay is the way that the caller says, for the record of the write alone and
// under the same conditions as any other.
func (t *task) toldWay(w intent.WriteIntent, left connectors.Observation) (intent.WriteIntent, error) {
	told, err := w.Encode()
	if err = cmp.Or(err, redact.CheckClear(told)); err != nil {
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

// onlyAsLeft requires that what the write set still is as it left it.
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

// mayStillLand is how long a send may still land, of a write that was settled
// while one was of unknown fate: what it made would outlive an undoing.
func (t *task) mayStillLand() time.Duration {
	horizon, _ := t.profile.Horizon.Declared()
	c := t.policyCase()
	if !t.rec.Passed || !t.rec.Unknown || t.rec.Sends-t.rec.Unsent < 2 || !policies.Counting(c) {
		return 0
	}
	return max(horizon-c.SinceSend, 0)
}

// changedSince says what somebody did, since the write that this one undoes, to
// the record that it is about to change or delete, "" when nothing. What was
// changed of what an undoing brings back it requires to be as it was; with a
// record that is deleted all of it goes.
func (t *task) changedSince(seen connectors.Observation) (string, error) {
	if t.rec.Parent == "" || t.intent.Write == intent.Create || len(seen.Records) != 1 {
		return "", nil
	}
	parent, err := t.e.ledger.Get(t.life.hard, t.rec.Tenant, t.rec.Parent)
	if err != nil || parent.Child == "" { // it removes a surplus record, by rules of its own
		return "", err
	}
	events, err := t.e.ledger.Events(t.life.hard, parent.Tenant, parent.ID)
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

// setAgain says what there is in a record that a write took away from it. That it
// is not there cannot be required.
func setAgain(by ledger.Record, now connectors.Record) (string, error) {
	w, err := intent.DecodeStored(by.Intent)
	if err != nil {
		return "", fmt.Errorf("%w: write %s: the stored intent: %w", ledger.ErrCorrupt, by.ID, err)
	}
	for _, place := range w.Absent {
		if _, there := intent.Lookup(now.Fields, place); there {
			return fmt.Sprintf("somebody set %q of the record again since write %s took it away", place, by.ID), nil
		}
	}
	return "", nil
}

// otherFields says what is not in a record as a write left it, but for what the
// destination changes by itself and what only one of two reads asked for.
func (t *task) otherFields(by ledger.ID, was, now connectors.Record) string {
	both := intent.Fields{}
	for name := range now.Fields {
		place := string(intent.Pointer("").AppendToken(name))
		switch value, there := was.Fields[name]; {
		case there:
			both[name] = value
		case !slices.Contains(t.profile.Volatile, place):
			return fmt.Sprintf("somebody added %q to the record since write %s", name, by)
		}
	}
	for _, m := range verify.Diff(intent.WriteIntent{Expect: both, Ignore: t.profile.Volatile}, t.profile.Compare, now.Fields) {
		return fmt.Sprintf("somebody changed %q of the record since write %s", m.Path, by)
	}
	return ""
}
