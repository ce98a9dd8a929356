package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/ledger"
)

const (
	// patience is how long a cancelled caller still waits for a change in progress, so that it
	// learns whether it was applied. Longer than any healthy commit.
	patience = 5 * time.Second

	// maxAnswer is how long the database may take to answer a statement without another bound.
	// Beyond it the connection is closed.
	maxAnswer = 30 * time.Second

	// tickEvery is how far the newest recorded time may lag behind the clock. It is one row for
	// all workers, which must not serialise them.
	tickEvery = 10 * time.Second

	// maxTries bounds how often a change is retried that the database provably did not apply:
	// deadlocks, serialization failures, places in the queue that others took first.
	maxTries = 100

	// maxPause bounds the pause before such a retry.
	maxPause = 10 * time.Millisecond

	// maxReconnects bounds how often a call that cannot have reached the database is retried on
	// another connection: a restart breaks them all at once, and the pool detects that one by
	// one.
	maxReconnects = 3

	// maxLockWait is how long a claim waits for a row that an entry of the outbox depends on.
	// Transactions here take milliseconds; a longer lock belongs to an operator's session or a
	// stuck process. The next claim tries again.
	maxLockWait = 250 * time.Millisecond
)

// asker can run queries: a pool, a connection, a transaction.
type asker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// read runs a read-only query, which can be repeated. Collect reads all rows and may be called
// again; its errors are returned unchanged unless they are the driver's.
func (l *Ledger) read(ctx context.Context, query string, args []any, collect func(rows pgx.Rows) error) error {
	reconnects := 0
	for try := 0; ; try++ {
		err := l.ask(ctx, l.pool, query, args, collect)
		if err != nil && ctx.Err() == nil && reconnects < maxReconnects && l.parted(err) {
			reconnects++
			continue
		}
		if err = l.brokenRead(ctx, err); !l.repeat(ctx, try, &err) {
			return err
		}
	}
}

// repeat reports whether to try again what the database provably did not apply, after a pause:
// two transactions that meet once would meet again. After maxTries the error becomes
// [ledger.ErrUnavailable].
func (l *Ledger) repeat(ctx context.Context, try int, err *error) bool {
	switch {
	case !errors.Is(*err, errAgain) || errors.Is(*err, ledger.ErrUnsure):
		return false
	case errors.Is(*err, ledger.ErrUnavailable): // it was tried often enough, in a transaction of its own
		return false
	case ctx.Err() != nil:
		*err = gaveUp(ctx)
		return false
	case try >= maxTries:
		*err = fmt.Errorf("%w: %s: tried %d times: %w", ledger.ErrUnavailable, l.name, try, *err)
		return false
	}
	if try > 1 { // until then it is a place that another transaction took first
		pause(ctx, rand.N(min(maxPause, time.Millisecond<<min(try, 10))))
	}
	return true
}

// change runs a statement that changes something. Collect may be called again, after a change
// that was not applied.
func (l *Ledger) change(ctx context.Context, statement string, args []any, collect func(rows pgx.Rows) error) error {
	if !l.dialect.unsure {
		return l.ask(ctx, l.pool, l.sql.Text(statement), args, collect)
	}
	return l.within(ctx, func(t *tx) error { return l.ask(t.ctx, t.pgx, l.sql.Text(statement), args, collect) })
}

// do runs a statement whose result no caller depends on, and which may be applied twice.
func (l *Ledger) do(ctx context.Context, statement string, args ...any) {
	for try := 0; ; try++ {
		_, err := l.pool.Exec(ctx, l.sql.Text(statement), l.args(args...)...)
		if err = l.broken(err); !l.repeat(ctx, try, &err) {
			return
		}
	}
}

// ask runs a query and collects its rows.
func (l *Ledger) ask(ctx context.Context, where asker, query string, args []any, collect func(rows pgx.Rows) error) error {
	rows, err := where.Query(ctx, query, l.args(args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return collect(rows)
}

// brokenRead is failed for calls that commit nothing.
func (l *Ledger) brokenRead(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case known(err):
		return err
	case ctx.Err() != nil:
		return gaveUp(ctx)
	}
	return l.failed(err, false)
}

// broken is failed for calls that may have committed.
func (l *Ledger) broken(err error) error {
	if err == nil || known(err) {
		return err
	}
	return l.failed(err, true)
}

// known reports whether an error is one of package ledger already.
func known(err error) bool {
	for _, target := range []error{
		ledger.ErrUnavailable, ledger.ErrCorrupt, ledger.ErrVersion, ledger.ErrClock, ledger.ErrNotFound, ledger.ErrFenced,
		ledger.ErrIllegalMove, ledger.ErrDigestMismatch, ledger.ErrNoKey, ledger.ErrBlocked, ledger.ErrRefused, ledger.ErrStale, ledger.ErrFull, errAgain, errPlain,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// errPlain marks an error that is the caller's fault only.
var errPlain = errors.New("refused")

// args returns the arguments of a statement, with the mode in which it is run.
func (l *Ledger) args(args ...any) []any {
	if !l.unnamed.Load() {
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}

// time reads the state of the database on a connection, and sets the clock.
func (l *Ledger) time(ctx context.Context, conn *pgxpool.Conn) (time.Time, error) {
	begun := time.Now()
	s, err := l.stateIn(ctx, conn)
	if err == nil {
		err = l.usable(s)
	}
	if err != nil {
		return time.Time{}, l.brokenRead(ctx, err)
	}
	return l.clock.tripped(s.now, time.Since(begun)), nil
}

func (l *Ledger) stateIn(ctx context.Context, where asker) (s state, err error) {
	err = l.ask(ctx, where, l.sql.Text("state"), nil, func(rows pgx.Rows) (err error) {
		s, err = scanState(rows)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil // with version 0: usable returns the error
	}
	return s, err
}

// tick records the newest time every now and then. No caller depends on it, so its errors are
// left to the next call.
func (l *Ledger) tick(ctx context.Context, conn *pgxpool.Conn, s state) {
	if s.now-s.newest > int64(tickEvery) {
		_, _ = conn.Exec(ctx, l.sql.Text("tick"), l.args(s.now, s.now-int64(tickEvery))...)
	}
}

// tx is a transaction of several statements, for what a single one cannot do.
type tx struct {
	l   *Ledger
	ctx context.Context
	pgx pgx.Tx
	now time.Time // the database's, at the reading or at the last call of present
	// record is the name under which it records that it was applied, "" for none.
	record string
	// read is the reading of the database's clock, and when the time at which it arrived.
	read int64
	when time.Time
	// stored are the writes as this transaction left them
	stored []row
	done   []change
}

// within runs f in one transaction, and runs it again after a conflict with another transaction:
// f must not keep anything from one run to the next. When f fails nothing is applied.
func (l *Ledger) within(ctx context.Context, f func(t *tx) error) error {
	return l.begun(ctx, beginQuery, f)
}

// begun is within for a transaction with its own BEGIN.
func (l *Ledger) begun(ctx context.Context, begin string, f func(t *tx) error) error {
	for try := 0; ; try++ {
		err := l.once(ctx, begin, f)
		switch {
		case errors.Is(err, errNotAsked) && l.parted(err) && ctx.Err() == nil && try < maxReconnects:
		case !l.repeat(ctx, try, &err):
			return err
		}
	}
}

// beginQuery also bounds how long the transaction of a stopped process, or of an unreachable
// machine, keeps its locks: a queue must not wait for it until the network connection times out,
// hours later. It applies to this transaction only, so that a pooler can be used. BeginBriefly
// also bounds the wait for other transactions' locks.
var (
	beginQuery   = fmt.Sprintf("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = %d", maxAnswer.Milliseconds())
	beginBriefly = fmt.Sprintf("%s; SET LOCAL lock_timeout = %d", beginQuery, maxLockWait.Milliseconds())
)

func (l *Ledger) once(ctx context.Context, begin string, f func(t *tx) error) error {
	record := ""
	if l.dialect.unsure {
		record = newRecord()
		begin += "; " + strings.Replace(l.sql.Text("record_transaction"), "{name}", record, 1)
	}
	begun, err := l.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return fmt.Errorf("%w: %w", l.brokenRead(ctx, err), errNotAsked)
	}
	t := &tx{l: l, ctx: ctx, pgx: begun, record: record}
	err = t.readTime()
	if err == nil {
		err = f(t)
	}
	if err != nil {
		t.rollback()
		return l.brokenRead(ctx, l.quicker(err))
	}
	return t.commit()
}

// quicker recognises the errors of a transaction when another one took a place in a queue or a
// business operation first, or delayed it.
func (l *Ledger) quicker(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" {
		return fmt.Errorf("%w: %s: %w", errAgain, l.name, err)
	}
	return l.late(err)
}

// late recognises the error of a statement whose time a lock made stale.
func (l *Ledger) late(err error) error {
	if waited(err) {
		return fmt.Errorf("%w: %w: %s: %w", errAgain, errLate, l.name, err)
	}
	return err
}

func (t *tx) rollback() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), patience)
	defer cancel()
	_ = t.pgx.Rollback(ctx) // a connection that cannot do it is closed, and that does it
}

// commit makes the transaction durable. A caller that gives up meanwhile still gets the result.
func (t *tx) commit() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), patience)
	defer cancel()
	if err := t.pgx.Commit(ctx); err != nil {
		if err = t.l.broken(err); !errors.Is(err, ledger.ErrUnsure) || t.record == "" {
			return err
		}
		if err = t.l.conclude(t.record, err); err != nil {
			return err
		}
	}
	for _, r := range t.stored {
		t.l.memory.keep(r)
		if ledger.Wakes(r.rec) {
			t.l.ring()
		}
	}
	t.l.announce(t.done...)
	return nil
}

// readTime reads the time when the transaction has begun.
func (t *tx) readTime() error {
	begun := time.Now()
	s, err := t.l.stateIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.usable(s)
	}
	if err == nil {
		t.l.clock.tripped(s.now, time.Since(begun))
		t.now, t.read, t.when = at(s.now), s.now, time.Now()
	}
	return err
}

// present sets the time of the transaction to that of the database when it will get the next
// statement, which stores a change: other statements, and locks, have delayed it.
func (t *tx) present() { t.now = t.l.clock.later(t.read, t.when) }

// store applies one change. It must find the write as the transaction knows it.
func (t *tx) store(c change) (row, error) {
	query, args, err := t.l.statement([]change{c}, t.now, true)
	if err != nil {
		return row{}, err
	}
	var got stored
	err = t.l.ask(t.ctx, t.pgx, query, args, func(rows pgx.Rows) (err error) {
		got, err = scanStored(rows)
		return err
	})
	if err == nil {
		err = t.l.usable(got.state)
	}
	if err == nil && c.fresh {
		err = t.l.trusted(got.state)
	}
	if err != nil {
		return row{}, err
	}
	n, applied := got.numbers[c.rec.ID]
	if !applied {
		if !timely(got.state, t.now) {
			t.l.clock.refused()
		}
		return row{}, cmp.Or(t.refuses(c.rec.Tenant, c.fresh), fmt.Errorf("%w: write %s was not as expected", errAgain, c.rec.ID))
	}
	c.rec.Now = t.now
	r := row{n: n, rec: c.rec}
	t.stored, t.done = append(t.stored, r), append(t.done, c)
	return r, nil
}

// goneOn returns the change of a row to the present record.
func goneOn(from row, to ledger.Record, events []ledger.Event) change {
	return change{before: from.rec, rec: to, events: events, wasFence: from.rec.Fence, wasSeq: from.rec.Seq}
}

// one reads at most one row of a statement of the transaction.
func (t *tx) one(statement string, args ...any) (r row, found bool, err error) {
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text(statement), args, func(rows pgx.Rows) error {
		for rows.Next() {
			if r, err = scanRow(rows); r.n != 0 {
				found = true
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return r, found, err
}

func (t *tx) exec(statement string, args ...any) error {
	_, err := t.pgx.Exec(t.ctx, t.l.sql.Text(statement), t.l.args(args...)...)
	return err
}
