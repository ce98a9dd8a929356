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

// Effect says whether what an intent declares is at its destination.
type Effect string

// The effects. The zero value is unknown.
const (
	EffectUnknown Effect = ""
	EffectPresent Effect = "present"
	EffectAbsent  Effect = "absent" // conclusively: it will not appear later either
)

// LookCase is what is known about a write that its caller makes itself.
type LookCase struct {
	// Began is the earliest time at which it can have been sent, Ended the latest
	// at which it can have been given up; an Ended before Began is now. Began is
	// zero: it was not begun, and the look is for what is there before.
	Began, Ended time.Time
	// Before is what a look before it found, as [Looked.Seen].
	Before json.RawMessage
}

// Looked is what a look at a destination found.
type Looked struct {
	Effect     Effect
	Verdict    verify.Verdict
	Reason     string
	Mismatches json.RawMessage
	Ref, URL   string
	// Seen is the observation, to be given to a later look as what was there
	// before. Nil when it could not be read or is too large to be kept.
	Seen json.RawMessage
	// Write is the write of this ledger that is about to have, or has, the
	// effect, where there is one: then the ledger answered and not a read.
	Write ledger.ID
	// NotChecked lists what of a present effect no look compares, as JSON Pointers.
	NotChecked []string
	At         time.Time
	// After is when another look can say more. Zero: never, or now.
	After time.Time
}

// Look says whether what an intent declares is at its destination, for a write
// that its caller makes itself. It sends nothing and records nothing. Where this
// ledger has a write of the intent's structural key, that answers; else the
// destination is read. No stamp of ours can be expected there: what is found is
// told by business key, count and expected fields alone. Before the write was
// begun (LookCase.Began is zero) the look is for the state before.
//
// Reads that lag are made again while that can change what they say, for ten
// seconds at the most and within ctx. What is not proven is unknown, as is what
// cannot be read; an error ([intent.ErrInvalid],
// [connectors.ErrUnknownDestination], one of the ledger's, [ErrClosed]) says
// that nothing could be looked at.
func (e *Engine) Look(ctx context.Context, w intent.WriteIntent, c LookCase) (Looked, error) {
	if err := e.Check(w); err != nil {
		return Looked{}, err
	}
	if err := e.enter(); err != nil {
		return Looked{}, err
	}
	defer e.wg.Done()
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return Looked{}, err
	}
	switch have, err := e.ledger.Get(ctx, rec.Tenant, rec.ID); {
	case err == nil:
		found := known(have, rec.Digest)
		if found.Effect == EffectPresent {
			found.NotChecked = have.NotChecked
		}
		return found, nil
	case !errors.Is(err, ledger.ErrNotFound):
		return Looked{}, err
	}
	l, err := e.newLooker(ctx, rec.ID, w, c)
	if err != nil {
		return Looked{}, err
	}
	found := l.look(ctx)
	if found.Effect == EffectPresent {
		found.NotChecked = e.notChecked(w)
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

// known is what the ledger says of a write that was made through it.
func known(r ledger.Record, digest string) Looked {
	l := Looked{Verdict: verify.ParseVerdict(r.Verdict), Mismatches: redact.Shown(r.Mismatches), Write: r.ID, At: r.Now,
		Reason: fmt.Sprintf("write %s of this ledger is %s", r.ID, r.Phase())}
	if r.Reason != "" {
		l.Reason += ": " + r.Reason
	}
	switch {
	case r.Digest != digest:
		l.Reason = fmt.Sprintf("write %s of this ledger has the same structural key and asks for something else", r.ID)
		l.Verdict, l.Mismatches = verify.Indeterminate, nil
	case r.State != ledger.Settled:
		l.After = r.Due
	case r.Settlement == ledger.Verified:
		l.Effect, l.Ref, l.URL, l.Mismatches = EffectPresent, redact.ShownText(r.Ref), redact.ShownText(r.URL), nil
	case slices.Contains([]ledger.Settlement{ledger.NotApplied, ledger.Compensated, ledger.Denied, ledger.Expired}, r.Settlement):
		l.Effect = EffectAbsent
	}
	return l
}

// looker looks at what somebody else wrote.
type looker struct {
	e       *Engine
	intent  intent.WriteIntent
	conn    connectors.Connector
	profile connectors.Profile
	c       LookCase
	before  *connectors.Observation
	seals   *redact.Scope
	// clock is the ledger's time at the moment read of this machine.
	clock, read time.Time
}

func (e *Engine) newLooker(ctx context.Context, id ledger.ID, w intent.WriteIntent, c LookCase) (*looker, error) {
	l := &looker{e: e, intent: w, c: c, clock: time.Now(), read: time.Now()}
	var err error
	if l.conn, l.profile, err = e.reg.LookupFor(w.Tenant, w.Destination, w.Kind); err != nil {
		return nil, err
	}
	// The caller's own write bears no stamp of ours, so that none can be missed.
	l.profile.Stamped, l.profile.StampsUpdates = false, false
	l.seals = e.opts.Vault.Scope(w.Tenant, string(id), l.profile.Sensitive, w.Sensitive)
	l.seals.LearnIntent(w)
	if len(c.Before) > 0 {
		l.before = new(connectors.Observation)
		if err := openInto(l.seals, c.Before, l.before); errors.Is(err, redact.ErrNoKey) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w: what was there before cannot be read: %w", intent.ErrInvalid, err)
		}
	}
	if notes, ok := e.ledger.(ledger.Notes); ok { // whose clock is that of LookCase
		_, now, err := notes.Notes(ctx, "clock")
		if err != nil {
			return nil, err
		}
		l.clock, l.read = now, time.Now()
	}
	if !c.Began.IsZero() && c.Ended.Before(c.Began) { // nobody says that it was given up
		l.c.Ended = l.clock
	}
	return l, nil
}

func (l *looker) now() time.Time { return l.clock.Add(time.Since(l.read)) }

// look looks until no later look within the bounds can say more.
func (l *looker) look(ctx context.Context) Looked {
	if l.profile.Blind {
		return Looked{At: l.now(), Reason: connectors.ErrBlind.Error()}
	}
	if alone(l.intent, l.profile) {
		return Looked{At: l.now(), Reason: "its business key names no record of its own: only a stamp of ours would, and who makes the write itself leaves none"}
	}
	most, pace, agreeing := l.now().Add(lookMost), policies.ReadPace(), 0
	for {
		found := l.once(ctx)
		if found.Effect == EffectPresent {
			agreeing++
		} else {
			agreeing = 0
		}
		unconfirmed := agreeing > 0 && agreeing < l.profile.Confirm()
		pause, goOn := l.pause(found, pace.NextBackOff(), most)
		if unconfirmed {
			pause, goOn = min(pace.NextBackOff(), l.e.opts.Patience), l.now().Before(most)
		}
		if goOn && sleep(ctx, l.e.ctx, pause) {
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

// pause is how long to wait before another look, and whether one is worth it.
// What a later look can say more may have begun while the last one was under way.
func (l *looker) pause(found Looked, step time.Duration, most time.Time) (time.Duration, bool) {
	now, until := l.now(), found.After
	if found.Verdict == verify.Unavailable { // what fails once often does not fail twice
		most = most.Add(min(l.e.opts.Patience-lookMost, 0))
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

// once reads once and says what that proves.
func (l *looker) once(ctx context.Context) Looked {
	at, began := l.now(), time.Now()
	seen, err := verify.Read(ctx, l.e.reader(l.conn, l.profile), l.profile, connectors.Query{Intent: l.intent, Stamp: l.intent.Stamp(), Ref: l.ref()})
	if err != nil {
		return Looked{Verdict: verify.Unavailable, At: at, After: at.Add(lookAgain), Reason: l.seals.Text("the destination could not be read: " + err.Error())}
	}
	k := verify.Case{Intent: l.intent, Profile: l.profile, Before: l.before, Seen: seen}
	found := Looked{At: at}
	if found.Seen, err = l.seals.SealObservation(seen); err != nil || len(found.Seen) > maxEvidence {
		found.Seen = nil
	}
	if l.c.Began.IsZero() {
		k.Before = nil
		return l.told(found.beforehand(k, l.seals))
	}
	k.Since = at.Sub(l.c.Ended) - max(began.Sub(seen.At), 0)
	return l.told(found.afterwards(k, l.c.Ended, l.seals))
}

// told is what was found as it may be told: what was seen stays sealed, to be
// given back.
func (l *looker) told(found Looked) Looked {
	found.Reason = l.seals.Text(found.Reason)
	found.Ref, found.URL = redact.ShownText(l.seals.SealName(found.Ref)), redact.ShownText(l.seals.SealName(found.URL))
	found.Mismatches = redact.Shown(found.Mismatches)
	return found
}

// ref is the record that a change was aimed at.
func (l *looker) ref() string {
	if l.intent.Write == intent.Create || l.before == nil || len(l.before.Records) != 1 {
		return ""
	}
	return l.before.Records[0].Ref
}
