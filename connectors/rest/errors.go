package rest

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
)

var (
	// ErrInvalid is wrapped by every error about the content of a declaration.
	ErrInvalid = errors.New("invalid declaration")
	// errOptions is wrapped by errors of [New].
	errOptions = errors.New("rest options")
	// errIntent is wrapped by errors about an intent that the declaration cannot serve. Nothing
	// of the write was sent.
	errIntent = errors.New("the declaration cannot serve this intent")
	// errAnswer is wrapped by errors about an answer to a read that does not match the
	// declaration.
	errAnswer = errors.New("the answer is not as declared")
	// errNoUndo is wrapped by errors of Invert.
	errNoUndo = errors.New("the write cannot be undone")
	// errHost is wrapped when a request would go to a host that the
	// declaration does not name. It is never sent.
	errHost = errors.New("the host is not declared")
)

// unserved is an error about one place of an intent: no value is accepted there, or none of that
// type, or one is missing.
func unserved(path, format string, args ...any) error {
	return connectors.WrongField(path, fmt.Errorf("%w: %w", errIntent, fmt.Errorf(format, args...)))
}

// unfit is an error about a value at one place of an intent, where another may be
// taken, such as the example.
func unfit(path string, example any, format string, args ...any) error {
	return connectors.WrongValue(path, example, fmt.Errorf("%w: %w", errIntent, fmt.Errorf(format, args...)))
}
