package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/openapi"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/yamlfile"
)

func (a *app) declaredCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "destination",
		Short: "Declarations of HTTP APIs: draft, check, try, or print one",
	}
	cmd.AddCommand(a.declaredSuggest(), &cobra.Command{
		Use:   "check FILE",
		Short: "Check a declaration, and print its promises in plain words",
		Long: "FILE is a declaration, or the name of an included one. Every error is listed with\n" +
			"its line. Nothing is sent, and no configuration is needed.",
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return 0, a.checkDeclaration(args[0]) }),
	}, &cobra.Command{
		Use:   "print NAME",
		Short: "Print an included declaration, as a start for your own",
		Long:  "Included declarations: " + strings.Join(rest.Shipped(), ", ") + ".",
		Args:  cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) {
			text, err := rest.ShippedText(args[0])
			if err != nil {
				return 0, usagef("%w", err)
			}
			return 0, a.print(map[string]string{"name": args[0], "declaration": string(text)}, func() string { return string(text) })
		}),
	}, a.tryCommand())
	return cmd
}

// maxDocument bounds an OpenAPI document in bytes: those of the largest vendors have eight million.
const maxDocument = 64 << 20

func (a *app) declaredSuggest() *cobra.Command {
	var file, operation string
	cmd := &cobra.Command{
		Use:   "suggest --openapi FILE --operation ID",
		Short: "Draft a declaration from a vendor's OpenAPI document, for you to finish",
		Long: "FILE is an OpenAPI 3 document (YAML or JSON), ID the operationId of the POST or PUT that\n" +
			"makes a record, or METHOD /path. The draft has its request, how the record is found again,\n" +
			"and what it shows. Every guess is marked, and nothing is promised. What the draft lacks\n" +
			"is listed with its line, and the exit code is then that of an invalid declaration.\n" +
			"Nothing is sent.\n\n" +
			"  readback destination suggest --openapi openapi.json --operation createRefund > refunds.yaml",
		Args: cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) { return a.suggestDeclaration(file, operation) }),
	}
	cmd.Flags().StringVar(&file, "openapi", "", "the vendor's OpenAPI 3 document, a file")
	cmd.Flags().StringVar(&operation, "operation", "", "the operationId of the operation that makes a record, or METHOD /path")
	return cmd
}

func (a *app) suggestDeclaration(file, operation string) (int, error) {
	if file == "" || operation == "" {
		return 0, usagef("--openapi FILE and --operation ID are needed: the document, and the operation in it that makes a record")
	}
	document, err := yamlfile.ReadBounded(file, maxDocument)
	if err != nil {
		return 0, err
	}
	text, err := openapi.Draft(document, operation)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	s := suggested{Operation: operation, Declaration: text}
	_, err = rest.Load([]byte(text), "draft")
	if lacks := (*yamlfile.InvalidError)(nil); errors.As(err, &lacks) {
		for _, p := range lacks.Problems {
			s.Missing = append(s.Missing, "draft"+p.String())
		}
	}
	if failed := a.print(s, func() string { return text }); failed != nil || err == nil {
		return 0, failed
	}
	if a.json {
		return exitInvalid, nil
	}
	return 0, fmt.Errorf("the draft is not complete: %w", err)
}

// suggested is a draft of a declaration.
type suggested struct {
	Operation   string `json:"operation"`
	Declaration string `json:"declaration"`
	// Missing is what it lacks, with lines.
	Missing []string `json:"missing,omitempty"`
}

// checked is the result of a declaration's check.
type checked struct {
	Name       string      `json:"name"`
	System     string      `json:"system"`
	BaseURL    string      `json:"base_url"`
	Parameters []parameter `json:"parameters"`
	Secrets    []string    `json:"secrets"`
	// Logins are the secrets of each login, where an account has one of several.
	Logins     [][]string      `json:"logins,omitempty"`
	Kinds      []catalog.Entry `json:"kinds"`
	NotChecked []unchecked     `json:"not_checked,omitempty"`
	Explained  []explained     `json:"explained,omitempty"`
	Warnings   []string        `json:"warnings,omitempty"`
	KeyAlone   []keyAlone      `json:"key_alone,omitempty"`
}

// keyAlone lists the writes whose intents can expect nothing beyond their key.
type keyAlone struct {
	Kind   string             `json:"kind"`
	Writes []intent.WriteType `json:"writes"`
}

// explained is how the requests of a kind work.
type explained struct {
	Kind string   `json:"kind"`
	Says []string `json:"says"`
}

// unchecked lists what a write sends and no read compares.
type unchecked struct {
	Kind   string           `json:"kind"`
	Write  intent.WriteType `json:"write"`
	Fields []string         `json:"fields"` // JSON Pointers into an intent
}

// parameter is a setting that an account must give.
type parameter struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Pattern string `json:"pattern"`
	Default string `json:"default,omitempty"`
	// With are the secrets of the logins that need it; none: every account does.
	With []string `json:"with,omitempty"`
}

func (a *app) checkDeclaration(named string) error {
	d, err := config.Declaration(".", named)
	if err != nil {
		return err
	}
	c := checked{Name: d.Name(), System: d.System(), BaseURL: d.BaseURL(), Parameters: []parameter{}, Secrets: d.Secrets()}
	if len(d.Logins()) > 1 {
		c.Logins = d.Logins()
	}
	for _, p := range d.Parameters() {
		one := parameter{Name: p.Name, About: p.About, Pattern: p.Pattern, Default: p.Default}
		for _, i := range p.Logins {
			one.With = append(one.With, strings.Join(d.Logins()[i], " and "))
		}
		c.Parameters = append(c.Parameters, one)
	}
	for _, s := range d.Sheets() {
		c.Kinds = append(c.Kinds, catalog.Of(s))
		if words := d.Explained(s.Kind); len(words) > 0 {
			c.Explained = append(c.Explained, explained{s.Kind, words})
		}
		if all := d.KeyAlone(s.Kind); len(all) > 0 {
			c.KeyAlone = append(c.KeyAlone, keyAlone{s.Kind, all})
		}
		not := d.NotChecked(s.Kind)
		for _, w := range slices.Sorted(maps.Keys(not)) {
			if len(not[w]) > 0 {
				c.NotChecked = append(c.NotChecked, unchecked{s.Kind, w, not[w]})
			}
		}
	}
	for _, w := range d.Warnings() {
		c.Warnings = append(c.Warnings, named+w)
	}
	return a.print(c, func() string { return c.text() })
}

func (c checked) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), at %s\n", report.Safe(c.System), c.Name, report.Safe(c.BaseURL))
	for _, p := range c.Parameters {
		with := ""
		if len(p.With) > 0 {
			with = ", with " + strings.Join(p.With, ", or ")
		}
		fmt.Fprintf(&b, "  needs the parameter %s%s: %s\n", p.Name, with, report.Safe(p.About))
	}
	for _, s := range c.Secrets {
		if len(c.Logins) == 0 {
			fmt.Fprintf(&b, "  needs the secret %s\n", s)
		}
	}
	for i, one := range c.Logins {
		fmt.Fprintf(&b, "  %s the secrets of one login: %s\n", map[bool]string{true: "needs", false: "or"}[i == 0], strings.Join(one, " and "))
	}
	for _, k := range c.Kinds {
		fmt.Fprintf(&b, "\n%s:\n", k.Kind)
		for _, g := range k.Promises {
			fmt.Fprintf(&b, "  %s: %s\n", g.Write, g.Row)
			b.WriteString(report.Paragraph(g.Text+".", "    "))
		}
		for _, e := range c.Explained {
			for _, said := range e.Says {
				if e.Kind == k.Kind {
					b.WriteString(report.Paragraph(report.Safe(said), "  "))
				}
			}
		}
		for _, n := range c.NotChecked {
			if n.Kind == k.Kind {
				fmt.Fprintf(&b, "  %s sends and compares none of: %s\n", n.Write, report.Safe(strings.Join(n.Fields, ", ")))
			}
		}
		for _, n := range c.KeyAlone {
			if n.Kind != k.Kind {
				continue
			}
			for _, w := range n.Writes {
				fmt.Fprintf(&b, "  %s has no place for a field beyond the key, such as {fields.NAME}: an intent that expects one is refused\n", w)
			}
		}
		b.WriteString("\n")
		var rows []string
		for _, d := range k.Declared {
			rows = append(rows, "  "+d.Name+"\t"+report.Safe(d.Value))
		}
		b.WriteString(report.Table(rows...))
	}
	for _, w := range c.Warnings {
		b.WriteString(report.Paragraph("warning: "+report.Safe(w), ""))
	}
	return b.String()
}
