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

// The answer to a filing is lost when it is durable already. Whoever filed is
// told that nobody knows; the same filing again is refused as stale, and what is
// read then is what was filed, once.
func TestFilingAnswerLost(t *testing.T) {
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
			before := file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 0)}, Reserve: entrusted(t, "w", "before", "wire:0")}).Reserved
			f := ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 1)}, Reserve: entrusted(t, "w", "s", "wire:1")}
			for range c.late {
				f.Append = append(f.Append, ledger.Appending{ID: before.ID, Events: []ledger.Event{{Kind: ledger.EvLate}}})
			}
			s.asked.Store(true)
			_, err = l.File(t.Context(), f)
			if s.asked.Load() {
				t.Fatalf("no answer was lost: the statement is not known any more; error %v", err)
			}
			if !errors.Is(err, ledger.ErrUnsure) || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want that nobody knows: %s", err, c.reason)
			}
			if _, err := l.File(t.Context(), f); !errors.Is(err, ledger.ErrStale) {
				t.Errorf("again: error %v, want that it is stale", err)
			}
			p, err := l.Paper(t.Context(), "acme", "step", "p")
			must(t, err)
			rec, err := l.Get(t.Context(), "acme", before.ID)
			must(t, err)
			if !there(t, l, f.Reserve.Record.ID) || p.Version != 2 || rec.Seq != before.Seq+int64(c.late) {
				t.Errorf("version %d, %d events: not done, or twice", p.Version, rec.Seq)
			}
		})
	}
}

// The connection's server process dies after the write was stored and before its
// paper was: neither is there.
func TestFilingCutInTheMiddle(t *testing.T) {
	for name, late := range map[string]int{"one statement": 0, "several": 2} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			l := d.open(nil)
			before := file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 0)}, Reserve: entrusted(t, "w", "before", "wire:0")}).Reserved
			d.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF NOT EXISTS (SELECT 1 FROM ledger_writes WHERE tool = 'bank.transfer') THEN RAISE 'no write yet'; END IF;
					PERFORM pg_terminate_backend(pg_backend_pid()); RETURN new; END $$;
				CREATE TRIGGER die BEFORE UPDATE ON ledger_papers FOR EACH ROW EXECUTE FUNCTION die()`)
			f := ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 1)}, Reserve: entrusted(t, "w", "s", "wire:1")}
			for range late {
				f.Append = append(f.Append, ledger.Appending{ID: before.ID, Events: []ledger.Event{{Kind: ledger.EvLate}}})
			}
			if _, err := l.File(t.Context(), f); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want unavailable", err)
			}
			p, err := l.Paper(t.Context(), "acme", "step", "p")
			must(t, err)
			rec, err := l.Get(t.Context(), "acme", before.ID)
			must(t, err)
			if there(t, l, f.Reserve.Record.ID) || p.Version != 1 || rec.Seq != before.Seq {
				t.Errorf("version %d, %d events: half of it was done", p.Version, rec.Seq)
			}
			d.exec("DROP TRIGGER die ON ledger_papers")
			file(t, l, f)
		})
	}
}

// The database is killed in the middle of many filings: of each both halves are
// there or none, and what was told of each is true.
func TestDatabaseKilledWhileFiling(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	told := map[string]error{}
	enough, killed, count := make(chan struct{}), make(chan struct{}), atomic.Int64{}
	for g := range 12 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint("p", g, "-", i)
				f := ledger.Filing{Papers: []ledger.Paper{page("acme", name, 0)}, Reserve: entrusted(t, name, "s", "wire:"+name)}
				if i%2 == 1 { // a transaction of several statements
					f.Unchanged = []ledger.Paper{page("acme", "none", 0)}
				}
				_, err := l.File(context.Background(), f)
				mu.Lock()
				told[name] = err
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
	for name, err := range told {
		if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: error %v, want unavailable", name, err)
		}
		_, lost := l.Paper(t.Context(), "acme", "step", name)
		if lost != nil && !errors.Is(lost, ledger.ErrNoPaper) {
			t.Fatal(lost)
		}
		filed, reserved := lost == nil, there(t, l, entrusted(t, name, "s", "wire:"+name).Record.ID)
		if filed != reserved || !errors.Is(err, ledger.ErrUnsure) && filed != (err == nil) {
			t.Errorf("%s: paper %v, write %v, told %v", name, filed, reserved, err)
		}
	}
}

// What is filed does not overtake what was enqueued before for the same record.
func TestFilingBehindTheOutbox(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	must(t, enqueue(t, l, true, about("r", 1)))
	res := reservation(t, about("r", 2))
	res.Owner, res.Events = "", nil
	did := file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "saga", 0)}, Reserve: &res})
	if did.Reserved.Behind != idOf(about("r", 1)) {
		t.Errorf("behind %q, want the write that was enqueued before", did.Reserved.Behind)
	}
	are(t, lent(t, l), about("r", 1))
	are(t, lent(t, l), about("r", 2))
}

// Somebody has a paper locked and a caller gives up waiting for it: it hears that
// nothing was applied, or that nobody knows, and never that it was.
func TestFilingGivenUp(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 0)}})
	person := begin(t, d.open(nil))
	_, err := person.Exec(t.Context(), "UPDATE ledger_papers SET updated = updated")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error)
	go func() {
		_, err := l.File(ctx, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 1)}, Unchanged: []ledger.Paper{page("acme", "none", 0)}})
		told <- err
	}()
	for waiting := 0; waiting == 0; { // for the lock
		must(t, person.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
	cancel()
	if err := <-told; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the caller gave up", err)
	}
	must(t, person.Rollback(t.Context()))
	if p, err := l.Paper(t.Context(), "acme", "step", "p"); err != nil || p.Version != 1 {
		t.Errorf("version %d, error %v: something was applied", p.Version, err)
	}
}

// behindAPerson files while somebody has the papers locked, and has that person do
// something when the filing waits.
func behindAPerson(t *testing.T, d *database, l *postgres.Ledger, lock string, f ledger.Filing, then func(person pgx.Tx) error) ledger.Filed {
	t.Helper()
	person := begin(t, d.open(nil))
	_, err := person.Exec(t.Context(), lock)
	must(t, err)
	var did ledger.Filed
	told := make(chan error)
	go func() {
		var err error
		did, err = l.File(context.Background(), f)
		told <- err
	}()
	for waiting := 0; waiting == 0; {
		must(t, person.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
	must(t, then(person))
	must(t, <-told)
	return did
}

// A filing names the version that a paper comes to have only while the filing
// waits for it, when its statement has begun: it is done as a whole.
func TestFilingOfAVersionToCome(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	p := file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 0)}}).Papers[0]
	for what, reserve := range map[string]*ledger.Reservation{"papers": nil, "papers and a write": entrusted(t, "w", "s", "wire:1")} {
		p.Version++ // by the person
		f := ledger.Filing{Papers: []ledger.Paper{p}, Reserve: reserve}
		did := behindAPerson(t, d, l, "UPDATE ledger_papers SET version = version + 1", f, func(person pgx.Tx) error { return person.Commit(t.Context()) })
		got, err := l.Paper(t.Context(), "acme", "step", "p")
		must(t, err)
		if p = did.Papers[0]; got.Version != p.Version || p.Binder != "w" || reserve != nil && !there(t, l, reserve.Record.ID) {
			t.Errorf("%s: told of version %d in %q, and there is version %d", what, p.Version, p.Binder, got.Version)
		}
	}
}

// A lease that is given in a filing begins when the filing is done, and not before
// it waited for somebody.
func TestFilingThatWaitedLeasesFromThen(t *testing.T) {
	d := fresh(t).movable()
	l := d.open(nil)
	file(t, l, ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 0)}})
	res := reservation(t, asked("w"))
	f := ledger.Filing{Papers: []ledger.Paper{page("acme", "p", 1)}, Reserve: &res}
	did := behindAPerson(t, d, l, "SELECT FROM ledger_papers FOR UPDATE", f, func(person pgx.Tx) error {
		d.move(2 * res.LeaseFor)
		return person.Rollback(t.Context())
	})
	rec, err := l.Get(t.Context(), "acme", did.Reserved.ID)
	must(t, err)
	if left := rec.LeaseUntil.Sub(rec.Now); left <= 0 {
		t.Errorf("the lease was over %s before it was given", -left)
	}
}

// Two processes reserve for one operation at once, after a step of one workflow
// holds it that came to nothing, or one that stands beside others of its workflow.
func TestOneOperationOfSteps(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)}
	for round := range 15 {
		key := fmt.Sprint("wire:", round)
		first := file(t, ledgers[0], ledger.Filing{Reserve: entrusted(t, fmt.Sprint("first", round), "a", key)}).Reserved
		file(t, ledgers[0], ledger.Filing{Reserve: entrusted(t, fmt.Sprint("first", round), "b", key)}) // beside it
		none := ledger.Appending{ID: first.ID, Fence: first.Fence, Events: []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}}}
		second, err := ledgers[0].Get(t.Context(), "acme", entrusted(t, fmt.Sprint("first", round), "b", key).Record.ID)
		must(t, err)
		file(t, ledgers[0], ledger.Filing{Append: []ledger.Appending{none}})
		_, err = ledgers[1].File(t.Context(), ledger.Filing{Reserve: entrusted(t, "other", "a", key)})
		var blocked *ledger.BlockedError
		if !errors.As(err, &blocked) || blocked.Prior.ID != second.ID {
			t.Fatalf("error %v, want the step that stands", err)
		}
		none.ID, none.Fence = second.ID, second.Fence
		file(t, ledgers[0], ledger.Filing{Append: []ledger.Appending{none}})
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				_, err := ledgers[i%2].File(context.Background(), ledger.Filing{Reserve: entrusted(t, fmt.Sprint(key, i), "a", key)})
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
