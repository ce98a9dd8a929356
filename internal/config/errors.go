package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrMissing is wrapped when there is no configuration file.
	ErrMissing = errors.New("no configuration")
	// ErrInvalid is wrapped by every error about what a configuration says.
	ErrInvalid = errors.New("invalid configuration")
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	// Line counts from 1; 0 is the file as a whole.
	Line int `json:"line"`
	// Field is the place in words of the file ("destinations.mail.settle"), ""
	// for the file as a whole.
	Field string `json:"field"`
	// Problem says what is wrong there, and what would be right.
	Problem string `json:"problem"`
}

// InvalidError says everything that is wrong with a configuration, in the
// order of lines. It wraps [ErrInvalid].
type InvalidError struct {
	Path     string
	Problems []Problem
}

// Error spells the problems out, one a line.
func (e *InvalidError) Error() string {
	lines := []string{ErrInvalid.Error() + ":"}
	for _, p := range e.Problems {
		lines = append(lines, "  "+e.Path+p.String())
	}
	return strings.Join(lines, "\n")
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

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(path string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &InvalidError{Path: path, Problems: problems}
}
