package config

import (
	"errors"

	"github.com/readback-go/readback/internal/yamlfile"
)

var (
	// ErrMissing is wrapped when there is no configuration file.
	ErrMissing = errors.New("no configuration")
	// ErrInvalid is wrapped by every error about the content of a configuration.
	ErrInvalid = errors.New("invalid configuration")
)

// Problem is one fault of a configuration.
type Problem = yamlfile.Problem

// InvalidError lists all faults of a configuration, in the order of lines. It wraps
// [ErrInvalid].
type InvalidError struct {
	Path     string
	Problems []Problem
}

// Error lists the problems, one a line.
func (e *InvalidError) Error() string {
	return yamlfile.Spell(ErrInvalid.Error(), e.Path, e.Problems)
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(path string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	yamlfile.Sort(problems)
	return &InvalidError{Path: path, Problems: problems}
}
