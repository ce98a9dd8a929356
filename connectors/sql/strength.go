package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/pause"
)

const (
	// defaultStandbyWait is how long a read waits for a standby to replay what
	// the primary has. A healthy one lags by milliseconds.
	defaultStandbyWait = 2 * time.Second
	// firstRead and lastRead are the shortest and the longest pause between two reads of a
	// standby that lags.
	firstRead = 2 * time.Millisecond
	lastRead  = 100 * time.Millisecond
)

// place is where a connection leads, as reported by the server.
type place struct {
	standby  bool
	system   string // of the cluster and its copies, whatever their history
	started  string // when this server was started
	database string
	table    string // its oid: the same on all copies
	kind     string // r and p are tables; anything else can hide rows
	// For a primary only: the current history, 8 hex digits; up to where its log is filled and
	// how much of that is on disk, from where standbys get it; and how soon a commit is surely on
	// disk.
	timeline, lsn, flushed string
	delay                  time.Duration
}

// placeOf reads where a connection leads. The log position is that of the filled log: every
// visible commit is before it. One taken within a transaction would be before its own commit.
func (p *postgres) placeOf(ctx context.Context, pg *pgconn.PgConn, t *table) (place, error) {
	s := sqlOf(p.dialect, `SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
		to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), current_database(),
		CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END,
		CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() END,
		CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn() END,
		(extract(epoch FROM current_setting('wal_writer_delay')::interval) * 1000)::int,`)
	s.add(" to_regclass(", s.textParam(p.dialect.name(t)), ")::oid, (SELECT relkind::text FROM pg_class WHERE oid = to_regclass(", s.textParam(p.dialect.name(t)), "))")
	rows, n, err := ask(ctx, pg, s, 1)
	switch {
	case err != nil:
		return place{}, doing("ask where a connection leads", err)
	case n != 1 || len(rows[0]) != 10:
		return place{}, fmt.Errorf("%w: where a connection leads", errUnreadable)
	}
	r := rows[0]
	delay, err := strconv.Atoi(r.text(7))
	if err != nil {
		return place{}, fmt.Errorf("%w: where a connection leads", errUnreadable)
	}
	return place{standby: r.text(0) != "f", system: r.text(1), started: r.text(2), database: r.text(3),
		timeline: r.text(4), lsn: r.text(5), flushed: r.text(6), delay: time.Duration(delay) * time.Millisecond, table: r.text(8), kind: r.text(9)}, nil
}

// askPrimary reads where writes go and the position of the log there. It runs before the read:
// the position covers all that was committed by then.
func (p *postgres) askPrimary(ctx context.Context, t *table) (place, error) {
	conn, err := p.asks.acquire(ctx)
	if err != nil {
		return place{}, doing("connect to the primary", err)
	}
	defer conn.Release()
	at, err := p.placeOf(ctx, conn.Conn().PgConn(), t)
	if err != nil {
		return place{}, err
	}
	return at, p.latest(at)
}

var errReplaced = errors.New("the server that takes our writes was replaced by a newer primary, or is none")

// latest refuses a primary that is older than one seen before: after a failover a connection can
// still lead to the earlier one.
func (p *postgres) latest(at place) error {
	timeline, err := strconv.ParseUint(at.timeline, 16, 32)
	if at.standby || err != nil {
		return errReplaced
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if timeline < p.newest[at.system] {
		return errReplaced
	}
	p.newest[at.system] = timeline
	return nil
}

// learn reads from a new connection for writes which history it writes, so that an older primary,
// to which other connections may still lead, is not trusted. A primary that was replaced gets no
// writes. A server that cannot report it is accepted.
func (p *postgres) learn(ctx context.Context, c *pgx.Conn) error {
	rows, _, err := ask(ctx, c.PgConn(), sqlOf(p.dialect, `SELECT (SELECT system_identifier FROM pg_control_system()),
		CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END`), 1)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && !c.IsClosed():
		return nil
	case err != nil:
		return err
	case len(rows) != 1 || rows[0].text(1) == "":
		return nil
	}
	return p.latest(place{system: rows[0].text(0), timeline: rows[0].text(1)})
}

// relate determines what a read on this connection can be trusted to show. lost is why the
// primary could not be queried.
func (p *postgres) relate(ctx context.Context, pg *pgconn.PgConn, t *table, primary place, lost error) (connectors.Strength, string, error) {
	if _, err := pg.Exec(ctx, "SAVEPOINT relate").ReadAll(); err != nil {
		return connectors.Weak, "", doing("begin reading", err)
	}
	here, err := p.placeOf(ctx, pg, t)
	if err != nil {
		return connectors.Weak, pathStandby, p.undo(ctx, pg, err)
	}
	path := pathPrimary
	if here.standby {
		path = pathStandby
	}
	switch {
	case lost != nil:
		strength, err := p.unproven()
		return strength, path, err
	case here.system != primary.system || here.system == "": // a logical copy
		return connectors.Weak, path, nil
	case here.database != primary.database || here.table != primary.table:
		return connectors.Weak, path, fmt.Errorf("%w: table %s of database %q here, %s of %q there; check databases and search paths",
			errElsewhere, here.table, here.database, primary.table, primary.database)
	case !here.standby && here.started != primary.started:
		return connectors.Weak, path, fmt.Errorf("%w: to two servers that both take writes", errElsewhere)
	case here.kind != "r" && here.kind != "p": // a view, or another server's
		strength, err := p.unproven()
		return strength, path, err
	case !here.standby:
		return connectors.Strong, path, nil
	}
	strength, err := p.awaitReplay(ctx, pg, t, primary)
	return strength, path, err
}

// independence is that of a read that [postgres.relate] found to be so strong. Only a standby
// that was shown to follow the server which takes writes is surely another server; one with an
// unknown place claims nothing.
func independence(s connectors.Strength, path string) connectors.Independence {
	if path == pathStandby && s == connectors.Strong {
		return connectors.OtherServer
	}
	return connectors.OwnCall
}

// undo continues after a query that the server refused: an unknown function, or one that our role
// may not call. A lost connection is an error.
func (p *postgres) undo(ctx context.Context, pg *pgconn.PgConn, cause error) error {
	var refused *pgconn.PgError
	if !errors.As(cause, &refused) || pg.IsClosed() || classOf(refused.Code) != "42" {
		return cause
	}
	if _, err := pg.Exec(ctx, "ROLLBACK TO SAVEPOINT relate").ReadAll(); err != nil {
		return doing("begin reading", err)
	}
	return nil
}

// progress is how far a standby is, as seen from one question.
type progress int

const (
	unrelated progress = iota // unknown: it follows no server, or our role may not see which
	otherLine                 // it follows another history than the primary writes
	behind
	caughtUp
)

// awaitReplay waits until the standby has replayed what the primary had. An entry at the end of
// the log that is no commit can stay off the disk, and so off the standby, for long; a commit
// cannot: after three times wal_writer_delay what is on disk then is enough, also for commits
// without a waiting client.
func (p *postgres) awaitReplay(ctx context.Context, pg *pgconn.PgConn, t *table, primary place) (connectors.Strength, error) {
	began, enough := time.Now(), primary.lsn
	wait := orDefault(p.o.StandbyWait, defaultStandbyWait)
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/2) // the rest is for the read itself
	}
	for rest := firstRead; ; rest = min(2*rest, lastRead) {
		state, err := p.progressOf(ctx, pg, primary, enough)
		switch {
		case err != nil:
			return connectors.Weak, err
		case state == caughtUp:
			return connectors.Strong, nil
		case state != behind || time.Since(began) >= wait:
			return p.unproven()
		}
		if !pause.For(ctx, rest) {
			return connectors.Weak, context.Cause(ctx)
		}
		if enough == primary.lsn && time.Since(began) > 3*primary.delay {
			later, err := p.askPrimary(ctx, t)
			if err != nil || later.started != primary.started || later.system != primary.system || later.timeline != primary.timeline {
				return p.unproven()
			}
			enough = later.flushed
		}
	}
}

// unproven: the read may not show everything. With a declared settle time, a weak read would
// become proof of absence after it, which a paused standby outlasts.
func (p *postgres) unproven() (connectors.Strength, error) {
	if p.o.Settle > 0 {
		return connectors.Weak, errBehind
	}
	return connectors.Weak, nil
}

// progressOf compares positions only within one history: after a failover the
// same number means another thing. The receiver names the history that the
// standby follows; where it cannot be seen nothing is known.
func (p *postgres) progressOf(ctx context.Context, pg *pgconn.PgConn, primary place, enough string) (progress, error) {
	s := sqlOf(p.dialect, "SELECT pg_is_in_recovery(), (SELECT lpad(to_hex(received_tli), 8, '0') FROM pg_stat_wal_receiver),")
	s.add(" pg_last_wal_replay_lsn() >= LEAST(", s.textParam(primary.lsn), "::pg_lsn, ", s.textParam(enough), "::pg_lsn)")
	rows, n, err := ask(ctx, pg, s, 1)
	switch {
	case err != nil:
		return unrelated, doing("ask how far the standby is", err)
	case n != 1 || len(rows[0]) != 3:
		return unrelated, fmt.Errorf("%w: how far the standby is", errUnreadable)
	}
	switch r := rows[0]; {
	case r.text(0) != "t" || r.text(1) == "":
		return unrelated, nil
	case r.text(1) != strings.ToLower(primary.timeline):
		return otherLine, nil
	case r.text(2) == "t":
		return caughtUp, nil
	}
	return behind, nil
}
