package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/rules"
)

const (
	// defaultTried and maxTried are how many steps rules are tried on: the gate returns
	// no more at once. maxStepLine bounds one step in a file, in bytes: the bounds of a
	// step and its intent.
	defaultTried = 100
	maxTried     = 1000
	maxStepLine  = 2 << 20
)

// trying are the options of a trial of rules.
type trying struct {
	steps string
	limit int
	same  bool
}

func (a *app) policyTestCommand() *cobra.Command {
	var t trying
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Test a file of rules on recorded steps",
		Long: `Evaluate a file of rules for steps, and show for each step the earlier decision, the
decision now, and the rule. The command changes nothing.

The steps are those that the gate recorded in the configured ledger, the newest first.
Cached decisions are left out: the gate evaluates no rule for them. With --steps FILE
the steps come from a file ("-" is standard input), one JSON object per line with the
facts about the step and the expected decision:

  {"step_id":"pay","step_type":"tool_call","tool":"wire","retry_policy":"reevaluate",
   "gate_count":4,"first_attempt_age_seconds":90,"expected":"require_approval"}

(on one line). Exit code: 40 if a decision is not the expected one, if a rule fails,
or, with --same, if the decision of a recorded step changes.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.tryRules(ctx, args[0], t) }),
	}
	cmd.Flags().StringVar(&t.steps, "steps", "", "a file of steps instead of those in the ledger, - for standard input")
	cmd.Flags().IntVar(&t.limit, "limit", defaultTried, "how many steps of the ledger")
	cmd.Flags().BoolVar(&t.same, "same", false, "expect that no decision of a recorded step changes")
	return cmd
}

// tried is the rules' decision about one step.
type tried struct {
	Step     string        `json:"step_id"`
	Workflow string        `json:"workflow_id,omitempty"`
	Gate     int           `json:"gate_count"`
	Then     gate.Decision `json:"then,omitempty"`
	Expected gate.Decision `json:"expected,omitempty"`
	Now      gate.Decision `json:"now,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Rules    []string      `json:"rules"`
	// Error is why there is no decision.
	Error string `json:"error,omitempty"`
	// Differs reports that the decision is not the expected one.
	Differs bool `json:"differs"`
}

// trial is the rules' decision about all steps.
type trial struct {
	Steps   []tried `json:"steps"`
	Same    int     `json:"as_expected"`
	Changed int     `json:"changed"`
	Failed  int     `json:"without_answer"`
	Differ  int     `json:"differ"`
}

func (a *app) tryRules(ctx context.Context, path string, t trying) (int, error) {
	if t.limit < 1 || t.limit > maxTried {
		return 0, usagef("--limit is %d; want 1 to %d", t.limit, maxTried)
	}
	set, _, err := loadRules(path)
	if err != nil {
		return 0, err
	}
	var steps []step
	if t.steps != "" {
		steps, err = a.readSteps(t.steps)
	} else {
		steps, err = a.recordedSteps(ctx, t)
	}
	if err != nil {
		return 0, err
	}
	all := trial{Steps: []tried{}}
	for _, s := range steps {
		if err := all.add(ctx, set, s); err != nil {
			return 0, err
		}
	}
	code := exitVerified
	if all.Differ > 0 {
		code = exitAttention
	}
	return code, a.print(all, all.text)
}

// step is a step to try rules on.
type step struct {
	facts          gate.Facts
	then, expected gate.Decision
}

func (all *trial) add(ctx context.Context, set *rules.Set, s step) error {
	one := tried{Step: s.facts.StepID, Workflow: s.facts.WorkflowID, Gate: s.facts.GateCount, Then: s.then, Expected: s.expected, Rules: []string{}}
	ruling, err := set.Decide(ctx, s.facts)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		one.Error, one.Differs = err.Error(), true
		all.Failed++
	default:
		one.Now, one.Reason = ruling.Decision, ruling.Reason
		one.Differs = s.expected != "" && s.expected != ruling.Decision
	}
	for _, m := range ruling.Matched {
		one.Rules = append(one.Rules, m.PolicyID)
	}
	switch {
	case err != nil:
	case one.Differs, s.then != "" && s.then != ruling.Decision:
		all.Changed++
	default:
		all.Same++
	}
	if one.Differs {
		all.Differ++
	}
	all.Steps = append(all.Steps, one)
	return nil
}

func (all *trial) text() string {
	if len(all.Steps) == 0 {
		return "No steps to try the rules on.\n"
	}
	rows := []string{"\tSTEP\tGATE\tTHEN\tEXPECTED\tNOW\tRULES"}
	for _, t := range all.Steps {
		mark, now := "", string(t.Now)
		if t.Differs {
			mark = "!"
		} else if t.Then != "" && t.Then != t.Now {
			mark = "~"
		}
		matched := strings.Join(t.Rules, ", ")
		if t.Error != "" {
			now, matched = "no answer", report.Safe(t.Error)
		}
		name := report.Safe(t.Step)
		if t.Workflow != "" {
			name = report.Safe(t.Workflow) + "/" + name
		}
		rows = append(rows, strings.Join([]string{mark, name, fmt.Sprint(t.Gate), string(t.Then), string(t.Expected), now, matched}, "\t"))
	}
	return report.Table(rows...) + fmt.Sprintf("\n%s: %d as before or expected, %d changed (~), %d without an answer; %d not as expected (!)\n",
		plural(len(all.Steps), "step"), all.Same, all.Changed, all.Failed, all.Differ)
}

// recordedSteps are the steps in the ledger for which rules were evaluated.
func (a *app) recordedSteps(ctx context.Context, t trying) ([]step, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	store, _ := d.Documents(nil)
	if d.Locked != nil {
		return nil, d.Locked
	}
	recorded, err := gate.New(store, &gate.Options{Logger: d.Log}).Recorded(ctx, d.Tenant, t.limit)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, r := range recorded {
		if r.Ruled == "" {
			continue
		}
		s := step{facts: r.Facts, then: r.Ruled}
		if t.same {
			s.expected = r.Ruled
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// writtenStep is a step as a line of a file.
type writtenStep struct {
	gate.Facts
	Seconds  *float64      `json:"first_attempt_age_seconds"`
	Expected gate.Decision `json:"expected"`
}

// readSteps reads a file of steps, one a line.
func (a *app) readSteps(path string) ([]step, error) {
	from := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("--steps: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxStepLine)
	var steps []step
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		s, err := readStep(lines.Bytes())
		switch {
		case err != nil:
			return nil, usagef("--steps: %s:%d: %w", path, number, err)
		case len(steps) == maxTried:
			return nil, usagef("--steps: %s:%d: is one step more than %d; want a shorter file", path, number, maxTried)
		}
		steps = append(steps, s)
	}
	if err := lines.Err(); err != nil {
		return nil, usagef("--steps: %s: %w", path, err)
	}
	return steps, nil
}

func readStep(line []byte) (step, error) {
	var w writtenStep
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	dec.UseNumber() // numbers stay as they are written, as in the gate
	if err := dec.Decode(&w); err != nil {
		return step{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return step{}, errors.New("there is something behind the JSON object; want one object a line")
	}
	if w.Expected != "" && !slices.Contains([]gate.Decision{gate.Allow, gate.Block, gate.RequireApproval}, w.Expected) {
		return step{}, fmt.Errorf("expected is %q; want allow, block or require_approval", w.Expected)
	}
	if w.Seconds != nil {
		w.FirstAttemptAge = time.Duration(*w.Seconds * float64(time.Second))
	}
	w.GateCount = max(w.GateCount, 1)
	return step{facts: w.Facts, expected: w.Expected}, nil
}
