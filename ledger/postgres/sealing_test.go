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

// before runs f once, before a statement that contains a text, after skip others that do.
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

// traced opens a ledger whose statements are traced.
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

// all returns what is not sealed.
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

// untilWaiting returns when a session waits for a lock, or a call has ended.
func untilWaiting(t *testing.T, tx pgx.Tx, result chan error) {
	t.Helper()
	for waiting := 0; waiting == 0 && len(result) == 0; {
		must(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
	}
}

// soon prunes everything that is done.
var soon = ledger.Prune{Keep: time.Nanosecond, Remember: time.Hour}

// Sealing is switched on during a pruning that has already checked for unsealed events and found
// none. What is pruned is recorded as that, once.
func TestRecordingDuringAPruning(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "INSERT INTO ledger_unsealed (mark)"}
	pruner := d.traced(b)
	rec := settled(t, l, "w")
	result := make(chan error, 1)
	tx := begin(t, d.open(nil))
	b.f = func() {
		go func() {
			_, err := l.SetRecording(context.Background(), true)
			result <- err
		}()
		untilWaiting(t, tx, result)
	}
	did, err := pruner.Prune(t.Context(), soon)
	must(t, err)
	must(t, <-result)
	if !b.ran.Load() || did.Compacted != 1 {
		t.Fatalf("compacted %d, ran %v: the statement is not known any more", did.Compacted, b.ran.Load())
	}
	runs := all(t, l)
	if len(runs) != 1 || runs[0].Mark == nil || runs[0].Mark.Kind != ledger.MarkPruned || runs[0].Mark.Write != rec.ID {
		t.Errorf("%+v; want that the write was found pruned", runs)
	}
}

// A run is read while another sealer seals it and a pruning removes its write: it is read with
// its events, or not at all.
func TestUnsealedBesideAPruning(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "WITH ORDINALITY AS i (write, first, last, ord)"}
	late := d.traced(b)
	_, err := l.SetRecording(t.Context(), true)
	must(t, err)
	rec := settled(t, l, "w")
	b.f = func() {
		sealed(t, l, all(t, l))
		if did, err := l.Prune(context.Background(), soon); err != nil || did.Compacted != 1 {
			t.Errorf("compacted %d, error %v", did.Compacted, err)
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

// Transactions are repeatable by default, so that a statement sees the state from before it
// waited for a lock. Its changes while sealing is switched on, or while its write is backfilled,
// are not lost.
func TestRecordingInRepeatableReadTransactions(t *testing.T) {
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
				tx, result := begin(t, d.open(nil)), make(chan error, 1)
				if place, by := guarded(t, tx); place == where && by != whom && level == "read committed" {
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
							result <- err
						}()
						untilWaiting(t, tx, result)
					})
					must(t, err)
				}
				must(t, <-result)
				_, err := l.SetRecording(t.Context(), true)
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

// guarded returns where the row of the guard is stored, and which transaction locked it last.
func guarded(t *testing.T, tx pgx.Tx) (place, by string) {
	t.Helper()
	must(t, tx.QueryRow(t.Context(), "SELECT ctid::text, xmax::text FROM ledger_meta").Scan(&place, &by))
	return place, by
}

// Sealing is switched on while another session prunes documents: it does not keep a table lock
// that the other one still needs.
func TestRecordingDuringAPruningOfDocuments(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "DELETE FROM ledger_documents AS x USING"}
	pruner := d.traced(b)
	d.exec(`INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, state, done, body, version, created, updated, position)
		VALUES ('acme', 'step', 'old', '', '', '', '', TRUE, '{}', 1, 1, 1, 1)`)
	tx, result := begin(t, d.open(nil)), make(chan error, 1)
	b.f = func() {
		go func() {
			_, err := l.SetRecording(context.Background(), true)
			result <- err
		}()
		untilWaiting(t, tx, result)
		var kept int
		must(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted").Scan(&kept))
		if kept != 0 {
			t.Errorf("it has %d tables, and waits for what the other one has", kept)
		}
	}
	did, err := pruner.Prune(t.Context(), soon)
	must(t, err)
	must(t, <-result)
	if !b.ran.Load() || did.Documents != 1 {
		t.Fatalf("%d documents forgotten, ran %v: the statement is not known any more", did.Documents, b.ran.Load())
	}
	if runs := all(t, l); len(runs) != 0 {
		t.Errorf("%+v; want nothing, the document was deleted before", runs)
	}
}

// A session is stuck in a change, or vacuums. Switching sealing on waits for that; no other
// caller waits behind it.
func TestRecordingBlocksNoWriter(t *testing.T) {
	for _, mode := range []string{"ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE"} {
		t.Run(mode, func(t *testing.T) {
			d := fresh(t)
			l, other := d.open(nil), d.open(nil)
			blocker, tx, result := begin(t, d.open(nil)), begin(t, d.open(nil)), make(chan error, 1)
			_, err := blocker.Exec(t.Context(), "LOCK TABLE ledger_unsealed IN "+mode+" MODE")
			must(t, err)
			go func() {
				_, err := l.SetRecording(context.Background(), true)
				result <- err
			}()
			untilWaiting(t, tx, result)
			ctx, end := context.WithTimeout(t.Context(), 20*time.Second) // or for ever
			defer end()
			rec, _, err := other.Reserve(ctx, reservation(t, asked("w")))
			must(t, err)
			must(t, blocker.Rollback(t.Context()))
			must(t, <-result)
			if runs := all(t, l); len(runs) != 1 || runs[0].ID != rec.ID || len(runs[0].Events) != int(rec.Seq) {
				t.Errorf("%+v; want what was written meanwhile", runs)
			}
		})
	}
}

// What is not backfilled yet is not pruned: otherwise the chain would record that it is gone, but
// never that retention had pruned a write that it knows.
func TestPruneWaitsForTheBackfill(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	settled(t, l, "w")
	more, err := l.Switch(true, false, func() {})
	if must(t, err); !more {
		t.Fatal("it was found at once")
	}
	if did, err := l.Prune(t.Context(), soon); err != nil || did.Compacted > 0 {
		t.Errorf("%+v, error %v; want nothing", did, err)
	}
	_, err = l.SetRecording(t.Context(), true)
	must(t, err)
	sealed(t, l, all(t, l))
	if did, err := l.Prune(t.Context(), soon); err != nil || did.Compacted != 1 {
		t.Errorf("%+v, error %v; want that it waits no longer", did, err)
	}
}
