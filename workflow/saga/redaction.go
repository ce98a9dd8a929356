package saga

import "github.com/readback-go/readback/intent"

// Redaction keeps sensitive values out of what is told of sagas. Plans are for the
// store to seal.
type Redaction interface {
	// Clean takes sensitive values out of what v points to: those that intents
	// mark, and what looks sensitive by itself.
	Clean(tenant string, v any, of ...intent.WriteIntent)
}

// cleaned is a saga without sensitive values in the sentences that people,
// destinations and the engine said about it.
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
	for _, t := range []**Turn{&b.Back, &b.Stopped, &b.Closed} {
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

// said is what an error says of a saga of a tenant, without sensitive values.
func (r *Runner) said(tenant string, b body, why error) string {
	b.Reason = why.Error()
	return r.cleaned(tenant, b).Reason
}
