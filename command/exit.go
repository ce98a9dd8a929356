package command

import (
	"fmt"
	"strings"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// The exit codes. They are part of the interface: scripts rely on them.
const (
	exitVerified    = 0
	exitFailed      = 1
	exitNotApplied  = 10
	exitCompensated = 11
	exitAccepted    = 12
	exitAbandoned   = 13
	exitDenied      = 14
	exitExpired     = 15
	exitReported    = 16
	exitReview      = 20
	exitHeld        = 21
	exitInProgress  = 22
	exitRefused     = 30
	exitNotWaiting  = 31
	exitNotFound    = 32
	exitForbidden   = 33
	exitNotObserved = 34
	exitWeaker      = 40
	exitAttention   = 41
	exitDiffers     = 42
	exitTampered    = 43
	exitWrong       = 50
	exitWorse       = 51
	exitUnchecked   = 52
	exitBaseline    = 53
	exitUsage       = 64
	exitInvalid     = 65
	exitUnavailable = 69
	exitUnusable    = 70
	exitUnknown     = 74
	exitConfig      = 78
)

// exits is the table of exit codes, as --help prints it. Up to 22 they are outcomes of a
// write; from 30 on there is no outcome. From 64 on they are those of sysexits.h where
// one fits.
var exits = []struct {
	code    int
	word    string
	meaning string
}{
	{exitVerified, "verified", "read back at the destination, as declared; for other commands: done"},
	{exitFailed, "failed", "none of the below; the message names the error"},
	{exitNotApplied, "not applied", "known not to have happened"},
	{exitCompensated, "compensated", "undone, and that was verified"},
	{exitAccepted, "accepted", "a reviewer accepted it as it is"},
	{exitAbandoned, "abandoned", "a reviewer gave it up; whether it happened stays unknown"},
	{exitDenied, "denied", "a reviewer refused it; nothing was sent"},
	{exitExpired, "expired", "no reviewer approved it in time; nothing was sent"},
	{exitReported, "reported", "reported as done by its caller, or by a destination that cannot be read; not verified"},
	{exitReview, "review", "a reviewer must decide; do not try another way"},
	{exitHeld, "held", "waits for a reviewer's approval; nothing was sent"},
	{exitInProgress, "in progress", "recorded, and continues with `readback resume` or `readback work`"},
	{exitRefused, "refused", "another write has this structural key or idempotency key, or a legal hold covers the writes to erase; nothing was recorded"},
	{exitNotWaiting, "not waiting", "the write does not wait for this decision, or a worker holds it; nothing has changed"},
	{exitNotFound, "not found", "no such write in this tenant"},
	{exitForbidden, "forbidden", "this caller may not decide: it asked for the write, approved it already, or is an agent; nothing has changed"},
	{exitNotObserved, "not observed", "no receipt: the write was not observed; the message names the reason"},
	{exitWeaker, "weaker", "the probed destination is weaker than declared"},
	{exitAttention, "attention", "an operator should act: `readback status` or `readback doctor` found a problem, list, review, resume or prune could not read a write, or erase did not erase one"},
	{exitDiffers, "differs", "rules decide otherwise than expected, or fail"},
	{exitTampered, "tampered", "the ledger differs from its chain or its signed heads; `readback audit verify` names the place"},
	{exitWrong, "wrong", "an evaluation found a destination that is not as declared"},
	{exitWorse, "worse", "the destinations are as declared as far as they were checked, and a rate is worse than the baseline's"},
	{exitUnchecked, "not checked", "a part of an evaluation could not be checked; the rest is right"},
	{exitBaseline, "baseline", "the baseline belongs to another version or evaluation, or lacks a compared rate"},
	{exitUsage, "usage", "the command line is wrong, or a file that it names cannot be read"},
	{exitInvalid, "invalid", "the intent, a declaration, a file of rules or a file of checks is invalid and nothing was recorded; or a receipt is not genuine"},
	{exitUnavailable, "unavailable", "the ledger (full disk, read-only) or a probed destination cannot be used now; nothing was sent"},
	{exitUnusable, "unusable", "an operator must repair the ledger or the clock (corrupt, newer version, clock went back); nothing was sent"},
	{exitUnknown, "unknown", "the ledger failed when the write may have been sent; readback will read it back: ask again later"},
	{exitConfig, "configuration", "the configuration is missing or invalid"},
}

// codeOf is the exit code of an outcome: that of its word, and of all that wait the one of those
// in progress. An unknown one must not read as verified.
func codeOf(s ledger.Status) int {
	if s.Group() == ledger.Wait {
		return exitInProgress
	}
	for _, e := range exits {
		if e.code <= exitInProgress && e.word == report.Word(s) {
			return e.code
		}
	}
	return exitFailed
}

func exitTable() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "  %-3d %-14s %s\n", e.code, e.word, e.meaning)
	}
	return b.String()
}
