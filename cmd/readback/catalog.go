package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/report"
)

func (a *app) catalogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "catalog [NAME]",
		Short: "What is known about destinations, with sources, and what can be promised there",
		Long: "Without a name, a table of every destination that readback has a connector or\n" +
			"a declaration for; with one, its page. No configuration is needed. What is\n" +
			"marked as assumed is not published: it is a cautious default, to be set in the\n" +
			"configuration by an operator who knows better. `readback probe` measures.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return 0, a.catalog(args) }),
	}
}

func (a *app) catalog(args []string) error {
	sheets := catalog.All()
	if len(args) == 1 {
		entry, err := catalog.Find(sheets, args[0])
		if err != nil {
			return usagef("%w", err)
		}
		return a.print(entry, func() string { return catalog.Page(entry, 1) })
	}
	all := []catalog.Entry{}
	for _, s := range sheets {
		all = append(all, catalog.Of(s))
	}
	return a.print(map[string]any{"catalog": all}, func() string { return report.Table(catalog.Rows(sheets)...) })
}
