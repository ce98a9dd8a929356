//go:build unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// credential is the user of a program.
type credential = syscall.Credential

// own has a program run as another user, and in a group of its own: an interrupt from the terminal is
// for the test.
func own(cmd *exec.Cmd, user *credential) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
}
