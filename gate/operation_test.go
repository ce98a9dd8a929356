package gate_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

func keyed(input any) asking {
	return asking{StepType: "tool_call", IdempotencyKey: "wire:invoice-7721", StepInput: raw(input), ToolContext: &gate.ToolContext{ToolName: "bank.transfer"}}
}

var invoice = map[string]any{"amount": 100}

// priors are the possible states of another workflow's operation.
var priors = map[string]struct {
	reason  string
	prior   func(b *bench, wf string)
	second  asking
	blocked bool
	state   string
	retry   int
	differs bool
}{
	"in flight": {
		reason: "another actor is at it", prior: func(*bench, string) {},
		second: keyed(invoice), blocked: true, state: "entrusted", retry: 5,
	},
	"done": {
		reason: "it was done", prior: func(b *bench, wf string) { b.done(wf) },
		second: keyed(invoice), blocked: true, state: "settled (reported)",
	},
	"something else under the key": {
		reason: "one name means one thing", prior: func(b *bench, wf string) { b.done(wf) },
		second: keyed(map[string]any{"amount": 101}), blocked: true, state: "settled (reported)", differs: true,
	},
	"failed, fate unknown": {
		reason: "it is unknown what became of it", prior: func(b *bench, wf string) { b.end(wf, b.gate.Fail) },
		second: keyed(invoice), blocked: true, state: "entrusted", retry: 5,
	},
	"failed, fate unknown, long ago": {
		reason: "time shows nothing", prior: func(b *bench, wf string) { b.end(wf, b.gate.Fail); time.Sleep(1000 * time.Hour) },
		second: keyed(invoice), blocked: true, state: "entrusted", retry: 5,
	},
	"done, long ago": {
		reason: "the window is over", prior: func(b *bench, wf string) { b.done(wf); time.Sleep(25 * time.Hour) },
		second: keyed(invoice),
	},
	"begun long ago, done lately": {
		reason: "the window begins when it is done", prior: func(b *bench, wf string) { time.Sleep(25 * time.Hour); b.done(wf) },
		second: keyed(invoice), blocked: true, state: "settled (reported)",
	},
	"approved by a reviewer": {
		reason: "an operator released it",
		prior: func(b *bench, wf string) {
			b.append(b.operation(wf, "transfer"), ledger.Event{Kind: ledger.EvYielded, By: "alice", Reason: "the bank refuses"})
		},
		second: keyed(invoice),
	},
	"came to nothing": {
		reason: "it is known not to have happened",
		prior: func(b *bench, wf string) {
			b.append(b.operation(wf, "transfer"), ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied})
		},
		second: keyed(invoice),
	},
	"in review": {
		reason: "a reviewer decides",
		prior: func(b *bench, wf string) {
			b.append(b.operation(wf, "transfer"), ledger.Event{Kind: ledger.EvEscalated, Reason: "unclear"})
		},
		second: keyed(invoice), blocked: true, state: "review", retry: 60,
	},
	"another tool": {
		reason: "the same name for another tool is another operation", prior: func(*bench, string) {},
		second: asking{StepType: "tool_call", IdempotencyKey: "wire:invoice-7721", ToolContext: &gate.ToolContext{ToolName: "mail.send"}},
	},
	"no key": {
		reason: "nothing says that it is the same", prior: func(*bench, string) {},
		second: asking{StepType: "tool_call", ToolContext: &gate.ToolContext{ToolName: "bank.transfer"}},
	},
}

func TestOneOperationAcrossWorkflows(t *testing.T) {
	for name, tt := range priors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				one, two := b.begin(), b.begin()
				b.ask(one, "transfer", keyed(invoice))
				tt.prior(b, one)
				before := b.store.commits.Load()
				got := b.ask(two, "transfer", tt.second)
				same(t, "commits", b.store.commits.Load()-before, int64(1))
				same(t, "gates counted", got.RetryContext.GateCount, 1)
				if !tt.blocked {
					if got.Decision != gate.Allow || !got.LeaseGranted || got.Prior != nil {
						t.Errorf("blocked by %+v: %s", got.Prior, tt.reason)
					}
					return
				}
				if got.Decision != gate.Block || got.Prior == nil || got.Lease != nil || !strings.Contains(got.Reason, one) {
					t.Fatalf("not blocked (%s, %q): %s", got.Decision, got.Reason, tt.reason)
				}
				same(t, "prior", []any{got.PriorWorkflowID, got.PriorStepID, got.PriorWriteID, got.PriorState, got.PriorDiffers, got.RetryAfterSeconds},
					[]any{one, "transfer", string(b.operation(one, "transfer").ID), tt.state, tt.differs, tt.retry})
				same(t, "an outcome is there when it is settled", got.PriorOutcome != nil, strings.HasPrefix(tt.state, "settled"))
			})
		})
	}
}

func (b *bench) done(wf string) {
	b.t.Helper()
	b.complete(wf, "transfer", gate.CompleteRequest{IdempotencyKey: "wire:invoice-7721"})
}

func (b *bench) append(rec ledger.Record, events ...ledger.Event) {
	b.t.Helper()
	if _, err := b.store.Commit(b.t.Context(), ledger.Batch{Append: []ledger.Appending{{ID: rec.ID, Fence: rec.Fence, Events: events}}}); err != nil {
		b.t.Fatal(err)
	}
}

func TestABlockByAnotherWorkflowIsNotForEver(t *testing.T) {
	b := newBench(t, nil)
	one, two := b.begin(), b.begin()
	b.ask(one, "transfer", keyed(invoice))
	b.ask(two, "transfer", keyed(invoice))
	if got := b.ask(two, "transfer", keyed(invoice)); got.Decision != gate.Block || got.Cached || got.RetryContext.GateCount != 2 {
		t.Fatalf("the second gate: %+v", got)
	}
	b.append(b.operation(one, "transfer"), ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied})
	got := b.ask(two, "transfer", keyed(invoice))
	same(t, "the third", []any{got.Decision, got.LeaseGranted, got.Prior == nil, got.RetryContext.GateCount, got.RetryContext.LastDecision},
		[]any{gate.Allow, true, true, 3, gate.Block})
	if got = b.ask(two, "transfer", keyed(invoice)); !got.Cached {
		t.Errorf("the fourth is not cached: %+v", got)
	}
}

func TestTenantsKnowNothingOfEachOther(t *testing.T) {
	b := newBench(t, nil)
	b.ask(b.begin(), "transfer", keyed(invoice))
	foreign := gate.Caller{Tenant: "other", Name: "x"}
	made, err := b.gate.Create(t.Context(), foreign, gate.CreateRequest{WorkflowName: "w"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.gate.Gate(t.Context(), foreign, made.WorkflowID, "transfer", keyed(invoice)); err != nil || got.Decision != gate.Allow {
		t.Errorf("another tenant's operation blocks: %+v, %v", got, err)
	}
}

func TestOperationsAcrossWorkflowsCanBeIgnored(t *testing.T) {
	b := newBench(t, func(o *gate.Options) { o.AcrossWorkflows = gate.AcrossIgnore })
	for range 2 {
		if got := b.ask(b.begin(), "transfer", keyed(invoice)); got.Decision != gate.Allow {
			t.Errorf("blocked: %+v", got.Prior)
		}
	}
}

func TestSingleWritesAndSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		reason   string
		workflow string
		want     gate.Decision
	}{
		"of another workflow": {"one operation, however it is made", "wf_elsewhere", gate.Block},
		"of the same":         {"it is the step's own write", "", gate.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			m := ledger.NewMemory()
			b := benchOn(t, m, nil)
			wf := b.begin()
			w, err := intent.Decode(raw(map[string]any{"tenant": tenant, "workflow": first(tt.workflow, wf), "step": "transfer", "tool": "bank.transfer", "destination": "bank",
				"kind": "wire", "key": map[string]any{"n": "1"}, "write": "create", "expect": invoice, "idempotency_key": "wire:invoice-7721"}))
			if err != nil {
				t.Fatal(err)
			}
			rec, err := ledger.NewRecord(w)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := m.Reserve(t.Context(), ledger.Reservation{Record: rec}); err != nil {
				t.Fatal(err)
			}
			got := b.ask(wf, "transfer", keyed(invoice))
			same(t, tt.reason, got.Decision, tt.want)
			if got.Prior != nil {
				same(t, "the write", got.PriorWriteID, string(rec.ID))
			}
		})
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestNothingIsReservedForWhatIsBlocked(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.rules.says = gate.Block
	b.ask(wf, "transfer", keyed(invoice))
	b.rules.says = gate.Allow
	if got := b.ask(b.begin(), "transfer", keyed(invoice)); got.Decision != gate.Allow {
		t.Errorf("a step that was blocked blocks another: %+v", got.Prior)
	}
}

func TestEndOfAWorkflowWithOpenSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		reason     string
		found      engine.ReadResult
		wait       time.Duration
		fails      error
		state      ledger.State
		settlement ledger.Status
	}{
		"unknown":                     {"its fate is not known", engine.ReadResult{}, time.Hour, nil, ledger.Delegated, ""},
		"absent":                      {"nothing was done", engine.ReadResult{Effect: engine.EffectAbsent}, time.Hour, nil, ledger.Settled, ledger.NotApplied},
		"absent, and another actor's": {"another actor may be doing it", engine.ReadResult{Effect: engine.EffectAbsent}, time.Second, nil, ledger.Delegated, ""},
		"present":                     {"it was seen", engine.ReadResult{Effect: engine.EffectPresent}, time.Hour, nil, ledger.Settled, ledger.Verified},
		"cannot be read":              {"its fate is not known", engine.ReadResult{}, time.Hour, errBoom, ledger.Delegated, ""},
		"absent, but a read failed":   {"what failed says nothing", engine.ReadResult{Effect: engine.EffectAbsent}, time.Hour, errBoom, ledger.Delegated, ""},
	} {
		for how, end := range map[string]func(b *bench) ending{
			"fail":  func(b *bench) ending { return b.gate.Fail },
			"abort": func(b *bench) ending { return b.gate.Abort },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, nil)
					wf := b.begin()
					r := keyed(invoice)
					r.Intent = order
					b.ask(wf, "transfer", r)
					time.Sleep(tt.wait)
					b.dest.set(tt.found)
					b.dest.fails = tt.fails
					before := b.store.commits.Load()
					b.end(wf, end(b))
					same(t, "commits", b.store.commits.Load()-before, int64(1))
					rec := b.operation(wf, "transfer")
					same(t, tt.reason, []any{rec.State, rec.Settlement}, []any{tt.state, tt.settlement})
				})
			})
		}
	}
}

func TestAStepWhoseOperationIsGoneIsNotLentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		events []ledger.Event
		want   gate.Decision
	}{
		"its own still":        {"nothing has happened", nil, gate.Allow},
		"released":             {"another workflow may be at it", []ledger.Event{{Kind: ledger.EvYielded, By: "alice", Reason: "the bank refuses"}}, gate.Block},
		"in review":            {"a reviewer decides", []ledger.Event{{Kind: ledger.EvEscalated, Reason: "unclear"}}, gate.Block},
		"ended by a reviewer":  {"it is done, by a reviewer's word", []ledger.Event{{Kind: ledger.EvEscalated}, {Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "alice"}}, gate.Block},
		"known not to be done": {"another workflow may have begun it since", []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}}, gate.Block},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				b.ask(wf, "transfer", keyed(invoice))
				if len(tt.events) > 0 {
					b.append(b.operation(wf, "transfer"), tt.events...)
				}
				time.Sleep(time.Hour)
				before := b.store.commits.Load()
				got := b.ask(wf, "transfer", keyed(invoice))
				same(t, "commits", b.store.commits.Load()-before, int64(1))
				same(t, tt.reason, got.Decision, tt.want)
				same(t, "lent", got.Lease != nil && got.LeaseGranted, tt.want == gate.Allow)
				b.done(wf)
				if b.view(wf).Steps[0].CompletedAt == nil {
					t.Error("it cannot be completed")
				}
			})
		})
	}
}

func TestOneOfManyWorkflowsBeginsAnOperation(t *testing.T) {
	b := newBench(t, nil)
	allowed := make(chan string, crowd)
	var wg sync.WaitGroup
	for range crowd {
		wf := b.begin()
		wg.Go(func() {
			if got := b.ask(wf, "transfer", keyed(invoice)); got.Decision == gate.Allow {
				allowed <- wf
			} else if got.Prior == nil || got.PriorWorkflowID == wf {
				t.Errorf("blocked by %+v", got.Prior)
			}
		})
	}
	wg.Wait()
	same(t, "how many began it", len(allowed), 1)
}

func TestAnOperationKeepsItsTool(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "transfer", keyed(invoice))
	r := keyed(invoice)
	r.RetryPolicy, r.ToolContext = "reevaluate", &gate.ToolContext{ToolName: "bank.other"}
	if e := b.refused(wf, "transfer", r); e.Code != gate.InputMismatch || e.Field != "tool_context" {
		t.Errorf("another tool under the same key: %v", e)
	}
	r.ToolContext = &gate.ToolContext{ToolName: "bank.transfer", ToolInput: raw(invoice)}
	if got := b.ask(wf, "transfer", r); got.Decision != gate.Allow {
		t.Errorf("the same tool, another input: %+v", got)
	}
}

// A completion of a step that was reported as not done to others is not ignored: it goes to review.
func TestACompletionOfWhatWasGivenUp(t *testing.T) {
	yielded := ledger.Event{Kind: ledger.EvYielded, By: "alice", Reason: "the bank refuses"}
	for name, tt := range map[string]struct {
		reason string
		events []ledger.Event
		state  ledger.State
	}{
		"its own still": {"nothing speaks against it", nil, ledger.Settled},
		"released":      {"another workflow may have done it too", []ledger.Event{yielded}, ledger.Review},
		"not applied":   {"another workflow may have done it too", []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}}, ledger.Review},
		"by a reviewer": {"a reviewer has decided so already", []ledger.Event{{Kind: ledger.EvEscalated}, {Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "alice"}}, ledger.Settled},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			one, two := b.begin(), b.begin()
			b.ask(one, "transfer", keyed(invoice))
			if len(tt.events) > 0 {
				b.append(b.operation(one, "transfer"), tt.events...)
				b.ask(two, "transfer", keyed(invoice))
			}
			before := b.store.commits.Load()
			b.done(one)
			same(t, "commits", b.store.commits.Load()-before, int64(1))
			rec := b.operation(one, "transfer")
			same(t, tt.reason, rec.State, tt.state)
			if tt.state != ledger.Review {
				return
			}
			b.append(rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Abandoned, By: "alice"})
			b.done(one) // once more
			same(t, "a second completion says nothing new", b.operation(one, "transfer").Settlement, ledger.Abandoned)
		})
	}
}

// A caller that was asked to come back gets the result once it is done, however long that took.
func TestWhatIsDoneWhileAnotherWorkflowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *gate.Options) { o.Window = time.Hour })
		one, two := b.begin(), b.begin()
		b.ask(one, "transfer", keyed(invoice))
		for range 3 {
			b.ask(two, "transfer", keyed(invoice))
			time.Sleep(time.Hour)
		}
		b.done(one)
		if got := b.ask(two, "transfer", keyed(invoice)); got.Decision != gate.Block || got.PriorOutcome == nil {
			t.Errorf("what was done a moment ago is done again: %+v", got)
		}
		time.Sleep(time.Hour + 1)
		if got := b.ask(two, "transfer", keyed(invoice)); got.Decision != gate.Allow || !got.LeaseGranted {
			t.Errorf("after the window: %+v", got.Prior)
		}
	})
}

// A field that no intent names is evidence for reviewers. An agent sees that it changed, by the
// read of its own step and by the write that blocks it, and no value.
func TestAnAgentIsShownNoValueOfACollateralChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		r := withIntent()
		r.IdempotencyKey = "wire:1"
		one, two := b.begin(), b.begin()
		b.ask(one, "a", r)
		b.dest.set(engine.ReadResult{Verdict: verify.Collateral, Seen: raw(struct{}{}), Mismatches: raw([]any{map[string]any{"path": "/salary", "problem": "changed", "want": "before", "got": "after"}})})
		seen := b.complete(one, "a", gate.CompleteRequest{IdempotencyKey: "wire:1"})
		b.append(b.operation(one, "a"), ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "rita"})
		if kept := b.operation(one, "a").Mismatches; !strings.Contains(string(kept), "after") {
			t.Fatalf("the ledger keeps %s; want the values", kept)
		}
		for where, got := range map[string]any{"the read": seen, "the next gate": b.ask(one, "a", r).RetryContext.Verification, "the block": b.ask(two, "a", r).PriorOutcome} {
			text := string(raw(got))
			if strings.Contains(text, `"before"`) || strings.Contains(text, `"after"`) || !strings.Contains(text, "/salary") {
				t.Errorf("%s shows %s; want the path alone", where, text)
			}
		}
	})
}
