package shards_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

// moverOf is the environment variable of a process that moves acme: the target and the database.
const moverOf = "READBACK_SHARDS_MOVER"

// moves is what such a process does. It announces each change of what says where a tenant is.
func moves(in killtest.Inside) error {
	to, dsn, _ := strings.Cut(os.Getenv(moverOf), " ")
	all, calls := schemas(dsn, 3), map[string]int{}
	for i := range all {
		open := all[i].Open
		all[i].Open = func(ctx context.Context) (ledger.Partition, error) {
			p, err := open(ctx)
			return announcing{p, in, calls}, err
		}
	}
	l, err := shards.Open(context.Background(), all, shards.Options{Cache: cache})
	if err != nil {
		return err
	}
	return errors.Join(l.Move(context.Background(), "acme", to, nil), l.Close())
}

// announcing is a partition in that process.
type announcing struct {
	ledger.Partition
	in    killtest.Inside
	calls map[string]int // made so far
}

func (a announcing) call(name string, do func() error) error {
	a.calls[name]++
	name = fmt.Sprint(name, " ", a.calls[name])
	a.in.Reached(killtest.Point("before " + name))
	err := do()
	a.in.Reached(killtest.Point("after " + name))
	return err
}

func (a announcing) Join(ctx context.Context, name string, home ledger.Partition) error {
	if h, ok := home.(announcing); ok {
		home = h.Partition
	}
	return a.Partition.Join(ctx, name, home)
}

func (a announcing) Place(ctx context.Context, p, was ledger.Placement) error {
	return a.call("place", func() error { return a.Partition.Place(ctx, p, was) })
}

func (a announcing) Own(ctx context.Context, o, was ledger.Ownership) error {
	return a.call("own", func() error { return a.Partition.Own(ctx, o, was) })
}

func (a announcing) Receive(ctx context.Context, from ledger.Partition, o ledger.Ownership) (fresh bool, err error) {
	err = a.call("receive", func() (err error) {
		fresh, err = a.Partition.Receive(ctx, from.(announcing).Partition, o)
		return err
	})
	return fresh, err
}

func (a announcing) Forget(ctx context.Context, o ledger.Ownership) error {
	return a.call("forget", func() error { return a.Partition.Forget(ctx, o) })
}

// copying is when the target has the writes, and not yet all that is about them.
const copying killtest.Point = "in the middle of receive 1"

// killed moves acme in a process that gets SIGKILL at a point.
func (d *databases) killed(t *testing.T, from, to string, at killtest.Point) {
	t.Helper()
	stage, env := killtest.New(t), moverOf+"="+to+" "+d.dsn()
	if at != copying {
		stage.KillAt(t, at, func(w *killtest.Worker) { w.Kill(t) }, env)
		return
	}
	stop, stopped := d.copies(t, from)
	var mover *killtest.Worker
	stage.KillAt(t, "before receive 1", func(w *killtest.Worker) { mover = w; stop() }, env)
	stopped("pid", func() { mover.Kill(t) })
}

// copies returns a function that stops the next copy from a partition in the middle, and one that waits
// for that, applies SQL to the connection of the copy, and lets it continue when then has returned.
func (d *databases) copies(t *testing.T, from string) (stop func(), stopped func(do string, then func())) {
	t.Helper()
	var conns [2]*pgx.Conn // in a transaction the activity does not change
	for i := range conns {
		var err error
		conns[i], err = pgx.Connect(t.Context(), d.dsn())
		must(t, err)
	}
	exec := func(sql string) {
		if _, err := conns[0].Exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
	}
	stop = func() { exec("BEGIN; LOCK TABLE " + from + ".ledger_terms IN ACCESS EXCLUSIVE MODE") }
	return stop, func(do string, then func()) {
		t.Helper()
		defer func() {
			for _, c := range conns {
				must(t, c.Close(context.Background()))
			}
		}()
		killtest.Until(t, string(copying), func() bool {
			var n int
			must(t, conns[1].QueryRow(t.Context(), "SELECT count("+do+`) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle in transaction' AND query ILIKE 'copy%ledger_search%'`).Scan(&n))
			return n > 0
		})
		then()
		exec("ROLLBACK")
	}
}
