package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
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
	var s tokenSettings
	cmd := &cobra.Command{
		Use:   "create --role ROLE --name NAME",
		Short: "Create a token, and print its secret once",
		Long: `Create a token of the tenant for a named caller: an agent, another program, or a
person. The secret is printed once, on standard output. It is not stored and cannot be
printed again. Everything else goes to standard error.

Send the token as "Authorization: Bearer rbk_...". An agent declares writes and reads
outcomes; it can never decide. A reviewer decides about waiting writes, an operator can
do everything, an auditor can read everything. Tokens of these three roles need
server.person_tokens: true in the configuration.

An agent's token can have a scope: the destinations, kinds, write types and tools that
it may write, and the maximum of a field. You can give each flag several times. Without
a flag that part is not limited. The agent sees only what it may write. A scope never
changes: revoke the token and create another one. Agents that submit over /v1 choose
the tool name themselves: limit the destination too.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.createToken(ctx, n, s)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.role, "role", "", "agent, reviewer, operator or auditor (required)")
	flags.StringVar(&n.Name, "name", "", "the name that is recorded for its requests and decisions (required)")
	flags.StringVar(&s.ttl, "ttl", "", "how long it is valid, at most "+days(access.MaxTTL)+" (default "+days(access.DefaultTTL)+")")
	flags.StringVar(&s.expires, "expires", "", "when it ends, such as 2027-01-31T00:00:00Z, instead of --ttl")
	flags.StringArrayVar(&s.scope.Destinations, "destination", nil, "scope: a destination that it may write to")
	flags.StringArrayVar(&s.scope.Kinds, "kind", nil, "scope: a kind of record that it may write")
	flags.StringArrayVar(&s.types, "type", nil, "scope: a write type: create, update, upsert or delete")
	flags.StringArrayVar(&s.scope.Tools, "tool", nil, "scope: a tool that it may call")
	flags.StringArrayVar(&s.max, "max", nil, "scope: the most that a field of a write may be, such as /amount=500")
	flags.StringVar(&n.By, "by", "", "your name (default the user of this machine)")
	return cmd
}

func days(d time.Duration) string { return fmt.Sprintf("%dd", d/(24*time.Hour)) }

// tokenSettings are flags of `token create` as they were given.
type tokenSettings struct {
	role, ttl, expires string
	types, max         []string
	scope              engine.Scope
}

// into applies the flags to a token.
func (s tokenSettings) into(n *access.NewToken, now time.Time) error {
	var err error
	n.Role = engine.Role(s.role)
	switch {
	case s.ttl != "" && s.expires != "":
		return usagef("--expires is given beside --ttl; want one of them")
	case s.ttl != "":
		if n.TTL, err = config.ParseAge(s.ttl); err != nil {
			return usagef("--ttl: %w", err)
		}
	case s.expires != "":
		end, err := time.Parse(time.RFC3339, s.expires)
		if err != nil {
			return usagef("--expires is %.60q; want a time such as 2027-01-31T00:00:00Z", s.expires)
		}
		// To the second, as the token stores it.
		if n.TTL = end.Sub(now.UTC().Truncate(time.Second)); n.TTL <= 0 {
			return usagef("--expires is %s, which is over; want a time within %s", s.expires, days(access.MaxTTL))
		}
	}
	for _, t := range s.types {
		s.scope.Writes = append(s.scope.Writes, intent.WriteType(t))
	}
	for _, m := range s.max {
		field, most, ok := strings.Cut(m, "=")
		if !ok {
			return usagef("--max is %.60q; want a field and a number, such as /amount=500", m)
		}
		s.scope.Max = append(s.scope.Max, engine.Ceiling{Field: field, Most: most})
	}
	if s.scope.String() != (*engine.Scope)(nil).String() {
		n.Scope = &s.scope
	}
	return nil
}

func (a *app) createToken(ctx context.Context, n access.NewToken, s tokenSettings) (int, error) {
	if err := s.into(&n, a.time()); err != nil {
		return 0, err
	}
	switch {
	case n.Role == "":
		return 0, usagef("--role is missing; want agent, reviewer, operator or auditor")
	case n.Name == "":
		return 0, usagef("--name is missing; want who acts with it")
	}
	n.By = cmp.Or(n.By, me())
	d, tokens, err := a.tokens(ctx, config.OpenOptions{Create: true})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	n.Tenant = d.Tenant
	made, secret, err := tokens.Create(ctx, n)
	if err != nil {
		return 0, err
	}
	a.recordToken(ctx, d, access.EventTokenCreated, made.ID, n.By)
	if a.json {
		return 0, report.JSON(a.stdout, struct {
			access.Token
			Secret string `json:"secret"`
		}{made, secret})
	}
	scope := ""
	if made.Scope != nil {
		scope = "\nScope: " + report.Safe(made.Scope.String()) + "."
	}
	if _, err := fmt.Fprintf(a.stderr, `Token %s for %s, %s of tenant %s, good until %s.%s
This is its secret. It is not shown again:
`, made.ID, report.Safe(made.Name), made.Role, report.Safe(made.Tenant), made.Expires.Format(time.RFC3339), scope); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(a.stdout, secret); err != nil { // the secret is lost then
		return 0, errors.Join(err, tokens.Revoke(context.WithoutCancel(ctx), d.Tenant, made.ID, n.By))
	}
	return 0, nil
}

// recordToken records that a token was made or revoked, with the actor.
func (a *app) recordToken(ctx context.Context, d *server.Instance, event, id, by string) {
	events := d.Events()
	events.Record(access.Event{Event: event, Tenant: d.Tenant, Name: by, Via: "command line", Credentials: id})
	events.Flush(ctx, true)
}

// tokens opens the ledger for the tokens in it.
func (a *app) tokens(ctx context.Context, o config.OpenOptions) (*server.Instance, *access.Tokens, error) {
	c, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	d, err := a.open(ctx, c, o)
	if err != nil {
		return nil, nil, err
	}
	return d, access.NewTokens(d.Ledger, &access.TokenOptions{Now: a.time, Logger: d.Log, People: c.Server.PersonTokens}), nil
}

func (a *app) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens of the tenant, including ended ones",
		Args:  cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			d, tokens, err := a.tokens(ctx, config.OpenOptions{})
			if err != nil {
				return 0, err
			}
			defer d.Close()
			return a.printTokens(ctx, tokens, d)
		}),
	}
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token, everywhere within five seconds",
		Long: `Revoke a token of the tenant and the sessions that people began with it. Within five
seconds no server on the ledger accepts it. The ledger records who revoked it. Writes
that the token requested continue; "readback stop" stops sends.

Agents must not be able to run this command.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			d, tokens, err := a.tokens(ctx, config.OpenOptions{})
			if err != nil {
				return 0, err
			}
			defer d.Close()
			if err := tokens.Revoke(ctx, d.Tenant, args[0], cmp.Or(by, me())); err != nil {
				return 0, err
			}
			a.recordToken(ctx, d, access.EventTokenRevoked, args[0], cmp.Or(by, me()))
			return a.printTokens(ctx, tokens, d)
		}),
	}
	cmd.Flags().StringVar(&by, "by", "", "your name (default the user of this machine)")
	return cmd
}

// shownToken is a token with its status, for machines.
type shownToken struct {
	access.Token
	State string `json:"state"`
}

func (a *app) printTokens(ctx context.Context, tokens *access.Tokens, d *server.Instance) (int, error) {
	all, err := tokens.List(ctx, d.Tenant)
	if err != nil {
		return 0, err
	}
	now := a.time()
	shown := make([]shownToken, 0, len(all))
	for _, each := range all {
		shown = append(shown, shownToken{each, stateOf(each, now)})
	}
	return 0, a.print(map[string]any{"tenant": d.Tenant, "tokens": shown}, func() string { return tokensText(shown, d.Tenant, now) })
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

// tokensText is a table of tokens. Names are foreign text.
func tokensText(all []shownToken, tenant string, now time.Time) string {
	if len(all) == 0 {
		return fmt.Sprintf("Tenant %s has no tokens.\n", report.Safe(tenant))
	}
	var rows []string
	line := func(cells ...string) { rows = append(rows, strings.Join(cells, "\t")) }
	line("ID", "ROLE", "NAME", "STATE", "UNTIL", "MADE", "BY", "SCOPE")
	for _, t := range all {
		scope := "-"
		if t.Scope != nil {
			scope = report.Safe(t.Scope.String())
		}
		state, until := t.State, humanize.RelTime(t.Expires, now, "ago", "from now")
		if t.State == "revoked" {
			state += " by " + report.Safe(t.RevokedBy)
			until = humanize.RelTime(t.Revoked, now, "ago", "from now")
		}
		line(t.ID, string(t.Role), report.Safe(t.Name), state, until, humanize.RelTime(t.Created, now, "ago", "from now"), report.Safe(t.CreatedBy), scope)
	}
	return report.Table(rows...)
}
