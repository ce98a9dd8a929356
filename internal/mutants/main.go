// Command mutants breaks each rule once and sees that the test which names the
// rule fails.
//
// A rule whose test does not fail when the rule is gone is not tested. Each
// package has its rules in a file mutants.txt beside its code; docs/maintain.md
// describes it. The source is not touched: the tests run in a copy, and the go
// command is given the changed file as an overlay, so that several mutants can
// be tried at once.
//
// The program does not know whether the rules are the right ones, nor whether
// the rules of the tables are all there are: DESIGN sections 5 and 6 say that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.markdown, "markdown", false, "print the rules as a Markdown table and run nothing")
	flag.BoolVar(&o.check, "check", false, "list the mutants that do not fit the code and run nothing")
	flag.StringVar(&o.only, "only", "", "regular expression: only the rules that match")
	flag.IntVar(&o.parallel, "parallel", defaultParallel, "mutants at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	markdown, check bool
	only            string
	parallel        int
}

func run(ctx context.Context, out io.Writer, o options) error {
	pattern, err := regexp.Compile("(?i)" + o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	module, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := tables(module)
	if err != nil {
		return err
	}
	var chosen []Mutant
	for _, m := range all {
		if pattern.MatchString(m.Rule) {
			chosen = append(chosen, m)
		}
	}
	switch {
	case o.markdown:
		return printMarkdown(out, chosen)
	case o.check:
		return check(module, chosen)
	}
	began := time.Now()
	copied, remove, err := snapshot(ctx, module)
	if err != nil {
		return err
	}
	defer remove()
	b := bench{root: copied, parallel: max(o.parallel, 1)}
	if err := b.baseline(ctx, chosen); err != nil {
		return err
	}
	say := func(format string, args ...any) {
		_, failed := fmt.Fprintf(out, format+"\n", args...)
		err = errors.Join(err, failed)
	}
	var untested []result
	b.all(ctx, chosen, func(r result) {
		say("%s", r)
		if r.verdict != killed {
			untested = append(untested, r)
		}
	})
	say("%d rules, %d not tested, %s", len(chosen), len(untested), time.Since(began).Round(time.Second))
	if len(untested) > 0 {
		for _, r := range untested { // again, where they are seen
			say("%s", r)
		}
		err = errors.Join(err, fmt.Errorf("%d rules can be removed without a test that fails", len(untested)))
	}
	return err
}

// moduleRoot is the folder of go.mod, at or above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", fmt.Errorf("no go.mod at or above the working directory")
		}
		dir = above
	}
}
