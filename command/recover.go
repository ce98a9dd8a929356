package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// noticed is how long running processes may take to notice a restore.
const noticed = time.Second

// maxUnaccounted is how many records without a write are listed by name; all are counted.
const maxUnaccounted = 1000

// maxOpen is how many reasons not to end a restore are named; all are counted.
const maxOpen = 5

// longestMissing bounds how long ago --since is: before it a year is misspelt.
const longestMissing = 10 * 366 * 24 * time.Hour

// recovering are the flags of recover.
type recovering struct {
	since, by, reason string
	end               bool
}

func (a *app) recoverCommand() *cobra.Command {
	var r recovering
	cmd := &cobra.Command{
		Use:   "recover [--since TIME|DURATION --reason TEXT | --end --reason TEXT]",
		Short: "After a restore or a failover that lost commits: account for what was sent meanwhile",
		Long: `Account for what was sent in a time of which the ledger lacks the history: it was
restored from a backup, or a standby that lagged behind took over (docs/operate/run.md).
Stop all processes before the restore, and run this command before any of them starts.

  readback recover --since 2026-02-01T12:00:00Z --reason "disk of db1 failed"
  readback release --all --reason "recover --since was run"
  readback recover
  readback recover --end --reason "no caller retries for longer than a day"

With --since it stops all sends and records the missing time: from then until now. A
write that was open in it, or that a caller asks for again, is read at its destination
before it is sent. A --since after the newest write in the ledger counts as the time of
that write. What is there by its stamp is adopted; what no read can decide waits
for a reviewer. Signed heads that the ledger does not reach are acknowledged. A step of
the gate without an intent is allowed again: do not start its callers before you know
what they did.
Without flags it lists the records with a stamp of readback that were made or changed in
the missing time, and reports those of which the ledger has no write: their callers have
not asked again. With --end it states that no caller will. It is refused while a saga that
may have begun a step in the missing time is not over, or the outbox has older entries.

Exit code: 0 if all is accounted for, 40 if a record is not, or a destination cannot
list its records.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.recover(ctx, r) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.since, "since", "", "the time to which the ledger was restored, or how long ago that is (1h)")
	flags.BoolVar(&r.end, "end", false, "no caller repeats a request of the missing time")
	flags.StringVar(&r.reason, "reason", "", "the reason (required with --since and --end)")
	flags.StringVar(&r.by, "by", "", "your name (default the user of this machine)")
	return cmd
}

func (a *app) recover(ctx context.Context, r recovering) (int, error) {
	changes := r.since != "" || r.end
	switch {
	case r.since != "" && r.end:
		return 0, usagef("--since and --end are given; want one of them")
	case changes && strings.TrimSpace(r.reason) == "":
		return 0, usagef("--reason is missing; want why")
	case !changes && r.reason != "":
		return 0, usagef("--reason is given without --since or --end")
	}
	r.by = cmp.Or(r.by, me())
	if !changes {
		return a.account(ctx)
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	var s ledger.Restore
	if r.end {
		if err = mayEnd(ctx, d.Ledger); err == nil {
			s, err = ledger.EndRestore(ctx, d.Ledger, r.by, d.Text("", r.reason))
		}
	} else {
		s, err = beginRestore(ctx, d, r)
	}
	if err != nil {
		return 0, err
	}
	return 0, a.print(map[string]any{"restore": s}, func() string {
		text := restoreText(s)
		if s.Open() {
			text += "\nAll sends are stopped. Start the processes, then run:\n" +
				"  readback release --all --reason ...   sends continue; each is read first\n" +
				"  readback recover                      what is not accounted for\n" +
				"  readback review                       what a reviewer must decide\n" +
				report.Paragraph("A step of the gate without an intent is allowed again: the ledger does not know that its caller began it. Start such callers when you know what they did.", "")
		}
		return text
	})
}

// errRestoreOpen means that readback itself may ask for a write of the missing time later.
var errRestoreOpen = errors.New("the restore cannot be ended yet")

// mayEnd refuses to end a restore while a saga or an entry of the outbox may bring a write of the missing
// time, which would be new to the ledger and sent without a read.
func mayEnd(ctx context.Context, l ledger.Ledger) error {
	s, _, err := ledger.Restored(ctx, l)
	if err != nil || !s.Open() {
		return err
	}
	stats, err := l.QueueStats(ctx)
	if err != nil {
		return err
	}
	var why []string
	if stats.Outbox > 0 && stats.Oldest.Before(s.Until) {
		why = append(why, fmt.Sprintf("the outbox has entries of the time before it, the oldest of %s", stats.Oldest.UTC().Format(time.RFC3339)))
	}
	tenants, err := l.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		q := ledger.DocumentQuery{Tenant: tenant, Kind: ledger.SagaKind, States: []string{string(saga.Running), string(saga.Undoing), string(saga.Review)}, Limit: 1000}
		for {
			found, _, err := l.FindDocuments(ctx, q)
			if err != nil {
				return err
			}
			for _, p := range found {
				lost, err := maybeLost(ctx, l, s, p)
				if err != nil {
					return err
				}
				if lost {
					why = append(why, fmt.Sprintf("saga %s of tenant %s is %s", report.Safe(p.ID), report.Safe(tenant), p.State))
				}
			}
			if len(found) < q.Limit {
				break
			}
			q.Offset += len(found)
		}
	}
	if len(why) == 0 {
		return nil
	}
	text := strings.Join(why[:min(len(why), maxOpen)], "; ")
	if more := len(why) - maxOpen; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Errorf("%w: %s", errRestoreOpen, text)
}

// maybeLost reports whether a saga may have begun, in the missing time, a step that it begins later. One
// that was recorded since has not, if one of its writes was sent since: what it had done would have been
// read instead.
func maybeLost(ctx context.Context, l ledger.Ledger, s ledger.Restore, p ledger.Document) (bool, error) {
	if p.Created.Before(s.Until) {
		return true, nil
	}
	steps, err := l.Find(ctx, ledger.Search{Tenant: p.Tenant, Workflow: p.ID, Limit: 200})
	sent := func(r ledger.Record) bool { return r.Sends > 1 && r.Restored.Equal(s.Until) } // the first is assumed
	return !slices.ContainsFunc(steps.Records, sent), err
}

// beginRestore stops all sends and records the missing time.
func beginRestore(ctx context.Context, d *server.Instance, r recovering) (s ledger.Restore, err error) {
	_, now, err := ledger.Restored(ctx, d.Ledger)
	if err != nil {
		return s, err
	}
	since, err := sinceWhen(r.since, now)
	if err != nil {
		return s, err
	}
	newest, err := newestWrite(ctx, d.Ledger)
	if err != nil {
		return s, err
	}
	if !newest.IsZero() && newest.Before(since) {
		since = newest // nothing shows that the ledger has what came later: a wrong zone, or a backup of before
	}
	ahead, err := d.Ahead(ctx)
	if err != nil {
		d.Log.Warn("the ledger is not compared with all signed heads that are kept", "error", err)
	}
	reason := d.Text("", r.reason)
	if err := guards.Stop(ctx, d.Ledger, guards.Scope{}, r.by, "recover: "+reason); err != nil {
		return s, err
	}
	if s, err = ledger.RecordRestore(ctx, d.Ledger, since, r.by, reason); err != nil {
		return s, err
	}
	pause.For(ctx, noticed)
	return s, audit.RememberAhead(ctx, d.Ledger, ahead)
}

// newestWrite returns when the newest write in the ledger was last changed. Zero: there is none.
func newestWrite(ctx context.Context, l ledger.Ledger) (newest time.Time, err error) {
	tenants, err := l.Tenants(ctx)
	if err != nil {
		return newest, err
	}
	for _, tenant := range tenants {
		writes, err := l.List(ctx, ledger.Filter{Tenant: tenant, Limit: 1})
		var unread *ledger.UnreadError
		if err != nil && !errors.As(err, &unread) {
			return newest, err
		}
		for _, r := range writes {
			if r.Updated.After(newest) {
				newest = r.Updated
			}
		}
	}
	return newest, nil
}

// sinceWhen reads --since: a time, or how long ago it is.
func sinceWhen(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return at, usagef("--since is %s; want a time such as 2026-02-01T12:00:00Z, or how long ago such as 1h", report.Safe(text))
	case now.Sub(at) > longestMissing:
		return at, usagef("--since is %s; want a time within the last ten years", report.Safe(text))
	case !at.Before(now):
		return at, usagef("--since is %s, and the ledger's clock shows %s; want a time before that", report.Safe(text), now.UTC().Format(time.RFC3339))
	}
	return at, nil
}

func restoreText(s ledger.Restore) string {
	text := fmt.Sprintf("History is missing from %s until %s, as %s recorded: %s.\n", s.Since.UTC().Format(time.RFC3339), s.Until.UTC().Format(time.RFC3339),
		report.Clip(s.By, 80), report.Clip(s.Reason, 240))
	if s.Open() {
		return text + report.Paragraph("Writes that were open then, and those that callers ask for from now on, are read before they are sent.", "")
	}
	return text + fmt.Sprintf("Ended at %s by %s: %s. New writes are sent as usual.\n", s.Ended.UTC().Format(time.RFC3339), report.Clip(s.EndedBy, 80), report.Clip(s.EndedReason, 240))
}

// accounted is what one destination has of the missing time, for one kind of record.
type accounted struct {
	Destination string `json:"destination"`
	Kind        string `json:"kind"`
	// Records have a stamp of readback and were made or changed in the missing time; Known are those
	// of a write in the ledger.
	Records int `json:"records"`
	Known   int `json:"known"`
	// Unknown are the others, at most 1000.
	Unknown []unaccounted `json:"unknown,omitempty"`
	// Gap is why some records may not be listed.
	Gap string `json:"gap,omitempty"`
}

type unaccounted struct {
	Ref     string    `json:"ref,omitempty"`
	URL     string    `json:"url,omitempty"`
	Stamp   string    `json:"stamp"`
	Changed time.Time `json:"changed,omitzero"`
}

// account compares what the destinations list with the ledger. It changes nothing.
func (a *app) account(ctx context.Context) (int, error) {
	d, reg, err := a.registered(ctx, config.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	s, _, err := ledger.Restored(ctx, d.Ledger)
	if err != nil {
		return 0, err
	}
	if s.Until.IsZero() {
		return 0, a.print(map[string]any{"restore": nil}, func() string { return "No restore is recorded.\n" })
	}
	var all []accounted
	seen := make(map[string]*accounted) // by stamp
	records := make(map[string]unaccounted)
	for _, p := range reg.Profiles() {
		all = append(all, accounted{Destination: p.Destination, Kind: p.Kind})
	}
	for i := range all {
		one := &all[i]
		found, gap := stamped(ctx, reg, one.Destination, one.Kind, s)
		one.Records, one.Gap = len(found), gap
		for _, r := range found {
			seen[r.Stamp], records[r.Stamp] = one, unaccounted{report.Clip(r.Ref, 240), report.Clip(r.URL, 1000), r.Stamp, r.Changed}
		}
	}
	if err := eachStamp(ctx, d.Ledger, func(stamp string) {
		if one := seen[stamp]; one != nil {
			one.Known++
			delete(seen, stamp)
		}
	}); err != nil {
		return 0, err
	}
	code := 0
	for stamp, one := range seen {
		if len(one.Unknown) < maxUnaccounted {
			one.Unknown = append(one.Unknown, records[stamp])
		}
	}
	for i := range all {
		slices.SortFunc(all[i].Unknown, func(a, b unaccounted) int {
			return cmp.Or(a.Changed.Compare(b.Changed), cmp.Compare(a.Stamp, b.Stamp))
		})
		if all[i].Known < all[i].Records || all[i].Gap != "" {
			code = exitAttention
		}
	}
	return code, a.print(map[string]any{"restore": s, "destinations": all, "exit": code}, func() string { return restoreText(s) + "\n" + accountText(all) })
}

func accountText(all []accounted) string {
	text := ""
	for _, one := range all {
		text += fmt.Sprintf("%s %s: %d records with a stamp were made or changed in that time, %d of them by writes in the ledger.\n", report.Safe(one.Destination), report.Safe(one.Kind), one.Records, one.Known)
		if one.Gap != "" {
			text += report.Paragraph("Not all are listed: "+one.Gap+". What its callers ask for again is read all the same.", "  ")
		}
		if missing := one.Records - one.Known; missing > 0 {
			text += report.Paragraph(fmt.Sprintf("%d belong to no write in the ledger: their callers have not asked again.", missing), "  ")
		}
		for _, r := range one.Unknown[:min(len(one.Unknown), 20)] {
			text += fmt.Sprintf("  %s %s %s\n", r.Changed.UTC().Format(time.DateTime), report.Clip(cmp.Or(r.URL, r.Ref), 120), r.Stamp)
		}
		if more := one.Records - one.Known - 20; more > 0 {
			text += fmt.Sprintf("  and %d more; --json lists them\n", more)
		}
	}
	return text
}

// stamped lists the records of readback that were made or changed in the missing time, and why that may
// not be all of them.
func stamped(ctx context.Context, reg *connectors.Registry, destination, kind string, s ledger.Restore) (found []connectors.Listed, gap string) {
	conn, p, err := reg.Lookup(destination, kind)
	l, lists := conn.(connectors.Lister)
	switch {
	case err != nil:
		return nil, report.Clip(err.Error(), 240)
	case !lists || p.WriteOnly:
		return nil, "this destination cannot list what is there"
	}
	// Clocks differ, and a send of the missing time may arrive late.
	horizon, _ := p.Horizon.Declared()
	scope := connectors.Scope{Kind: kind, Stamped: true, From: s.Since.Add(-clockBound), Until: s.Until.Add(horizon + clockBound)}
	scope.Each = func(r connectors.Listed) error {
		out := !r.Changed.IsZero() && (r.Changed.Before(scope.From) || r.Changed.After(scope.Until))
		if connectors.IsStamp(r.Stamp) && !out {
			found = append(found, r)
		}
		return nil
	}
	listing, err := l.List(ctx, scope)
	if err == nil {
		err = listing.Stream(scope)
	}
	switch {
	case errors.Is(err, connectors.ErrScope):
		return found, "it lists no whole kind: " + report.Clip(err.Error(), 240)
	case err != nil:
		return found, report.Clip(err.Error(), 240)
	case !listing.Complete:
		return found, cmp.Or(report.Clip(listing.Why, 240), "the list may be incomplete")
	}
	return found, ""
}

// eachStamp passes the stamp of every write in the ledger.
func eachStamp(ctx context.Context, l ledger.Ledger, each func(string)) error {
	tenants, err := l.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		f := ledger.Filter{Tenant: tenant, Limit: 1000}
		for {
			writes, err := l.List(ctx, f)
			if err != nil {
				return err
			}
			for _, r := range writes {
				each(intent.WriteIntent{Tenant: r.Tenant, Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Call: r.Call, Compensates: string(r.Parent)}.Stamp())
			}
			if len(writes) < f.Limit {
				break
			}
			f.Before = writes[len(writes)-1].ID
		}
	}
	return nil
}
