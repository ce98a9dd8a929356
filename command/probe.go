package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/probe"
	"github.com/readback-go/readback/internal/report"
)

func (a *app) probeCommand() *cobra.Command {
	var kind string
	var o probe.Options
	cmd := &cobra.Command{
		Use:   "probe DESTINATION",
		Short: "Measure a destination against what it declares, in a sandbox account",
		Long: "Write marked sample records; measure how soon each kind of read shows them, whether\n" +
			"the destination honours keys and conditions, and which values it changes; delete\n" +
			"the samples. Use a sandbox account: the samples are real writes. Exit code 40: the\n" +
			"destination is weaker than declared, so that readback could wrongly report a write\n" +
			"as verified or send it again. Where reads lag, the command waits for several\n" +
			"settle times. It keeps to the destination's rate. If you interrupt it, it still\n" +
			"deletes its samples.",
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.probe(ctx, args[0], kind, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "the kind of record (default the only one there is)")
	flags.IntVar(&o.Rounds, "rounds", 5, "how many records the lag is measured with, 1 to 50")
	flags.BoolVar(&o.AllowIrreversible, "allow-irreversible", false, "permit samples that cannot be undone: a mail to the configured address")
	return cmd
}

func (a *app) probe(ctx context.Context, name, kind string, o probe.Options) (int, error) {
	c, err := a.settings()
	if err != nil {
		return 0, err
	}
	if o.Rounds < 1 || o.Rounds > 50 {
		return 0, usagef("--rounds is %d; want 1 to 50", o.Rounds)
	}
	reg, err := c.Registry(a.env)
	if err != nil {
		return 0, err
	}
	if kinds := kindsOf(reg, name); kind == "" && len(kinds) > 1 {
		return 0, usagef("--kind is missing; %s has %s", name, strings.Join(kinds, ", "))
	} else if kind == "" && len(kinds) == 1 {
		kind = kinds[0]
	}
	conn, profile, err := reg.Lookup(name, kind)
	if err != nil {
		return 0, err
	}
	log := a.logger(c.Log)
	show, end := a.progress()
	defer end()
	steps := 0
	o.Progress = func(line string) {
		log.Info("probe", "destination", name, "kind", kind, "now", line)
		steps++
		show(line, steps, 0)
	}
	found, err := probe.Run(ctx, conn, profile, kind, o)
	end()
	if len(found.Lines) > 0 || len(found.Left) > 0 { // what was found is valid, and what is left must be shown, also after an error
		if printed := a.print(found, found.Text); printed != nil {
			return 0, errors.Join(err, printed)
		}
	}
	stuck := slices.IndexFunc(found.Left, func(l probe.Leftover) bool { return !l.Kept }) // a record that can never be removed is no failure
	switch {
	case err != nil && len(found.Left) > 0:
		return 0, interrupted(ctx, err, "the probe ended early; the sample records named in the report are left at the destination. Run it again to measure the rest")
	case err != nil:
		return 0, interrupted(ctx, err, "the probe ended early; no sample record is left at the destination. Run it again")
	case len(found.Weaker) > 0:
		return exitAttention, nil
	case stuck >= 0:
		return 0, fmt.Errorf("sample records could not be taken away: %s (%s)", report.Safe(found.Left[stuck].Name), report.Safe(found.Left[stuck].Why))
	}
	return exitVerified, nil
}
