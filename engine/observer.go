package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// ActivityKind says what the engine did.
type ActivityKind string

// What the engine did.
const (
	// ActivityCalled: a call of [Engine.Do] returned an Outcome or an Err after a time Took. Of
	// the record only the names count.
	ActivityCalled ActivityKind = "called"
	// ActivityRepeated: a call repeated an earlier request and got its outcome. Of the record
	// only the fields to reserve count: RequestedBy is the repeating caller.
	ActivityRepeated ActivityKind = "repeated"
	// ActivitySent: one send was made.
	ActivitySent ActivityKind = "sent"
	// ActivityRead: one read after a send was made, with a Verdict, in a time Took, with as many
	// Calls, none where it joined those of another write. Login says why its credentials were
	// refused.
	ActivityRead ActivityKind = "read"
	// ActivityShown: a read showed an effect of the write for the first time, at Took after its
	// last send. The record is as it was before the read: its LastFate says whether that send had
	// been answered.
	ActivityShown ActivityKind = "shown"
	// ActivityHeld: a guard put the write back.
	ActivityHeld ActivityKind = "held"
	// ActivityEnded: the write was settled, escalated to a reviewer, or left unverified on
	// purpose.
	ActivityEnded ActivityKind = "ended"
	// ActivityFailed: the ledger or the work on a write failed with an Err.
	ActivityFailed ActivityKind = "failed"
)

// Activity is one thing that the engine did with a write. The kind says which fields are set.
type Activity struct {
	Kind    ActivityKind
	Record  ledger.Record
	Sent    Sent
	Verdict verify.Verdict
	Login   string // without the write's sensitive values
	Hold    Hold
	Outcome Outcome
	Err     error
	Took    time.Duration
	Calls   int
}

// observe notifies the guards and the observer. A failure of either never affects a write.
func (e *Engine) observe(a Activity) {
	if e.opts.Guards != nil {
		quietly(func() { e.opts.Guards.Observe(a) })
	}
	if e.opts.Observer != nil {
		quietly(func() { e.opts.Observer(a) })
	}
}

// ErrorType returns the error.type of a call, for spans and other counters: one of a few words,
// never the text of an error, and "" where the call succeeded.
func ErrorType(o Outcome, err error) string {
	if err != nil {
		return errorType(err)
	}
	return wrongly[o.Status]
}

// scope is the instrumentation scope of the spans.
const scope = "github.com/readback-go/readback/engine"

// The stages of a write, as in the attribute readback.stage. A write that needs several runs
// has a span execute_tool for each, all in one trace.
const (
	stageNew      = "new"      // requested, and reserved
	stageReplay   = "replay"   // requested again: another call is making it, or made it
	stageResumed  = "resumed"  // taken up again, here or after another process
	stageDecision = "decision" // a reviewer decided
	stageExpiry   = "expiry"   // no decision came in time
	stageReview   = "review"   // read while in review
	stageRecheck  = "recheck"  // settled, and read again
)

// Traceparent returns the trace context of a context in W3C form, "" where it has none.
// [ledger.Record.Trace] stores it. A tracestate concerns only its sender.
func Traceparent(ctx context.Context) string { return traceparent(trace.SpanContextFromContext(ctx)) }

// TraceID returns the trace id of a context, as 32 hex digits; "" where it has none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String()
	}
	return ""
}

// WithTraceparent returns a context whose calls belong to the trace that another process's
// caller sent. A malformed value is ignored, as W3C requires.
func WithTraceparent(ctx context.Context, text string) context.Context {
	if sc := parseTrace(text); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// InTrace returns a context whose calls belong to that trace alone, or to none where there is
// no such trace. Use it to continue work that another caller began.
func InTrace(ctx context.Context, text string) context.Context {
	return trace.ContextWithSpanContext(ctx, parseTrace(text).WithRemote(true))
}

func traceparent(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}

func parseTrace(text string) trace.SpanContext {
	if text == "" || len(text) > maxTraceparent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// causedBy returns the trace context of a call that changes a write requested in another trace,
// "" where it is the write's own.
func causedBy(by trace.SpanContext, rec ledger.Record) string {
	if text := traceparent(by); text != rec.Trace {
		return text
	}
	return ""
}

// stageOf returns the stage of a write that is taken up.
func stageOf(r ledger.Record) string {
	switch {
	case lapsed(r):
		return stageExpiry
	case r.State == ledger.Settled:
		return stageRecheck
	case r.State == ledger.Review:
		return stageReview
	}
	return stageResumed
}

// tracer records what the engine does; nil records nothing. A failure of the tracing backend
// never affects a write.
type tracer struct {
	spans  trace.Tracer
	events log.Logger // nil: verdicts are in spans only
}

func newTracer(o Options) *tracer {
	if o.Tracer == nil {
		return nil
	}
	t := &tracer{}
	quietly(func() { t.spans = o.Tracer.Tracer(scope) })
	if o.Events != nil {
		quietly(func() { t.events = o.Events.Logger(scope) })
	}
	if t.spans == nil {
		return nil
	}
	return t
}

// quietly keeps panics of a telemetry backend from the write.
func quietly(notify func()) {
	defer func() { _ = recover() }()
	notify()
}

// start begins a span; the nil span records nothing. The context carries the span, and nothing
// else that the tracer returns.
func (t *tracer) start(ctx context.Context, name string, o ...trace.SpanStartOption) (with context.Context, s trace.Span) {
	if t == nil {
		return ctx, nil
	}
	with = ctx
	quietly(func() {
		_, span := t.spans.Start(ctx, name, o...)
		if span != nil {
			with, s = trace.ContextWithSpan(ctx, span), span
		}
	})
	return with, s
}

// finish ends a span with its result; wrong is its error.type, "" for none. The attributes are
// computed only where the span is recorded.
func finish(s trace.Span, wrong string, attributes func() []attribute.KeyValue) {
	if s == nil {
		return
	}
	quietly(func() {
		defer s.End()
		if !s.IsRecording() {
			return
		}
		s.SetAttributes(attributes()...)
		if wrong != "" {
			s.SetAttributes(attribute.String("error.type", wrong))
			s.SetStatus(codes.Error, wrong)
		}
	})
}

// NewTrace returns a context in a new trace, with a root span of that name, for code that
// begins all writes of a workflow, such as a saga. It returns ctx where that is in a trace
// already, or the engine has no tracer.
func (e *Engine) NewTrace(ctx context.Context, name, tenant, workflow string) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	ctx, span := e.tracer.start(ctx, name, asInternal, trace.WithNewRoot())
	finish(span, "", func() []attribute.KeyValue {
		return withText(nil, "readback.tenant", tenant, "readback.workflow", workflow)
	})
	return ctx
}

// workSpan is one span of work on a write, or one request for it: its span execute_tool. A nil
// span records nothing.
type workSpan struct {
	e        *Engine
	ctx      context.Context
	span     trace.Span
	stage    string
	began    time.Time
	options  []trace.SpanStartOption
	rec      ledger.Record // as last committed
	out      *Outcome      // the outcome returned to a caller that did none of the work
	replayed bool
	readBack bool
	over     bool
	err      error
}

// startSpan begins one. The returned lifetime is that of the work in it: calls to destinations carry
// its trace, even where it is not recorded. A write without a trace gets the one that begins
// here.
func (e *Engine) startSpan(l lifetime, rec *ledger.Record, stage string, by ...trace.SpanContext) (lifetime, *workSpan) {
	parent, fresh := l.from, false
	switch {
	case l.span != nil: // of a write that this one undoes
		parent = trace.SpanContextFromContext(l.hard)
	case !parent.IsValid():
		parent = parseTrace(rec.Trace).WithRemote(true)
		fresh = !parent.IsValid()
	}
	if e.tracer == nil {
		if parent.IsValid() || trace.SpanContextFromContext(l.hard).IsValid() {
			l.hard = trace.ContextWithSpanContext(l.hard, parent)
		}
		return l, nil
	}
	s := &workSpan{e: e, ctx: trace.ContextWithSpanContext(l.hard, parent), rec: *rec, stage: stage, began: time.Now()}
	s.options = append(make([]trace.SpanStartOption, 0, 4), asInternal, trace.WithAttributes(asTool,
		attribute.String("gen_ai.tool.name", clipped(rec.Tool)), attribute.String("readback.stage", stage)))
	for _, sc := range by {
		if sc.IsValid() {
			s.options = append(s.options, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
	}
	if fresh {
		s.start(trace.WithNewRoot())
	} else {
		s.start()
	}
	if rec.Trace == "" && rec.ID != "" {
		rec.Trace = Traceparent(s.ctx)
		s.rec.Trace = rec.Trace
	}
	l.hard, l.span = s.ctx, s
	return l, s
}

// start begins the span in s.ctx. Only a span that is recorded gets the names of the write: they
// cost more than all else of one that is not.
func (s *workSpan) start(more ...trace.SpanStartOption) {
	s.ctx, s.span = s.e.tracer.start(s.ctx, "execute_tool "+clipped(s.rec.Tool), append(s.options, more...)...)
	if s.span == nil {
		return
	}
	quietly(func() {
		if s.span.IsRecording() {
			s.span.SetAttributes(named(s.rec)...)
		}
	})
}

// asTool is made once, for all spans execute_tool.
var asTool = attribute.String("gen_ai.operation.name", "execute_tool")

// unusual marks the span of a write that a sampler left out and whose end it should reconsider:
// the program's keeps these.
var unusual = attribute.Bool("readback.unusual", true)

// reconsider begins the span again, as a child of the one that was not sampled, if the work failed
// or was unusual.
func (s *workSpan) reconsider(wrong string) {
	if wrong == "" && s.usual() || !unsampled(s.ctx) {
		return
	}
	finish(s.span, "", s.ended)
	s.start(trace.WithTimestamp(s.began), trace.WithAttributes(unusual))
}

// usual reports whether the write is as most are: no reviewer had to do with it beyond a hold, it
// is not undone and undoes nothing, and the fate of every send is known.
func (s *workSpan) usual() bool {
	if s.rec.Unknown || s.rec.Parent != "" || s.stage == stageDecision || s.stage == stageReview {
		return false
	}
	switch s.status() {
	case ledger.Verified, ledger.Reported, ledger.StatusHeld, ledger.StatusDelegated, ledger.InProgress, ledger.Unverified:
		return true
	}
	return false
}

// unsampled reports whether a context is in a trace that is not sampled.
func unsampled(ctx context.Context) bool {
	sc := trace.SpanContextFromContext(ctx)
	return sc.IsValid() && !sc.IsSampled()
}

// done records how the work ended, and returns the error.
func (s *workSpan) done(err error) error {
	if s != nil {
		s.over, s.err = true, err
	}
	return err
}

// answered records the outcome returned to a caller that did none of the work, and returns the
// error.
func (s *workSpan) answered(out Outcome, err error) error {
	if s != nil && err == nil {
		s.out, s.replayed = &out, out.Replayed
	}
	return s.done(err)
}

// rejected records a call of which nothing was stored, and returns the reason.
func (e *Engine) rejected(ctx context.Context, w intent.WriteIntent, why error) error {
	if e.tracer == nil {
		return why
	}
	rec := e.unnamed(w)
	_, s := e.startSpan(e.lifetimeFor(ctx), &rec, stageNew)
	defer s.end()
	return s.done(why)
}

// lifetimeFor returns the lifetime of work for a caller, in its trace.
func (e *Engine) lifetimeFor(ctx context.Context) lifetime {
	l := e.lifetime()
	l.from = trace.SpanContextFromContext(ctx)
	return l
}

// lifetimeOf returns the same for an in-flight call, in which no more work is begun after its
// callers have left it to a worker.
func (e *Engine) lifetimeOf(ctx context.Context, f *inFlight) lifetime {
	l := e.lifetimeFor(ctx)
	l.ending = f.ctx
	return l
}

// adopted stores the write as a commit left it.
func (s *workSpan) adopted(rec ledger.Record) {
	if s != nil && s.rec.ID == rec.ID {
		s.rec = rec
	}
}

// replay marks that another call is making the write, or made it.
func (s *workSpan) replay(rec ledger.Record) {
	if s == nil {
		return
	}
	s.rec, s.replayed = rec, true
	stage := attribute.String("readback.stage", stageReplay)
	s.options = append(s.options, trace.WithAttributes(stage))
	quietly(func() { s.span.SetAttributes(stage) })
	if first := parseTrace(rec.Trace); first.IsValid() && first.TraceID() != trace.SpanContextFromContext(s.ctx).TraceID() {
		link := trace.Link{SpanContext: first}
		s.options = append(s.options, trace.WithLinks(link))
		quietly(func() { s.span.AddLink(link) })
	}
}

// end ends the span; callers defer it. Work that panicked has not called done.
func (s *workSpan) end() {
	if s == nil {
		return
	}
	wrong := errorType(s.err)
	if !s.over {
		wrong = "panic"
	}
	if wrong == "" {
		wrong = wrongly[s.status()]
	}
	s.reconsider(wrong)
	finish(s.span, wrong, s.ended)
	if s.err == nil && s.over && s.readBack && (ended(s.rec) || unverified(s.rec)) {
		s.evaluated()
	}
}

// wrongly are the outcomes in which a tool did not do what it was called for.
var wrongly = map[ledger.Status]string{
	ledger.NotApplied: string(ledger.NotApplied), ledger.Denied: string(ledger.Denied), ledger.Expired: string(ledger.Expired),
}

// statusRefused is the status of an intent that was not recorded.
const statusRefused ledger.Status = "refused"

func (s *workSpan) status() ledger.Status {
	switch {
	case s.out != nil:
		return s.out.Status
	case s.rec.State == "" && s.err != nil:
		return statusRefused
	}
	return s.rec.Status()
}

func (s *workSpan) ended() []attribute.KeyValue {
	r := s.rec
	if s.out != nil {
		r.Verdict, r.Sends, r.Reads, r.Rule = s.out.Verdict.String(), s.out.Sends, s.out.Reads, ""
	}
	all := append(make([]attribute.KeyValue, 0, 8), attribute.String("readback.status", string(s.status())), attribute.Bool("readback.replayed", s.replayed),
		attribute.Int("readback.sends", r.Sends), attribute.Int("readback.reads", r.Reads))
	var blocked *ledger.BlockedError
	if errors.As(s.err, &blocked) {
		all = withText(all, "readback.blocked_by", string(blocked.Prior.ID))
	}
	return append(withText(all, "readback.verdict", r.Verdict, "readback.rule", r.Rule), s.content()...)
}

// content returns the request and its result, where the operator wants them in spans: as the
// ledger has them, with digests in place of sensitive values.
func (s *workSpan) content() []attribute.KeyValue {
	if !s.e.opts.TraceContent || s.rec.ID == "" {
		return nil
	}
	all := []attribute.KeyValue{attribute.String("gen_ai.tool.call.arguments", fitting(s.rec.Intent))}
	if s.err != nil {
		return all
	}
	out := s.out
	if out == nil {
		o := outcomeOf(s.rec, s.replayed)
		out = &o
	}
	return append(all, attribute.String("gen_ai.tool.call.result", fitting(encoded(out))))
}

// fitting returns a document for a span, or the digest of one that is too large.
func fitting(text json.RawMessage) string {
	if len(text) > maxContent {
		sum := sha256.Sum256(text)
		text = encoded(map[string]any{"too_large": len(text), "sha256": hex.EncodeToString(sum[:])})
	}
	return string(visible.JSON(redact.Shown(text)))
}

// evaluated emits the verdict as an event of its own, parented to the span, unless that was not
// sampled. Its explanation can hold values that were read, and is content.
func (s *workSpan) evaluated() {
	if s.e.tracer.events == nil || s.rec.Verdict == "" || unsampled(s.ctx) {
		return
	}
	quietly(func() {
		var r log.Record
		r.SetEventName("gen_ai.evaluation.result")
		r.SetSeverity(log.SeverityInfo)
		r.AddAttributes(withText(nil, "gen_ai.evaluation.name", "readback.verdict", "gen_ai.evaluation.score.label", s.rec.Verdict,
			"readback.write.id", string(s.rec.ID), "readback.status", string(s.status()), "readback.rule", s.rec.Rule)...)
		if s.e.opts.TraceContent {
			r.AddAttributes(attribute.String("gen_ai.evaluation.explanation", visible.Text(redact.ShownText(s.rec.Reason))))
		}
		s.e.tracer.events.Emit(s.ctx, r)
	})
}

// named returns the attributes by which spans of a write are found.
func named(r ledger.Record) []attribute.KeyValue {
	return withText(nil, "readback.write.id", string(r.ID), "readback.tenant", r.Tenant, "readback.workflow", r.Workflow, "readback.step", r.Step,
		"readback.destination", r.Destination, "readback.kind", r.Kind, "readback.correlation_id", r.CorrelationID, "readback.undoes", string(r.Parent))
}

// withText adds the non-empty attributes of a list of name and value pairs.
func withText(all []attribute.KeyValue, pairs ...string) []attribute.KeyValue {
	all = slices.Grow(all, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, attribute.String(pairs[i], clipped(pairs[i+1])))
		}
	}
	return all
}

// clipped returns a name as spans carry it.
func clipped(s string) string { return visible.Clip(s, maxAttribute) }

// errorTypes are the few words for errors, in the order of the checks.
var errorTypes = []struct {
	is   error
	word string
}{
	{ledger.ErrDigestMismatch, "digest_mismatch"}, {ledger.ErrBlocked, "blocked"}, {ledger.ErrFull, "full"},
	{ledger.ErrFenced, "fenced"}, {ledger.ErrExpired, "expired"}, {ledger.ErrCorrupt, "corrupt"}, {ledger.ErrUnavailable, "ledger_unavailable"},
	{ErrForbidden, "forbidden"}, {ErrChanged, "changed"}, {ErrNotWaiting, "not_waiting"}, {ErrBusy, "busy"}, {ErrClosed, "closed"}, {ErrIdentityChanged, "identity_changed"},
	{intent.ErrInvalid, "invalid"}, {connectors.ErrUnknownDestination, "unknown_destination"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

// errorType returns one of these words for an error, never its text.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.is) {
			return t.word
		}
	}
	return "_OTHER" // OpenTelemetry's word for all others
}

// The parts of the work that have their own spans.
const (
	spanReserve  = "reserve"
	spanApproval = "approval"
	spanSend     = "send"
	spanRead     = "read"
	spanDecide   = "decide"
)

// part begins the span of a part of the work that a context belongs to. Work that is not sampled
// has no spans of parts.
func (e *Engine) part(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	if e.tracer == nil || unsampled(ctx) {
		return ctx, nil
	}
	if kind == trace.SpanKindClient {
		return e.tracer.start(ctx, name, asClient)
	}
	return e.tracer.start(ctx, name, asInternal)
}

// The span options, made once: a write has half a dozen spans.
var (
	asClient   = trace.WithSpanKind(trace.SpanKindClient)
	asInternal = trace.WithSpanKind(trace.SpanKindInternal)
)

// approvalWords describe an event of a write that needs approval before it is sent.
var approvalWords = map[ledger.EventKind]string{
	ledger.EvHeld: "held", ledger.EvAgreed: "agreed", ledger.EvApproved: "approved", ledger.EvOverdue: "overdue",
}

// approvals records what became of a write that needs approval. The approvers' names are in the
// ledger and not in spans.
func (e *Engine) approvals(l lifetime, rec ledger.Record, events []ledger.Event) {
	if e.tracer == nil {
		return
	}
	for _, ev := range events {
		word := approvalWords[ev.Kind]
		if ev.Settlement == ledger.Denied || ev.Settlement == ledger.Expired {
			word = string(ev.Settlement)
		}
		if word == "" {
			continue
		}
		_, span := e.part(l.hard, spanApproval, trace.SpanKindInternal)
		finish(span, "", func() []attribute.KeyValue {
			return append(withText(nil, "readback.approval", word, "readback.rule", ev.Rule), attribute.Int("readback.approvals.missing", missing(rec)))
		})
	}
}

// sending makes the one send.
func (t *task) sending(ctx context.Context, r connectors.Request) verify.Result {
	ctx, span := t.e.part(ctx, spanSend, trace.SpanKindClient)
	res := verify.Send(ctx, t.conn, t.profile, r)
	if span == nil {
		return res
	}
	wrong := fateWord(res.Fate)
	if res.Fate == connectors.FateAnswered {
		wrong = ""
	}
	finish(span, wrong, func() []attribute.KeyValue {
		all := append(make([]attribute.KeyValue, 0, 8), attribute.Int("readback.attempt", r.Attempt),
			attribute.Bool("readback.conditional", r.Conditional), attribute.Bool("readback.conflict", res.Conflict))
		return withText(all, "readback.write.id", string(t.rec.ID), "readback.destination", t.rec.Destination, "readback.kind", t.rec.Kind, "readback.fate", fateWord(res.Fate), "readback.code", t.scope().Text(res.Code))
	})
	return res
}

// fateWord returns the fate of a send; the zero value is unknown.
func fateWord(f connectors.Fate) string { return orElse(string(f), "unknown") }

// reading begins the span of one read.
func (t *task) reading() (context.Context, trace.Span) {
	return t.e.part(t.lifetime.hard, spanRead, trace.SpanKindClient)
}

// wasRead ends the span.
func (t *task) wasRead(span trace.Span, j verify.Judgement, seen connectors.Observation, before bool) {
	if s := t.lifetime.span; s != nil && s.rec.ID == t.rec.ID {
		s.readBack = true
	}
	if span == nil {
		return
	}
	wrong := ""
	if j.Verdict == verify.Unavailable {
		wrong = j.Verdict.String()
	}
	finish(span, wrong, func() []attribute.KeyValue {
		all := append(make([]attribute.KeyValue, 0, 8), attribute.Bool("readback.before", before), attribute.Int("readback.records", len(seen.Records)),
			attribute.String("readback.strength", orElse(string(seen.Strength), "weak")))
		return withText(all, "readback.write.id", string(t.rec.ID), "readback.destination", t.rec.Destination, "readback.kind", t.rec.Kind, "readback.verdict", j.Verdict.String(), "readback.path", seen.Path)
	})
}

// decide returns what follows from a verdict.
func (t *task) decide(c policies.Case) policies.Decision {
	return t.decided(c, func() policies.Decision { return policies.Decide(c, t.e.opts.Policies) })
}

func (t *task) decided(c policies.Case, decide func() policies.Decision) policies.Decision {
	_, span := t.e.part(t.lifetime.hard, spanDecide, trace.SpanKindInternal)
	d := decide()
	if span != nil {
		finish(span, "", func() []attribute.KeyValue {
			return withText(nil, "readback.verdict", c.Verdict.String(), "readback.decision", d.Kind.String(), "readback.rule", d.Rule)
		})
	}
	return d
}
