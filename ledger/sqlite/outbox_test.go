package sqlite_test

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	_ "modernc.org/sqlite"
)

// database opens a file as a caller's program does.
func database(t *testing.T, path string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// enqueue is how the suite enqueues.
func enqueue(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) error {
	t.Helper()
	return enqueueTo(t, l, sqlite.Outbox{}, commit, ws...)
}

func enqueueSealed(t *testing.T, l ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error {
	t.Helper()
	return enqueueTo(t, l, sqlite.Outbox{Keys: keys}, true, ws...)
}

func enqueueTo(t *testing.T, l ledger.Ledger, o sqlite.Outbox, commit bool, ws ...intent.WriteIntent) (err error) {
	t.Helper()
	db := database(t, l.(*sqlite.Ledger).Path())
	tx, err := db.BeginTx(context.Background(), nil)
	must(t, err)
	defer func() {
		if !commit || err != nil {
			must(t, tx.Rollback())
			return
		}
		err = tx.Commit()
	}()
	for _, w := range ws {
		if _, err := o.Enqueue(context.Background(), tx, w); err != nil {
			return err
		}
	}
	return nil
}

// about returns the nth write about one record.
func about(record string, n int) intent.WriteIntent {
	w := asked(fmt.Sprint(record, "-", n))
	w.IdempotencyKey, w.Write = "", intent.Update
	w.Key, w.Expect = intent.Fields{"reference": record}, intent.Fields{"amount": fmt.Sprint(n)}
	return w
}

// drain claims and settles until nothing is left, and returns the order of the leases.
func drain(t *testing.T, l *sqlite.Ledger) (order []ledger.ID) {
	t.Helper()
	ctx := context.Background()
	for {
		recs, err := l.Claim(ctx, ledger.Claim{Owner: "w", LeaseFor: time.Minute, Limit: 100})
		must(t, err)
		if len(recs) == 0 {
			return order
		}
		for _, rec := range recs {
			order = append(order, rec.ID)
			_, err := l.Append(ctx, rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvAnnounced}, ledger.Event{Kind: ledger.EvSent},
				ledger.Event{Kind: ledger.EvRead, Evidence: []byte(`{"seen":true}`)}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
			must(t, err)
		}
	}
}

// sealsAs returns the same seal for every entry.
type sealsAs struct {
	ledger.Keys
	entry string
}

func (s sealsAs) SealEntry(string, intent.WriteIntent) ([]byte, error) { return []byte(s.entry), nil }

func idOf(w intent.WriteIntent) ledger.ID { return ledger.IDOf(w.StructuralKey()) }

// Entries that wait for a process with their key do not slow down each claim of one without it.
// They are retried after a while. Meanwhile others overtake them, except those about the same
// record.
func TestEntriesWithoutKeyAreSeldomTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, file(t), nil)
		tried := 0
		l.KeepWith(func(r ledger.Record) (ledger.Record, error) {
			if ledger.SealedEntry(r.Intent) {
				tried++
				return r, ledger.ErrNoKey
			}
			return r, nil
		})
		var sealed []intent.WriteIntent
		for i := range 3 * sqlite.MaxAdmit {
			sealed = append(sealed, about(fmt.Sprint("r", i), 1))
		}
		must(t, enqueueSealed(t, l, sealsAs{entry: `{"sealed":"x"}`}, sealed...))
		drain(t, l)
		if tried != len(sealed) {
			t.Fatalf("%d entries were tried, want all %d", tried, len(sealed))
		}
		must(t, enqueue(t, l, true, about("r0", 2), about("other", 1)))
		if order := drain(t, l); len(order) != 1 || order[0] != idOf(about("other", 1)) {
			t.Errorf("lent %v, want only what is about another record", order)
		}
		if tried > len(sealed)+sqlite.MaxAdmit {
			t.Errorf("%d entries were tried once more", tried-len(sealed))
		}
		time.Sleep(time.Minute)
		tried = 0
		drain(t, l)
		if tried != len(sealed) {
			t.Errorf("a minute later %d entries were tried, want all %d", tried, len(sealed))
		}
	})
}

// The caller's own table is in the ledger's file, and its rows and the writes are committed or
// rolled back together.
func TestEnqueueWithCallersState(t *testing.T) {
	l := open(t, file(t), nil)
	db, ctx := database(t, l.Path()), context.Background()
	run := func(on interface {
		ExecContext(context.Context, string, ...any) (stdsql.Result, error)
	}, query string, args ...any) {
		t.Helper()
		_, err := on.ExecContext(ctx, query, args...)
		must(t, err)
	}
	run(db, "CREATE TABLE orders (name TEXT PRIMARY KEY)")
	begin := func(name string) *stdsql.Tx {
		t.Helper()
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		run(tx, "INSERT INTO orders VALUES (?)", name)
		id, err := sqlite.Enqueue(ctx, tx, asked(name))
		must(t, err)
		if id != idOf(asked(name)) {
			t.Errorf("enqueue returned %s", id)
		}
		return tx
	}
	must(t, begin("kept").Commit())
	must(t, begin("dropped").Rollback())
	tx := begin("half")
	run(tx, "SAVEPOINT part")
	_, err := sqlite.Enqueue(ctx, tx, asked("within"))
	must(t, err)
	run(tx, "ROLLBACK TO part")
	must(t, tx.Commit())
	if diff := cmp.Diff([]ledger.ID{idOf(asked("kept")), idOf(asked("half"))}, drain(t, l)); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	if names, err := l.Read("SELECT name FROM orders ORDER BY name"); err != nil || !slices.Equal(names, []string{"half", "kept"}) {
		t.Errorf("orders %v, error %v", names, err)
	}
}

// The caller's clock gives no time to any write.
func TestEnqueueOnAnotherClock(t *testing.T) {
	c := newClock()
	l := open(t, file(t), &sqlite.Options{Now: c.now}) // it is months before that of this machine
	must(t, enqueue(t, l, true, asked("w1")))
	before, err := l.Read("SELECT newest FROM ledger_meta")
	must(t, err)
	s, err := l.QueueStats(context.Background())
	if err != nil || s.Outbox != 1 || s.Oldest.After(s.Now) {
		t.Errorf("stats %+v, error %v", s, err)
	}
	rec, err := l.Get(context.Background(), "acme", idOf(asked("w1")))
	must(t, err)
	if !rec.Created.Equal(c.now()) || before[0] > fmt.Sprint(c.now().UnixNano()) {
		t.Errorf("created %s, newest before %s; the ledger's clock says %s", rec.Created, before[0], c.now())
	}
}

// Rows that were damaged by hand are refused with a reason and kept; entries beside them are
// taken in.
func TestEnqueuedRowDamaged(t *testing.T) {
	for name, tc := range map[string]struct{ reason, damage, says string }{
		"no JSON":      {"it cannot be decoded", `intent = '{"tenant":'`, "not valid JSON"},
		"unknown":      {"it is unknown what it asks for", `intent = json_set(intent, '$.wish', 1)`, "/wish"},
		"invalid":      {"it could never be verified", `intent = json_remove(intent, '$.expect')`, "/expect"},
		"another id":   {"the caller would wait for ever", `id = 'wr_1'`, "damaged"},
		"another line": {"it would overtake others", `key_digest = 'hmac:ledger:x'`, "damaged"},
		"tenant":       {"it is another actor's", `tenant = 'b'`, "damaged"},
		"changed":      {"the caller did not ask for this workflow", `intent = replace(intent, 'w1', 'w9')`, "damaged"},
		"undoing":      {"only the engine undoes", `intent = json_set(intent, '$.compensates', 'wr_1')`, "/compensates"},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, file(t), nil)
			must(t, enqueue(t, l, true, asked("w1"), about("r", 1)))
			sql(t, outsider(t, l.Path()), "UPDATE ledger_outbox SET "+tc.damage+" WHERE n = 1")
			if diff := cmp.Diff([]ledger.ID{idOf(about("r", 1))}, drain(t, l)); diff != "" {
				t.Errorf("lent (-want +got):\n%s", diff)
			}
			s, err := l.QueueStats(context.Background())
			if err != nil || s.Outbox != 0 || len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, tc.says) {
				t.Fatalf("stats %+v, error %v; want one refusal that says %q: %s", s, err, tc.says, tc.reason)
			}
			if name == "no JSON" {
				sql(t, outsider(t, l.Path()), "DELETE FROM ledger_outbox")
				must(t, enqueue(t, l, true, asked("w1")))
				if got := drain(t, l); len(got) != 1 {
					t.Errorf("enqueued once more: lent %v", got)
				}
			}
		})
	}
}

// An entry whose write exists already, in a row that cannot be read, is refused; it must not
// block the rest.
func TestEnqueuedTwiceAndDamaged(t *testing.T) {
	l := open(t, file(t), nil)
	reserve(t, l, "w1")
	must(t, enqueue(t, l, true, asked("w1"), asked("w2")))
	sql(t, outsider(t, l.Path()), "UPDATE ledger_writes SET body = '{'")
	if diff := cmp.Diff([]ledger.ID{idOf(asked("w2"))}, drain(t, l)); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	if s, err := l.QueueStats(context.Background()); err != nil || len(s.Refused) != 1 {
		t.Errorf("stats %+v, error %v", s, err)
	}
}

// A connection whose main database is not the ledger's file gets an error: over several files a
// crash could leave one without the other.
func TestEnqueueElsewhere(t *testing.T) {
	l := open(t, file(t), nil)
	for name, prepare := range map[string]string{"another file": "SELECT 1", "attached": "ATTACH '" + l.Path() + "' AS ledger"} {
		t.Run(name, func(t *testing.T) {
			db, ctx := database(t, file(t)), context.Background()
			db.SetMaxOpenConns(1)
			_, err := db.ExecContext(ctx, prepare)
			must(t, err)
			tx, err := db.BeginTx(ctx, nil)
			must(t, err)
			defer func() { must(t, tx.Rollback()) }()
			if _, err := sqlite.Enqueue(ctx, tx, asked("w1")); err == nil || !strings.Contains(err.Error(), "sqlite.Open") {
				t.Errorf("error %v, want one that says what the connection must be", err)
			}
		})
	}
}

func init() { roles["seller"] = seller }

// seller takes orders until it is killed, and prints which were committed. Each order is a row of
// its own table and two writes.
func seller(path, name string) error {
	db, err := stdsql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		order := fmt.Sprint(name, "o", i)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", order)
		for n := range 2 {
			if err == nil {
				_, err = sqlite.Enqueue(ctx, tx, about(order, n))
			}
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			return err
		}
		fmt.Println(order)
	}
}

// Callers are killed during their transactions while a worker takes in what they enqueued: every
// order has its writes, in their order, and there is no write without its order.
func TestEnqueuersKilled(t *testing.T) {
	l := open(t, file(t), nil)
	sql(t, outsider(t, l.Path()), "CREATE TABLE orders (name TEXT PRIMARY KEY)")
	var wg sync.WaitGroup
	reported := make([]int, 3)
	for i := range reported {
		cmd := process(t, "seller", l.Path(), fmt.Sprint("p", i))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		wg.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); reported[i]++ {
				if reported[i] == 40+30*i {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait() // it was killed
		})
	}
	killed := make(chan struct{})
	go func() { wg.Wait(); close(killed) }()
	var lent []ledger.ID
	for done := false; !done; {
		select {
		case <-killed:
			done = true
		default:
		}
		lent = append(lent, drain(t, l)...)
	}
	orders, err := l.Read("SELECT name FROM orders")
	must(t, err)
	at := map[ledger.ID]int{}
	for i, id := range lent {
		at[id] = i + 1
	}
	for _, order := range orders {
		first, second := at[idOf(about(order, 0))], at[idOf(about(order, 1))]
		if first == 0 || second < first {
			t.Errorf("order %s: its writes were lent as number %d and %d", order, first, second)
		}
	}
	if len(lent) != 2*len(orders) || len(at) != len(lent) || len(orders) < reported[0]+reported[1]+reported[2] {
		t.Errorf("%d writes were lent, %d of them different, for %d orders, of which %v were reported", len(lent), len(at), len(orders), reported)
	}
}
