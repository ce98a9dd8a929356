package sqlite_test

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The ledger is in the file of the caller's database, which stays open.
func TestOpenDB(t *testing.T) {
	ctx, db := t.Context(), database(t, filepath.Join(t.TempDir(), "app.db"))
	_, err := db.ExecContext(ctx, "CREATE TABLE invoices (id TEXT)")
	must(t, err)
	l, err := sqlite.OpenDB(ctx, db, nil)
	must(t, err)
	_, err = l.Get(ctx, "acme", "wr_none")
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a new ledger: %v", err)
	}
	must(t, l.Close())
	var tables int
	must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name IN ('invoices', 'ledger_writes')").Scan(&tables))
	if tables != 2 {
		t.Errorf("%d of the tables are in the caller's file, want 2", tables)
	}
	var mode string
	must(t, db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode))
	if mode != "wal" {
		t.Errorf("the journal of the caller's file is %q", mode)
	}
}

// A second copy of SQLite in the process would break the locks of the first.
func TestOpenDBRefuses(t *testing.T) {
	memory, err := stdsql.Open("sqlite", ":memory:")
	must(t, err)
	other := stdsql.OpenDB(otherDriver{})
	for name, db := range map[string]*stdsql.DB{"in memory": memory, "another driver": other} {
		if _, err := sqlite.OpenDB(t.Context(), db, nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v; want a refusal", name, err)
		}
		must(t, db.Close())
	}
}

type otherDriver struct{}

func (otherDriver) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("no connection")
}
func (otherDriver) Driver() driver.Driver            { return &otherDriver{} }
func (otherDriver) Open(string) (driver.Conn, error) { return nil, errors.New("no connection") }
