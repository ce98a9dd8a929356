package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

const (
	// maxBatch bounds the operations of one transaction. More do not make the sync cheaper, but
	// make the first of them wait for the last.
	maxBatch = 256

	// patience is how long a cancelled caller still waits for an operation that the writer has
	// begun, so that it learns whether it was applied. Longer than any healthy commit.
	patience = 5 * time.Second

	// checkEvery is after how many operations the size of the log is checked: often enough for
	// maxLog, as one operation changes about eight pages.
	checkEvery = 64
)

// operation is one call that may change the ledger. Its run may be called again, when the
// transaction that it was part of failed.
type operation struct {
	run  func(*tx) error
	fate driver.Fate
	done chan error // of capacity 1: the caller may be gone
}

// writer is the only goroutine of a process that writes to the file.
type writer struct {
	path  string
	files *files
	conn  *sqlite.Conn
	tx    *tx
	log   *checkpointer
	// since counts the operations since the log was last checked.
	since int64

	mu          sync.Mutex
	queue       []*operation
	closed      bool
	wake        chan struct{} // of capacity 1: there is something in the queue
	ended       chan struct{}
	notifier    ledger.Notifier
	subscribers ledger.Notifier

	commits, operations atomic.Int64
}

func newWriter(conn *sqlite.Conn, path string, now func() time.Time) (*writer, error) {
	files, err := filesOf(path)
	if err != nil {
		return nil, unavailable(path, err)
	}
	w := &writer{path: path, files: files, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if w.tx, err = newTx(conn, path, now); err != nil {
		return nil, err
	}
	if w.log, err = newCheckpointer(path); err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(0) // begin waits itself, and sees which callers gave up
	go w.loop()
	return w, nil
}

// do runs one operation and returns when it is durable. For a cancelled caller the error says
// that nothing was applied, or what the result was, or that neither is known.
func (w *writer) do(ctx context.Context, run func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &operation{run: run, done: make(chan error, 1)}
	if !w.enqueue(o) {
		return unavailable(w.path, errors.New("the ledger is closed"))
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	if o.fate.Abandon() {
		return fmt.Errorf("the ledger was not reached, nothing was applied: %w", ctx.Err())
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-o.done:
		return err
	case <-late.C:
		return unsure(w.path, ctx.Err())
	}
}

func (w *writer) enqueue(o *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, o)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

// take empties the queue, up to the bound of one batch.
func (w *writer) take() []*operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxBatch)
	batch := w.queue[:n:n]
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return batch
}

func (w *writer) loop() {
	defer close(w.ended)
	for range w.wake {
		for batch := w.take(); len(batch) > 0; batch = w.take() {
			w.commit(batch)
			w.tend()
		}
	}
}

// tend keeps the log short, between two transactions. Failures are retried later.
func (w *writer) tend() {
	if w.log.rest.Swap(false) {
		_ = w.log.move(w.conn)
	}
	if w.since >= checkEvery {
		w.since = 0
		w.log.tend(w.conn)
	}
}

// close ends the loop after everything that was queued.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.wake)
	w.mu.Unlock()
	<-w.ended
	return errors.Join(w.log.close(), w.conn.Close())
}

// commit makes a batch durable and answers every caller. When one operation spoils the
// transaction for all, each gets one of its own.
func (w *writer) commit(batch []*operation) {
	answers, err := w.transact(batch)
	var spoiled *spoiledError
	if errors.As(err, &spoiled) && len(batch) > 1 {
		for _, o := range batch {
			w.commit([]*operation{o})
		}
		return
	}
	for i, o := range batch {
		if err != nil {
			o.done <- err
			continue
		}
		o.done <- answers[i]
	}
}

// spoiledError means that an operation ended the transaction of its batch, and that nothing of
// the batch was applied.
type spoiledError struct{ err error }

func (e *spoiledError) Error() string { return e.err.Error() }
func (e *spoiledError) Unwrap() error { return e.err }

// transact runs a batch in one transaction. The results are those of the operations, and are
// valid only when the error is nil: an operation may have read what another one of the same batch
// did.
func (w *writer) transact(batch []*operation) ([]error, error) {
	if err := w.files.present(); err != nil {
		return nil, unavailable(w.path, err)
	}
	if err := w.begin(batch); err != nil {
		return nil, err
	}
	if err := w.tx.begin(); err != nil {
		return nil, errors.Join(err, w.tx.rollback())
	}
	answers := make([]error, len(batch))
	wrote := int64(0)
	for i, o := range batch {
		if !o.fate.Begin() {
			continue
		}
		changed, err := w.tx.operate(o.run)
		if w.tx.broken != nil {
			return nil, &spoiledError{errors.Join(w.tx.broken, w.tx.rollback())}
		}
		if changed {
			wrote++
		}
		answers[i] = err
	}
	if wrote == 0 {
		return answers, w.tx.rollback()
	}
	if err := w.tx.commit(); err != nil {
		return nil, err
	}
	for _, run := range w.tx.runs {
		w.tx.recent.Add(run.Stretch, run.Run)
	}
	if w.tx.wakes {
		w.notifier.Notify()
	}
	if w.tx.publishes {
		w.subscribers.Notify()
	}
	w.commits.Add(1)
	w.operations.Add(wrote)
	w.since += wrote
	return answers, nil
}

// begin takes the write lock. While another process has it, callers that give up are released.
func (w *writer) begin(batch []*operation) error {
	var waited time.Duration
	for pause := minBusyPause; ; pause = min(2*pause, maxBusyPause) {
		err := exec(w.path, w.tx.beginImmediate)
		if !locked(err) || waited >= maxBusy || allAbandoned(batch) {
			return err
		}
		jittered := pause/2 + rand.N(pause)
		<-time.After(jittered) // do releases callers that give up meanwhile
		waited += jittered
	}
}

func allAbandoned(batch []*operation) bool {
	for _, o := range batch {
		if !o.fate.Abandoned() {
			return false
		}
	}
	return true
}

// unsure returns the error of a call that may or may not have been applied.
func unsure(path string, err error) error {
	return fmt.Errorf("%w: %s: %w: %w", ledger.ErrUnavailable, path, ledger.ErrUnsure, err)
}

// Woken implements [ledger.Ledger] for the work of this process. Work of other processes, and
// enqueued writes, are found by the next read.
func (l *Ledger) Woken(ctx context.Context) <-chan struct{} { return l.writer.notifier.Woken(ctx) }
