package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// sampleLoses is the part of responses that the destination of --sample loses: so many
// that a user's second write has probably met one.
const sampleLoses = 0.5

// sampleLog is where the destination of --sample stores its records, so that after a
// restart it still agrees with the ledger.
const sampleLog = "readback-dev-orders.log"

// sampleConfig is what --sample adds to a configuration: its ledger is not used.
const sampleConfig = `ledger: as-it-was.db
destinations:
  orders:
    type: simulated
    url: %s
    class: plain
    tenants: ["*"] # whatever X-Tenant-ID says
risk:
  - {name: money is paid out, tool: wire_money}
`

// sampled starts the trial destination, which loses every other response, and returns the
// configuration with it.
func (a *app) sampled(ctx context.Context, c config.Config) (config.Config, error) {
	o := orders.RunOptions{Options: orders.Plain.Options(), LogPath: sampleLog}
	o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Chance: sampleLoses}}
	read, write := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		failed <- orders.Run(ctx, o, write)
		_ = write.Close() // the reader of its address gets EOF
	}()
	var url string
	if _, err := fmt.Fscanln(read, &url); err != nil {
		return c, fmt.Errorf("the destination to try out: %w", <-failed)
	}
	text := fmt.Sprintf(sampleConfig, url)
	with, err := config.Read("the sample", []byte(text), config.Environment{})
	if err != nil {
		return c, err
	}
	c.Destinations, c.Risks = with.Destinations, with.Risks
	return c, nil
}

// sampleIntent is a write to try out, as callers declare it.
func sampleIntent(tool, order string) string {
	return fmt.Sprintf(`{"workflow":"first-steps","step":%q,"tool":%q,"destination":"orders","kind":"order","key":{"order_id":%q},"write":"create","expect":{"amount_cents":1999,"currency":"USD"}}`, order, tool, order)
}

// sampleText describes what can be tried out.
func sampleText(where string) string {
	curl := func(tool, order string) string {
		return fmt.Sprintf("  curl -s %s/v1/writes -H 'Content-Type: application/json' -H 'Prefer: wait=20' -d '%s'", where, sampleIntent(tool, order))
	}
	return strings.Join([]string{
		"Page: " + where + "/",
		"Destination: orders, which loses every other answer; what it really did is in " + sampleLog,
		"",
		"A first write, verified by reading it back:",
		curl("create_order", "A-1"),
		"",
		"One that you must approve on the page before it is sent:",
		curl("wire_money", "B-1"),
		"",
	}, "\n")
}
