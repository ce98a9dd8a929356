package rest

import (
	"errors"

	"github.com/readback-go/readback/internal/yamlfile"
)

var (
	// ErrInvalid is wrapped by every error about what a declaration says.
	ErrInvalid = errors.New("invalid declaration")
	// ErrOptions is wrapped by errors of [New].
	ErrOptions = errors.New("rest options")
	// ErrIntent is wrapped by errors about an intent that the declaration
	// cannot serve. Nothing of a write was sent then.
	ErrIntent = errors.New("the declaration cannot serve this intent")
	// ErrAnswer is wrapped by errors about an answer to a read that cannot be
	// understood as declared.
	ErrAnswer = errors.New("the answer is not as declared")
	// ErrNoUndo is wrapped by errors of Invert.
	ErrNoUndo = errors.New("the write cannot be undone")
	// ErrHost is wrapped when a request would go to a host that the
	// declaration does not name. It is never sent.
	ErrHost = errors.New("the host is not declared")
)

// Problem is one thing wrong with a declaration.
type Problem = yamlfile.Problem

// InvalidError says everything that is wrong with a declaration, in the order
// of lines. It wraps [ErrInvalid].
type InvalidError struct {
	File     string
	Problems []Problem
}

// Error spells the problems out, one a line.
func (e *InvalidError) Error() string {
	return yamlfile.Spell(ErrInvalid.Error(), e.File, e.Problems)
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }
