package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// file is the path of a ledger that does not exist yet.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

// outsider is a connection to the file of a program without the ledger package.
func outsider(t testing.TB, path string) *zombiezen.Conn {
	t.Helper()
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func sql(t testing.TB, conn *zombiezen.Conn, query string) {
	t.Helper()
	if err := sqlitex.ExecuteTransient(conn, query, nil); err != nil {
		t.Fatal(err)
	}
}

func reserve(t testing.TB, l *sqlite.Ledger, workflow string) ledger.Record {
	t.Helper()
	rec, fresh, err := l.Reserve(context.Background(), reservation(t, asked(workflow)))
	if err != nil || !fresh {
		t.Fatalf("reserve %s: fresh %v, error %v", workflow, fresh, err)
	}
	return rec
}

// present reports whether a workflow's write is in the ledger.
func present(t testing.TB, l *sqlite.Ledger, workflow string) bool {
	t.Helper()
	_, err := l.Get(context.Background(), "acme", reservation(t, asked(workflow)).Record.ID)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestCommitsOfOneCaller(t *testing.T) {
	l := open(t, file(t), nil)
	for i := range 10 {
		if err := pair(l, reservation(t, asked(fmt.Sprint("w", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if _, fresh, err := l.Reserve(context.Background(), reservation(t, asked("w0"))); fresh || err != nil {
		t.Fatalf("fresh %v, error %v", fresh, err)
	}
	if _, err := l.Claim(context.Background(), ledger.Claim{Owner: "x", LeaseFor: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Stats(), (sqlite.Stats{Commits: 20, Operations: 20}); got != want {
		t.Errorf("got %+v, want %+v: a write is two commits, and what changes nothing is none", got, want)
	}
}

// What queues up during one commit is in the next one together, and one refused operation does
// not spoil the others.
func TestGroupCommit(t *testing.T) {
	for name, spoil := range map[string]struct {
		reason  string
		commits int64
		also    func(l *sqlite.Ledger) error
		want    string
	}{
		"alone":   {"all of them share one sync", 1, nil, ""},
		"refused": {"one that is refused gets that error, the others continue", 1, appendToNothing, "no such write"},
		"broken": {"one that ends the transaction, as a full disk does, has not taken the others with it", 20,
			(*sqlite.Ledger).Spoil, "rolled back"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { groupCommit(t, spoil.also, spoil.want, spoil.commits) })
			if t.Failed() {
				t.Logf("reason: %s", spoil.reason)
			}
		})
	}
}

// groupCommit lets callers queue up behind a busy writer, one of them perhaps with an operation
// that fails.
func groupCommit(t *testing.T, also func(l *sqlite.Ledger) error, want string, commits int64) {
	const callers = 20
	l := open(t, file(t), nil)
	release := l.Hold()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, _, err := l.Reserve(context.Background(), reservation(t, asked(fmt.Sprint("w", i)))); err != nil {
				t.Errorf("reserve: %v", err)
			}
		})
	}
	if also != nil {
		wg.Go(func() {
			if err := also(l); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one about %q", err, want)
			}
		})
	}
	synctest.Wait() // until all have queued up
	release()
	wg.Wait()
	if got := l.Stats(); got.Commits != commits || got.Operations != callers {
		t.Errorf("got %+v, want %d commits of %d operations", got, commits, callers)
	}
	for i := range callers {
		if !present(t, l, fmt.Sprint("w", i)) {
			t.Errorf("write %d is not there", i)
		}
	}
}

func appendToNothing(l *sqlite.Ledger) error {
	_, err := l.Append(context.Background(), ledger.IDOf(strings.Repeat("0", 64)), 1)
	return err
}

func TestCancelledWhileQueued(t *testing.T) { synctest.Test(t, cancelledWhileQueued) }

func cancelledWhileQueued(t *testing.T) {
	l := open(t, file(t), nil)
	release := l.Hold()
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error)
	go func() {
		_, _, err := l.Reserve(ctx, reservation(t, asked("w1")))
		got <- err
	}()
	synctest.Wait() // until it has queued up
	cancel()
	err := <-got // while the writer is still held
	if !errors.Is(err, context.Canceled) || errors.Is(err, ledger.ErrUnsure) || !strings.Contains(err.Error(), "nothing was applied") {
		t.Errorf("error %v", err)
	}
	release()
	reserve(t, l, "w2")
	if present(t, l, "w1") {
		t.Error("the caller was informed that nothing was applied, and it was")
	}
}

// A caller that gives up while its operation is running never gets an error that says that
// nothing was applied.
func TestCancelledWhileCommitting(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		takes  time.Duration
		unsure bool
	}{
		"soon done": {"who waits a moment hears what became of it", time.Second, false},
		"stuck":     {"who cannot hear what became of it hears just that", time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := make(chan time.Duration, 1)
				l := open(t, file(t), &sqlite.Options{Now: func() time.Time {
					select {
					case d := <-slow:
						time.Sleep(d) // in the middle of the operation
					default:
					}
					return time.Now()
				}})
				slow <- c.takes
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				rec, fresh, err := l.Reserve(ctx, reservation(t, asked("w1")))
				if c.unsure {
					if !errors.Is(err, ledger.ErrUnsure) || !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v; reason: %s", err, c.reason)
					}
				} else if err != nil || !fresh || rec.ID == "" {
					t.Errorf("fresh %v, error %v; reason: %s", fresh, err, c.reason)
				}
				time.Sleep(2 * time.Hour)
				if !present(t, l, "w1") {
					t.Error("the operation was not finished")
				}
			})
		})
	}
}

// While another process holds the write lock callers wait, can give up, and get an answer in the
// end.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t)
		l := open(t, path, nil)
		other := outsider(t, path)
		sql(t, other, "BEGIN IMMEDIATE")

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _, err := l.Reserve(ctx, reservation(t, asked("w1")))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ledger.ErrUnsure) {
			t.Errorf("given up: error %v", err)
		}

		_, _, err = l.Reserve(context.Background(), reservation(t, asked("w2")))
		if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrUnsure) || !strings.Contains(err.Error(), "write lock") {
			t.Errorf("waited in vain: error %v", err)
		}

		done := make(chan error)
		go func() {
			_, _, err := l.Reserve(context.Background(), reservation(t, asked("w3")))
			done <- err
		}()
		time.Sleep(time.Second)
		sql(t, other, "ROLLBACK")
		if err := <-done; err != nil {
			t.Errorf("the lock was given back: error %v", err)
		}
		for workflow, want := range map[string]bool{"w1": false, "w2": false, "w3": true} {
			if present(t, l, workflow) != want {
				t.Errorf("%s is there: %v", workflow, !want)
			}
		}
	})
}

// The log does not grow without bound, whichever connection writes.
func TestLogIsBounded(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := range 400 {
				if err := pair(l, reservation(t, asked(fmt.Sprint(caller, " ", i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096 + 24
	if got := log.Size() / page; got > sqlite.HardLog+1000 { // and what came between two checks
		t.Errorf("the log held %d pages at its longest", got)
	}
}

// When the log has grown too far at once, the next caller waits until it is moved, and does not
// make it longer.
func TestLogHasAnEnd(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	rec := reserve(t, l, "w1")
	evidence := []byte(`"` + strings.Repeat("0123456789abcdef", 32<<10) + `"`) // twice: in the event and in the record
	rec, err := l.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent})
	must(t, err)
	for range sqlite.CheckEvery + 1 {
		_, err := l.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvRead, Evidence: evidence})
		must(t, err)
	}
	left := 0
	must(t, sqlitex.ExecuteTransient(outsider(t, path), "PRAGMA wal_checkpoint(NOOP)", &sqlitex.ExecOptions{
		ResultFunc: func(s *zombiezen.Stmt) error { left = s.ColumnInt(1) - s.ColumnInt(2); return nil },
	}))
	if left > 1000 {
		t.Errorf("%d pages are still to be moved", left)
	}
}

func TestConnections(t *testing.T) {
	l := open(t, file(t), nil)
	for query, want := range map[string]string{
		"PRAGMA journal_mode": "wal", "PRAGMA synchronous": "2", "PRAGMA foreign_keys": "1", "PRAGMA query_only": "0",
	} {
		if got, err := l.WriterSays(query); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("the writer: %s: %v, error %v; want %s", query, got, err, want)
		}
	}
	if got, err := l.Read("PRAGMA query_only"); err != nil || len(got) != 1 || got[0] != "1" {
		t.Errorf("a reader: query_only: %v, error %v", got, err)
	}
}
