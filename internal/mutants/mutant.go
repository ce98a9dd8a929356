package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Mutant is one rule and how it is broken.
type Mutant struct {
	// Section is that of DESIGN; Rule is the rule in our words.
	Section int
	Rule    string
	// File is relative to the module's root. Old stands in it exactly once and
	// is replaced by New.
	File, Old, New string
	// Test must fail then, as the go command takes it (-run), one subtest
	// included. Package is where it is, by default that of File.
	Package, Test string
}

func (m Mutant) pkg() string {
	if m.Package != "" {
		return "./" + m.Package
	}
	return "./" + path.Dir(m.File)
}

// mutate returns the changed file.
func (m Mutant) mutate(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return nil, err
	}
	switch n := strings.Count(string(source), m.Old); {
	case m.Old == m.New:
		return nil, fmt.Errorf("%s: the snippet is replaced by itself", m.File)
	case n != 1:
		return nil, fmt.Errorf("%s: the snippet stands there %d times, want once; mend the table: %q", m.File, n, m.Old)
	}
	changed := []byte(strings.Replace(string(source), m.Old, m.New, 1))
	if path.Ext(m.File) != ".go" { // the database says whether it is SQL
		return changed, nil
	}
	if _, err := parser.ParseFile(token.NewFileSet(), m.File, changed, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("the mutant is no Go: %w", err)
	}
	return changed, nil
}

// top is the name of the test function.
func (m Mutant) top() string {
	name, _, _ := strings.Cut(m.Test, "/")
	return name
}

func printMarkdown(out io.Writer, all []Mutant) error {
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	if _, err := fmt.Fprintf(out, "| section | rule | kept in | test that fails without it |\n|---|---|---|---|\n"); err != nil {
		return err
	}
	for _, m := range all {
		if _, err := fmt.Fprintf(out, "| %d | %s | `%s` | `%s` `%s` |\n", m.Section, cell(m.Rule), m.File, strings.TrimPrefix(m.pkg(), "./"), cell(m.Test)); err != nil {
			return err
		}
	}
	return nil
}
