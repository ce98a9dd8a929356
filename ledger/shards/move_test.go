package shards_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/shards"
)

const cache = 100 * time.Millisecond

// charge is an order of a tenant.
func charge(tenant, id string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: tenant, Workflow: id, Step: "charge", Tool: "charge_card", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"order_id": id, "amount_cents": json.Number("100"), "currency": "USD"},
		IdempotencyKey: "invoice:" + id,
	}
}

// load are callers, each of which asks for one write after another, and asks again for whatever is not
// settled, in one of two processes.
type load struct {
	t       *testing.T
	engines []*engine.Engine
	stop    atomic.Bool
	wait    sync.WaitGroup
	done    atomic.Int64
	mu      sync.Mutex
	asked   []intent.WriteIntent
}

func underLoad(t *testing.T, d *databases, shop connectors.Destination, tenants ...string) *load {
	l := &load{t: t}
	for range 2 {
		var reg connectors.Registry
		must(t, reg.Register("orders", shop))
		e := engine.New(d.open(t, shards.Options{Cache: cache}), &reg, nil)
		t.Cleanup(func() { e.Close() })
		l.engines = append(l.engines, e)
		ctx, stop := context.WithCancel(context.Background())
		worked := make(chan struct{})
		go func() { defer close(worked); _ = e.Work(ctx, nil) }()
		t.Cleanup(func() { stop(); <-worked })
	}
	for c := range 6 {
		tenant := tenants[c%len(tenants)]
		l.wait.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				w := charge(tenant, fmt.Sprintf("%s-%d-%d", tenant, c, i))
				l.mu.Lock()
				l.asked = append(l.asked, w)
				l.mu.Unlock()
				l.ends(w, c+i)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// ends asks until a write is settled.
func (l *load) ends(w intent.WriteIntent, process int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for try := process; ; try++ {
		out, err := l.engines[try%len(l.engines)].Do(ctx, w)
		switch {
		case err == nil && out.Status == ledger.Verified:
			l.done.Add(1)
			return
		case err == nil && out.Status != ledger.InProgress, err != nil && !errors.Is(err, ledger.ErrUnavailable), ctx.Err() != nil:
			l.t.Errorf("%s: %s, %v", w.Workflow, out.Text, err)
			return
		}
		pause.For(ctx, 20*time.Millisecond)
	}
}

// more waits until that many writes have ended.
func (l *load) more(n int64) {
	l.t.Helper()
	for until, deadline := l.done.Load()+n, time.Now().Add(2*time.Minute); l.done.Load() < until; {
		if l.t.Failed() || time.Now().After(deadline) {
			l.t.Fatalf("%d writes ended, want %d", l.done.Load(), until)
		}
		pause.For(context.Background(), 5*time.Millisecond)
	}
}

func (l *load) end() {
	l.stop.Store(true)
	l.wait.Wait()
}

// A tenant moves from partition to partition while others write, and the process that moves it gets
// SIGKILL after each change and in the middle of the copy. Another process continues, or gives the move
// up. Nothing is lost and nothing is sent twice.
func TestMoveUnderLoad(t *testing.T) {
	d := template(t, 3).copy(t)
	shop, err := orders.New(orders.Plain.Options())
	must(t, err)
	l := underLoad(t, d, shop.Destination(), "acme", "globex")
	l.more(10)
	mover := d.open(t, shards.Options{Cache: cache})
	at := func() ledger.Placement {
		all, err := mover.Placements(t.Context())
		must(t, err)
		for _, p := range all {
			if p.Tenant == "acme" {
				return p
			}
		}
		t.Fatal("the directory has no acme")
		return ledger.Placement{}
	}
	begun := []killtest.Point{"after place 1", "after own 1", "after own 2", copying}
	ended := []killtest.Point{"after receive 1", "after place 2", "after forget 1"} // the target owns the tenant
	for i, point := range slices.Concat(begun, begun, ended) {
		must(t, shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 2}))
		before := at()
		to := string(rune('a' + (before.Partition[0]-'a'+1)%3))
		d.killed(t, before.Partition, to, point)
		now := at()
		if moving := point != "after place 2" && point != "after forget 1"; moving != (now.State == ledger.TenantDraining) {
			t.Fatalf("%s: %+v", point, now)
		}
		if slices.Contains(begun, point) {
			if n := d.rows(t, to, "acme"); n != 0 {
				t.Errorf("%s: %d writes in the target; want none", point, n)
			}
		}
		switch {
		case i < len(begun):
			must(t, mover.Abandon(t.Context(), "acme"))
			if now := at(); now.Partition != before.Partition || now.State != ledger.TenantActive || now.Epoch != before.Epoch+1 {
				t.Fatalf("%+v after the move was given up; want it where it was", now)
			}
			l.more(10)
			must(t, mover.Move(t.Context(), "acme", to, nil))
		case now.State == ledger.TenantDraining:
			if slices.Contains(ended, point) {
				if err := mover.Abandon(t.Context(), "acme"); !errors.Is(err, shards.ErrMove) {
					t.Fatalf("%v; want that a move is not given up when the target owns the tenant", err)
				}
			}
			must(t, mover.Resume(t.Context(), "acme", nil))
		default:
			must(t, mover.Move(t.Context(), "acme", to, nil))
		}
		if n := d.rows(t, before.Partition, "acme"); n != 0 {
			t.Fatalf("%d rows are left in %s", n, before.Partition)
		}
		if now := at(); now.Partition != to || now.State != ledger.TenantActive || now.Previous != before.Partition {
			t.Fatalf("%+v; want it in %s", now, to)
		}
		l.more(10)
	}
	l.end()
	found, err := mover.Check(t.Context())
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v; want the directory and the partitions to agree", found, err)
	}
	for _, w := range l.asked {
		if n := len(shop.Records(w.Workflow)); n != 1 {
			t.Errorf("%s has %d effects; want one", w.Workflow, n)
		}
		rec, err := ledger.NewRecord(w)
		must(t, err)
		if got, err := mover.Get(t.Context(), w.Tenant, rec.ID); err != nil || got.Settlement != ledger.Verified {
			t.Errorf("%s: %s, %v; want it verified", w.Workflow, got.Phase(), err)
		}
	}
	t.Logf("%d writes during %d moves", len(l.asked), 2*len(begun)+len(ended))
}

// rows counts the writes of a tenant in the tables of a partition.
func (d *databases) rows(t *testing.T, partition, tenant string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{partition, "ledger_writes"}.Sanitize()+" WHERE tenant = $1", tenant).Scan(&n))
	return n
}

// A process with an old copy of the directory sends nothing that the partition does not own, and finds
// the new one by itself.
func TestOldDirectory(t *testing.T) {
	d := template(t, 2).copy(t)
	stale, mover := d.open(t, shards.Options{Cache: time.Hour}), d.open(t, shards.Options{Cache: cache})
	reserve := func(id string) error {
		rec, err := ledger.NewRecord(charge("acme", id))
		must(t, err)
		_, _, err = stale.Reserve(t.Context(), ledger.Reservation{Record: rec})
		return err
	}
	must(t, reserve("before"))
	from, err := stale.Place(t.Context(), "acme")
	must(t, err)
	to := string(rune('a' + 'b' - from[0]))
	must(t, mover.Move(t.Context(), "acme", to, nil))
	must(t, reserve("after"))
	for _, name := range []string{from, to} {
		if n, want := d.rows(t, name, "acme"), map[string]int{from: 0, to: 2}[name]; n != want {
			t.Errorf("partition %s has %d writes; want %d", name, n, want)
		}
	}
}

// moved is a tenant with some writes in partition a, and a router.
func moved(t *testing.T) (*databases, *shards.Ledger) {
	t.Helper()
	d := template(t, 2).copy(t)
	l := d.open(t, shards.Options{Cache: cache, Tenants: map[string]string{"acme": "a"}})
	for i := range 5 {
		must(t, reserve(t, l, "acme", fmt.Sprint("early ", i)))
	}
	return d, l
}

// A copy that ends in the middle leaves nothing in the target, and the move can be continued.
func TestCopyThatIsInterrupted(t *testing.T) {
	d, l := moved(t)
	ended := make(chan error, 1)
	stop, stopped := d.copies(t, "a")
	stop()
	go func() { ended <- l.Move(t.Context(), "acme", "b", nil) }()
	stopped("pg_terminate_backend(pid)", func() {
		if n := d.rows(t, "b", "acme"); n != 0 {
			t.Errorf("%d writes in the target; want none", n)
		}
	})
	if err := <-ended; err == nil {
		t.Error("the move ended although its connection was gone; want an error")
	}
	must(t, l.Resume(t.Context(), "acme", nil))
	if from, to := d.rows(t, "a", "acme"), d.rows(t, "b", "acme"); from != 0 || to != 5 {
		t.Errorf("%d writes in a, %d in b; want all five in b", from, to)
	}
	found, err := l.Find(t.Context(), ledger.Search{Tenant: "acme", Query: "early 3"})
	if err != nil || len(found.Records) != 1 {
		t.Errorf("%d found, %v; want one", len(found.Records), err)
	}
}

// A worker that has a write sends it, perhaps: the move waits for it.
func TestMoveWaitsForWorkers(t *testing.T) {
	_, l := moved(t)
	got, err := l.Claim(t.Context(), ledger.Claim{Owner: "w", LeaseFor: time.Hour})
	if err != nil || len(got) != 1 {
		t.Fatalf("%d writes, %v", len(got), err)
	}
	finished := false
	must(t, l.Move(t.Context(), "acme", "b", func(s shards.Step) {
		if s.Leased == 1 && !finished {
			finished = true
			if _, err := l.Append(t.Context(), got[0].ID, got[0].Fence, ledger.Event{Kind: ledger.EvDeferred}); err != nil {
				t.Error(err)
			}
		}
	}))
	if rec, err := l.Get(t.Context(), "acme", got[0].ID); !finished || err != nil || rec.Owner != "" {
		t.Errorf("finished %v, %v, owner %q; want that the move waited, and the write in its new partition", finished, err, rec.Owner)
	}
}

// A program that moves a tenant and dies while it waits for the last writers has not waited for them:
// the one that continues does.
func TestMoveThatDiesWaitingForAWriter(t *testing.T) {
	d, l := moved(t)
	doc := ledger.Document{Tenant: "acme", Kind: "step", ID: "one", Body: []byte(`{}`)}
	_, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{doc}})
	must(t, err)
	var conns [2]*pgx.Conn
	for i := range conns {
		conns[i], err = pgx.Connect(t.Context(), d.dsn())
		must(t, err)
		defer func() { must(t, conns[i].Close(context.Background())) }()
	}
	count := func(query string) (n int) {
		must(t, conns[0].QueryRow(t.Context(), "SELECT count(*) FROM "+query).Scan(&n))
		return n
	}
	waiting := func() bool {
		return count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%LOCK TABLE%'") > 0
	}
	first, die := context.WithCancel(t.Context())
	if err := l.Move(first, "acme", "b", func(shards.Step) { die() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want that it died after the first step", err)
	}
	_, err = conns[1].Exec(t.Context(), "BEGIN; UPDATE a.ledger_documents SET version = version + 1 WHERE tenant = 'acme'") // it has begun, and may be changed
	must(t, err)
	ended := make(chan error, 1)
	second, die := context.WithCancel(t.Context())
	go func() { ended <- l.Resume(second, "acme", nil) }()
	killtest.Until(t, "given up in a", func() bool {
		return count("a.ledger_tenants WHERE tenant = 'acme' AND state = 'moved'") > 0 && waiting()
	})
	die()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want that it died", err)
	}
	killtest.Until(t, "dead", func() bool { return !waiting() })
	go func() { ended <- l.Resume(t.Context(), "acme", nil) }()
	killtest.Until(t, "waiting again", func() bool { return waiting() || len(ended) > 0 })
	_, err = conns[1].Exec(t.Context(), "COMMIT")
	must(t, err)
	must(t, <-ended)
	if doc, err = l.Document(t.Context(), "acme", "step", "one"); err != nil || doc.Version != 2 {
		t.Errorf("version %d, %v; want the change that was still to be committed", doc.Version, err)
	}
}

// A program that moves a tenant, and was suspended while another one gave the move up, cannot end it.
func TestGivenUpMoveStaysGivenUp(t *testing.T) {
	d, l := moved(t)
	other := d.open(t, shards.Options{Cache: cache})
	err := l.Move(t.Context(), "acme", "b", func(s shards.Step) {
		if strings.Contains(s.Text, "no longer owns the tenant") {
			must(t, other.Abandon(t.Context(), "acme"))
			must(t, reserve(t, other, "acme", "late"))
		}
	})
	if !errors.Is(err, ledger.ErrStale) {
		t.Errorf("%v; want it refused", err)
	}
	p, err := postgres.Open(t.Context(), d.dsn(), d.options(1))
	must(t, err)
	owned, err := p.Ownerships(t.Context())
	must(t, err)
	must(t, p.Close())
	if len(owned) != 1 || owned[0].State != ledger.TenantMoved || owned[0].Epoch != 2 {
		t.Errorf("the target keeps %+v; want that it gave the epoch up", owned)
	}
	must(t, other.Move(t.Context(), "acme", "b", nil))
}

// The numbers of writes begin anew in another partition: a pre-state from before the move may be older
// than a write that has a lower number there.
func TestPrecheckFromBeforeAMove(t *testing.T) {
	_, l := moved(t)
	one, two := charge("acme", "k"), charge("acme", "k")
	two.Workflow, two.IdempotencyKey = "other", ""
	rec, err := ledger.NewRecord(two)
	must(t, err)
	before, err := l.Precheck(t.Context(), rec)
	must(t, err)
	before.Newest |= 1 << 30 // as after many more writes
	must(t, l.Move(t.Context(), "acme", "b", nil))
	first, err := ledger.NewRecord(one)
	must(t, err)
	got, _, err := l.Reserve(t.Context(), ledger.Reservation{Record: first, Owner: "w", LeaseFor: time.Minute, Events: []ledger.Event{{Kind: ledger.EvAnnounced, By: "w", SendFor: time.Second}}})
	must(t, err)
	_, err = l.Append(t.Context(), got.ID, got.Fence, ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified"}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
	must(t, err)
	again, fresh, err := l.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "w", LeaseFor: time.Minute, Precheck: &before,
		Events: []ledger.Event{{Kind: ledger.EvRead, Before: true, Verdict: "absent"}, {Kind: ledger.EvAnnounced, By: "w", SendFor: time.Second}}})
	if err != nil || !fresh || again.Sends != 0 || again.Reads != 0 {
		t.Errorf("fresh %v, %v, %d reads, %d sends; want that it reads again", fresh, err, again.Reads, again.Sends)
	}
}
