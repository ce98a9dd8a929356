package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

// before runs f once, before a statement that says something; skip of them go first.
type before struct {
	says string
	f    func()
	skip atomic.Int32
	ran  atomic.Bool
}

// TraceQueryStart implements [pgx.QueryTracer].
func (b *before) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if b.f != nil && strings.Contains(q.SQL, b.says) && b.skip.Add(-1) < 0 && b.ran.CompareAndSwap(false, true) {
		b.f()
	}
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*before) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// traced is a ledger whose statements are looked at.
func (d *database) traced(b *before) *postgres.Ledger {
	d.t.Helper()
	config, err := pgxpool.ParseConfig(d.dsn())
	must(d.t, err)
	config.ConnConfig.Tracer = b
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(d.t, err)
	d.t.Cleanup(pool.Close)
	return d.open(&postgres.Options{Pool: pool})
}

// settled is a write that is done.
func settled(t *testing.T, l *postgres.Ledger, workflow string) ledger.Record {
	t.Helper()
	res := reservation(t, asked(workflow))
	must(t, pair(l, res))
	rec, err := l.Get(t.Context(), "acme", res.Record.ID)
	must(t, err)
	return rec
}

// all is what is not sealed.
func all(t *testing.T, l *postgres.Ledger) []ledger.Run {
	t.Helper()
	runs, err := l.Unsealed(t.Context(), 0, 100)
	must(t, err)
	return runs
}

func sealed(t *testing.T, l *postgres.Ledger, runs []ledger.Run) {
	t.Helper()
	var tickets []int64
	for _, r := range runs {
		tickets = append(tickets, r.Ticket)
	}
	must(t, l.Sealed(t.Context(), tickets))
}

// untilWaiting returns when somebody waits for a lock, or a call has ended.
func untilWaiting(t *testing.T, look pgx.Tx, told chan error) {
	t.Helper()
	for waiting := 0; waiting == 0 && len(told) == 0; {
		must(t, look.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
}

// soon is a pruning of whatever is done.
var soon = ledger.Prune{Keep: time.Nanosecond, Remember: time.Hour}

// A program of the version before knows nothing of what is not sealed. What it is
// just changing when sealing is switched on is waited for, and found.
func TestChronicleWaitsForOlderPrograms(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	rec := settled(t, l, "w")
	old := begin(t, d.open(nil))
	for _, query := range []string{
		"UPDATE ledger_writes SET seq = seq + 1, body = replace(body, '\"seq\":' || seq, '\"seq\":' || seq + 1)",
		"INSERT INTO ledger_events (write, seq, body) SELECT write, seq + 1, replace(body, '\"seq\":' || seq, '\"seq\":' || seq + 1) FROM ledger_events WHERE seq = (SELECT max(seq) FROM ledger_events)",
	} {
		_, err := old.Exec(t.Context(), query)
		must(t, err)
	}
	told := make(chan error, 1)
	go func() {
		_, err := l.Chronicle(context.Background(), true)
		told <- err
	}()
	untilWaiting(t, begin(t, d.open(nil)), told)
	must(t, old.Commit(t.Context()))
	must(t, <-told)
	if runs := all(t, l); len(runs) != 1 || len(runs[0].Events) != int(rec.Seq)+1 || runs[0].Last != rec.Seq+1 {
		t.Errorf("%+v; want one run with the %d events there are", runs, rec.Seq+1)
	}
}

// Sealing is switched on while somebody prunes, who has looked for what is not
// sealed and found nothing. What is forgotten is found as that, once.
func TestChronicleBesideAPruning(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "INSERT INTO ledger_unsealed (mark)"}
	pruner := d.traced(b)
	rec := settled(t, l, "w")
	told := make(chan error, 1)
	look := begin(t, d.open(nil))
	b.f = func() {
		go func() {
			_, err := l.Chronicle(context.Background(), true)
			told <- err
		}()
		untilWaiting(t, look, told)
	}
	did, err := pruner.Prune(t.Context(), soon)
	must(t, err)
	must(t, <-told)
	if !b.ran.Load() || did.Buried != 1 {
		t.Fatalf("buried %d, ran %v: the statement is not known any more", did.Buried, b.ran.Load())
	}
	runs := all(t, l)
	if len(runs) != 1 || runs[0].Mark == nil || runs[0].Mark.Kind != ledger.MarkPruned || runs[0].Mark.Write != rec.ID {
		t.Errorf("%+v; want that the write was found pruned", runs)
	}
}

// A run is read while another sealer seals it and somebody prunes its write: it is
// read with its events, or not at all.
func TestUnsealedBesideAPruning(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "WITH ORDINALITY AS i (write, first, last, ord)"}
	late := d.traced(b)
	_, err := l.Chronicle(t.Context(), true)
	must(t, err)
	rec := settled(t, l, "w")
	b.f = func() {
		sealed(t, l, all(t, l))
		if did, err := l.Prune(context.Background(), soon); err != nil || did.Buried != 1 {
			t.Errorf("buried %d, error %v", did.Buried, err)
		}
	}
	for _, r := range all(t, late) {
		if r.ID == rec.ID && r.Mark == nil && len(r.Events) != int(r.Last-r.First)+1 {
			t.Errorf("events %d to %d, and %d of them", r.First, r.Last, len(r.Events))
		}
	}
	if !b.ran.Load() {
		t.Error("the statement is not known any more")
	}
}

// Transactions are repeatable by default, so that a statement sees what was there
// before it waited for a lock. What it changes while sealing is switched on, or while
// its write is found, is not lost all the same.
func TestChronicleWhereTransactionsAreRepeatable(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for portion, at := range []string{"switched on", "found"} {
			t.Run(level+", "+at, func(t *testing.T) {
				d := fresh(t)
				d.exec("ALTER DATABASE " + d.name + " SET default_transaction_isolation = '" + level + "'")
				l, other := d.open(nil), d.open(nil)
				must(t, storebench.Pair(t.Context(), l, storebench.Intent("old", 0)))
				rec := begun(t, other, "open", 0)
				where, whom := guarded(t, begin(t, d.open(nil)))
				for range 4 { // its statement is prepared from here on
					rec = ledgertest.OneMore(t, other, rec)
				}
				look, told := begin(t, d.open(nil)), make(chan error, 1)
				if place, by := guarded(t, look); place == where && by != whom && level == "read committed" {
					t.Error("a commit has locked the row that all others need")
				}
				late := ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Evidence: []byte(`{}`)}
				for i := range portion + 1 {
					_, err := l.Switch(true, i > 0, func() {
						if i < portion {
							return
						}
						go func() {
							_, err := other.Append(context.Background(), rec.ID, rec.Fence, late)
							told <- err
						}()
						untilWaiting(t, look, told)
					})
					must(t, err)
				}
				must(t, <-told)
				_, err := l.Chronicle(t.Context(), true)
				must(t, err)
				next := int64(0)
				for _, r := range all(t, l) {
					if r.ID == rec.ID {
						next += int64(len(r.Events))
					}
				}
				if next != rec.Seq+1 {
					t.Errorf("%d events wait to be sealed; the write has %d", next, rec.Seq+1)
				}
			})
		}
	}
}

// guarded is where the row of the guard stands, and who locked it last.
func guarded(t *testing.T, look pgx.Tx) (place, by string) {
	t.Helper()
	must(t, look.QueryRow(t.Context(), "SELECT ctid::text, xmax::text FROM ledger_meta").Scan(&place, &by))
	return place, by
}

// Sealing is switched on while somebody forgets papers: it does not keep what the
// other one has yet to take.
func TestChronicleBesideAPruningOfPapers(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "DELETE FROM ledger_papers AS x USING"}
	pruner := d.traced(b)
	d.exec(`INSERT INTO ledger_papers (tenant, kind, id, binder, subject, trace, state, done, body, version, created, updated, came)
		VALUES ('acme', 'step', 'old', '', '', '', '', TRUE, '{}', 1, 1, 1, 1)`)
	look, told := begin(t, d.open(nil)), make(chan error, 1)
	b.f = func() {
		go func() {
			_, err := l.Chronicle(context.Background(), true)
			told <- err
		}()
		untilWaiting(t, look, told)
		var kept int
		must(t, look.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted").Scan(&kept))
		if kept != 0 {
			t.Errorf("it has %d tables, and waits for what the other one has", kept)
		}
	}
	did, err := pruner.Prune(t.Context(), soon)
	must(t, err)
	must(t, <-told)
	if !b.ran.Load() || did.Papers != 1 {
		t.Fatalf("%d papers forgotten, ran %v: the statement is not known any more", did.Papers, b.ran.Load())
	}
	if runs := all(t, l); len(runs) != 0 {
		t.Errorf("%+v; want nothing, the paper was gone before", runs)
	}
}

// Somebody stands still in the middle of a change, or vacuums. Whoever switches
// sealing on waits for that; nobody waits behind him.
func TestChronicleHoldsUpNobody(t *testing.T) {
	for _, mode := range []string{"ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE"} {
		for _, table := range []string{"writes", "papers", "unsealed"} {
			t.Run(mode+" "+table, func(t *testing.T) {
				d := fresh(t)
				l, other := d.open(nil), d.open(nil)
				person, look, told := begin(t, d.open(nil)), begin(t, d.open(nil)), make(chan error, 1)
				_, err := person.Exec(t.Context(), "LOCK TABLE ledger_"+table+" IN "+mode+" MODE")
				must(t, err)
				go func() {
					_, err := l.Chronicle(context.Background(), true)
					told <- err
				}()
				untilWaiting(t, look, told)
				ctx, end := context.WithTimeout(t.Context(), 20*time.Second) // or for ever
				defer end()
				rec, _, err := other.Reserve(ctx, reservation(t, asked("w")))
				must(t, err)
				must(t, person.Rollback(t.Context()))
				must(t, <-told)
				if runs := all(t, l); len(runs) != 1 || runs[0].ID != rec.ID || len(runs[0].Events) != int(rec.Seq) {
					t.Errorf("%+v; want what was written meanwhile", runs)
				}
			})
		}
	}
}

// What was not found yet is not forgotten either: the chain would tell that it is
// gone, and of a write that it knows, never that retention had pruned it.
func TestPruneWaitsForWhatIsNotFound(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	settled(t, l, "w")
	more, err := l.Switch(true, false, func() {})
	if must(t, err); !more {
		t.Fatal("it was found at once")
	}
	if did, err := l.Prune(t.Context(), soon); err != nil || did.Buried > 0 {
		t.Errorf("%+v, error %v; want nothing", did, err)
	}
	_, err = l.Chronicle(t.Context(), true)
	must(t, err)
	sealed(t, l, all(t, l))
	if did, err := l.Prune(t.Context(), soon); err != nil || did.Buried != 1 {
		t.Errorf("%+v, error %v; want that it waits no longer", did, err)
	}
}
