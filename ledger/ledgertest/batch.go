package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// everything is what a ledger holds of tenant a.
type everything struct {
	Records   []ledger.Record
	Events    map[ledger.ID][]ledger.Event
	Documents []ledger.Document
	Changes   []ledger.Change
}

func (h *harness) everything() everything {
	h.Helper()
	all := everything{Records: h.list(ledger.Filter{Tenant: "a", Limit: 1000}), Events: map[ledger.ID][]ledger.Event{}}
	for i, r := range all.Records {
		all.Events[r.ID] = h.events(r)
		all.Records[i].Now = time.Time{}
	}
	documents, _, err := h.ledger.FindDocuments(context.Background(), ledger.DocumentQuery{Tenant: "a", Kind: "step", Limit: 1000})
	if err != nil {
		h.Fatalf("find documents: %v", err)
	}
	for _, p := range documents {
		p.Now = time.Time{}
		all.Documents = append(all.Documents, p)
	}
	all.Changes = h.followed(ledger.Following{Limit: 1000})
	return all
}

// untouched says that nothing has changed since.
func (h *harness) untouched(before everything, what string) {
	h.Helper()
	after := h.everything()
	if reflect.DeepEqual(before, after) { // much faster, and nearly always so
		return
	}
	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("%s: something was changed (-before +after):\n%s", what, diff)
	}
}

// part adds something to a batch.
type part func(*ledger.Batch)

func batchOf(parts ...part) (f ledger.Batch) {
	for _, add := range parts {
		add(&f)
	}
	return f
}

func writes(p ledger.Document) part {
	return func(f *ledger.Batch) { f.Documents = append(f.Documents, p) }
}

func restsOn(p ledger.Document) part {
	return func(f *ledger.Batch) { f.Unchanged = append(f.Unchanged, p) }
}

func reserves(res ledger.Reservation) part {
	return func(f *ledger.Batch) { f.Reserve = &res }
}

func changes(r ledger.Record, events ...ledger.Event) part {
	return func(f *ledger.Batch) {
		f.Append = append(f.Append, ledger.Appending{ID: r.ID, Fence: r.Fence, Events: events})
	}
}

// fixture is a ledger with documents and writes in it, and the parts of batches on
// them.
type fixture struct {
	sound map[string]part // what can be done
	wrong map[string]wrong
}

type wrong struct {
	part part
	is   error
}

// fixture fills the ledger.
func (h *harness) fixture() fixture {
	h.Helper()
	old := h.put(document("a", "step"))
	step := h.put(old)
	basis := h.put(document("a", "basis"))
	first := h.fresh(update("a", "x", 1), announced)
	h.fresh(update("a", "x", 2)) // behind the first
	doubted := h.fresh(wish("a", "doubted"), announced)
	prior := h.fresh(named("a", "prior", "invoice 7"), announced)
	changed := wish("a", "doubted")
	changed.Expect["state"] = "closed"
	misfit := h.reservation(wish("a", "misfit"))
	misfit.Record.ID = "wr_0"
	fenced := doubted
	fenced.Fence--
	absent := document("a", "basis")
	return fixture{
		sound: map[string]part{
			"document": writes(step), "new document": writes(document("a", "new")), "unchanged": restsOn(basis),
			"reserve": reserves(h.reservation(update("a", "x", 3), announced)),
			"append":  changes(first, sent, seen, verified), // frees the one behind it
		},
		wrong: map[string]wrong{
			"stale document":         {writes(old), ledger.ErrStale},
			"document that is there": {writes(absent), ledger.ErrStale},
			"stale basis":            {restsOn(old), ledger.ErrStale},
			"blocked":                {reserves(h.reservation(named("a", "w", "invoice 7"))), ledger.ErrBlocked},
			"another digest":         {reserves(h.reservation(changed)), ledger.ErrDigestMismatch},
			"illegal first event":    {reserves(h.reservation(wish("a", "w"), sent)), ledger.ErrIllegalMove},
			"no proper reservation":  {reserves(misfit), nil},
			"fenced":                 {changes(fenced, sent), ledger.ErrFenced},
			"illegal":                {changes(doubted, verified), ledger.ErrIllegalMove},
			"illegal after the rest": {changes(prior, sent, seen, verified, sent), ledger.ErrIllegalMove},
			"no such write":          {changes(ledger.Record{ID: "wr_0"}, sent), ledger.ErrNotFound},
		},
	}
}

// refusedBatch files what must be refused, and says that nothing was changed.
func (h *harness) refusedBatch(before everything, f ledger.Batch, want error, what string) {
	h.Helper()
	did, err := h.ledger.Commit(context.Background(), f)
	if err == nil || want != nil && !errors.Is(err, want) {
		h.Fatalf("%s: %+v, error %v, want %v", what, did, err, want)
	}
	h.untouched(before, what)
}

// awaitWork subscribes to work. The function that it returns fails the test if none is announced.
func (h *harness) awaitWork() (notified func()) {
	h.Helper()
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	woken := h.ledger.Woken(ctx)
	return func() {
		h.Helper()
		defer end()
		select {
		case <-woken:
		case <-ctx.Done():
			h.Error("no worker was woken")
		}
	}
}

var batches = map[string]scenario{
	"all or nothing": {
		"of a batch that fails nothing is left, whichever part fails and whatever else it contains",
		func(h *harness) {
			d := h.fixture()
			before := h.everything()
			names := slices.Sorted(maps.Keys(d.sound))
			for reason, w := range d.wrong {
				for set := range 1 << len(names) {
					parts, with := []part{}, []string{reason}
					for i, name := range names {
						if set&(1<<i) != 0 {
							parts, with = append(parts, d.sound[name]), append(with, name)
						}
					}
					f := batchOf(append(parts, w.part)...)
					if clashes(f, with) {
						continue
					}
					h.refusedBatch(before, f, w.is, strings.Join(with, " with "))
				}
			}
			var all []part
			for _, name := range names {
				all = append(all, d.sound[name])
			}
			did := h.file(batchOf(all...))
			if len(did.Documents) != 2 || !did.Fresh || did.Reserved.State != ledger.Queued || len(did.Appended) != 1 || did.Appended[0].State != ledger.Settled || did.Now.IsZero() {
				h.Errorf("committed %+v", did)
			}
			for _, p := range did.Documents {
				h.sameDocument(p, h.document(p))
			}
			h.same(did.Reserved, h.get(did.Reserved))
			h.same(did.Appended[0], h.get(did.Appended[0]))
			second := h.get(ledger.Record{Tenant: "a", ID: h.id(update("a", "x", 2))})
			if second.QueuedBehind != "" || second.Due.IsZero() || did.Reserved.QueuedBehind != second.ID {
				h.Errorf("the one behind what was settled: behind %q, due %s; the new one is behind %q", second.QueuedBehind, second.Due, did.Reserved.QueuedBehind)
			}
		},
	},
	"several writes": {
		"writes that are changed together are changed in order, and stay as they were when the last one cannot be",
		func(h *harness) {
			first := h.fresh(update("a", "x", 1), announced)
			second := h.fresh(update("a", "x", 2))
			third := h.fresh(update("a", "x", 3))
			before := h.everything()
			h.refusedBatch(before, batchOf(changes(first, sent, seen, verified), changes(second, announced, sent), changes(third, announced)), ledger.ErrIllegalMove, "one out of turn")
			did := h.file(batchOf(changes(first, sent, seen, verified), changes(second, announced, sent, seen, verified), changes(third, announced)))
			for i, want := range []ledger.State{ledger.Settled, ledger.Settled, ledger.Sending} {
				if did.Appended[i].State != want {
					h.Errorf("write %d is %s, want %s", i+1, did.Appended[i].State, want)
				}
				h.same(did.Appended[i], h.get(did.Appended[i]))
			}
		},
	},
	"how things stand": {
		"what is returned is the state of each write after the whole batch, also where a later part of it changed it once more",
		func(h *harness) {
			first := h.fresh(update("a", "x", 1), announced)
			late := changes(first, ledger.Event{Kind: ledger.EvLate, Ref: "17"})
			did := h.file(batchOf(late, reserves(h.reservation(update("a", "x", 2))), changes(first, sent, seen, verified)))
			if did.Reserved.QueuedBehind != "" || did.Reserved.Due.IsZero() {
				h.Errorf("what was freed: behind %q, due %s", did.Reserved.QueuedBehind, did.Reserved.Due)
			}
			h.same(did.Reserved, h.get(did.Reserved))
			for _, rec := range did.Appended {
				h.same(rec, h.get(first))
			}
		},
	},
	"repeat": {
		"a step that is repeated finds its write, and its document can still be committed",
		func(h *harness) {
			res := h.reservation(wish("a", "w1"), announced)
			rec := h.reserve(res)
			did := h.file(batchOf(reserves(res), writes(document("a", "s1"))))
			if did.Fresh || len(did.Documents) != 1 {
				h.Errorf("fresh %v, documents %v", did.Fresh, did.Documents)
			}
			h.same(rec, did.Reserved)
			h.document(document("a", "s1"))
		},
	},
	"blocked says by whom": {
		"a gate reports which workflow has begun the operation",
		func(h *harness) {
			prior := h.fresh(named("a", "w1", "invoice 7"), announced)
			_, err := h.ledger.Commit(context.Background(), batchOf(reserves(h.reservation(named("a", "w2", "invoice 7"))), writes(document("a", "s1"))))
			if blocked, ok := errors.AsType[*ledger.BlockedError](err); !ok || blocked.Prior.ID != prior.ID {
				h.Errorf("error %v", err)
			}
			h.noDocument(document("a", "s1"))
		},
	},
	"no owner's": {
		"a write that is reserved without an owner is work for any worker",
		func(h *harness) {
			for i, more := range []part{func(*ledger.Batch) {}, restsOn(document("a", "absent"))} { // drivers may do them otherwise
				res := h.reservation(wish("a", fmt.Sprint("w", i)))
				res.Owner, res.LeaseFor = "", 0
				notified := h.awaitWork()
				did := h.file(batchOf(reserves(res), writes(document("a", fmt.Sprint("s", i))), more))
				notified()
				h.taken(did.Reserved, ledger.Claim{})
			}
		},
	},
	"late": {
		"evidence of a past holder may be committed with a document",
		func(h *harness) {
			rec := h.fresh(wish("a", "w1"), announced)
			late := changes(ledger.Record{ID: rec.ID, Fence: rec.Fence + 7}, ledger.Event{Kind: ledger.EvLate, Ref: "17"})
			h.file(batchOf(late, writes(document("a", "s1"))))
			if events := h.events(rec); events[len(events)-1].Ref != "17" {
				h.Errorf("events %v", events)
			}
		},
	},
	"forward or back": {
		"a write is in the ledger exactly when the decision to make it is, whatever other gates decide at the same time",
		func(h *harness) {
			for round := range 10 {
				saga := h.put(document("a", fmt.Sprint("saga", round)))
				res := h.reservation(wish("a", fmt.Sprint("w", round)))
				var forward, back atomic.Bool
				together(8, func(i int) {
					p := saga
					p.State = "back"
					f := batchOf(writes(p))
					if i%2 == 0 {
						p.State = "forward"
						f = batchOf(writes(p), reserves(res))
					}
					_, err := h.ledger.Commit(context.Background(), f)
					switch {
					case err == nil && i%2 == 0:
						forward.Store(true)
					case err == nil:
						back.Store(true)
					case !errors.Is(err, ledger.ErrStale):
						h.Errorf("file: %v", err)
					}
				})
				_, err := h.ledger.Get(context.Background(), "a", res.Record.ID)
				state := h.document(saga).State
				if forward.Load() == back.Load() || (err == nil) != forward.Load() || (state == "forward") != forward.Load() {
					h.Errorf("forward %v, back %v, document %q, write: %v", forward.Load(), back.Load(), state, err)
				}
			}
		},
	},
	"one reservation": {
		"of any number of gates of one step, one makes its document and its write",
		func(h *harness) {
			h.oneWins(16, func(int) error {
				did, err := h.ledger.Commit(context.Background(), batchOf(writes(document("a", "s1")), reserves(h.reservation(named("a", "w1", "op")))))
				if err == nil && !did.Fresh {
					h.Error("the write is not fresh")
				}
				return err
			})
		},
	},
	"bounds": {
		"a batch of nothing, of too much, or of one document twice is a mistake, and is reported as one",
		func(h *harness) {
			many := func(n int, body string) (f ledger.Batch) {
				for i := range n {
					p := document("a", fmt.Sprint("s", i))
					p.Body = json.RawMessage(body)
					f.Documents = append(f.Documents, p)
				}
				return f
			}
			large := `"` + strings.Repeat("n", 1<<20-2) + `"`
			for says, f := range map[string]ledger.Batch{
				"0 parts": {}, "101 parts": many(101, "{}"), "together": many(5, large),
				"twice":               {Documents: []ledger.Document{document("a", "s1"), document("a", "s1")}},
				`"s1" is in it twice`: {Documents: []ledger.Document{document("a", "s1")}, Unchanged: []ledger.Document{document("a", "s1")}},
				"tenant":              {Unchanged: []ledger.Document{{Kind: "step", ID: "s1"}}},
			} {
				if _, err := h.ledger.Commit(context.Background(), f); err == nil || !strings.Contains(err.Error(), says) {
					h.Errorf("error %v, want one that says %q", err, says)
				}
			}
			h.file(many(100, "{}"))
			if _, total := h.find(steps(nil)); total != 100 {
				h.Errorf("%d documents", total)
			}
		},
	},
}

// clashes reports whether parts cannot be in one batch at all: two reservations,
// or one document twice.
func clashes(f ledger.Batch, with []string) bool {
	reservations, seen := 0, map[string]bool{}
	for _, name := range with {
		if slices.Contains([]string{"reserve", "blocked", "another digest", "illegal first event", "no proper reservation"}, name) {
			reservations++
		}
	}
	for _, p := range slices.Concat(f.Documents, f.Unchanged) {
		if seen[p.ID] {
			return true
		}
		seen[p.ID] = true
	}
	return reservations > 1
}

// outboxBatches need an outbox.
var outboxBatches = map[string]scenario{
	"behind what was enqueued": {
		"a batch does not overtake the outbox",
		func(h *harness) {
			h.enqueue(update("a", "x", 1), update("a", "x", 2))
			did := h.file(batchOf(reserves(h.reservation(update("a", "x", 3), announced)), writes(document("a", "s1"))))
			if did.Reserved.QueuedBehind != h.id(update("a", "x", 2)) || did.Reserved.State != ledger.Queued {
				h.Errorf("behind %q, %s: it overtook what was enqueued", did.Reserved.QueuedBehind, did.Reserved.State)
			}
			first := h.get(ledger.Record{Tenant: "a", ID: h.id(update("a", "x", 1))})
			second := h.get(ledger.Record{Tenant: "a", ID: h.id(update("a", "x", 2))})
			if first.QueuedBehind != "" || second.QueuedBehind != first.ID {
				h.Errorf("the first is behind %q, the second behind %q", first.QueuedBehind, second.QueuedBehind)
			}
		},
	},
	"enqueued as well": {
		"a write that was enqueued and is reserved too is one write",
		func(h *harness) {
			h.enqueue(wish("a", "w1"))
			did := h.file(batchOf(reserves(h.reservation(wish("a", "w1"), announced)), writes(document("a", "s1"))))
			if did.Fresh || did.Reserved.State != ledger.Queued || did.Reserved.Owner != "" {
				h.Errorf("fresh %v, %s, owner %q: it was enqueued before", did.Fresh, did.Reserved.State, did.Reserved.Owner)
			}
		},
	},
	"refused": {
		"what is taken in before a batch stays taken in when the batch is refused, and nothing else",
		func(h *harness) {
			old := h.put(document("a", "s1"))
			h.put(old)
			h.enqueue(update("a", "x", 1))
			h.overtaken(batchOf(reserves(h.reservation(update("a", "x", 2))), writes(old)))
			h.absent(update("a", "x", 2))
			if diff := cmp.Diff([]ledger.ID{h.id(update("a", "x", 1))}, h.admitted()); diff != "" {
				h.Errorf("lent (-want +got):\n%s", diff)
			}
		},
	},
}
