package service

import (
	"errors"

	"github.com/readback-go/readback/intent"
)

// Redaction takes sensitive values out of responses.
type Redaction interface {
	// Clean redacts in what v points to the values that intents mark, and those that look
	// sensitive by themselves.
	Clean(tenant string, v any, of ...intent.WriteIntent)
	// Digests are those by which a search finds the sealed values that are a text.
	Digests(tenant, text string) []string
}

// Clean redacts in what v points to, before it is returned to a caller, the values that
// intents mark, and those that look sensitive by themselves.
func (o *Service) Clean(who Who, v any, of ...intent.WriteIntent) {
	if o != nil && o.parts.Redaction != nil {
		o.parts.Redaction.Clean(who.Tenant, v, of...)
	}
}

// cleaned is an error without sensitive values of the intents that it is about. Even
// their caller does not get them, as it might log the response.
func (o *Service) cleaned(who Who, err error, of ...intent.WriteIntent) error {
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

// cleanError is an error with a redacted message.
type cleanError struct {
	error
	text    string
	invalid *intent.InvalidError // nil where the error holds none
}

func (c *cleanError) Error() string { return c.text }
func (c *cleanError) Unwrap() error { return c.error }

// As returns the redacted problems of an intent.
func (c *cleanError) As(target any) bool {
	into, ok := target.(**intent.InvalidError)
	if ok = ok && c.invalid != nil; ok {
		*into = c.invalid
	}
	return ok
}
