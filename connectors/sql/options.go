package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/pgserver"
)

// Options say where the tables are and what their database promises. DSN or DB
// is required, and at least one table; every other zero value is the careful
// one.
type Options struct {
	// DSN is PostgreSQL's connection string for writes, a URL or key=value
	// pairs, without the password. It must lead to the primary; with several
	// hosts the one that takes writes is chosen. What it leaves out comes from
	// the environment, as libpq has it.
	DSN string
	// Password fetches the password for each connection. Default: what the
	// environment or a password file has.
	Password func(ctx context.Context) (string, error)
	// ReadDSN is the connection string for reads, at best of a role that can
	// only read. It may lead to a streaming standby; for strong reads from one
	// its role needs pg_read_all_stats (pg_monitor has it). Default: DSN; reads
	// have connections of their own even so.
	ReadDSN string
	// ReadPassword fetches the password for reads. Default: Password.
	ReadPassword func(ctx context.Context) (string, error)
	// Plaintext allows connections without TLS to other machines. Default
	// false: the connection strings must ask for TLS (sslmode=verify-full, or
	// require), but for loopback addresses and sockets.
	Plaintext bool

	// DB is any other database, through its database/sql driver. Its tables
	// must have transactions. Set instead of DSN.
	DB *stdsql.DB
	// ReadDB is where to read. Default: DB.
	ReadDB *stdsql.DB
	// Dialect is the SQL of DB. Default: standard SQL and nothing else.
	Dialect Dialect
	// ReadYourWrites says that what was committed through DB every read of
	// ReadDB that begins later sees: one SQLite file, one server. Reads are
	// strong then. Default false. PostgreSQL is asked instead.
	ReadYourWrites bool

	// Tables are the kinds of record. Required.
	Tables map[string]Table

	// Settle is how long weak reads may lag. Default: undeclared, so they never
	// show absence. On PostgreSQL it is for copies that have no log position (a
	// logical replica); a read from a streaming standby that is not shown to
	// have caught up is an error then, since a standby can stand still for
	// longer than any settle time.
	Settle time.Duration
	// Horizon is how long a COMMIT may still land after it was given up.
	// Negative means undeclared. Default on PostgreSQL: SendTimeout, after
	// which the server ends a transaction whose COMMIT has not come, and 30 s
	// for it to carry one out. Where synchronous_standby_names is set it has
	// to be set too, or writes are refused: a commit that waits for a standby
	// that is down has no bound.
	// Default with DB: undeclared.
	Horizon time.Duration
	// Recheck is when to look again at a verified write: where a failover may
	// lose what was acknowledged (asynchronous replication). Default never.
	Recheck time.Duration
	// StandbyWait is how long a read waits for a standby to catch up, at most
	// half of what is left to it. Default 2 s.
	StandbyWait time.Duration
	// SendTimeout and ReadTimeout bound one write and one read. On PostgreSQL
	// the server ends the statement a little earlier. Default 30 s and 10 s.
	SendTimeout, ReadTimeout time.Duration
	// MaxConnections is how many connections to PostgreSQL are open at a time
	// for writes, and as many for reads; further ones wait. Default 4.
	MaxConnections int
}

// Connector is a database with tables. It is safe for concurrent use.
type Connector struct {
	o       Options
	dialect Dialect
	tables  map[string]*table
	engine  engine
}

// engine is one way to a database.
type engine interface {
	// write carries out one change; errors are as [connectors.Connector] has
	// them.
	write(ctx context.Context, t *table, c change) (connectors.Receipt, error)
	// read answers questions about one table, one by one or together.
	read(ctx context.Context, t *table, qs []question) error
	// list gives the rows of a statement, at most so many.
	list(ctx context.Context, t *table, s *statement, most int) (rowsOf, error)
	// probe compares the table with what it is declared to be.
	probe(ctx context.Context, t *table) error
	close()
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Inverter   = (*Connector)(nil)
	_ connectors.Sampler    = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
)

// New checks the options. It does not connect. The error wraps [ErrOptions] and
// names the field. Close the connector where DSN is set.
func New(o Options) (*Connector, error) {
	c, err := newConnector(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, nil
}

func newConnector(o Options) (*Connector, error) {
	if (o.DSN == "") == (o.DB == nil) {
		return nil, errors.New("the options DSN and DB: want one of the two")
	}
	if len(o.Tables) == 0 {
		return nil, errors.New("the option Tables is empty; want one for each kind of record")
	}
	if o.MaxConnections < 0 || o.Settle < 0 || o.StandbyWait < 0 || o.SendTimeout < 0 || o.ReadTimeout < 0 || o.Recheck < 0 {
		return nil, errors.New("the option MaxConnections, Settle, Recheck, StandbyWait, SendTimeout or ReadTimeout is negative; want 0 for the default, or more")
	}
	c := &Connector{o: o, dialect: o.Dialect.withDefaults(), tables: map[string]*table{}}
	if o.DSN != "" {
		c.dialect = postgreSQL()
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Tables)) {
		t, err := newTable(kind, o.Tables[kind], c.dialect)
		if err == nil && kind == "" {
			err = errors.New("the kind has no name")
		}
		if err != nil {
			return nil, fmt.Errorf("the option Tables: %q: %w", kind, err)
		}
		c.tables[kind] = t
	}
	if o.DB != nil {
		c.engine = newPlain(o, c.dialect)
		return c, nil
	}
	var err error
	c.engine, err = newPostgres(o, c.dialect)
	return c, err
}

// Close closes the connections to PostgreSQL. A DB belongs to whom it was got
// from.
func (c *Connector) Close() { c.engine.close() }

// Profiles is what the database can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	all := map[string]connectors.Profile{}
	for kind, t := range c.tables {
		p := t.profile(c.dialect)
		p.SendTimeout, p.ReadTimeout = c.o.SendTimeout, c.o.ReadTimeout
		if c.o.Settle > 0 {
			p.Settle = connectors.Within(c.o.Settle)
		}
		if c.o.Recheck > 0 {
			p.Recheck = connectors.Within(c.o.Recheck)
		}
		p.Horizon = c.o.horizon(p.SendFor())
		p.Reads = c.reads(t)
		if c.dialect.native {
			p.BulkLimit = bulkLimit
		}
		all[kind] = p
	}
	return all
}

func (o Options) horizon(send time.Duration) connectors.Bound {
	switch {
	case o.Horizon > 0:
		return connectors.Within(o.Horizon)
	case o.Horizon < 0 || o.DSN == "":
		return connectors.Bound{}
	}
	return connectors.Within(send + commitMargin)
}

func (c *Connector) reads(t *table) []connectors.ReadPath {
	by := []string{"key"}
	if t.Stamp != "" {
		by = append(by, "stamp")
	}
	var all []connectors.ReadPath
	for _, b := range by {
		switch {
		case !c.dialect.native:
			p := connectors.ReadPath{Path: pathSelect, By: b}
			if c.o.ReadYourWrites {
				p.Strength = connectors.Strong
			}
			all = append(all, p)
		default:
			all = append(all, connectors.ReadPath{Path: pathPrimary, By: b, Strength: connectors.Strong})
			if c.o.ReadDSN != "" {
				all = append(all, connectors.ReadPath{Path: pathStandby, By: b, Strength: connectors.Strong, Independent: connectors.OtherServer})
			}
		}
	}
	return all
}

// The ways in which records are read, as observations name them.
const (
	pathPrimary = "primary"
	pathStandby = "standby"
	pathSelect  = "select"
)

var passwordWord = regexp.MustCompile(`(?i)(^|[\s?&])(password|sslpassword)\s*=`)

// poolConfig checks a connection string and makes the configuration of a pool.
func poolConfig(option, dsn string, password func(context.Context) (string, error), connections int, plaintext bool) (*pgxpool.Config, error) {
	hasPassword := false
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		_, hasPassword = u.User.Password()
	}
	if hasPassword || passwordWord.MatchString(dsn) {
		return nil, fmt.Errorf("the option %s holds a password; want it left out: Password fetches it", option)
	}
	conf, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the option %s is no connection string of PostgreSQL: %w", option, &serverWords{err})
	}
	if host, err := pgserver.InTheClear(dsn); err != nil || host != "" && !plaintext {
		return nil, fmt.Errorf("the option %s may go to %s without TLS; want sslmode=verify-full in it, or the option Plaintext", option, clip(host))
	}
	conf.MaxConns = int32(min(connections, 1000))
	conf.MinConns, conf.MinIdleConns = 0, 0
	if conf.ConnConfig.RuntimeParams["application_name"] == "" {
		conf.ConnConfig.RuntimeParams["application_name"] = "readback"
	}
	// Without it the server takes our bytes for those of the database's own
	// encoding, and gives them back as it took them.
	conf.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	conf.BeforeConnect = beforeConnect(password)
	return conf, nil
}

// orDefault is a bound, or its default.
func orDefault[T time.Duration | int](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func list(words []string) string { return strings.Join(words, ", ") }
