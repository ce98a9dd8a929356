package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	ledgersqlite "github.com/readback-go/readback/ledger/sqlite"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Another process that is just changing a new file to the write-ahead log holds a lock that
// SQLite does not wait for.
func TestOpenWaitsForAnotherThatIsStarting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for _, statement := range []string{"PRAGMA journal_mode = delete", "BEGIN IMMEDIATE"} {
		if err := sqlitex.ExecuteTransient(other, statement, nil); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ledgersqlite.Open(short, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context: it was to wait until then", err)
	}
	if err := sqlitex.ExecuteTransient(other, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	l, err := ledgersqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
