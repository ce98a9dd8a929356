package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/eval"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
)

// evaluating is how an evaluation is made.
type evaluating struct {
	tier                              int
	baseline, record, junit, snapshot string
}

func (a *app) evalCommand() *cobra.Command {
	var e evaluating
	cmd := &cobra.Command{
		Use:   "eval FILE",
		Short: "Check afterwards that the world is as declared",
		Long: `Check afterwards that the world is as declared, by a file of checks over a run, a
workflow or a time (docs/evaluation.md).

Tier 1 is read from the destinations of the configuration and from nothing else: the
ledger is not opened, and need not be there. Tier 2 compares rates that the run counted
itself with a baseline. Nothing is written to any destination.

  readback eval checks.yaml --snapshot before.jsonl    before the run: what is there
  readback eval checks.yaml --junit report.xml         after it
  readback eval checks.yaml --record baseline.json     keep its rates as the baseline
  readback eval checks.yaml --baseline baseline.json   compare with them

Ends with 0 when everything that was asked for is as it should be, 50 when the world is
not as declared, 51 when a rate is worse, 52 when something could not be checked, 53 when
the baseline does not fit, 65 when the file of checks is not acceptable.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.evaluate(ctx, args[0], e) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&e.tier, "tier", 0, "1 for what is read from the world alone, 2 for rates alone (default both)")
	flags.StringVar(&e.baseline, "baseline", "", "compare rates with this file")
	flags.StringVar(&e.record, "record", "", "write the rates to this file, as a baseline to be reviewed")
	flags.StringVar(&e.junit, "junit", "", "write the report to this file as JUnit XML, too")
	flags.StringVar(&e.snapshot, "snapshot", "", "evaluate nothing; write what is there now to this file")
	return cmd
}

func (e evaluating) check() error {
	switch {
	case e.tier < 0 || e.tier > 2:
		return usagef("--tier is %d; want 1 or 2, or the flag left out for both", e.tier)
	case e.snapshot != "" && e.baseline+e.record+e.junit != "":
		return usagef("--snapshot is made before a run; want it without --baseline, --record and --junit")
	case e.tier == 1 && e.baseline+e.record != "":
		return usagef("--baseline and --record are about tier 2; want --tier 2, or the flag left out")
	}
	return nil
}

func (a *app) evaluate(ctx context.Context, path string, e evaluating) (int, error) {
	if err := e.check(); err != nil {
		return 0, err
	}
	reg, done, err := a.onlyDestinations()
	if err != nil {
		return 0, err
	}
	defer done()
	load := eval.Load
	if e.snapshot != "" {
		load = eval.LoadBefore
	}
	f, err := load(path)
	if err != nil {
		return 0, err
	}
	if e.snapshot != "" {
		err := written(e.snapshot, func(w io.Writer) error { return eval.Snapshot(ctx, f, reg, w) })
		if err != nil {
			return 0, err
		}
		return 0, a.print(map[string]string{"snapshot": e.snapshot}, func() string { return "Written: " + report.Safe(e.snapshot) + "\n" })
	}
	o := eval.Options{Tier: e.tier, Recording: e.record != ""}
	if e.baseline != "" {
		if o.Baseline, err = eval.ReadBaseline(e.baseline); err != nil {
			return 0, err
		}
	}
	rep, err := eval.Run(ctx, f, reg, o)
	if err != nil {
		return 0, err
	}
	keep := e.keep(f, rep)
	if keep != nil && !errors.Is(keep, errNotRecorded) {
		return 0, keep
	}
	answer := struct {
		eval.Report
		Verdict string `json:"verdict"`
		Exit    int    `json:"exit"`
	}{rep, cmp.Or(string(rep.Verdict()), "not_checked"), exitOf(rep.Verdict())}
	if err := a.print(answer, rep.Text); err != nil {
		return 0, err
	}
	if keep != nil { // the report says why, and decides the exit code
		_, _ = fmt.Fprintln(a.stderr, "readback:", keep)
	}
	return answer.Exit, nil
}

// errNotRecorded says why there is no baseline.
var errNotRecorded = errors.New("nothing was recorded: a run that left the world otherwise than declared is no baseline")

// keep writes the files that were asked for.
func (e evaluating) keep(f *eval.File, rep eval.Report) error {
	if e.junit != "" {
		if err := written(e.junit, rep.JUnit); err != nil {
			return err
		}
	}
	if e.record == "" {
		return nil
	}
	if rep.Verdict() == eval.VerdictWrong {
		return errNotRecorded
	}
	return written(e.record, func(w io.Writer) error { return eval.Record(f, w, time.Now()) })
}

// exits of evaluations. What nobody thought of could not be checked.
func exitOf(v eval.Verdict) int {
	switch v {
	case eval.VerdictPassed:
		return exitVerified
	case eval.VerdictWrong:
		return exitWrong
	case eval.VerdictWorse:
		return exitWorse
	}
	return exitUnchecked
}

// written writes a file whole: nothing is there where filling it fails.
func written(path string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// onlyDestinations makes the destinations of the configuration, which needs no
// ledger for that.
func (a *app) onlyDestinations() (*connectors.Registry, func(), error) {
	path, err := config.Find(a.config, a.env)
	if err != nil {
		return nil, nil, err
	}
	c, err := config.LoadDestinations(path, a.environment())
	if err != nil {
		return nil, nil, err
	}
	a.forgetSecrets(c)
	reg, err := c.Registry(a.env)
	if err != nil {
		return nil, nil, err
	}
	d := &desk{reg: reg, log: a.logger(c.Log)}
	return reg, d.hangUp, nil
}
