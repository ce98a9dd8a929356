package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Mutant is one rule and how it is broken.
type Mutant struct {
	// Where is the table and the line in it.
	Where string
	// Section is that of DESIGN; Rule is the rule in our words.
	Section int
	Rule    string
	// File is relative to the module's root. Old occurs in it exactly once and
	// is replaced by New.
	File, Old, New string
	// Test must fail then, as the go command takes it (-run), one subtest
	// included. Package is where it is, by default that of the table.
	Package, Test string
}

func (m Mutant) pkg() string { return "./" + m.Package }

// mutate returns the changed file.
func (m Mutant) mutate(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return nil, fmt.Errorf("%s: file: %w", m.Where, err)
	}
	switch n := strings.Count(string(source), m.Old); {
	case m.Old == m.New:
		return nil, fmt.Errorf("%s: %s: the code is replaced by itself", m.Where, m.File)
	case n != 1:
		return nil, fmt.Errorf("%s: the code occurs in %s %d times, want once: %q", m.Where, m.File, n, m.Old)
	}
	changed := []byte(strings.Replace(string(source), m.Old, m.New, 1))
	if path.Ext(m.File) != ".go" { // the database says whether it is SQL
		return changed, nil
	}
	if _, err := parser.ParseFile(token.NewFileSet(), m.File, changed, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("%s: the mutant is no Go: %w", m.Where, err)
	}
	return changed, nil
}

// top is the name of the test function.
func (m Mutant) top() string {
	name, _, _ := strings.Cut(m.Test, "/")
	return name
}

// missing is what of the test is not in the sources: its function, or a part of the name of a
// case. Names of cases are composed of texts, by commas and "then".
func (m Mutant) missing(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m.Package), "*_test.go"))
	if err != nil {
		return "", err
	}
	suite, err := filepath.Glob(filepath.Join(root, "ledger", "ledgertest", "*.go")) // which tests of ledgers run
	if err != nil {
		return "", err
	}
	var sources []byte
	for _, f := range append(files, suite...) {
		source, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		sources = append(sources, source...)
	}
	if function := "func " + m.top() + "(t *testing.T)"; !bytes.Contains(sources, []byte(function)) {
		return function, nil
	}
	for _, name := range strings.Split(m.Test, "/")[1:] {
		for _, part := range composed.Split(strings.NewReplacer("_", " ", `"`, `\"`).Replace(name), -1) {
			if !bytes.Contains(sources, []byte(part)) && !elapsed.MatchString(part) {
				return part, nil
			}
		}
	}
	return "", nil
}

var (
	composed = regexp.MustCompile(`, | then `)
	elapsed  = regexp.MustCompile(`^[0-9]+(ms|s|m|h)$`) // a case that is a time
)

// check names all mutants that do not fit the code, so that what a change of
// names broke can be mended at once. It runs no test.
func check(root string, all []Mutant) error {
	var wrong []error
	for _, m := range all {
		if _, err := m.mutate(root); err != nil {
			wrong = append(wrong, err)
		}
		if what, err := m.missing(root); err != nil || what != "" {
			wrong = append(wrong, errors.Join(err, fmt.Errorf("%s: test: %s has no %s", m.Where, m.pkg(), what)))
		}
	}
	return errors.Join(wrong...)
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
