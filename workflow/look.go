package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// looking asks for a look at the destination of a step.
type looking struct {
	intent intent.WriteIntent
	about  engine.LookCase
	// fence and digest say for which attempt at what it is: a look for another
	// one says nothing.
	fence  int64
	digest string
	at     time.Time // on the ledger's clock, before the look
	// done says that the caller reports the attempt as done: it has ended then.
	done bool
}

// looked is what came of it.
type looked struct {
	looking
	engine.Looked
	failed bool
}

// look reads a destination. Whoever asks for the same at once shares one look,
// which outlives whoever asked first. It fails only when ctx ends.
func (g *Gate) look(ctx context.Context, l looking) (*looked, error) {
	w := l.intent
	name := strings.Join([]string{w.Tenant, w.Workflow, w.Step, l.digest, strconv.FormatInt(l.fence, 10), strconv.FormatBool(l.done)}, "\x00")
	shared := g.looks.DoChan(name, func() (any, error) { return g.lookOnce(context.WithoutCancel(ctx), l), nil })
	select {
	case r := <-shared:
		return r.Val.(*looked), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lookOnce is one look. A failure is a finding too: nothing is known.
func (g *Gate) lookOnce(ctx context.Context, l looking) *looked {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	found, err := g.guarded(ctx, l)
	if err != nil {
		o, why := g.options(), err.Error()
		if o.Redaction != nil {
			o.Redaction.Clean(l.intent.Tenant, &why, l.intent)
		}
		o.Logger.WarnContext(ctx, "a destination could not be looked at", "tenant", l.intent.Tenant,
			"workflow", l.intent.Workflow, "step", l.intent.Step, "destination", l.intent.Destination, "error", why)
		found = engine.Looked{Reason: "the destination could not be looked at"}
	}
	return &looked{looking: l, Looked: found, failed: err != nil}
}

// guarded keeps a look that panics from taking everybody's process with it.
func (g *Gate) guarded(ctx context.Context, l looking) (found engine.Looked, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the look panicked: %v", p)
		}
	}()
	return g.options().Look.Look(ctx, l.intent, l.about)
}

// lookAt is the look that a step needs, by how its attempts went.
func (s step) lookAt(w intent.WriteIntent, ended, now time.Time) *looking {
	l := &looking{intent: w, fence: s.Lent.Fence, digest: s.Asked.IntentDigest, at: now}
	if s.Lent.Fence > 0 {
		l.about = engine.LookCase{Began: s.Lent.First, Ended: ended, Before: s.Before}
	}
	return l
}

// fits reports whether a look was made for the attempt as it stands.
func (l *looked) fits(s step) bool {
	return l != nil && l.fence == s.Lent.Fence && l.digest == s.Asked.IntentDigest
}

// fresh reports whether what was found still serves.
func (f *found) fresh(s step, now time.Time) bool {
	if f == nil || f.Fence != s.Lent.Fence {
		return false
	}
	return now.Sub(f.CheckedAt) < lookAgain || f.AskAfter != nil && now.Before(*f.AskAfter)
}

const (
	effectUnknown = "unknown"
	effectPresent = string(engine.EffectPresent)
	effectAbsent  = string(engine.EffectAbsent)
)

// verification is what a look says, for a step whose lease runs until a time: as
// long as somebody may be carrying the step out, what is absent is not known to
// stay so.
func (l *looked) verification(until, now time.Time) Verification {
	v := Verification{
		Effect: effectUnknown, Verdict: l.Verdict.String(), Reason: cut(l.Reason), RecordRef: cut(l.Ref), RecordURL: cut(l.URL),
		WriteID: string(l.Write), NotChecked: l.NotChecked, CheckedAt: l.at,
	}
	v.Mismatches = keepable(l.Mismatches, maxMismatches)
	if l.failed {
		v.Verdict = "unavailable"
	}
	after := l.After
	switch {
	case l.Effect == engine.EffectPresent:
		v.Effect = effectPresent
		return v
	case l.Effect == engine.EffectAbsent && !l.at.Before(until):
		v.Effect = effectAbsent
		return v
	case l.Effect == engine.EffectAbsent:
		after = until
		v.Reason = "not there yet, and whoever has the lease may be carrying the step out"
	}
	if !after.After(now) {
		after = now.Add(askAgain)
	}
	v.AskAfter = &after
	return v
}

// kept is as much of an observation as is kept to be compared with.
func (l *looked) kept() json.RawMessage { return keepable(l.Seen, maxSeen) }

// keepable is JSON that can stand in a paper, or nothing.
func keepable(raw json.RawMessage, most int) json.RawMessage {
	if len(raw) == 0 || len(raw) > most || !json.Valid(raw) || !utf8.Valid(raw) {
		return nil
	}
	return raw
}
