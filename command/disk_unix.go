//go:build linux || darwin

package command

import (
	"fmt"
	"syscall"
)

// freeSpace is how many bytes this user may still write to a folder.
func freeSpace(folder string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", folder, err)
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // a block has a size
}
