package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

func (a *app) listCommand() *cobra.Command {
	var wanted []string
	var limit int
	var before string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the writes of a tenant, newest first",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.list(ctx, wanted, limit, ledger.ID(before))
		}),
	}
	cmd.Flags().StringSliceVar(&wanted, "state", nil, fmt.Sprintf("only those in these states, of %s", words(service.States)))
	cmd.Flags().IntVar(&limit, "limit", 50, "the maximum number, up to 1000")
	cmd.Flags().StringVar(&before, "before", "", "only those that were begun before this write (an id)")
	return cmd
}

func words(states []ledger.State) string {
	var all []string
	for _, s := range states {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

func (a *app) list(ctx context.Context, wanted []string, limit int, before ledger.ID) (int, error) {
	f := ledger.Filter{Before: before, Limit: limit}
	for _, w := range wanted {
		s := ledger.State(strings.TrimSpace(w))
		if !slices.Contains(service.States, s) {
			return 0, usagef("--state is %q; want some of %s", w, words(service.States))
		}
		f.States = append(f.States, s)
	}
	if limit < 1 || limit > 1000 {
		return 0, usagef("--limit is %d; want 1 to 1000", limit)
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	f.Tenant = d.Tenant
	recs, listing := d.Ledger.List(ctx, f)
	recs = service.ShownAll(recs)
	left, err := partly(listing)
	if err != nil {
		return 0, err
	}
	page := struct {
		Writes []ledger.Record `json:"writes"`
		// After is the write after which the list begins; left out if it begins at the
		// newest. States are those requested; left out for all. They distinguish a full
		// export from a partial one.
		After  ledger.ID      `json:"after,omitempty"`
		States []ledger.State `json:"states,omitempty"`
		// Before continues the list; left out at its end.
		Before ledger.ID `json:"before,omitempty"`
		// Error names writes that are left out because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}{recs, before, f.States, goesOn(listing), left}
	if len(recs) == limit {
		page.Before = recs[limit-1].ID
	}
	return a.part(page, left, func() string {
		now := a.time()
		if len(recs) > 0 {
			now = recs[0].Now
		}
		text := report.List(recs, left != nil, now)
		if page.Before != "" {
			text += fmt.Sprintf("More: --before %s\n", page.Before)
		}
		return text
	})
}
