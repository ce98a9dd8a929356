package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

var why = gate.Comment{Comment: "I have seen the invoice"}

func holding(t *testing.T, change func(*gate.Options)) (*bench, string) {
	t.Helper()
	b := newBench(t, change)
	b.rules.says = gate.RequireApproval
	return b, b.begin()
}

func TestHoldAndApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wf := holding(t, nil)
		held := b.ask(wf, "transfer", keyed(invoice))
		space := uuid.MustParse("a1b2c3d4-e5f6-7890-abcd-ef1234567890")
		same(t, "the hold", []any{held.Decision, held.ApprovalID, held.ApprovalURL, held.ReviewURL, held.Lease == nil},
			[]any{gate.RequireApproval, uuid.NewSHA1(space, []byte(wf+":transfer")).String(), "https://gate.example/api/v1/workflows/" + wf + "/steps/transfer/approve",
				"https://gate.example/workflows/" + wf + "/steps/transfer", true})
		asked := b.operation(wf, "transfer")
		same(t, "the operation", []any{asked.State, asked.RequestedBy}, []any{ledger.Held, "agent-1"})
		pending, err := b.gate.Pending(t.Context(), alice, 0)
		if err != nil || len(pending) != 1 {
			t.Fatalf("%d wait, %v", len(pending), err)
		}
		until := time.Now().Add(24 * time.Hour)
		same(t, "what waits", pending[0], gate.PendingApproval{
			WorkflowID: wf, WorkflowName: "payout", StepID: "transfer", StepType: "tool_call", Decision: gate.RequireApproval,
			DecisionReason: "the rules say require_approval", PoliciesMatched: held.PoliciesMatched, StepInput: raw(invoice),
			ApprovalStatus: gate.Pending, CreatedAt: time.Now(), ExpiresAt: &until, Need: 1,
			ApprovalID: held.ApprovalID, ToolContext: keyed(invoice).ToolContext,
		})
		time.Sleep(time.Hour)
		before := b.store.commits.Load()
		got, err := b.gate.Approve(t.Context(), alice, wf, "transfer", why)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "commits of an approval", b.store.commits.Load()-before, int64(1))
		now := time.Now()
		same(t, "the approval", got, gate.ApprovalResult{
			WorkflowID: wf, StepID: "transfer", Status: "approved", Decision: gate.Allow, Reason: "Previously approved: the rules say require_approval",
			ApprovalStatus: gate.Approved, ApprovalID: held.ApprovalID, ApprovedBy: "alice", ApprovedAt: &now, PoliciesMatched: held.PoliciesMatched,
			RetryContext: gate.RetryContext{GateCount: 1, PriorCompletionStatus: gate.PriorNone, FirstAttemptAt: now.Add(-time.Hour),
				LastAttemptAt: now.Add(-time.Hour), LastDecision: gate.RequireApproval, IdempotencyKey: "wire:invoice-7721"},
			Message: "Step approved",
		})
		same(t, "the operation", b.operation(wf, "transfer").State, ledger.Delegated)
		again := b.ask(wf, "transfer", keyed(invoice))
		same(t, "the next gate", []any{again.Decision, again.Reason, again.LeaseGranted, again.Fence, again.RetryContext.LastDecision},
			[]any{gate.Allow, "Previously approved: the rules say require_approval", true, int64(1), gate.RequireApproval})
		same(t, "the last gate's decision", b.ask(wf, "transfer", keyed(invoice)).RetryContext.LastDecision, gate.Allow)
		v := b.view(wf).Steps[0]
		same(t, "the step", []any{v.Decision, v.ApprovalStatus, v.ApprovedBy}, []any{gate.RequireApproval, gate.Approved, "alice"})
	})
}

type judge = func(context.Context, gate.Caller, string, string, gate.Comment) (gate.ApprovalResult, error)

func TestWhoMayNotApprove(t *testing.T) {
	asker := gate.Caller{Tenant: tenant, Name: "carol", Role: engine.RoleOperator}
	later := gate.Caller{Tenant: tenant, Name: "dan", Role: engine.RoleReviewer}
	for name, tt := range map[string]struct {
		reason string
		who    gate.Caller
		want   gate.Code
	}{
		"an agent":                {"an agent never decides", gate.Caller{Tenant: tenant, Name: "agent-2", Role: engine.RoleAgent}, gate.Forbidden},
		"an agent by its name":    {"a caller never decides its own step", gate.Caller{Tenant: tenant, Name: "carol", Role: engine.RoleReviewer}, gate.Forbidden},
		"in this process":         {"nor from within", gate.Caller{Tenant: tenant, Name: "carol"}, gate.Forbidden},
		"a second caller":         {"one who repeats the question asks, too", later, gate.Forbidden},
		"carol in capitals":       {"it is the same name", gate.Caller{Tenant: tenant, Name: "Carol ", Role: engine.RoleReviewer}, gate.Forbidden},
		"a role that is none":     {"what is not understood may do nothing", gate.Caller{Tenant: tenant, Name: "alice", Role: "Agent"}, gate.Forbidden},
		"blanks":                  {"a decision has a name that can be seen", gate.Caller{Tenant: tenant, Name: " ", Role: engine.RoleReviewer}, gate.Forbidden},
		"no name":                 {"a decision has a name", gate.Caller{Tenant: tenant, Role: engine.RoleReviewer}, gate.Forbidden},
		"of another tenant":       {"other tenants' steps are hidden", gate.Caller{Tenant: "other", Name: "alice"}, gate.NotFound},
		"another reviewer":        {"a reviewer who did not ask", alice, ""},
		"a process without names": {"who runs everything alone may do everything", gate.Caller{Tenant: tenant}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, wf := holding(t, nil)
			for _, c := range []gate.Caller{asker, later} {
				if _, err := b.gate.Gate(t.Context(), c, wf, "a", keyed(invoice)); err != nil {
					t.Fatal(err)
				}
			}
			before := b.view(wf)
			_, err := b.gate.Approve(t.Context(), tt.who, wf, "a", why)
			if tt.want == "" {
				if err != nil {
					t.Errorf("%v: %s", err, tt.reason)
				}
				return
			}
			if e := asError(t, err); e.Code != tt.want {
				t.Errorf("%v, want %s: %s", e, tt.want, tt.reason)
			}
			same(t, "the workflow after a refusal", b.view(wf), before)
			if tt.who.Role == engine.RoleAgent {
				if _, err := b.gate.Reject(t.Context(), tt.who, wf, "a", why); asError(t, err).Code != gate.Forbidden {
					t.Errorf("an agent refused a step: %v", err)
				}
			}
		})
	}
}

func TestWhatCannotBeApproved(t *testing.T) {
	approve := func(b *bench, wf string) {
		if _, err := b.gate.Approve(b.t.Context(), alice, wf, "a", why); err != nil {
			b.t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		reason  string
		prepare func(b *bench, wf string)
		want    gate.Code
	}{
		"no such step": {"there is nothing to approve", func(*bench, string) {}, gate.NotFound},
		"allowed": {"it was not requested", func(b *bench, wf string) {
			b.rules.says = gate.Allow
			b.ask(wf, "a", call())
		}, gate.NoApprovalNeeded},
		"approved": {"it was decided", func(b *bench, wf string) {
			b.ask(wf, "a", call())
			approve(b, wf)
		}, gate.NotPending},
		"expired": {"it is too late", func(b *bench, wf string) {
			b.ask(wf, "a", call())
			time.Sleep(24 * time.Hour)
		}, gate.ApprovalExpired},
		"expired, and notified": {"it is too late", func(b *bench, wf string) {
			b.ask(wf, "a", call())
			time.Sleep(24 * time.Hour)
			b.ask(wf, "a", call())
		}, gate.ApprovalExpired},
		"ended": {"nothing comes of it any more", func(b *bench, wf string) {
			b.ask(wf, "a", call())
			b.end(wf, b.gate.Abort)
		}, gate.Terminal},
	} {
		for how := range map[string]bool{"approve": true, "reject": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, wf := holding(t, nil)
					tt.prepare(b, wf)
					before := b.view(wf)
					do := map[string]judge{"approve": b.gate.Approve, "reject": b.gate.Reject}[how]
					_, err := do(t.Context(), bob, wf, "a", why)
					if e := asError(t, err); e.Code != tt.want {
						t.Errorf("%v, want %s: %s", e, tt.want, tt.reason)
					}
					same(t, "the workflow after a refusal", b.view(wf), before)
				})
			})
		}
	}
}

func TestTwoReviewers(t *testing.T) {
	b, wf := holding(t, func(o *gate.Options) { o.Approvals.Approvers = 2 })
	b.ask(wf, "transfer", keyed(invoice))
	got, err := b.gate.Approve(t.Context(), alice, wf, "transfer", why)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "after one", []any{got.Status, got.Decision, b.operation(wf, "transfer").State}, []any{"pending", gate.RequireApproval, ledger.Held})
	if _, err = b.gate.Approve(t.Context(), alice, wf, "transfer", why); asError(t, err).Code != gate.Forbidden {
		t.Errorf("one reviewer approved twice: %v", err)
	}
	if _, err = b.gate.Approve(t.Context(), gate.Caller{Tenant: tenant, Name: "Alice "}, wf, "transfer", why); asError(t, err).Code != gate.Forbidden {
		t.Errorf("one reviewer approved twice, written otherwise: %v", err)
	}
	if still := b.ask(wf, "transfer", keyed(invoice)); still.Decision != gate.RequireApproval {
		t.Errorf("one of two was enough: %+v", still)
	}
	if got, err = b.gate.Approve(t.Context(), bob, wf, "transfer", why); err != nil || got.ApprovalStatus != gate.Approved {
		t.Fatalf("after two: %+v, %v", got, err)
	}
	same(t, "the operation", b.operation(wf, "transfer").State, ledger.Delegated)
}

func TestReject(t *testing.T) {
	b, wf := holding(t, nil)
	b.rules.says = gate.Allow
	b.ask(wf, "before", call())
	b.rules.says = gate.RequireApproval
	b.ask(wf, "transfer", keyed(invoice))
	before := b.store.commits.Load()
	got, err := b.gate.Reject(t.Context(), alice, wf, "transfer", why)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "commits", b.store.commits.Load()-before, int64(1))
	same(t, "the answer", []any{got.Status, got.Decision, got.ApprovalStatus, got.RejectedBy}, []any{"rejected", gate.Block, gate.Rejected, "alice"})
	v := b.view(wf)
	if reports := v.Steps[1].Reports; len(reports) != 1 || reports[0].By != "alice" || reports[0].Reason != why.Comment || reports[0].Decision != gate.Rejected || len(reports[0].Digest) != 64 || reports[0].At.IsZero() {
		t.Errorf("what is kept of the denial: %+v", reports)
	}
	same(t, "the workflow", []any{v.Status, v.Steps[1].ApprovalStatus, v.CompletedAt != nil}, []any{gate.Aborted, gate.Rejected, true})
	rec := b.operation(wf, "transfer")
	same(t, "the operation", []any{rec.State, rec.Settlement}, []any{ledger.Settled, ledger.Denied})
	if e := b.refused(wf, "transfer", keyed(invoice)); e.Code != gate.Terminal {
		t.Errorf("the next gate: %v", e)
	}
	if _, err := b.gate.CompleteStep(t.Context(), agent, wf, "transfer", gate.CompleteRequest{IdempotencyKey: "wire:invoice-7721"}); asError(t, err).Code != gate.StepRejected {
		t.Errorf("completing what was rejected: %v", err)
	}
	b.rules.says = gate.Allow
	if other := b.ask(b.begin(), "transfer", keyed(invoice)); other.Decision != gate.Allow {
		t.Errorf("what was rejected blocks others: %+v", other.Prior)
	}
}

func TestAnApprovalIsForWhatWasAskedFor(t *testing.T) {
	b, wf := holding(t, nil)
	held := b.ask(wf, "a", keyed(invoice))
	if _, err := b.gate.Approve(t.Context(), alice, wf, "a", why); err != nil {
		t.Fatal(err)
	}
	same1 := keyed(invoice)
	same1.RetryPolicy = "reevaluate"
	if got := b.ask(wf, "a", same1); got.Decision != gate.Allow || !strings.HasPrefix(got.Reason, "Previously approved: ") || got.ApprovalID != held.ApprovalID {
		t.Errorf("the same, evaluated again: %+v", got)
	}
	more := keyed(map[string]any{"amount": 1000000})
	more.RetryPolicy = "reevaluate"
	got := b.ask(wf, "a", more)
	space := uuid.MustParse("a1b2c3d4-e5f6-7890-abcd-ef1234567890")
	same(t, "something else", []any{got.Decision, got.ApprovalID, got.Lease == nil}, []any{gate.RequireApproval, uuid.NewSHA1(space, []byte(wf+":a#2")).String(), true})
	if _, err := b.gate.Approve(t.Context(), alice, wf, "a", why); err != nil {
		t.Errorf("the second hold cannot be approved: %v", err)
	}
	if reports := b.view(wf).Steps[0].Reports; len(reports) != 2 || reports[0].Hold != 1 || reports[1].Hold != 2 || reports[0].Digest == reports[1].Digest {
		t.Errorf("what is kept of two approvals: %+v", reports)
	}
	if got := b.ask(wf, "a", keyed(map[string]any{"amount": 1000000})); got.Decision != gate.Allow {
		t.Errorf("after the second approval: %+v", got)
	}
}

func TestHoldsStayThroughReevaluation(t *testing.T) {
	for name, prepare := range map[string]func(b *bench, wf string){
		"pending": func(*bench, string) {},
		"expired": func(*bench, string) { time.Sleep(25 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, wf := holding(t, nil)
				b.ask(wf, "a", call())
				prepare(b, wf)
				b.rules.says = gate.Allow
				committed := b.store.commits.Load()
				if e := b.refused(wf, "a", asking{StepType: "tool_call", RetryPolicy: "reevaluate"}); e.Code != gate.ApprovalHold {
					t.Errorf("%v", e)
				}
				same(t, "commits", b.store.commits.Load(), committed)
			})
		})
	}
}

func TestTimeoutOfAHold(t *testing.T) {
	for name, tt := range map[string]struct {
		reason     string
		timeout    policies.Timeout
		work       bool
		decision   gate.Decision
		status     gate.ApprovalStatus
		settlement ledger.Status
		overdue    bool
	}{
		"deny, by a worker":           {"no reviewer approved it", "", true, gate.Block, gate.Expired, ledger.Expired, false},
		"deny, at the next gate":      {"no reviewer approved it", policies.OnTimeoutDeny, false, gate.Block, gate.Expired, ledger.Expired, false},
		"escalate, by a worker":       {"others are notified, and it waits", policies.OnTimeoutEscalate, true, gate.RequireApproval, gate.Pending, "", true},
		"escalate, at the next gate":  {"others are notified, and it waits", policies.OnTimeoutEscalate, false, gate.RequireApproval, gate.Pending, "", true},
		"an unknown word is a denial": {"what is not understood is denied", "whatever", true, gate.Block, gate.Expired, ledger.Expired, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, wf := holding(t, func(o *gate.Options) {
					o.Approvals = gate.Approvals{Within: time.Hour, OnTimeout: tt.timeout}
				})
				b.ask(wf, "a", keyed(invoice))
				if tt.work {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
					defer cancel()
					if err := b.gate.Work(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Work ended with %v", err)
					}
					rec := b.operation(wf, "a")
					same(t, "the operation, by the worker alone", []any{rec.Settlement, rec.Overdue}, []any{tt.settlement, tt.overdue})
				} else {
					time.Sleep(2 * time.Hour)
				}
				same(t, "as seen", b.view(wf).Steps[0].ApprovalStatus, tt.status)
				got := b.ask(wf, "a", keyed(invoice))
				same(t, tt.reason, []any{got.Decision, b.view(wf).Steps[0].ApprovalStatus}, []any{tt.decision, tt.status})
				b.ask(wf, "a", keyed(invoice))
				same(t, "how often it is reported", len(b.view(wf).Steps[0].Reports), 1)
				rec := b.operation(wf, "a")
				same(t, "the operation", []any{rec.Settlement, rec.Overdue}, []any{tt.settlement, tt.overdue})
				if pending, err := b.gate.Pending(t.Context(), alice, 0); err != nil || len(pending) == 1 != tt.overdue || len(pending) == 1 && !pending[0].Overdue {
					t.Errorf("what waits: %+v, %v", pending, err)
				}
				_, err := b.gate.Approve(t.Context(), alice, wf, "a", why)
				if (err == nil) != tt.overdue {
					t.Errorf("approving it now: %v", err)
				}
			})
		})
	}
}

// One step that cannot be committed delays no others.
func TestTimeoutOfAStepThatCannotBeCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wf := holding(t, nil)
		b.ask(wf, "a", call())
		time.Sleep(time.Minute)
		other := b.begin()
		b.ask(other, "b", keyed(invoice))
		b.store.before = func(f ledger.Batch) error {
			if slices.ContainsFunc(f.Documents, func(p ledger.Document) bool { return strings.HasSuffix(p.ID, "/a") }) {
				return errors.New("its body is no JSON")
			}
			return nil
		}
		time.Sleep(24 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_ = b.gate.Work(ctx) // the error is the end of its context
		same(t, "the other one", b.operation(other, "b").Settlement, ledger.Expired)
	})
}

func TestAnExpiredHoldBlocksNoOtherStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wf := holding(t, nil)
		b.ask(wf, "transfer", keyed(invoice))
		b.rules.says = gate.Allow
		two := b.begin()
		if got := b.ask(two, "transfer", keyed(invoice)); got.Decision != gate.Block || got.PriorState != "held" {
			t.Fatalf("a held operation: %+v", got)
		}
		time.Sleep(24 * time.Hour) // and no worker runs
		if got := b.ask(two, "transfer", keyed(invoice)); got.Decision != gate.Allow {
			t.Errorf("a hold that is over blocks: %+v", got.Prior)
		}
		if got := b.ask(wf, "other", call()); got.Decision != gate.Allow {
			t.Errorf("another step: %+v", got)
		}
	})
}

func TestRiskOnlyRaises(t *testing.T) {
	risk := func(class intent.Risk) []policies.RiskRule {
		return []policies.RiskRule{{Name: "money", Tool: "bank.*", Class: class, Approvers: 2, Within: time.Hour}}
	}
	elsewhere := []policies.RiskRule{{Tool: "bank.*", Destination: "bank", Kind: "transfer", Writes: []intent.WriteType{intent.Create}}}
	anyTool := []policies.RiskRule{{Tool: "*", Destination: "bank"}, {Kind: "transfer"}}
	careful := replaced(order, `"write"`, `"risk":"approve","write"`)
	for name, tt := range map[string]struct {
		reason string
		risks  []policies.RiskRule
		says   gate.Decision
		ask    asking
		want   gate.Decision
		need   int
		class  string
	}{
		"raised":            {"the tool is risky", risk(intent.RiskApprove), gate.Allow, keyed(invoice), gate.RequireApproval, 2, "approve"},
		"logged":            {"it is only to be marked", risk(intent.RiskLog), gate.Allow, keyed(invoice), gate.Allow, 0, "log"},
		"blocked stays":     {"a block is more careful than a hold", risk(intent.RiskApprove), gate.Block, keyed(invoice), gate.Block, 0, "approve"},
		"another tool":      {"the rule is for others", risk(intent.RiskApprove), gate.Allow, call(), gate.Allow, 0, "auto"},
		"the intent's own":  {"an intent may raise its own", nil, gate.Allow, asking{StepType: "tool_call", Intent: careful}, gate.RequireApproval, 1, "approve"},
		"not below a rule":  {"an intent lowers nothing", risk(intent.RiskApprove), gate.Allow, asking{StepType: "tool_call", Intent: replaced(order, `"orders.create"`, `"bank.transfer"`)}, gate.RequireApproval, 2, "approve"},
		"two names of tool": {"the more careful of both counts", risk(intent.RiskApprove), gate.Allow, asking{StepType: "tool_call", Intent: order, ToolContext: &gate.ToolContext{ToolName: "bank.x"}}, gate.RequireApproval, 2, "approve"},
		"held by both":      {"the more careful of both counts", risk(intent.RiskApprove), gate.RequireApproval, keyed(invoice), gate.RequireApproval, 2, "approve"},
		"intent left out":   {"leaving it out gains nothing", elsewhere, gate.Allow, keyed(invoice), gate.RequireApproval, 1, "approve"},
		"intent elsewhere":  {"what is declared counts", elsewhere, gate.Allow, asking{StepType: "tool_call", Intent: order, ToolContext: &gate.ToolContext{ToolName: "bank.x"}}, gate.Allow, 0, "auto"},
		"of no tool":        {"a rule for a destination is not for every step", anyTool, gate.Allow, keyed(invoice), gate.Allow, 0, "auto"},
		"and the other way": {"the more careful of both counts", risk(intent.RiskApprove), gate.Allow, asking{StepType: "tool_call", Intent: replaced(order, `"orders.create"`, `"bank.x"`), ToolContext: &gate.ToolContext{ToolName: "harmless"}}, gate.RequireApproval, 2, "approve"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *gate.Options) { o.Risks = tt.risks })
			b.rules.says = tt.says
			wf := b.begin()
			got := b.ask(wf, "a", tt.ask)
			same(t, tt.reason, got.Decision, tt.want)
			same(t, "the class that rules see", b.rules.asked[0].Risk, tt.class)
			pending, err := b.gate.Pending(t.Context(), alice, 0)
			if err != nil {
				t.Fatal(err)
			}
			need := 0
			for _, p := range pending {
				need = p.Need
			}
			same(t, "how many must approve", need, tt.need)
		})
	}
}

func TestWhatWasLentOnceStaysOpenWhenItIsRejected(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		lent   bool
		state  ledger.State
	}{
		"lent":       {"it is unknown what became of it", true, ledger.Delegated},
		"never lent": {"nothing can have been done", false, ledger.Settled},
	} {
		t.Run(name, func(t *testing.T) {
			b, wf := holding(t, nil)
			r := keyed(invoice)
			if tt.lent {
				b.rules.says = gate.Allow
			}
			b.ask(wf, "a", r)
			b.rules.says = gate.RequireApproval
			if tt.lent {
				r.RetryPolicy = "reevaluate"
				b.ask(wf, "a", r)
			}
			if _, err := b.gate.Reject(t.Context(), alice, wf, "a", why); err != nil {
				t.Fatal(err)
			}
			same(t, tt.reason, b.operation(wf, "a").State, tt.state)
		})
	}
}

// A reviewer approves the hold that was shown: a later hold is another one.
func TestAnApprovalOfAnotherHold(t *testing.T) {
	b, wf := holding(t, nil)
	seen := b.ask(wf, "a", keyed(invoice)).ApprovalID
	if _, err := b.gate.Approve(t.Context(), bob, wf, "a", why); err != nil {
		t.Fatal(err)
	}
	more := keyed(map[string]any{"amount": 1000000})
	more.RetryPolicy = "reevaluate"
	b.ask(wf, "a", more)
	late := gate.Comment{Comment: why.Comment, ApprovalID: seen}
	for name, do := range map[string]judge{"approve": b.gate.Approve, "reject": b.gate.Reject} {
		if _, err := do(t.Context(), alice, wf, "a", late); asError(t, err).Code != gate.NotPending || asError(t, err).Field != "approval_id" {
			t.Errorf("%s of a hold that is over: %v", name, err)
		}
	}
	pending, err := b.gate.Pending(t.Context(), alice, 0)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d wait, %v", len(pending), err)
	}
	late.ApprovalID = pending[0].ApprovalID
	if got, err := b.gate.Approve(t.Context(), alice, wf, "a", late); err != nil || got.ApprovalStatus != gate.Approved {
		t.Errorf("the hold that was seen: %+v, %v", got, err)
	}
}

// If more callers have asked than can be kept, no reviewer can be distinguished from them.
func TestAStepThatACrowdAskedFor(t *testing.T) {
	for n, want := range map[int]gate.Code{99: "", 100: gate.Forbidden, 101: gate.Forbidden} {
		b, wf := holding(t, nil)
		b.ask(wf, "a", call())
		for i := range n {
			c := gate.Caller{Tenant: tenant, Name: fmt.Sprint("caller-", i), Role: engine.RoleOperator}
			if _, err := b.gate.Gate(t.Context(), c, wf, "a", call()); err != nil {
				t.Fatal(err)
			}
		}
		last := gate.Caller{Tenant: tenant, Name: fmt.Sprint("caller-", n-1), Role: engine.RoleReviewer}
		if _, err := b.gate.Approve(t.Context(), last, wf, "a", why); asError(t, err).Code != gate.Forbidden {
			t.Errorf("number %d of those who asked approves: %v", n, err)
		}
		_, err := b.gate.Approve(t.Context(), alice, wf, "a", why)
		if (err == nil) != (want == "") || err != nil && asError(t, err).Code != want {
			t.Errorf("another actor, after %d: %v", n, err)
		}
	}
}
