package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Tokens for agents, people and programs",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("token what? want create, list or revoke")
		}),
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return cmd
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var n access.NewToken
	var role, ttl string
	cmd := &cobra.Command{
		Use:   "create --role ROLE --name NAME",
		Short: "Make a token, and print its secret once",
		Long: `Make a token of the tenant, for one that acts under a name: an agent or another
program, or a person who reviews. The secret is printed on standard output, once:
it is kept nowhere, and nobody can print it again. All else goes to standard error.

A token is sent as "Authorization: Bearer rbk_...". An agent declares writes and
asks for outcomes; it decides nothing, ever. A reviewer decides about what waits
for a person, an operator does all there is to do, an auditor looks.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			n.Role = engine.Role(role)
			return a.createToken(ctx, n, ttl)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&role, "role", "", "agent, reviewer, operator or auditor (required)")
	flags.StringVar(&n.Name, "name", "", "who acts with it: what is recorded as asking and deciding (required)")
	flags.StringVar(&ttl, "ttl", days(access.DefaultTTL), "how long it is good, at most "+days(access.MaxTTL))
	flags.StringVar(&n.By, "by", "", "who makes it (default the user of this machine)")
	return cmd
}

func days(d time.Duration) string { return fmt.Sprintf("%dd", d/(24*time.Hour)) }

func (a *app) createToken(ctx context.Context, n access.NewToken, ttl string) (int, error) {
	switch {
	case n.Role == "":
		return 0, usagef("--role is missing; want agent, reviewer, operator or auditor")
	case n.Name == "":
		return 0, usagef("--name is missing; want who acts with it")
	}
	var err error
	if n.TTL, err = config.ParseAge(ttl); err != nil {
		return 0, usagef("--ttl: %w", err)
	}
	n.By = cmp.Or(n.By, me())
	d, tokens, err := a.tokens(ctx, config.OpenOptions{Create: true})
	if err != nil {
		return 0, err
	}
	defer d.close()
	n.Tenant = d.tenant
	made, secret, err := tokens.Create(ctx, n)
	if err != nil {
		return 0, err
	}
	if a.json {
		return 0, report.JSON(a.stdout, struct {
			access.Token
			Secret string `json:"secret"`
		}{made, secret})
	}
	if _, err := fmt.Fprintf(a.stderr, `Token %s for %s, %s of tenant %s, good until %s.
This is its secret. It is not shown again:
`, made.ID, report.Safe(made.Name), made.Role, report.Safe(made.Tenant), made.Expires.Format(time.RFC3339)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(a.stdout, secret); err != nil { // nobody has it then
		return 0, errors.Join(err, tokens.Revoke(context.WithoutCancel(ctx), d.tenant, made.ID, n.By))
	}
	return 0, nil
}

// tokens opens the ledger for the tokens in it.
func (a *app) tokens(ctx context.Context, o config.OpenOptions) (*desk, *access.Tokens, error) {
	c, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	d, err := a.open(ctx, c, o)
	if err != nil {
		return nil, nil, err
	}
	notes, ok := d.ledger.(ledger.Notes)
	if !ok {
		d.close()
		return nil, nil, errors.New("this ledger has no room for tokens")
	}
	return d, access.NewTokens(notes, &access.TokenOptions{Now: a.time, Logger: d.log}), nil
}

func (a *app) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "The tokens of the tenant, those that ended among them",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, tokens, err := a.tokens(ctx, config.OpenOptions{})
			if err != nil {
				return 0, err
			}
			defer d.close()
			return a.printTokens(ctx, tokens, d)
		}),
	}
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token, everywhere and within five seconds",
		Long: `End a token of the tenant, and the sessions that people began with it: no server
on the ledger takes it any more, within five seconds. Who did so is recorded. What
was asked for with it goes on; "readback stop" holds what is to be sent.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			d, tokens, err := a.tokens(ctx, config.OpenOptions{})
			if err != nil {
				return 0, err
			}
			defer d.close()
			if err := tokens.Revoke(ctx, d.tenant, args[0], cmp.Or(by, me())); err != nil {
				return 0, err
			}
			return a.printTokens(ctx, tokens, d)
		}),
	}
	cmd.Flags().StringVar(&by, "by", "", "who ends it (default the user of this machine)")
	return cmd
}

// shownToken is a token with how it stands, for machines.
type shownToken struct {
	access.Token
	State string `json:"state"`
}

func (a *app) printTokens(ctx context.Context, tokens *access.Tokens, d *desk) (int, error) {
	all, err := tokens.List(ctx, d.tenant)
	if err != nil {
		return 0, err
	}
	now := a.time()
	shown := make([]shownToken, 0, len(all))
	for _, each := range all {
		shown = append(shown, shownToken{each, stateOf(each, now)})
	}
	return 0, a.print(map[string]any{"tenant": d.tenant, "tokens": shown}, func() string { return tokensText(shown, d.tenant, now) })
}

func stateOf(t access.Token, now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !t.Active(now):
		return "expired"
	}
	return "good"
}

// tokensText is a table of tokens. Names are somebody's text.
func tokensText(all []shownToken, tenant string, now time.Time) string {
	if len(all) == 0 {
		return fmt.Sprintf("Tenant %s has no tokens.\n", report.Safe(tenant))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // to memory
	line("ID", "ROLE", "NAME", "STATE", "UNTIL", "MADE", "BY")
	for _, t := range all {
		state, until := t.State, humanize.RelTime(t.Expires, now, "ago", "from now")
		if t.State == "revoked" {
			state += " by " + report.Safe(t.RevokedBy)
			until = humanize.RelTime(t.Revoked, now, "ago", "from now")
		}
		line(t.ID, string(t.Role), report.Safe(t.Name), state, until, humanize.RelTime(t.Created, now, "ago", "from now"), report.Safe(t.CreatedBy))
	}
	_ = w.Flush() // to memory
	return b.String()
}
