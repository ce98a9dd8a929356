package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The ledger is in the caller's database, which stays open.
func TestOpenDB(t *testing.T) {
	ctx := t.Context()
	db, err := sql.Open("pgx", fresh(t).dsn())
	must(t, err)
	defer func() { must(t, db.Close()) }()
	l, err := postgres.OpenDB(ctx, db, &postgres.Options{Schema: "once"})
	must(t, err)
	_, err = l.Get(ctx, "acme", "wr_none")
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a new ledger: %v", err)
	}
	pool := l.Pool()
	must(t, l.Close())
	if err := pool.Ping(ctx); err == nil {
		t.Error("the ledger's own connections are still open after Close")
	}
	var tables int
	must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'once' AND tablename LIKE 'ledger_%'").Scan(&tables))
	if tables == 0 {
		t.Error("the caller's database has no table of the ledger")
	}
}

func TestOpenDBRefuses(t *testing.T) {
	other := sql.OpenDB(otherDriver{})
	defer func() { must(t, other.Close()) }()
	if _, err := postgres.OpenDB(t.Context(), other, nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "pgx/v5/stdlib") {
		t.Errorf("connections of another driver: %v; want a refusal that names the driver", err)
	}
	away, err := sql.Open("pgx", "postgres://127.0.0.1:1/none")
	must(t, err)
	defer func() { must(t, away.Close()) }()
	if _, err := postgres.OpenDB(t.Context(), away, nil); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("an unreachable database: %v", err)
	}
}

// otherDriver is a driver, and its only connection.
type otherDriver struct{}

func (otherDriver) Connect(context.Context) (driver.Conn, error) { return otherDriver{}, nil }
func (otherDriver) Driver() driver.Driver                        { return nil }
func (otherDriver) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("none") }
func (otherDriver) Begin() (driver.Tx, error)                    { return nil, errors.New("none") }
func (otherDriver) Close() error                                 { return nil }
