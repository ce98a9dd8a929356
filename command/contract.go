package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// contractTime bounds the requests to a server that is checked.
const contractTime = 2 * time.Minute

// upstream is how a server is named on the command line.
type upstream struct {
	server  string
	env     []string // NAME=VALUE, or NAME for ours
	headers []string // Name=VARIABLE
}

func (u *upstream) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&u.server, "server", "", "the server: a command line (words, without quotes), or an address that begins with https://")
	f.StringArrayVar(&u.env, "env", nil, "a variable for the command, NAME=VALUE, or NAME to pass ours on; nothing else is passed on but PATH, HOME and the like")
	f.StringArrayVar(&u.headers, "header", nil, "a header for an address, NAME=VARIABLE, whose value is in that variable of ours")
}

func (a *app) contractCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contract",
		Short: "Contracts for tools of MCP servers: draft, check, try, pin, or print one",
	}
	cmd.AddCommand(a.contractSuggest(), a.contractCheck(), a.contractPin(), a.contractTry(), &cobra.Command{
		Use:   "print NAME",
		Short: "Print an included contract, as a start for your own",
		Long:  "Included contracts: " + strings.Join(mcp.Shipped(), ", ") + ".",
		Args:  cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) {
			text, err := mcp.ShippedText(args[0])
			if err != nil {
				return 0, usagef("%w", err)
			}
			return 0, a.print(map[string]string{"name": args[0], "contract": string(text)}, func() string { return string(text) })
		}),
	})
	return cmd
}

func (a *app) contractSuggest() *cobra.Command {
	var u upstream
	cmd := &cobra.Command{
		Use:   "suggest --server SERVER [-- ARGUMENT...]",
		Short: "Draft a contract from a server's tool descriptions, for you to finish",
		Long: "Start the server, list its tools and print a draft. Every guess is marked GUESS, and\n" +
			"the draft cannot be loaded until you remove its first line. No tool is called.\n" +
			"Arguments after -- are passed to the command.\n\n" +
			"  readback contract suggest --server 'node server.js' > contract.yaml",
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return 0, a.suggest(ctx, u, args) }),
	}
	u.flags(cmd)
	return cmd
}

func (a *app) suggest(ctx context.Context, u upstream, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, contractTime)
	defer cancel()
	name, tools, err := a.listed(ctx, u, args)
	if err != nil {
		return err
	}
	text, err := mcp.Suggest(name, tools)
	if err != nil {
		return err
	}
	return a.print(map[string]string{"server": name, "contract": text}, func() string { return text })
}

// listed is the name and version of a server, and its tools.
func (a *app) listed(ctx context.Context, u upstream, args []string) (string, []*mcp.Tool, error) {
	client, err := a.reach(u, args)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = client.Close() }() // it was only read
	session, err := client.Session(ctx)
	if err != nil {
		return "", nil, err
	}
	tools, err := client.Tools(ctx, true)
	name := "an MCP server"
	if i := session.InitializeResult(); i != nil && i.ServerInfo != nil {
		name = strings.TrimSpace(i.ServerInfo.Name + " " + i.ServerInfo.Version)
	}
	return name, tools, err
}

func (a *app) contractPin() *cobra.Command {
	var u upstream
	cmd := &cobra.Command{
		Use:   "pin FILE --server SERVER [-- ARGUMENT...]",
		Short: "Add the digests of a server's tools to a contract",
		Long: "Start the server, list its tools and write their digests into FILE, beside those of\n" +
			"other builds. Review the tools first: clients see them from then on. No tool is called.\n\n" +
			"  readback contract pin contract.yaml --server 'node server.js'",
		Args: cobra.MinimumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return 0, a.pin(ctx, u, args[0], args[1:]) }),
	}
	u.flags(cmd)
	return cmd
}

func (a *app) pin(ctx context.Context, u upstream, file string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, contractTime)
	defer cancel()
	text, err := os.ReadFile(file)
	if err != nil {
		return usagef("%w; an included contract must be printed to a file first: readback contract print NAME", err)
	}
	name, tools, err := a.listed(ctx, u, args)
	if err != nil {
		return err
	}
	pinned, err := mcp.Pin(text, file, name, tools)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, pinned, 0o644); err != nil { //nolint:gosec // a contract has no secrets
		return err
	}
	return a.print(map[string]string{"server": name, "file": file}, func() string {
		return fmt.Sprintf("%s is pinned to the tools of %s.\n", report.Safe(file), report.Safe(name))
	})
}

// stderrLog logs a server's standard error, which may be anything.
type stderrLog struct{ log *slog.Logger }

// Write logs it, quoted.
func (s stderrLog) Write(p []byte) (int, error) {
	s.log.Debug("the server says", "text", string(p))
	return len(p), nil
}

// reach connects to a server that the command line names.
func (a *app) reach(u upstream, args []string) (*mcp.Client, error) {
	s, err := a.upstreamOf(u, args)
	if err != nil {
		return nil, err
	}
	c, err := mcp.NewClient(s, nil)
	if err != nil {
		return nil, usagef("--server: %w", err)
	}
	return c, nil
}

func (a *app) upstreamOf(u upstream, args []string) (mcp.Server, error) {
	if strings.TrimSpace(u.server) == "" {
		return mcp.Server{}, usagef("--server is missing; want a command line or an address")
	}
	s := mcp.Server{Env: map[string]string{}, Headers: map[string]func(context.Context) (string, error){}}
	if a.verbose {
		s.Stderr = stderrLog{a.logger("")}
	}
	if strings.HasPrefix(u.server, "https://") || strings.HasPrefix(u.server, "http://") {
		s.URL = u.server
	} else {
		s.Command = append(strings.Fields(u.server), args...)
	}
	for _, e := range u.env {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = a.env(name)
		}
		s.Env[name] = value
	}
	for _, h := range u.headers {
		name, variable, ok := strings.Cut(h, "=")
		if !ok || a.env(variable) == "" {
			return mcp.Server{}, usagef("--header %s: want NAME=VARIABLE, and the variable set", report.Safe(name))
		}
		s.Headers[name] = func(context.Context) (string, error) { return a.env(variable), nil }
	}
	return s, nil
}

func (a *app) contractTry() *cobra.Command {
	var u upstream
	var arguments string
	var scratch bool
	cmd := &cobra.Command{
		Use:   "try FILE TOOL --arguments JSON --scratch --server SERVER [-- ARGUMENT...]",
		Short: "Make one record on a scratch server, and prove the reading tool",
		Long: "Read with the contract's reading tool, which must not find the record; call TOOL once;\n" +
			"read again, until every field is as called. The record stays, so nothing is done\n" +
			"without --scratch, by which you say that it may.\n\n" +
			"  readback contract try issues.yaml create_issue --arguments '{\"title\": \"Try 1\"}' \\\n    --scratch --server 'node server.js'",
		Args: cobra.MinimumNArgs(2),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if !scratch {
				return 0, usagef("%s would make a record on the server, and it stays; want --scratch if that is a scratch server. Nothing was sent", report.Safe(args[1]))
			}
			return a.tryContract(ctx, u, arguments, args)
		}),
	}
	u.flags(cmd)
	cmd.Flags().StringVar(&arguments, "arguments", "", "the arguments of the call, a JSON object")
	cmd.Flags().BoolVar(&scratch, "scratch", false, "the server is a scratch server: the record may stay on it")
	return cmd
}

// trusted fails where one of the tools that a trial calls is not the one that the contract was
// written for: the write would wait for it to come back.
func (a *app) trusted(ctx context.Context, c *mcp.Contract, names []string, u upstream, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, contractTime)
	defer cancel()
	_, tools, err := a.listed(ctx, u, args)
	if err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: the server has no tool %s", mcp.ErrWithdrawn, name)
		}
		if err := c.Trusts(tools[i]); err != nil {
			return err
		}
	}
	return nil
}

// contractTrial is the result of a trial of a contract.
type contractTrial struct {
	Tool    string         `json:"tool"`
	Proofs  []string       `json:"proofs"`
	Outcome engine.Outcome `json:"outcome"`
}

func (a *app) tryContract(ctx context.Context, u upstream, arguments string, args []string) (int, error) {
	c, err := config.Contract(".", args[0])
	if err != nil {
		return 0, err
	}
	tool := args[1]
	kind, write, ok := c.Target(tool)
	if !ok || write != intent.Create && write != intent.Upsert {
		return 0, usagef("%s makes no record by the contract; want one of its tools under create or upsert: %s", report.Safe(tool), strings.Join(c.Writes(), ", "))
	}
	var given intent.Fields
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return 0, usagef("--arguments: %w; want a JSON object", err)
	}
	if given, err = intent.Normalize(given); err != nil {
		return 0, usagef("--arguments: %w", err)
	}
	in, err := c.Derive(tool, given, nil)
	if err != nil {
		return 0, usagef("--arguments: %w", err)
	}
	in.Tenant, in.Workflow, in.Step, in.Tool, in.Destination = "default", "contract-try-"+strings.ToLower(rand.Text()), "try", tool, "server" // each trial has a stamp of its own
	s, err := a.upstreamOf(u, args[2:])
	if err != nil {
		return 0, err
	}
	if err := a.trusted(ctx, c, append(c.Proofs(tool), tool), u, args[2:]); err != nil {
		return 0, err
	}
	conn, err := mcp.New(c, mcp.Options{Server: s})
	if err != nil {
		return 0, usagef("--server: %w", err)
	}
	defer func() { _ = conn.Close() }() // what it did is known
	before, err := conn.Read(ctx, connectors.Query{Intent: in})
	if err != nil {
		return 0, err
	}
	if len(before.Records) > 0 {
		return 0, usagef("--arguments: the reading tool shows this %s already; want one that is new. Nothing was sent", report.Safe(kind))
	}
	var reg connectors.Registry
	if err := reg.Register("server", connectors.Destination{Connector: conn, Profiles: conn.Profiles()}); err != nil {
		return 0, err
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	out, err := e.Do(ctx, in)
	if err != nil {
		return 0, err
	}
	t := contractTrial{tool, c.Proofs(tool), out}
	err = a.print(t, func() string {
		if out.Status != ledger.Verified {
			return fmt.Sprintf("%s did not prove %s: %s\n", report.Safe(strings.Join(t.Proofs, ", ")), report.Safe(tool), report.Safe(out.Text))
		}
		return fmt.Sprintf("%s showed nothing before the call of %s, and the record as called after it. The record stays: %s\n", report.Safe(strings.Join(t.Proofs, ", ")), report.Safe(tool), report.Safe(out.Ref))
	})
	if out.Status != ledger.Verified {
		return exitAttention, err
	}
	return exitVerified, err
}

func (a *app) contractCheck() *cobra.Command {
	var u upstream
	cmd := &cobra.Command{
		Use:   "check FILE [--server SERVER] [-- ARGUMENT...]",
		Short: "Check a contract, and print its promises in plain words",
		Long: "FILE is a contract, or the name of an included one. Every error is listed with its\n" +
			"line. With --server the contract is compared with the server's tools: the list has\n" +
			"each missing tool, each tool whose description changed, with its new digest, and\n" +
			"the arguments for which a call is refused. No tool is called.",
		Args: cobra.MinimumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.checkContract(ctx, u, args) }),
	}
	u.flags(cmd)
	return cmd
}

// agreement is the result of a contract's check.
type agreement struct {
	Name   string          `json:"name"`
	Server string          `json:"server"`
	Writes []agreedTool    `json:"writes"`
	Reads  []string        `json:"reads"`
	Kinds  []catalog.Entry `json:"kinds"`
	// Held reports that the tools of a server were compared with it.
	Held bool `json:"held"`
	// Withdrawn is why tools of the server would be withdrawn.
	Withdrawn []string `json:"withdrawn,omitempty"`
	// Unknown are tools of the server that it does not mention.
	Unknown []string `json:"unknown,omitempty"`
}

type agreedTool struct {
	Tool   string   `json:"tool"`
	Kind   string   `json:"kind"`
	Write  string   `json:"write"`
	Proofs []string `json:"proofs"`
	// NotChecked are arguments that are sent and never compared.
	NotChecked []string `json:"not_checked,omitempty"`
	// Refused are arguments of the server's tool that cause a call to be refused.
	Refused []string `json:"refused,omitempty"`
}

func (a *app) checkContract(ctx context.Context, u upstream, args []string) (int, error) {
	c, err := config.Contract(".", args[0])
	if err != nil {
		return 0, err
	}
	g := agreement{Name: c.Name(), Server: c.Server(), Reads: c.Reads()}
	for _, t := range c.Writes() {
		kind, w, _ := c.Target(t)
		g.Writes = append(g.Writes, agreedTool{t, kind, string(w), c.Proofs(t), c.NotChecked(t), nil})
	}
	profiles := c.Profiles()
	for _, kind := range c.Kinds() {
		g.Kinds = append(g.Kinds, catalog.Of(connectors.Sheet{Name: c.Name() + "-" + kind, System: c.Server(), Kind: kind, Type: "mcp", Profile: profiles[kind]}))
	}
	if u.server != "" {
		if err := a.hold(ctx, &g, c, u, args[1:]); err != nil {
			return 0, err
		}
	}
	if err := a.print(g, g.text); err != nil {
		return 0, err
	}
	if len(g.Withdrawn) > 0 {
		return exitAttention, nil
	}
	return exitVerified, nil
}

// hold compares the tools of a server with a contract.
func (a *app) hold(ctx context.Context, g *agreement, c *mcp.Contract, u upstream, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, contractTime)
	defer cancel()
	client, err := a.reach(u, args)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // it was only read
	tools, err := client.Tools(ctx, true)
	if err != nil {
		return err
	}
	g.Held = true
	there, known := map[string]bool{}, map[string]bool{}
	for _, t := range tools {
		there[t.Name] = true
		for i := range g.Writes {
			if g.Writes[i].Tool == t.Name {
				g.Writes[i].Refused = c.Refused(t)
			}
		}
		if err := c.Trusts(t); err != nil {
			g.Withdrawn = append(g.Withdrawn, err.Error())
		}
	}
	for _, name := range append(c.Writes(), c.Reads()...) {
		known[name] = true
		if !there[name] {
			g.Withdrawn = append(g.Withdrawn, fmt.Sprintf("the server has no tool %s", name))
		}
	}
	for _, t := range tools {
		if !known[t.Name] {
			g.Unknown = append(g.Unknown, t.Name)
		}
	}
	return nil
}

func (g agreement) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, for %s\n\n", g.Name, report.Safe(g.Server))
	rows := []string{"TOOL\tWRITE\tKIND\tPROVEN BY"}
	for _, t := range g.Writes {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", report.Safe(t.Tool), t.Write, report.Safe(t.Kind), report.Safe(strings.Join(t.Proofs, ", "))))
	}
	b.WriteString(report.Table(rows...))
	for _, t := range g.Writes {
		if len(t.NotChecked) > 0 {
			fmt.Fprintf(&b, "\n%s sends these arguments and compares none of them: %s\n", report.Safe(t.Tool), report.Safe(strings.Join(t.NotChecked, ", ")))
		}
		if len(t.Refused) > 0 {
			fmt.Fprintf(&b, "\n%s is refused with these arguments, which nothing compares and not_checked does not list: %s\n", report.Safe(t.Tool), report.Safe(strings.Join(t.Refused, ", ")))
		}
	}
	for _, k := range g.Kinds {
		fmt.Fprintf(&b, "\n%s:\n", k.Kind)
		for _, p := range k.Promises {
			fmt.Fprintf(&b, "  %s: %s\n", p.Write, p.Row)
		}
	}
	if !g.Held {
		return b.String()
	}
	for _, w := range g.Withdrawn {
		fmt.Fprintf(&b, "\nnot as the contract says: %s\n", report.Safe(w))
	}
	if len(g.Unknown) > 0 {
		fmt.Fprintf(&b, "\nof these tools it says nothing: %s\n", report.Safe(strings.Join(g.Unknown, ", ")))
	}
	if len(g.Withdrawn) == 0 {
		b.WriteString("\nThe tools of the server are those that it was written for.\n")
	}
	return b.String()
}
