//go:build unix

package snippets

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a shell and what it starts a process group, which endGroup ends.
func ownGroup(sh *exec.Cmd) { sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(sh *exec.Cmd) { _ = syscall.Kill(-sh.Process.Pid, syscall.SIGTERM) }
