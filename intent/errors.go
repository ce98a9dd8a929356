package intent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is wrapped by every error for an unacceptable intent.
var ErrInvalid = errors.New("invalid intent")

// Problem is one fault in an intent.
type Problem struct {
	// Path is the JSON Pointer of the place, "" for the intent as a whole.
	Path string `json:"path"`
	// Problem describes the fault ("is missing").
	Problem string `json:"problem"`
	// Want describes a correct value ("1 to 255 printable ASCII characters").
	Want string `json:"want"`
}

// String returns the problem as one line.
func (p Problem) String() string {
	path := p.Path
	if path == "" {
		path = "the intent"
	}
	return fmt.Sprintf("%s %s; want %s", path, p.Problem, p.Want)
}

// InvalidError lists everything that is wrong with an intent, sorted by path. It wraps
// [ErrInvalid].
type InvalidError struct {
	Problems []Problem
}

// Error lists the problems, at most twenty.
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

// invalid returns an error for the problems, or nil when there are none.
func invalid(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem), cmp.Compare(a.Want, b.Want))
	})
	return &InvalidError{Problems: slices.Compact(problems)}
}

// invalidAt returns an error for one problem.
func invalidAt(path Pointer, problem, want string) error {
	return &InvalidError{Problems: []Problem{{Path: string(path), Problem: problem, Want: want}}}
}
