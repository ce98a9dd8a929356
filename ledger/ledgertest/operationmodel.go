package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
	"pgregory.net/rapid"
)

// docket is a real ledger beside the rule of who blocks whom, [ledger.Blocks],
// asked of all that was ever reserved: the machine that rapid drives. All its
// keys are its own.
type docket struct {
	h    *harness
	name string
	made []ledger.Record // in the order in which they came
}

// The words that the business operations of a docket are made of.
var (
	docketTenants   = []string{"a", "a", "a", "a", "a", "b"}
	docketWorkflows = []string{"w1", "w1", "w1", "w2", "w3"}
	docketTools     = []string{"tool", "tool", "tool", "tool", "tool", "other"}
	docketKeys      = []string{"k1", "k1", "k1", "k1", "k2", ""}
	docketTimes     = []time.Duration{0, time.Second, time.Hour, 24 * time.Hour}
	docketEnds      = []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Accepted, ledger.Abandoned, ledger.Reported, ledger.Denied, ledger.Expired}
)

func (d *docket) key(t *rapid.T) string {
	if key := rapid.SampledFrom(docketKeys).Draw(t, "key"); key != "" {
		return d.name + key
	}
	return ""
}

// wish is a reservation of a write, or of what a step does by itself.
func (d *docket) wish(t *rapid.T) ledger.Reservation {
	tenant, workflow := rapid.SampledFrom(docketTenants).Draw(t, "tenant"), rapid.SampledFrom(docketWorkflows).Draw(t, "workflow")
	tool, key, step := rapid.SampledFrom(docketTools).Draw(t, "tool"), d.key(t), fmt.Sprint(d.name, " s", len(d.made))
	events := [][]ledger.Event{nil, {announced}, {held}}
	if key != "" && rapid.Bool().Draw(t, "entrusted") {
		o := operation(tenant, workflow, step, key)
		o.Tool = tool
		return d.h.handed(o, rapid.SampledFrom([]ledger.Event{asDelegated, held}).Draw(t, "first"))
	}
	w := named(tenant, workflow, key)
	w.Tool, w.Step, w.Key["number"] = tool, step, step
	if i := d.some(t, func(r ledger.Record) bool { return !r.Delegated && r.Tenant == tenant }); i >= 0 && rapid.IntRange(0, 5).Draw(t, "undoing") == 0 {
		w.Compensates = string(d.made[i].ID)
	}
	return d.h.reservation(w, rapid.SampledFrom(events).Draw(t, "events")...)
}

// reserve reserves, and holds the answer against the rule.
func (d *docket) reserve(t *rapid.T) {
	res := d.wish(t)
	res.Window = rapid.SampledFrom(docketTimes).Draw(t, "window")
	rec, fresh, err := d.h.ledger.Reserve(context.Background(), res)
	var block *ledger.BlockedError
	switch {
	case errors.As(err, &block):
		rec.Now = block.Prior.Now
	case err != nil || !fresh:
		t.Fatalf("reserve: fresh %v, error %v", fresh, err)
	}
	prior, blocks := d.prior(res, rec.Now)
	switch {
	case blocks != (block != nil):
		t.Errorf("blocked %v (%v), want %v by %s; %s", block != nil, err, blocks, prior.ID, d.describe())
	case blocks:
		d.same(t, prior, block.Prior)
	default:
		d.made = append(d.made, rec)
	}
}

// prior is the write that the rule reports to a reservation.
func (d *docket) prior(res ledger.Reservation, now time.Time) (prior ledger.Record, blocks bool) {
	all := d.sorted(func(r ledger.Record) bool { return ledger.Blocks(r, res, now) })
	if len(all) == 0 {
		return prior, false
	}
	return all[0], true
}

// sorted is the writes of a kind: those that are open, the newest first, and then
// the one that was settled last.
func (d *docket) sorted(is func(ledger.Record) bool) (all []ledger.Record) {
	for _, r := range slices.Backward(d.made) {
		if is(r) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b ledger.Record) int {
		switch aOpen, bOpen := a.State != ledger.Settled, b.State != ledger.Settled; {
		case aOpen && bOpen:
			return 0
		case aOpen:
			return -1
		case bOpen:
			return 1
		}
		return b.SettledAt.Compare(a.SettledAt)
	})
	return all
}

// some is one of the writes of a kind, or -1.
func (d *docket) some(t *rapid.T, is func(ledger.Record) bool) int {
	var all []int
	for i, r := range d.made {
		if is(r) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return rapid.SampledFrom(all).Draw(t, "which")
}

// change appends to some write, whatever is legal of it.
func (d *docket) change(t *rapid.T, events ...ledger.Event) {
	i := d.some(t, func(ledger.Record) bool { return true })
	if i < 0 {
		return
	}
	r := d.made[i]
	want, _, wrong := ledger.Advance(r, r.Fence, events, r.Now)
	rec, err := d.h.ledger.Append(context.Background(), r.ID, r.Fence, events...)
	if (wrong == nil) != (err == nil) {
		t.Fatalf("append %s to %s: %v, want %v", events[len(events)-1].Kind, r.Phase(), err, wrong)
	}
	if err == nil {
		d.same(t, want, rec, "Updated", "SettledAt", "QueuedAt", "Due", "LeaseUntil", "RecheckUntil", "FirstRead", "FirstSend", "LastSend", "KeySend")
		d.made[i] = rec
	}
}

// settle ends some write, mostly as it may end.
func (d *docket) settle(t *rapid.T) {
	ends := docketEnds
	if i := d.some(t, func(r ledger.Record) bool { return r.State == ledger.Delegated }); i >= 0 {
		ends = append(slices.Repeat([]ledger.Status{ledger.Reported}, 2*len(ends)), ends...)
	}
	end := settled(rapid.SampledFrom(ends).Draw(t, "how"))
	end.By = "ann"
	events := []ledger.Event{end}
	if end.Settlement != ledger.Reported && rapid.Bool().Draw(t, "sent") {
		events = []ledger.Event{sent, seen, end}
	}
	d.change(t, events...)
}

func (d *docket) undo(t *rapid.T) {
	d.change(t, ledger.Event{Kind: ledger.EvCompensating, Child: "wr_child", By: "ann", Reason: "r"}, settled(ledger.Compensated))
}

func (d *docket) approve(t *rapid.T) {
	d.change(t, ledger.Event{Kind: ledger.EvApproved, By: "ann"})
}
func (d *docket) yield(t *rapid.T)  { d.change(t, yielded) }
func (d *docket) reopen(t *rapid.T) { d.change(t, escalated) }

func (d *docket) pass(t *rapid.T) { d.h.sleep(rapid.SampledFrom(docketTimes[1:]).Draw(t, "by")) }

// prune compacts what was settled a day ago, and forgets nothing.
func (d *docket) prune(*rapid.T) {
	if _, err := d.h.ledger.Prune(context.Background(), ledger.Prune{Keep: 24 * time.Hour, Remember: 100000 * time.Hour, Limit: 1000}); err != nil {
		d.h.Fatal(err)
	}
	for i, r := range d.made {
		d.made[i] = d.h.get(r)
	}
}

// operation asks who has begun an operation.
func (d *docket) operation(t *rapid.T) {
	tenant, tool, key := rapid.SampledFrom(docketTenants).Draw(t, "tenant"), rapid.SampledFrom(docketTools).Draw(t, "tool"), d.key(t)
	want := d.sorted(func(r ledger.Record) bool {
		return r.Tenant == tenant && r.Tool == tool && r.IdempotencyKey == key && r.Blocking()
	})
	got, err := d.h.ledger.Operation(context.Background(), tenant, tool, key)
	if err != nil || len(got) != min(len(want), ledger.OperationLimit) {
		t.Fatalf("%d writes of operation %q, error %v; want %d; %s", len(got), key, err, len(want), d.describe())
	}
	for i := range got {
		d.same(t, want[i], got[i])
	}
}

func (d *docket) same(t *rapid.T, want, got ledger.Record, but ...string) {
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Record{}, append(but, "Now")...)); diff != "" {
		t.Fatalf("records differ (-want +got):\n%s%s", diff, d.describe())
	}
}

// describe is all there is.
func (d *docket) describe() (text string) {
	for _, r := range d.made {
		text += fmt.Sprintf("\n%s: %s %s %s %q, %s, delegated %v, yielded %v, parent %q, created %s",
			r.ID, r.Tenant, r.Workflow, r.Tool, r.IdempotencyKey, r.Phase(), r.Delegated, r.Yielded, r.Parent, r.Created.Format(time.RFC3339Nano))
	}
	return text
}

var operationModel = map[string]scenario{
	"who blocks whom": {
		"a query that reads an index another way than the rule lets an operation be done twice, or names another one on each ledger",
		func(h *harness) {
			n := 0
			// In a bubble a test must not be asked for its deadline.
			rapid.Check(struct{ rapid.TB }{h.T}, func(t *rapid.T) {
				n++
				d := &docket{h: h, name: fmt.Sprint("docket ", n, " ")}
				t.Repeat(map[string]func(*rapid.T){
					"reserve": d.reserve, "reserve more": d.reserve, "settle": d.settle, "settle more": d.settle, "undo": d.undo, "approve": d.approve, "yield": d.yield,
					"reopen": d.reopen, "pass": d.pass, "prune": d.prune, "operation": d.operation,
				})
			})
		},
	},
}
