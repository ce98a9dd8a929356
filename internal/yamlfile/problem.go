package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/visible"
)

// maxShown is how many bytes of a wrong value a problem repeats.
const maxShown = 60

// Problem is one thing wrong with a file.
type Problem struct {
	// Line counts from 1; 0 is the file as a whole.
	Line int `json:"line"`
	// Field is the place in words of the file ("destinations.mail.settle"), ""
	// for the file as a whole.
	Field string `json:"field"`
	// Problem says what is wrong there, and what would be right.
	Problem string `json:"problem"`
}

// String is the problem as it follows the name of the file.
func (p Problem) String() string {
	where := ""
	if p.Line > 0 {
		where = fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		where += ": " + p.Field
	}
	return where + ": " + p.Problem
}

// InvalidError lists everything that is wrong with a file, by line. It wraps Kind.
type InvalidError struct {
	Kind     error
	File     string
	Problems []Problem
}

// Error lists the problems, one a line.
func (e *InvalidError) Error() string { return Spell(e.Kind.Error(), e.File, e.Problems) }

// Unwrap returns the kind.
func (e *InvalidError) Unwrap() error { return e.Kind }

// Spell is a headline and the problems of one file, one a line.
func Spell(headline, path string, problems []Problem) string {
	lines := []string{headline + ":"}
	for _, p := range problems {
		lines = append(lines, "  "+path+p.String())
	}
	return strings.Join(lines, "\n")
}

// Sort puts problems in the order of lines.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// Clip is a value that is short enough to be shown.
func Clip(s string) string { return visible.Cut(s, maxShown) }

// secretWords are parts of names under which people write secrets.
var secretWords = []string{"password", "passwd", "secret", "token", "apikey", "api_key", "credential"}

// IsSecret reports whether a name is one under which people write secrets.
func IsSecret(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}
