package eval

import (
	"slices"
	"strings"

	"github.com/readback-go/readback/verify"
)

// differ says the first of several differences of a target.
func (t *target) differ(all []verify.Mismatch) string {
	marks := slices.Concat(t.profile.Sensitive, t.intent.Sensitive)
	for _, m := range t.members {
		marks = append(marks, m.intent.Sensitive...)
	}
	return differ(all, marks)
}

// hidden reports whether a value at a place is, or holds, or belongs to one that is
// marked as sensitive: a report goes where the destination's readers do not.
func hidden(place string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool {
		return strings.HasPrefix(place+"/", mark+"/") || strings.HasPrefix(mark+"/", place+"/")
	})
}
