package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// The answer to a batch is lost after it is durable. The caller gets ErrUnsure; the same batch
// again is refused as stale, and the state is what was written, once.
func TestBatchAnswerLost(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		kind   string
		late   int
	}{
		"one statement": {"its commit is part of it", "statement", 0},
		"several":       {"the end of the transaction is its commit", "commit", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := fresh(t), &swallower{kind: c.kind}
			host, port, err := net.SplitHostPort(s.listen(t, d.server.Addr()))
			must(t, err)
			fields := strings.Fields(d.dsn())
			fields[0], fields[1] = "host="+host, "port="+port
			l, err := postgres.Open(t.Context(), strings.Join(fields, " ")+" default_query_exec_mode=exec", nil)
			must(t, err)
			defer l.Close()
			before := file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}, Reserve: delegated(t, "w", "before", "wire:0")}).Reserved
			var f ledger.Batch
			var tries int64
			for s.asked.Store(true); err == nil && s.asked.Load() && tries < 10; { // on a busy machine its time is stale, and it goes another way
				tries++
				f = ledger.Batch{Documents: []ledger.Document{page("acme", "p", tries)}, Reserve: delegated(t, "w", fmt.Sprint("s", tries), fmt.Sprint("wire:", tries))}
				for range c.late {
					f.Append = append(f.Append, ledger.Appending{ID: before.ID, Events: []ledger.Event{{Kind: ledger.EvLate}}})
				}
				_, err = l.Commit(t.Context(), f)
			}
			if s.asked.Load() {
				t.Fatalf("no answer was lost: the statement is not known any more; error %v", err)
			}
			if !errors.Is(err, ledger.ErrUnsure) || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want that it is unknown: %s", err, c.reason)
			}
			if _, err := l.Commit(t.Context(), f); !errors.Is(err, ledger.ErrStale) {
				t.Errorf("again: error %v, want that it is stale", err)
			}
			p, err := l.Document(t.Context(), "acme", "step", "p")
			must(t, err)
			rec, err := l.Get(t.Context(), "acme", before.ID)
			must(t, err)
			if !there(t, l, f.Reserve.Record.ID) || p.Version != tries+1 || rec.Seq != before.Seq+tries*int64(c.late) {
				t.Errorf("version %d, %d events: not done, or twice", p.Version, rec.Seq)
			}
		})
	}
}

// The connection's server process dies after the write was stored and before its document was:
// neither exists.
func TestBatchCutInTheMiddle(t *testing.T) {
	for name, late := range map[string]int{"one statement": 0, "several": 2} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			l := d.open(nil)
			before := file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}, Reserve: delegated(t, "w", "before", "wire:0")}).Reserved
			d.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF NOT EXISTS (SELECT 1 FROM ledger_writes WHERE tool = 'bank.transfer') THEN RAISE 'no write yet'; END IF;
					PERFORM pg_terminate_backend(pg_backend_pid()); RETURN new; END $$;
				CREATE TRIGGER die BEFORE UPDATE ON ledger_documents FOR EACH ROW EXECUTE FUNCTION die()`)
			f := ledger.Batch{Documents: []ledger.Document{page("acme", "p", 1)}, Reserve: delegated(t, "w", "s", "wire:1")}
			for range late {
				f.Append = append(f.Append, ledger.Appending{ID: before.ID, Events: []ledger.Event{{Kind: ledger.EvLate}}})
			}
			if _, err := l.Commit(t.Context(), f); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want unavailable", err)
			}
			p, err := l.Document(t.Context(), "acme", "step", "p")
			must(t, err)
			rec, err := l.Get(t.Context(), "acme", before.ID)
			must(t, err)
			if there(t, l, f.Reserve.Record.ID) || p.Version != 1 || rec.Seq != before.Seq {
				t.Errorf("version %d, %d events: half of it was done", p.Version, rec.Seq)
			}
			d.exec("DROP TRIGGER die ON ledger_documents")
			file(t, l, f)
		})
	}
}

// The database is killed during many batches: of each both halves exist or none, and what each
// caller got is true.
func TestDatabaseKilledDuringABatch(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	reported := map[string]error{}
	enough, killed, count := make(chan struct{}), make(chan struct{}), atomic.Int64{}
	for g := range 12 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint("p", g, "-", i)
				f := ledger.Batch{Documents: []ledger.Document{page("acme", name, 0)}, Reserve: delegated(t, name, "s", "wire:"+name)}
				if i%2 == 1 { // a transaction of several statements
					f.Unchanged = []ledger.Document{page("acme", "none", 0)}
				}
				_, err := l.Commit(context.Background(), f)
				mu.Lock()
				reported[name] = err
				mu.Unlock()
				if err != nil {
					<-killed
					return
				}
				if count.Add(1) == 150 {
					close(enough)
				}
			}
		})
	}
	<-enough
	must(t, s.Kill())
	close(killed)
	wg.Wait()
	must(t, s.Recover())
	for name, err := range reported {
		if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: error %v, want unavailable", name, err)
		}
		_, lost := l.Document(t.Context(), "acme", "step", name)
		if lost != nil && !errors.Is(lost, ledger.ErrNoDocument) {
			t.Fatal(lost)
		}
		committed, reserved := lost == nil, there(t, l, delegated(t, name, "s", "wire:"+name).Record.ID)
		if committed != reserved || !errors.Is(err, ledger.ErrUnsure) && committed != (err == nil) {
			t.Errorf("%s: document %v, write %v, the caller got %v", name, committed, reserved, err)
		}
	}
}

// A batch does not overtake what was enqueued before for the same record.
func TestBatchBehindTheOutbox(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	res := reservation(t, about("r", 2))
	res.Owner, res.Events = "", nil
	did := file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "saga", 0)}, Reserve: &res})
	if did.Reserved.QueuedBehind != idOf(about("r", 1)) {
		t.Errorf("behind %q, want the write that was enqueued before", did.Reserved.QueuedBehind)
	}
	are(t, lent(t, l), about("r", 1))
	are(t, lent(t, l), about("r", 2))
}

// Another session has locked a document and a caller gives up waiting for it: its error says that
// nothing was applied, or that the result is unknown, and never that it was applied.
func TestBatchGivenUp(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}})
	blocker := begin(t, d.open(nil))
	_, err := blocker.Exec(t.Context(), "UPDATE ledger_documents SET updated = updated")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 1)}, Unchanged: []ledger.Document{page("acme", "none", 0)}})
		result <- err
	}()
	for waiting := 0; waiting == 0; { // for the lock
		must(t, blocker.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the caller gave up", err)
	}
	must(t, blocker.Rollback(t.Context()))
	if p, err := l.Document(t.Context(), "acme", "step", "p"); err != nil || p.Version != 1 {
		t.Errorf("version %d, error %v: something was applied", p.Version, err)
	}
}

// behindATransaction commits a batch while another session has locked the documents, and lets that
// session act when the batch waits.
func behindATransaction(t *testing.T, d *database, l *postgres.Ledger, lock string, f ledger.Batch, then func(blocker pgx.Tx) error) ledger.Committed {
	t.Helper()
	blocker := begin(t, d.open(nil))
	_, err := blocker.Exec(t.Context(), lock)
	must(t, err)
	var did ledger.Committed
	result := make(chan error)
	go func() {
		var err error
		did, err = l.Commit(context.Background(), f)
		result <- err
	}()
	for waiting := 0; waiting == 0; {
		must(t, blocker.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
	must(t, then(blocker))
	must(t, <-result)
	return did
}

// A batch names the version that a document gets only while the batch waits for it, after its
// statement has begun: it is done as a whole.
func TestBatchOfAVersionToCome(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	p := file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}}).Documents[0]
	for what, reserve := range map[string]*ledger.Reservation{"documents": nil, "documents and a write": delegated(t, "w", "s", "wire:1")} {
		p.Version++ // by the other session
		f := ledger.Batch{Documents: []ledger.Document{p}, Reserve: reserve}
		did := behindATransaction(t, d, l, "UPDATE ledger_documents SET version = version + 1", f, func(blocker pgx.Tx) error { return blocker.Commit(t.Context()) })
		got, err := l.Document(t.Context(), "acme", "step", "p")
		must(t, err)
		if p = did.Documents[0]; got.Version != p.Version || p.Collection != "w" || reserve != nil && !there(t, l, reserve.Record.ID) {
			t.Errorf("%s: version %d in %q, and there is version %d", what, p.Version, p.Collection, got.Version)
		}
	}
}

// A lease that is given in a batch begins when the batch is done, and not before it waited.
func TestBatchThatWaitedLeasesFromThen(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}})
	res := reservation(t, asked("w"))
	f := ledger.Batch{Documents: []ledger.Document{page("acme", "p", 1)}, Reserve: &res}
	did := behindATransaction(t, d, l, "SELECT FROM ledger_documents FOR UPDATE", f, func(blocker pgx.Tx) error {
		d.move(2 * res.LeaseFor)
		return blocker.Rollback(t.Context())
	})
	rec, err := l.Get(t.Context(), "acme", did.Reserved.ID)
	must(t, err)
	if left := rec.LeaseUntil.Sub(rec.Now); left <= 0 {
		t.Errorf("the lease was over %s before it was given", -left)
	}
}

// Two processes reserve for one operation at once, after a failed step of another workflow held
// it, or one that is beside others of its workflow.
func TestOneOperationOfSteps(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)}
	for round := range 15 {
		key := fmt.Sprint("wire:", round)
		first := file(t, ledgers[0], ledger.Batch{Reserve: delegated(t, fmt.Sprint("first", round), "a", key)}).Reserved
		file(t, ledgers[0], ledger.Batch{Reserve: delegated(t, fmt.Sprint("first", round), "b", key)}) // beside it
		none := ledger.Appending{ID: first.ID, Fence: first.Fence, Events: []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}}}
		second, err := ledgers[0].Get(t.Context(), "acme", delegated(t, fmt.Sprint("first", round), "b", key).Record.ID)
		must(t, err)
		file(t, ledgers[0], ledger.Batch{Append: []ledger.Appending{none}})
		_, err = ledgers[1].Commit(t.Context(), ledger.Batch{Reserve: delegated(t, "other", "a", key)})
		var blocked *ledger.BlockedError
		if !errors.As(err, &blocked) || blocked.Prior.ID != second.ID {
			t.Fatalf("error %v, want the step that is there", err)
		}
		none.ID, none.Fence = second.ID, second.Fence
		file(t, ledgers[0], ledger.Batch{Append: []ledger.Appending{none}})
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				_, err := ledgers[i%2].Commit(context.Background(), ledger.Batch{Reserve: delegated(t, fmt.Sprint(key, i), "a", key)})
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, ledger.ErrBlocked) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d own the operation", round, won.Load())
		}
	}
}
