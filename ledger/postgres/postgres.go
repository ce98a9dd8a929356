package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/ledger"
)

// Options of a ledger. Nil and the zero value work.
type Options struct {
	// Schema is where the tables are; it is made if it is not there. Their names
	// all begin with ledger_, so they can stand beside those of others. Default:
	// wherever the search path of the connection leads.
	Schema string
	// Pool is one to share, which Close leaves open. The DSN is then not used:
	// how statements are run, and that connections lead to the primary, is up to
	// the pool. Default: one of our own.
	Pool *pgxpool.Pool
	// ResetClock accepts the database's present time although the newest on
	// record is later: the way out when its clock once stood far ahead. Leases
	// and due times that were given then stay as they are. Default false.
	ResetClock bool
	// Window is how far back an equal idempotency key of another write blocks
	// one that was enqueued; below zero for ever. It should be that of the
	// engines on the ledger. Default 24 hours.
	Window time.Duration
}

// Ledger is a ledger in a PostgreSQL database. It implements [ledger.Ledger].
type Ledger struct {
	name    string // of the database, for errors
	schema  string
	version int // of this program
	pool    *pgxpool.Pool
	sql     statements
	clock   clock
	writer  *writer
	memory  memory
	window  time.Duration // as far back as an idempotency key blocks; 0 for ever
	bell    ledger.Bell
	herald  ledger.Bell
	wake    wake
	turns   turns
	close   func() // once
	keeping ledger.Keeping

	// unnamed says that statements cannot be kept prepared on connections, and
	// must be sent whole each time.
	unnamed atomic.Bool
}

var _ ledger.Ledger = (*Ledger)(nil)

// KeepWith implements [ledger.Keeper].
func (l *Ledger) KeepWith(keep func(ledger.Record) (ledger.Record, error)) { l.keeping.KeepWith(keep) }

// KeepUnlessTold implements [ledger.Keeper].
func (l *Ledger) KeepUnlessTold(keep func(ledger.Record) (ledger.Record, error)) {
	l.keeping.KeepUnlessTold(keep)
}

// Open opens the ledger in the database that the DSN names (a URL, or
// key=value pairs; pool_max_conns bounds the connections, by default 16), and creates or upgrades it. Of several
// hosts it takes the primary. It fails with [ledger.ErrUnavailable], also when
// there is only a standby, [ledger.ErrCorrupt], or [ledger.ErrVersion] when the
// ledger is of a newer version. The caller must Close it.
func Open(ctx context.Context, dsn string, o *Options) (*Ledger, error) {
	if o == nil {
		o = &Options{}
	}
	l := &Ledger{
		schema: o.Schema, version: len(versions()), pool: o.Pool, sql: newStatements(o.Schema), close: func() {},
		window: windowOf(o),
	}
	if l.pool == nil {
		pool, err := connect(ctx, dsn)
		if err != nil {
			return nil, err
		}
		l.pool, l.close = pool, sync.OnceFunc(pool.Close)
	}
	l.name = nameOf(l.pool.Config().ConnConfig)
	if err := l.prepare(ctx, o.ResetClock); err != nil {
		l.close()
		return nil, err
	}
	l.writer = newWriter(l)
	return l, nil
}

// connect makes a pool whose connections all lead to a primary.
func connect(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = defaultConns
	}
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return pool, nil
}

// nameOf is a database for people, without secrets.
func nameOf(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

// Close ends the ledger after whatever was begun. Calls that come later fail
// with [ledger.ErrUnavailable], but for another Close. The error is always nil.
func (l *Ledger) Close() error {
	l.writer.close()
	l.wake.close()
	l.close()
	return nil
}

func (l *Ledger) closed() error {
	return fmt.Errorf("%w: %s: the ledger is closed", ledger.ErrUnavailable, l.name)
}

// Stats counts since Open, for this process alone.
type Stats struct {
	Commits    int64 // transactions that stored changes
	Operations int64 // changes in them: reservations and appends
}

// Stats returns the counts so far.
func (l *Ledger) Stats() Stats {
	return Stats{Commits: l.writer.commits.Load(), Operations: l.writer.operations.Load()}
}

// errEncoding says that the database could not hold all text.
var errEncoding = errors.New("its encoding is not UTF8, so that it could not hold all text: create it with ENCODING 'UTF8' TEMPLATE template0")
