package command

import (
	"bufio"
	"cmp"
	"context"
	stdsql "database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	_ "modernc.org/sqlite" // the driver of --source

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/report"
)

// reconciling are the options of a reconciliation.
type reconciling struct {
	log                            eval.Log
	types, fields, within          []string
	from, until                    string
	query, source, findings, empty string
	foreign                        bool
}

func (a *app) reconcileCommand() *cobra.Command {
	var r reconciling
	cmd := &cobra.Command{
		Use:   "reconcile [LOG]",
		Short: "Compare a log of past writes with the destination",
		Long: `Compare a log of past writes, which any program made, with the destination: what is
missing, altered, there more than once, or there and not in the log
(docs/operate/evidence.md). LOG is a CSV file with a header, or has JSON objects, one a
line; or --query reads the rows from a database. The ledger is not opened and need not
exist. The command writes nothing to any destination.

  readback reconcile log.csv --destination shop --kind order --key order_id \
    --type amount_cents=number --at written_at --findings findings.jsonl
  readback reconcile --source crm --query 'SELECT id, email FROM sync_log' \
    --destination hubspot --kind contact --key email

Exit code: 0 if the destination is as the log says, 40 if it is not or something
could not be checked, 65 if the log is invalid.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.reconcile(ctx, args, r) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.log.Destination, "destination", "", "the destination, by its name in the configuration")
	flags.StringVar(&r.log.Kind, "kind", "", "the kind of record there")
	flags.StringArrayVar(&r.log.Key, "key", nil, "a column of the business key; repeat it for several")
	flags.StringArrayVar(&r.fields, "map", nil, "FIELD=COLUMN: the column of a field; other columns are then not compared (default every column is a field of its name)")
	flags.StringArrayVar(&r.types, "type", nil, "COLUMN=TYPE: text, number, boolean or json, where the destination has another type than the log")
	flags.StringVar(&r.empty, "empty", "", "what an empty text means: null, or skip for a field that is not compared (default an empty text)")
	flags.StringVar(&r.log.At, "at", "", "the column with the time of the write, RFC 3339 (default: each may have been made just now)")
	flags.StringVar(&r.from, "from", "", "look for foreign records made or changed since then")
	flags.StringVar(&r.until, "until", "", "look for foreign records made or changed until then")
	flags.StringArrayVar(&r.within, "within", nil, "NAME=VALUE: the place in which foreign records are looked for, where the destination needs one")
	flags.BoolVar(&r.foreign, "foreign", true, "look for records that are not in the log")
	flags.DurationVar(&r.log.Patience, "patience", time.Minute, "how long reads that fail are repeated, and the settle time is waited for")
	flags.StringVar(&r.query, "query", "", "read the rows with this SQL query, in a transaction that cannot write")
	flags.StringVar(&r.source, "source", "", "where --query asks: a destination of type postgresql, or a SQLite file")
	flags.StringVar(&r.findings, "findings", "", "write every finding to this file: CSV if its name ends in .csv, else one JSON object a line")
	return cmd
}

// pairs reads flags of the form NAME=VALUE.
func pairs(flag string, given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, one := range given {
		name, value, ok := strings.Cut(one, "=")
		if _, twice := all[name]; !ok || twice || name == "" || value == "" {
			return nil, usagef("--%s %s; want NAME=VALUE, each name once", flag, report.Safe(one))
		}
		all[name] = value
	}
	return all, nil
}

// check completes the log by the flags.
func (r *reconciling) check(args []string) error {
	l := &r.log
	var err, errType, errWithin error
	l.Map, err = pairs("map", r.fields)
	l.Types, errType = pairs("type", r.types)
	within, errWithin := pairs("within", r.within)
	if err := cmp.Or(err, errType, errWithin); err != nil {
		return err
	}
	for name, value := range within {
		if l.Within == nil {
			l.Within = intent.Fields{}
		}
		l.Within[name] = value
	}
	for column, t := range l.Types {
		if !slices.Contains([]string{"text", "number", "boolean", "json"}, t) {
			return usagef("--type %s=%s; want text, number, boolean or json", report.Safe(column), report.Safe(t))
		}
	}
	for flag, at := range map[string]struct {
		text string
		into *time.Time
	}{"from": {r.from, &l.From}, "until": {r.until, &l.Until}} {
		if at.text == "" {
			continue
		}
		if *at.into, err = time.Parse(time.RFC3339Nano, at.text); err != nil {
			return usagef("--%s is %q; want a time such as 2026-02-01T12:00:00Z", flag, at.text)
		}
	}
	l.Empty, l.NoForeign = r.empty, !r.foreign
	switch {
	case l.Destination == "" || l.Kind == "" || len(l.Key) == 0:
		return usagef("want --destination, --kind and --key")
	case r.empty != "" && r.empty != "null" && r.empty != "skip":
		return usagef("--empty is %s; want null or skip", report.Safe(r.empty))
	case !l.From.IsZero() && !l.Until.IsZero() && l.Until.Before(l.From):
		return usagef("--until is before --from")
	case (len(args) == 1) == (r.query != ""):
		return usagef("want a file, or --query and --source")
	case (r.query != "") != (r.source != ""):
		return usagef("want --query and --source together")
	case l.Patience <= 0:
		return usagef("--patience is %v; want a time such as 1m", l.Patience)
	}
	return nil
}

func (a *app) reconcile(ctx context.Context, args []string, r reconciling) (int, error) {
	if err := r.check(args); err != nil {
		return 0, err
	}
	d, err := a.onlyDestinations()
	if err != nil {
		return 0, err
	}
	defer d.Disconnect()
	configured, err := config.Find(a.config, a.env)
	if err != nil {
		return 0, err
	}
	read := append([]string{configured, r.source}, args...)
	if err := (evaluating{findings: r.findings}).apart(read); err != nil {
		return 0, err
	}
	if r.log.Name = "query"; len(args) == 1 {
		r.log.Name, r.log.Rows = args[0], eval.Rows(args[0])
	} else if r.log.Rows, err = queried(d.Reg, r.source, r.query); err != nil {
		return 0, err
	}
	show, end := a.progress()
	defer end()
	var at eval.Progress
	found, err := r.run(ctx, d.Reg, eval.Options{Progress: func(p eval.Progress) {
		at = p
		show(p.Doing, p.Done, p.Of)
	}})
	end()
	if err == nil { // what was not read is reported as not checked
		err = ctx.Err()
	}
	if err != nil {
		return 0, interrupted(ctx, err, "%s, %s; there is no report, and no destination was changed. Run it again", cmp.Or(at.Doing, "reading"), counted(at.Done, at.Of))
	}
	answer := struct {
		eval.Reconciliation
		Verdict string `json:"verdict"`
		Exit    int    `json:"exit"`
	}{found, cmp.Or(string(found.Verdict()), "not_checked"), exitOf(found.Verdict())}
	return answer.Exit, a.print(answer, found.Text)
}

// run reconciles, and writes each finding as soon as it is known.
func (r reconciling) run(ctx context.Context, reg *connectors.Registry, o eval.Options) (eval.Reconciliation, error) {
	if r.findings == "" {
		return eval.Reconcile(ctx, r.log, reg, o)
	}
	file, err := os.OpenFile(r.findings, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return eval.Reconciliation{}, err
	}
	to := bufio.NewWriter(file)
	enc, cells := json.NewEncoder(to), csv.NewWriter(to)
	give := func(n eval.Named) error { return enc.Encode(n) }
	if strings.HasSuffix(strings.ToLower(r.findings), ".csv") {
		give = func(n eval.Named) error {
			refs, err := json.Marshal(n.Refs) // in brackets: no program takes an id for a formula
			return cmp.Or(err, cells.Write([]string{n.Problem, n.Name, n.Says, n.Declared, strings.Join(n.Fields, " "), string(refs)}))
		}
		err = cells.Write([]string{"problem", "name", "says", "declared", "fields", "refs"})
	}
	o.OnFinding = func(_ string, _ bool, n eval.Named) { err = cmp.Or(err, give(n)) }
	found, failed := eval.Reconcile(ctx, r.log, reg, o)
	cells.Flush()
	return found, errors.Join(failed, err, cells.Error(), to.Flush(), file.Close())
}

// queried are the rows of a query at a source.
func queried(reg *connectors.Registry, source, query string) (func(context.Context, func(eval.Row) error) error, error) {
	var ask func(context.Context, string, func(intent.Fields) error) error
	i := slices.IndexFunc(reg.Profiles(), func(p connectors.Profile) bool { return p.Destination == source })
	if i >= 0 {
		conn, _, err := reg.Lookup(source, reg.Profiles()[i].Kind)
		if err != nil {
			return nil, err
		}
		c, ok := conn.(*sql.Connector)
		if !ok {
			return nil, usagef("--source %s takes no queries; want a destination of type postgresql, or a SQLite file", report.Safe(source))
		}
		ask = c.Query
	} else if info, err := os.Stat(source); err != nil || !info.Mode().IsRegular() {
		return nil, usagef("--source %s is no destination and no file; want a destination of type postgresql, or a SQLite file", report.Safe(source))
	} else {
		ask = func(ctx context.Context, query string, each func(intent.Fields) error) error {
			path, err := filepath.Abs(source)
			if err != nil {
				return err
			}
			db, err := stdsql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro"}).String())
			if err != nil {
				return err
			}
			return errors.Join(sql.Query(ctx, db, query, each), db.Close())
		}
	}
	return func(ctx context.Context, give func(eval.Row) error) error {
		n := 0
		err := ask(ctx, query, func(values intent.Fields) error {
			n++
			return give(eval.Row{Line: n, Values: values})
		})
		if err != nil && n == 0 {
			return fmt.Errorf("--query: %w", err)
		}
		return err
	}, nil
}
