package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/server"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Rules of the step gate: check a file, or test it on steps",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("policy what? want check or test, with a file of rules")
		}),
	}
	var strict bool
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a file of rules",
		Long: `Check a file of rules: names, types, decisions, and the cost of each condition. Every
error is listed with its line. Rules that can never match cause a warning, such as a
rule about repeats where the gate caches the decision. With --strict a warning ends
with 40. No configuration is needed.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return a.checkRules(args[0], strict) }),
	}
	check.Flags().BoolVar(&strict, "strict", false, "end with 40 if there are warnings")
	cmd.AddCommand(check, a.policyTestCommand())
	return cmd
}

// ruleFile is a valid file of rules.
type ruleFile struct {
	Path     string          `json:"path"`
	Rules    []rules.Rule    `json:"rules"`
	Warnings []rules.Warning `json:"warnings"`
}

func (a *app) checkRules(path string, strict bool) (int, error) {
	set, warnings, err := loadRules(path)
	if err != nil {
		return 0, err
	}
	f := ruleFile{Path: path, Rules: set.Rules(), Warnings: append([]rules.Warning{}, warnings...)}
	code := exitVerified
	if strict && len(warnings) > 0 {
		code = exitAttention
	}
	return code, a.print(f, f.text)
}

// loadRules loads a file that the command line names; an unreadable one is a usage error.
func loadRules(path string) (*rules.Set, []rules.Warning, error) {
	set, warnings, err := rules.Load(path)
	if err != nil && !errors.Is(err, rules.ErrInvalid) {
		return nil, nil, usagef("%w", err)
	}
	return set, warnings, err
}

func (f ruleFile) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n", report.Safe(f.Path), plural(len(f.Rules), "rule"), plural(len(f.Warnings), "warning"))
	var rows []string
	for _, r := range f.Rules {
		rows = append(rows, fmt.Sprintf("  line %d\t%s\t%s\t%s", r.Line, r.ID, r.Decision, report.Safe(r.Reason)))
	}
	b.WriteString(report.Table(rows...))
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s:%d: rule %s:\n%s", report.Safe(w.Path), w.Line, w.Rule, report.Paragraph(report.Safe(w.Text)+".", "  "))
	}
	return b.String()
}

// examineRules checks the rules of the gate, if there are any.
func examineRules(e *examination, c config.Config) {
	if c.Gate.Rules == "" {
		return
	}
	set, warnings, err := server.GateRules(c)
	switch {
	case err != nil:
		e.broken("rules", err)
	case len(warnings) > 0:
		e.ok("rules", "%s has %s, and %s: readback policy check %s", c.Gate.Rules, plural(len(set.Rules()), "rule"), plural(len(warnings), "warning"), c.Gate.Rules)
	default:
		e.ok("rules", "%s has %s", c.Gate.Rules, plural(len(set.Rules()), "rule"))
	}
}
