package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

func as(ctx context.Context, name string, role engine.Role) context.Context {
	return engine.As(ctx, engine.Principal{Name: name, Role: role})
}

func held(rules ...policies.RiskRule) *engine.Options {
	return &engine.Options{Risks: append([]policies.RiskRule{{Name: "all"}}, rules...)}
}

func approves(by string) engine.Decision {
	return engine.Decision{Word: engine.WordApprove, By: by, Reason: "checked the invoice"}
}

// asked has an agent request a write that is held.
func (b *bench) asked(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Do(as(b.t.Context(), "crm-agent", engine.RoleAgent), w)
	if err != nil || out.Status != ledger.StatusHeld {
		b.t.Fatalf("%+v, %v: want it held", out, err)
	}
	return out
}

func TestWhoMayDecide(t *testing.T) {
	digest := func(w intent.WriteIntent) string {
		d, err := w.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	with := func(d engine.Decision, digest string) engine.Decision { d.Digest = digest; return d }
	asOf := func(d engine.Decision, seq int64) engine.Decision { d.Seq = seq; return d }
	deny := engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "no"}
	w := order("A-1", intent.Create)
	for name, c := range map[string]struct {
		who    engine.Principal
		d      engine.Decision
		err    error
		reason string
	}{
		"a reviewer":                   {engine.Principal{Name: "ada", Role: engine.RoleReviewer}, approves("ada"), nil, "they may decide"},
		"within the process":           {engine.Principal{}, approves("ada"), nil, "its callers may do everything"},
		"what they saw":                {engine.Principal{}, with(approves("ada"), digest(w)), nil, "it is the write's digest"},
		"the agent itself":             {engine.Principal{Name: "crm-agent", Role: engine.RoleAgent}, approves("crm-agent"), engine.ErrForbidden, "an agent approves nothing"},
		"another agent":                {engine.Principal{Name: "other", Role: engine.RoleAgent}, approves("other"), engine.ErrForbidden, "an agent approves nothing"},
		"an agent in ada's name":       {engine.Principal{Name: "crm-agent", Role: engine.RoleAgent}, approves("ada"), engine.ErrForbidden, "the credentials count"},
		"an agent that denies":         {engine.Principal{Name: "crm-agent", Role: engine.RoleAgent}, deny, engine.ErrForbidden, "nor does it deny"},
		"in another's name":            {engine.Principal{Name: "bob", Role: engine.RoleReviewer}, approves("ada"), engine.ErrForbidden, "or one reviewer would count as two"},
		"who asked":                    {engine.Principal{Name: "crm-agent", Role: engine.RoleReviewer}, approves("crm-agent"), engine.ErrForbidden, "whatever else they may do"},
		"who asked, by name alone":     {engine.Principal{}, approves("crm-agent"), engine.ErrForbidden, "the name is enough"},
		"who asked, written otherwise": {engine.Principal{}, approves(" CRM-Agent "), engine.ErrForbidden, "it is the same name"},
		"an auditor":                   {engine.Principal{Name: "eve", Role: engine.RoleAuditor}, approves("eve"), engine.ErrForbidden, "who reads everything changes nothing"},
		"a role that is none":          {engine.Principal{Name: "ada", Role: "Agent"}, approves("ada"), engine.ErrForbidden, "what is not understood may do nothing"},
		"a reviewer without a name":    {engine.Principal{Role: engine.RoleReviewer}, approves("ada"), engine.ErrForbidden, "or one reviewer would count as many"},
		"their own name otherwise":     {engine.Principal{Name: "Ada", Role: engine.RoleReviewer}, approves("ada"), nil, "it is the same name"},
		"something else":               {engine.Principal{}, with(approves("ada"), digest(order("A-2", intent.Create))), ledger.ErrDigestMismatch, "they saw another write"},
		"denies something else":        {engine.Principal{}, with(deny, "x"), ledger.ErrDigestMismatch, "they saw another write"},
		"as they saw it":               {engine.Principal{}, asOf(approves("ada"), 2), nil, "nothing has happened since"},
		"before something happened":    {engine.Principal{}, asOf(approves("ada"), 1), engine.ErrChanged, "they saw it as it is no more"},
		"another word":                 {engine.Principal{}, engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "x"}, engine.ErrNotWaiting, "it waits for an approval"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), held())
				out := b.asked(w)
				before := b.state(out.ID)
				got, err := b.engine.Resolve(engine.As(t.Context(), c.who), "acme", out.ID, c.d)
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Fatalf("%+v, %v, want %v: %s", got, err, c.err, c.reason)
				}
				after := b.state(out.ID)
				if c.err == nil {
					if got.Status != ledger.Verified || !slices.Equal(after.Agreed, []string{"ada"}) {
						t.Errorf("%s, approved by %v", got.Status, after.Agreed)
					}
					return
				}
				after.Now = before.Now
				if diff := cmp.Diff(before, after); diff != "" || len(b.world.Calls()) != 0 {
					t.Errorf("refused, and yet %d calls and %s", len(b.world.Calls()), diff)
				}
			})
		})
	}
}

func TestTwoReviewersAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), held(policies.RiskRule{Approvers: 2, Within: time.Hour}))
		out := b.asked(order("A-1", intent.Create))
		if !strings.Contains(out.Text, "2 different reviewers until") {
			t.Errorf("text %q", out.Text)
		}
		first, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("ada"))
		if err != nil || first.Status != ledger.StatusHeld || !strings.Contains(first.ForModel, "1 more of 2") || len(b.world.Calls()) != 0 {
			t.Fatalf("%+v, %v after %d calls", first, err, len(b.world.Calls()))
		}
		if again, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("ada")); !errors.Is(err, engine.ErrForbidden) {
			t.Fatalf("the same reviewer again: %+v, %v", again, err)
		}
		if again, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("Ada ")); !errors.Is(err, engine.ErrForbidden) {
			t.Fatalf("the same reviewer, written otherwise: %+v, %v", again, err)
		}
		second, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("bob"))
		if err != nil || second.Status != ledger.Verified || !slices.Equal(b.state(out.ID).Agreed, []string{"ada", "bob"}) {
			t.Errorf("%+v, %v%s", second, err, b.life(out.ID))
		}
	})
}

func TestOneApprovalIsEnoughAndLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), held())
		out := b.asked(order("A-1", intent.Create))
		b.engine.Close()
		if err := b.approvedByADeadProcess(out.ID); err != nil {
			t.Fatal(err)
		}
		b.engine = b.newEngine(held(policies.RiskRule{Approvers: 3}))
		b.work(time.Minute)
		if got := b.state(out.ID); got.Settlement != ledger.Verified {
			t.Errorf("%s: stricter rules ask no reviewer twice%s", got.Phase(), b.life(out.ID))
		}
	})
}

func (b *bench) approvedByADeadProcess(id ledger.ID) error {
	claimed, err := b.ledger.Claim(b.t.Context(), ledger.Claim{Owner: "x", LeaseFor: time.Millisecond, Tenant: "acme", ID: id, Early: true})
	if err != nil {
		return err
	}
	_, err = b.ledger.Append(b.t.Context(), id, claimed[0].Fence, ledger.Event{Kind: ledger.EvApproved, By: "ada", Reason: "x"})
	return err
}

// The first caller after the deadline detects it; all later ones get the same outcome.
func TestUnapprovedWritesExpire(t *testing.T) {
	for name, find := range map[string]func(b *bench, id ledger.ID){
		"a worker": func(b *bench, _ ledger.ID) { b.work(time.Minute) },
		"resume": func(b *bench, _ ledger.ID) {
			if _, err := b.engine.Resume(b.t.Context()); err != nil {
				b.t.Error(err)
			}
		},
		"who asks again": func(b *bench, _ ledger.ID) {
			if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Expired {
				b.t.Errorf("status %s", out.Status)
			}
		},
		"who waits": func(b *bench, id ledger.ID) {
			if out, err := b.engine.Wait(b.t.Context(), "acme", id, true); err != nil || out.Status != ledger.Expired {
				b.t.Errorf("status %s, %v", out.Status, err)
			}
		},
		"a late approval": func(b *bench, id ledger.ID) {
			if out, err := b.engine.Resolve(b.t.Context(), "acme", id, approves("ada")); !errors.Is(err, engine.ErrExpired) {
				b.t.Errorf("outcome %+v, %v", out, err)
			}
		},
		"a late denial": func(b *bench, id ledger.ID) {
			d := engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "x"}
			if out, err := b.engine.Resolve(b.t.Context(), "acme", id, d); !errors.Is(err, engine.ErrExpired) {
				b.t.Errorf("outcome %+v, %v", out, err)
			}
		},
		"where its destination is not known": func(b *bench, _ ledger.ID) {
			e := engine.New(b.ledger, new(connectors.Registry), nil)
			defer e.Close()
			if _, err := e.Resume(b.t.Context()); err != nil {
				b.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), held(policies.RiskRule{Within: time.Hour}))
				out := b.asked(order("A-1", intent.Create))
				time.Sleep(time.Hour - time.Nanosecond)
				if n, err := b.engine.Resume(t.Context()); n != 0 || err != nil {
					t.Errorf("%d writes were due, %v", n, err)
				}
				if got := b.state(out.ID); got.State != ledger.Held {
					t.Fatalf("%s before its time was over", got.Phase())
				}
				time.Sleep(time.Nanosecond)
				find(b, out.ID)
				rec := b.state(out.ID)
				got := engine.OutcomeOf(rec)
				if rec.Settlement != ledger.Expired || got.Status != ledger.Expired || got.AskAgain != engine.AgainYes || len(b.world.Calls()) != 0 {
					t.Fatalf("%s, %+v after %d calls%s", rec.Phase(), got, len(b.world.Calls()), b.life(out.ID))
				}
				if late, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("ada")); !errors.Is(err, engine.ErrNotWaiting) {
					t.Errorf("approved after it had expired: %+v, %v", late, err)
				}
				if again := b.do(call(order("A-1", intent.Create), 1)); again.Status != ledger.StatusHeld {
					t.Errorf("asked for anew: %+v", again)
				}
			})
		})
	}
}

// slow delays approvals by a second before they reach the ledger.
type slow struct{ *ledger.Memory }

func (s slow) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	if len(events) == 1 && events[0].Kind == ledger.EvApproved {
		time.Sleep(time.Second)
	}
	return s.Memory.Append(ctx, id, fence, events...)
}

func TestAnApprovalThatIsOvertakenByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := held(policies.RiskRule{Within: time.Hour})
		b := newBench(t, orders.Plain.Options(), o)
		out := b.asked(order("A-1", intent.Create))
		time.Sleep(time.Hour - time.Second/2)
		e := b.engineOn(slow{b.ledger}, b.world.Destination(), o)
		got, err := e.Resolve(t.Context(), "acme", out.ID, approves("ada"))
		if rec := b.state(out.ID); !errors.Is(err, engine.ErrExpired) || rec.Settlement != ledger.Expired {
			t.Errorf("%+v, %v: it is %s%s", got, err, rec.Phase(), b.life(out.ID))
		}
	})
}

func TestOverdueWritesStillWait(t *testing.T) {
	for name, lateApproval := range map[string]bool{"a worker finds it": false, "the approval finds it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &engine.Options{Risks: []policies.RiskRule{{Approvers: 2, Within: time.Hour, OnTimeout: policies.OnTimeoutEscalate}}}
				b := newBench(t, orders.Plain.Options(), o)
				out := b.asked(order("A-1", intent.Create))
				if got, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("ada")); err != nil || got.Status != ledger.StatusHeld {
					t.Fatalf("%+v, %v", got, err)
				}
				time.Sleep(2 * time.Hour)
				if !lateApproval {
					b.work(time.Hour)
					if rec := b.state(out.ID); rec.State != ledger.Held || !rec.Overdue || !strings.Contains(engine.OutcomeOf(rec).Text, "overdue") {
						t.Fatalf("%s, %q%s", rec.Phase(), engine.OutcomeOf(rec).Text, b.life(out.ID))
					}
				}
				got, err := b.engine.Resolve(t.Context(), "acme", out.ID, approves("bob"))
				if rec := b.state(out.ID); err != nil || got.Status != ledger.Verified || !rec.Overdue {
					t.Errorf("%+v, %v%s", got, err, b.life(out.ID))
				}
			})
		})
	}
}

// An undo needs another approver than its requester. If no caller requested the undo, the
// requester of the write must not approve it.
func TestUndosNeedAnotherApprover(t *testing.T) {
	for name, c := range map[string]struct {
		undo   bool
		asked  string
		reason string
	}{
		"by itself":              {false, "crm-agent", "it undoes what the agent asked for"},
		"on another actor's ask": {true, "ada", "it is ada's undoing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), gated)
				if !c.undo {
					b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
				}
				out, err := b.engine.Do(as(t.Context(), "crm-agent", engine.RoleAgent), undoable(order("A-1", intent.Create)))
				if err == nil && c.undo {
					out, err = b.engine.Undo(t.Context(), "acme", out.ID, engine.Undoing{By: "ada", Reason: "not wanted any more"})
				}
				if err != nil || out.Status != ledger.StatusReview {
					t.Fatalf("%+v, %v%s", out, err, b.life(out.ID))
				}
				child := b.state(out.Undoing)
				if child.RequestedBy != c.asked {
					t.Errorf("asked for by %q, want %q: %s", child.RequestedBy, c.asked, c.reason)
				}
				if got, err := b.engine.Resolve(t.Context(), "acme", child.ID, approves(c.asked)); !errors.Is(err, engine.ErrForbidden) {
					t.Errorf("approved by its own caller: %+v, %v", got, err)
				}
				if got, err := b.engine.Resolve(t.Context(), "acme", child.ID, approves("eve")); err != nil || got.Status != ledger.Verified {
					t.Errorf("%+v, %v%s", got, err, b.life(child.ID))
				}
				b.work(time.Hour)
				if got := b.state(out.ID); got.Settlement != ledger.Compensated {
					t.Errorf("%s%s", got.Phase(), b.life(out.ID))
				}
			})
		})
	}
}

// A delegated write is decided at the gate.
func TestDelegatedWritesAreApprovedAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		rec := b.delegated(ledger.Event{Kind: ledger.EvHeld, Need: 1})
		for _, word := range []engine.Word{engine.WordApprove, engine.WordDeny} {
			_, err := b.engine.Resolve(t.Context(), "acme", rec.ID, engine.Decision{Word: word, By: "ada", Reason: "x"})
			if !errors.Is(err, engine.ErrNotWaiting) || !strings.Contains(err.Error(), `step "pay" of workflow "wf-9"`) {
				t.Errorf("%s: %v", word, err)
			}
		}
		if got := b.state(rec.ID); got.State != ledger.Held || got.Fence != rec.Fence {
			t.Errorf("%s under fence %d, was %d", got.Phase(), got.Fence, rec.Fence)
		}
	})
}

// A delegated write in review is accepted or abandoned like any other, and never sent.
func TestDelegatedWritesInReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		rec := b.delegated(ledger.Event{Kind: ledger.EvDelegated})
		if _, err := b.ledger.Append(t.Context(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvEscalated, Reason: "not found"}); err != nil {
			t.Fatal(err)
		}
		for _, word := range []engine.Word{engine.WordRetry, engine.WordCompensate} {
			if _, err := b.engine.Resolve(t.Context(), "acme", rec.ID, engine.Decision{Word: word, By: "ada", Reason: "x"}); !errors.Is(err, engine.ErrNotWaiting) {
				t.Errorf("%s: %v", word, err)
			}
		}
		out, err := b.engine.Resolve(t.Context(), "acme", rec.ID, engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "the bank says so"})
		if err != nil || out.Status != ledger.Accepted {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// delegated reserves a delegated write.
func (b *bench) delegated(events ...ledger.Event) ledger.Record {
	b.t.Helper()
	rec, err := ledger.NewDelegated(ledger.Operation{Tenant: "acme", Workflow: "wf-9", Step: "pay", Tool: "orders.create",
		IdempotencyKey: "wire:7", Digest: "d", Asked: []byte(`{}`)})
	if err != nil {
		b.t.Fatal(err)
	}
	if rec, _, err = b.ledger.Reserve(b.t.Context(), ledger.Reservation{Record: rec, Events: events}); err != nil {
		b.t.Fatal(err)
	}
	return rec
}
