package tool

import (
	"errors"
	"fmt"
	"strings"
)

// maxProblems is how many problems one refusal lists: a model fixes one call at a time.
const maxProblems = 20

// Errors of tools.
var (
	// ErrArguments is wrapped by [ArgumentsError].
	ErrArguments = errors.New("invalid arguments")
	// ErrTool is wrapped by [CheckError].
	ErrTool = errors.New("invalid tool")
)

// Problem is one fault of a call's arguments.
type Problem struct {
	// Argument is the name, "" for all of them together.
	Argument string `json:"argument"`
	// Problem is what is wrong with it, Want the remedy, "" where Problem has it.
	Problem string `json:"problem"`
	Want    string `json:"want"`
}

// String is the problem in one line.
func (p Problem) String() string {
	text := p.Problem
	if p.Argument != "" {
		text = fmt.Sprintf("argument %q %s", p.Argument, p.Problem)
	}
	if p.Want != "" {
		text += "; want " + p.Want
	}
	return text
}

// ArgumentsError lists the faults of a call's arguments, for the model that gave them. It
// wraps [ErrArguments].
type ArgumentsError struct{ Problems []Problem }

// Error lists the problems.
func (e *ArgumentsError) Error() string { return ErrArguments.Error() + ": " + e.List() }

// List is the problems in one line, for the model that gave the arguments.
func (e *ArgumentsError) List() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns [ErrArguments].
func (e *ArgumentsError) Unwrap() error { return ErrArguments }

func refused(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &ArgumentsError{problems[:min(len(problems), maxProblems)]}
}

// Fault is one fault of a tool's declaration.
type Fault struct {
	// Field is the place below the tool ("arguments[1].to").
	Field string
	// Problem is what is wrong there, and the remedy.
	Problem string
}

// CheckError lists all faults of a tool. It wraps [ErrTool].
type CheckError struct {
	Tool   string
	Faults []Fault
}

// Error lists the faults.
func (e *CheckError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Field + " " + f.Problem
	}
	return fmt.Sprintf("%v %q: %s", ErrTool, e.Tool, strings.Join(lines, "; "))
}

// Unwrap returns [ErrTool].
func (e *CheckError) Unwrap() error { return ErrTool }
