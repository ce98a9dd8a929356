package shards_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/shards"
	"github.com/readback-go/readback/policies"
)

// partition is a ledger in memory that keeps what it owns, and refuses nothing: what the router does
// with one partition and with several, without the fence, which package postgres has.
type partition struct {
	*ledger.Memory
	mu     sync.Mutex
	name   string
	owned  map[string]ledger.Ownership
	places map[string]ledger.Placement
	down   error // at the start, and of the directory
	// surveyed is called before its tenants are read.
	surveyed  func()
	forgotten []ledger.Ownership
	refused   []ledger.Refused // in its outbox
}

func newPartition() *partition {
	return &partition{Memory: ledger.NewMemory(), owned: map[string]ledger.Ownership{}, places: map[string]ledger.Placement{}}
}

func (p *partition) Join(_ context.Context, name string, _ ledger.Partition) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name = cmp.Or(p.name, name); p.name != name {
		return fmt.Errorf("%w: it is %s", ledger.ErrPartition, p.name)
	}
	return nil
}

func (p *partition) Ownerships(context.Context) ([]ledger.Ownership, error) {
	if p.surveyed != nil {
		p.surveyed()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.owned)), nil
}

func (p *partition) Ownership(_ context.Context, tenant string) (ledger.Ownership, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owned[tenant], nil
}

func (p *partition) Own(_ context.Context, o, was ledger.Ownership) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.owned[o.Tenant]; have.Epoch != was.Epoch || have.State != was.State {
		return ledger.ErrStale
	}
	p.owned[o.Tenant] = o
	return nil
}

func (p *partition) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	if p.down != nil {
		return nil, time.Time{}, p.down
	}
	return p.Memory.Notes(ctx, prefix)
}

func (p *partition) QueueStats(ctx context.Context) (ledger.QueueStats, error) {
	s, err := p.Memory.QueueStats(ctx)
	s.Refused = slices.Clone(p.refused)
	return s, err
}

func (p *partition) Leased(context.Context, string) (int, error) { return 0, nil }
func (p *partition) Forget(_ context.Context, o ledger.Ownership) error {
	p.forgotten = append(p.forgotten, o)
	return p.down
}
func (p *partition) Receive(context.Context, ledger.Partition, ledger.Ownership) (bool, error) {
	return false, errors.ErrUnsupported
}

func (p *partition) Placements(context.Context) ([]ledger.Placement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.places)), nil
}

func (p *partition) Placement(_ context.Context, tenant string) (ledger.Placement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.places[tenant], p.down
}

func (p *partition) Place(_ context.Context, place, was ledger.Placement) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.places[place.Tenant]; have.Epoch != was.Epoch || have.State != was.State || have.Target != was.Target {
		return ledger.ErrStale
	}
	p.places[place.Tenant] = place
	return nil
}

// opened is a router over n partitions.
func opened(t *testing.T, all []*partition, o shards.Options) *shards.Ledger {
	t.Helper()
	l, err := shards.Open(t.Context(), configured(all), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func configured(all []*partition) (of []shards.Shard) {
	for i, p := range all {
		of = append(of, shards.Shard{Name: string(rune('a' + i)), Open: func(context.Context) (ledger.Partition, error) {
			if p.down != nil {
				return nil, p.down
			}
			return p, nil
		}})
	}
	return of
}

func partitions(n int) (all []*partition) {
	for range n {
		all = append(all, newPartition())
	}
	return all
}

func TestLedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger { return opened(t, partitions(1), shards.Options{}) }, ledgertest.Options{OneIn: need.OneIn(10)})
}

func reserve(t *testing.T, l ledger.Ledger, tenant, id string) error {
	t.Helper()
	rec, err := ledger.NewRecord(charge(tenant, id))
	must(t, err)
	_, _, err = l.Reserve(t.Context(), ledger.Reservation{Record: rec})
	return err
}

// A partition that cannot be reached refuses its own tenants only, and comes back by itself. New tenants
// wait for it: it may have a tenant that a restored directory does not name.
func TestUnreachablePartition(t *testing.T) {
	all := partitions(2)
	o := shards.Options{Tenants: map[string]string{"acme": "a", "globex": "b", "initech": "a"}}
	must(t, reserve(t, opened(t, all, o), "acme", "one"))
	all[1].down = fmt.Errorf("%w: its machine is off", ledger.ErrUnavailable)
	l := opened(t, all, o)
	must(t, reserve(t, l, "acme", "two"))
	if err := reserve(t, l, "initech", "one"); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), `partition "b"`) || all[0].places["initech"].Epoch > 0 {
		t.Errorf("%v; want a new tenant refused, with the name of the partition", err)
	}
	if err := reserve(t, l, "globex", "one"); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), `partition "b"`) {
		t.Errorf("%v; want it refused, with the name of the partition", err)
	}
	if got, err := l.Claim(t.Context(), ledger.Claim{Owner: "w", LeaseFor: time.Hour, Limit: 10}); err != nil || len(got) != 2 {
		t.Errorf("%d, %v; want the work of the other partition", len(got), err)
	}
	states, err := l.Partitions(t.Context())
	if err != nil || len(states) != 2 || states[0].Err != nil || states[1].Err == nil {
		t.Errorf("%+v, %v; want which one cannot be reached", states, err)
	}
	all[1].down = nil
	must(t, eventually(func() error { return reserve(t, l, "globex", "one") }))
	must(t, reserve(t, l, "initech", "one"))
}

// eventually repeats what is unavailable.
func eventually(call func() error) (err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); pause.For(context.Background(), 50*time.Millisecond) {
		if err = call(); !errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
	}
	return err
}

// A tenant in two partitions, after a restored backup, is refused and named. The decision of an
// operator ends that.
func TestTenantInTwoPartitions(t *testing.T) {
	active := func(epoch int64) ledger.Ownership {
		return ledger.Ownership{Tenant: "acme", Epoch: epoch, State: ledger.TenantActive}
	}
	for name, c := range map[string]struct {
		a, b  int64 // epochs in which they own it; 0: not at all
		place ledger.Placement
		wants []string
	}{
		"in both":             {1, 2, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive}, []string{"in 2 partitions", `"a" (epoch 1)`, `"b" (epoch 2)`}},
		"in the other":        {1, 0, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive}, []string{`in partition "b" (epoch 2)`, `"a" (epoch 1)`}},
		"with an older state": {1, 0, ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 3, State: ledger.TenantActive}, []string{`in partition "a" (epoch 3)`, `"a" (epoch 1)`}},
		"with a newer state":  {3, 0, ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 1, State: ledger.TenantActive}, []string{`in partition "a" (epoch 1)`, `"a" (epoch 3)`}},
		"in none":             {0, 0, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive}, []string{`partition "b", which does not have it`}},
		"in one that is gone": {0, 0, ledger.Placement{Tenant: "acme", Partition: "z", Epoch: 2, State: ledger.TenantActive}, []string{`partition "z", which is not configured`}},
	} {
		t.Run(name, func(t *testing.T) {
			all := partitions(2)
			for i, epoch := range []int64{c.a, c.b} {
				if epoch > 0 {
					must(t, all[i].Own(t.Context(), active(epoch), ledger.Ownership{}))
				}
			}
			must(t, all[0].Place(t.Context(), c.place, ledger.Placement{}))
			l := opened(t, all, shards.Options{Tenants: map[string]string{"globex": "b"}})
			err := reserve(t, l, "acme", "one")
			found, failed := l.Check(t.Context())
			if !errors.Is(err, shards.ErrSplit) || !errors.Is(err, ledger.ErrUnavailable) || failed != nil || len(found) != 1 {
				t.Fatalf("%v, %v, %v; want it refused", err, found, failed)
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) || !strings.Contains(found[0].Text, want) {
					t.Errorf("%v: want %q in it", err, want)
				}
			}
			for _, p := range all {
				if p.owned["acme"].State == ledger.TenantActive {
					t.Errorf("partition %s still owns it", p.name)
				}
			}
			must(t, reserve(t, l, "globex", "one"))
			if c.a == 0 {
				return
			}
			must(t, l.Keep(t.Context(), "acme", "a"))
			must(t, reserve(t, l, "acme", "one"))
			if found, err := l.Check(t.Context()); err != nil || len(found) != 0 {
				t.Errorf("%v, %v; want nothing", found, err)
			}
		})
	}
}

// A move that another process makes while the partitions are compared is no contradiction.
func TestMoveDuringTheComparison(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "a"}})
	must(t, reserve(t, l, "acme", "one"))
	was := all[0].owned["acme"]
	all[1].surveyed = sync.OnceFunc(func() { // the directory was read before
		must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantMoved}, was))
		must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantActive}, ledger.Ownership{}))
		must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive}, all[0].places["acme"]))
	})
	other := opened(t, all, shards.Options{})
	must(t, reserve(t, other, "acme", "two"))
	if o := all[1].owned["acme"]; o.State != ledger.TenantActive {
		t.Errorf("%+v; want that the partition begins writes of its tenant", o)
	}
}

// A partition that is restored from a backup while a process runs leases writes that are in another one
// since. The process works on none of them.
func TestRestoredWhileRunning(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b", "globex": "a"}})
	must(t, reserve(t, l, "acme", "one"))
	must(t, reserve(t, l, "globex", "one"))
	must(t, reserve(t, all[0], "acme", "restored"))
	_, err := all[0].Commit(ctx, ledger.Batch{Documents: []ledger.Document{{Tenant: "acme", Kind: "step", ID: "restored", Body: []byte(`{}`), Due: time.Now()}}})
	must(t, err)
	must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantActive}, all[1].owned["acme"]))
	if due, _, err := l.DueDocuments(ctx, "step", 10); err != nil || len(due) > 0 {
		t.Errorf("%d documents of partition a are worked on: %v", len(due), err)
	}
	for range 2 { // beginning with each partition
		got, err := l.Claim(ctx, ledger.Claim{Owner: "w", LeaseFor: time.Hour, Limit: 10})
		must(t, err)
		for _, r := range got {
			if r.Workflow == "restored" {
				t.Errorf("%s of partition a is worked on", r.ID)
			}
		}
	}
	if err := reserve(t, l, "acme", "two"); !errors.Is(err, shards.ErrSplit) {
		t.Errorf("%v; want the tenant refused", err)
	}
}

// A process notices that the directory was restored from a backup: it sends nothing from the partition
// where a tenant was then, and begins nothing in the one where it would be placed.
func TestRestoredDirectory(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	old := ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 1, State: ledger.TenantActive}
	for _, p := range []ledger.Placement{{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive}, {Tenant: "globex", Partition: "b", Epoch: 1, State: ledger.TenantActive}} {
		must(t, all[0].Place(ctx, p, ledger.Placement{}))
		must(t, all[1].Own(ctx, ledger.Ownership{Tenant: p.Tenant, Epoch: p.Epoch, State: ledger.TenantActive}, ledger.Ownership{}))
	}
	l := opened(t, all, shards.Options{Cache: 1, Default: []string{"a"}})
	must(t, reserve(t, l, "acme", "one"))
	must(t, reserve(t, l, "globex", "one"))
	all[0].places = map[string]ledger.Placement{"acme": old}
	all[0].owned = map[string]ledger.Ownership{"acme": {Tenant: "acme", Epoch: 1, State: ledger.TenantActive}}
	if err := reserve(t, l, "acme", "two"); !errors.Is(err, shards.ErrSplit) {
		t.Errorf("%v; want the tenant refused", err)
	}
	must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "initech", Epoch: 2, State: ledger.TenantMoved}, ledger.Ownership{}))
	if err := reserve(t, l, "initech", "one"); !errors.Is(err, shards.ErrSplit) || all[0].places["initech"].Epoch > 0 {
		t.Errorf("%v; want a tenant refused that has moved to a partition that cannot be reached", err)
	}
	other := opened(t, all, shards.Options{Default: []string{"a"}}) // it has read the directory as it was restored
	must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "umbrella", Epoch: 1, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, reserve(t, other, "umbrella", "one"))
	if place := all[0].places["umbrella"]; place.Partition != "b" {
		t.Errorf("%+v; want it where its writes are", place)
	}
	must(t, reserve(t, l, "globex", "two"))
	if place := all[0].places["globex"]; place.Partition != "b" {
		t.Errorf("%+v; want it where its writes are", place)
	}
}

// While the directory cannot be read, a running process reads and decides the records of the tenants that
// it knows, and sends nothing.
func TestWithoutTheDirectory(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b"}})
	shop, err := orders.New(orders.Unique.Options())
	must(t, err)
	var reg connectors.Registry
	must(t, reg.Register("orders", shop.Destination()))
	g := guards.New(l, &reg, nil)
	e := engine.New(l, &reg, &engine.Options{Guards: g, Risks: []policies.RiskRule{{Name: "all"}}})
	t.Cleanup(func() { e.Close(); must(t, g.Close()) })
	w := charge("acme", "one")
	out, err := e.Do(engine.As(ctx, engine.Principal{Name: "agent", Role: engine.RoleAgent}), w)
	if err != nil || out.Status != ledger.StatusHeld {
		t.Fatalf("%s, %v; want it held", out.Text, err)
	}
	all[0].down = fmt.Errorf("%w: its machine is off", ledger.ErrUnavailable)
	if _, err := e.Resolve(ctx, "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "checked"}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("the decision: %v; want that the send is not made now", err)
	}
	if rec, err := l.Get(ctx, "acme", out.ID); err != nil || rec.State != ledger.Queued {
		t.Errorf("the record: %s, %v; want it approved", rec.Phase(), err)
	}
	if writes, _ := shop.Count(); writes != 0 {
		t.Errorf("%d sends; want none", writes)
	}
	if err := reserve(t, l, "globex", "one"); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a new tenant: %v; want it unavailable", err)
	}
}

// What is leased while the directory cannot be read is not worked on, unless it is known where the
// tenant is: the partition may have been restored.
func TestLeasedWithoutADirectory(t *testing.T) {
	all := partitions(2)
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b"}})
	must(t, reserve(t, l, "acme", "one"))
	must(t, reserve(t, all[1], "globex", "one"))
	all[0].down = fmt.Errorf("%w: its machine is off", ledger.ErrUnavailable)
	got, err := l.Claim(t.Context(), ledger.Claim{Owner: "w", LeaseFor: time.Hour, Limit: 10})
	if err != nil || len(got) != 1 || got[0].Tenant != "acme" {
		t.Errorf("%v, %v; want the write of the tenant that is known", got, err)
	}
}

// What a decision has left in a partition is not listed beside that of the partition where the tenant is.
func TestRefusedEntriesOfAnotherPartition(t *testing.T) {
	all := partitions(2)
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b"}})
	must(t, reserve(t, l, "acme", "one"))
	all[0].refused = []ledger.Refused{{Tenant: "acme"}, {Tenant: "unknown"}}
	s, err := l.QueueStats(t.Context())
	if err != nil || len(s.Refused) != 1 || s.Refused[0].Tenant != "unknown" {
		t.Errorf("%v, %v; want that of the tenant that is in no other partition", s.Refused, err)
	}
}

// A decision about a tenant in two partitions that was interrupted can be made again, and one that names
// a partition without the tenant changes nothing.
func TestInterruptedKeep(t *testing.T) {
	all, ctx := partitions(3), t.Context()
	for i, o := range []ledger.Ownership{{Epoch: 1, State: ledger.TenantActive}, {Epoch: 3, State: ledger.TenantActive}, {Epoch: 2, State: ledger.TenantMoved}} {
		o.Tenant = "acme"
		must(t, all[i].Own(ctx, o, ledger.Ownership{}))
	}
	must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 3, State: ledger.TenantActive}, ledger.Placement{}))
	l := opened(t, append(all, newPartition()), shards.Options{})
	for _, without := range []string{"c", "d"} {
		if err := l.Keep(ctx, "acme", without); !errors.Is(err, shards.ErrMove) || all[0].owned["acme"].Epoch != 1 || all[1].owned["acme"].Epoch != 3 {
			t.Errorf("partition %s: %v; want it refused, and nothing changed", without, err)
		}
	}
	must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 4, State: ledger.TenantMoved}, all[0].owned["acme"])) // the first step
	if found, err := l.Check(ctx); err != nil || len(found) != 1 || !strings.Contains(found[0].Text, "begins nothing") {
		t.Errorf("%v, %v; want that the tenant is named", found, err)
	}
	must(t, l.Keep(ctx, "acme", "b"))
	must(t, reserve(t, l, "acme", "one"))
}

// A tenant that is being placed is not moved.
func TestMoveOfATenantThatIsBeingPlaced(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 1, State: ledger.TenantDraining, Target: "a"}, ledger.Placement{}))
	must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantActive}, ledger.Ownership{}))
	l := opened(t, all, shards.Options{})
	for _, to := range []string{"a", "b"} {
		if err := l.Move(ctx, "acme", to, nil); !errors.Is(err, shards.ErrMove) {
			t.Errorf("to %s: %v; want it refused", to, err)
		}
	}
	must(t, reserve(t, l, "acme", "one"))
}

// Without the directory, what has moved is not reported as missing by the partition where it was.
func TestReadsWithAnOldDirectory(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b", "globex": "b"}, Cache: 1})
	must(t, reserve(t, l, "acme", "one"))
	must(t, reserve(t, l, "globex", "one"))
	all[0].down = fmt.Errorf("%w: its machine is off", ledger.ErrUnavailable)
	must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantMoved}, all[1].owned["acme"]))
	if _, err := l.Get(ctx, "acme", "wr_00000000000000000000000000000000"); !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a write: %v; want it unavailable", err)
	}
	if recs, err := l.List(ctx, ledger.Filter{Tenant: "acme"}); !errors.Is(err, ledger.ErrNotOwned) {
		t.Errorf("a list: %d, %v; want it unavailable", len(recs), err)
	}
	if recs, err := l.List(ctx, ledger.Filter{Tenant: "globex"}); err != nil || len(recs) != 1 {
		t.Errorf("a tenant that has not moved: %d, %v; want its write", len(recs), err)
	}
}

// What another process wrote just after a move is not reported as missing where the tenant was, however
// new the copy of the directory is: the engine would call the write not applied.
func TestMissingAfterAMove(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{Tenants: map[string]string{"acme": "b"}, Cache: time.Hour})
	must(t, reserve(t, l, "acme", "one"))
	owned, place := all[1].owned["acme"], all[0].places["acme"]
	must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantMoved}, owned))
	must(t, all[0].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 2, State: ledger.TenantActive, Previous: "b"}, place))
	must(t, reserve(t, all[0], "acme", "two"))
	rec, err := ledger.NewRecord(charge("acme", "two"))
	must(t, err)
	if _, err := l.Get(ctx, "acme", rec.ID); err != nil {
		t.Errorf("%v; want the write", err)
	}
}

// A partition that could not be reached when the outbox was no longer full learns it.
func TestOutboxThatIsNoLongerFull(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	l := opened(t, all, shards.Options{})
	_, err := all[1].SetNote(ctx, ledger.Note{Name: ledger.FullNote, Value: []byte(`{}`)})
	must(t, err)
	_, _, err = l.Notes(ctx, ledger.FullNote)
	must(t, err)
	if notes, _, err := all[1].Notes(ctx, ledger.FullNote); err != nil || len(notes) > 0 {
		t.Errorf("%v, %v; want none", notes, err)
	}
}

// Erasure reaches what a move that died has left where the tenant was.
func TestErasureAfterAMove(t *testing.T) {
	all, ctx := partitions(2), t.Context()
	must(t, all[1].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive, Previous: "a"}, ledger.Placement{}))
	l := opened(t, all, shards.Options{Cache: time.Millisecond})
	_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{Tenant: "acme", Kind: ledger.ErasureKind, ID: "request", Body: []byte(`{}`)}}})
	must(t, err)
	for range 2 {
		_, err = l.Erase(ctx, ledger.Erasing{Tenant: "acme", Erasure: "request"})
		must(t, err)
	}
	if want := []ledger.Ownership{{Tenant: "acme", Epoch: 2}}; !slices.Equal(all[0].forgotten, want) {
		t.Errorf("forgotten: %+v; want %+v", all[0].forgotten, want)
	}
}

// What a move has left is not deleted while a process may still read there.
func TestMoveToWhereATenantIs(t *testing.T) {
	all := partitions(2)
	must(t, all[1].Own(t.Context(), ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, all[0].Place(t.Context(), ledger.Placement{Tenant: "acme", Partition: "b", Epoch: 2, State: ledger.TenantActive, Previous: "a"}, ledger.Placement{}))
	l := opened(t, all, shards.Options{Cache: time.Hour})
	ended, end := context.WithCancel(t.Context())
	end()
	if err := l.Move(ended, "acme", "b", nil); !errors.Is(err, context.Canceled) || len(all[0].forgotten) > 0 {
		t.Errorf("%v, forgotten: %+v; want that it waits", err, all[0].forgotten)
	}
}

// The history of a tenant is in each partition where it was.
func TestHistoryAfterTwoMoves(t *testing.T) {
	all, ctx := partitions(3), t.Context()
	must(t, all[2].Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: 3, State: ledger.TenantActive}, ledger.Ownership{}))
	must(t, all[0].Place(ctx, ledger.Placement{Tenant: "acme", Partition: "c", Epoch: 3, State: ledger.TenantActive, Previous: "b"}, ledger.Placement{}))
	for i, p := range all {
		rec, err := ledger.NewRecord(charge("acme", fmt.Sprint(i)))
		must(t, err)
		_, _, err = p.Reserve(ctx, ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvHeld}}})
		must(t, err)
	}
	l, now := opened(t, all, shards.Options{}), time.Now()
	spans, err := l.History(ctx, ledger.Past{Tenant: "acme", Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Step: 2 * time.Hour})
	if err != nil || len(spans) != 1 || spans[0].Held != 3 {
		t.Errorf("%+v, %v; want three held writes", spans, err)
	}
}

// The directory must not change its partition: rates and stops are there too.
func TestAnotherDirectory(t *testing.T) {
	all := partitions(2)
	must(t, reserve(t, opened(t, all, shards.Options{}), "acme", "one"))
	_, err := shards.Open(t.Context(), configured(all), shards.Options{Home: "b"})
	if !errors.Is(err, ledger.ErrPartition) || !strings.Contains(err.Error(), `"a" has a directory`) {
		t.Errorf("%v; want it refused", err)
	}
}

// What cannot be right is refused before anything is opened, or changed.
func TestBadConfiguration(t *testing.T) {
	for want, c := range map[string]struct {
		names []string
		o     shards.Options
	}{
		"there are 0":                        {},
		`"a" is named twice`:                 {names: []string{"a", "a"}},
		`"A b" is no name`:                   {names: []string{"A b"}},
		`in "z", which is not configured`:    {[]string{"a"}, shards.Options{Home: "z"}},
		`go to "z", which is not configured`: {[]string{"a"}, shards.Options{Default: []string{"z"}}},
		`"acme" goes to "z", which is`:       {[]string{"a"}, shards.Options{Tenants: map[string]string{"acme": "z"}}},
	} {
		if err := shards.Check(c.names, c.o); !errors.Is(err, shards.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	one := newPartition()
	_, err := shards.Open(t.Context(), configured([]*partition{one, one}), shards.Options{})
	if !errors.Is(err, ledger.ErrPartition) {
		t.Errorf("two partitions in one database: %v; want a refusal", err)
	}
}
