package config

import "syscall"

// readOnly reports whether a file is on a mount that cannot be written here: in a
// container, what was mounted into it belongs to users whom only the host knows.
func readOnly(name string) bool {
	const stReadOnly = 1 // ST_RDONLY of statfs(2)
	var s syscall.Statfs_t
	return syscall.Statfs(name, &s) == nil && s.Flags&stReadOnly != 0
}
