//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/saga"
)

// inHand is how many writes one worker has in hand at once.
const inHand = 48

func init() {
	roles["orders"] = ordersProcess
	roles["pool worker"] = poolWorker
	roles["enqueuer"] = enqueuerProcess
}

// ordersProcess is a destination as SOAK_WORLD names it.
func ordersProcess() error {
	ctx, _ := commands()
	return orders.Run(ctx, orders.RunOptions{Options: declares(), LogPath: os.Getenv("SOAK_LOG")}, os.Stdout)
}

// poolWorker works on a ledger that it shares, until it is asked to end, killed or cut off.
func poolWorker() error {
	ctx, released := commands()
	book, err := openLedger(ctx)
	if err != nil {
		return err
	}
	h := &holding{at: os.Getenv("SOAK_HOLD"), released: released}
	e, err := newEngine(h.ledger(book), h.connector)
	if err != nil {
		return err
	}
	fmt.Println("working")
	err = work(ctx, e, saga.New(book, e, &saga.Options{Lease: 3 * time.Second}), engine.WorkOptions{Parallel: inHand})
	e.Close()
	return errors.Join(err, book.Close())
}

// openLedger opens the ledger as soon as the database can be reached. An error means that ctx has ended.
func openLedger(ctx context.Context) (*postgres.Ledger, error) {
	for {
		book, err := postgres.Open(ctx, os.Getenv("SOAK_DSN"), nil)
		if err == nil {
			return book, nil
		}
		fmt.Println("no ledger:", err)
		if !pause.For(ctx, 50*time.Millisecond) {
			return nil, err
		}
	}
}

// business is the caller's own table: what the oracle holds the destination
// against. A row of it and the write that is enqueued beside it are committed
// together or not at all.
const business = `CREATE TABLE business (record text, n int, PRIMARY KEY (record, n))`

// neverFrom numbers the changes of transactions that are rolled back on
// purpose: none of them may ever be seen anywhere.
const neverFrom = 1000

// enqueuer is a process of the caller's. It begins sagas, too.
type enqueuer struct {
	pool   *pgxpool.Pool
	sagas  *saga.Runner
	undone int // transactions that were rolled back on purpose
}

func enqueuerProcess() error {
	ctx, released := commands()
	number, records, changes := envInt("SOAK_NUMBER"), envInt("SOAK_RECORDS"), envInt("SOAK_CHANGES")
	pool, err := pgxpool.New(ctx, os.Getenv("SOAK_DSN"))
	if err != nil {
		return err
	}
	defer pool.Close()
	book, err := openLedger(ctx)
	if err != nil {
		return err
	}
	e, err := newEngine(book, func(c connectors.Connector) connectors.Connector { return c })
	if err != nil {
		return err
	}
	q := &enqueuer{pool: pool, sagas: saga.New(book, e, nil)}
	held := changes * 9 / 10 // the last are kept until everything has happened
	for n := 1; n <= changes; n++ {
		if n == held+1 {
			select {
			case <-released:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for r := range records {
			if err := q.put(ctx, recordOf(number, r), n, (r+n)%7 == 0); err != nil {
				return err
			}
			if r < mostSagas && r%changes == n-1 { // in all rounds
				if err := q.begin(ctx, recordOf(number, r), failing(r)); err != nil {
					return err
				}
			}
		}
	}
	fmt.Println("enqueued", q.undone)
	<-ctx.Done()
	return nil
}

func recordOf(enqueuer, r int) string { return fmt.Sprintf("r-%d-%04d", enqueuer, r) }

// failing reports whether the saga of a record fails.
func failing(r int) bool { return r%3 == 0 }

// begin begins a saga, again until it is known to be begun.
func (q *enqueuer) begin(ctx context.Context, record string, fails bool) error {
	for {
		_, err := q.sagas.Begin(ctx, plan(record, fails))
		if err == nil || errors.Is(err, saga.ErrPlan) {
			return err
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			return fmt.Errorf("the saga of %s: %w", record, err)
		}
	}
}

func envInt(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name)) // none is none
	return n
}

// put enqueues one change in a transaction of its own, again until it is known
// to be committed; now and then after another one that is rolled back.
func (q *enqueuer) put(ctx context.Context, record string, n int, undo bool) error {
	if undo && errors.Is(q.try(ctx, record, neverFrom+n), errOnPurpose) {
		q.undone++
	}
	for {
		err := q.try(ctx, record, n)
		if err == nil {
			return nil
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s: %w", record, err)
		}
	}
}

var errOnPurpose = errors.New("rolled back on purpose")

// try makes one transaction. One whose commit has an unknown fate is made again: its own row
// decides.
func (q *enqueuer) try(ctx context.Context, record string, n int) error {
	return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "INSERT INTO business VALUES ($1, $2) ON CONFLICT DO NOTHING", record, n)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := postgres.Enqueue(ctx, tx, change(record, n)); err != nil {
			return err
		}
		if n > neverFrom {
			return errOnPurpose
		}
		return nil
	})
}
