package killtest

import (
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/pgtest"
)

var shared struct {
	sync.Once
	*pgtest.Server
	err error
}

// Postgres returns the PostgreSQL of the tests that do not kill it, and starts it with the first.
func Postgres(tb testing.TB) *pgtest.Server {
	tb.Helper()
	shared.Do(func() {
		shared.Server, shared.err = pgtest.Open(pgtest.Options{Settings: map[string]string{"max_connections": "300"}})
	})
	pgtest.Need(tb, shared.err)
	return shared.Server
}

func closePostgres() error {
	if shared.Server == nil {
		return nil
	}
	return shared.Close()
}

// Database makes a database, and returns its connection string.
func Database(tb testing.TB, s *pgtest.Server) string {
	tb.Helper()
	name, err := s.CreateDatabase()
	Must(tb, err)
	return s.DSN(name)
}

// PostgresKills has a worker die, or the PostgreSQL that it needs, at each point. The test calls kill to
// start a worker, which dies or whose server does, and then works again. Before another worker is
// started kill calls lost.
func PostgresKills(t *testing.T, test func(t *testing.T, s *Stage, pg *pgtest.Server, kill func(lost func(), env ...string))) {
	for _, p := range Points() {
		t.Run("worker/"+string(p), func(t *testing.T) {
			t.Parallel()
			s := New(t)
			test(t, s, Postgres(t), func(lost func(), env ...string) {
				s.KillAt(t, p, func(w *Worker) { w.Kill(t) }, env...)
				lost()
				s.Start(t, env...)
			})
		})
		t.Run("server/"+string(p), func(t *testing.T) {
			t.Parallel()
			s, own := New(t), pgtest.Start(t, pgtest.Options{})
			test(t, s, own, func(_ func(), env ...string) {
				s.KillAt(t, p, func(*Worker) {
					if err := own.Kill(); err != nil {
						t.Error(err)
					}
				}, env...)
				Must(t, own.Recover())
			})
		})
	}
}
