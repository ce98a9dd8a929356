//go:build !linux

package command

// undumped reports whether the system keeps processes of the same user from reading this
// one; only Linux is supported.
func undumped() bool { return false }

func isUndumped() bool { return false }
