//go:build !linux && !darwin

package command

import "errors"

// freeSpace is not supported on this system.
func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }
