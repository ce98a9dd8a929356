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
func enqueue(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) (err error) {
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
		if _, err := sqlite.Enqueue(context.Background(), tx, w); err != nil {
			return err
		}
	}
	return nil
}

// about is the nth wish about one record.
func about(record string, n int) intent.WriteIntent {
	w := asked(fmt.Sprint(record, "-", n))
	w.IdempotencyKey, w.Write = "", intent.Update
	w.Key, w.Expect = intent.Fields{"reference": record}, intent.Fields{"amount": fmt.Sprint(n)}
	return w
}

// drain claims and settles until nothing is left: the order of what was lent.
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

func idOf(w intent.WriteIntent) ledger.ID { return ledger.IDOf(w.StructuralKey()) }

// The caller's own table stands beside the ledger's, and its rows and the
// writes come and go together.
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
	l := open(t, file(t), &sqlite.Options{Now: c.now}) // it stands months before that of this machine
	must(t, enqueue(t, l, true, asked("w1")))
	before, err := l.Read("SELECT newest FROM ledger_meta")
	must(t, err)
	s, err := l.Survey(context.Background())
	if err != nil || s.Outbox != 1 || s.Oldest.After(s.Now) {
		t.Errorf("survey %+v, error %v", s, err)
	}
	rec, err := l.Get(context.Background(), "acme", idOf(asked("w1")))
	must(t, err)
	if !rec.Created.Equal(c.now()) || before[0] > fmt.Sprint(c.now().UnixNano()) {
		t.Errorf("created %s, newest before %s; the ledger's clock says %s", rec.Created, before[0], c.now())
	}
}

// Rows that somebody damaged are refused with a reason and stay; what stands
// beside them goes on.
func TestEnqueuedRowDamaged(t *testing.T) {
	for name, tc := range map[string]struct{ reason, damage, says string }{
		"no JSON":      {"it cannot be decoded", `intent = '{"tenant":'`, "not valid JSON"},
		"unknown":      {"nobody knows what it asks for", `intent = json_set(intent, '$.wish', 1)`, "/wish"},
		"invalid":      {"it could never be verified", `intent = json_remove(intent, '$.expect')`, "/expect"},
		"another id":   {"the caller would wait for ever", `id = 'wr_1'`, "damaged"},
		"another line": {"it would overtake others", `key_digest = 'x'`, "damaged"},
		"tenant":       {"it is somebody else's", `tenant = 'b'`, "damaged"},
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
			s, err := l.Survey(context.Background())
			if err != nil || s.Outbox != 0 || len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, tc.says) {
				t.Fatalf("survey %+v, error %v; want one refusal that says %q: %s", s, err, tc.says, tc.reason)
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

// An entry whose write is there already, in a row that cannot be read, is
// refused; it must not hold up the rest.
func TestEnqueuedTwiceAndDamaged(t *testing.T) {
	l := open(t, file(t), nil)
	reserve(t, l, "w1")
	must(t, enqueue(t, l, true, asked("w1"), asked("w2")))
	sql(t, outsider(t, l.Path()), "UPDATE ledger_writes SET body = '{'")
	if diff := cmp.Diff([]ledger.ID{idOf(asked("w2"))}, drain(t, l)); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	if s, err := l.Survey(context.Background()); err != nil || len(s.Refused) != 1 {
		t.Errorf("survey %+v, error %v", s, err)
	}
}

// A connection whose main database is not the ledger's file is told so: over
// several files a crash could leave one without the other.
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

// seller takes orders until it is killed, and says which it was told are
// there. Each order is a row of its own table and two writes.
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

// Callers are killed in the middle of their transactions while a worker takes
// in what they enqueued: every order has its writes, in their order, and there
// is no write without its order.
func TestEnqueuersKilled(t *testing.T) {
	l := open(t, file(t), nil)
	sql(t, outsider(t, l.Path()), "CREATE TABLE orders (name TEXT PRIMARY KEY)")
	var wg sync.WaitGroup
	told := make([]int, 3)
	for i := range told {
		cmd := process(t, "seller", l.Path(), fmt.Sprint("p", i))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		wg.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); told[i]++ {
				if told[i] == 40+30*i {
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
	if len(lent) != 2*len(orders) || len(at) != len(lent) || len(orders) < told[0]+told[1]+told[2] {
		t.Errorf("%d writes were lent, %d of them different, for %d orders, of which %v were told of", len(lent), len(at), len(orders), told)
	}
}

func TestSharedQueryPlans(t *testing.T) {
	l := open(t, file(t), nil)
	want := map[string]string{
		"entries":        "SCAN o USING INDEX ledger_outbox_open",
		"entries of":     "SEARCH o USING INDEX ledger_outbox_line (key_digest=?)",
		"entry":          "SEARCH o USING INDEX ledger_outbox_id (id=?); USE TEMP B-TREE FOR ORDER BY",
		"taken":          "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?)",
		"refuse":         "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?)",
		"outbox":         "SCAN o USING INDEX ledger_outbox_open",
		"refused":        "SCAN o USING INDEX ledger_outbox_refused",
		"broken":         "SCAN w USING INDEX ledger_writes_damaged",
		"notes":          "SEARCH o USING INDEX sqlite_autoindex_ledger_notes_1 (name>?)",
		"note":           "SEARCH o USING INDEX sqlite_autoindex_ledger_notes_1 (name=?)",
		"done":           "SEARCH w USING INDEX ledger_writes_done (tombstone=? AND <expr>>? AND <expr><?)",
		"followed":       "SEARCH w USING COVERING INDEX ledger_writes_behind (behind=?)",
		"clear":          "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
		"clear events":   "SEARCH ledger_events USING PRIMARY KEY (write=?)",
		"forget":         "SEARCH ledger_writes USING INTEGER PRIMARY KEY (rowid=?)",
		"forget refused": "SEARCH ledger_outbox USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 1; SCAN o USING INDEX ledger_outbox_refused",
		"survey":         "COMPOUND QUERY; LEFT-MOST SUBQUERY; SCAN w USING INDEX ledger_writes_work; UNION ALL; SCAN w USING INDEX ledger_writes_waiting",
	}
	for name, query := range sqlite.SharedQueries {
		plan, err := l.Read("EXPLAIN QUERY PLAN " + query)
		must(t, err)
		if got := strings.Join(plan, "; "); got != want[name] {
			t.Errorf("%s: plan %q, want %q; a ledger of millions must not be walked or sorted", name, got, want[name])
		}
	}
}
