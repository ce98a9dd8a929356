//go:build unix

package config

import (
	"os/exec"
	"syscall"
)

// endTogether gives a command a process group of its own, which is killed as a whole.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
