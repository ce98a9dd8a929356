//go:build !unix

package pgtest

import "os/exec"

type credential struct{ Uid, Gid uint32 }

func own(*exec.Cmd, *credential) {}
