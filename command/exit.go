package command

import (
	"fmt"
	"strings"

	"github.com/readback-go/readback/ledger"
)

// The exit codes. They are part of the interface: scripts rely on them. They say what a
// script can do next; --json says the rest.
const (
	exitVerified    = 0
	exitFailed      = 1
	exitNotApplied  = 10
	exitUnproven    = 11
	exitReview      = 20
	exitInProgress  = 21
	exitRefused     = 30
	exitAttention   = 40
	exitUsage       = 64
	exitInvalid     = 65
	exitUnavailable = 69
	exitUnknown     = 74
	exitConfig      = 78
)

// exits is the table of exit codes, as `readback help exit-codes` prints it. Up to 21 they
// are outcomes of a write; from 30 on there is no outcome. From 64 on they are those of
// sysexits.h where one fits.
var exits = []struct {
	code    int
	word    string
	meaning string
}{
	{exitVerified, "verified", "read back at the destination, as asked for; other commands: done"},
	{exitFailed, "failed", "none of the below; the message names the error"},
	{exitNotApplied, "not applied", "nothing of it is there: not applied, denied, expired, or undone"},
	{exitUnproven, "unproven", "ended without proof: accepted or given up by a reviewer, or reported"},
	{exitReview, "review", "a reviewer must decide; do not try another way"},
	{exitInProgress, "in progress", "recorded; `readback work` or `readback resume` continues it"},
	{exitRefused, "refused", "nothing was changed: no such write, another one, or not allowed"},
	{exitAttention, "attention", "done, and something needs attention: a check found what is wrong"},
	{exitUsage, "usage", "the command line is wrong, or a file that it names cannot be read"},
	{exitInvalid, "invalid", "an intent, declaration, rule, check or receipt is invalid"},
	{exitUnavailable, "unavailable", "the ledger or a destination cannot be used now; nothing was sent"},
	{exitUnknown, "unknown", "the ledger failed, and it may have been sent; ask again later"},
	{exitConfig, "configuration", "the configuration is missing or invalid"},
}

// codeOf is the exit code of an outcome. An unknown one must not read as verified.
func codeOf(s ledger.Status) int {
	switch s {
	case ledger.Verified:
		return exitVerified
	case ledger.NotApplied, ledger.Compensated, ledger.Denied, ledger.Expired:
		return exitNotApplied
	case ledger.Accepted, ledger.Abandoned, ledger.Reported:
		return exitUnproven
	}
	switch s.Group() {
	case ledger.NeedsReview:
		return exitReview
	case ledger.Wait:
		return exitInProgress
	}
	return exitFailed
}

func exitTable() string {
	var b strings.Builder
	for _, e := range exits {
		fmt.Fprintf(&b, "  %-3d %-14s %s\n", e.code, e.word, e.meaning)
	}
	return b.String()
}
