package gate

import (
	"cmp"
	"context"
	"slices"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// traced adds the caller's trace context to a plan: to each decision that it adds, each event
// that it makes, and the write that it reserves. Without a trace context the plan is unchanged.
func (p plan) traced(ctx context.Context, d documents) plan {
	if p.reserve != nil {
		r := *p.reserve
		r.Record.Trace = engine.Traceparent(ctx)
		r.Record.CorrelationID = cmp.Or(r.Record.CorrelationID, d.flow.TraceID, engine.TraceID(ctx))
		p.reserve = &r
	}
	by := engine.Traceparent(ctx)
	if by == "" {
		return p
	}
	if p.step != nil {
		s := p.step.traced(by, d)
		p.step = &s
	}
	if d.rec != nil {
		p.events = eventsIn(by, *d.rec, p.events)
	}
	p.ended = slices.Clone(p.ended)
	for i, e := range p.ended {
		p.ended[i].events = eventsIn(by, e.rec, e.events)
	}
	return p
}

// traced adds the trace context to the step's newest decisions.
func (s step) traced(by string, d documents) step {
	s.Reports, s.Gated = slices.Clone(s.Reports), slices.Clone(s.Gated)
	for i := min(len(d.step.Reports), len(s.Reports)); i < len(s.Reports); i++ { // append-only
		s.Reports[i].Trace = by
	}
	if n := len(s.Gated); n > 0 && s.Gated[n-1].At.Equal(d.now) {
		s.Gated[n-1].Trace = by
	}
	return s
}

// eventsIn adds the trace context to a write's events, if it is not the write's own.
func eventsIn(by string, rec ledger.Record, events []ledger.Event) []ledger.Event {
	if by == rec.Trace {
		return events
	}
	events = slices.Clone(events)
	for i := range events {
		events[i].Trace = by
	}
	return events
}

// ruleNames are the rules that a decision is based on.
func ruleNames(matched []PolicyMatch) (names []string) {
	for _, m := range matched {
		names = append(names, m.PolicyID)
	}
	return names
}
