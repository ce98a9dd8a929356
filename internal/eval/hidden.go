package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// differ describes the first of several differences of a target.
func (t *target) differ(all []verify.Mismatch) string {
	return differ(all, t.marks())
}

// marks are the places that are sensitive.
func (t *target) marks() []string {
	marks := slices.Concat(t.profile.Sensitive, t.intent.Sensitive)
	for _, m := range t.members {
		marks = append(marks, m.intent.Sensitive...)
	}
	return marks
}

// shown is the name of a target as a report may have it.
func (t *target) shown() string {
	marks := t.marks()
	if len(marks) == 0 {
		return t.name
	}
	plain := recordName(t.intent.Destination, t.intent.Kind, t.intent.Key)
	return recordName(t.intent.Destination, t.intent.Kind, shownKey(t.intent.Key, marks)) + strings.TrimPrefix(t.name, plain)
}

// hidden reports whether a value at a place is, or holds, or belongs to one that is
// marked as sensitive: a report goes where the destination's readers do not.
func hidden(place string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool {
		return strings.HasPrefix(place+"/", mark+"/") || strings.HasPrefix(mark+"/", place+"/")
	})
}

// redacted replaces a value of a key that is marked as sensitive. An evaluation has no key for
// digests; findings have the line of the declaration.
const redacted = "(redacted)"

// shownKey is a key without the values that are marked as sensitive.
func shownKey(key intent.Fields, marks []string) intent.Fields {
	all := maps.Clone(key)
	for name := range all {
		if hidden(string(intent.Pointer("").AppendToken(name)), marks) {
			all[name] = redacted
		}
	}
	return all
}
