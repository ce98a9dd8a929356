package office

import (
	"errors"

	"github.com/readback-go/readback/intent"
)

// Redaction takes sensitive values out of what is told.
type Redaction interface {
	// Clean takes out of what v points to what intents mark, and what looks
	// sensitive by itself.
	Clean(tenant string, v any, of ...intent.WriteIntent)
}

// Clean takes sensitive values out of what v points to before somebody is told it:
// what intents mark, and what looks sensitive by itself.
func (o *Office) Clean(who Who, v any, of ...intent.WriteIntent) {
	if o != nil && o.parts.Redaction != nil {
		o.parts.Redaction.Clean(who.Tenant, v, of...)
	}
}

// cleaned is an error that says no sensitive value of the intents that it is about,
// to their caller neither: who logs what it is answered must not log that.
func (o *Office) cleaned(who Who, err error, of ...intent.WriteIntent) error {
	if err == nil || o.parts.Redaction == nil {
		return err
	}
	c := &cleanError{error: err, text: err.Error()}
	o.Clean(who, &c.text, of...)
	var invalid *intent.InvalidError
	if errors.As(err, &invalid) {
		c.invalid = &intent.InvalidError{Problems: append([]intent.Problem(nil), invalid.Problems...)}
		o.Clean(who, c.invalid, of...)
	}
	return c
}

// cleanError is an error in other words.
type cleanError struct {
	error
	text    string
	invalid *intent.InvalidError // nil where the error holds none
}

func (c *cleanError) Error() string { return c.text }
func (c *cleanError) Unwrap() error { return c.error }

// As gives whoever asks for the problems of an intent the clean ones.
func (c *cleanError) As(target any) bool {
	into, ok := target.(**intent.InvalidError)
	if ok = ok && c.invalid != nil; ok {
		*into = c.invalid
	}
	return ok
}
