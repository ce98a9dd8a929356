package shards_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/shards"
)

// server is the PostgreSQL server of all tests of this package. It need not survive a crash of the
// machine.
var server = sync.OnceValues(func() (*pgtest.Server, error) {
	return pgtest.Open(pgtest.Options{Settings: map[string]string{"fsync": "off"}})
})

func TestMain(m *testing.M) {
	killtest.Main(m, moves, func() error {
		if s, err := server(); err == nil { // else the tests have printed why
			return s.Close()
		}
		return nil
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// databases are partitions in schemas of one database, whose clock can be moved.
type databases struct {
	t      testing.TB
	server *pgtest.Server
	name   string
	n      int
	ahead  time.Duration
}

// template is a database with the tables of n partitions.
func template(t testing.TB, n int) *databases {
	t.Helper()
	s, err := server()
	pgtest.Need(t, err)
	name, err := s.CreateDatabase()
	must(t, err)
	must(t, s.Exec(name, `CREATE SCHEMA moved;
		CREATE TABLE moved.ahead AS SELECT interval '0' AS by;
		CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS 'SELECT pg_catalog.clock_timestamp() + (SELECT by FROM moved.ahead)'`))
	d := &databases{t: t, server: s, name: name, n: n}
	for i := range n {
		l, err := postgres.Open(context.Background(), d.dsn(), d.options(i))
		must(t, err)
		must(t, l.Close())
	}
	return d
}

func (d *databases) dsn() string { return d.server.DSN(d.name) }

func (d *databases) options(i int) *postgres.Options {
	return &postgres.Options{Schema: string(rune('a' + i))}
}

// copy returns a copy of a template, for one test.
func (d *databases) copy(t testing.TB) *databases {
	t.Helper()
	name, err := d.server.CopyDatabase(d.name)
	must(t, err)
	must(t, d.server.Exec(name, "ALTER DATABASE "+name+" SET search_path = moved, public, pg_catalog"))
	return &databases{t: t, server: d.server, name: name, n: d.n}
}

func (d *databases) move(by time.Duration) {
	d.ahead += by
	must(d.t, d.server.Exec(d.name, fmt.Sprintf("UPDATE moved.ahead SET by = interval '%d microseconds'", d.ahead.Microseconds())))
}

// shards are the partitions as a program is configured.
func (d *databases) shards() (all []shards.Shard) { return schemas(d.dsn(), d.n) }

func schemas(dsn string, n int) (all []shards.Shard) {
	for i := range n {
		name := string(rune('a' + i))
		all = append(all, shards.Shard{Name: name, Open: func(ctx context.Context) (ledger.Partition, error) {
			return postgres.Open(ctx, dsn, &postgres.Options{Schema: name})
		}})
	}
	return all
}

func (d *databases) open(t testing.TB, o shards.Options) *shards.Ledger {
	t.Helper()
	l, err := shards.Open(context.Background(), d.shards(), o)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// enqueue enqueues as callers do, in the database of their tenant.
func (d *databases) enqueue(l ledger.Ledger, o postgres.Outbox, commit bool, ws ...intent.WriteIntent) (err error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.dsn())
	must(d.t, err)
	defer func() { must(d.t, conn.Close(ctx)) }()
	tx, err := conn.Begin(ctx)
	must(d.t, err)
	defer func() {
		if !commit || err != nil {
			must(d.t, tx.Rollback(ctx))
			return
		}
		err = tx.Commit(ctx)
	}()
	for _, w := range ws {
		if o.Schema, err = l.(*shards.Ledger).Place(ctx, w.Tenant); err != nil {
			return err
		}
		if _, err := o.Enqueue(ctx, tx, w); err != nil {
			return err
		}
	}
	return nil
}

// whole runs all scenarios on three partitions, which takes minutes: each opens three ledgers.
var whole = flag.Bool("shards.whole", false, "run the whole suite of ledgers on three partitions")

func part() int {
	if *whole {
		return 1
	}
	return 4 * need.OneIn(10)
}

func TestLedgerOnPostgreSQL(t *testing.T) {
	const n = 3
	empty := template(t, n)
	var d *databases
	var l *shards.Ledger
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		d = empty.copy(t)
		l = d.open(t, shards.Options{})
		return l
	}, ledgertest.Options{
		Sleep: func(by time.Duration) { d.move(by) },
		Enqueue: func(t *testing.T, _ ledger.Ledger, commit bool, ws ...intent.WriteIntent) error {
			return d.enqueue(l, postgres.Outbox{}, commit, ws...)
		},
		EnqueueSealed: func(t *testing.T, _ ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error {
			return d.enqueue(l, postgres.Outbox{Keys: keys}, true, ws...)
		},
		Places: func(cursor string, f func(ledger.Place) ledger.Place) (string, error) { return l.Places(cursor, f) },
		OneIn:  part(),
	})
}
