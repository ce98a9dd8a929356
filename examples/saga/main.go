// Saga makes a contact in a CRM, opens a ticket and sends a mail, as one saga: in the end all
// three are done, or none is. It repeats this with each of the three refused and with each answer
// lost, one at a time, and prints what the CRM, the ticket system and the mail server themselves
// have afterwards.
//
// The contact and the ticket can be undone, the mail cannot: it is the pivot, and last.
//
// It needs no account: the CRM (HubSpot's API), the Jira and the mail server run in this process.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"text/tabwriter"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

func main() {
	rows, err := run(context.Background())
	show(os.Stdout, rows)
	if err != nil {
		slog.Error("saga", "error", err)
		os.Exit(1)
	}
}

// row is one run of the saga: its faults, and its result.
type row struct {
	// Refused is the step that its destination refuses, Lost the one whose answers are lost,
	// including those to its undo.
	Refused, Lost string
	State         saga.State
	// What the destinations have in the end, and how many mails were given in.
	Contacts, Tickets, Mails int
	MailSends                int
	// Early means that the mail server was called before contact and ticket existed.
	Early bool
	err   error
}

const (
	nothing = "–"
	every   = "every answer"
)

// run lets the saga live once for each thing that can go wrong.
func run(ctx context.Context) ([]row, error) {
	var rows []row
	for _, refused := range []string{nothing, contact, ticket, letter} {
		for _, lost := range []string{nothing, contact, ticket, letter, every} {
			if refused == nothing || lost != refused { // otherwise the lost answer would be the refusal
				rows = append(rows, row{Refused: refused, Lost: lost})
			}
		}
	}
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() { rows[i].err = rows[i].live(ctx) })
	}
	wg.Wait()
	for _, r := range rows {
		if r.err != nil {
			return rows, fmt.Errorf("%s refused, %s lost: %w", r.Refused, r.Lost, r.err)
		}
	}
	return rows, nil
}

// live runs the saga once.
func (r *row) live(ctx context.Context) error {
	w, err := newWorld()
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.misbehave(r.Refused, r.Lost); err != nil {
		return err
	}
	book := ledger.NewMemory()
	eng := engine.New(book, &w.registry, nil)
	defer eng.Close()
	runner := saga.New(book, eng, nil)
	if _, err := runner.Begin(ctx, plan(w)); err != nil {
		return err
	}
	s, err := runner.Run(ctx, "acme", "welcome-ada")
	if err != nil {
		return err
	}
	r.State = s.State
	r.Contacts, r.Tickets, r.Mails, r.MailSends = w.count()
	r.Early = w.early.Load()
	return nil
}

// plan is the saga: two steps that can be undone, and the one that decides.
func plan(w *world) saga.Plan {
	return saga.Plan{
		Tenant: "acme", ID: "welcome-ada",
		Steps: []saga.Step{
			{Name: contact, Intent: intent.WriteIntent{
				Tool: "save_contact", Destination: contact, Kind: "contact", Write: intent.Create, Reversibility: intent.Compensable,
				Key:    intent.Fields{"email": address},
				Expect: intent.Fields{"firstname": "Ada", "lastname": "Lovelace"},
			}},
			{Name: ticket, Intent: intent.WriteIntent{
				Tool: "open_ticket", Destination: ticket, Kind: "issue", Write: intent.Create, Reversibility: intent.Compensable,
				Key:     intent.Fields{"project": "OPS", "reference": "welcome-ada"},
				Expect:  intent.Fields{"summary": "Call Ada"},
				Payload: intent.Fields{"issuetype": "Task"},
			}},
			{Name: letter, Intent: intent.WriteIntent{
				Tool: "send_mail", Destination: letter, Kind: "message", Write: intent.Create, Reversibility: intent.Pivot,
				Key:    intent.Fields{"account": w.sender()},
				Expect: intent.Fields{"to": []any{address}, "subject": "Welcome", "body": "Dear Ada,\nwelcome.\n"},
			}},
		},
	}
}

func show(out io.Writer, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "refused\tanswers lost\tthe saga\tcontacts\ttickets\tmails\tmail sends")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", r.Refused, r.Lost, r.State, r.Contacts, r.Tickets, r.Mails, r.MailSends)
	}
	_ = t.Flush() // an output error cannot be reported
}
