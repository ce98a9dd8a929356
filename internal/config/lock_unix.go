//go:build linux || darwin

package config

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed. The error is errLocked where another process has it locked.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
