package sql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
)

const (
	// defaultConnections is how many connections are open at a time for writes, and as many for
	// reads: PostgreSQL allows 100 in total.
	defaultConnections = 4
	// askConnections is how many connections read the log position of the primary: a query of
	// half a millisecond.
	askConnections = 2
	// cleanup is how long a ROLLBACK may take before its connection is closed instead; either
	// ends the transaction.
	cleanup = time.Second
)

// postgres is PostgreSQL through pgx: a pool for writes, one for reads, and a small one to query
// the primary, so that writes that wait for locks do not delay reads.
type postgres struct {
	o       Options
	dialect Dialect
	idle    time.Duration // how long the server waits for our COMMIT
	writes  *lazyPool
	asks    *lazyPool
	reads   *lazyPool
	// newest is the highest timeline that a primary has shown, by the cluster
	// it is of: one that shows a lower one was replaced.
	mu     sync.Mutex
	newest map[string]uint64
}

// lazyPool is a pool that is made when it is first needed.
type lazyPool struct {
	config *pgxpool.Config
	mu     sync.Mutex
	pool   *pgxpool.Pool
	closed bool
}

var errClosed = errors.New("the connector is closed")

func (l *lazyPool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	pool, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	// Of several hosts it is the first, where the driver does not try another one.
	connectors.TraceServer(ctx, &url.URL{Host: net.JoinHostPort(l.config.ConnConfig.Host, strconv.Itoa(int(l.config.ConnConfig.Port)))})
	conn, err := pool.Acquire(ctx)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && classOf(refused.Code) == "28" {
		return nil, connectors.LoginRefused(refused.Code, err)
	}
	return conn, err
}

func (l *lazyPool) get(ctx context.Context) (*pgxpool.Pool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.pool == nil {
		pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), l.config)
		if err != nil {
			return nil, err
		}
		l.pool = pool
	}
	return l.pool, nil
}

func (l *lazyPool) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.pool != nil {
		l.pool.Close()
	}
}

func newPostgres(o Options, d Dialect) (*postgres, error) {
	connections := orDefault(o.MaxConnections, defaultConnections)
	writes, err := o.poolConfig("DSN", o.DSN, o.Password, connections)
	if err != nil {
		return nil, err
	}
	// A standby cannot take a write; with several hosts this finds the one
	// that can.
	if writes.ConnConfig.ValidateConnect == nil {
		writes.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	dsn, password := o.ReadDSN, o.ReadPassword
	if dsn == "" {
		dsn = o.DSN
	}
	if password == nil {
		password = o.Password
	}
	reads, err := o.poolConfig("ReadDSN", dsn, password, connections)
	if err != nil {
		return nil, err
	}
	send := connectors.Profile{SendTimeout: o.SendTimeout}.SendFor()
	asks := writes.Copy()
	asks.MaxConns = int32(min(connections, askConnections))
	p := &postgres{o: o, dialect: d, idle: send, newest: map[string]uint64{},
		writes: &lazyPool{config: writes}, asks: &lazyPool{config: asks}, reads: &lazyPool{config: reads}}
	writes.AfterConnect = p.learn
	return p, nil
}

func beforeConnect(password func(context.Context) (string, error)) func(context.Context, *pgx.ConnConfig) error {
	if password == nil {
		return nil
	}
	return func(ctx context.Context, c *pgx.ConnConfig) error {
		secret, err := password(ctx)
		if err != nil {
			return fmt.Errorf("fetch the password: %w", err)
		}
		c.Password = secret
		return nil
	}
}

func (p *postgres) close() {
	for _, pool := range []*lazyPool{p.writes, p.asks, p.reads} {
		pool.close()
	}
}

// row is one row of an answer in text form; nil is NULL.
type row []*string

func (r row) text(i int) string {
	if i < len(r) && r[i] != nil {
		return *r[i]
	}
	return ""
}

// ask runs one statement and returns its rows, at most so many; further ones are counted.
func ask(ctx context.Context, c *pgconn.PgConn, s *statement, most int) (rows []row, n int, err error) {
	err = askEach(ctx, c, s, func(r row) error {
		if n++; n <= most {
			rows = append(rows, r)
		}
		return nil
	})
	return rows, n, err
}

// askEach runs one statement and returns its rows one by one, until there is an error. Values are
// sent and received as text: nothing is lost.
func askEach(ctx context.Context, c *pgconn.PgConn, s *statement, each func(row) error) error {
	args := make([][]byte, len(s.args))
	for i, a := range s.args {
		if !a.null {
			args[i] = []byte(a.text)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := c.ExecParams(ctx, s.String(), args, nil, nil, nil)
	for answer.NextRow() {
		var r row
		for _, v := range answer.Values() {
			if v == nil {
				r = append(r, nil)
				continue
			}
			text := string(v)
			r = append(r, &text)
		}
		if err := each(r); err != nil {
			cancel() // do not wait for the remaining rows
			_, _ = answer.Close()
			return err
		}
	}
	_, err := answer.Close()
	return err
}

// write runs the change in a transaction that bounds itself.
func (p *postgres) write(ctx context.Context, t *table, c change) (connectors.Receipt, error) {
	conn, err := p.writes.acquire(ctx)
	if err != nil {
		return connectors.Receipt{}, beforeCommit(doing("connect", err))
	}
	defer conn.Release() // one that is not idle and well is closed
	pg := conn.Conn().PgConn()
	receipt, err := p.prepareCommit(ctx, pg, t, c)
	if err != nil {
		rollback(ctx, pg)
		return connectors.Receipt{}, err
	}
	if err := tooLate(ctx); err != nil {
		rollback(ctx, pg)
		return connectors.Receipt{}, err
	}
	return receipt, commit(ctx, pg)
}

// tooLate checks before COMMIT whether the time is up, by the clock too: a process that was
// stopped and continues has timers that have not fired yet.
func tooLate(ctx context.Context) error {
	end, ok := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		return connectors.NotSent(fmt.Errorf("no COMMIT was sent: %w", context.Cause(ctx)))
	case ok && !time.Now().Before(end):
		return connectors.NotSent(fmt.Errorf("no COMMIT was sent: %w", context.DeadlineExceeded))
	}
	return nil
}

// prepareCommit does everything but the COMMIT. Its errors are classified.
func (p *postgres) prepareCommit(ctx context.Context, pg *pgconn.PgConn, t *table, c change) (connectors.Receipt, error) {
	begun, err := pg.Exec(ctx, p.beginWrite(ctx)).ReadAll()
	if err != nil {
		return connectors.Receipt{}, beforeCommit(doing("begin", err))
	}
	if p.o.Horizon == 0 && waits(begun) {
		return connectors.Receipt{}, connectors.Refused("", errUnbounded)
	}
	rows, n, err := ask(ctx, pg, c.statement, c.rows)
	switch {
	case err != nil:
		return connectors.Receipt{}, beforeCommit(doing(t.kind, err))
	case pg.TxStatus() != 'T':
		return connectors.Receipt{}, errNoTransaction
	case n != c.rows:
		return connectors.Receipt{}, c.missed(n)
	case !c.keptIn(rows):
		return connectors.Receipt{}, connectors.Refused("", errKeyChanged)
	}
	record, err := nativeRecord(t, t.names(), rows[0])
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(fmt.Errorf("no COMMIT was sent: %w", err))
	}
	return connectors.Receipt{Ref: record.Ref, Version: record.Version, Code: "COMMIT"}, nil
}

var (
	errUnbounded = fmt.Errorf("%w: the server commits only when standbys have (synchronous_standby_names), which has no bound; set the option Horizon", errTable)
	// errNoTransaction is of unknown fate: something between us and the server has lost the
	// transaction, and the statement committed by itself.
	errNoTransaction = errors.New("the statement was answered outside of its transaction")
)

// waits reports whether the server's commits wait for standbys.
func waits(begun []*pgconn.Result) bool {
	last := begun[len(begun)-1]
	return len(last.Rows) == 1 && string(last.Rows[0][0]) == "t"
}

// keptIn reports whether all rows still have the requested key, as the database compares.
func (c change) keptIn(rows []row) bool {
	for _, r := range rows {
		if c.keyed && r.text(len(r)-1) != "t" {
			return false
		}
	}
	return true
}

// missed is the refusal of a change that would touch another number of rows.
func (c change) missed(n int) error {
	if c.makes && n == 0 {
		return connectors.Conflict("", fmt.Errorf("the server inserted no row: %w, or a trigger swallowed the insert", errExists))
	}
	return connectors.Conflict("", fmt.Errorf("%w: %d, want %d; it was rolled back", errMatches, n, c.rows))
}

// beginWrite opens a transaction that ends by itself: the statement a little before the client
// gives up, so that the server's answer comes in time; the transaction when COMMIT does not come.
// Constraints are checked within the statement, since nothing limits the time of COMMIT. A commit
// that a crash of the server could lose does not count.
func (p *postgres) beginWrite(ctx context.Context) string {
	left := p.idle
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	ms := func(d time.Duration) int64 { return max(d.Milliseconds(), 1) }
	return fmt.Sprintf(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d;
SET LOCAL idle_in_transaction_session_timeout = %d; SET LOCAL tcp_user_timeout = %d;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SELECT current_setting('synchronous_standby_names') <> ''`,
		ms(left*9/10), ms(left*8/10), ms(p.idle), ms(p.idle))
}

// commit sends COMMIT. The server answers ROLLBACK if the transaction had failed.
func commit(ctx context.Context, pg *pgconn.PgConn) error {
	results, err := pg.Exec(ctx, "COMMIT").ReadAll()
	switch {
	case err != nil:
		return atCommit(doing("commit", err))
	case len(results) == 1 && results[0].CommandTag.String() == "COMMIT":
		return nil
	case len(results) == 1 && results[0].CommandTag.String() == "ROLLBACK":
		return connectors.Refused("ROLLBACK", errors.New("the server rolled the transaction back"))
	}
	return fmt.Errorf("no certain answer to COMMIT: %d results", len(results))
}

// rollback frees the rows at once. Where it cannot be sent the connection is
// closed, which comes to the same.
func rollback(ctx context.Context, pg *pgconn.PgConn) {
	if pg.IsClosed() || pg.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_, _ = pg.Exec(ctx, "ROLLBACK").ReadAll()
}

func sqlOf(d Dialect, parts ...string) *statement {
	s := &statement{d: d}
	s.add(strings.Join(parts, " "))
	return s
}
