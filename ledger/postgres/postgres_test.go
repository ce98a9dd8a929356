package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

// shared is the server of all tests that do not stop theirs. It need not survive a crash of the
// machine.
var shared struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func server(t testing.TB) *pgtest.Server {
	t.Helper()
	shared.once.Do(func() {
		shared.server, shared.err = pgtest.Open(pgtest.Options{Settings: map[string]string{"fsync": "off"}})
	})
	pgtest.Need(t, shared.err)
	return shared.server
}

// database is a database of a server.
type database struct {
	t      testing.TB
	server *pgtest.Server
	name   string
	mu     sync.Mutex
	ahead  time.Duration
}

// fresh is an empty database of the shared server.
func fresh(t testing.TB) *database {
	t.Helper()
	return freshOn(t, server(t))
}

func freshOn(t testing.TB, s *pgtest.Server) *database {
	t.Helper()
	name, err := s.CreateDatabase()
	must(t, err)
	return &database{t: t, server: s, name: name}
}

func (d *database) dsn() string { return d.server.DSN(d.name) }

// exec runs SQL in the database.
func (d *database) exec(sql string) {
	d.t.Helper()
	must(d.t, d.server.Exec(d.name, sql))
}

// movable makes the clock of the database movable: a function of the same name that new
// connections find first.
func (d *database) movable() *database {
	d.t.Helper()
	d.exec(`CREATE SCHEMA moved;
		CREATE TABLE moved.ahead AS SELECT interval '0' AS by;
		CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS 'SELECT pg_catalog.clock_timestamp() + (SELECT by FROM moved.ahead)'`)
	return d.moved()
}

// moved makes connections find the movable clock.
func (d *database) moved() *database {
	d.t.Helper()
	d.exec("ALTER DATABASE " + d.name + " SET search_path = moved, public, pg_catalog")
	return d
}

// move moves the clock of the database.
func (d *database) move(by time.Duration) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += by
	d.exec(fmt.Sprintf("UPDATE moved.ahead SET by = interval '%d microseconds'", d.ahead.Microseconds()))
}

// open opens a ledger that is closed with the test.
func (d *database) open(o *postgres.Options) *postgres.Ledger {
	d.t.Helper()
	l, err := postgres.Open(context.Background(), d.dsn(), o)
	must(d.t, err)
	d.t.Cleanup(func() { must(d.t, l.Close()) })
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLedger(t *testing.T) {
	o := &postgres.Options{Schema: "readback"}
	empty := fresh(t).movable() // its tables are made once, and copied
	l, err := postgres.Open(t.Context(), empty.dsn(), o)
	must(t, err)
	must(t, l.Close())
	var d *database
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		name, err := empty.server.CopyDatabase(empty.name)
		must(t, err)
		d = (&database{t: t, server: empty.server, name: name}).moved()
		return d.open(o)
	}, ledgertest.Options{Sleep: func(by time.Duration) { d.move(by) }, Enqueue: enqueue, EnqueueSealed: enqueueSealed, OneIn: need.OneIn(4)})
}
