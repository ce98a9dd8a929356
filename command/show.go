package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a write: every event, what was observed, and how it differs",
		Long: `Show a write: every event, what was observed, and how it differs.

ID is the ID of the write, or the beginning of it with at least 4 digits after wr_, such
as wr_d82f. All commands take it, where no other write of the tenant begins with it.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.show(ctx, args[0]) }),
	}
}

func (a *app) show(ctx context.Context, text string) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	id, err := wholeID(ctx, d, text)
	if err != nil {
		return 0, err
	}
	rec, err := d.Ledger.Get(ctx, d.Tenant, id)
	if err != nil {
		return 0, err
	}
	events, err := d.Ledger.Events(ctx, d.Tenant, id)
	if err != nil {
		return 0, err
	}
	rec, events = service.Shown(rec), service.ShownEvents(events)
	life := struct {
		Outcome engine.Outcome `json:"outcome"`
		Record  ledger.Record  `json:"record"`
		Events  []ledger.Event `json:"events"`
		Known   []known        `json:"known"`
	}{engine.OutcomeIn(ctx, d.Ledger, rec), rec, events, knownAt(rec, events)}
	return 0, a.print(life, func() string {
		return a.lead(rec, events) + report.Life(rec, events, life.Outcome, rec.Now) + atTheGate(rec)
	})
}

// lead describes a write in business terms, as its kind names records to people. If the destinations
// cannot be made here, as without their secrets, records are named by kind and key.
func (a *app) lead(rec ledger.Record, events []ledger.Event) string {
	l := report.Lead{Record: rec, Events: events}
	if w, err := intent.DecodeStored(rec.Intent); err == nil {
		l.Intent = w
	}
	if c, err := a.settings(); err == nil {
		if reg, err := c.Registry(a.env); err == nil {
			if _, p, err := reg.Lookup(rec.Destination, rec.Kind); err == nil {
				l.Summary = p.Summary
			}
		}
	}
	return report.Paragraph(l.Text(), "") + "\n"
}

// atTheGate is the command that shows the decision about the step of a write that its
// caller makes.
func atTheGate(rec ledger.Record) string {
	if !rec.Delegated {
		return ""
	}
	return fmt.Sprintf("\nWhat the gate decided about its step:\n  readback workflow show %s\n", report.Safe(rec.Workflow))
}

// known is what was known of a write at one of its events, and the times of an event that
// has durations.
type known struct {
	report.Known
	// Happened is the time of the event. Due is when the write was due for work again,
	// Until when the last recheck was due. Default of the latter: never, or at once.
	Happened time.Time `json:"happened"`
	Due      time.Time `json:"due,omitzero"`
	Until    time.Time `json:"until,omitzero"`
}

func knownAt(rec ledger.Record, events []ledger.Event) []known {
	all := make([]known, 0, len(events))
	for _, one := range report.Shown(rec, events) {
		k, e := known{Known: one.Known, Happened: one.At}, one.Event
		if e.In > 0 {
			k.Due = e.At.Add(e.In)
		}
		if e.Until > 0 {
			k.Until = e.At.Add(e.Until)
		}
		all = append(all, k)
	}
	return all
}
