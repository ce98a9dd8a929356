package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// before runs f once, before a statement that says something.
type before struct {
	says string
	f    func()
	ran  atomic.Bool
}

// TraceQueryStart implements [pgx.QueryTracer].
func (b *before) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if b.f != nil && strings.Contains(q.SQL, b.says) && b.ran.CompareAndSwap(false, true) {
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
