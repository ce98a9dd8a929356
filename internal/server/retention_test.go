package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/ledger"
)

// A ledger that was kept for years under an old configuration loses nothing at the first
// start of a version with a default: the log has what will be pruned, from when on, and
// what to set, and a month passes first. The notice begins again when a configured
// retention is removed.
func TestDefaultRetentionGivesNotice(t *testing.T) {
	byDefault := config.Retention{Keep: 400 * day, Remember: 800 * day, Every: time.Hour, Default: true}
	forever := config.Retention{Keep: ledger.Forever, Remember: ledger.Forever, Every: time.Hour}
	brief := config.Retention{Keep: 30 * day, Remember: 800 * day, Every: time.Hour}
	long := config.Retention{Keep: 700 * day, Remember: 800 * day, Every: time.Hour}
	type run struct {
		retention config.Retention
		days      int // that the worker runs
	}
	for name, c := range map[string]struct {
		runs   []run
		pruned bool
	}{
		"29 days":               {[]run{{byDefault, 29}}, false},
		"31 days":               {[]run{{byDefault, 31}}, true},
		"31 days, with a stop":  {[]run{{byDefault, 10}, {byDefault, 21}}, true},
		"for ever between them": {[]run{{byDefault, 29}, {forever, 1}, {byDefault, 29}}, false},
		"another between them":  {[]run{{byDefault, 29}, {long, 1}, {byDefault, 29}}, false},
		"for ever":              {[]run{{forever, 200}}, false},
		"configured":            {[]run{{brief, 1}}, true},
		"none (--no-prune)":     {[]run{{config.Retention{}, 200}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ledger.NewMemory()
				rec := settledWrite(t, l)
				time.Sleep(500 * day)
				var log bytes.Buffer
				for _, r := range c.runs {
					d := &Instance{Config: config.Config{Retention: r.retention}, Ledger: l, Process: Process{Log: slog.New(slog.NewTextHandler(&log, nil))}}
					ctx, end := context.WithTimeout(t.Context(), time.Duration(r.days)*day)
					d.PruneRegularly(ctx)
					<-ctx.Done()
					end()
				}
				got, err := l.Get(t.Context(), "acme", rec.ID)
				if err != nil || got.Tombstone != c.pruned {
					t.Errorf("tombstone %t, error %v; want %t. The log:\n%s", got.Tombstone, err, c.pruned, &log)
				}
				said := strings.Contains(log.String(), "writes that settled more than 400 days ago become tombstones") && strings.Contains(log.String(), "retention.keep: forever keeps them")
				if said != c.runs[0].retention.Default {
					t.Errorf("the log says what to set: %t:\n%s", said, &log)
				}
			})
		})
	}
}

// While a worker with a configured retention runs, also one that keeps everything for ever,
// the notice of the others does not end.
func TestConfiguredRetentionHoldsTheDefaultBack(t *testing.T) {
	for name, keep := range map[string]time.Duration{"for ever": ledger.Forever, "700 days": 700 * day} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ledger.NewMemory()
				rec := settledWrite(t, l)
				time.Sleep(500 * day)
				ctx, end := context.WithTimeout(t.Context(), 2*retentionNotice)
				defer end()
				var workers sync.WaitGroup
				for _, r := range []config.Retention{
					{Keep: keep, Remember: max(keep, 800*day), Every: time.Hour},
					{Keep: 400 * day, Remember: 800 * day, Every: time.Hour, Default: true},
				} {
					d := &Instance{Config: config.Config{Retention: r}, Ledger: l, Process: Process{Log: slog.New(slog.DiscardHandler)}}
					workers.Go(func() { d.PruneRegularly(ctx) })
				}
				workers.Wait()
				if got, err := l.Get(t.Context(), "acme", rec.ID); err != nil || got.Tombstone {
					t.Errorf("tombstone %t, error %v; want that the worker by default prunes nothing", got.Tombstone, err)
				}
			})
		})
	}
}

// What `status` and `doctor` show of the default, and when.
func TestDefaultRetentionIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Instance{Ledger: ledger.NewMemory(), Process: Process{Log: slog.New(slog.DiscardHandler)},
			Config: config.Config{Retention: config.Retention{Keep: 400 * day, Remember: 800 * day, Every: time.Hour, Default: true}}}
		const what = ", writes that settled more than 400 days ago become tombstones, which are forgotten after 800; retention.keep: forever keeps them"
		shows := func(want string) {
			t.Helper()
			if got, err := d.DefaultRetention(t.Context()); err != nil || got != want {
				t.Errorf("%q, error %v; want %q", got, err, want)
			}
		}
		shows("from 30 days after the first start of `readback serve` or `readback work` on" + what)
		begin := time.Now().Add(retentionNotice).UTC().Format(time.RFC3339)
		d.announceRetention(t.Context())
		shows("from " + begin + " on" + what)
		time.Sleep(retentionNotice)
		shows("since " + begin + what)
		d.Config.Retention.Default = false
		shows("")
	})
}

// settledWrite is a write that was verified just now.
func settledWrite(t *testing.T, l ledger.Ledger) ledger.Record {
	t.Helper()
	rec, err := ledger.NewRecord(intent.WriteIntent{Tenant: "acme", Workflow: "w", Step: "s", Tool: "t", Destination: "crm", Kind: "contact",
		Write: intent.Create, Key: intent.Fields{"email": "ada@example.com"}, Expect: intent.Fields{"name": "Ada"}})
	if err == nil {
		rec, _, err = l.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
	}
	if err == nil {
		rec, err = l.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent}, ledger.Event{Kind: ledger.EvRead, Verdict: "verified"},
			ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
