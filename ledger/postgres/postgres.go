package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// defaultConns is the most connections of a process: those that store, and about as many that
// read and claim.
const defaultConns = 16

// Options configures a ledger. Nil and the zero value are valid.
type Options struct {
	// Schema holds the tables; it is created if it does not exist. All table names begin with
	// ledger_, so they can share a schema with other tables. Default: the search path of the
	// connection decides.
	Schema string
	// Pool is a pool to share, which Close leaves open. The DSN is then not used: the pool
	// decides how statements are run, and must connect to the primary. Default: an own pool.
	Pool *pgxpool.Pool
	// ResetClock accepts the database's present time although the newest recorded one is later:
	// the remedy when its clock was once far ahead. Existing leases and due times are unchanged.
	// Default false.
	ResetClock bool
	// Window is how far back an equal idempotency key of another write blocks an enqueued one;
	// below zero for ever. It should equal that of the engines on the ledger. Default 24 hours.
	Window time.Duration
	// Login fetches the current DSN, from which each new connection takes the user and the
	// password, and a function to call when the server has refused them, or nil. Not used with a
	// Pool. Default: those of the DSN that Open got.
	Login func(ctx context.Context) (dsn string, refused func(), err error)
	// Dialect names what the database is: postgres, cockroachdb or yugabytedb (see
	// [CheckDialect]). Default: what it answers to version(), where that is certain, and else
	// postgres.
	Dialect string
	// Keys seal the digest key of the ledger ([ledger.KeyDigests]): a redact.Vault with the
	// redaction keys. A digest key that is in the clear, or sealed under another key than the
	// first, is sealed when the ledger is opened. Default: a new digest key is in the clear, and
	// a ledger with a sealed one can only be read.
	Keys ledger.Keys
}

// Ledger is a ledger in a PostgreSQL database. It implements [ledger.Ledger].
type Ledger struct {
	name        string // of the database, for errors
	schema      string
	version     int // of this program
	pool        *pgxpool.Pool
	sql         statements
	dialect     dialect
	clock       clock
	writer      *writer
	memory      memory
	recent      driver.Recent
	window      time.Duration // how far back an idempotency key blocks; 0 for ever
	notifier    ledger.Notifier
	subscribers ledger.Notifier
	wake        wake
	fairness    fairness
	close       func() // once
	keeping     ledger.Keeping
	keys        ledger.Keys

	// unnamed says that statements cannot be kept prepared on connections, and must be sent whole
	// each time.
	unnamed atomic.Bool
}

var _ ledger.Ledger = (*Ledger)(nil)

// KeepWith implements [ledger.Ledger].
func (l *Ledger) KeepWith(keep func(ledger.Record) (ledger.Record, error)) { l.keeping.KeepWith(keep) }

// KeepByDefault implements [ledger.Ledger].
func (l *Ledger) KeepByDefault(keep func(ledger.Record) (ledger.Record, error)) {
	l.keeping.KeepByDefault(keep)
}

// KeyDigests implements [ledger.Maintenance].
func (l *Ledger) KeyDigests() ledger.KeyDigests { return l.keeping.Digests }

// Open opens the ledger in the database that the DSN names (a URL, or key=value pairs;
// pool_max_conns bounds the connections, by default 16), and creates or upgrades it. Of several
// hosts it uses the primary. It fails with [ledger.ErrUnavailable], also when there is only a
// standby, [ledger.ErrCorrupt], or [ledger.ErrVersion] when the ledger is of a newer version. The
// caller must Close it.
func Open(ctx context.Context, dsn string, o *Options) (*Ledger, error) {
	if o == nil {
		o = &Options{}
	}
	l := &Ledger{
		schema: o.Schema, version: len(versions()), pool: o.Pool, close: func() {},
		window: windowOf(o), keys: o.Keys,
	}
	if l.pool == nil {
		pool, err := connect(ctx, dsn, o.Login)
		if err != nil {
			return nil, err
		}
		l.pool, l.close = pool, sync.OnceFunc(pool.Close)
	}
	l.name = nameOf(l.pool.Config().ConnConfig)
	if err := l.prepare(ctx, o); err != nil {
		l.close()
		return nil, err
	}
	l.writer = newWriter(l)
	return l, nil
}

// OpenDB is Open for the database that db has open with pgx's driver (pgx/v5/stdlib). The ledger has
// connections of its own, with the address and the login of one of db's, and Close leaves db open. A
// login that changes needs Open with [Options.Login].
func OpenDB(ctx context.Context, db *sql.DB, o *Options) (*Ledger, error) {
	config, err := configOf(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	pool, err := connectWith(ctx, config)
	if err != nil {
		return nil, err
	}
	own := Options{}
	if o != nil {
		own = *o
	}
	own.Pool = pool
	l, err := Open(ctx, "", &own)
	if err != nil {
		pool.Close()
		return nil, err
	}
	l.close = sync.OnceFunc(pool.Close)
	return l, nil
}

// configOf returns the configuration of a pool like that of a database.
func configOf(ctx context.Context, db *sql.DB) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.MaxConns = defaultConns
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it goes back to its pool
	return config, conn.Raw(func(c any) error {
		of, ok := c.(interface{ Conn() *pgx.Conn })
		if !ok {
			return fmt.Errorf("the database has connections of type %T; want those of github.com/jackc/pgx/v5/stdlib, or Open with a DSN", c)
		}
		config.ConnConfig = of.Conn().Config()
		return nil
	})
}

// connect returns a pool for a DSN.
func connect(ctx context.Context, dsn string, login func(context.Context) (string, func(), error)) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = defaultConns
	}
	if login != nil {
		config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error { return logIn(ctx, c, login) }
	}
	return connectWith(ctx, config)
}

// connectWith returns a pool whose connections all lead to a primary.
func connectWith(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = primary
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return pool, nil
}

// primary refuses a connection to a standby. A database that does not know of standbys has none.
func primary(ctx context.Context, conn *pgconn.PgConn) error {
	err := pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn)
	if unknownFunction(err) {
		return nil
	}
	return err
}

func unknownFunction(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42883"
}

// logIn gives a new connection the current user and password.
func logIn(ctx context.Context, c *pgx.ConnConfig, login func(context.Context) (string, func(), error)) error {
	dsn, refused, err := login(ctx)
	if err != nil {
		return fmt.Errorf("fetch the login: %w", err)
	}
	now, err := pgx.ParseConfig(strings.TrimSpace(dsn))
	if err != nil {
		return errors.New("fetch the login: what was fetched is no connection string") // not quoted in the error
	}
	c.User, c.Password = now.User, now.Password
	handle := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if strings.HasPrefix(e.Code, "28") && refused != nil { // invalid authorization
			refused()
		}
		return handle == nil || handle(conn, e)
	}
	return nil
}

// nameOf returns a display name of a database, without secrets.
func nameOf(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

// Close closes the ledger after all calls in progress. Later calls fail with
// [ledger.ErrUnavailable], except another Close. The error is always nil.
func (l *Ledger) Close() error {
	l.writer.close()
	l.wake.close()
	l.close()
	return nil
}

func (l *Ledger) closed() error {
	return fmt.Errorf("%w: %s: the ledger is closed", ledger.ErrUnavailable, l.name)
}

// Stats counts since Open, for this process only.
type Stats struct {
	Commits    int64 // transactions that stored changes
	Operations int64 // changes in them: reservations and appends
}

// Stats returns the counts so far.
func (l *Ledger) Stats() Stats {
	return Stats{Commits: l.writer.commits.Load(), Operations: l.writer.operations.Load()}
}

// errEncoding means that the database cannot hold all text.
var errEncoding = errors.New("its encoding is not UTF8, so that it could not hold all text: create it with ENCODING 'UTF8' TEMPLATE template0")
