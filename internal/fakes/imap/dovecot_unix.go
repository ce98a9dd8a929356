//go:build unix

package imap

import (
	"os/exec"
	"syscall"
)

// runs has a program run as the owner.
func (o owner) runs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}}
}
