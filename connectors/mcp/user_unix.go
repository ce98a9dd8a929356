//go:build unix

package mcp

import (
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that a server's program runs as.
type account struct {
	credential syscall.Credential
	home       string
}

// accountOf finds a user of this machine, by name or by number. A number that is no
// user's is taken as that of a user and of a group: images of containers have no
// list of users.
func accountOf(name string) (*account, error) {
	u, err := user.Lookup(name)
	id, numeric := strconv.ParseUint(name, 10, 32)
	if err != nil && numeric == nil {
		if u, err = user.LookupId(name); err != nil {
			return &account{syscall.Credential{Uid: uint32(id), Gid: uint32(id)}, "/"}, nil //nolint:nilerr // it is no user, and need not be
		}
	}
	if err != nil {
		return nil, fmt.Errorf("user: %w; want the name or the number of a user of this machine", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %w", err)
	}
	return &account{syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, u.HomeDir}, nil
}

// as lets a program run as a user, in its group alone.
func (a *account) as(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &a.credential}
}
