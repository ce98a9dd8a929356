package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/webhooks"
)

func (a *app) doctorCommand() *cobra.Command {
	security := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration, the ledger and each destination, and name remedies",
		Long: `Check, and name the remedy of each problem: the configuration; the ledger (access,
version, clock, notes of workers, disk space) and its audit log; each destination
(access and login); each gateway (its tools, and what it does not pass); the retention; and writes that cannot continue without you.

The command writes nothing to a destination. It writes one note to the ledger and
deletes it again. A file of the ledger that does not exist yet is in order: the first
write makes it. Exit code: 0 if no check failed; 78 or 69 if the configuration
or the ledger cannot be used; otherwise 40.

With --security the command writes nothing, contacts no destination, and prints one
page for an auditor. Each finding is ok or failed; there are no warnings. The page
shows modes and owners of files, tenants that share a destination, missing limits,
connections without TLS, whether heads of the audit log are stored outside, tokens
that expire soon, and what programs started for destinations can read.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			if security {
				return a.doctorSecurity(ctx)
			}
			return a.doctor(ctx)
		}),
	}
	cmd.Flags().BoolVar(&security, "security", false, "print only one page about security, for an auditor")
	return cmd
}

// examination collects checks.
type examination struct {
	report.Checks
	code   int
	strict bool // a warning counts as a failure
}

func (e *examination) ok(name, what string, args ...any) {
	e.Add(report.Check{Name: name, State: report.OK, What: fmt.Sprintf(what, args...)})
}

func (e *examination) warn(name, do, what string, args ...any) {
	if e.strict {
		e.fail(name, do, what, args...)
		return
	}
	e.Add(report.Check{Name: name, State: report.Warning, What: fmt.Sprintf(what, args...), Do: do})
}

func (e *examination) fail(name, do, what string, args ...any) {
	e.Add(report.Check{Name: name, State: report.Failed, What: fmt.Sprintf(what, args...), Do: do})
	if e.code == exitVerified {
		e.code = exitAttention
	}
}

// broken is fail for a check that all others depend on: its code is the command's.
func (e *examination) broken(name string, err error) {
	f := explain(err)
	do, _, _ := strings.Cut(f.Hint, ". ")
	do = strings.TrimPrefix(strings.TrimSuffix(do, "."), "Nothing was sent by this call")
	e.fail(name, do, "%s", flat(f.Message))
	if f.Exit != exitFailed {
		e.code = f.Exit
	}
}

// flat is a message on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func (a *app) doctor(ctx context.Context) (int, error) {
	e := &examination{}
	if d := a.examineSettings(ctx, e); d != nil {
		defer d.Close()
		examine(ctx, d, e)
	}
	return e.code, a.print(&e.Checks, e.Text)
}

// examineSettings checks the configuration, and opens the ledger; nil when there is none.
func (a *app) examineSettings(ctx context.Context, e *examination) *server.Instance {
	c, err := a.settings()
	if err != nil {
		e.broken("configuration", err)
		return nil
	}
	reg := a.examineRegistry(e, c)
	if err := c.CheckRetention(server.LongestWindow(reg).Lasts, server.LongestWindow(reg).What); err != nil {
		e.fail("retention", "Give `retention.remember` at least that long.", "%s", flat(err.Error()))
	} else if !c.Retention.Default { // the ledger records when the default began
		e.ok("retention", "%s", retained(c.Retention))
	}
	examineRetention(e, c)
	examineRules(e, c)
	a.checkTelemetry(ctx, e, c)
	a.examineKeys(e, c)
	examineThisProcess(e, c)
	a.examineMemory(e, c)
	opening, cancel := context.WithTimeout(ctx, server.LedgerTime)
	defer cancel()
	d, err := a.open(opening, c, config.OpenOptions{})
	if err != nil {
		examineAbsence(e, c, err)
		examineDestinations(ctx, e, c, reg)
		examineGateways(ctx, e, c, reg)
		return nil
	}
	examineDestinations(ctx, e, c, reg)
	examineGateways(ctx, e, c, reg)
	return d
}

// examineAbsence describes a ledger that could not be opened. A file that does not exist
// yet is in order if the first write can make it.
func examineAbsence(e *examination, c config.Config, err error) {
	if !errors.Is(err, config.ErrNoLedger) {
		e.broken("ledger", withoutWait(err))
		return
	}
	folder := filepath.Dir(c.Ledger.File)
	f, err := os.CreateTemp(folder, ".readback-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		e.fail("ledger", "Make the folder, let this user write to it, or correct `ledger` in the configuration.",
			"%s does not exist, and cannot be made: %s", c.Ledger, flat(err.Error()))
		e.code = exitUnavailable
		return
	}
	e.ok("ledger", "%s does not exist yet: there are no writes. The first write makes it", c.Ledger)
	examineDisk(c, e)
}

// examineRegistry creates the configured destinations.
func (a *app) examineRegistry(e *examination, c config.Config) *connectors.Registry {
	reg, err := c.Registry(a.env)
	if err != nil {
		e.broken("configuration", err)
	} else {
		e.ok("configuration", "%s names %s", c.Path, plural(len(c.Destinations), "destination"))
	}
	return reg
}

// withoutWait describes a ledger that did not answer.
func withoutWait(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", server.LedgerTime, err)
	}
	return err
}

func retained(r config.Retention) string {
	if !r.Prunes() {
		return "everything is kept for ever"
	}
	text := fmt.Sprintf("settled writes are kept for %s, and known for %s", spelledKeep(r.Keep), spelledKeep(r.Remember))
	for _, of := range []struct {
		what  string
		keeps map[string]time.Duration
	}{{"tenant", r.Tenants}, {"destination", r.Destinations}} {
		for _, name := range slices.Sorted(maps.Keys(of.keeps)) {
			text += fmt.Sprintf("; of %s %s for %s", of.what, report.Safe(name), spelledKeep(of.keeps[name]))
		}
	}
	return text
}

// examineRetention warns of a rule for a destination that is not configured: its name may
// be misspelt, and the intended destination then has the general rule.
func examineRetention(e *examination, c config.Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Retention.Destinations)) {
		known := slices.ContainsFunc(c.Destinations, func(d config.Destination) bool { return d.Name == name })
		if !known && !strings.HasPrefix(name, webhooks.Prefix) {
			e.warn("retention", "Correct the name, unless the destination was taken out and its old writes are meant.",
				"retention.destinations.%s: no such destination is configured", report.Safe(name))
		}
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
