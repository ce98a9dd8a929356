package command

import (
	"os"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/yamlfile"
)

// examinePrograms reports what programs that destinations start can read of this process
// and its files. If none is started, it reports nothing.
func examinePrograms(e *examination, c config.Config, undumped bool, environ []string) {
	programs := c.Programs()
	if len(programs) == 0 {
		return
	}
	if !undumped {
		do := "Run readback on Linux, or give each program a `user` of its own."
		if left := secretNames(environ); len(left) > 0 {
			do += " Put secrets into files instead of these variables: " + report.Safe(strings.Join(left, ", ")) + "."
		}
		e.warn("memory", do, "this system lets programs of the same user read the memory and the environment of readback")
	} else {
		e.ok("memory", "programs of the same user can read neither the memory nor the environment of readback")
	}
	var same []string
	for _, p := range programs {
		if p.User == "" {
			same = append(same, p.Destination)
		}
	}
	if len(same) > 0 {
		e.warn("programs", "Give the destination a `user` of its own, or begin its `command` with a wrapper such as sudo or bwrap that takes these files away.",
			"the programs of these destinations run as the user of readback, and can read its configuration, its secrets in files and a ledger in a file: %s", report.Safe(strings.Join(same, ", ")))
		return
	}
	e.ok("programs", "each runs as another user than readback")
}

// secretNames are the variables left in the environment whose names suggest secrets.
func secretNames(environ []string) []string {
	var all []string
	for _, each := range environ {
		if name, _, _ := strings.Cut(each, "="); yamlfile.IsSecret(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// examineThisProcess is examinePrograms for this process.
func examineThisProcess(e *examination, c config.Config) {
	examinePrograms(e, c, isUndumped(), os.Environ())
}
