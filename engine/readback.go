package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Effect says whether the effect that an intent declares is at its destination.
type Effect string

// The effects. The zero value is unknown.
const (
	EffectUnknown Effect = ""
	EffectPresent Effect = "present"
	EffectAbsent  Effect = "absent" // conclusively: it will not appear later either
)

// ReadBackCase is what is known about a write that its caller makes itself.
type ReadBackCase struct {
	// Began is the earliest time at which it can have been sent, Ended the latest at which it
	// can have been given up. An Ended before Began means now. A zero Began means that the
	// write was not begun, and the read is for the state before it.
	Began, Ended time.Time
	// Before is the result of a read before the write, as in [ReadResult.Seen].
	Before json.RawMessage
}

// ReadResult is the result of a read of a destination.
type ReadResult struct {
	Effect     Effect
	Verdict    verify.Verdict
	Reason     string
	Mismatches json.RawMessage
	Ref, URL   string
	// Seen is the observation, to be passed to a later read as the state before. It is nil when
	// it could not be read or is too large to be kept.
	Seen json.RawMessage
	// Write is the write of this ledger that is about to have, or has, the effect, if any: then
	// the ledger answered and not a read.
	Write ledger.ID
	// NotChecked lists, as JSON Pointers, the parts of a present effect that no read compares.
	NotChecked []string
	At         time.Time
	// After is when another read can show more. Zero: never, or now.
	After time.Time
}

// ReadBack reports whether the effect that an intent declares is at its destination, for a
// write that its caller makes itself. It sends nothing and records nothing. If this ledger has
// a write of the intent's structural key, its record is the answer; else the destination is
// read. No stamp of ours can be expected there, so matching uses only the business key, the
// count and the expected fields. Before the write was begun (ReadBackCase.Began is zero) the
// read is for the state before.
//
// Lagging reads are repeated while that can change their result, for ten seconds at most and
// within ctx. An unproven or unreadable effect is unknown. An error ([intent.ErrInvalid],
// [connectors.ErrUnknownDestination], one of the ledger's, [ErrClosed]) means that nothing
// could be read.
func (e *Engine) ReadBack(ctx context.Context, w intent.WriteIntent, c ReadBackCase) (ReadResult, error) {
	t, err := e.checked(w)
	if err != nil {
		return ReadResult{}, err
	}
	if err := e.enter(); err != nil {
		return ReadResult{}, err
	}
	defer e.wg.Done()
	switch have, err := e.ledger.Get(ctx, t.rec.Tenant, t.rec.ID); {
	case err == nil:
		found := known(have, slices.Contains(t.rec.Digests, have.Digest))
		if found.Effect == EffectPresent {
			found.NotChecked = have.NotChecked
		}
		return found, nil
	case !errors.Is(err, ledger.ErrNotFound):
		return ReadResult{}, err
	}
	l, err := e.newReading(ctx, t, w, c)
	if err != nil {
		return ReadResult{}, err
	}
	found := l.run(ctx)
	if found.Effect == EffectPresent {
		found.NotChecked = t.rec.NotChecked
	}
	return found, nil
}

// enter counts one more call that Close waits for.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.wg.Add(1)
	return nil
}

// known returns what the ledger has of a write that was made through it.
func known(r ledger.Record, same bool) ReadResult {
	l := ReadResult{Verdict: verify.ParseVerdict(r.Verdict), Mismatches: visibleMismatches(redact.Shown(r.Mismatches)), Write: r.ID, At: r.Now,
		Reason: fmt.Sprintf("write %s of this ledger is %s", r.ID, r.Phase())}
	if r.Reason != "" {
		l.Reason += ": " + r.Reason
	}
	switch {
	case !same:
		l.Reason = fmt.Sprintf("write %s of this ledger has the same structural key and asks for something else", r.ID)
		if key := intent.DigestKey(r.Digest); key != "" {
			l.Reason += fmt.Sprintf(", or its digest has a key (%q) that is not here", key)
		}
		l.Verdict, l.Mismatches = verify.Indeterminate, nil
	case r.State != ledger.Settled:
		l.After = r.Due
	case r.Settlement == ledger.Verified:
		l.Effect, l.Ref, l.URL, l.Mismatches = EffectPresent, redact.ShownText(r.Ref), redact.ShownText(r.URL), nil
	case r.Settlement.Group() == ledger.NotDone:
		l.Effect = EffectAbsent
	}
	return l
}

// reading reads an effect that another actor wrote.
type reading struct {
	e       *Engine
	intent  intent.WriteIntent
	conn    connectors.Connector
	profile connectors.Profile
	c       ReadBackCase
	before  *connectors.Observation
	seals   *redact.Scope
	// clock is the ledger's time at the moment read of this machine.
	clock, read time.Time
}

func (e *Engine) newReading(ctx context.Context, t *task, w intent.WriteIntent, c ReadBackCase) (*reading, error) {
	l := &reading{e: e, intent: w, conn: t.conn, profile: t.profile, c: c}
	// The caller's own write has no stamp of ours, so none can be missing.
	l.profile.Stamped, l.profile.StampsUpdates = false, false
	l.seals = e.opts.Vault.Scope(w.Tenant, string(t.rec.ID), l.profile.Sensitive, w.Sensitive)
	l.seals.LearnIntent(w)
	if len(c.Before) > 0 {
		l.before = new(connectors.Observation)
		if err := openInto(l.seals, c.Before, l.before); errors.Is(err, redact.ErrNoKey) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w: what was there before cannot be read: %w", intent.ErrInvalid, err)
		}
	}
	_, now, err := e.ledger.Notes(ctx, "clock") // its clock is that of ReadBackCase
	if err != nil {
		return nil, err
	}
	l.clock, l.read = now, time.Now()
	if !c.Began.IsZero() && c.Ended.Before(c.Began) { // the write was not given up
		l.c.Ended = l.clock
	}
	return l, nil
}

func (l *reading) now() time.Time { return l.clock.Add(time.Since(l.read)) }

// run reads until no later read within the bounds can show more.
func (l *reading) run(ctx context.Context) ReadResult {
	if l.profile.WriteOnly {
		return ReadResult{At: l.now(), Reason: connectors.ErrWriteOnly.Error()}
	}
	if unordered(l.intent, l.profile) {
		return ReadResult{At: l.now(), Reason: "its business key names no record of its own: only a stamp of ours would, and who makes the write itself leaves none"}
	}
	most, pace, agreeing := l.now().Add(mostReads), policies.ReadPace(), 0
	for {
		found := l.once(ctx)
		if found.Effect == EffectPresent {
			agreeing++
		} else {
			agreeing = 0
		}
		unconfirmed := agreeing > 0 && agreeing < l.profile.Confirm()
		pause, proceed := l.pause(found, pace.NextBackOff(), most)
		if unconfirmed {
			pause, proceed = min(pace.NextBackOff(), l.e.opts.Patience), l.now().Before(most)
		}
		if proceed && sleep(ctx, l.e.ctx, pause) {
			continue
		}
		if unconfirmed {
			found.Effect, found.Verdict, found.Ref, found.URL = EffectUnknown, verify.Indeterminate, "", ""
			found.Reason = fmt.Sprintf("seen %d of %d times", agreeing, l.profile.Confirm())
			found.After = l.now()
		}
		return found
	}
}

// pause returns how long to wait before another read, and whether one is worth it. The change
// that a later read can show may have begun during the last one.
func (l *reading) pause(found ReadResult, step time.Duration, most time.Time) (time.Duration, bool) {
	now, until := l.now(), found.After
	if found.Verdict == verify.Unavailable { // a single failure often does not repeat
		most = most.Add(min(l.e.opts.Patience-mostReads, 0))
		until = most
	}
	if found.Effect != EffectUnknown || until.IsZero() || until.After(most) || !now.Before(most) {
		return 0, false
	}
	if until.After(now) {
		step = min(step, max(until.Sub(now), lagFloor))
	}
	return step, true
}

// once reads once and returns what that proves.
func (l *reading) once(ctx context.Context) ReadResult {
	leave, hold := l.e.enterRead(lifetime{ending: ctx}, ledger.Record{Tenant: l.intent.Tenant, Destination: l.intent.Destination})
	if hold != nil {
		return ReadResult{Verdict: verify.Unavailable, At: l.now(), After: l.now().Add(hold.For), Reason: hold.Reason}
	}
	at, began := l.now(), time.Now()
	end := verify.Judgement{Verdict: verify.Unavailable}
	defer func() { leave(fateOfRead(end, began)) }()
	seen, err := verify.Read(ctx, l.e.reader(l.conn, l.profile), l.profile, connectors.Query{Intent: l.intent, Stamp: l.intent.Stamp(), Ref: l.ref()})
	if err != nil {
		end = verify.Unread(err)
		return ReadResult{Verdict: verify.Unavailable, At: at, After: at.Add(max(readAgainAfter, end.ReadAfter)), Reason: l.seals.Text(end.Reason)}
	}
	end.Verdict = verify.Indeterminate // it was read
	k := verify.Case{Intent: l.intent, Profile: l.profile, Before: l.before, Seen: seen}
	found := ReadResult{At: at}
	if found.Seen, err = l.seals.SealObservation(seen); err != nil || len(found.Seen) > maxEvidence {
		found.Seen = nil
	}
	if l.c.Began.IsZero() {
		k.Before = nil
		return l.redacted(found.beforehand(k, l.seals))
	}
	k.Since = at.Sub(l.c.Ended) - max(began.Sub(seen.At), 0)
	return l.redacted(found.afterwards(k, l.c.Ended, l.seals))
}

// redacted returns the redacted result: the observation stays sealed, to be passed back.
func (l *reading) redacted(found ReadResult) ReadResult {
	found.Reason = l.seals.Text(found.Reason)
	found.Ref, found.URL = redact.ShownText(l.seals.SealName(found.Ref)), redact.ShownText(l.seals.SealName(found.URL))
	found.Mismatches = visibleMismatches(redact.Shown(found.Mismatches))
	return found
}

// ref returns the record that a change targets.
func (l *reading) ref() string {
	if l.intent.Write == intent.Create || l.before == nil || len(l.before.Records) != 1 {
		return ""
	}
	return l.before.Records[0].Ref
}

// beforehand returns what a read shows before the write was begun.
func (found ReadResult) beforehand(k verify.Case, s *redact.Scope) ReadResult {
	j := verify.JudgeBefore(k)
	found = found.judged(j, s)
	switch {
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		found.Effect, found.Verdict = EffectPresent, verify.Vacuous
		return found.named(j)
	case j.Verdict != verify.Indeterminate:
		return found
	case len(k.Seen.Records) == 0 && k.Intent.Write != intent.Delete:
		found.Verdict, found.Reason = verify.Absent, "no record matches the business key"
	default:
		found.Reason = "what is declared is not so yet"
	}
	if j.Conclusive && !fulfilled(k, k.Seen) {
		found.Effect = EffectAbsent
	} else {
		found.Reason += ", as far as a read that may lag shows"
	}
	return found
}

// afterwards returns what a read shows when the write may have been sent, and was given up at
// the time ended at the latest.
func (found ReadResult) afterwards(k verify.Case, ended time.Time, s *redact.Scope) ReadResult {
	j := verify.Judge(k)
	found = found.judged(j, s)
	was := k.Before != nil && fulfilled(k, *k.Before)
	gone := (j.Verdict == verify.Absent || j.Verdict == verify.Stale) && !j.Conflict
	switch {
	case k.Intent.Write == intent.Create && k.Before != nil && len(k.Before.Records) > 0:
		found.Verdict, found.Reason = verify.Mismatched, "a record under the business key was there before: it cannot be distinguished from what a create made"
		return found
	case j.Verdict == verify.Verified && was:
		found.Effect, found.Verdict = EffectPresent, verify.Vacuous
		found.Reason = "it is as declared, and was so before the write was begun"
		return found.named(j)
	case j.Verdict == verify.Verified:
		found.Effect = EffectPresent
		if k.Before == nil {
			found.Reason += "; what was there before is not known"
		}
		return found.named(j)
	case gone && conclusive(k, j):
		found.Effect = EffectAbsent
		found.Reason += ", in a read that shows all that can still land"
		return found
	case gone && slices.Contains(k.Profile.Irreversible, k.Intent.Write):
		found.Reason += "; whether it was made is unknown, as such a write leaves nothing to search for"
		return found
	}
	found.After = later(k, ended)
	if gone && found.After.IsZero() {
		found.Reason += "; the destination does not say how long a send may still land, or a read lag behind"
	} else if gone {
		found.Reason += "; it may still land, or be shown"
	}
	return found
}

// conclusive reports whether a read shows everything that can still arrive of a write that its
// caller gave up.
func conclusive(k verify.Case, j verify.Judgement) bool {
	return j.Conclusive && k.Profile.Horizon.Passed(j.AsOf) && !slices.Contains(k.Profile.Irreversible, k.Intent.Write)
}

// later returns the next moment at which another read can show more, for a write given up at
// the time ended. It is zero where none is known.
func later(k verify.Case, ended time.Time) time.Time {
	settle, settles := k.Profile.Settle.Declared()
	horizon, ends := k.Profile.Horizon.Declared()
	if k.Seen.Strength == connectors.Strong {
		settle, settles = 0, true
	}
	if !settles {
		return time.Time{}
	}
	for _, in := range []time.Duration{settle, settle + horizon} {
		if k.Since < in {
			return ended.Add(in)
		}
		if !ends {
			break
		}
	}
	return time.Time{}
}

// fulfilled reports whether an observation, taken at face value, is as declared.
func fulfilled(k verify.Case, seen connectors.Observation) bool {
	k.Before, k.Seen, k.Since = nil, seen, 0
	k.Seen.Strength = connectors.Strong
	return verify.Judge(k).Verdict == verify.Verified
}

func (found ReadResult) judged(j verify.Judgement, s *redact.Scope) ReadResult {
	found.Verdict, found.Reason, found.Mismatches = j.Verdict, j.Reason, differences(s, j.Mismatches)
	return found
}

// named adds the destination's own names of the one matching record.
func (found ReadResult) named(j verify.Judgement) ReadResult {
	found.Mismatches = nil
	if j.Record != nil {
		found.Ref, found.URL = j.Record.Ref, j.Record.URL
	}
	return found
}
