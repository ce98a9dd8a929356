// Wire pays an invoice and notifies the payee, with an orchestrator that is killed in the worst
// moment: the bank has made the transfer, and its answer has not arrived. It prints the result
// without the step gate, and with it:
//
//   - the orchestrator comes back as the same workflow,
//   - it comes back as another workflow that knows nothing of the first,
//   - it stays alive, and the bank never answers.
//
// The orchestrator makes its calls itself; readback never sends. It is another process, and is
// killed for good. The bank and the notifier themselves count the transfers and notifications.
//
// It needs no account: the bank and the notifier are in this process, the ledger is a file in a
// temporary folder.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// invoice is what is paid.
const invoice = "invoice-7721"

func main() {
	ctx := context.Background()
	var err error
	if isOrchestrator() {
		err = orchestrate(ctx, os.Stdout)
	} else {
		err = run(ctx, os.Stdout)
	}
	if err != nil {
		slog.Error("wire", "error", err)
		os.Exit(1)
	}
}

// story is one failure, and how the work is resumed.
type story struct {
	name string
	// gated: the orchestrator calls the gate.
	gated bool
	// bank and notifier are what becomes of the first request to each.
	bank, notifier fate
	// fresh: the second workflow knows nothing of the first.
	fresh bool
}

// stories in the order of the output.
var stories = []story{
	{name: "without the gate, killed after the transfer, and begun again", bank: kills},
	{name: "with the gate: killed after the transfer, and begun again as the same workflow", gated: true, bank: kills},
	{name: "with the gate: killed after the transfer, and begun again as another workflow", gated: true, bank: kills, fresh: true},
	{name: "with the gate: the bank makes the transfer and does not answer", gated: true, bank: hangs},
}

// count is what the bank and the notifier have.
type count struct{ Transfers, Notifications int }

func run(ctx context.Context, out io.Writer) error {
	for _, s := range stories {
		if _, err := s.run(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// run plays it, and returns what the bank and the notifier have afterwards.
func (s story) run(ctx context.Context, out io.Writer) (count, error) {
	_, _ = fmt.Fprintf(out, "\n%s:\n", s.name)
	st, err := newStage(ctx, out)
	if err != nil {
		return count{}, err
	}
	defer st.close()
	workflow, err := st.begin(ctx, s.gated)
	if err != nil {
		return count{}, err
	}
	st.bank.fate, st.notifier.fate = s.bank, s.notifier
	for ended := false; !ended; {
		if ended, err = st.orchestrator(ctx, s.gated, workflow); err != nil {
			return count{}, err
		}
		if !ended && s.fresh {
			if workflow, err = st.begin(ctx, s.gated); err != nil {
				return count{}, err
			}
		}
	}
	c := st.count()
	_, _ = fmt.Fprintf(out, "  the bank has %d transfer(s), the notifier %d notification(s)\n", c.Transfers, c.Notifications)
	return c, nil
}
