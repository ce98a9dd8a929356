package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/report"
)

func (a *app) catalogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "catalog [NAME]",
		Short: "Known facts about destinations, with sources, and the promises they allow",
		Long: "Without a name: a table of every destination for which readback has a connector\n" +
			"or a declaration. With a name: its page. No configuration is needed. A value\n" +
			"marked as assumed is not published by the vendor: it is a cautious default that\n" +
			"the configuration can replace. `readback probe` measures the real one.",
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
