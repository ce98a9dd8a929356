//go:build !linux && !darwin

package config

import (
	"errors"
	"os"
)

// tryLock fails: files are not locked on this system.
func tryLock(*os.File) error {
	return errors.New("this system has no locks of files that end with a process")
}
