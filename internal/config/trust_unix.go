//go:build unix

package config

import (
	"fmt"
	"os"
	"syscall"
)

// changedBy says who else can change a file or a folder, "" where nobody can.
func changedBy(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to the user with the number %d", st.Uid)
	case mode&0o002 != 0:
		return fmt.Sprintf("every user can write it (mode %04o)", mode)
	case mode&0o020 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid():
		return fmt.Sprintf("the group with the number %d can write it (mode %04o)", st.Gid, mode)
	}
	return ""
}

func readableByAll(info os.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }
