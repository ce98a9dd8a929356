//go:build unix

package sqlite

import (
	"errors"
	"io/fs"
	"syscall"
)

// identity distinguishes a file from every other. It is read before every commit, without the
// garbage of os.Stat.
type identity struct{ device, inode uint64 }

func identityOf(path string) (identity, error) {
	var s syscall.Stat_t
	err := syscall.Stat(path, &s)
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Stat(path, &s)
	}
	if err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{uint64(s.Dev), uint64(s.Ino)}, nil //nolint:unconvert // not of this type on every system
}

func (i identity) same(as identity) bool { return i == as }

// names returns how many names (hard links) the file has.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // not of this type on every system
	}
	return 1
}
