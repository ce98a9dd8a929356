package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "The audit log: verify it, seal it, show its newest head",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("audit what? want verify, events, head or seal")
		}),
	}
	cmd.AddCommand(a.auditVerifyCommand(), a.auditEventsCommand(), a.auditHeadCommand(), a.auditSealCommand())
	return cmd
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var heads, keys []string
	var behind time.Duration
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify the ledger against its chain, and the chain against signed heads",
		Long: `Compare every event, intent, tombstone and document of the ledger with the chain,
and the chain with signed heads that are kept elsewhere. The report names everything
that was altered, deleted, inserted or reordered, the earliest first. The command
changes nothing. Without heads from outside it proves little: a program that can
write to the ledger can make another chain.

With --heads the check fails if the heads end before the newest one that the ledger
signed: the file was emptied or shortened. Heads that are collected once a day end
early too. --behind 24h allows that for the last 24 hours.

Exit code: 0 if nothing is wrong, 40 if something is. All tenants are checked unless
--tenant names one.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.verifyAudit(ctx, heads, keys, behind) }),
	}
	cmd.Flags().StringArrayVar(&heads, "heads", nil, "a file of signed heads, one per line, or a directory of such files; may be repeated")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the file of a trusted public key of heads; may be repeated")
	cmd.Flags().DurationVar(&behind, "behind", 0, "how far the heads may be behind: those that were signed within this time before the check need not be among them")
	return cmd
}

func (a *app) auditEventsCommand() *cobra.Command {
	q := ledger.DocumentQuery{Kind: access.EventKind}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List security events: logins, refusals, uses of tokens, replayed calls",
		Long: `List the security events of the tenant, the newest first: logins and logouts, refused
credentials and requests, uses of tokens, created and revoked tokens, refused
configurations, and calls that returned the outcome of an earlier call. Equal events
within a minute (uses of a token: an hour) are one event with a count. The log has the
same events, as lines with the member "security".`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, err := a.openToRead(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			q.Tenant = d.Tenant
			found, total, err := d.Ledger.FindDocuments(ctx, q)
			if err != nil {
				return 0, err
			}
			bodies := make([]json.RawMessage, 0, len(found))
			for _, f := range found {
				bodies = append(bodies, f.Body)
			}
			return 0, a.print(map[string]any{"tenant": d.Tenant, "total": total, "events": bodies}, func() string { return eventsText(bodies, total) })
		}),
	}
	cmd.Flags().StringSliceVar(&q.States, "event", nil, "only these events, such as login or forbidden")
	cmd.Flags().StringVar(&q.Subject, "about", "", "only events of this write, token or name")
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "the maximum number of events, up to 1000")
	return cmd
}

// eventsText is a line for each event. Text from callers is in quotes.
func eventsText(bodies []json.RawMessage, total int) string {
	var b strings.Builder
	for _, body := range bodies {
		var e struct {
			access.Event
			Count int       `json:"count"`
			Last  time.Time `json:"last"`
		}
		if err := json.Unmarshal(body, &e); err != nil {
			fmt.Fprintf(&b, "an event that cannot be read: %v\n", err)
			continue
		}
		fmt.Fprintf(&b, "%s  %-19s %dx", e.Last.UTC().Format(time.RFC3339), e.Event.Event, e.Count)
		for _, part := range [][2]string{{"by", e.Name}, {"with", e.Credentials}, {"from", e.Address}, {"action", e.Action}, {"write", e.Write}, {"reason", e.Reason}} {
			if part[1] != "" {
				fmt.Fprintf(&b, " %s %s", part[0], report.Safe(part[1]))
			}
		}
		b.WriteByte('\n')
	}
	if total > len(bodies) {
		fmt.Fprintf(&b, "%d of %d events; --limit shows more.\n", len(bodies), total)
	}
	return b.String()
}

func (a *app) auditHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the newest signed head of the tenant's chain",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, err := a.openToRead(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			e, err := audit.NewestHead(ctx, d.Ledger, d.Tenant)
			if err != nil {
				return 0, err
			}
			text, err := e.Encode()
			if err == nil {
				_, err = a.stdout.Write(append(text, '\n')) // as it is stored: one line, for --heads
			}
			return 0, err
		}),
	}
}

func (a *app) auditSealCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "seal",
		Short: "Seal the new events now, and sign and store heads",
		Long: `Seal the events that are not sealed yet, sign a head of each chain that grew, and
store it, as ` + "`readback serve` and `readback work`" + ` do all the time. The configuration
names the key and the stores. After the first run no event is pruned before it is
sealed.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.sealAudit(ctx) }),
	}
}

func (a *app) sealAudit(ctx context.Context) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	show, end := a.progress()
	defer end()
	s, err := d.NewSealer(func(sealed int) { show("sealing events", sealed, 0) })
	if err != nil {
		return 0, err
	}
	var done struct {
		Entries int `json:"entries"`
		Heads   int `json:"heads"`
	}
	var stuck, unsigned error // one chain that cannot continue stops no other
	done.Entries, stuck = s.Seal(ctx)
	end()
	if ctx.Err() != nil {
		return 0, interrupted(ctx, ctx.Err(), "sealed %s events, and signed no head; run it again to continue", humanize.Comma(int64(done.Entries)))
	}
	done.Heads, unsigned = s.SignAll(ctx)
	if err := s.Flush(ctx); err != nil {
		return 0, fmt.Errorf("%d events were sealed and %d heads signed, but not all are kept: %w", done.Entries, done.Heads, errors.Join(err, stuck, unsigned))
	}
	if err := cmp.Or(stuck, unsigned); err != nil {
		return 0, fmt.Errorf("%d events were sealed and %d heads signed: %w", done.Entries, done.Heads, err)
	}
	return 0, a.print(done, func() string {
		return fmt.Sprintf("Sealed %d events and documents, and signed %d heads.\n", done.Entries, done.Heads)
	})
}

func (a *app) verifyAudit(ctx context.Context, heads, keys []string, behind time.Duration) (int, error) {
	o := audit.VerifyOptions{Outside: len(heads) > 0, AsOf: time.Now().Add(-behind)}
	switch {
	case behind < 0:
		return 0, usagef("--behind: is %s; want 0s or more, such as 24h", behind)
	case behind > 0 && !o.Outside:
		return 0, usagef("--behind: is %s, and no heads are given that could be behind; want --heads as well", behind)
	}
	var err error
	if len(heads) > 0 || len(keys) > 0 {
		if o.Keys, err = trusted(keys); err != nil {
			return 0, err
		}
	}
	if o.Heads, err = readHeads(heads); err != nil {
		return 0, err
	}
	o.Tenant = a.tenant
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	show, end := a.progress()
	defer end()
	at, read := "", 0
	o.Progress = func(doing string, done int) {
		at, read = doing, done
		show(doing, done, 0)
	}
	r, err := audit.Verify(ctx, d.Ledger, o)
	end()
	if err != nil {
		return 0, interrupted(ctx, err, "%s: %s; nothing is proven, and nothing was changed. Run it again", cmp.Or(at, "reading the chain, pages"), humanize.Comma(int64(read)))
	}
	if err := a.print(r, func() string { return auditText(r) }); err != nil {
		return 0, err
	}
	if !r.OK() {
		return exitAttention, nil
	}
	return 0, nil
}

// readHeads reads files of heads, and all files of directories, at any depth.
func readHeads(names []string) (all []signing.Envelope, err error) {
	for _, name := range names {
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			heads, bad := audit.ReadHeads(f)
			all = append(all, heads...)
			if err := f.Close(); err != nil {
				return err
			}
			if len(bad) > 0 { // a head that is skipped may be the one that matters
				return fmt.Errorf("%s: %w", path, errors.Join(bad...))
			}
			return nil
		})
		if err != nil {
			return nil, usagef("--heads: %w", err)
		}
	}
	return all, nil
}

func auditText(r audit.Report) string {
	var b bytes.Buffer
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s\n", report.Safe(p.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	outside := 0
	for _, c := range r.Chains {
		if c.Proven > 0 {
			outside++
		}
		fmt.Fprintf(&b, "tenant %s: %d entries on %d pages, %d of them covered by heads from outside", report.Safe(c.Tenant), c.Entries, c.Pages, c.Proven)
		if !c.HeadAt.IsZero() {
			fmt.Fprintf(&b, ", the newest signed at %s (%s before this check)", c.HeadAt.UTC().Format(time.RFC3339), report.Short(r.Checked.Sub(c.HeadAt).Round(time.Second)))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d not sealed yet", r.Unsealed)
	for _, part := range []struct {
		n    int
		what string
	}{{r.Backfilled, "from before the chain"}, {r.Pruned, "writes pruned by rule"}, {r.Forgotten, "tombstones and documents forgotten by rule"}, {r.Repeated, "sealed twice, the same (a sealer was killed)"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.what)
		}
	}
	b.WriteString("\n")
	for _, e := range r.Erased {
		fmt.Fprintf(&b, "erasure %s of tenant %s at %s, entry %d: the contents of %d writes and %d documents\n",
			report.Safe(e.ID), report.Safe(e.Tenant), e.At.UTC().Format(time.RFC3339), e.Entry, e.Writes, e.Documents)
	}
	for _, n := range r.Notes {
		b.WriteString(report.Safe(n) + "\n")
	}
	for i, n := range r.NotCovered {
		if i == 0 {
			b.WriteString("Not covered by any chain:\n")
		}
		b.WriteString("  " + n + "\n")
	}
	switch {
	case !r.OK():
		b.WriteString("Something is wrong; the first of it comes first.\n")
	case len(r.Chains) == 0:
		b.WriteString("Nothing is chained here: `readback audit seal`, or the section audit of the configuration, begins it.\n")
	case outside < len(r.Chains):
		b.WriteString("The ledger agrees with its chain. Where no head from outside covers it, that proves little: a program that can write to the ledger can make another chain.\n")
	default:
		b.WriteString("Nothing was altered, deleted, inserted or reordered up to the newest heads.\n")
	}
	return b.String()
}
