package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/elapsed"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// task is one write while this process works on it. Events are applied to rec at once and kept
// in pending until the next commit. Uncommitted events are lost with the process, and the
// ledger's state then leads to a read.
type task struct {
	e        *Engine
	lifetime lifetime
	rec      ledger.Record
	intent   intent.WriteIntent
	stamp    string // of the intent
	conn     connectors.Connector
	profile  connectors.Profile
	before   *connectors.Observation
	restore  ledger.Restore // the last one
	// seals seals and opens for the write; prepared is what is sent. Both intent and before are
	// in the clear.
	seals    *redact.Scope
	prepared []byte

	// committed is what the ledger has; rec is that after pending.
	committed phase
	pending   []ledger.Event
	at        []time.Time // when each of pending was noted
	// clock is the ledger's time at the moment read, on this machine's monotonic clock. leased
	// is the earliest time at which the lease may have been extended last.
	clock, read, leased time.Time

	// mine says that this task made the present announcement and therefore makes the send. It
	// is never true after a crash.
	mine      bool
	seen      connectors.Observation
	judged    verify.Judgement
	agreeing  int
	pace      backoff.BackOff
	startRead readRequest

	// leave gives back what a guard permitted at the time entered; hold is why it did not.
	leave   func(Sent)
	entered time.Time
	hold    *Hold
}

// lifetime bounds how long work may continue.
type lifetime struct {
	ending context.Context   // after it nothing is begun, and no pause is waited out
	hard   context.Context   // after it calls to destinations are cut off
	from   trace.SpanContext // the caller's
	span   *workSpan         // its span is in hard; nil: not traced
}

// lifetime returns the lifetime of work for callers: it ends with the engine, which waits for the
// calls in progress.
func (e *Engine) lifetime() lifetime {
	return lifetime{ending: e.ctx, hard: context.WithoutCancel(e.ctx)}
}

// log returns a logger whose entries name their write.
func (t *task) log() *slog.Logger { return t.e.log(t.rec) }

func (e *Engine) log(r ledger.Record) *slog.Logger {
	return e.opts.Logger.With("write", r.ID, "correlation", r.CorrelationID, "tenant", r.Tenant, "destination", r.Destination)
}

// newTask prepares to work on a record that this process has leased since its claim at the time
// claimed.
func (e *Engine) newTask(rec ledger.Record, claimed time.Time, l lifetime) (*task, error) {
	stored, err := e.open(rec)
	if err != nil {
		return nil, err
	}
	t := &task{e: e, lifetime: l, intent: stored.intent, stamp: stored.intent.Stamp(), before: stored.before, seals: stored.seals, prepared: stored.prepared}
	if t.conn, t.profile, err = e.reg.LookupFor(rec.Tenant, t.intent.Destination, t.intent.Kind); err != nil {
		return nil, err
	}
	if t.restore, err = e.restored(); err != nil {
		return nil, err
	}
	t.adopt(rec, claimed)
	t.startRead = readingOf(rec)
	return t, nil
}

// storedWrite is what a record stores of its write, in the clear.
type storedWrite struct {
	intent   intent.WriteIntent
	before   *connectors.Observation // nil when no pre-state was read
	prepared []byte
	seals    *redact.Scope
}

// adopt takes over the record as the ledger returned it to a call made at the time asked: the
// lease may have begun as early as that.
func (t *task) adopt(rec ledger.Record, asked time.Time) {
	t.rec, t.committed, t.pending, t.at = rec, phaseOf(rec), nil, nil
	t.clock, t.read, t.leased = rec.Now, time.Now(), asked
	t.lifetime.span.adopted(rec)
}

// now returns the time on the ledger's clock.
func (t *task) now() time.Time { return t.ledgerTime(time.Now()) }

// ledgerTime returns what the ledger's clock shows at a time of this machine.
func (t *task) ledgerTime(at time.Time) time.Time { return t.clock.Add(at.Sub(t.read)) }

// sinceSend returns how long ago the last send ended at least, by this process's own count. It
// is never negative: a clock that stepped only makes us wait longer.
func (t *task) sinceSend() time.Duration { return t.e.clock.sinceSend(t.rec, t.now()) }

// sinceByClock returns the same by the ledger's clock, which schedules rechecks: they conclude
// nothing from elapsed time.
func (t *task) sinceByClock() time.Duration { return max(t.now().Sub(t.rec.LastSend), 0) }

// note applies an event now and keeps it for the next commit. Consecutive reads with the same
// result are one event.
func (t *task) note(ev ledger.Event) error {
	ev.By = orElse(ev.By, t.e.opts.Owner)
	ev = t.sealed(ev)
	now, n := time.Now(), len(t.pending)
	rec, err := ledger.Apply(t.rec, ev, t.ledgerTime(now))
	if err != nil {
		return err
	}
	if n > 0 && sameRead(t.pending[n-1], ev) {
		n--
		ev = together(t.pending[n], ev)
	}
	if t.pending == nil { // sent, read and settled
		t.pending, t.at = make([]ledger.Event, 0, 3), make([]time.Time, 0, 3)
	}
	t.rec, t.pending, t.at = rec, append(t.pending[:n], ev), append(t.at[:n], now)
	return nil
}

// sameRead reports whether two reads can be one event: they change a record alike.
func sameRead(a, b ledger.Event) bool {
	return a.Kind == ledger.EvRead && b.Kind == ledger.EvRead && !a.Before && !b.Before &&
		a.Verdict == b.Verdict && a.Effect == b.Effect && a.Unproven == b.Unproven
}

// together returns the event of both reads.
func together(earlier, later ledger.Event) ledger.Event {
	if earlier.Calls > 0 || later.Calls > 0 {
		later.Calls = earlier.ReadCalls() + later.ReadCalls()
	}
	later.Count = max(earlier.Count, 1) + 1
	return later
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
	was := t.committed
	t.e.clock.record(rec.Now, asked)
	t.adopt(rec, asked)
	t.e.approvals(t.lifetime, rec, made)
	t.countEnded(was)
	return nil
}

// phase is what decides whether a commit ended a write.
type phase struct {
	state      ledger.State
	unverified bool
}

func phaseOf(r ledger.Record) phase { return phase{r.State, unverified(r)} }

// countEnded counts a write that a commit settled, escalated to a reviewer, or left unverified.
func (t *task) countEnded(was phase) {
	now := t.committed
	over := now.state == ledger.Settled || now.state == ledger.Review
	if over && was.state != now.state || now.unverified && !was.unverified {
		t.e.observe(Activity{Kind: ActivityEnded, Record: t.rec})
	}
}

// drain returns the pending events with the time that passed since each. A commit that fails ends
// the work on the task, so the ledger may keep them.
func (t *task) drain() []ledger.Event {
	for i, at := range t.at {
		t.pending[i].Ago = time.Since(at)
	}
	return t.pending
}

// lost handles a commit that failed. When another worker took the write over, this task's
// results are kept as evidence.
func (t *task) lost(ctx context.Context, err error) error {
	failure := &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	if !errors.Is(err, ledger.ErrFenced) {
		return failure
	}
	t.log().Warn("the lease was lost: another worker has taken the write over", "lease", t.rec.LeaseFor, "held", time.Since(t.leased))
	t.e.observe(Activity{Kind: ActivityFailed, Record: t.rec, Err: err})
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

// budget returns how many sends of one write may reach a destination.
func budget(all int, p connectors.Profile) int {
	if p.Sends > 0 {
		return p.Sends
	}
	return all
}

// caseOf returns the part of a decision's case that comes from the record at a time, without
// the reads.
func caseOf(r ledger.Record, w intent.WriteIntent, p connectors.Profile, now time.Time, counted *Clock) policies.Case {
	c := policies.CaseOf(r, w, p, now, counted.sinceSend(r, now), counted.atLeast(r.KeySend, now))
	c.SinceByClock = counted.byClock(r.LastSend, now)
	return c
}

// late reports whether the intent's deadline has passed.
func (t *task) late() bool { return policies.Late(t.intent, t.now()) }

// leaseFor returns the minimum lease on this record: longer than a send, a read and a pause
// together.
func (e *Engine) leaseFor(rec ledger.Record) time.Duration {
	return e.lease(e.profileOf(rec))
}

// lease returns how long a lease on writes to such a destination lasts.
func (e *Engine) lease(p connectors.Profile) time.Duration {
	return p.SendFor() + p.ReadFor() + e.opts.Patience + e.opts.Slack
}

// tooLarge reports whether evidence is only the digest of an observation.
func tooLarge(text json.RawMessage) bool {
	var cut struct {
		TooLarge int `json:"too_large"`
	}
	return json.Unmarshal(text, &cut) == nil && cut.TooLarge > 0
}

// encoded returns a value as JSON, or nil for nil.
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

// decodeExact decodes the output of encoded; [intent.Fields] keep numbers exact by themselves.
func decodeExact(text []byte, into any) error { return json.Unmarshal(text, into) }

// Clock counts time in this process, beside a ledger's clock. The zero value has counted nothing yet.
type Clock struct {
	mu      sync.Mutex
	counted elapsed.Clock
}

// record keeps what the ledger's clock showed in a call that began at asked and has just ended.
func (c *Clock) record(now, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Read(now, asked, time.Now())
}

// byClock returns the time since the ledger's clock showed a moment, by that clock, without the
// forward steps that this process knows of.
func (c *Clock) byClock(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.ByClock(moment, now)
}

// sinceSend returns how much time has certainly passed since the last send of a write ended.
func (c *Clock) sinceSend(r ledger.Record, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.SinceSend(r, now, time.Now())
}

// atLeast returns how much time can have passed since the ledger's clock showed a moment.
func (c *Clock) atLeast(moment, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.AtLeast(moment, now)
}
