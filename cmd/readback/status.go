package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "What needs attention, and what is open, of every tenant",
		Long: `What needs attention first, in words; then the queues with their ages, the outbox,
circuit breakers, pauses, stops, learned lags, and the ledger's version and clock.
Of every tenant; with --tenant only the queues of that one. Sagas that wait for a
person, and the newest signed head of the audit log, are told of one tenant, the
configured one or that of --tenant.

Ends with 0 when nothing needs attention, and with 41 when something does. It
changes nothing, and costs the ledger no more than one look at what is open, one at
what waits for approval, and one at the first of what is not sealed.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.status(ctx) }),
	}
}

func (a *app) status(ctx context.Context) (int, error) {
	d, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	defer d.close()
	found, err := d.found(ctx)
	if err != nil {
		return 0, err
	}
	if a.tenant != "" {
		found.Survey.Queues = slices.DeleteFunc(found.Survey.Queues, func(q ledger.Queue) bool { return q.Tenant != a.tenant })
	}
	s := report.NewStatus(found)
	waiting, err := d.sagasWait(ctx)
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

// found looks up how the ledger and those who work on it stand.
func (d *desk) found(ctx context.Context) (report.Found, error) {
	f := report.Found{Ledger: d.config.Ledger.String(), Serves: d.serves}
	surveyor, ok := d.ledger.(ledger.Surveyor)
	if !ok {
		return f, errors.New("this ledger cannot say what is open")
	}
	var err error
	asked := time.Now()
	if f.Survey, err = surveyor.Survey(ctx); err != nil {
		return f, err
	}
	if f.Holds, err = d.holds(ctx, f.Survey); err != nil {
		return f, err
	}
	f.Clock = compared(f.Survey.Now, d.time(asked), d.time(time.Now()))
	if f.Version, err = d.version(ctx); err != nil {
		return f, err
	}
	f.Audit = d.auditStanding(ctx)
	notes, ok := d.ledger.(ledger.Notes)
	if !ok {
		return f, nil
	}
	if f.Standing, err = guards.Status(ctx, notes); err != nil {
		return f, err
	}
	f.Lags, err = lag.Quantiles(ctx, notes)
	return f, err
}

// holds looks at held writes whose time is short or over, where there are any:
// as many of a tenant as a person would list.
func (d *desk) holds(ctx context.Context, s ledger.Survey) (map[string]report.Holds, error) {
	all := map[string]report.Holds{}
	for _, q := range s.Queues {
		if _, done := all[q.Tenant]; done || q.State != ledger.Held {
			continue
		}
		recs, err := d.ledger.List(ctx, ledger.Filter{Tenant: q.Tenant, States: []ledger.State{ledger.Held}, Limit: maxWaiting})
		if _, err = partly(err); err != nil { // what cannot be read stands among what is damaged
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

// compared is how this machine's clock stands to the ledger's, which was read
// at some time between two readings of the machine's.
func compared(ledgers, before, after time.Time) report.Clock {
	half := after.Sub(before) / 2
	return report.Clock{Ledger: ledgers, Ahead: before.Add(half).Sub(ledgers).Seconds(), Within: half.Seconds()}
}

// versioned is a ledger that knows its version.
type versioned interface {
	// Version is that of the ledger, and the newest that this program knows.
	Version(ctx context.Context) (have, known int, err error)
}

func (d *desk) version(ctx context.Context) (v report.Version, err error) {
	if l, ok := d.ledger.(versioned); ok {
		v.Ledger, v.Program, err = l.Version(ctx)
	}
	return v, err
}
