package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/erasure"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/openapi"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/probe"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
	"github.com/readback-go/readback/saga"
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

// problems are those of the program alone. They precede [service.Problems], whose errors some of
// them wrap.
var problems = []service.Problem{
	{Err: config.ErrMissing, Exit: exitConfig, Kind: "configuration"},
	{Err: config.ErrInvalid, Exit: exitConfig, Kind: "configuration"},
	{Err: otel.ErrSettings, Exit: exitConfig, Kind: "configuration"},
	{Err: rest.ErrInvalid, Exit: exitInvalid, Kind: "declaration", Hint: "Nothing was sent. `readback destination print NAME` shows one that is right."},
	{Err: openapi.ErrDocument, Exit: exitInvalid, Kind: "openapi", Hint: "Nothing was sent."},
	{Err: openapi.ErrOperation, Exit: exitRefused, Kind: "not_found", Hint: "Nothing was sent."},
	{Err: mcp.ErrInvalid, Exit: exitInvalid, Kind: "contract", Hint: "Nothing was sent. `readback contract print NAME` shows one that is right."},
	{Err: mcp.ErrUnreachable, Exit: exitUnavailable, Kind: "unreachable", Hint: "No tool was called."},
	{Err: rules.ErrInvalid, Exit: exitInvalid, Kind: "rules", Hint: "No rule was used. docs/guide/gate.md says what a rule can ask for."},
	{Err: probe.ErrNoSamples, Exit: exitConfig, Kind: "no_samples", Hint: "Nothing was written. The configuration says where samples may be made."},
	{Err: probe.ErrIrreversible, Exit: exitRefused, Kind: "irreversible", Hint: "Nothing was written. --allow-irreversible permits it."},
	{Err: eval.ErrInvalid, Exit: exitInvalid, Kind: "invalid_evaluation", Hint: "Nothing was checked. docs/operate/evidence.md says what a file of checks looks like; `readback destinations` lists what there is."},
	{Err: eval.ErrBaseline, Exit: exitAttention, Kind: "baseline", Hint: "Nothing was compared."},
	{Err: errInterrupted, Exit: exitFailed, Kind: "interrupted"},
	{Err: errNoWorkflow, Exit: exitRefused, Kind: "not_found", Hint: "Workflows belong to a tenant; --tenant names another one. One that was pruned is not there any more."},
	{Err: errNoStep, Exit: exitRefused, Kind: "not_found", Hint: "`readback workflow show WORKFLOW` lists the steps of one. A call that the gate refused, or that never came, left no step."},
	{Err: server.ErrExposed, Exit: exitUsage, Kind: "usage", Hint: "`readback serve --help` says how."},
	{Err: server.ErrNoSigner, Exit: exitConfig, Kind: "configuration"},
	{Err: access.ErrNoToken, Exit: exitRefused, Kind: "not_found", Hint: "Nothing has changed. Tokens belong to a tenant; --tenant names another one. `readback token list` shows them."},
	{Err: access.ErrInvalid, Exit: exitUsage, Kind: "usage", Hint: "Nothing has changed."},
	{Err: shards.ErrMove, Exit: exitRefused, Kind: "not_moved", Hint: "`readback shards list` shows where tenants are."},
	{Err: ledger.ErrPartition, Exit: exitConfig, Kind: "configuration"},
	{Err: errRestoreOpen, Exit: exitRefused, Kind: "restore_open", Hint: "Nothing has changed. `readback work` takes in the outbox and continues sagas; `readback saga resume` or `readback saga close` ends one."},
	{Err: erasure.ErrHeld, Exit: exitRefused, Kind: "held", Hint: "`readback hold list` lists the legal holds of the tenant."},
}

// kinds maps errors to failures; the first that matches.
var kinds = slices.DeleteFunc(append(problems, service.Problems...), func(p service.Problem) bool { return p.Exit == 0 })

// explain maps an error to a failure.
func explain(err error) failure {
	f := failure{Kind: "failed", Exit: exitFailed, Message: err.Error()}
	var usage *usageError
	if errors.As(err, &usage) {
		return failure{Kind: "usage", Exit: exitUsage, Message: err.Error(), Hint: fmt.Sprintf("`%s --help` says how.", cmp.Or(usage.command, "readback"))}
	}
	if left := unread(err); left != nil {
		return *left
	}
	for _, k := range kinds {
		if errors.Is(err, k.Err) {
			f.Kind, f.Exit, f.Hint = k.Word(), k.Exit, k.Hint
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
