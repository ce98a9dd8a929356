package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// scope names what makes the spans.
const scope = "github.com/readback-go/readback/engine"

// The stages of a write, as the attribute readback.stage has them: a write that
// is not done in one go has a span execute_tool for each time that it is taken up,
// all in one trace.
const (
	stageNew      = "new"      // asked for, and reserved
	stageReplay   = "replay"   // asked for again: another call has it, or had it
	stageResumed  = "resumed"  // taken up again, here or after another process
	stageDecision = "decision" // a person decided
	stageExpiry   = "expiry"   // nobody decided in time
	stageReview   = "review"   // looked at while a person has it
	stageRecheck  = "recheck"  // settled, and looked at again
)

// Traceparent is the trace context of a context as W3C writes it, "" where it has
// none. It is what [ledger.Record.Trace] keeps; a tracestate is nobody's business
// but its sender's.
func Traceparent(ctx context.Context) string { return traceparent(trace.SpanContextFromContext(ctx)) }

// TraceID is the id of the trace that a context is in, as 32 hex digits; "" where
// it is in none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String()
	}
	return ""
}

// WithTraceparent returns a context whose calls belong to a trace, as a caller of
// another process wrote it. What is malformed is ignored, as W3C asks.
func WithTraceparent(ctx context.Context, text string) context.Context {
	if sc := parseTrace(text); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// InTrace returns a context whose calls belong to that trace alone, or to none
// where there is no such trace: for whoever carries on what was begun in a call of
// somebody else.
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

// causedBy is the trace context of a call that changes a write which was asked for
// in another one, "" where it is the write's own.
func causedBy(by trace.SpanContext, rec ledger.Record) string {
	if text := traceparent(by); text != rec.Trace {
		return text
	}
	return ""
}

// stageOf is the stage of a write that is taken up.
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

// tracer tells what the engine does; nil tells nothing. Whatever it is given to
// tell it to, and however that fails, the write goes on as it would.
type tracer struct {
	spans  trace.Tracer
	events log.Logger // nil: verdicts are in spans alone
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

// quietly keeps what panics in somebody's telemetry from the write.
func quietly(tell func()) {
	defer func() { _ = recover() }()
	tell()
}

// start begins a span; the nil span tells nothing. The context carries it, and
// nothing else of what the tracer gives back.
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

// finish ends a span with what came of it; wrong is its error.type, "" for none.
// The attributes are asked for only where somebody records them.
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

// NewTrace returns a context in a trace of its own, whose root is a span of that name, for
// what begins all writes of a workflow, such as a saga. It returns ctx where that is in a
// trace already, and where the engine has no tracer.
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

// stretch is one time that a write was worked on here, or asked for: its span
// execute_tool. A nil one tells nothing.
type stretch struct {
	e        *Engine
	ctx      context.Context
	span     trace.Span
	rec      ledger.Record // as last committed
	out      *Outcome      // what a caller was told who had no part in it
	replayed bool
	looked   bool
	over     bool
	err      error
}

// stretch begins one. The life that it returns is that of the work in it: calls of
// destinations carry its trace, also where nobody records it. A write that came
// with no trace gets the one that begins here.
func (e *Engine) stretch(l life, rec *ledger.Record, stage string, by ...trace.SpanContext) (life, *stretch) {
	parent, fresh := l.from, false
	switch {
	case l.stretch != nil: // of a write that this one undoes
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
	o := []trace.SpanStartOption{asInternal, trace.WithAttributes(named(*rec, stage)...)}
	if fresh {
		o = append(o, trace.WithNewRoot())
	}
	for _, sc := range by {
		if sc.IsValid() {
			o = append(o, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
	}
	s := &stretch{e: e}
	s.ctx, s.span = e.tracer.start(trace.ContextWithSpanContext(l.hard, parent), "execute_tool "+clipped(rec.Tool), o...)
	if rec.Trace == "" && rec.ID != "" {
		rec.Trace = Traceparent(s.ctx)
	}
	s.rec, l.hard, l.stretch = *rec, s.ctx, s
	return l, s
}

// done says how the work in it ended, and returns the error.
func (s *stretch) done(err error) error {
	if s != nil {
		s.over, s.err = true, err
	}
	return err
}

// told says what a caller was told who has no part in the work, and returns the
// error.
func (s *stretch) told(out Outcome, err error) error {
	if s != nil && err == nil {
		s.out, s.replayed = &out, out.Replayed
	}
	return s.done(err)
}

// turnedAway tells of a call of which nothing was recorded, and returns why.
func (e *Engine) turnedAway(ctx context.Context, w intent.WriteIntent, why error) error {
	if e.tracer == nil {
		return why
	}
	rec := e.unnamed(w)
	_, s := e.stretch(e.lifeFor(ctx), &rec, stageNew)
	defer s.end()
	return s.done(why)
}

// lifeFor is the life of work for a caller, in its trace.
func (e *Engine) lifeFor(ctx context.Context) life {
	l := e.life()
	l.from = trace.SpanContextFromContext(ctx)
	return l
}

// adopted is the write as a commit left it.
func (s *stretch) adopted(rec ledger.Record) {
	if s != nil && s.rec.ID == rec.ID {
		s.rec = rec
	}
}

// replay says that another call has the write, or had it.
func (s *stretch) replay(rec ledger.Record) {
	if s == nil {
		return
	}
	s.rec, s.replayed = rec, true
	quietly(func() { s.span.SetAttributes(attribute.String("readback.stage", stageReplay)) })
	if first := parseTrace(rec.Trace); first.IsValid() && first.TraceID() != trace.SpanContextFromContext(s.ctx).TraceID() {
		quietly(func() { s.span.AddLink(trace.Link{SpanContext: first}) })
	}
}

// end ends it; to be deferred. Work that panicked has not said how it ended.
func (s *stretch) end() {
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
	finish(s.span, wrong, s.ended)
	if s.err == nil && s.over && s.looked && (ended(s.rec) || unverified(s.rec)) {
		s.evaluated()
	}
}

// wrongly are the outcomes by which a tool did not do what it was called for.
var wrongly = map[Status]string{
	StatusNotApplied: string(StatusNotApplied), StatusDenied: string(StatusDenied), StatusExpired: string(StatusExpired),
}

// statusRefused is what an intent becomes that was not recorded.
const statusRefused Status = "refused"

func (s *stretch) status() Status {
	switch {
	case s.out != nil:
		return s.out.Status
	case s.rec.State == "" && s.err != nil:
		return statusRefused
	}
	return statusOf(s.rec)
}

func (s *stretch) ended() []attribute.KeyValue {
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

// content is what was asked for and what came of it, where whoever runs this wants
// it in spans: as the ledger has it, with digests in the place of what is sensitive.
func (s *stretch) content() []attribute.KeyValue {
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

// fitting is a document for a span; of one that is too large the digest.
func fitting(text json.RawMessage) string {
	if len(text) > maxContent {
		sum := sha256.Sum256(text)
		text = encoded(map[string]any{"too_large": len(text), "sha256": hex.EncodeToString(sum[:])})
	}
	return string(redact.Shown(text))
}

// evaluated tells the verdict as an event of its own, parented to the span. The
// sentence that explains it can hold what was read, and is content.
func (s *stretch) evaluated() {
	if s.e.tracer.events == nil || s.rec.Verdict == "" {
		return
	}
	quietly(func() {
		var r log.Record
		r.SetEventName("gen_ai.evaluation.result")
		r.SetSeverity(log.SeverityInfo)
		r.AddAttributes(withText(nil, "gen_ai.evaluation.name", "readback.verdict", "gen_ai.evaluation.score.label", s.rec.Verdict,
			"readback.write.id", string(s.rec.ID), "readback.status", string(s.status()), "readback.rule", s.rec.Rule)...)
		if s.e.opts.TraceContent {
			r.AddAttributes(attribute.String("gen_ai.evaluation.explanation", redact.ShownText(s.rec.Reason)))
		}
		s.e.tracer.events.Emit(s.ctx, r)
	})
}

// named are the attributes by which spans of a write are found.
func named(r ledger.Record, stage string) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 11), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", clipped(r.Tool)), attribute.String("readback.stage", stage))
	return withText(all, "readback.write.id", string(r.ID), "readback.tenant", r.Tenant, "readback.workflow", r.Workflow, "readback.step", r.Step,
		"readback.destination", r.Destination, "readback.kind", r.Kind, "readback.correlation_id", r.CorrelationID, "readback.undoes", string(r.Parent))
}

// withText adds attributes, name after name with its value, but for empty ones.
func withText(all []attribute.KeyValue, pairs ...string) []attribute.KeyValue {
	all = slices.Grow(all, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, attribute.String(pairs[i], clipped(pairs[i+1])))
		}
	}
	return all
}

// clipped is a name as spans carry it.
func clipped(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxAttribute)], "") }

// errorTypes are the few words for what can go wrong, in the order in which they
// are looked for.
var errorTypes = []struct {
	is   error
	word string
}{
	{ledger.ErrDigestMismatch, "digest_mismatch"}, {ledger.ErrBlocked, "blocked"}, {ledger.ErrFull, "full"},
	{ledger.ErrFenced, "fenced"}, {ledger.ErrExpired, "expired"}, {ledger.ErrCorrupt, "corrupt"}, {ledger.ErrUnavailable, "ledger_unavailable"},
	{ErrForbidden, "forbidden"}, {ErrChanged, "changed"}, {ErrNotWaiting, "not_waiting"}, {ErrBusy, "busy"}, {ErrClosed, "closed"},
	{intent.ErrInvalid, "invalid"}, {connectors.ErrUnknownDestination, "unknown_destination"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

// errorType is the word for an error: of few, and never what it says.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.is) {
			return t.word
		}
	}
	return "_OTHER" // what OpenTelemetry has for all else
}
