//go:build !unix

package mcp

import (
	"errors"
	"os/exec"
)

// account is the user that a server's program runs as.
type account struct{ home string }

func accountOf(string) (*account, error) {
	return nil, errors.New("user: is not available on this system; want it left out")
}

func (*account) as(*exec.Cmd) {}
