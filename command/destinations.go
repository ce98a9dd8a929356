package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/report"
)

func (a *app) destinationsCommand() *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use:   "destinations",
		Short: "List the configured destinations, and whether they can be reached",
		Args:  cobra.NoArgs,
		RunE:  a.does(func(ctx context.Context, _ []string) (int, error) { return a.destinations(ctx, probe) }),
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "log in to each, without writing")
	return cmd
}

// described is one destination of the configuration.
type described struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Kinds []string `json:"kinds"`
	// Probe is "ok", the error, or "" when it was not probed.
	Probe string `json:"probe,omitempty"`
}

func (a *app) destinations(ctx context.Context, probe bool) (int, error) {
	c, err := a.settings()
	if err != nil {
		return 0, err
	}
	reg, err := c.Registry(a.env)
	if err != nil {
		return 0, err
	}
	all, code := []described{}, 0
	for _, dest := range c.Destinations {
		d := described{Name: dest.Name, Type: dest.Type, Kinds: kindsOf(reg, dest.Name)}
		if probe {
			d.Probe = probed(ctx, reg, d)
		}
		if d.Probe != "" && d.Probe != "ok" {
			code = exitUnavailable
		}
		all = append(all, d)
	}
	return code, a.print(map[string]any{"destinations": all}, func() string { return describe(all) })
}

func kindsOf(reg *connectors.Registry, name string) []string {
	found := map[string]bool{}
	for _, p := range reg.Profiles() {
		if p.Destination == name {
			found[p.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func probed(ctx context.Context, reg *connectors.Registry, d described) string {
	conn, _, err := reg.Lookup(d.Name, d.Kinds[0])
	if err != nil {
		return err.Error()
	}
	p, ok := conn.(connectors.Prober)
	if !ok {
		return "cannot be probed"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := p.Probe(ctx); err != nil {
		return connectors.OfRead(err).Error()
	}
	return "ok"
}

func describe(all []described) string {
	rows := []string{"NAME\tTYPE\tKINDS\tPROBE"}
	for _, d := range all {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", report.Safe(d.Name), d.Type, strings.Join(d.Kinds, ", "), report.Safe(d.Probe)))
	}
	return report.Table(rows...)
}
