package workflow

import (
	"errors"

	"github.com/readback-go/readback/intent"
)

// Redaction keeps sensitive values out of what the gate tells. What it keeps is
// for the store to seal: a step's input and output come back from there as they
// were, since rules and callers need them so.
type Redaction interface {
	// Tells reports whether a name, which is kept and shown as it is, tells a
	// sensitive value.
	Tells(tenant, name string) bool
	// Clean takes sensitive values out of what v points to: those that intents
	// mark, and what looks sensitive by itself.
	Clean(tenant string, v any, of ...intent.WriteIntent)
}

// clean takes out of what v points to what nobody may see who is told of steps.
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

// cleanAnswer is clean for an answer of the gate. The output that a caller gave
// and asks for stays as it is: it goes on with it.
func (o *Options) cleanAnswer(tenant string, r *GateResponse, s step) {
	given := r.RetryContext.PriorOutput
	o.clean(tenant, r, s)
	r.RetryContext.PriorOutput = given
}

// told is a refusal as it may be told.
func (o *Options) told(tenant string, err error) error {
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

// named refuses names that tell a sensitive value: workflows, steps and
// operations are found by them.
func (o *Options) named(c Caller, names ...string) error {
	for i := 0; o.Redaction != nil && i+1 < len(names); i += 2 {
		if names[i+1] != "" && o.Redaction.Tells(c.Tenant, names[i+1]) {
			return badRequest(names[i], "tells a sensitive value, and is kept in the clear; want a name that does not, such as a random one")
		}
	}
	return nil
}
