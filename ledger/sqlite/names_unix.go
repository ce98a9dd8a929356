//go:build unix

package sqlite

import (
	"io/fs"
	"syscall"
)

// names returns how many names (hard links) the file has.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // not of this type on every system
	}
	return 1
}
