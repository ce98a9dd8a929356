package eval

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/internal/yamlfile"
)

// maxProblems is how many errors of a file are reported at once.
const maxProblems = 50

var (
	// ErrInvalid is wrapped by every error about the content of a file of checks, or of a file
	// that it names.
	ErrInvalid = errors.New("invalid evaluation")
	// ErrBaseline is wrapped when a baseline does not fit the evaluation: it is of
	// another version, of another evaluation, or of other rates.
	ErrBaseline = errors.New("the baseline does not fit")
)

// Problem is one thing wrong with a file.
type Problem struct {
	// File is the file it is in; Line counts from 1, 0 is the file as a whole.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Field is the place in words of the file, Problem what is wrong there and
	// what would be right.
	Field   string `json:"field,omitempty"`
	Problem string `json:"problem"`
}

// String is the problem in one line, as compilers write theirs.
func (p Problem) String() string {
	return p.File + yamlfile.Problem{Line: p.Line, Field: p.Field, Problem: p.Problem}.String()
}

// InvalidError lists everything that is wrong with an evaluation. It wraps [ErrInvalid].
type InvalidError struct{ Problems []Problem }

// Error lists the problems, one a line.
func (e *InvalidError) Error() string {
	text := ErrInvalid.Error() + ":"
	for _, p := range e.Problems {
		text += "\n  " + p.String()
	}
	return text
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// problems collects what is wrong with several files.
type problems []Problem

func (p *problems) say(file string, line int, field, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, Problem{file, line, field, fmt.Sprintf(format, args...)})
	}
}

func (p *problems) add(others problems) {
	*p = append(*p, others[:min(len(others), max(maxProblems-len(*p), 0))]...)
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{p}
}
