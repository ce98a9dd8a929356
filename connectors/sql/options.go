package sql

import (
	"context"
	"crypto/tls"
	stdsql "database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/egress"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgserver"
)

const (
	// bulkLimit is how many queries one bulk read takes: one index lookup each, in one statement
	// that stays far inside a read timeout.
	bulkLimit = 100
	// commitMargin is what the horizon adds to the time in which a COMMIT must
	// arrive, for the server to carry it out: writing the log to disk is not
	// bounded by any setting, and takes milliseconds.
	commitMargin = 30 * time.Second
)

// Options define the tables and what their database promises. DSN or DB is required, and at least
// one table; every other zero value is the cautious one.
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
	// Plaintext allows connections without TLS to other machines. Default false: the connection
	// strings must require TLS (sslmode=verify-full, or require), except for loopback addresses
	// and sockets.
	Plaintext bool

	// Egress limits which hosts and addresses the connection strings may lead to.
	// Default: any. It cannot limit sockets of this machine, nor DB.
	Egress *egress.List
	// ClientCertificate fetches the certificate that connections with TLS show.
	// Default: that of the connection strings (sslcert), or none.
	ClientCertificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

	// DB is any other database, through its database/sql driver. Its tables
	// must have transactions. Set instead of DSN.
	DB *stdsql.DB
	// ReadDB is where to read. Default: DB.
	ReadDB *stdsql.DB
	// Dialect is the SQL of DB. Default: standard SQL and nothing else.
	Dialect Dialect
	// ReadYourWrites means that every read of ReadDB sees what was committed through DB before it
	// began: one SQLite file, one server. Reads are strong then. Default false. PostgreSQL is
	// checked instead.
	ReadYourWrites bool

	// Tables are the kinds of record. Required.
	Tables map[string]Table

	// Settle is how long weak reads may lag. Default: undeclared, so they never show absence. On
	// PostgreSQL it is for copies that have no log position (a logical replica); a read from a
	// streaming standby that is not shown to have caught up is an error then, since a standby can
	// pause for longer than any settle time.
	Settle time.Duration
	// Horizon is how long a COMMIT may still be applied after the client gave up. Negative means
	// undeclared. Default on PostgreSQL: SendTimeout, after which the server ends a transaction
	// whose COMMIT has not come, and 30 s for it to carry one out. Where
	// synchronous_standby_names is set, Horizon must be set too, or writes are refused: a commit
	// that waits for a standby that is down has no bound. Default with DB: undeclared.
	Horizon time.Duration
	// Recheck is when to read a verified write again: where a failover may lose what was
	// acknowledged (asynchronous replication). Default never.
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
	// read answers queries of one table, one by one or together.
	read(ctx context.Context, t *table, qs []question) error
	// list returns the rows of a statement, at most so many.
	list(ctx context.Context, t *table, s *statement, each func(connectors.Record) error) (rowsOf, error)
	// query gives the rows of a query of the caller's.
	query(ctx context.Context, query string, each func(intent.Fields) error) error
	// probe compares the table with its declaration.
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

// New checks the options. It does not connect. The error names the field. Close the
// connector where DSN is set.
func New(o Options) (*Connector, error) {
	c, err := newConnector(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	return c, nil
}

func newConnector(o Options) (*Connector, error) {
	if (o.DSN == "") == (o.DB == nil) {
		return nil, errors.New("the options DSN and DB: want one of the two")
	}
	if o.DB != nil && (o.Egress != nil || o.ClientCertificate != nil) {
		return nil, errors.New("the options Egress and ClientCertificate need DSN: the driver behind DB makes its own connections")
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

// Close closes the connections to PostgreSQL. A DB belongs to the caller.
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
func (o Options) poolConfig(option, dsn string, password func(context.Context) (string, error), connections int) (*pgxpool.Config, error) {
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
	if host, err := pgserver.InTheClear(dsn); err != nil || host != "" && !o.Plaintext {
		return nil, fmt.Errorf("the option %s may go to %s without TLS; want sslmode=verify-full in it, or the option Plaintext", option, clip(host))
	}
	conf.MaxConns = int32(min(connections, 1000))
	conf.MinConns, conf.MinIdleConns = 0, 0
	if conf.ConnConfig.RuntimeParams["application_name"] == "" {
		conf.ConnConfig.RuntimeParams["application_name"] = "readback"
	}
	// Without it the server reads our bytes in the database's own encoding, and returns them the
	// same way.
	conf.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	conf.BeforeConnect = beforeConnect(password)
	if err := o.secure(&conf.ConnConfig.Config); err != nil {
		return nil, fmt.Errorf("the option %s %w", option, err)
	}
	return conf, nil
}

// secure limits the connections of a pool, and gives them a certificate.
func (o Options) secure(c *pgconn.Config) error {
	hosts := []*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}
	for _, h := range append(hosts, c.Fallbacks...) {
		network, _ := pgconn.NetworkAddress(h.Host, h.Port)
		switch {
		case o.Egress != nil && network == "unix":
			return fmt.Errorf("leads to a socket of this machine, which egress cannot limit; want a host, or the option Egress left out")
		case o.ClientCertificate == nil:
		case h.TLSConfig == nil:
			return fmt.Errorf("may connect without TLS, so that no client certificate is shown; want sslmode=verify-full in it")
		case len(h.TLSConfig.Certificates) > 0:
			return fmt.Errorf("names a client certificate (sslcert) beside the option ClientCertificate; want one of the two")
		default:
			h.TLSConfig.GetClientCertificate = o.ClientCertificate
		}
	}
	if o.Egress != nil {
		c.LookupFunc, c.DialFunc = o.Egress.Resolved()
	}
	return nil
}

// orDefault is a bound, or its default.
func orDefault[T time.Duration | int](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func list(words []string) string { return strings.Join(words, ", ") }
