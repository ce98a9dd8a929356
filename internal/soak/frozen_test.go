//go:build unix

package soak

import (
	"context"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// scene is a database, a ledger in it and a destination process, for tests that set the faults
// themselves.
type scene struct {
	t      *testing.T
	ctx    context.Context // ends with all that the test may take
	server *pgtest.Server
	name   string // of the database
	dsn    string
	book   *postgres.Ledger
	env    []string
	url    string
	log    string
}

func newScene(t *testing.T, o pgtest.Options) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &scene{t: t, ctx: ctx, server: pgtest.Start(t, o), log: filepath.Join(t.TempDir(), "effects.log")}
	var err error
	s.name, err = s.server.CreateDatabase()
	s.must(err)
	s.dsn = s.server.DSN(s.name)
	s.book, err = postgres.Open(ctx, s.dsn, nil)
	s.must(err)
	t.Cleanup(func() { s.book.Close() })
	s.env = []string{"SOAK_WORLD=calm", "SOAK_DESTINATIONS=orders", "SOAK_DSN=" + s.dsn, "SOAK_LOG=" + s.log}
	s.url = started(t, "orders", s.env...).next(t)
	s.env = append(s.env, "SOAK_URL="+s.url)
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// worker starts a worker that works.
func (s *scene) worker(env ...string) *process {
	s.t.Helper()
	p := started(s.t, "pool worker", append(s.env, env...)...)
	p.await(s.t, "working")
	return p
}

// deaf discards a process's output.
func deaf(p *process) *process {
	go func() {
		for range p.output {
		}
	}()
	return p
}

// enqueue commits writes in one transaction, also where those are read-only by
// default.
func (s *scene) enqueue(all ...intent.WriteIntent) {
	s.t.Helper()
	conn, err := pgx.Connect(s.ctx, s.dsn)
	s.must(err)
	defer conn.Close(s.ctx)
	s.must(pgx.BeginTxFunc(s.ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		for _, w := range all {
			if _, err := postgres.Enqueue(s.ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	}))
}

// until polls a write until it is as it should be.
func (s *scene) until(id ledger.ID, what string, is func(ledger.Record) bool) ledger.Record {
	s.t.Helper()
	for {
		rec, err := s.book.Get(s.ctx, tenant, id)
		if err == nil && is(rec) {
			return rec
		}
		if !pause.For(s.ctx, 20*time.Millisecond) {
			s.t.Fatalf("write %s is not %s: %s, %v%s", id, what, rec.Phase(), err, life(s.book, rec))
		}
	}
}

func (s *scene) verified(id ledger.ID) ledger.Record {
	s.t.Helper()
	return s.until(id, "verified", func(r ledger.Record) bool { return r.Settlement == ledger.Verified })
}

// applied is what the destination applied, by its log, as changes of a record in their order.
func (s *scene) applied() map[string][]int {
	s.t.Helper()
	effects, err := orders.ReadLog(s.log)
	s.must(err)
	all := map[string][]int{}
	for _, e := range effects {
		if e.Applied() {
			all[e.OrderID] = append(all[e.OrderID], int(e.After.AmountCents()))
		}
	}
	return all
}

// expedite makes a write due that waits for its time.
func (s *scene) expedite(id ledger.ID) {
	s.t.Helper()
	got, err := s.book.Claim(s.ctx, ledger.Claim{Owner: "the test", LeaseFor: time.Minute, Tenant: tenant, ID: id, Early: true})
	s.must(err)
	if len(got) != 1 {
		s.t.Fatalf("write %s cannot be claimed", id)
	}
	_, err = s.book.Append(s.ctx, id, got[0].Fence, ledger.Event{Kind: ledger.EvDeferred, By: "the test", Rule: "test", Reason: "brought forward"})
	s.must(err)
}

// TestFrozenBeforeSending: a worker is stopped between the announcement and the
// send. Another one takes the write over and finishes it. When the first goes
// on, it does not send.
func TestFrozenBeforeSending(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	w := change("frozen", 1)
	id := changeID("frozen", 1)
	first := s.worker("SOAK_HOLD=announced")
	s.enqueue(w)
	first.await(t, "announced")
	s.must(first.signal(syscall.SIGSTOP))
	second := deaf(s.worker())
	rec := s.verified(id)
	s.must(first.signal(syscall.SIGCONT))
	s.must(first.send("on"))
	first.await(t, "on")
	late := s.until(id, "late", func(r ledger.Record) bool {
		events, err := s.book.Events(s.ctx, tenant, id)
		return err == nil && slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Kind == ledger.EvLate })
	})
	s.must(first.in.Close())
	for line := range first.output {
		if line == "sent" {
			t.Error("the worker sent after it had lost its lease")
		}
	}
	s.must(second.in.Close())
	if got := s.applied()["frozen"]; len(got) != 1 {
		t.Errorf("the destination applied it %d times%s", len(got), life(s.book, late))
	}
	if late.Settlement != ledger.Verified || late.Fence != rec.Fence || late.Sends != 2 {
		t.Errorf("settled %+v%s", late, life(s.book, late))
	}
}

// TestFrozenWithinTheSend: a worker is stopped where no check is possible any more, longer than
// its lease and the horizon. The recheck of the other worker finds the duplicate that arrives
// then.
func TestFrozenWithinTheSend(t *testing.T) {
	s := newScene(t, pgtest.Options{})
	id := changeID("frozen", 1)
	first := s.worker("SOAK_HOLD=sending")
	s.enqueue(change("frozen", 1))
	first.await(t, "sending")
	s.must(first.signal(syscall.SIGSTOP))
	deaf(s.worker())
	rec := s.verified(id)
	if rec.Due.IsZero() || !rec.NeedsRecheck {
		t.Fatalf("verified by a second send, and no recheck is pending%s", life(s.book, rec))
	}
	s.must(first.signal(syscall.SIGCONT))
	s.must(first.send("on"))
	first.await(t, "sent")
	for len(s.applied()["frozen"]) < 2 {
		if !pause.For(s.ctx, 20*time.Millisecond) {
			t.Fatal("the send that was held did not land")
		}
	}
	first.kill()
	s.expedite(id)
	rec = s.until(id, "in review", func(r ledger.Record) bool { return r.State == ledger.Review })
	if rec.Verdict != "duplicated" || rec.Rule != "recheck" {
		t.Errorf("in review for %s, by rule %q%s", rec.Verdict, rec.Rule, life(s.book, rec))
	}
	t.Logf("%s: %s", rec.Verdict, rec.Reason)
}
