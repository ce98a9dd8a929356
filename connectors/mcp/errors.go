package mcp

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
)

// Errors of the package, besides the kinds of package connectors.
var (
	// ErrInvalid: a contract or the options are wrong.
	ErrInvalid = errors.New("invalid contract")
	// ErrArguments: the arguments of a call do not fit the contract, or the
	// intent is not what the contract makes of them. Nothing was sent.
	ErrArguments = errors.New("arguments that the contract does not take")
	// errAnswer: an answer of a tool does not match the contract.
	errAnswer = errors.New("an answer that is not as the contract says")
	// ErrWithdrawn: a tool is gone, or no longer the one that the contract was
	// written for.
	ErrWithdrawn = errors.New("tool withdrawn")
	// ErrUnreachable: no session with the server could be had.
	ErrUnreachable = errors.New("the server cannot be reached")
	// errNoUndo: the write cannot be undone.
	errNoUndo = errors.New("cannot be undone")
)

func arguments(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrArguments, fmt.Errorf(format, args...))
}

// noPlace is an error about one place of an intent: no value is taken there, or none
// of that type, or one is missing.
func noPlace(path, format string, args ...any) error {
	return connectors.WrongField(path, arguments(format, args...))
}

// misfit is an error about a value at one place of an intent, where another may be
// taken, such as the example.
func misfit(path string, example any, format string, args ...any) error {
	return connectors.WrongValue(path, example, arguments(format, args...))
}

func answer(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errAnswer, fmt.Errorf(format, args...))
}
