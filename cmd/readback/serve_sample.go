package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/internal/config"
)

// sampleLog is where the destination of --sample keeps what it did, so that it
// still knows after a restart what the ledger says that it did.
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
  - {name: money leaves the house, tool: wire_money}
`

// sampled starts the destination to try things out with, which loses every
// other answer, and returns the configuration with it.
func (a *app) sampled(ctx context.Context, c config.Config) (config.Config, error) {
	o := simulated.RunOptions{Options: simulated.Plain.Options(), LogPath: sampleLog}
	o.Faults = []simulated.Fault{{Vice: simulated.LostAnswer, Ops: []simulated.Op{simulated.OpCreate}, Chance: sampleLoses}}
	read, write := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		failed <- simulated.Run(ctx, o, write)
		_ = write.Close() // whoever waits for its address hears that none comes
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

// sampleText says what can be tried out.
func (sv *serving) sampleText() string {
	curl := func(tool, order string) string {
		return fmt.Sprintf("  curl -s %s/v1/writes -H 'Content-Type: application/json' -H 'Prefer: wait=20' -d '%s'", sv.where, sampleIntent(tool, order))
	}
	return strings.Join([]string{
		"Page: " + sv.where + "/",
		"Destination: orders, which loses every other answer; what it really did is in " + sampleLog,
		"",
		"A first write, verified by reading it back:",
		curl("create_order", "A-1"),
		"",
		"One that a person must approve, on the page, before anything is sent:",
		curl("wire_money", "B-1"),
		"",
	}, "\n")
}
