package command

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/server"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("config what? want check")
		}),
	}
	var withEnv bool
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and all files that it names",
		Long: `Check the configuration and the files that it names: gate rules, declarations and
contracts of destinations, tools, certificates. For each tool the command makes
sample calls and checks that the destination accepts them. Every error is listed
with file and line. The command connects to nothing and does not open the ledger;
` + "`readback doctor`" + ` does both.

The file is often written on another machine than the one that uses it. Therefore
secrets in environment variables count as set, commands that print secrets are not
run, and settings from the environment are ignored. --env uses all three.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) { return a.checkConfig(withEnv) }),
	}
	check.Flags().BoolVar(&withEnv, "env", false, "check the environment: settings it makes, whether secrets are there, and what commands print for them")
	cmd.AddCommand(check)
	return cmd
}

// fault is one configuration error.
type fault struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Field   string `json:"field,omitempty"`
	Problem string `json:"problem"`
}

// configured is the result of a check of the configuration.
type configured struct {
	Path         string  `json:"path"`
	Destinations int     `json:"destinations"`
	Rules        int     `json:"rules"`
	Tools        int     `json:"tools"`
	Problems     []fault `json:"problems"`
	Warnings     []fault `json:"warnings"`
}

// anySecret replaces the secret of a variable that is not read: long enough for each use, in the
// form that the use needs, and different for each variable.
func anySecret(variable string) string {
	digest := sha256.Sum256([]byte(variable))
	return anySecretPrefix + base64.StdEncoding.EncodeToString(digest[:24])
}

// isAnySecret reports whether a secret is such a placeholder.
func isAnySecret(secret string) bool { return strings.HasPrefix(secret, anySecretPrefix) }

var anySecretPrefix = "whsec_" + base64.StdEncoding.EncodeToString([]byte("any secret of name"))

func (a *app) checkConfig(withEnv bool) (int, error) {
	path, err := config.Find(a.config, a.env)
	if err != nil {
		return 0, err
	}
	env, over := anySecret, config.Environment{}
	if withEnv {
		env, over = a.env, a.environment()
	}
	f := configured{Path: path, Problems: []fault{}, Warnings: []fault{}}
	c, err := config.LoadOver(path, over)
	if errors.Is(err, config.ErrMissing) {
		return 0, err
	}
	f.add(c, err)
	c.Commands.Off = !withEnv
	if !withEnv { // it may be used elsewhere, with other users
		for _, p := range c.Untrusted() {
			f.Warnings = append(f.Warnings, fault{c.Path, p.Line, p.Field, "on this machine: " + p.Problem})
		}
	}
	f.examine(c, env, err == nil)
	if wrong := (otel.Settings{Env: a.env}).Check(); withEnv && wrong != nil {
		f.Problems = append(f.Problems, fault{File: "the environment", Problem: flat(wrong.Error())})
	}
	code := exitVerified
	if len(f.Problems) > 0 {
		code = exitConfig
	}
	return code, a.print(f, f.text)
}

// examine checks what the configuration names. sound says that the file itself is valid;
// if it is not, nothing can be built from it.
func (f *configured) examine(c config.Config, env func(string) string, sound bool) {
	f.Destinations, f.Tools = len(c.Destinations), len(c.MCP.Tools)
	if c.Gate.Rules != "" {
		set, warnings, err := server.GateRules(c)
		f.add(c, err)
		if err == nil {
			f.Rules = len(set.Rules())
		}
		for _, w := range warnings {
			f.Warnings = append(f.Warnings, fault{File: w.Path, Line: w.Line, Field: "rule " + w.Rule, Problem: w.Text})
		}
	}
	if !sound {
		return
	}
	reg, err := c.Registry(env)
	f.add(c, err)
	if err == nil {
		for _, d := range c.MCP.Doubts(reg) {
			f.Warnings = append(f.Warnings, fault{File: c.Path, Line: d.Line, Field: d.Field, Problem: d.Problem})
		}
		w := server.LongestWindow(reg)
		f.add(c, c.CheckRetention(w.Lasts, w.What))
	}
	_, err = server.LoadCertificate(c)
	f.add(c, err)
	_, err = c.Logins(env)
	f.add(c, err)
	_, err = c.Signing(asKey(env))
	f.add(c, err)
	_, err = c.HeadSigner(asKey(env))
	f.add(c, err)
	_, err = c.TelemetrySettings(func(name string) string { return asHeaders(env(name)) })
	f.add(c, err)
}

// add adds the problems of an error, which may be nil.
func (f *configured) add(c config.Config, err error) {
	var invalid *config.InvalidError
	var bad *rules.InvalidError
	switch {
	case err == nil:
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			f.Problems = append(f.Problems, fault{invalid.Path, p.Line, p.Field, p.Problem})
		}
	case errors.As(err, &bad):
		for _, p := range bad.Problems {
			f.Problems = append(f.Problems, fault{bad.Path, p.Line, p.Field, p.Problem})
		}
	default:
		f.Problems = append(f.Problems, fault{File: c.Path, Problem: err.Error()})
	}
}

// String formats a fault as compilers format theirs.
func (f fault) String() string {
	return report.Safe(f.File + config.Problem{Line: f.Line, Field: f.Field, Problem: f.Problem}.String())
}

func (f configured) text() string {
	var b strings.Builder
	for _, p := range f.Problems {
		b.WriteString(p.String() + "\n")
	}
	for _, w := range f.Warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
	switch n := len(f.Problems); n {
	case 0:
		fmt.Fprintf(&b, "%s is in order: %s, %s, %s\n", report.Safe(f.Path), plural(f.Destinations, "destination"), plural(f.Rules, "rule"), plural(f.Tools, "tool"))
	default:
		fmt.Fprintf(&b, "%s: %s\n", report.Safe(f.Path), plural(n, "problem"))
	}
	return b.String()
}
