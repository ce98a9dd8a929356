package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// What the benchmarks write, the tests write too.
var (
	asked       = storebench.Named
	reservation = storebench.Reservation
	pair        = storebench.PairOf
)

func BenchmarkPair(b *testing.B) {
	storebench.Pairs(b, func(b *testing.B, _ int) (ledger.Ledger, func() int64, func(int) error) {
		l := open(b, filepath.Join(b.TempDir(), "ledger.db"), nil)
		return l, func() int64 { return l.Stats().Commits }, barePairs(b)
	})
}

// barePairs makes pairs with the driver only.
func barePairs(b *testing.B) func(i int) error {
	b.Helper()
	conn, err := zombiezen.OpenConn(filepath.Join(b.TempDir(), "bare.db"), zombiezen.OpenReadWrite, zombiezen.OpenCreate)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	for _, q := range []string{
		"PRAGMA journal_mode = wal", "PRAGMA synchronous = full",
		`CREATE TABLE bare (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, operation TEXT NOT NULL,
			due INTEGER, state TEXT NOT NULL, body TEXT NOT NULL) STRICT`,
		"CREATE INDEX bare_due ON bare (due) WHERE due IS NOT NULL",
		"CREATE INDEX bare_operation ON bare (operation)",
	} {
		if err := sqlitex.ExecuteTransient(conn, q, nil); err != nil {
			b.Fatal(err)
		}
	}
	insert := conn.Prep("INSERT INTO bare (id, operation, due, state, body) VALUES (?, ?, ?, 'sending', ?)")
	update := conn.Prep("UPDATE bare SET due = NULL, state = 'settled', body = ? WHERE id = ?")
	body := fmt.Sprintf("%01600d", 0)
	var mu sync.Mutex
	step := func(s *zombiezen.Stmt) error {
		_, err := s.Step()
		return errors.Join(err, s.Reset())
	}
	return func(i int) error {
		id := fmt.Sprintf("wr_%032x", uint64(i)*0x9E3779B97F4A7C15)
		mu.Lock()
		insert.BindText(1, id)
		insert.BindText(2, id)
		insert.BindInt64(3, int64(i))
		insert.BindText(4, body)
		err := step(insert)
		mu.Unlock()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		update.BindText(1, body)
		update.BindText(2, id)
		return step(update)
	}
}
