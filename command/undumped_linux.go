package command

import "golang.org/x/sys/unix"

// undumped keeps other processes of the same user, above all programs that this one
// starts, from reading its memory and its environment, and from tracing it. It reports
// whether the system supports that. A program that is started can be read again.
func undumped() bool {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) == nil && isUndumped()
}

// isUndumped reports whether that is in force.
func isUndumped() bool {
	v, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err == nil && v != 1
}
