package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/visible"
)

func (a *app) devCommand() *cobra.Command {
	s := serveSettings{dev: true, sample: true}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try it out: a server with a destination that loses answers, and two writes",
		Long: `Serve on this machine, with a destination to try out that loses every other answer; make
one write that is verified and one that a reviewer must approve; and print where to see
them. On a terminal it opens the review UI in your browser. It ends at Ctrl-C. No
credentials are checked.

The ledger is ` + devLedger + ` and the destination's records are in ` + sampleLog + `, both in
this folder. They are kept: a second start continues with them.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.serve(ctx, s) }),
	}
	s.given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&s.noBrowser, "no-browser", false, "do not open the review UI in a browser")
	cmd.Flags().StringVar(&s.listen, "listen", "", "where to listen, host:port; port 0 takes a free one (default "+config.DefaultServer().Listen+")")
	return cmd
}

// sampleLoses is the part of responses that the destination of dev loses: so many
// that a user's second write has probably met one.
const sampleLoses = 0.5

// sampleLog is where the destination of dev stores its records, so that after a
// restart it still agrees with the ledger.
const sampleLog = "readback-dev-orders.log"

// sampleConfig is what dev adds to a configuration: its ledger is not used.
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

// tryOut makes two writes through the server, as a caller does: one that is verified, and
// one that waits for approval. It prints how each ended.
func (a *app) tryOut(ctx context.Context, where string, browser bool) {
	client := &http.Client{Timeout: time.Minute}
	for _, w := range []struct{ about, tool, order string }{
		{"Order A-1", "create_order", "A-1"},
		{"Payment B-1", "wire_money", "B-1"},
	} {
		var out struct{ Text, ID string }
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, where+"/v1/writes", strings.NewReader(sampleIntent(w.tool, w.order)))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Prefer", "wait=20")
			var resp *http.Response
			if resp, err = client.Do(req); err == nil {
				err = json.NewDecoder(resp.Body).Decode(&out)
				_ = resp.Body.Close() // it was only read
			}
		}
		if err != nil {
			_, _ = fmt.Fprintf(a.stdout, "\n%s was not made: %v\n", w.about, err)
			return // the server ends
		}
		_, _ = fmt.Fprintf(a.stdout, "\n%s: %s\n  %s/writes/%s\n", w.about, visible.Lines(out.Text), where, out.ID)
	}
	_, _ = fmt.Fprintf(a.stdout, `
Approve the payment at %s/inbox. Make a write of your own:

  curl -s %s/v1/writes -H 'Content-Type: application/json' -H 'Prefer: wait=20' -d '%s'

Let the other commands read this ledger, in another terminal (they know no destination then: decide on the pages):

  echo 'ledger: %s' > readback-dev.yaml && readback list --config readback-dev.yaml

The destination loses every other answer. What it really did is in %s.
`, where, where, sampleIntent("create_order", "A-2"), devLedger, sampleLog)
	if browser && a.browse != nil {
		a.browse(ctx, where+"/inbox")
	}
}

// browser opens an address in the browser of the user, nil if there is none: nothing is
// displayed, or no user is at a terminal. An address that cannot be opened was printed.
func (a *app) browser() func(ctx context.Context, address string) {
	displayed := a.env("DISPLAY") != "" || a.env("WAYLAND_DISPLAY") != ""
	program := []string{"xdg-open"}
	switch {
	case !a.interactive:
		return nil
	case runtime.GOOS == "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case runtime.GOOS == "darwin":
		program = []string{"open"}
	case !displayed:
		return nil
	}
	return func(ctx context.Context, address string) {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], append(program[1:], address)...) //nolint:gosec // the server's own address
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }() // it ends on its own
		}
	}
}
