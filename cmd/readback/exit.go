package main

import (
	"fmt"
	"strings"

	"github.com/readback-go/readback/engine"
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
	{exitVerified, "verified", "seen at the destination, as declared; for other commands: done"},
	{exitFailed, "failed", "none of the below; the message says what"},
	{exitNotApplied, "not applied", "known not to have happened"},
	{exitCompensated, "compensated", "undone, and that was verified"},
	{exitAccepted, "accepted", "a reviewer accepted it as it is"},
	{exitAbandoned, "abandoned", "a person gave it up; whether it happened stays unknown"},
	{exitDenied, "denied", "a person refused it; nothing was sent"},
	{exitExpired, "expired", "no reviewer approved it in time; nothing was sent"},
	{exitReported, "reported", "the caller reported success; not verified"},
	{exitReview, "review", "a person must decide; do not try another way"},
	{exitHeld, "held", "waits for a reviewer's approval; nothing was sent"},
	{exitInProgress, "in progress", "recorded, and continues with `readback resume` or `readback work`"},
	{exitRefused, "refused", "another write has this structural key or idempotency key, or a legal hold covers what was to be erased; nothing was recorded"},
	{exitNotWaiting, "not waiting", "the write does not wait for this decision, or a worker holds it; nothing has changed"},
	{exitNotFound, "not found", "no such write in this tenant"},
	{exitForbidden, "forbidden", "this caller may not decide: it asked for the write, approved it already, or is an agent; nothing has changed"},
	{exitNotObserved, "not observed", "no receipt: what it would say was not observed; the message says why"},
	{exitWeaker, "weaker", "the probed destination is weaker than the configuration says"},
	{exitAttention, "attention", "a person should see to something: what `readback status` or `readback doctor` found, or writes that list, review, resume or prune could not read or erase did not erase"},
	{exitDiffers, "differs", "rules decide otherwise than expected, or have no answer"},
	{exitTampered, "tampered", "the ledger and its chain, or its signed heads, do not agree: `readback audit verify` says where"},
	{exitWrong, "wrong", "an evaluation read the world, and it is not as declared"},
	{exitWorse, "worse", "the world is as declared as far as it was checked, and a rate of an evaluation is worse than the baseline's"},
	{exitUnchecked, "not checked", "something that an evaluation was asked for could not be checked; nothing that was is wrong"},
	{exitBaseline, "baseline", "the baseline of an evaluation is of another version, of another evaluation or without the rates that are compared"},
	{exitUsage, "usage", "the command line cannot be understood, or a file it names cannot be read"},
	{exitInvalid, "invalid", "the intent, a declaration, a file of rules or a file of checks is not acceptable, nothing was recorded; or a receipt is not genuine"},
	{exitUnavailable, "unavailable", "the ledger cannot be used now (full disk, read-only), or a probed destination; nothing was sent"},
	{exitUnusable, "unusable", "a person must see to the ledger or the clock (corrupt, newer version, clock went back); nothing was sent"},
	{exitUnknown, "unknown", "the ledger failed after the write may have been sent; it will be read back, ask again later"},
	{exitConfig, "configuration", "no configuration, or not a valid one"},
}

// codes are the exit codes of outcomes.
var codes = map[engine.Status]int{
	engine.StatusVerified:    exitVerified,
	engine.StatusNotApplied:  exitNotApplied,
	engine.StatusCompensated: exitCompensated,
	engine.StatusAccepted:    exitAccepted,
	engine.StatusAbandoned:   exitAbandoned,
	engine.StatusDenied:      exitDenied,
	engine.StatusExpired:     exitExpired,
	engine.StatusReported:    exitReported,
	engine.StatusReview:      exitReview,
	engine.StatusHeld:        exitHeld,
	engine.StatusInProgress:  exitInProgress,
	engine.StatusUnverified:  exitInProgress,
	engine.StatusDelegated:   exitInProgress,
}

// codeOf is the exit code of an outcome. An unknown one must not read as verified.
func codeOf(s engine.Status) int {
	if code, ok := codes[s]; ok {
		return code
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
