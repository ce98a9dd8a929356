//go:build !unix

package config

import "os/exec"

// endTogether does nothing where there are no process groups: the command alone is
// killed.
func endTogether(*exec.Cmd) {}
