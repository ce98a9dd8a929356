package saga

import "github.com/readback-go/readback/intent"

// Redaction removes sensitive values from sagas that are returned. The store seals plans.
type Redaction interface {
	// Clean removes sensitive values from what v points to: those that intents mark, and those
	// that a pattern matches.
	Clean(tenant string, v any, of ...intent.WriteIntent)
}

// cleaned is a saga without sensitive values in the texts of reviewers, destinations and the
// engine.
func (r *Runner) cleaned(tenant string, b body) body {
	if r.opts.Redaction == nil {
		return b
	}
	b = b.copy()
	var of []intent.WriteIntent
	for _, s := range b.Steps {
		if w, err := s.planned(); err == nil {
			of = append(of, w)
		}
		if w, err := s.undoing(); err == nil && w != nil {
			of = append(of, *w)
		}
	}
	texts := []*string{&b.Reason}
	for _, t := range []**Decision{&b.Back, &b.Stopped, &b.Closed} {
		if *t != nil {
			one := **t
			*t = &one
			texts = append(texts, &one.Reason)
		}
	}
	for i := range b.Steps {
		if s := &b.Steps[i]; s.Blocked != nil {
			one := *s.Blocked
			s.Blocked = &one
			texts = append(texts, &one.Reason)
		}
	}
	r.opts.Redaction.Clean(tenant, &texts, of...)
	return b
}

// errorText is the text of an error about a tenant's saga, redacted.
func (r *Runner) errorText(tenant string, b body, why error) string {
	b.Reason = why.Error()
	return r.cleaned(tenant, b).Reason
}
