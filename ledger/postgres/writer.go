package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxBatch bounds the changes of one transaction. More do not make the
	// commit cheaper, but make the first of them wait for the last.
	maxBatch = 256

	// maxFlushes is how many transactions with changes a process runs at once. What arrives
	// meanwhile shares the next one: eight callers with a transaction each use twice the
	// processor time of eight that share two.
	maxFlushes = 2
)

// change is what is to be stored about one write: a new one, or an existing one if it is still as
// expected.
type change struct {
	before    ledger.Record // before the events
	rec       ledger.Record
	fresh     bool
	unordered bool // leaves its queue, and no write may be queued behind it
	events    []ledger.Event

	wasFence, wasSeq int64

	// newest is the number of the newest write of its key digest when the pre-state of a new one
	// was read, -1 where none was.
	newest int64
}

// made returns the change that creates a new write, whose pre-state was read after p.
func made(rec ledger.Record, events []ledger.Event, p *ledger.Precheck) change {
	c := change{before: rec.Identity(), rec: rec, fresh: true, events: events, newest: -1}
	if p != nil {
		c.newest = p.Newest
	}
	return c
}

// operation is one call that wants one change. Prepare makes it at a time; it may be called again
// with a later one, when the previous one failed.
type operation struct {
	prepare func(now time.Time) (change, error)
	fate    driver.Fate
	done    chan answer // of capacity 1: the caller may be gone
	change  change
	unsure  []change // attempts whose result is not known
	refused bool     // after them one was not applied
}

// fails answers an operation. What may have been applied is not known to have failed.
func (o *operation) fails(err error) {
	if len(o.unsure) > 0 {
		err = fmt.Errorf("%w: %w: %w", ledger.ErrUnavailable, ledger.ErrUnsure, err)
	}
	o.done <- answer{err: err}
}

// answer is the result of a change. It was not applied when the write was not as expected: it
// exists already, or was changed by another caller.
type answer struct {
	applied bool
	row     row
	err     error
}

// writer stores changes. One is a statement of its own as long as few transactions run; others
// share the next one.
type writer struct {
	l *Ledger

	mu      sync.Mutex
	queue   []*operation
	flushes int // running
	flying  int // operations in them
	closed  bool
	idle    chan struct{} // closed when the last flush of a closed writer ends

	commits, operations, attempts atomic.Int64
}

func newWriter(l *Ledger) *writer { return &writer{l: l, idle: make(chan struct{})} }

// do stores one change and returns when it is durable. For a cancelled caller the error says that
// nothing was applied, or what the result was, or that neither is known.
func (w *writer) do(ctx context.Context, prepare func(now time.Time) (change, error)) answer {
	if err := gaveUp(ctx); err != nil {
		return answer{err: err}
	}
	o := &operation{prepare: prepare, done: make(chan answer, 1)}
	if !w.enqueue(o) {
		return answer{err: w.l.closed()}
	}
	select {
	case a := <-o.done:
		return a
	case <-ctx.Done():
	}
	if o.fate.Abandon() {
		return answer{err: gaveUp(ctx)}
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a := <-o.done:
		return a
	case <-late.C:
		return answer{err: fmt.Errorf("%w: %s: %w: %w", ledger.ErrUnavailable, w.l.name, ledger.ErrUnsure, ctx.Err())}
	}
}

func (w *writer) enqueue(o *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, o)
	if w.flushes < maxFlushes {
		w.flushes++
		go w.work()
	}
	return true
}

// work flushes until nothing waits.
func (w *writer) work() {
	for batch := w.take(0); len(batch) > 0; batch = w.take(len(batch)) {
		w.flush(batch)
	}
}

// take empties the queue, up to the bound of one batch, for a flush that has done that many. A
// flush that gets nothing has ended.
func (w *writer) take(done int) []*operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxBatch)
	w.flying += n - done
	batch := w.queue[:n:n]
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	if n == 0 {
		w.flushes--
		if w.closed && w.flushes == 0 {
			close(w.idle)
		}
	}
	return batch
}

// close refuses new operations and waits for queued ones.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	busy := w.flushes > 0
	w.mu.Unlock()
	if busy {
		<-w.idle
	}
}

// flush stores a batch in as few transactions as it can and answers all operations.
func (w *writer) flush(batch []*operation) {
	ctx, cancel := context.WithTimeout(context.Background(), maxAnswer)
	defer cancel()
	var last error
	for try := 0; len(batch) > 0; try++ {
		again := cmp.Or(last, fmt.Errorf("%w: the clock of the database does not hold still", errAgain))
		if try > 0 && !w.l.repeat(context.Background(), try, &again) {
			answerAll(batch, again)
			return
		}
		rest, err := w.attempt(ctx, batch)
		if len(rest) < len(batch) {
			try = 0 // many may be about one write, of which each attempt answers one
		}
		batch, last = rest, nil
		if err == nil {
			continue
		}
		switch {
		case errors.Is(err, errLate) && len(batch) > 1: // fewer may be done while their time is valid
			w.flush(batch[:len(batch)/2])
			w.flush(batch[len(batch)/2:])
			return
		case errors.Is(err, errAgain):
			last = err
			continue
		case (unsent(err) || errors.Is(err, errNotAsked)) && w.l.parted(err) && try < maxReconnects:
			continue
		case len(batch) > 1 && !errors.Is(err, ledger.ErrUnavailable): // one of them differs from the others
			for _, o := range batch {
				w.flush([]*operation{o})
			}
		default:
			answerAll(batch, err)
		}
		return
	}
}

func answerAll(batch []*operation, err error) {
	for _, o := range batch {
		o.fails(err)
	}
}

// attempt stores what it can of a batch in one transaction, answers those operations, and returns
// the rest. An error concerns all of the rest.
func (w *writer) attempt(ctx context.Context, batch []*operation) (rest []*operation, err error) {
	if batch, err = w.settle(ctx, batch); err != nil || len(batch) == 0 {
		return batch, err
	}
	conn, err := w.l.pool.Acquire(ctx)
	if err != nil {
		return batch, w.l.failed(err, false)
	}
	defer conn.Release()
	now, known := w.l.clock.guess()
	if !known || w.l.dialect.skew > 0 { // the reading may be of another node
		if now, err = w.l.time(ctx, conn); err != nil {
			return batch, fmt.Errorf("%w: %w", err, errNotAsked)
		}
	}
	if w.l.dialect.unsure {
		now = w.distinct(now)
	}
	batch, rest = prepare(batch, now)
	if len(batch) == 0 {
		return rest, nil
	}
	again, err := w.store(ctx, conn, batch, now)
	return append(again, rest...), err
}

// prepare makes the changes of a batch at a time, ordered by id, so that two processes take locks
// in one order. Operations that cannot be prepared are answered, and a second one about the same
// write goes to the next batch.
func prepare(batch []*operation, now time.Time) (ready, rest []*operation) {
	seen := make(map[ledger.ID]bool, len(batch))
	for _, o := range batch {
		if !o.fate.Begin() {
			continue
		}
		c, err := o.prepare(now)
		switch {
		case err != nil:
			o.fails(err)
		case seen[c.rec.ID]:
			rest = append(rest, o)
		default:
			seen[c.rec.ID] = true
			o.change = c
			ready = append(ready, o)
		}
	}
	slices.SortFunc(ready, func(a, b *operation) int { return cmp.Compare(a.change.rec.ID, b.change.rec.ID) })
	return ready, rest
}

// store runs a batch as one transaction: one statement, or two in one round trip.
func (w *writer) store(ctx context.Context, conn *pgxpool.Conn, batch []*operation, now time.Time) (again []*operation, err error) {
	var fresh, changed []*operation
	for _, o := range batch {
		if o.change.fresh {
			fresh = append(fresh, o)
		} else {
			changed = append(changed, o)
		}
	}
	if w.l.unnamed.Load() && len(fresh) > 0 { // a pipeline runs in the pool's mode
		again, changed = changed, nil
	}
	var parts [][]*operation
	var statements pgx.Batch
	for _, part := range [][]*operation{fresh, changed} {
		if len(part) == 0 {
			continue
		}
		query, args, err := w.l.statement(changes(part), now, false)
		if err != nil {
			return part, err // never: what was decoded can be encoded
		}
		statements.Queue(query, args...)
		parts = append(parts, part)
	}
	results, err := w.l.run(ctx, conn, &statements)
	if err != nil {
		err = w.l.broken(w.l.late(err))
		if w.l.dialect.unsure && errors.Is(err, ledger.ErrUnsure) {
			for _, o := range slices.Concat(parts...) {
				o.unsure = append(o.unsure, o.change)
			}
			err = fmt.Errorf("%w: %s: the result of a commit was lost: %s", errAgain, w.l.name, err.Error())
		}
		return batch, err
	}
	w.commits.Add(1)
	for i, got := range results {
		again = append(again, w.answer(got, parts[i], now)...)
	}
	w.l.tick(ctx, conn, results[0].state)
	return again, nil
}

// run sends statements as one transaction, in one round trip.
func (l *Ledger) run(ctx context.Context, conn *pgxpool.Conn, statements *pgx.Batch) ([]stored, error) {
	if only := statements.QueuedQueries[0]; len(statements.QueuedQueries) == 1 {
		rows, err := conn.Query(ctx, only.SQL, l.args(only.Arguments...)...)
		if err != nil {
			return nil, err
		}
		got, err := scanStored(rows)
		return []stored{got}, err
	}
	var results []stored
	sent := conn.SendBatch(ctx, statements)
	for range statements.QueuedQueries {
		rows, err := sent.Query()
		if err != nil {
			return nil, errors.Join(err, sent.Close())
		}
		got, err := scanStored(rows)
		if err != nil {
			return nil, errors.Join(err, sent.Close())
		}
		results = append(results, got)
	}
	return results, sent.Close() // from here on it is durable
}

// answer answers the operations of a statement. Those whose time was not the database's are
// repeated.
func (w *writer) answer(got stored, part []*operation, now time.Time) (again []*operation) {
	l := w.l
	err := l.usable(got.state)
	if err == nil && part[0].change.fresh {
		err = l.trusted(got.state)
	}
	if err != nil {
		answerAll(part, err)
		return nil
	}
	if !timely(got.state, now) {
		l.clock.refused()
		return part
	}
	l.clock.observe(got.state.now)
	for _, o := range part {
		n, applied := got.numbers[o.change.rec.ID]
		if !applied && len(o.unsure) > 0 { // by the earlier attempt, or another caller
			o.refused = true
			again = append(again, o)
			continue
		}
		if applied {
			w.operations.Add(1)
			l.keepRun(n, o.change)
			l.announce(o.change)
		}
		o.change.rec.Now = now
		o.done <- answer{applied: applied, row: row{n: n, rec: o.change.rec}}
	}
	return again
}

func changes(part []*operation) []change {
	out := make([]change, len(part))
	for i, o := range part {
		out[i] = o.change
	}
	return out
}
