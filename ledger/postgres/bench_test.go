package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
)

// What the benchmarks write, the tests write too.
var (
	asked       = storebench.Named
	reservation = storebench.Reservation
	pair        = storebench.PairOf
	settling    = storebench.Settling
)

// BenchmarkPair measures a pair beside a bare one, with statements prepared on the server.
func BenchmarkPair(b *testing.B) {
	s := pgtest.Start(b, pgtest.Options{})
	storebench.Pairs(b, func(b *testing.B, callers int) (ledger.Ledger, func() int64, func(int) error) {
		d := freshOn(b, s)
		l := d.open(nil)
		return l, func() int64 { return l.Stats().Commits }, d.barePairs(callers)
	})
}

// barePairs makes pairs with the driver only, each caller on a connection of its own as far as
// the server has them.
func (d *database) barePairs(callers int) func(i int) error {
	d.t.Helper()
	config, err := pgxpool.ParseConfig(d.dsn())
	must(d.t, err)
	config.MaxConns = int32(min(callers, 32))
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(d.t, err)
	d.t.Cleanup(pool.Close)
	d.exec(`CREATE TABLE bare (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, operation TEXT NOT NULL,
			due BIGINT, state TEXT NOT NULL, body TEXT NOT NULL);
		CREATE INDEX bare_due ON bare (due) WHERE due IS NOT NULL;
		CREATE INDEX bare_operation ON bare (operation)`)
	body := fmt.Sprintf("%01600d", 0)
	return func(i int) error {
		id := fmt.Sprintf("wr_%032x", uint64(i)*0x9E3779B97F4A7C15)
		_, err := pool.Exec(context.Background(), "INSERT INTO bare (id, operation, due, state, body) VALUES ($1, $1, $2, 'sending', $3)", id, i, body)
		if err != nil {
			return err
		}
		_, err = pool.Exec(context.Background(), "UPDATE bare SET due = NULL, state = 'settled', body = $1 WHERE id = $2", body, id)
		return err
	}
}
