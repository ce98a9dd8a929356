package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
)

// evaluating are the options of an evaluation.
type evaluating struct {
	tier                              int
	baseline, record, junit, snapshot string
	findings                          string
}

func (a *app) evalCommand() *cobra.Command {
	var e evaluating
	cmd := &cobra.Command{
		Use:   "eval FILE",
		Short: "Check after a run that the destinations are as declared",
		Long: `Check after a run that the destinations are as declared, with a file of checks for a
run, a workflow or a period (docs/operate/evidence.md).

Tier 1 reads the configured destinations and nothing else: the ledger is not opened
and need not exist. Tier 2 compares rates that the run counted itself with a baseline.
The command writes nothing to any destination.

  readback eval checks.yaml --snapshot before.jsonl    before the run: the state then
  readback eval checks.yaml --junit report.xml         after it
  readback eval checks.yaml --record baseline.json     store its rates as the baseline
  readback eval checks.yaml --baseline baseline.json   compare with them

Exit code: 0 if every check passed, 40 if a destination is not as declared, a rate
is worse, something could not be checked or the baseline does not fit (--json says
which), 65 if the file of checks is invalid.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.evaluate(ctx, args[0], e) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&e.tier, "tier", 0, "1 for the reads of destinations alone, 2 for rates alone (default both)")
	flags.StringVar(&e.baseline, "baseline", "", "compare rates with this file")
	flags.StringVar(&e.record, "record", "", "write the rates to this file, as a baseline to be reviewed")
	flags.StringVar(&e.junit, "junit", "", "write the report to this file as JUnit XML, too")
	flags.StringVar(&e.findings, "findings", "", "write every finding of tier 1 to this file, one JSON object a line; the report names the first of them")
	flags.StringVar(&e.snapshot, "snapshot", "", "evaluate nothing; write what is there now to this file")
	return cmd
}

func (e evaluating) check() error {
	switch {
	case e.tier < 0 || e.tier > 2:
		return usagef("--tier is %d; want 1 or 2, or the flag left out for both", e.tier)
	case e.snapshot != "" && e.baseline+e.record+e.junit+e.findings != "":
		return usagef("--snapshot is made before a run; want it without --baseline, --record, --junit and --findings")
	case e.tier == 2 && e.findings != "":
		return usagef("--findings is about tier 1; want --tier 1, or the flag left out")
	case e.tier == 1 && e.baseline+e.record != "":
		return usagef("--baseline and --record are about tier 2; want --tier 2, or the flag left out")
	}
	return nil
}

// apart refuses to write to a file that was read. Only a baseline may be recorded over
// the one that was compared.
func (e evaluating) apart(read []string) error {
	for _, out := range []struct{ flag, path, baseline string }{{"--snapshot", e.snapshot, ""}, {"--record", e.record, ""}, {"--junit", e.junit, e.baseline}, {"--findings", e.findings, e.baseline}} {
		for _, path := range append(read, out.baseline) {
			if out.path != "" && path != "" && sameFile(out.path, path) {
				return usagef("%s is %s, which the evaluation reads and which would be lost; want another file", out.flag, report.Safe(out.path))
			}
		}
	}
	return nil
}

// sameFile reports whether two paths are of one file that exists.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func (a *app) evaluate(ctx context.Context, path string, e evaluating) (int, error) {
	if err := e.check(); err != nil {
		return 0, err
	}
	d, err := a.onlyDestinations()
	if err != nil {
		return 0, err
	}
	defer d.Disconnect()
	bar, end := a.progress()
	defer end()
	var at eval.Progress
	show := func(p eval.Progress) {
		at = p
		bar(p.Doing, p.Done, p.Of)
	}
	load := func(path string) (*eval.File, error) { return eval.LoadWith(path, show) }
	if e.snapshot != "" {
		load = eval.LoadBefore
	}
	f, err := load(path)
	if err != nil {
		return 0, err
	}
	configured, err := config.Find(a.config, a.env)
	if err != nil {
		return 0, err
	}
	if err := e.apart(append(f.Files(), configured)); err != nil {
		return 0, err
	}
	if e.snapshot != "" {
		err := written(e.snapshot, func(w io.Writer) error { return eval.Snapshot(ctx, f, d.Reg, w) })
		if err != nil {
			return 0, interrupted(ctx, err, "no snapshot was written; run it again")
		}
		return 0, a.print(map[string]string{"snapshot": e.snapshot}, func() string { return "Written: " + report.Safe(e.snapshot) + "\n" })
	}
	o := eval.Options{Tier: e.tier, Recording: e.record != "", Progress: show}
	if e.baseline != "" {
		if o.Baseline, err = eval.ReadBaseline(e.baseline); err != nil {
			return 0, err
		}
	}
	rep, err := e.run(ctx, f, d.Reg, o)
	end()
	if err == nil { // what was not read is reported as not checked
		err = ctx.Err()
	}
	if err != nil {
		return 0, interrupted(ctx, err, "%s, %s; there is no report, and no destination was changed. Run it again", cmp.Or(at.Doing, "reading"), counted(at.Done, at.Of))
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
	if keep != nil { // the report has the reason, and decides the exit code
		_, _ = fmt.Fprintln(a.stderr, "readback:", keep)
	}
	return answer.Exit, nil
}

// run evaluates, and writes each finding to the findings file as soon as it is known.
func (e evaluating) run(ctx context.Context, f *eval.File, reg *connectors.Registry, o eval.Options) (eval.Report, error) {
	if e.findings == "" {
		return eval.Run(ctx, f, reg, o)
	}
	file, err := os.OpenFile(e.findings, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return eval.Report{}, err
	}
	to := bufio.NewWriter(file)
	enc := json.NewEncoder(to)
	var failed error
	o.OnFinding = func(check string, unread bool, n eval.Named) {
		result := eval.Fail
		if unread {
			result = eval.NotChecked
		}
		failed = cmp.Or(failed, enc.Encode(struct {
			Check  string      `json:"check"`
			Result eval.Result `json:"result"`
			eval.Named
		}{check, result, n}))
	}
	rep, err := eval.Run(ctx, f, reg, o)
	return rep, errors.Join(err, failed, to.Flush(), file.Close())
}

// errNotRecorded is why there is no baseline.
var errNotRecorded = errors.New("nothing was recorded: a run that left the world otherwise than declared is no baseline")

// keep writes the requested files.
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

// exits of evaluations. A verdict that is not listed could not be checked.
func exitOf(v eval.Verdict) int {
	switch v {
	case eval.VerdictPassed:
		return exitVerified
	case eval.VerdictWrong:
		return exitAttention
	case eval.VerdictWorse:
		return exitAttention
	}
	return exitAttention
}

// written writes a file whole: if filling it fails, there is no file.
func written(path string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// onlyDestinations creates the destinations of the configuration, without a ledger.
func (a *app) onlyDestinations() (*server.Instance, error) {
	path, err := config.Find(a.config, a.env)
	if err != nil {
		return nil, err
	}
	c, err := config.LoadDestinations(path, a.environment())
	if err != nil {
		return nil, err
	}
	a.forgetSecrets(c)
	reg, err := c.Registry(a.env)
	if err != nil {
		return nil, err
	}
	return &server.Instance{Process: server.Process{Log: a.logger(c.Log)}, Reg: reg}, nil
}
