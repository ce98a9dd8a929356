package gate_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

func TestEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(*gate.Gate) ending
		say    string
		want   gate.Ended
		status gate.Status
	}{
		"complete":         {func(g *gate.Gate) ending { return g.Complete }, "", gate.Ended{Message: "Workflow completed"}, gate.Completed},
		"fail":             {func(g *gate.Gate) ending { return g.Fail }, "", gate.Ended{Message: "Workflow failed", Reason: "Failed"}, gate.Failed},
		"fail with reason": {func(g *gate.Gate) ending { return g.Fail }, "no money", gate.Ended{Message: "Workflow failed", Reason: "no money"}, gate.Failed},
		"abort":            {func(g *gate.Gate) ending { return g.Abort }, "", gate.Ended{Message: "Workflow aborted", Reason: "Aborted by user"}, gate.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				b.ask(wf, "a", call())
				time.Sleep(time.Minute)
				before := b.store.commits.Load()
				got, err := tt.end(b.gate)(t.Context(), agent, wf, tt.say)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "commits", b.store.commits.Load()-before, int64(1))
				tt.want.WorkflowID, tt.want.Status = wf, tt.status
				same(t, "the answer", got, tt.want)
				now, one := time.Now(), 1
				v := b.view(wf)
				same(t, "the workflow", []any{v.Status, v.CompletedAt, v.TotalSteps}, []any{tt.status, &now, &one})
				if p, err := b.store.Document(t.Context(), tenant, "workflow", wf); err != nil || !p.Done || !p.Covers() {
					t.Errorf("a workflow that has ended is never forgotten: done %v, covers its steps %v, %v", p.Done, p.Covers(), err)
				}
				for again, how := range map[string]ending{"complete": b.gate.Complete, "fail": b.gate.Fail, "abort": b.gate.Abort, "resume": b.gate.Resume} {
					_, err := how(t.Context(), agent, wf, "")
					if e := asError(t, err); e.Code != gate.Terminal {
						t.Errorf("%s afterwards: %v", again, e)
					}
				}
				b.complete(wf, "a", gate.CompleteRequest{Output: []byte(`{"late":true}`)})
				if b.view(wf).Steps[0].CompletedAt == nil {
					t.Error("a completion after the end is lost")
				}
			})
		})
	}
}

func TestAWorkflowThatWaitsForAReviewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wf := holding(t, nil)
		b.ask(wf, "transfer", keyed(invoice))
		for name, how := range map[string]ending{"complete": b.gate.Complete, "resume": b.gate.Resume} {
			_, err := how(t.Context(), agent, wf, "")
			if e := asError(t, err); e.Code != gate.ApprovalPending {
				t.Errorf("%s: %v", name, e)
			}
		}
		if _, err := b.gate.CompleteStep(t.Context(), agent, wf, "transfer", gate.CompleteRequest{IdempotencyKey: "wire:invoice-7721"}); asError(t, err).Code != gate.ApprovalPending {
			t.Errorf("completing what waits: %v", err)
		}
		if _, err := b.gate.Approve(t.Context(), alice, wf, "transfer", why); err != nil {
			t.Fatal(err)
		}
		got, err := b.gate.Resume(t.Context(), agent, wf, "")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "resumed", got, gate.Ended{WorkflowID: wf, Status: gate.InProgress, Message: "Workflow resumed"})
	})
}

func TestResumeAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wf := holding(t, nil)
		b.ask(wf, "transfer", keyed(invoice))
		time.Sleep(24 * time.Hour)
		_, err := b.gate.Resume(t.Context(), agent, wf, "")
		if e := asError(t, err); e.Code != gate.StepRejected {
			t.Errorf("resume without an approval: %v", e)
		}
		b.rules.says = gate.Allow
		if got := b.ask(wf, "instead", call()); got.Decision != gate.Allow { // and its expiry is not recorded yet
			t.Errorf("another step after it: %+v", got)
		}
	})
}

func TestTheEndRefusesWhatWaits(t *testing.T) {
	for name, how := range map[string]func(*gate.Gate) ending{"fail": func(g *gate.Gate) ending { return g.Fail }, "abort": func(g *gate.Gate) ending { return g.Abort }} {
		t.Run(name, func(t *testing.T) {
			b, wf := holding(t, nil)
			b.ask(wf, "transfer", keyed(invoice))
			before := b.store.commits.Load()
			b.end(wf, how(b.gate))
			same(t, "commits", b.store.commits.Load()-before, int64(1))
			same(t, "the step", b.view(wf).Steps[0].ApprovalStatus, gate.Rejected)
			rec := b.operation(wf, "transfer")
			same(t, "the operation", []any{rec.State, rec.Settlement}, []any{ledger.Settled, ledger.Denied})
		})
	}
}

func TestManyHoldsEnd(t *testing.T) {
	for timeout, want := range map[policies.Timeout]gate.ApprovalStatus{policies.OnTimeoutDeny: gate.Expired, policies.OnTimeoutEscalate: gate.Rejected} {
		t.Run(string(timeout), func(t *testing.T) { manyHoldsEnd(t, timeout, want) })
	}
}

func manyHoldsEnd(t *testing.T, timeout policies.Timeout, want gate.ApprovalStatus) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *gate.Options) { o.Approvals.OnTimeout = timeout })
		wf := b.begin()
		const steps = 60
		name := func(i int) string { return fmt.Sprintf("s%02d", i) }
		for i := range steps {
			b.ask(wf, name(i), call())
		}
		b.rules.says = gate.RequireApproval
		for i := range steps - 1 { // the last one delays no other
			b.ask(wf, name(i), asking{StepType: "tool_call", RetryPolicy: "reevaluate"})
		}
		b.end(wf, b.gate.Abort)
		if pending, err := b.gate.Pending(t.Context(), alice, 100); err != nil || len(pending) != 0 {
			t.Errorf("%d steps of a workflow that has ended wait, %v", len(pending), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour)
		defer cancel()
		_ = b.gate.Work(ctx)
		for i, s := range b.view(wf).Steps[:steps-1] {
			if s.ApprovalStatus != gate.Rejected && s.ApprovalStatus != want {
				t.Errorf("step %d is %q", i, s.ApprovalStatus)
			}
		}
	})
}

func TestNothingIsGrantedInAWorkflowThatEndsMeanwhile(t *testing.T) {
	for _, id := range []string{"old", "new"} {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				b.ask(wf, "old", call())
				time.Sleep(time.Hour) // its lease has ended
				other := gate.New(b.store.Store, nil)
				b.store.before = func(f ledger.Batch) error { // between the read and the commit
					b.store.before = nil
					_, err := other.Abort(t.Context(), alice, wf, "")
					return err
				}
				if e := b.refused(wf, id, call()); e.Code != gate.Terminal {
					t.Errorf("a step of a workflow that ended meanwhile: %v", e)
				}
				same(t, "steps", len(b.view(wf).Steps), 1)
			})
		})
	}
}

func TestNothingBeginsBesideAHoldThatBeginsMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "a", call())
	b.ask(wf, "b", call())
	other := gate.New(b.store.Store, &gate.Options{Rules: &rules{says: gate.RequireApproval}})
	b.store.before = func(ledger.Batch) error { // between the read and the commit
		b.store.before = nil
		_, err := other.Gate(t.Context(), agent, wf, "b", asking{StepType: "tool_call", RetryPolicy: "reevaluate"})
		return err
	}
	if e := b.refused(wf, "a", asking{StepType: "tool_call", RetryPolicy: "reevaluate"}); e.Code != gate.ApprovalPending {
		t.Errorf("a step beside one that is held meanwhile: %v", e)
	}
}

func TestALedgerThatFails(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.store.before = func(ledger.Batch) error { return fmt.Errorf("%w: full disk", ledger.ErrUnavailable) }
	for name, try := range map[string]func() error{
		"create": func() error {
			_, err := b.gate.Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "w"})
			return err
		},
		"gate":     func() error { _, err := b.gate.Gate(t.Context(), agent, wf, "a", call()); return err },
		"complete": func() error { _, err := b.gate.Complete(t.Context(), agent, wf, ""); return err },
	} {
		if e := asError(t, try()); e.Code != gate.Internal || e.Err == nil {
			t.Errorf("%s: %v", name, e)
		}
	}
	b.store.before = func(ledger.Batch) error { return ledger.ErrStale }
	synctest.Test(t, func(t *testing.T) {
		if _, err := b.gate.Gate(t.Context(), agent, wf, "a", call()); asError(t, err).Code != gate.Internal {
			t.Errorf("another actor was always quicker: %v", err)
		}
	})
}

// The end of a workflow settles nothing on a read from before the last attempt.
func TestAStepThatIsLentWhileItsWorkflowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		r := keyed(invoice)
		r.Intent = order
		b.ask(wf, "transfer", r)
		time.Sleep(time.Hour)
		b.dest.set(engine.ReadResult{Effect: engine.EffectAbsent})
		b.dest.slow = 5 * time.Second
		ended := make(chan error)
		go func() { _, err := b.gate.Abort(t.Context(), alice, wf, ""); ended <- err }()
		time.Sleep(time.Second)
		b.dest.mu.Lock()
		b.dest.slow = 0
		b.dest.mu.Unlock()
		other := gate.New(b.store, &gate.Options{Reader: b.dest}) // shares no reads with the first
		if got, err := other.Gate(t.Context(), bob, wf, "transfer", r); err != nil || !got.LeaseGranted {
			t.Fatalf("%+v, %v", got.Lease, err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		same(t, "another actor is at it", b.operation(wf, "transfer").State, ledger.Delegated)
	})
}

// A commit that was made and whose response was lost.
func TestAnAnswerOfTheLedgerThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		b.store.before = func(f ledger.Batch) error {
			b.store.before = nil
			if _, err := b.store.Commit(t.Context(), f); err != nil {
				t.Error(err)
			}
			return fmt.Errorf("%w: %w", ledger.ErrUnavailable, ledger.ErrUnsure)
		}
		if e := b.refused(wf, "a", keyed(invoice)); e.Code != gate.Internal {
			t.Errorf("%v", e)
		}
		got := b.ask(wf, "a", keyed(invoice))
		same(t, "the next gate", []any{got.LeaseGranted, got.RetryContext.GateCount, got.RetryContext.PriorCompletionStatus},
			[]any{false, 2, gate.PriorNotCompleted})
		time.Sleep(time.Minute)
		got = b.ask(wf, "a", keyed(invoice))
		same(t, "after the unknown lease", []any{got.LeaseGranted, got.Fence}, []any{true, int64(2)})
	})
}

// readsOf counts the reads that a call costs.
func (b *bench) readsOf(do func()) int {
	before := len(b.dest.reads())
	do()
	return len(b.dest.reads()) - before
}

func TestRefusedStepsAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		r := keyed(invoice)
		r.Intent = order
		b.ask(wf, "transfer", r)
		time.Sleep(time.Hour)
		same(t, "reads of a refused approval", b.readsOf(func() {
			if _, err := b.gate.Reject(t.Context(), alice, wf, "transfer", why); asError(t, err).Code != gate.NoApprovalNeeded {
				t.Errorf("%v", err)
			}
		}), 0)
		same(t, "reads of an end", b.readsOf(func() { b.end(wf, b.gate.Abort) }), 1)
		same(t, "reads of a second end", b.readsOf(func() {
			if _, err := b.gate.Abort(t.Context(), agent, wf, ""); asError(t, err).Code != gate.Terminal {
				t.Errorf("%v", err)
			}
		}), 0)
	})
}

// A damaged document delays no other for its worker.
func TestADamagedDocumentKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := holding(t, nil)
		var wfs []string
		for range 60 { // more than a worker takes at once
			wf := b.begin()
			b.ask(wf, "a", asking{StepType: "tool_call", IdempotencyKey: wf})
			wfs = append(wfs, wf)
		}
		for _, wf := range wfs[:55] {
			p, err := b.store.Document(t.Context(), tenant, "step", wf+"/a")
			if err != nil {
				t.Fatal(err)
			}
			p.Body = []byte(`{}`)
			if _, err := b.store.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour+10*time.Second)
		defer cancel()
		_ = b.gate.Work(ctx)
		for _, wf := range wfs[55:] {
			same(t, "the hold of a step that can be read", b.operation(wf, "a").Settlement, ledger.Expired)
		}
	})
}
