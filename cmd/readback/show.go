package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "The life of a write: every event, what was seen, and how it differs",
		Args:  cobra.ExactArgs(1),
		RunE:  a.does(func(ctx context.Context, args []string) (int, error) { return a.show(ctx, ledger.ID(args[0])) }),
	}
}

func (a *app) show(ctx context.Context, id ledger.ID) (int, error) {
	d, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	defer d.close()
	rec, err := d.ledger.Get(ctx, d.tenant, id)
	if err != nil {
		return 0, err
	}
	events, err := d.ledger.Events(ctx, d.tenant, id)
	if err != nil {
		return 0, err
	}
	life := struct {
		Outcome engine.Outcome `json:"outcome"`
		Record  ledger.Record  `json:"record"`
		Events  []ledger.Event `json:"events"`
	}{engine.OutcomeOf(rec), shown(rec)[0], events}
	for i := range life.Events {
		life.Events[i].Prepared = nil
	}
	return 0, a.print(life, func() string { return report.Life(rec, events, life.Outcome, rec.Now) })
}

// shown are records as they are shown. What was built to be sent is not: it is
// the destination's matter, and may hold addresses that nobody should see.
func shown(recs ...ledger.Record) []ledger.Record {
	all := append([]ledger.Record{}, recs...)
	for i := range all {
		all[i].Prepared = nil
	}
	return all
}
