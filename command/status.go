package command

import (
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what needs attention, and the open writes of every tenant",
		Long: `Show what needs attention first; then the queues with their ages, the outbox,
circuit breakers, pauses, stops, learned lags, and the ledger's version and clock, for
every tenant. With --tenant only the queues of that tenant. Sagas that wait for a
reviewer, and the newest signed head of the audit log, are those of one tenant: the
configured one, or --tenant.

Exit code: 0 if nothing needs attention, otherwise 40. The command changes nothing. It
reads the open writes, the held writes and the first unsealed events once each, with
--watch every two seconds until SIGINT or SIGTERM.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.status(ctx, watch) }),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every two seconds")
	return cmd
}

// watchEvery is the pace of status --watch.
const watchEvery = 2 * time.Second

func (a *app) status(ctx context.Context, watch bool) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for {
		if f, ok := a.stdout.(*os.File); ok && watch && !a.json && term.IsTerminal(int(f.Fd())) {
			_, _ = io.WriteString(a.stdout, "\x1b[H\x1b[2J") // an empty screen
		}
		code, err := a.statusOf(ctx, d)
		if err != nil || !watch {
			return code, err
		}
		select {
		case <-ctx.Done():
			return code, nil
		case <-time.After(watchEvery):
		}
	}
}

// statusOf shows the status of an open ledger once.
func (a *app) statusOf(ctx context.Context, d *server.Instance) (int, error) {
	found, err := readStatus(ctx, d)
	if err != nil {
		return 0, err
	}
	if a.tenant != "" {
		found.QueueStats.Queues = slices.DeleteFunc(found.QueueStats.Queues, func(q ledger.Queue) bool { return q.Tenant != a.tenant })
	}
	s := report.NewStatus(found)
	waiting, err := sagasWait(ctx, d)
	if err != nil {
		return 0, err
	}
	s.Attention = append(s.Attention, waiting...)
	code := exitVerified
	if len(s.Attention) > 0 {
		code = exitAttention
	}
	return code, a.print(s, s.Text)
}

// readStatus reads the state of the ledger and of the workers on it.
func readStatus(ctx context.Context, d *server.Instance) (report.Found, error) {
	f := report.Found{Ledger: d.Config.Ledger.String(), Serves: d.Serves}
	var err error
	asked := time.Now()
	if f.QueueStats, err = d.Ledger.QueueStats(ctx); err != nil {
		return f, err
	}
	if f.Holds, err = holdsOf(ctx, d, f.QueueStats); err != nil {
		return f, err
	}
	f.Clock = compared(f.QueueStats.Now, d.Time(asked), d.Time(time.Now()))
	if f.Version, err = versionsOf(ctx, d); err != nil {
		return f, err
	}
	if f.Restore, _, err = ledger.Restored(ctx, d.Ledger); err != nil {
		return f, err
	}
	f.Audit = auditStatus(ctx, d)
	if f.Status, err = guards.Status(ctx, d.Ledger); err != nil {
		return f, err
	}
	if f.Retention, err = d.DefaultRetention(ctx); err != nil {
		return f, err
	}
	f.Lags, err = lag.Quantiles(ctx, d.Ledger)
	return f, err
}

// holds counts held writes whose time is short or over, if there are any: as many of a
// tenant as a reviewer would list.
func holdsOf(ctx context.Context, d *server.Instance, s ledger.QueueStats) (map[string]report.Holds, error) {
	all := map[string]report.Holds{}
	for _, q := range s.Queues {
		if _, done := all[q.Tenant]; done || q.State != ledger.Held {
			continue
		}
		recs, err := d.Ledger.List(ctx, ledger.Filter{Tenant: q.Tenant, States: []ledger.State{ledger.Held}, Limit: maxWaiting})
		if _, err = partly(err); err != nil { // unreadable writes are listed as damaged
			return nil, err
		}
		h := report.Holds{}
		for _, r := range recs {
			h = h.Count(r, r.Now)
		}
		all[q.Tenant] = h
	}
	return all, nil
}

// compared compares this machine's clock with the ledger's, which was read between two
// readings of the machine's.
func compared(ledgers, before, after time.Time) report.Clock {
	half := after.Sub(before) / 2
	return report.Clock{Ledger: ledgers, Ahead: before.Add(half).Sub(ledgers).Seconds(), Within: half.Seconds()}
}

// versioned is a ledger that knows its version.
type versioned interface {
	// Version is that of the ledger, and the newest that this program knows.
	Version(ctx context.Context) (have, known int, err error)
}

func versionsOf(ctx context.Context, d *server.Instance) (v report.Version, err error) {
	if l, ok := d.Ledger.(versioned); ok {
		v.Ledger, v.Program, err = l.Version(ctx)
	}
	return v, err
}
