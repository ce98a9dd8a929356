//go:build linux || darwin

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// readOnlyMount is ST_RDONLY of Linux and MNT_RDONLY of Darwin.
const readOnlyMount = 1

// factsOf is false if a system has no modes.
func factsOf(path string, info fs.FileInfo) (facts, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return facts{}, false
	}
	var on syscall.Statfs_t
	readOnly := syscall.Statfs(path, &on) == nil && on.Flags&readOnlyMount != 0
	return facts{path: path, mode: info.Mode(), owner: int(s.Uid), user: os.Geteuid(), readOnly: readOnly}, true
}
