package engine

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// The parts of a stretch of work that have spans of their own.
const (
	spanReserve  = "reserve"
	spanApproval = "approval"
	spanSend     = "send"
	spanRead     = "read"
	spanDecide   = "decide"
)

// part begins the span of a part of the work that a context belongs to.
func (e *Engine) part(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	if e.tracer == nil {
		return ctx, nil
	}
	if kind == trace.SpanKindClient {
		return e.tracer.start(ctx, name, asClient)
	}
	return e.tracer.start(ctx, name, asInternal)
}

// What spans are, made once: a write has half a dozen of them.
var (
	asClient   = trace.WithSpanKind(trace.SpanKindClient)
	asInternal = trace.WithSpanKind(trace.SpanKindInternal)
)

// reserve takes the structural key of a write.
func (e *Engine) reserve(ctx context.Context, l life, res ledger.Reservation) (ledger.Record, bool, error) {
	_, span := e.part(l.hard, spanReserve, trace.SpanKindInternal)
	defer finish(span, "panic", func() []attribute.KeyValue { return nil }) // unless it has ended
	asked := time.Now()
	rec, fresh, err := e.ledger.Reserve(ctx, res)
	e.clock.hear(rec.Now, asked)
	if span == nil {
		return rec, fresh, err
	}
	finish(span, errorType(err), func() []attribute.KeyValue {
		return []attribute.KeyValue{attribute.Bool("readback.replayed", err == nil && !fresh)}
	})
	switch {
	case err == nil && !fresh:
		l.stretch.replay(rec)
	case err == nil && rec.State == ledger.Held:
		e.approvals(l, rec, res.Events)
	}
	return rec, fresh, err
}

// approvalWords say what an event means for a write that is not sent before
// people have approved it.
var approvalWords = map[ledger.EventKind]string{
	ledger.EvHeld: "held", ledger.EvAgreed: "agreed", ledger.EvApproved: "approved", ledger.EvOverdue: "overdue",
}

// approvals tells what became of a write that has to be approved. Who approved is
// in the ledger and not in spans.
func (e *Engine) approvals(l life, rec ledger.Record, events []ledger.Event) {
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

// fateWord is the fate of a send; the zero value is unknown.
func fateWord(f connectors.Fate) string { return orElse(string(f), "unknown") }

// reading begins the span of one read.
func (t *task) reading() (context.Context, trace.Span) {
	return t.e.part(t.life.hard, spanRead, trace.SpanKindClient)
}

// wasRead ends it.
func (t *task) wasRead(span trace.Span, j verify.Judgement, seen connectors.Observation, before bool) {
	if span == nil {
		return
	}
	if s := t.life.stretch; s != nil && s.rec.ID == t.rec.ID {
		s.looked = true
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

// decide asks what follows from a verdict.
func (t *task) decide(c policies.Case) policies.Decision {
	return t.decided(c, func() policies.Decision { return policies.Decide(c, t.e.opts.Policies) })
}

func (t *task) decided(c policies.Case, decide func() policies.Decision) policies.Decision {
	_, span := t.e.part(t.life.hard, spanDecide, trace.SpanKindInternal)
	d := decide()
	if span != nil {
		finish(span, "", func() []attribute.KeyValue {
			return withText(nil, "readback.verdict", c.Verdict.String(), "readback.decision", d.Kind.String(), "readback.rule", d.Rule)
		})
	}
	return d
}
