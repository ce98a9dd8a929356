package intent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkContext: the context is shown to reviewers and logged. It is bounded so that it stays a
// few words about the origin of the request.
func checkContext(r reporter, context map[string]string) {
	if len(context) > MaxContext {
		r.reportf("/context", fmt.Sprintf("at most %d", MaxContext), "has %d members", len(context))
		return
	}
	names := valueCheck{reporter: r, problems: maxValueProblems}
	for _, name := range slices.Sorted(maps.Keys(context)) {
		if !names.name((*place)(nil).member("context"), name) {
			continue
		}
		value, want := context[name], fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxContextValue)
		at := Pointer("/context").AppendToken(name)
		switch {
		case value == "":
			r.report(at, "is empty", want)
		case len(value) > MaxContextValue:
			r.reportf(at, want, "has %d bytes", len(value))
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			r.reportf(at, want, "is %q", clip(value))
		}
	}
}
