package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/erasure"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/probe"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/signing"
)

// failure is the reason why there is no outcome, for machines.
type failure struct {
	Kind    string `json:"kind"`
	Exit    int    `json:"exit"`
	Message string `json:"message"`
	// Hint is the remedy.
	Hint string `json:"hint,omitempty"`
	// Write is the affected write, where one is known.
	Write ledger.ID `json:"write,omitempty"`
	// Writes are the writes that could not be read.
	Writes []ledger.ID `json:"writes,omitempty"`
	// Prior is the write that began the same business operation before.
	Prior *prior `json:"prior,omitempty"`
	// Rules are the problems of a file of rules.
	Rules []rules.Problem `json:"rules,omitempty"`
	// Problems are those of an intent.
	Problems []intent.Problem `json:"problems,omitempty"`
}

// kinds maps errors to failures; the first that matches.
var kinds = []struct {
	is   error
	kind string
	exit int
	hint string
}{
	{config.ErrMissing, "configuration", exitConfig, ""},
	{config.ErrInvalid, "configuration", exitConfig, ""},
	{otel.ErrSettings, "configuration", exitConfig, ""},
	{rest.ErrInvalid, "declaration", exitInvalid, "Nothing was sent. `readback destination print NAME` shows one that is right."},
	{mcp.ErrInvalid, "contract", exitInvalid, "Nothing was sent. `readback contract print NAME` shows one that is right."},
	{mcp.ErrUnreachable, "unreachable", exitUnavailable, "No tool was called."},
	{rules.ErrInvalid, "rules", exitInvalid, "No rule was used. docs/guide/gate.md says what a rule can ask for."},
	{probe.ErrNoSamples, "no_samples", exitConfig, "Nothing was written. The configuration says where samples may be made."},
	{probe.ErrIrreversible, "irreversible", exitRefused, "Nothing was written. --allow-irreversible permits it."},
	{eval.ErrInvalid, "invalid_evaluation", exitInvalid, "Nothing was checked. docs/operate/evidence.md says what a file of checks looks like; `readback destinations` lists what there is."},
	{eval.ErrBaseline, "baseline", exitBaseline, "Nothing was compared."},
	{saga.ErrPlan, "invalid_saga", exitInvalid, "Nothing was recorded, and nothing was sent. docs/guide/sagas.md says what a plan looks like."},
	{saga.ErrOtherPlan, "other_plan", exitRefused, "Nothing was changed, and nothing was sent."},
	{saga.ErrTooLate, "too_late", exitNotWaiting, "Nothing has changed."},
	{saga.ErrNotWaiting, "not_waiting", exitNotWaiting, "Nothing has changed. `readback saga show` says what comes first."},
	{saga.ErrNotFound, "not_found", exitNotFound, "Sagas belong to a tenant; --tenant names another one. `readback saga list` shows them."},
	{errNoWorkflow, "not_found", exitNotFound, "Workflows belong to a tenant; --tenant names another one. One that was pruned is not there any more."},
	{errNoStep, "not_found", exitNotFound, "`readback workflow show WORKFLOW` lists the steps of one. A call that the gate refused, or that never came, left no step."},
	{receipt.ErrNotObserved, "not_observed", exitNotObserved, "Nothing was signed. docs/operate/evidence.md says what there are receipts of."},
	{receipt.ErrContradiction, "ledger_contradiction", exitUnusable, "Nothing was signed. The ledger was altered or is damaged: an operator must check it."},
	{receipt.ErrAnother, "another_receipt", exitInvalid, "It is genuine. Ask for the receipt of the write that you mean: `readback receipt export ID`."},
	{receipt.ErrInvalid, "invalid_receipt", exitInvalid, notGenuine},
	{signing.ErrEnvelope, "invalid_receipt", exitInvalid, notGenuine},
	{signing.ErrType, "invalid_receipt", exitInvalid, notGenuine},
	{signing.ErrKey, "untrusted_key", exitInvalid, notGenuine},
	{signing.ErrSignature, "wrong_signature", exitInvalid, notGenuine},
	{server.ErrNoSigner, "configuration", exitConfig, ""},
	{intent.ErrInvalid, "invalid_intent", exitInvalid, "Nothing was recorded, and nothing was sent. `readback schema` prints what an intent looks like."},
	{connectors.ErrUnknownDestination, "unknown_destination", exitInvalid, "Nothing was recorded, and nothing was sent. `readback destinations` lists what there is."},
	{ledger.ErrDigestMismatch, "digest_mismatch", exitRefused, "Nothing was changed, and nothing was sent."},
	{redact.ErrNoKey, "redaction_key", exitConfig, "Nothing was changed, and nothing was sent by this call. `redaction.keys` in the configuration lists the keys; --config names another configuration."},
	{ledger.ErrNoKey, "digest_key", exitUnusable, "Nothing was changed, and nothing was sent by this call. `redaction.keys` in the configuration lists the keys. A write that is recorded can be shown without them: `readback show ID`."},
	{ledger.ErrBlocked, "blocked", exitRefused, "Nothing was recorded, and nothing was sent."},
	{ledger.ErrFull, "full", exitRefused, "Nothing was recorded, and nothing was sent. Try again when some of what waits is done; `readback status` shows why it waits."},
	{ledger.ErrRefused, "enqueued_refused", exitRefused, "It was enqueued in a transaction of its caller, and can never be taken in. Nothing was sent, and nothing will be."},
	{guards.ErrNotStopped, "not_stopped", exitNotFound, "Nothing has changed. `readback stops` lists what is stopped."},
	{access.ErrNoToken, "not_found", exitNotFound, "Nothing has changed. Tokens belong to a tenant; --tenant names another one. `readback token list` shows them."},
	{access.ErrInvalid, "usage", exitUsage, "Nothing has changed."},
	{guards.ErrIncomplete, "usage", exitUsage, "Nothing has changed."},
	{engine.ErrExpired, "expired", exitExpired, "Nothing was sent, and nothing will be. If it is still wanted, make a new call."},
	{engine.ErrForbidden, "forbidden", exitForbidden, "Nothing has changed. Another reviewer must decide."},
	{engine.ErrNotWaiting, "not_waiting", exitNotWaiting, "Nothing has changed. `readback review` lists the writes that wait for a reviewer."},
	{engine.ErrBusy, "busy", exitNotWaiting, "Nothing has changed. Try again when its lease has ended."},
	{erasure.ErrHeld, "held", exitRefused, "`readback hold list` lists the legal holds of the tenant."},
	{ledger.ErrNotFound, "not_found", exitNotFound, "Writes belong to a tenant; --tenant names another one. `readback list` shows them."},
	{ledger.ErrCorrupt, "ledger_corrupt", exitUnusable, "Nothing was sent, and nothing was changed. Keep the file as it is, with its -wal and -shm, but elsewhere: what was sent can be read from them, and another file beside them is damaged. Then put a copy from before in its place; writes that it does not know must not be submitted again unless they are idempotent. Where only single writes cannot be read everything else goes on, and `readback status` lists them."},
	{ledger.ErrVersion, "ledger_version", exitUnusable, "Nothing was sent, and nothing was changed."},
	{ledger.ErrClock, "clock", exitUnusable, "Nothing was sent. Set the clock right; if the ledger is what is wrong, `readback resume --reset-clock` accepts this machine's clock."},
	{ledger.ErrUnavailable, "ledger_unavailable", exitUnavailable, "Nothing was sent by this call. The ledger is the file together with its -wal and -shm. Repeat the command as it is when the cause is gone: a write that was recorded is not made twice."},
}

// notGenuine is the hint for a receipt that does not pass.
const notGenuine = "Do not rely on it."

// explain maps an error to a failure.
func explain(err error) failure {
	f := failure{Kind: "failed", Exit: exitFailed, Message: err.Error()}
	var usage *usageError
	if errors.As(err, &usage) {
		return failure{Kind: "usage", Exit: exitUsage, Message: err.Error(), Hint: "`readback --help` says how."}
	}
	if left := unread(err); left != nil {
		return *left
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			f.Kind, f.Exit, f.Hint = k.kind, k.exit, k.hint
			break
		}
	}
	var invalid *intent.InvalidError
	if errors.As(err, &invalid) && !errors.Is(err, saga.ErrPlan) { // its message has the place in the plan
		f.Problems = invalid.Problems
	}
	var badRules *rules.InvalidError
	if errors.As(err, &badRules) {
		f.Rules = badRules.Problems
	}
	if f.Prior = priorOf(err); f.Prior != nil {
		f.Hint = f.Prior.hint()
	}
	var known *engine.Error
	if !errors.As(err, &known) {
		return f
	}
	// The engine's knowledge is about this call: an earlier one may have sent.
	f.Write, f.Message = known.ID, fmt.Sprintf("write %s: %v", known.ID, known.Err)
	if known.Known != engine.KnownNotApplied {
		f.Kind, f.Exit = "unknown", exitUnknown
		f.Hint = unknownHint(known)
	}
	return f
}

// unknownHint is the hint where it is not known whether a write was applied. What cannot
// be read does not repair itself.
func unknownHint(known *engine.Error) string {
	if errors.Is(known.Err, ledger.ErrCorrupt) {
		return "Whether it was applied is not known: an earlier call may have sent it. The ledger cannot be read there, and an operator must repair it; do not make the write in another way. `readback status` lists what cannot be read."
	}
	return fmt.Sprintf("Whether it was applied is not known now. It is in the ledger and will be read back: `readback resume %s`, when the cause is gone.", known.ID)
}

// fail prints why there is no outcome.
func (a *app) fail(err error) int {
	f := explain(err).scrubbed(a.scrub)
	if a.json {
		if err := report.JSON(a.stdout, map[string]failure{"error": f}); err != nil {
			_, _ = fmt.Fprintf(a.stderr, "readback: %s\n", report.Safe(err.Error()))
		}
		return f.Exit
	}
	_, _ = fmt.Fprint(a.stderr, f.text()) // the exit code has it as well
	return f.Exit
}

// scrubbed is a failure without sensitive values: standard error is a log, too.
func (f failure) scrubbed(scrub func(string) string) failure {
	f.Message, f.Hint = scrub(f.Message), scrub(f.Hint)
	f.Problems = slices.Clone(f.Problems)
	for i, p := range f.Problems {
		f.Problems[i] = intent.Problem{Path: scrub(p.Path), Problem: scrub(p.Problem), Want: scrub(p.Want)}
	}
	return f
}

func (f failure) text() string {
	var b strings.Builder
	if len(f.Problems) > 0 {
		fmt.Fprintf(&b, "readback: %s:\n%s", intent.ErrInvalid, report.Problems(f.Problems))
	} else {
		for i, line := range strings.Split(f.Message, "\n") {
			if i == 0 {
				line = "readback: " + line
			}
			b.WriteString(report.Safe(line) + "\n")
		}
	}
	if f.Prior != nil {
		b.WriteString(f.Prior.text())
	}
	if f.Hint != "" {
		b.WriteString(f.Hint + "\n")
	}
	return b.String()
}
