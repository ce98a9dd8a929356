package command

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
)

// switching are the flags of stop and release.
type switching struct {
	guards.Scope
	all        bool
	dryRun     bool
	by, reason string
}

func (a *app) stopCommand() *cobra.Command {
	return a.switchCommand("stop", "Stop sends, everywhere and within a second",
		`Stop the sends of a tenant, a destination, a tool, or of everything, for every worker
on the ledger, within a second. With several names it stops only the sends that match
all of them; without --tenant for all tenants. The stop lasts until an operator releases it; the ledger records who set it
and why. Workers still read back earlier sends. Stopped writes wait, and none is lost.
With --dry-run it stops nothing and counts the writes, workflows and sagas that the stop
would affect now.`,
		func(ctx context.Context, d *server.Instance, s switching) error {
			return guards.Stop(ctx, d.Ledger, s.Scope, s.by, d.Text(s.Tenant, s.reason))
		})
}

func (a *app) releaseCommand() *cobra.Command {
	return a.switchCommand("release", "End a stop",
		`End a stop. Name its scope exactly: releasing one destination does not end a stop of
everything, and without --tenant no stop of one tenant. "readback stops" lists the stops.`,
		func(ctx context.Context, d *server.Instance, s switching) error {
			return guards.Release(ctx, d.Ledger, s.Scope, s.by, d.Text(s.Tenant, s.reason))
		})
}

func (a *app) switchCommand(name, short, long string, do func(context.Context, *server.Instance, switching) error) *cobra.Command {
	var s switching
	cmd := &cobra.Command{
		Use:   name + " --tenant NAME|--destination NAME|--tool NAME|--all --reason TEXT",
		Short: short, Long: long + "\n\nAgents must not be able to run this command.",
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			s.Tenant = a.tenant
			return a.switched(ctx, s, name, do)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Destination, "destination", "", "the destination")
	flags.StringVar(&s.Tool, "tool", "", "the tool")
	flags.BoolVar(&s.all, "all", false, "everything")
	flags.StringVar(&s.reason, "reason", "", "the reason (required)")
	if name == "stop" {
		flags.BoolVar(&s.dryRun, "dry-run", false, "stop nothing; show what the stop would affect")
	}
	flags.StringVar(&s.by, "by", "", "your name (default the user of this machine)")
	return cmd
}

func (a *app) switched(ctx context.Context, s switching, name string, do func(context.Context, *server.Instance, switching) error) (int, error) {
	switch {
	case s.all && s.Scope != guards.Scope{}:
		return 0, usagef("--all and %s are given; want either everything or names", s.Scope)
	case !s.all && s.Scope == guards.Scope{}:
		return 0, usagef("nothing is named; want --tenant, --destination or --tool with a name, or --all")
	case strings.TrimSpace(s.reason) == "" && !s.dryRun:
		return 0, usagef("--reason is missing; want why")
	}
	s.by = cmp.Or(s.by, me())
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if err := knows(d, s.Destination, name); err != nil {
		return 0, err
	}
	if s.dryRun {
		return a.printEffect(ctx, d, s.Scope)
	}
	if err := do(ctx, d, s); err != nil {
		return 0, err
	}
	return a.printStops(ctx, d)
}

// printEffect shows what a stop would affect.
func (a *app) printEffect(ctx context.Context, d *server.Instance, s guards.Scope) (int, error) {
	effect, err := service.EffectOf(ctx, d.Ledger, d.Sagas(nil, nil), s)
	if err != nil {
		return 0, err
	}
	return 0, a.print(effect, func() string {
		text := report.Paragraph(fmt.Sprintf("Nothing was stopped. A stop of %s would affect now:", report.Clip(s.String(), 240)), "")
		open := 0
		for _, w := range effect.Writes {
			if w.Count > 0 {
				open += w.Count
				text += report.Paragraph(fmt.Sprintf("%d %s. %s", w.Count, report.Word(w.State), w.What), "  ")
			}
		}
		if open == 0 {
			text += "  No open write.\n"
		}
		text += fmt.Sprintf("  Workflows with these writes: %s. Sagas: %s.\n", atLeast(effect.More, effect.Workflows), atLeast(effect.More, effect.Sagas))
		if len(effect.Stops) > 0 {
			text += "  It is stopped already; readback stops says why.\n"
		}
		return text
	})
}

func atLeast(more bool, n int) string {
	if more {
		return fmt.Sprintf("at least %d", n)
	}
	return strconv.Itoa(n)
}

// me is the user of this machine, recorded as the actor.
func me() string {
	u, err := user.Current()
	if err != nil {
		return "unknown user"
	}
	return u.Username
}

// knows refuses a destination that is not configured: a stop of a misspelt name stops
// nothing. One that was removed from the configuration can be released.
func knows(d *server.Instance, destination, name string) error {
	names := d.Destinations()
	if destination == "" || slices.Contains(names, destination) || name == "release" {
		return nil
	}
	slices.Sort(names)
	return usagef("--destination is %q, which the configuration does not know; it has: %s", destination, cmp.Or(strings.Join(names, ", "), "none"))
}

func (a *app) stopsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stops",
		Short: "List the stops, by whom and why, including released ones",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, err := a.openToRead(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			return a.printStops(ctx, d)
		}),
	}
}

func (a *app) printStops(ctx context.Context, d *server.Instance) (int, error) {
	found, err := guards.Status(ctx, d.Ledger)
	if err != nil {
		return 0, err
	}
	stops := report.Stops(found.Stops)
	return 0, a.print(map[string]any{"stops": stops}, func() string {
		holding := 0
		for _, s := range stops {
			if s.Active {
				holding++
			}
		}
		if holding == 0 {
			return "Nothing is stopped.\n" + report.StopsText(stops, found.Now)
		}
		return fmt.Sprintf("Stopped: %d. It holds everywhere within a second.\n", holding) + report.StopsText(stops, found.Now)
	})
}
