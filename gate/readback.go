package gate

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
	"github.com/readback-go/readback/internal/visible"
)

const (
	// readFor bounds one read of a destination: the caller of the gate waits. An engine waits ten
	// seconds for lag.
	readFor = 12 * time.Second
	// readAgain is how long a result serves other gates of the step, so that many concurrent
	// requests cost the destination one read.
	readAgain = 2 * time.Second
	// askAgain is when to ask again if a read returned no time.
	askAgain = 5 * time.Second
)

// readRequest asks for a read of the destination of a step.
type readRequest struct {
	intent intent.WriteIntent
	about  engine.ReadBackCase
	// fence and digest identify the attempt: a read for another attempt does not apply.
	fence  int64
	digest string
	at     time.Time // on the ledger's clock, before the read
	// done reports that the caller reports the attempt as done: it has ended.
	done bool
}

// readBack is the result of a readRequest.
type readBack struct {
	readRequest
	engine.ReadResult
	failed bool
}

// readShared reads a destination. Concurrent callers with the same request share one read, which
// outlives its first caller. It fails only when ctx ends.
func (g *Gate) readShared(ctx context.Context, l readRequest) (*readBack, error) {
	w := l.intent
	name := strings.Join([]string{w.Tenant, w.Workflow, w.Step, l.digest, strconv.FormatInt(l.fence, 10), strconv.FormatBool(l.done)}, "\x00")
	shared := g.reads.DoChan(name, func() (any, error) { return g.readOnce(context.WithoutCancel(ctx), l), nil })
	select {
	case r := <-shared:
		return r.Val.(*readBack), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readOnce makes one read. A failure is a result too: unknown.
func (g *Gate) readOnce(ctx context.Context, l readRequest) *readBack {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	found, err := g.guarded(ctx, l)
	if err != nil {
		o, why := g.options(), err.Error()
		if o.Redaction != nil {
			o.Redaction.Clean(l.intent.Tenant, &why, l.intent)
		}
		o.Logger.WarnContext(ctx, "a destination could not be read", "tenant", l.intent.Tenant,
			"workflow", l.intent.Workflow, "step", l.intent.Step, "destination", l.intent.Destination, "error", why)
		found = engine.ReadResult{Reason: "the destination could not be read"}
	}
	return &readBack{readRequest: l, ReadResult: found, failed: err != nil}
}

// guarded keeps a read that panics from ending the process.
func (g *Gate) guarded(ctx context.Context, l readRequest) (found engine.ReadResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the read panicked: %v", p)
		}
	}()
	return g.options().Reader.ReadBack(ctx, l.intent, l.about)
}

// readAt is the read that a step needs, given its attempts.
func (s step) readAt(w intent.WriteIntent, ended, now time.Time) *readRequest {
	l := &readRequest{intent: w, fence: s.Lent.Fence, digest: s.Asked.IntentDigest, at: now}
	if s.Lent.Fence > 0 {
		l.about = engine.ReadBackCase{Began: s.Lent.First, Ended: ended, Before: s.Before}
	}
	return l
}

// fits reports whether the read was made for the current attempt.
func (l *readBack) fits(s step) bool {
	return l != nil && l.fence == s.Lent.Fence && l.digest == s.Asked.IntentDigest
}

// fresh reports whether the result is still recent enough.
func (f *attemptRead) fresh(s step, now time.Time) bool {
	if f == nil || f.Fence != s.Lent.Fence {
		return false
	}
	return now.Sub(f.CheckedAt) < readAgain || f.AskAfter != nil && now.Before(*f.AskAfter)
}

const (
	effectUnknown = "unknown"
	effectPresent = string(engine.EffectPresent)
	effectAbsent  = string(engine.EffectAbsent)
)

// verification is the result of a read, for a step whose lease runs until a given time. While
// another caller may be carrying the step out, an absent effect may still appear.
func (l *readBack) verification(until, now time.Time) Verification {
	v := Verification{
		Effect: effectUnknown, Verdict: l.Verdict.String(), Reason: visible.Clip(l.Reason, maxPolicyText),
		WriteID: string(l.Write), NotChecked: l.NotChecked, CheckedAt: l.at,
	}
	if visible.IsRef(l.Ref) {
		v.RecordRef = l.Ref
	}
	if visible.IsURL(l.URL) {
		v.RecordURL = l.URL
	}
	// Agents see it. The event of the read keeps the evidence for reviewers.
	v.Mismatches = keepable(engine.WithoutEvidence(l.Verdict, l.Mismatches), maxMismatches)
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
		v.Reason = "not there yet, and the caller with the lease may be carrying the step out"
	}
	if !after.After(now) {
		after = now.Add(askAgain)
	}
	v.AskAfter = &after
	return v
}

// kept is the part of an observation that is stored for later comparison.
func (l *readBack) kept() json.RawMessage { return keepable(l.Seen, maxSeen) }

// keepable is JSON that fits in a document, or nothing.
func keepable(raw json.RawMessage, most int) json.RawMessage {
	if len(raw) == 0 || len(raw) > most || !json.Valid(raw) || !utf8.Valid(raw) {
		return nil
	}
	return raw
}
