package sql

import (
	"fmt"
	"maps"
	"regexp"

	"github.com/readback-go/readback/intent"
)

var sampleForm = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Sample makes intents of records whose text keys begin with readback-sample-,
// from the values of [Table].Sample.
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	t, ok := c.tables[kind]
	switch {
	case !ok:
		return intent.WriteIntent{}, fmt.Errorf("%w: no kind %q", errSample, clip(kind))
	case !sampleForm.MatchString(name):
		return intent.WriteIntent{}, fmt.Errorf("%w: the name %q; want 1 to 64 letters and digits", errSample, clip(name))
	}
	in := intent.WriteIntent{Kind: kind, Write: w, Key: intent.Fields{}}
	named := false
	for _, column := range t.Key {
		given, there := t.Table.Sample.Create[column]
		switch typ := t.columns[column].Type; {
		case !named && (typ == Text || typ == CaseFold):
			in.Key[column], named = "readback-sample-"+name, true
		case !there:
			return in, fmt.Errorf("%w: Sample.Create has no value for the key column %q", errSample, column)
		default:
			in.Key[column] = given
		}
	}
	if !named {
		return in, fmt.Errorf("%w: no key column is text, so two samples could not be distinguished", errSample)
	}
	switch w {
	case intent.Create:
		in.Expect = maps.Clone(t.Table.Sample.Create)
	case intent.Update, intent.Upsert:
		in.Expect = maps.Clone(t.Table.Sample.Update)
	}
	for column := range in.Key {
		delete(in.Expect, column)
	}
	if w != intent.Delete && len(in.Expect) == 0 {
		return in, fmt.Errorf("%w: Sample has no values for a %s", errSample, w)
	}
	_, err := c.understand(in, "")
	if err != nil {
		return in, fmt.Errorf("%w: %w", errSample, err)
	}
	return in, nil
}
