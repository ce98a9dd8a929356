package tool

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of tools.
var (
	// ErrArguments is wrapped by [ArgumentsError].
	ErrArguments = errors.New("invalid arguments")
	// ErrTool is wrapped by [CheckError].
	ErrTool = errors.New("invalid tool")
)

// Problem is one thing wrong with the arguments of a call.
type Problem struct {
	// Argument is the name, "" for all of them together.
	Argument string `json:"argument"`
	// Problem says what is wrong with it, Want what would be right.
	Problem string `json:"problem"`
	Want    string `json:"want"`
}

// String is the problem in one line.
func (p Problem) String() string {
	if p.Argument == "" {
		return fmt.Sprintf("%s; want %s", p.Problem, p.Want)
	}
	return fmt.Sprintf("argument %q %s; want %s", p.Argument, p.Problem, p.Want)
}

// ArgumentsError says what is wrong with the arguments of a call, for whoever
// gave them. It wraps [ErrArguments].
type ArgumentsError struct{ Problems []Problem }

// Error spells the problems out.
func (e *ArgumentsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return ErrArguments.Error() + ": " + strings.Join(lines, "; ")
}

// Unwrap returns [ErrArguments].
func (e *ArgumentsError) Unwrap() error { return ErrArguments }

func refused(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &ArgumentsError{problems[:min(len(problems), maxProblems)]}
}

// Fault is one thing wrong with the declaration of a tool.
type Fault struct {
	// Field is the place below the tool ("arguments[1].to").
	Field string
	// Problem says what is wrong there, and what would be right.
	Problem string
}

// CheckError says everything that is wrong with a tool. It wraps [ErrTool].
type CheckError struct {
	Tool   string
	Faults []Fault
}

// Error spells the faults out.
func (e *CheckError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Field + " " + f.Problem
	}
	return fmt.Sprintf("%v %q: %s", ErrTool, e.Tool, strings.Join(lines, "; "))
}

// Unwrap returns [ErrTool].
func (e *CheckError) Unwrap() error { return ErrTool }
