// Package ledgertest is the suite that every ledger passes.
//
// A driver calls [Run] from a test of its own. What only that driver can get
// wrong (its files, its connections, its clock) belongs into tests beside it.
//
// The package does not know how a ledger stores anything: it sees the
// interface, and how time is moved.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Options say how the suite moves time.
type Options struct {
	// Sleep lets d pass on the clock of the ledger. Default: every scenario,
	// and the opening of its ledger, runs in a bubble of testing/synctest, and
	// the sleep is [time.Sleep] on its clock.
	Sleep func(d time.Duration)
	// Enqueue puts intents into the outbox of the ledger in one transaction of
	// a caller, which is then committed or rolled back, and returns the first
	// error of the enqueuing. Default: the ledger has no outbox, and nothing is
	// asked of it.
	Enqueue func(t *testing.T, l ledger.Ledger, commit bool, ws ...intent.WriteIntent) error
	// EnqueueSealed is Enqueue, committed, of an outbox that seals. Required with it.
	EnqueueSealed func(t *testing.T, l ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error
	// Places applies a function to each place of a cursor of changes, and leaves out those before all
	// changes, in a ledger whose cursors have several. Default: a cursor has one place.
	Places func(cursor string, f func(ledger.Place) ledger.Place) (string, error)
	// OneIn runs one scenario in so many of each subject, at least one, where a
	// short run of the tests wants a part of the suite. Default: all.
	OneIn int
}

// scenario is one thing that a ledger must do.
type scenario struct {
	reason string // what goes wrong in the world when it does not
	run    func(h *harness)
}

// Run runs the suite. Open must return an empty ledger each time it is called
// and clean up through t.
func Run(t *testing.T, open func(t *testing.T) ledger.Ledger, o Options) {
	subjects := map[string]map[string]scenario{
		"reserve":        reserving,
		"claim":          claiming,
		"append":         appending,
		"late":           late,
		"read":           reading,
		"tenant":         tenants,
		"operation":      operations,
		"look-up":        lookups,
		"model":          operationModel,
		"round trip":     roundTrips,
		"concurrency":    concurrency,
		"queue":          queueOrder,
		"line join":      joining,
		"line race":      queueRaces,
		"key digest":     keyDigests,
		"fairness":       fairness,
		"notes":          noting,
		"prune":          pruning,
		"erase":          erasing,
		"hold":           holding,
		"stats":          statistics,
		"wake":           waking,
		"waiting":        waitingCounts,
		"outbox":         outbox,
		"documents":      documents,
		"document list":  documentLists,
		"document prune": documentPruning,
		"document model": documentModel,
		"batch":          batches,
		"delegated":      delegating,
		"step":           stepOperations,
		"approval":       approvals,
		"outbox batch":   outboxBatches,
		"follow":         following,
		"follow batch":   followedBatches,
		"history":        histories,
		"search":         searching,
		"search page":    searchPages,
		"search text":    searchTexts,
		"recording":      recording,
		"audit reads":    auditReads,
	}
	for subject, scenarios := range subjects {
		if o.Enqueue == nil && strings.HasPrefix(subject, "outbox") {
			continue
		}
		t.Run(subject, func(t *testing.T) {
			names := slices.Sorted(maps.Keys(scenarios))
			for i := len(names) - 1; i >= 0; i -= max(o.OneIn, 1) {
				name := names[i]
				t.Run(name, func(t *testing.T) { one(t, open, o, scenarios[name], subject != "recording") })
			}
		})
	}
}

// one runs one scenario, with the ledger remembering what is not sealed unless the
// scenario sees to that itself.
func one(t *testing.T, open func(t *testing.T) ledger.Ledger, o Options, s scenario, recorded bool) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("reason: %s", s.reason)
		}
	})
	if o.Sleep == nil {
		synctest.Test(t, func(t *testing.T) {
			h := &harness{T: t, ledger: open(t), options: o, sleep: time.Sleep} //nolint:forbidigo // in the bubble it moves the fake clock
			h.record(recorded)
			s.run(h)
			h.consistent()
		})
		return
	}
	h := &harness{T: t, ledger: open(t), options: o, sleep: o.Sleep}
	h.record(recorded)
	s.run(h)
	h.consistent()
}

// harness is a ledger under test and the words to say briefly what is done to
// it. Its methods fail the test when the ledger fails.
type harness struct {
	*testing.T
	ledger  ledger.Ledger
	options Options
	sleep   func(d time.Duration)
	made    []ledger.Record
	// recorded says that the ledger remembers what is not sealed; runs are what was
	// sealed of it.
	recorded bool
	runs     []ledger.Run
}

// lease is long enough that no real clock gets through it during a scenario.
const lease = time.Hour

// wish is a valid intent of a tenant and a workflow.
func wish(tenant, workflow string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: tenant, Workflow: workflow, Step: "step", Tool: "tool",
		Destination: "shop", Kind: "order", Write: intent.Create,
		Key: intent.Fields{"number": workflow}, Expect: intent.Fields{"state": "open"},
	}
}

// reservation asks for a wish in the name of worker "one".
func (h *harness) reservation(w intent.WriteIntent, events ...ledger.Event) ledger.Reservation {
	h.Helper()
	rec, err := ledger.NewRecord(w)
	if err != nil {
		h.Fatal(err)
	}
	return ledger.Reservation{Record: rec, Events: events, Owner: "one", LeaseFor: lease}
}

// fresh reserves a wish that must be new.
func (h *harness) fresh(w intent.WriteIntent, events ...ledger.Event) ledger.Record {
	h.Helper()
	return h.reserve(h.reservation(w, events...))
}

func (h *harness) reserve(res ledger.Reservation) ledger.Record {
	h.Helper()
	rec, fresh, err := h.ledger.Reserve(context.Background(), res)
	if err != nil || !fresh {
		h.Fatalf("reserve: fresh %v, error %v; want a new write", fresh, err)
	}
	h.made = append(h.made, rec)
	return rec
}

// precheck asks what a reservation needs that depends on a read, whatever the
// number is.
func (h *harness) precheck(r ledger.Record, want ledger.Precheck) *ledger.Precheck {
	h.Helper()
	p, err := h.ledger.Precheck(context.Background(), r)
	if want.Newest = p.Newest; err != nil || p != want {
		h.Fatalf("precheck: %+v, %v; want %+v", p, err, want)
	}
	return &p
}

// replayed reserves what must be there already.
func (h *harness) replayed(res ledger.Reservation) ledger.Record {
	h.Helper()
	rec, fresh, err := h.ledger.Reserve(context.Background(), res)
	if err != nil || fresh {
		h.Fatalf("reserve: fresh %v, error %v; want the recorded write", fresh, err)
	}
	return rec
}

func (h *harness) append(r ledger.Record, events ...ledger.Event) ledger.Record {
	h.Helper()
	rec, err := h.ledger.Append(context.Background(), r.ID, r.Fence, events...)
	if err != nil {
		h.Fatalf("append: %v", err)
	}
	return rec
}

// refused appends what must be refused, and that nothing changed.
func (h *harness) refused(want error, r ledger.Record, fence int64, events ...ledger.Event) {
	h.Helper()
	before, life := h.get(r), h.events(r)
	if _, err := h.ledger.Append(context.Background(), r.ID, fence, events...); !errors.Is(err, want) {
		h.Fatalf("append: error %v, want %v", err, want)
	}
	h.same(before, h.get(r))
	if diff := cmp.Diff(life, h.events(r)); diff != "" {
		h.Errorf("a refused append changed the events (-before +after):\n%s", diff)
	}
}

func (h *harness) get(r ledger.Record) ledger.Record {
	h.Helper()
	rec, err := h.ledger.Get(context.Background(), r.Tenant, r.ID)
	if err != nil {
		h.Fatalf("get: %v", err)
	}
	return rec
}

func (h *harness) events(r ledger.Record) []ledger.Event {
	h.Helper()
	events, err := h.ledger.Events(context.Background(), r.Tenant, r.ID)
	if err != nil {
		h.Fatalf("events: %v", err)
	}
	return events
}

func (h *harness) list(f ledger.Filter) []ledger.Record {
	h.Helper()
	recs, err := h.ledger.List(context.Background(), f)
	if err != nil {
		h.Fatalf("list: %v", err)
	}
	return recs
}

// claim asks for work in the name of worker "two" unless it is named.
func (h *harness) claim(c ledger.Claim) []ledger.Record {
	h.Helper()
	if c.Owner == "" {
		c.Owner = "two"
	}
	c.LeaseFor = lease
	recs, err := h.ledger.Claim(context.Background(), c)
	if err != nil {
		h.Fatalf("claim: %v", err)
	}
	return recs
}

// taken claims exactly one record, which must be this one.
func (h *harness) taken(r ledger.Record, c ledger.Claim) ledger.Record {
	h.Helper()
	recs := h.claim(c)
	if len(recs) != 1 || recs[0].ID != r.ID {
		h.Fatalf("claim: got %v, want %s alone", ids(recs), r.ID)
	}
	return recs[0]
}

// nothing claims where there is nothing to have.
func (h *harness) nothing(c ledger.Claim) {
	h.Helper()
	if recs := h.claim(c); len(recs) != 0 {
		h.Fatalf("claim: got %v, want nothing", ids(recs))
	}
}

// same compares records, but for the time at which they were read.
func (h *harness) same(want, got ledger.Record, but ...string) {
	h.Helper()
	but = append(but, "Now")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Record{}, but...)); diff != "" {
		h.Errorf("records differ (-want +got):\n%s", diff)
	}
}

// digested is a record as it was asked for, with its digest of the business key as the ledger
// keeps it.
func (h *harness) digested(r ledger.Record) ledger.Record {
	h.Helper()
	r, err := h.ledger.KeyDigests().OfRecord(r)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// consistent holds every record that was made against its events: a record
// follows from them, whatever the scenario did, and so do its published
// changes.
func (h *harness) consistent() {
	h.Helper()
	for _, made := range h.made {
		made = h.digested(made)
		rec, err := Replay(made, h.events(made))
		if err != nil {
			h.Errorf("write %s: %v", made.ID, err)
			continue
		}
		have := h.get(made)
		h.same(rec, have, lent...)
		h.rebuilt(have)
	}
	h.published()
	h.checkFeed()
}

// rebuilt holds a record against its events alone.
func (h *harness) rebuilt(have ledger.Record) {
	h.Helper()
	rec, err := ledger.Rebuild(h.events(have))
	if err != nil {
		h.Errorf("write %s from its events alone: %v", have.ID, err)
		return
	}
	h.same(rec, have, append([]string{"Intent"}, lent...)...)
}

// lent are the fields that claims change too, without an event.
var lent = []string{"Owner", "LeaseUntil", "LeaseFor", "Fence"}

// Replay makes a record anew from its identity and its events. What the lease
// decides (Owner, LeaseUntil, LeaseFor, Fence) is left out.
func Replay(r ledger.Record, events []ledger.Event) (ledger.Record, error) {
	rec := r.Identity()
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			return rec, fmt.Errorf("event %d has number %d", i+1, e.Seq)
		}
		var err error
		if rec, err = ledger.Apply(rec, e, e.At); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

func ids(recs []ledger.Record) []ledger.ID {
	out := make([]ledger.ID, 0, len(recs))
	for _, r := range recs {
		out = append(out, r.ID)
	}
	return out
}

// The events that scenarios are made of.
var (
	announced = ledger.Event{Kind: ledger.EvAnnounced, By: "one", SendFor: time.Second}
	sent      = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: "17"}
	seen      = ledger.Event{Kind: ledger.EvRead, Verdict: "verified"}
	missing   = ledger.Event{Kind: ledger.EvRead, Verdict: "absent"}
	verified  = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
	escalated = ledger.Event{Kind: ledger.EvEscalated, Reason: "it is unknown"}
	held      = ledger.Event{Kind: ledger.EvHeld}
)

// deferred puts a record back for a while.
func deferred(in time.Duration) ledger.Event {
	return ledger.Event{Kind: ledger.EvDeferred, In: in}
}

// settled ends a write that was sent, in a way.
func settled(how ledger.Status) ledger.Event {
	return ledger.Event{Kind: ledger.EvSettled, Settlement: how, By: "ann"}
}
