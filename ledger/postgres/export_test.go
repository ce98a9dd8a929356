package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/ledger"
)

// Statements are the texts that run while callers wait, by name.
var Statements = newStatements("", dialects[0])

// Migrate runs migrations as a program with other ones would.
func (l *Ledger) Migrate(ctx context.Context, texts []string) error {
	return l.migrate(ctx, texts, nil)
}

// Versions are the texts of the migrations.
var Versions = versions()

// Unnamed reports whether statements are sent whole each time.
func (l *Ledger) Unnamed() bool { return l.unnamed.Load() }

// Within runs f in a transaction of the ledger.
func (l *Ledger) Within(ctx context.Context, f func(tx pgx.Tx) error) error {
	return l.within(ctx, func(t *tx) error { return f(t.pgx) })
}

// Reset replaces all connections.
func (l *Ledger) Reset() { l.pool.Reset() }

// Demote makes the ledger's next connections lead to another server, which may be a standby: what
// a failover without a new connection string looks like.
func (l *Ledger) Demote(t testing.TB, dsn string) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if l.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
}

// Occupy takes connections of the ledger until they are released.
func (l *Ledger) Occupy(t testing.TB, n int) (release func()) {
	var taken []*pgxpool.Conn
	for range n {
		conn, err := l.pool.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	release = sync.OnceFunc(func() {
		for _, conn := range taken {
			conn.Release()
		}
	})
	t.Cleanup(release) // a test that fails before would wait for ever while its ledger closes
	return release
}

// Waiting returns how many operations of a ledger wait for a transaction or are in one.
func Waiting(l *Ledger) int {
	l.writer.mu.Lock()
	defer l.writer.mu.Unlock()
	return len(l.writer.queue) + l.writer.flying
}

// Reserving returns the statement that stores a reservation without known obstacles.
func (l *Ledger) Reserving(t testing.TB, res ledger.Reservation) (query string, args []any) {
	t.Helper()
	now, err := l.time(t.Context(), l.conn(t))
	if err != nil {
		t.Fatal(err)
	}
	rec, events, err := ledger.Begin(res, "", now)
	if err != nil {
		t.Fatal(err)
	}
	query, args, err = l.statement([]change{made(rec, events, res.Precheck)}, now, false)
	if err != nil {
		t.Fatal(err)
	}
	return query, args
}

func (l *Ledger) conn(t testing.TB) *pgxpool.Conn {
	t.Helper()
	conn, err := l.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	return conn
}

// ForgetClock makes the next transaction read the database's clock.
func (l *Ledger) ForgetClock() { l.clock.refused() }

// ReserveTogether makes reservations in one transaction, as under load, and returns how many were
// made.
func (l *Ledger) ReserveTogether(all ...ledger.Reservation) (made int, err error) {
	var batch []*operation
	for _, res := range all {
		batch = append(batch, &operation{done: make(chan answer, 1), prepare: func(now time.Time) (change, error) { return beginning(res, now) }})
	}
	l.writer.flush(batch)
	for _, o := range batch {
		a := <-o.done
		if err = errors.Join(err, a.err); a.applied {
			made++
		}
	}
	return made, err
}

// Pool is the pool of the ledger, for callers with transactions of their own.
func (l *Ledger) Pool() *pgxpool.Pool { return l.pool }

// Schema is the schema of its tables.
func (l *Ledger) Schema() string { return l.schema }

// Recent returns the tickets of the runs that are kept for the sealer, and what all takes.
func (l *Ledger) Recent() (tickets []int64, size int) { return l.recent.Tickets() }

// Skew is the most by which clocks of the simulated dialect differ.
const Skew = 20 * time.Millisecond

// The simulated dialect has everything that may be missing or different, and clocks that differ
// less than those of a suite that moves time.
func init() {
	d := dialect{name: "simulated", noSkip: true, noListen: true, noCollate: true, noLockTable: true, noStandby: true, unsure: true, skew: Skew}
	dialects = append(dialects, d)
	d.name, d.skew = "an hour apart", time.Hour
	dialects = append(dialects, d)
}

// DialectOf returns the name of the dialect of a database.
func DialectOf(name, version string) (string, error) {
	d, err := dialectOf(name, version)
	return d.name, err
}

// AsksForStandby reports whether statements check that the database is no standby.
func (l *Ledger) AsksForStandby() bool { return !l.dialect.noStandby }
