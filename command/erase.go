package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/erasure"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
)

// sealRetries is how many seconds an erasure waits for a sealer at work, which seals
// each second.
const sealRetries = 5

// naming are the flags that name the writes of a command.
type naming struct{ destination, key, write string }

func (n *naming) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.destination, "destination", "", "the destination")
	flags.StringVar(&n.key, "key", "", `the business key as JSON, such as '{"email": "ada@example.com"}'; - reads it from standard input, so that it is in no list of processes`)
	flags.StringVar(&n.write, "write", "", "one write by its ID, instead of destination and key")
}

// subject is the subject that the flags name.
func (n *naming) subject(ctx context.Context, a *app, d *server.Instance) (of erasure.Subject, err error) {
	of = erasure.Subject{Tenant: d.Tenant, Destination: n.destination}
	if of.Write, err = wholeID(ctx, d, n.write); err != nil {
		return of, err
	}
	text := n.key
	if text == "" {
		return of, nil
	}
	if text == "-" {
		const most = 1 << 20
		read, err := io.ReadAll(io.LimitReader(a.stdin, most))
		if err != nil {
			return of, usagef("--key: standard input: %w", err)
		}
		text = string(read)
	}
	if of.Key, err = erasure.ParseKey(text); err != nil {
		return of, usagef("--key: %w", err)
	}
	return of, nil
}

// erasures opens the ledger for erasures, with the kinds of the destinations.
func (a *app) erasures(ctx context.Context) (*server.Instance, *erasure.Service, error) {
	d, reg, err := a.registered(ctx, config.OpenOptions{})
	if err != nil {
		return nil, nil, err
	}
	kinds := make(map[string][]string)
	for _, p := range reg.Profiles() {
		kinds[p.Destination] = append(kinds[p.Destination], p.Kind)
	}
	return d, &erasure.Service{Ledger: d.Ledger, Kinds: kinds, Retries: sealRetries,
		Open: func(r ledger.Record) (intent.WriteIntent, error) {
			return d.Vault.Scope(r.Tenant, string(r.ID)).OpenIntent(r.Intent)
		}}, nil
}

func (a *app) eraseCommand() *cobra.Command {
	var n naming
	var by, reason string
	var yes, dry, leave bool
	cmd := &cobra.Command{
		Use:   "erase --destination NAME --key JSON|--write ID --reason TEXT",
		Short: "Erase what the ledger holds about one record or person",
		Long: `Erase the contents of everything that the ledger holds about one record of the
tenant: its writes, their undo writes, their webhook messages, and the documents of
the step gate and of sagas that contain them.

Without --yes the command only shows what it would erase. It does not erase open
writes and writes under a legal hold, and names them. It keeps how each write ended:
a repeat gets that outcome and is never sent. The ledger and the audit log keep for
ever who erased, when and why: the reason must not name a person. If an erasure is
interrupted, the same command continues it.

docs/operate/security.md lists what remains, and which other systems hold copies.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			if yes && dry {
				return 0, usagef("--yes and --dry-run are given; want one of them")
			}
			return a.erase(ctx, n, cmp.Or(by, me()), reason, yes, !leave)
		}),
	}
	n.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&reason, "reason", "", "the reason, such as a request number (required)")
	flags.StringVar(&by, "by", "", "your name (default the user of this machine)")
	flags.BoolVar(&yes, "yes", false, "erase it; default only show what would be erased")
	flags.BoolVar(&dry, "dry-run", false, "only show what would be erased (the default)")
	flags.BoolVar(&leave, "no-scrub", false, "leave the erased bytes in the file of an SQLite ledger until they are written over; other processes need not wait then")
	cmd.AddCommand(a.eraseListCommand())
	return cmd
}

// shownErasure is what was found and done, for machines.
type shownErasure struct {
	Found    *erasure.Matches `json:"found"`
	Erased   *erasure.Erased  `json:"erased,omitempty"`
	Scrubbed bool             `json:"scrubbed,omitempty"`
}

func (a *app) erase(ctx context.Context, n naming, by, reason string, yes, scrub bool) (int, error) {
	if strings.TrimSpace(reason) == "" {
		return 0, usagef("--reason is missing; want why, such as the number of a request")
	}
	d, s, err := a.erasures(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	of, err := n.subject(ctx, a, d)
	if err != nil {
		return 0, err
	}
	if err := of.Check(); err != nil {
		return 0, usagef("%w", err)
	}
	found, err := s.Find(ctx, of)
	if err != nil {
		return 0, err
	}
	answer := shownErasure{Found: found}
	if yes {
		did, err := s.Erase(ctx, found, by, d.Text(d.Tenant, reason))
		if err != nil {
			return 0, interrupted(ctx, err, "a part of %d writes and %d documents may be erased; run it again to continue", len(found.Writes), len(found.Documents))
		}
		d.Log.Info("erased", "erasure", did.ID, "by", did.By, "writes", did.Writes, "documents", did.Documents)
		if answer.Erased = &did; scrub {
			if err := s.Ledger.Scrub(ctx); err != nil {
				return 0, fmt.Errorf("erasure %s is done, and its bytes are still in the file: %w", did.ID, err)
			}
			answer.Scrubbed = true
		}
	}
	if err := a.print(answer, func() string { return erasedText(answer) }); err != nil {
		return 0, err
	}
	if left := found.Left; answer.Erased != nil && len(answer.Erased.Left) > 0 || !yes && len(left)+len(found.Holds) > 0 {
		return exitAttention, nil
	}
	return 0, nil
}

func erasedText(s shownErasure) string {
	var b strings.Builder
	left := s.Found.Left
	if e := s.Erased; e != nil {
		left = e.Left
		fmt.Fprintf(&b, "Erasure %s erased the contents of %d writes and deleted %d documents and %d refused entries of the outbox.\n", e.ID, e.Writes, e.Documents, e.Refused)
		if !s.Scrubbed {
			b.WriteString("The erased bytes stay in the file until they are written over.\n")
		}
	} else {
		for _, w := range s.Found.Writes {
			fmt.Fprintf(&b, "write %s: %s at %q, %s\n", w.ID, report.Safe(w.Kind), report.Safe(w.Destination), w.State)
		}
		for _, p := range s.Found.Documents {
			fmt.Fprintf(&b, "%s %s, as a whole\n", p.Kind, report.Safe(p.ID))
		}
	}
	for _, l := range left {
		fmt.Fprintf(&b, "not erased: %s\n", report.Safe(leftText(l)))
	}
	for _, h := range s.Found.Holds {
		fmt.Fprintf(&b, "not erased: %s\n", report.Safe(h))
	}
	if s.Found.Erased > 0 {
		fmt.Fprintf(&b, "%d more were erased before.\n", s.Found.Erased)
	}
	if s.Erased == nil {
		fmt.Fprintf(&b, "Nothing was erased. --yes erases the contents of %d writes and deletes %d documents; it cannot be undone.\n", len(s.Found.Writes), len(s.Found.Documents))
	}
	return b.String()
}

func leftText(l ledger.LeftOver) string {
	if l.Write != "" {
		return fmt.Sprintf("write %s: %s", l.Write, l.Why)
	}
	return l.Document + ": " + l.Why
}

func (a *app) eraseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the erasures of the tenant: by whom, when and why",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, s, err := a.erasures(ctx)
			if err != nil {
				return 0, err
			}
			defer d.Close()
			all, total, err := s.Erasures(ctx, d.Tenant)
			if err != nil {
				return 0, err
			}
			return 0, a.print(map[string]any{"tenant": d.Tenant, "erasures": all, "total": total}, func() string {
				rows := []string{"ID\tAT\tBY\tWRITES\tSTATE\tREASON"}
				for _, e := range all {
					state := "finished"
					if e.Finished.IsZero() {
						state = "not finished: the same command continues it"
					}
					rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s", e.ID, e.At.UTC().Format(time.RFC3339), report.Safe(e.By), e.Writes, state, report.Safe(e.Reason)))
				}
				if total == 0 {
					return fmt.Sprintf("Nothing was erased of tenant %s.\n", report.Safe(d.Tenant))
				}
				return report.Table(rows...)
			})
		}),
	}
}
