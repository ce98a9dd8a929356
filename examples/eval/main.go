// Eval runs the three strategies of the demonstration (naive retry, the plain idempotency ledger
// with kills, readback with the same kills), and then evaluates each from outside: it reads the
// order system, which knows nothing of the runs, and compares it with the declarations. Naive
// retry and the plain ledger fail, and the report names the orders that were charged twice;
// readback passes.
//
// It needs no account and takes about a minute. A job of continuous integration would do the same
// after a run against a sandbox, with `readback eval` in place of this program.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/demo"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

//go:embed checks-run.yaml checks-workflow.yaml
var checks embed.FS

func main() {
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	reports, err := evaluate(ctx)
	for _, r := range reports {
		show(os.Stdout, r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, and its signals with it
	}
}

// evaluated is one strategy and its evaluation.
type evaluated struct {
	strategy string
	report   eval.Report
}

func show(w io.Writer, e evaluated) {
	_, _ = fmt.Fprintf(w, "== %s ==\n%s\n", e.strategy, e.report.Text())
}

// evaluate runs and evaluates them all.
func evaluate(ctx context.Context) ([]evaluated, error) {
	var all []evaluated
	err := demo.Worlds(ctx, func(ctx context.Context, w demo.World) error {
		r, err := visit(ctx, w)
		all = append(all, evaluated{w.Strategy, r})
		return err
	})
	return all, err
}

// visit evaluates one world. All that it knows of the run is in the files that it
// writes beside the checks: what was declared, and what is claimed.
func visit(ctx context.Context, w demo.World) (r eval.Report, err error) {
	dir, err := os.MkdirTemp("", "readback-eval-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := "checks-run.yaml"
	if w.Ledger != "" {
		name = "checks-workflow.yaml"
		err = exportWrites(ctx, w.Ledger, filepath.Join(dir, "writes.jsonl"))
	} else {
		err = errors.Join(declare(filepath.Join(dir, "effects.jsonl")), claim(w, filepath.Join(dir, "outcomes.jsonl")))
	}
	if err != nil {
		return r, err
	}
	text, err := checks.ReadFile(name)
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		return r, err
	}
	f, err := eval.Load(filepath.Join(dir, name))
	if err != nil {
		return r, err
	}
	var reg connectors.Registry
	d, err := w.Destination()
	if err != nil {
		return r, err
	}
	if err := reg.Register("orders", d); err != nil {
		return r, err
	}
	return eval.Run(ctx, f, &reg, eval.Options{})
}

// declare writes down what was to be done, effect by effect.
func declare(path string) error {
	return lines(path, func(enc *json.Encoder) error {
		for _, w := range demo.Declared() {
			if err := enc.Encode(map[string]any{"destination": w.Destination, "kind": w.Kind, "key": w.Key, "expect": w.Expect}); err != nil {
				return err
			}
		}
		return nil
	})
}

// claim writes down what the worker reports: done, or to be reviewed.
func claim(w demo.World, path string) error {
	return lines(path, func(enc *json.Encoder) error {
		for _, d := range demo.Declared() {
			id, _ := d.Key["order_id"].(string)
			status := "review"
			if w.Believed[id] {
				status = "verified"
			}
			if err := enc.Encode(map[string]any{"destination": d.Destination, "kind": d.Kind, "key": d.Key, "status": status}); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportWrites writes what was declared to readback, and what it claims, as
// `readback list --json` does.
func exportWrites(ctx context.Context, file, path string) (err error) {
	l, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return lines(path, func(enc *json.Encoder) error {
		f := ledger.Filter{Tenant: "demo", Limit: 1000}
		records, err := l.List(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// lines makes a file of JSON objects, one a line.
func lines(path string, write func(*json.Encoder) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(json.NewEncoder(f)), f.Close())
}
