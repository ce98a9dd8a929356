package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/ledger"
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

// A sealer begins during a pruning. It waits for that, so that nothing is deleted that it takes for
// kept: neither the events of a write, nor what is old and not sealed.
func TestSealingBeginsDuringAPruning(t *testing.T) {
	for name, c := range map[string]struct {
		says      string
		old, left int64
	}{
		"of a write":          {"INSERT INTO ledger_unsealed (at, mark)", 0, 2},
		"of what is not kept": {"WITH d AS (DELETE FROM ledger_unsealed", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			l, b := d.open(nil), &before{says: c.says}
			pruner := d.traced(b)
			rec := settled(t, l, "w")
			young, _, err := l.Reserve(t.Context(), reservation(t, asked("young")))
			must(t, err)
			if c.old > 0 {
				d.exec("UPDATE ledger_unsealed SET at = 1 WHERE id = '" + string(rec.ID) + "'")
			}
			result, since := make(chan error, 1), time.Time{}
			tx := begin(t, d.open(nil))
			b.f = func() {
				go func() {
					var err error
					since, err = l.BeginSealing(context.Background())
					result <- err
				}()
				untilWaiting(t, tx, result)
			}
			p := soon
			if c.old > 0 {
				p.Keep = time.Hour
			}
			_, err = pruner.Prune(t.Context(), p)
			must(t, err)
			must(t, <-result)
			runs := all(t, l)
			if last := runs[len(runs)-1]; !b.ran.Load() || int64(len(runs)) != c.left || runs[0].ID != young.ID || c.left == 2 && (last.Mark == nil || last.Mark.Write != rec.ID) {
				t.Errorf("ran %v, to be sealed: %+v", b.ran.Load(), runs)
			}
			if kept := since.UnixNano(); c.old > 0 && kept != 1 || c.old == 0 && !since.IsZero() {
				t.Errorf("what was committed until %v may be missing", since)
			}
		})
	}
}

// A run is read while another sealer seals it and a pruning removes its write: it is read with
// its events, or not at all.
func TestUnsealedBesideAPruning(t *testing.T) {
	d := fresh(t)
	l, b := d.open(nil), &before{says: "WITH ORDINALITY AS i (write, first, last, ord)"}
	late := d.traced(b)
	_, err := l.BeginSealing(t.Context())
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

// What a process committed while its sealer reads is sealed as it was committed, and equals what
// another process reads. Events of another time are read, and of a write whose record is damaged
// all are sealed.
func TestRunsAreSealedAsCommitted(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	_, err := l.BeginSealing(t.Context())
	must(t, err)
	all(t, l)
	settled(t, l, "one")
	settled(t, l, "two")
	_, err = l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{{Tenant: "acme", Kind: "note", ID: "1", State: "new", Body: []byte(`{}`)}}})
	must(t, err)
	d.exec("UPDATE ledger_writes SET body = 'damaged'")
	committed := all(t, l)
	if diff := cmp.Diff(all(t, d.open(nil)), committed); len(committed) != 5 || diff != "" {
		t.Fatalf("%d runs; (-read +committed):\n%s", len(committed), diff)
	}
	d.exec("DELETE FROM ledger_events")
	if diff := cmp.Diff(committed, all(t, l)); diff != "" {
		t.Errorf("events that are gone (-committed +now):\n%s", diff)
	}
	sealed(t, l, committed[:3])
	if diff := cmp.Diff(committed[3:], all(t, l)); diff != "" {
		t.Errorf("after some were sealed (-want +got):\n%s", diff)
	}
	if kept, _ := l.Recent(); len(kept) != 1 || kept[0] != committed[3].Ticket {
		t.Errorf("runs %v are kept, want %d", kept, committed[3].Ticket)
	}
	d.exec("UPDATE ledger_unsealed SET at = at + 1")
	if runs := all(t, l); len(runs) != 2 || len(runs[0].Events) != 0 {
		t.Errorf("events of another time: %v", runs)
	}
}
