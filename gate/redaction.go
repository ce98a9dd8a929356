package gate

import (
	"errors"

	"github.com/readback-go/readback/intent"
)

// Redaction removes sensitive values from the gate's responses. The store seals what the gate
// keeps: a step's input and output come back from it unchanged, since rules and callers need them
// so.
type Redaction interface {
	// Reveals reports whether a name, which is kept and shown as it is, contains a sensitive
	// value.
	Reveals(tenant, name string) bool
	// Clean removes sensitive values from what v points to: those that intents mark, and those
	// that a pattern matches.
	Clean(tenant string, v any, of ...intent.WriteIntent)
}

// clean removes from what v points to the values that callers may not see.
func (o *Options) clean(tenant string, v any, steps ...step) {
	if o.Redaction == nil {
		return
	}
	var of []intent.WriteIntent
	for _, s := range steps {
		for _, a := range append([]asked{s.Asked}, s.Earlier...) {
			if w := a.declared(); w != nil {
				of = append(of, *w)
			}
		}
	}
	o.Redaction.Clean(tenant, v, of...)
}

// cleanAnswer is clean for an answer of the gate. An output that the caller gave and asks for is
// unchanged: the caller continues with it.
func (o *Options) cleanAnswer(tenant string, r *GateResponse, s step) {
	given := r.RetryContext.PriorOutput
	o.clean(tenant, r, s)
	r.RetryContext.PriorOutput = given
}

// redacted is a refusal that may be returned.
func (o *Options) redacted(tenant string, err error) error {
	var e *Error
	if o.Redaction == nil || !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Err = nil // the cause is for the log, and others may hold it
	o.clean(tenant, &clean)
	clean.Err = e.Err
	return &clean
}

// named refuses names that contain a sensitive value, because workflows, steps and operations are
// found by their names.
func (o *Options) named(c Caller, names ...string) error {
	for i := 0; o.Redaction != nil && i+1 < len(names); i += 2 {
		if names[i+1] != "" && o.Redaction.Reveals(c.Tenant, names[i+1]) {
			return badRequest(names[i], "contains a sensitive value, and is stored in the clear; want a name that does not, such as a random one")
		}
	}
	return nil
}
