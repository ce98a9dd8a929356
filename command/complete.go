package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
)

const (
	// completeTime bounds a completion: a user waits for it after pressing a key.
	completeTime = 2 * time.Second
	// completeLimit is how many of the newest writes or documents are offered.
	completeLimit = 200
)

// offer lists what a word can be, each with a description after a tab. It reads the tenant of d
// only.
type offer func(ctx context.Context, d *server.Instance) ([]string, error)

// completing adds completion of names to commands and flags.
func (a *app) completing(root *cobra.Command) {
	for path, of := range map[string]offer{
		"show": writeIDs, "resume": writeIDs, "review": writeIDs, "receipt export": writeIDs,
		"saga show": sagaIDs, "saga resume": sagaIDs, "saga cancel": sagaIDs, "saga close": sagaIDs,
		"token revoke": tokenIDs, "hold release": holdIDs,
	} {
		if c, _, err := root.Find(strings.Fields(path)); err == nil {
			c.ValidArgsFunction = a.completion(true, of)
		}
	}
	for path, names := range map[string]func() []string{"probe": a.destinationNames, "catalog": catalogNames} {
		if c, _, err := root.Find([]string{path}); err == nil {
			c.ValidArgsFunction = byName(names)
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for flag, of := range map[string]cobra.CompletionFunc{
			"destination": byName(a.destinationNames), "write": a.completion(false, writeIDs), "before": a.completion(false, writeIDs), "id": a.completion(false, writeIDs),
		} {
			if c.Name() == "init" {
				of = byName(catalogNames)
			}
			if c.Flags().Lookup(flag) != nil {
				_ = c.RegisterFlagCompletionFunc(flag, of) // it fails for a flag that does not exist
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
}

// byName completes one argument, or a flag, by names that need no ledger.
func byName(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(names(), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// completion completes by what the ledger has. It offers nothing if the ledger cannot be
// opened in time, and prints nothing: the user is typing a command.
func (a *app) completion(argument bool, of offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if argument && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		d, err := a.silent().openToRead(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer d.Close()
		all, _ := of(ctx, d) // what can be read is offered
		return beginning(all, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// silent is the program with the same settings, which logs nothing.
func (a *app) silent() *app {
	return &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, env: a.env, environ: a.environ, now: a.now,
		memory: a.memory, config: a.config, tenant: a.tenant}
}

func beginning(all []string, begun string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return !strings.HasPrefix(one, begun) })
}

// offered is one offer. A description comes from others, and must stay on its line.
func offered(name string, about ...string) string {
	return report.Safe(name) + "\t" + report.Clip(flat(strings.Join(about, " ")), 60)
}

func writeIDs(ctx context.Context, d *server.Instance) (all []string, err error) {
	recs, err := d.Ledger.List(ctx, ledger.Filter{Tenant: d.Tenant, Limit: completeLimit})
	for _, r := range recs {
		all = append(all, offered(string(r.ID), string(r.State), r.Tool, r.Destination))
	}
	return all, err
}

func sagaIDs(ctx context.Context, d *server.Instance) ([]string, error) {
	return documents(ctx, d, ledger.SagaKind)
}

func holdIDs(ctx context.Context, d *server.Instance) ([]string, error) {
	return documents(ctx, d, ledger.HoldKind)
}

func documents(ctx context.Context, d *server.Instance, kind string) (all []string, err error) {
	found, _, err := d.Ledger.FindDocuments(ctx, ledger.DocumentQuery{Tenant: d.Tenant, Kind: kind, Limit: completeLimit})
	for _, f := range found {
		all = append(all, offered(f.ID, f.State))
	}
	return all, err
}

func tokenIDs(ctx context.Context, d *server.Instance) (all []string, err error) {
	found, err := access.NewTokens(d.Ledger, &access.TokenOptions{Logger: d.Log}).List(ctx, d.Tenant)
	for _, t := range found {
		all = append(all, offered(t.ID, string(t.Role), t.Name))
	}
	return all, err
}

// destinationNames are the configured destinations that the tenant may name.
func (a *app) destinationNames() (all []string) {
	c, err := a.silent().settings()
	if err != nil {
		return nil
	}
	for _, d := range c.Destinations {
		if d.Tenants == nil || slices.Contains(d.Tenants, c.Tenant) {
			all = append(all, offered(d.Name, d.Type))
		}
	}
	return all
}

// catalogNames are the names of the catalogue and the types.
func catalogNames() []string {
	all := config.Types()
	for _, s := range catalog.All() {
		all = append(all, offered(s.Name, s.System, s.Kind))
	}
	return all
}
