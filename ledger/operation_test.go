package ledger_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// prior is an open write of workflow w1, and next a reservation of the same
// operation by workflow w2.
func prior() ledger.Record {
	return ledger.Record{
		ID: "wr_1", StructuralKey: "k1", Tenant: "a", Workflow: "w1", Tool: "tool", IdempotencyKey: "op",
		State: ledger.Checking, Created: at.Add(-time.Hour),
	}
}

func next() ledger.Reservation {
	return ledger.Reservation{
		Record: ledger.Record{ID: "wr_2", StructuralKey: "k2", Tenant: "a", Workflow: "w2", Tool: "tool", IdempotencyKey: "op"},
		Window: 2 * time.Hour,
	}
}

func TestBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(p *ledger.Record, r *ledger.Reservation)
		want   bool
	}{
		"same operation":   {"an operation is done once", func(*ledger.Record, *ledger.Reservation) {}, true},
		"another key":      {"that is another operation", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.IdempotencyKey = "op2" }, false},
		"another tool":     {"likewise", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Tool = "other" }, false},
		"another tenant":   {"no answer crosses tenants", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Tenant = "b" }, false},
		"no keys":          {"what names no operation blocks none", func(p *ledger.Record, r *ledger.Reservation) { p.IdempotencyKey, r.Record.IdempotencyKey = "", "" }, false},
		"itself":           {"a repeat is answered, not blocked", func(p *ledger.Record, r *ledger.Reservation) { r.Record.StructuralKey = p.StructuralKey }, false},
		"an undoing":       {"an undoing is another operation than what it undoes", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Parent = "wr_1" }, false},
		"of an undoing":    {"likewise", func(p *ledger.Record, _ *ledger.Reservation) { p.Parent = "wr_0" }, false},
		"same workflow":    {"two writes of one workflow are two", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Workflow = "w1" }, true},
		"step, then write": {"a step and what is written in it are one", func(p *ledger.Record, r *ledger.Reservation) { p.Delegated, r.Record.Workflow = true, "w1" }, false},
		"write, then step": {"in whatever order they come", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Delegated, r.Record.Workflow = true, "w1" }, false},
		"step, then step": {"a workflow's steps are the gate's business", func(p *ledger.Record, r *ledger.Reservation) {
			p.Delegated, r.Record.Delegated, r.Record.Workflow = true, true, "w1"
		}, false},
		"another's step":  {"but not another's", func(p *ledger.Record, _ *ledger.Reservation) { p.Delegated = true }, true},
		"another's write": {"nor the other way", func(_ *ledger.Record, r *ledger.Reservation) { r.Record.Delegated = true }, true},
		"yielded":         {"an operator released it", func(p *ledger.Record, _ *ledger.Reservation) { p.Yielded = true }, false},
		"open and old": {"it is unknown what became of it", func(p *ledger.Record, _ *ledger.Reservation) {
			p.State, p.Created = ledger.Delegated, at.Add(-1000*time.Hour)
		}, true},
		"in review and old": {"likewise", func(p *ledger.Record, _ *ledger.Reservation) {
			p.State, p.Created = ledger.Review, at.Add(-1000*time.Hour)
		}, true},
		"settled in the window": {"it was done", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Verified, 2*time.Hour) }, true},
		"settled before it":     {"it was another time", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Verified, 2*time.Hour+1) }, false},
		"without a window":      {"for ever", func(p *ledger.Record, r *ledger.Reservation) { ended(p, ledger.Reported, 1000*time.Hour); r.Window = 0 }, true},
		"reported":              {"its caller says so", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Reported, 0) }, true},
		"accepted":              {"a reviewer says so", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Accepted, 0) }, true},
		"abandoned":             {"it may have been done", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Abandoned, 0) }, true},
		"not applied":           {"it was not", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.NotApplied, 0) }, false},
		"compensated":           {"it was undone", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Compensated, 0) }, false},
		"denied":                {"nothing was sent", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Denied, 0) }, false},
		"expired":               {"likewise", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Expired, 0) }, false},
		"pruned":                {"a tombstone still says how it ended", func(p *ledger.Record, _ *ledger.Reservation) { ended(p, ledger.Verified, 0); *p = ledger.Compact(*p) }, true},
	} {
		p, r := prior(), next()
		c.change(&p, &r)
		if got := ledger.Blocks(p, r, at); got != c.want {
			t.Errorf("%s: %v, want %v; reason: %s", name, got, c.want, c.reason)
		}
		if c.want && !p.Blocking() {
			t.Errorf("%s: it blocks, and drivers leave it out of their index", name)
		}
	}
}

func ended(p *ledger.Record, how ledger.Status, ago time.Duration) {
	p.State, p.Settlement, p.SettledAt, p.Created = ledger.Settled, how, at.Add(-ago), at.Add(-1000*time.Hour)
}

func TestBlockedSaysWhat(t *testing.T) {
	p := prior()
	p.Digest = "d1"
	for received, says := range map[string]string{"": "ask for its outcome", "d1": "ask for its outcome", "d2": "recorded d1, received d2"} {
		err := &ledger.BlockedError{Prior: p, Received: received}
		if !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), `workflow "w1"`) {
			t.Errorf("received %q: %v", received, err)
		}
	}
}

func TestNewDelegated(t *testing.T) {
	whole := ledger.Operation{Tenant: "a", Workflow: "w", Step: "s", Tool: "t", IdempotencyKey: "op", Digest: "d", Asked: json.RawMessage("{}"),
		Destination: "shop", Kind: "order", CorrelationID: "c", RequestedBy: "agent"}
	rec, err := ledger.NewDelegated(whole)
	if err != nil || !rec.Delegated || rec.RequestedBy != "agent" || rec.KeyDigest != "" || rec.ID != ledger.IDOf(rec.StructuralKey) || rec.StepOf() != "w" || !rec.Blocking() {
		t.Errorf("%+v, error %v", rec, err)
	}
	for says, change := range map[string]func(*ledger.Operation){
		"tenant": func(o *ledger.Operation) { o.Tenant = "" }, "workflow": func(o *ledger.Operation) { o.Workflow = "" },
		"step": func(o *ledger.Operation) { o.Step = "" }, "tool": func(o *ledger.Operation) { o.Tool = "" },
		"idempotency key": func(o *ledger.Operation) { o.IdempotencyKey = "" }, "digest": func(o *ledger.Operation) { o.Digest = "" },
		"asked": func(o *ledger.Operation) { o.Asked = nil },
	} {
		o := whole
		change(&o)
		if _, err := ledger.NewDelegated(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("without its %s: error %v", says, err)
		}
	}
	o := whole
	o.Step = "other"
	if other, err := ledger.NewDelegated(o); err != nil || other.ID == rec.ID {
		t.Errorf("another step: %s, error %v", other.ID, err)
	}
	for name, res := range map[string]ledger.Reservation{
		"without events": {Record: rec}, "in a queue": {Record: inQueue(rec), Events: []ledger.Event{{Kind: ledger.EvDelegated}}},
	} {
		if _, _, err := ledger.Begin(res, "", at); err == nil {
			t.Errorf("%s: it was begun", name)
		}
	}
}

func inQueue(r ledger.Record) ledger.Record { r.KeyDigest = "k"; return r }

func TestClaimableDelegated(t *testing.T) {
	for state, want := range map[ledger.State]bool{ledger.Delegated: false, ledger.Held: true, ledger.Review: true} {
		r := inState(state)
		r.Delegated, r.LeaseUntil = true, time.Time{}
		if got := r.Claimable(at, true); got != want {
			t.Errorf("%s: claimable %v, want %v; reason: what is in its caller's hands is no other actor's", state, got, want)
		}
	}
}
