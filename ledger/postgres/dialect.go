package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// dialect describes how a database that speaks PostgreSQL's protocol differs from PostgreSQL. Only
// this file names databases: the statements are rendered for a dialect once, and what a statement
// cannot express asks a field.
type dialect struct {
	name string
	// answers is a part of what version() answers; "" where that answer is the same as
	// PostgreSQL's.
	answers string

	// noSkip: SKIP LOCKED is missing, waits, or skips rows that no transaction has locked. A claim
	// then takes no locks: it reads candidates, and updates each on the condition that it still
	// has the fence that was read. Other statements wait for the locks.
	noSkip bool
	// noListen: LISTEN and NOTIFY are missing. Workers of other processes find work when they
	// read next.
	noListen bool
	// noCollate: COLLATE "C" is missing, and text is ordered by bytes without it.
	noCollate bool
	// noLockTable: LOCK TABLE is missing. Migrations lock the row of the version instead.
	noLockTable bool
	// noStandby: pg_is_in_recovery and synchronous_commit are missing. Each node answers for the
	// whole database, and each commit is durable.
	noStandby bool
	// unsure: a commit may answer that its result is not known, also where nothing failed. The
	// ledger then finds out instead of returning [ledger.ErrUnsure].
	unsure bool
	// skew is the most by which the clocks of two nodes differ. A lease has ended when it has on
	// each of these clocks. A change is only ever checked against the clock of the node from which
	// its time was read. How much time has passed since a send is counted by each process itself;
	// one that did not send may begin too early by this much.
	skew time.Duration
	// lacks names what a ledger cannot be without: partial unique indexes, by which a queue has one
	// head and one tail and an operation one holder, and numbers of writes that grow, by which a
	// reservation finds writes of its record that are newer than its pre-state.
	lacks []string
}

// defaultSkew is the difference that CockroachDB (--max-offset) and YugabyteDB
// (--max_clock_skew_usec) accept by default.
const defaultSkew = 500 * time.Millisecond

// dialects are the known ones. The first is that of a database whose answer is not certain.
var dialects = []dialect{
	{name: "postgres"},
	{name: "cockroachdb", answers: "CockroachDB", noSkip: true, noListen: true, noCollate: true, noLockTable: true, noStandby: true, unsure: true, skew: defaultSkew},
	{name: "yugabytedb", answers: "-YB-", noSkip: true, noListen: true, noLockTable: true, unsure: true, skew: defaultSkew},
	{name: "aurora-dsql", lacks: []string{"partial unique indexes", "numbers that grow"}},
	{name: "spanner", lacks: []string{"partial unique indexes", "numbers that grow"}},
}

// CheckDialect returns an error for a name that [Options] may not have, with the remedy.
func CheckDialect(name string) error {
	_, err := dialectOf(name, "")
	return err
}

// dialectOf returns the dialect of that name, or, where none is named, of a database by what it
// answers to version().
func dialectOf(name, version string) (d dialect, err error) {
	i := slices.IndexFunc(dialects, func(d dialect) bool { return d.answers != "" && strings.Contains(version, d.answers) })
	switch {
	case i >= 0 && name != "" && name != dialects[i].name:
		return d, fmt.Errorf("its dialect is %s, not %s: it answers %q", dialects[i].name, name, version)
	case i < 0 && name == "":
		i = 0
	case i < 0:
		i = slices.IndexFunc(dialects, func(d dialect) bool { return d.name == name })
	}
	var usable []string
	for _, d := range dialects {
		if len(d.lacks) == 0 {
			usable = append(usable, d.name)
		}
	}
	if i < 0 {
		return d, fmt.Errorf("the dialect %q is not known; want one of %s, or none where the database names itself", name, strings.Join(usable, ", "))
	}
	if d = dialects[i]; len(d.lacks) > 0 {
		return d, fmt.Errorf("%s cannot hold a ledger: it lacks %s; want one of %s", d.name, strings.Join(d.lacks, " and "), strings.Join(usable, ", "))
	}
	return d, nil
}

// speak finds out the dialect of the database, and completes the statements for it.
func (l *Ledger) speak(ctx context.Context, named string) error {
	var version string
	err := l.read(ctx, "SELECT version()", nil, func(rows pgx.Rows) (err error) {
		version, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return err
	}
	if l.dialect, err = dialectOf(named, version); err != nil {
		return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, l.name, err)
	}
	if l.dialect.noStandby && !strings.Contains(version, l.dialect.answers) {
		if l.dialect.noStandby, err = l.lacksStandby(ctx); err != nil {
			return err
		}
	}
	l.sql = newStatements(l.schema, l.dialect)
	return nil
}

// lacksStandby asks a database that only its configuration names: if that is wrong, a PostgreSQL
// could be a standby, or lose commits in a crash.
func (l *Ledger) lacksStandby(ctx context.Context) (bool, error) {
	err := l.read(ctx, "SELECT pg_is_in_recovery()", nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		return err
	})
	if unknownFunction(err) {
		return true, nil
	}
	return false, err
}

// render completes the text of a statement for the dialect.
func (d dialect) render(name, text string) string {
	free := ""
	if d.noSkip {
		// A claim compares again what it has read without a lock.
		free = " AND w.fence = picked.fence AND w.due <= g.now AND w.lease_until <= g.now - {skew} AND w.damaged IS NULL"
		lock := "FOR UPDATE"
		if name == "lend" {
			lock = ""
		}
		text = strings.ReplaceAll(text, "FOR UPDATE SKIP LOCKED", lock)
	}
	text = strings.NewReplacer("{free}", free).Replace(text)
	text = strings.ReplaceAll(text, "{skew}", strconv.FormatInt(int64(d.skew), 10))
	return d.plain(text)
}

// plain removes collations where the dialect has none.
func (d dialect) plain(text string) string {
	if d.noCollate {
		return strings.ReplaceAll(text, ` COLLATE "C"`, "")
	}
	return text
}

// errCached means that numbers are not given out in order.
var errCached = errors.New("its sequences give each connection numbers in advance, so that a later write can have a lower number: " +
	"ALTER SEQUENCE … CACHE 1 (YugabyteDB: start the servers with ysql_sequence_cache_minval=1)")

// ordered refuses a database whose numbers of writes do not grow: a reservation relies on it to
// find writes of its record that are newer than its pre-state.
func (l *Ledger) ordered(ctx context.Context) error {
	var cached bool
	err := l.read(ctx, l.sql.Text("cached"), nil, func(rows pgx.Rows) (err error) {
		cached, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		return err
	})
	if err == nil && cached {
		err = fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, l.name, errCached)
	}
	return err
}
