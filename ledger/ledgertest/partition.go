package ledgertest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// RunPartitions runs the suite of ledgers that are partitions. Open must return two empty ledgers
// each time it is called, of which none has joined, and clean up through t.
func RunPartitions(t *testing.T, open func(t *testing.T) [2]ledger.Partition, o Options) {
	for _, name := range slices.Sorted(maps.Keys(partitions)) {
		t.Run(name, func(t *testing.T) {
			s := partitions[name]
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("reason: %s", s.reason)
				}
			})
			both := open(t)
			p := &parted{harness: &harness{T: t, ledger: both[0], options: o, sleep: o.Sleep}, from: both[0], to: both[1]}
			if s.joined {
				p.must(p.from.Join(t.Context(), "a", nil))
				p.must(p.to.Join(t.Context(), "b", p.from))
				p.must(p.from.Own(t.Context(), ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantActive}, ledger.Ownership{}))
			}
			s.run(p)
		})
	}
}

// parted are two partitions. The harness is of the first, which owns tenant acme.
type parted struct {
	*harness
	from, to ledger.Partition
}

type partitionScenario struct {
	reason string
	joined bool
	run    func(p *parted)
}

func (p *parted) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// own changes what the first partition keeps of acme.
func (p *parted) own(epoch int64, state ledger.TenantState, wasEpoch int64, was ledger.TenantState) {
	p.Helper()
	p.must(p.from.Own(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: epoch, State: state}, ledger.Ownership{Tenant: "acme", Epoch: wasEpoch, State: was}))
}

// moves acme to the second partition.
func (p *parted) moves() {
	p.Helper()
	p.own(1, ledger.TenantDraining, 1, ledger.TenantActive)
	p.own(2, ledger.TenantMoved, 1, ledger.TenantDraining)
	p.receives(true)
}

func (p *parted) receives(want bool) {
	p.Helper()
	fresh, err := p.to.Receive(p.Context(), p.from, ledger.Ownership{Tenant: "acme", Epoch: 2})
	if err != nil || fresh != want {
		p.Fatalf("receive: %v, %v; want %v", fresh, err, want)
	}
}

// refusesNew checks that a partition begins nothing of a tenant.
func (p *parted) refusesNew(l ledger.Partition, tenant string) {
	p.Helper()
	if _, _, err := l.Reserve(p.Context(), p.reservation(wish(tenant, "refused"), announced)); !errors.Is(err, ledger.ErrNotOwned) || !errors.Is(err, ledger.ErrUnavailable) {
		p.Errorf("reserve for %s: %v; want it refused as another partition's", tenant, err)
	}
	first := ledger.Document{Tenant: tenant, Kind: "k", ID: "refused", Body: json.RawMessage(`{}`)}
	res := p.reservation(wish(tenant, "refused too"))
	for what, f := range map[string]ledger.Batch{"a document": {Documents: []ledger.Document{first}}, "a write": {Reserve: &res}, "both": {Documents: []ledger.Document{first}, Reserve: &res}} {
		if _, err := l.Commit(p.Context(), f); !errors.Is(err, ledger.ErrNotOwned) {
			p.Errorf("commit of %s for %s: %v; want it refused as another partition's", what, tenant, err)
		}
	}
	if p.options.Enqueue != nil {
		if err := p.options.Enqueue(p.T, l, true, wish(tenant, "enqueued")); !errors.Is(err, ledger.ErrNotOwned) {
			p.Errorf("enqueue for %s: %v; want it refused as another partition's", tenant, err)
		}
	}
	if found, err := l.List(p.Context(), ledger.Filter{Tenant: tenant}); err != nil || slices.ContainsFunc(found, func(r ledger.Record) bool { return r.Workflow != "mine" && r.Workflow != "leased" }) {
		p.Errorf("%v, %v; want nothing of the refused ones", ids(found), err)
	}
}

var partitions = map[string]partitionScenario{
	"other tenants": {
		"a process with an old directory would send what another partition's worker sends", true,
		func(p *parted) {
			p.refusesNew(p.from, "globex")
			p.refusesNew(p.to, "acme")
			p.fresh(wish("acme", "mine"), announced)
			p.put(ledger.Document{Tenant: "acme", Kind: "k", ID: "mine", Body: json.RawMessage(`{}`)})
		},
	},
	"no partition": {
		"a ledger that is no partition has all tenants, and keeps those that it has when it becomes one", false,
		func(p *parted) {
			p.fresh(wish("acme", "mine"), announced)
			p.put(ledger.Document{Tenant: "globex", Kind: "k", ID: "mine", Body: json.RawMessage(`{}`)})
			p.must(p.from.Join(p.Context(), "a", nil))
			p.must(p.from.Join(p.Context(), "a", nil))
			p.fresh(wish("acme", "leased"), announced)
			p.fresh(wish("globex", "mine"), announced)
			p.refusesNew(p.from, "initech")
			if err := p.from.Join(p.Context(), "b", nil); !errors.Is(err, ledger.ErrPartition) {
				p.Errorf("joined under another name: %v; want a refusal: two partitions would share a database", err)
			}
		},
	},
	"digest key": {
		"tombstones of a moved tenant must still stop repeats, by digests that cannot be made again", false,
		func(p *parted) {
			p.must(p.from.Join(p.Context(), "a", nil))
			p.must(p.to.Join(p.Context(), "b", p.from))
			p.must(p.to.Join(p.Context(), "b", p.from))
			if !p.to.KeyDigests().Same(p.from.KeyDigests()) {
				p.Error("two partitions with two digest keys")
			}
		},
	},
	"other digest key": {
		"a ledger with writes keeps its digest key, so that it cannot share tenants with another one", false,
		func(p *parted) {
			other := *p.harness
			other.ledger = p.to
			other.fresh(wish("globex", "mine"), announced)
			p.must(p.from.Join(p.Context(), "a", nil))
			if err := p.to.Join(p.Context(), "b", p.from); !errors.Is(err, ledger.ErrPartition) {
				p.Errorf("%v; want a refusal", err)
			}
		},
	},
	"draining": {
		"what is under way ends, and nothing begins", true,
		func(p *parted) {
			p.append(p.fresh(wish("acme", "mine"), announced), sent, deferred(0))
			leased := p.fresh(wish("acme", "leased"), announced)
			doc := p.put(ledger.Document{Tenant: "acme", Kind: "k", ID: "mine", Due: time.Now().Add(-time.Hour), Body: json.RawMessage(`{}`)})
			p.own(1, ledger.TenantDraining, 1, ledger.TenantActive)
			p.refusesNew(p.from, "acme")
			p.nothing(ledger.Claim{Limit: 10})
			p.nothing(ledger.Claim{Tenant: "acme", ID: p.made[0].ID, Early: true})
			if due := p.due("k", 10); len(due) > 0 {
				p.Errorf("%d documents are due; want none of a tenant that is being moved", len(due))
			}
			if n, err := p.from.Leased(p.Context(), "acme"); err != nil || n != 1 {
				p.Errorf("%d writes are leased, %v; want 1", n, err)
			}
			p.append(leased, sent, seen, verified)
			if n, err := p.from.Leased(p.Context(), "acme"); err != nil || n != 0 {
				p.Errorf("%d writes are leased, %v; want none", n, err)
			}
			doc.Done = true
			p.put(doc)
			p.own(1, ledger.TenantActive, 1, ledger.TenantDraining)
			p.taken(p.made[0], ledger.Claim{Limit: 10})
			p.fresh(wish("acme", "again"), announced)
		},
	},
	"moved": {
		"what was copied must not change behind the copy", true,
		func(p *parted) {
			rec := p.fresh(wish("acme", "mine"), announced)
			doc := p.put(ledger.Document{Tenant: "acme", Kind: "k", ID: "mine", Body: json.RawMessage(`{}`)})
			p.own(1, ledger.TenantDraining, 1, ledger.TenantActive)
			p.own(2, ledger.TenantMoved, 1, ledger.TenantDraining)
			p.refusesNew(p.from, "acme")
			p.refused(ledger.ErrNotOwned, rec, rec.Fence, sent)
			p.refused(ledger.ErrNotOwned, rec, rec.Fence, sent, seen, verified)
			p.refused(ledger.ErrNotOwned, rec, rec.Fence, ledger.Event{Kind: ledger.EvLate, By: "one"})
			doc.Done = true
			if _, err := p.from.Commit(p.Context(), ledger.Batch{Documents: []ledger.Document{doc}}); !errors.Is(err, ledger.ErrNotOwned) {
				p.Errorf("commit: %v; want a refusal", err)
			}
			if _, err := p.from.Erase(p.Context(), ledger.Erasing{Tenant: "acme", Erasure: "e1", Writes: []ledger.ID{rec.ID}}); !errors.Is(err, ledger.ErrNotOwned) {
				p.Errorf("erase: %v; want a refusal: the copy would keep what it erases", err)
			}
			if err := p.from.Own(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantMoved}, ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantDraining}); !errors.Is(err, ledger.ErrStale) {
				p.Errorf("own: %v; want it stale", err)
			}
		},
	},
	"received": {
		"a moved tenant finds everything that it had, and repeats are still repeats", true,
		func(p *parted) {
			w := wish("acme", "done")
			w.IdempotencyKey = "invoice 7"
			done := p.append(p.fresh(w, announced), sent, seen, verified)
			old := p.append(p.fresh(wish("acme", "old"), announced), sent, seen, verified)
			p.sleep(2 * time.Minute)
			if _, err := p.from.Prune(p.Context(), ledger.Prune{Keep: time.Minute, Destinations: map[string]time.Duration{}, Remember: 24 * time.Hour}); err != nil {
				p.Fatal(err)
			}
			one, two := about("k", "first"), about("k", "second")
			one.Tenant, two.Tenant = "acme", "acme"
			first, second := p.fresh(one, announced), p.fresh(two, announced)
			review := p.append(p.fresh(wish("acme", "review"), announced), sent, escalated)
			doc := p.put(ledger.Document{Tenant: "acme", Kind: "k", ID: "mine", Collection: "c", Subject: "s", Trace: "t", Due: time.Now().Add(time.Hour), Body: json.RawMessage(`{"a":1}`)})
			if p.options.Enqueue != nil {
				p.must(p.options.Enqueue(p.T, p.from, true, wish("acme", "enqueued")))
			}
			p.sleep(2 * lease) // the worker of the first is gone
			p.moves()
			p.receives(false)
			if s, err := p.from.QueueStats(p.Context()); err != nil || s.Outbox != 0 {
				p.Errorf("%d entries in the outbox of the source, %v; want none that is to be taken in", s.Outbox, err)
			}
			p.must(p.from.Forget(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: 2}))
			there := *p.harness
			there.ledger = p.to
			for _, was := range []ledger.Record{done, old, first, second, review} {
				rec := there.get(was)
				if rec.Fence <= was.Fence {
					p.Errorf("write %s has fence %d, as before; want its worker fenced off", was.Workflow, rec.Fence)
				}
				if was.Settlement == "" {
					there.same(was, rec, "Fence", "Owner", "LeaseUntil", "LeaseFor")
					there.rebuilt(rec)
				}
			}
			repeat := p.reservation(w, announced)
			if rec := there.replayed(repeat); rec.Settlement != ledger.Verified {
				p.Errorf("a repeat is %s; want the outcome", rec.Phase())
			}
			w.Workflow = "other"
			if _, _, err := p.to.Reserve(p.Context(), p.reservation(w)); !errors.Is(err, ledger.ErrBlocked) {
				p.Errorf("the same operation in another workflow: %v; want it blocked", err)
			}
			if _, err := p.to.Append(p.Context(), first.ID, first.Fence, sent); !errors.Is(err, ledger.ErrFenced) {
				p.Errorf("an event of the worker from before the move: %v; want it fenced off", err)
			}
			if found, err := p.to.Find(p.Context(), ledger.Search{Tenant: "acme", Query: "first"}); err != nil || len(found.Records) != 1 {
				p.Errorf("the search found %d, %v; want the write", len(found.Records), err)
			}
			there.sameDocument(doc, there.document(doc))
			there.taken(first, ledger.Claim{Tenant: "acme", ID: first.ID, Early: true})
			ended := there.append(there.get(first), sent, seen, verified)
			if got := there.get(second); got.QueuedBehind != "" {
				p.Errorf("the second write waits behind %q after %s ended; want it free", got.QueuedBehind, ended.ID)
			}
			there.nothing(ledger.Claim{Tenant: "acme", ID: done.ID, Early: true})
			if p.options.Enqueue != nil {
				rec, err := ledger.NewRecord(wish("acme", "enqueued"))
				p.must(err)
				if _, err := p.to.Get(p.Context(), "acme", rec.ID); err != nil {
					p.Errorf("the enqueued write: %v", err)
				}
			}
			if _, err := p.from.Get(p.Context(), "acme", done.ID); !errors.Is(err, ledger.ErrNotFound) {
				p.Errorf("the source: %v; want nothing left", err)
			}
			if _, err := p.from.BeginSealing(p.Context()); err != nil {
				p.Fatal(err)
			}
			if runs, err := p.from.Unsealed(p.Context(), 0, 100); err != nil || len(runs) != 0 {
				p.Errorf("%d runs, %v; want none in the source", len(runs), err)
			}
			if _, err := p.to.BeginSealing(p.Context()); err != nil {
				p.Fatal(err)
			}
			runs, err := p.to.Unsealed(p.Context(), 0, 1000)
			events := map[ledger.ID]int{}
			for _, r := range runs {
				events[r.ID] += len(r.Events)
				if r.Unread != nil {
					p.Error(r.Unread)
				}
			}
			if n := len(there.events(review)); err != nil || events[review.ID] != n {
				p.Errorf("%d of %d events of a write are to be sealed, %v", events[review.ID], n, err)
			}
		},
	},
	"ignored": {
		"what a partition still has of a tenant from before, and a decision ignored, does not come back with the tenant", true,
		func(p *parted) {
			there := *p.harness
			there.ledger = p.to
			own := ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantActive}
			p.must(p.to.Own(p.Context(), own, ledger.Ownership{}))
			ignored := there.fresh(wish("acme", "ignored"))
			p.must(p.to.Own(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: 1, State: ledger.TenantMoved}, own))
			mine := p.fresh(wish("acme", "mine"))
			p.sleep(2 * lease)
			p.moves()
			there.get(mine)
			if _, err := p.to.Get(p.Context(), "acme", ignored.ID); !errors.Is(err, ledger.ErrNotFound) {
				p.Errorf("the ignored write: %v; want it gone", err)
			}
		},
	},
	"given up": {
		"a move that was given up must not be ended by a program that has not noticed", true,
		func(p *parted) {
			p.fresh(wish("acme", "mine"), announced)
			p.own(1, ledger.TenantDraining, 1, ledger.TenantActive)
			p.own(2, ledger.TenantMoved, 1, ledger.TenantDraining)
			p.must(p.to.Own(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: 2, State: ledger.TenantMoved}, ledger.Ownership{}))
			if _, err := p.to.Receive(p.Context(), p.from, ledger.Ownership{Tenant: "acme", Epoch: 2}); !errors.Is(err, ledger.ErrStale) {
				p.Errorf("receive: %v; want it stale", err)
			}
			p.refusesNew(p.to, "acme")
			p.own(2, ledger.TenantActive, 2, ledger.TenantMoved)
			if err := p.from.Forget(p.Context(), ledger.Ownership{Tenant: "acme", Epoch: 2}); !errors.Is(err, ledger.ErrStale) {
				p.Errorf("forget: %v; want it refused: the tenant is here", err)
			}
			if _, err := p.to.Receive(p.Context(), p.from, ledger.Ownership{Tenant: "acme", Epoch: 3}); !errors.Is(err, ledger.ErrStale) {
				p.Errorf("receive: %v; want it stale: the tenant has not moved", err)
			}
		},
	},
	"directory": {
		"two programs that decide about a tenant at once must not both succeed", true,
		func(p *parted) {
			dir := ledger.Directory(p.from)
			if got, err := dir.Placement(p.Context(), "acme"); err != nil || got.Epoch != 0 {
				p.Errorf("%+v, %v; want none", got, err)
			}
			first := ledger.Placement{Tenant: "acme", Partition: "a", Epoch: 1, State: ledger.TenantActive}
			p.must(dir.Place(p.Context(), first, ledger.Placement{}))
			second := first
			second.State, second.Target = ledger.TenantDraining, "b"
			for what, err := range map[string]error{
				"a second first": dir.Place(p.Context(), first, ledger.Placement{}),
				"another state":  dir.Place(p.Context(), second, second),
			} {
				if !errors.Is(err, ledger.ErrStale) {
					p.Errorf("%s: %v; want it stale", what, err)
				}
			}
			p.must(dir.Place(p.Context(), second, first))
			all, err := dir.Placements(p.Context())
			if diff := cmp.Diff([]ledger.Placement{second}, all); err != nil || diff != "" {
				p.Errorf("%v (-want +got):\n%s", err, diff)
			}
			owned, err := p.from.Ownerships(p.Context())
			if diff := cmp.Diff([]ledger.Ownership{{Tenant: "acme", Epoch: 1, State: ledger.TenantActive}}, owned, cmpopts.EquateEmpty()); err != nil || diff != "" {
				p.Errorf("%v (-want +got):\n%s", err, diff)
			}
		},
	},
}
