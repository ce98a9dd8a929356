package intent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is wrapped by every error that says an intent is not acceptable.
var ErrInvalid = errors.New("invalid intent")

// Problem is one thing wrong with an intent.
type Problem struct {
	// Path is the JSON Pointer of the place, "" for the intent as a whole.
	Path string `json:"path"`
	// Problem says what is wrong there ("is missing").
	Problem string `json:"problem"`
	// Want says what would be right ("1 to 255 printable ASCII characters").
	Want string `json:"want"`
}

// String is the problem in one line.
func (p Problem) String() string {
	path := p.Path
	if path == "" {
		path = "the intent"
	}
	return fmt.Sprintf("%s %s; want %s", path, p.Problem, p.Want)
}

// InvalidError says everything that is wrong with an intent, sorted by path.
// It wraps [ErrInvalid].
type InvalidError struct {
	Problems []Problem
}

// Error spells the problems out, at most twenty.
func (e *InvalidError) Error() string {
	shown := e.Problems[:min(len(e.Problems), maxShownProblems)]
	lines := make([]string, len(shown))
	for i, p := range shown {
		lines[i] = p.String()
	}
	text := ErrInvalid.Error() + ": " + strings.Join(lines, "; also ")
	if more := len(e.Problems) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// invalid makes an error of problems, or nil when there are none.
func invalid(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem), cmp.Compare(a.Want, b.Want))
	})
	return &InvalidError{Problems: slices.Compact(problems)}
}

// invalidAt is an error of one problem.
func invalidAt(path Pointer, problem, want string) error {
	return &InvalidError{Problems: []Problem{{Path: string(path), Problem: problem, Want: want}}}
}
