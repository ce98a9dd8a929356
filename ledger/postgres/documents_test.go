package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// page returns a document like that of a step of a workflow.
func page(tenant, id string, version int64) ledger.Document {
	return ledger.Document{
		Tenant: tenant, Kind: "step", ID: id, Collection: "w", State: "open", Version: version,
		Body: fmt.Appendf(nil, `{"version": %d}`, version),
	}
}

// delegated returns the operation of a step, as it is reserved with the step's document.
func delegated(t testing.TB, workflow, step, key string) *ledger.Reservation {
	t.Helper()
	rec, err := ledger.NewDelegated(ledger.Operation{
		Tenant: "acme", Workflow: workflow, Step: step, Tool: "bank.transfer", IdempotencyKey: key,
		Digest: "digest of " + key, Asked: []byte(`{"amount": "10.00"}`),
	})
	must(t, err)
	return &ledger.Reservation{Record: rec, Window: 24 * time.Hour, Events: []ledger.Event{{Kind: ledger.EvDelegated}}}
}

// reported returns the events that complete a step.
func reported(rec ledger.Record) ledger.Appending {
	return ledger.Appending{ID: rec.ID, Fence: rec.Fence, Events: []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"}}}
}

func file(t testing.TB, l *postgres.Ledger, f ledger.Batch) ledger.Committed {
	t.Helper()
	did, err := l.Commit(context.Background(), f)
	must(t, err)
	return did
}

// counter counts database statements, except notifications, which no caller waits for.
type counter struct{ asked atomic.Int64 }

// TraceQueryStart implements [pgx.QueryTracer].
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(q.SQL, "pg_notify") {
		c.asked.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// What a step needs from its gate to its end is one statement each time: one round trip and one
// commit.
func TestBatchesOfOneStatement(t *testing.T) {
	d, count := fresh(t), &counter{}
	config, err := pgxpool.ParseConfig(d.dsn())
	must(t, err)
	config.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	l := d.open(&postgres.Options{Pool: pool})
	workflow := page("acme", "w", 0)
	workflow.Kind = "workflow"
	one := func(what string, f func() ledger.Committed) ledger.Committed {
		t.Helper()
		file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "read the clock before "+what, 0)}})
		before, commits := count.asked.Load(), l.Stats().Commits
		did := f()
		if asked := count.asked.Load() - before; asked != 1 {
			t.Errorf("%s took %d statements, want 1", what, asked)
		}
		if commits = l.Stats().Commits - commits; commits != 1 {
			t.Errorf("%s took %d commits, want 1", what, commits)
		}
		return did
	}
	one("a workflow", func() ledger.Committed { return file(t, l, ledger.Batch{Documents: []ledger.Document{workflow}}) })
	workflow.Version = 1
	gated := one("a gate", func() ledger.Committed {
		return file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "s", 0)}, Unchanged: []ledger.Document{workflow}, Reserve: delegated(t, "w", "s", "wire:1")})
	})
	one("a completion", func() ledger.Committed {
		return file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "s", 1), workflow}, Append: []ledger.Appending{reported(gated.Reserved)}})
	})
	one("a saga's step", func() ledger.Committed {
		res := reservation(t, asked("saga"))
		res.Owner, res.Events = "", nil
		return file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", "saga", 0)}, Reserve: &res})
	})
	rec, err := l.Get(t.Context(), "acme", gated.Reserved.ID)
	if err != nil || rec.Settlement != ledger.Reported {
		t.Errorf("the operation of the step is %s, error %v", rec.Phase(), err)
	}
	follows(t, l, rec)
}

// Many batches about few documents and writes, in any order of names, from the connections of
// several processes: no two deadlock, and each that did not fail with ErrStale did everything.
func TestConcurrentBatches(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil), d.open(nil)}
	const documents, filers, rounds = 6, 12, 18
	var recs []ledger.Record
	for i := range documents {
		file(t, ledgers[0], ledger.Batch{Documents: []ledger.Document{page("acme", fmt.Sprint("p", i), 0)}})
		recs = append(recs, file(t, ledgers[0], ledger.Batch{Reserve: delegated(t, "w", fmt.Sprint("s", i), fmt.Sprint("wire:", i))}).Reserved)
	}
	var done, reads [documents]atomic.Int64
	var wg sync.WaitGroup
	for g := range filers {
		l, r := ledgers[g%len(ledgers)], rand.New(rand.NewPCG(1, uint64(g)))
		wg.Go(func() {
			for round := range rounds {
				written, read, late := r.Perm(documents), 1+r.IntN(2), r.IntN(3)
				f, err := tangled(l, r, written[:3], read, round)
				if err != nil {
					t.Error(err)
					return
				}
				for _, n := range written[:late] {
					f.Append = append(f.Append, ledger.Appending{ID: recs[n].ID, Events: []ledger.Event{{Kind: ledger.EvLate}}})
				}
				if _, err = l.Commit(context.Background(), f); errors.Is(err, ledger.ErrStale) {
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				for _, n := range written[read:3] {
					done[n].Add(1)
				}
				for _, n := range written[:late] {
					reads[n].Add(1)
				}
			}
		})
	}
	wg.Wait()
	all := int64(0)
	for i := range documents {
		p, err := ledgers[0].Document(t.Context(), "acme", "step", fmt.Sprint("p", i))
		must(t, err)
		if p.Version != 1+done[i].Load() {
			t.Errorf("document %d has version %d after %d batches", i, p.Version, done[i].Load())
		}
		rec, err := ledgers[0].Get(t.Context(), "acme", recs[i].ID)
		must(t, err)
		if rec.Seq != recs[i].Seq+reads[i].Load() {
			t.Errorf("write %d has %d events, want %d", i, rec.Seq, recs[i].Seq+reads[i].Load())
		}
		follows(t, ledgers[0], rec)
		all += done[i].Load()
	}
	if all == 0 {
		t.Error("no batch was done")
	}
	noDeadlocks(t, ledgers[0])
}

// tangled commits a batch that needs the first of some documents unchanged and writes the others,
// and in most rounds creates some that others want to create as well.
func tangled(l *postgres.Ledger, r *rand.Rand, documents []int, read, round int) (f ledger.Batch, err error) {
	for i, n := range documents {
		p, err := l.Document(context.Background(), "acme", "step", fmt.Sprint("p", n))
		if err != nil {
			return f, err
		}
		if i < read {
			f.Unchanged = append(f.Unchanged, p)
		} else {
			f.Documents = append(f.Documents, p)
		}
	}
	if round%3 == 0 {
		return f, nil
	}
	for _, n := range r.Perm(3) {
		f.Documents = append(f.Documents, page("acme", fmt.Sprint("new", round, "-", n), 0))
	}
	return f, nil
}

func noDeadlocks(t *testing.T, l *postgres.Ledger) {
	t.Helper()
	var deadlocks int
	must(t, l.Pool().QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks))
	if deadlocks != 0 {
		t.Errorf("the database had to break %d deadlocks", deadlocks)
	}
}

// Batches that create the same documents, each in an order of its own: one creates them, and they
// are kept in its order.
func TestMakersAtOnce(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)}
	for round := range 20 {
		const many = 90
		var wg sync.WaitGroup
		var winner atomic.Int64
		begin, orders := make(chan struct{}), [2][]string{}
		for i, l := range ledgers {
			var f ledger.Batch
			for n := range many {
				p := page("acme", fmt.Sprintf("%03d", n), 0)
				if p.Collection = fmt.Sprint(round); i == 1 {
					p.ID = fmt.Sprintf("%03d", many-1-n)
				}
				p.ID = fmt.Sprint(round, "-", p.ID)
				f.Documents, orders[i] = append(f.Documents, p), append(orders[i], p.ID)
			}
			wg.Go(func() {
				<-begin
				if _, err := l.Commit(context.Background(), f); err == nil {
					winner.Add(int64(i) + 1)
				} else if !errors.Is(err, ledger.ErrStale) {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
		won := winner.Load()
		if won != 1 && won != 2 {
			t.Fatalf("round %d: want one maker", round)
		}
		kept, _, err := ledgers[0].FindDocuments(t.Context(), ledger.DocumentQuery{Tenant: "acme", Kind: "step", Collection: fmt.Sprint(round), Limit: many})
		must(t, err)
		for i, p := range kept {
			if p.ID != orders[won-1][i] {
				t.Fatalf("document %d is %s, want %s", i, p.ID, orders[won-1][i])
			}
		}
	}
	noDeadlocks(t, ledgers[0])
}

// Two batches each change what the other one needs unchanged, or create what must not exist for
// the other one: one of them fails.
func TestUnchangedHolds(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)}
	for name, c := range map[string]struct {
		reason string
		there  bool
		more   bool // a second append, so that it is a transaction
	}{
		"changed":                   {"what is to stay as it is stays so until the batch is durable", true, false},
		"changed, in a transaction": {"the same with several statements between", true, true},
		"made":                      {"what is not to be there is not made before the batch is durable", false, false},
		"made, in a transaction":    {"the same with several statements between", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 25 {
				ids := []string{fmt.Sprint(name, round, "a"), fmt.Sprint(name, round, "b")}
				version, late := int64(0), []ledger.Appending(nil)
				if c.there {
					version = 1
					file(t, ledgers[0], ledger.Batch{Documents: []ledger.Document{page("acme", ids[0], 0), page("acme", ids[1], 0)}})
				}
				if c.more {
					rec := file(t, ledgers[0], ledger.Batch{Reserve: delegated(t, "w", ids[0], ids[0])}).Reserved
					one := ledger.Appending{ID: rec.ID, Events: []ledger.Event{{Kind: ledger.EvLate}}}
					late = []ledger.Appending{one, one}
				}
				var won atomic.Int64
				var wg sync.WaitGroup
				for i, l := range ledgers {
					wg.Go(func() {
						_, err := l.Commit(context.Background(), ledger.Batch{
							Documents: []ledger.Document{page("acme", ids[i], version)}, Unchanged: []ledger.Document{page("acme", ids[1-i], version)}, Append: late})
						if err == nil {
							won.Add(1)
						} else if !errors.Is(err, ledger.ErrStale) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if won.Load() != 1 {
					t.Fatalf("round %d: %d of two batches were done, want 1: %s", round, won.Load(), c.reason)
				}
			}
		})
	}
}

// A collection with a document that another session has locked is deleted as a whole and later,
// and the pruning does not wait for it.
func TestPruneDuringABatch(t *testing.T) {
	for name, c := range map[string]struct {
		held string
		want [2]int // first, and after the lock is released
	}{
		"its cover, to stay as it is":  {"SELECT FROM ledger_documents WHERE kind = 'workflow' FOR SHARE", [2]int{1, 3}},
		"one of its steps":             {"SELECT FROM ledger_documents WHERE id = 's1' FOR UPDATE", [2]int{1, 3}},
		"one that is in no collection": {"UPDATE ledger_documents SET done = FALSE WHERE id = 'alone'", [2]int{3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t).movable()
			l := d.open(nil)
			cover := page("acme", "w", 0)
			cover.Kind, cover.Done = "workflow", true
			alone := page("acme", "alone", 0)
			alone.Collection, alone.Done = "", true
			file(t, l, ledger.Batch{Documents: []ledger.Document{cover, page("acme", "s1", 0), page("acme", "s2", 0), alone}})
			d.move(48 * time.Hour)
			blocker := begin(t, d.open(nil))
			_, err := blocker.Exec(t.Context(), c.held)
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for _, want := range c.want {
				did, err := l.Prune(ctx, ledger.Prune{Keep: time.Hour, Remember: 24 * time.Hour})
				if err != nil || did.Documents != want {
					t.Errorf("%d documents were forgotten, error %v, want %d", did.Documents, err, want)
				}
				_ = blocker.Rollback(t.Context()) // the first time
			}
		})
	}
}
