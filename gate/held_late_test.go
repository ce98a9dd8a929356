package gate_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
)

// A hold that comes after a caller was allowed to carry the step out is too late to prevent it:
// the report that it was done must not be lost.
func TestAHoldThatComesTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		reason   string
		approved bool // instead of allowed
		after    func(b *bench, wf string)
		fate     ledger.State // without the completion
	}{
		"pending":  {"it was lent before", false, func(*bench, string) {}, ledger.Delegated},
		"expired":  {"it was lent before", false, func(*bench, string) { time.Sleep(25 * time.Hour) }, ledger.Delegated},
		"rejected": {"it was lent before", false, (*bench).reject, ledger.Delegated},
		"approved, then rejected": {"clients that do not gate again carry out what was approved", true,
			(*bench).reject, ledger.Delegated},
	} {
		for how, completes := range map[string]bool{"completed": true, "not": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, nil)
					wf := b.begin()
					if tt.approved {
						held(b)
					}
					b.ask(wf, "transfer", keyed(invoice))
					if tt.approved {
						if _, err := b.gate.Approve(t.Context(), alice, wf, "transfer", why); err != nil {
							t.Fatal(err)
						}
					}
					held(b)
					anew := keyed(map[string]any{"amount": 7})
					anew.RetryPolicy = "reevaluate"
					if got := b.ask(wf, "transfer", anew); got.Decision != gate.RequireApproval {
						t.Fatalf("%+v", got)
					}
					tt.after(b, wf)
					if !completes {
						same(t, tt.reason, b.operation(wf, "transfer").State, tt.fate)
						return
					}
					b.done(wf)
					rec := b.operation(wf, "transfer")
					same(t, tt.reason, []any{rec.State, rec.Settlement}, []any{ledger.Settled, ledger.Reported})
				})
			})
		}
	}
}

func (b *bench) reject(wf string) {
	b.t.Helper()
	if _, err := b.gate.Reject(b.t.Context(), bob, wf, "transfer", why); err != nil {
		b.t.Fatal(err)
	}
}

// Under settings that have changed since: the operation was reserved with the hold.
func TestACompletionOfWhatWasDenied(t *testing.T) {
	b := newBench(t, func(o *gate.Options) { o.AcrossWorkflows = gate.AcrossIgnore })
	wf := b.begin()
	b.ask(wf, "transfer", keyed(invoice))
	now := benchOn(t, b.store, nil)
	held(now)
	anew := keyed(invoice)
	anew.RetryPolicy = "reevaluate"
	now.ask(wf, "transfer", anew)
	now.reject(wf)
	same(t, "before the completion", now.operation(wf, "transfer").Settlement, ledger.Denied)
	now.done(wf)
	same(t, "it was done all the same", now.operation(wf, "transfer").State, ledger.Review)
}

// A step that is already done begins nothing.
func TestNothingIsReservedForWhatIsDone(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.rules.says = gate.Block
	b.ask(wf, "transfer", keyed(invoice))
	b.done(wf)
	b.rules.says = gate.Allow
	anew := keyed(invoice)
	anew.RetryPolicy = "reevaluate"
	b.ask(wf, "transfer", anew)
	if got := b.ask(b.begin(), "transfer", keyed(invoice)); got.Prior != nil {
		t.Errorf("what no caller will settle blocks others: %+v", got.Prior)
	}
}

// A completion of a step that was never allowed is refused, and reviewers can see it.
func TestACompletionWithoutApproval(t *testing.T) {
	var logged bytes.Buffer
	b, wf := holding(t, func(o *gate.Options) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	b.ask(wf, "a", call())
	before := b.view(wf)
	if _, err := b.gate.CompleteStep(t.Context(), agent, wf, "a", gate.CompleteRequest{}); asError(t, err).Code != gate.ApprovalPending {
		t.Errorf("%v", err)
	}
	same(t, "the workflow", b.view(wf), before)
	if text := logged.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, wf) || !strings.Contains(text, agent.Name) {
		t.Errorf("what is reported about it: %q", text)
	}
}

// A step that was done before a hold is not done again when it is approved.
func TestAnApprovalAfterTheCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		b.ask(wf, "transfer", keyed(invoice))
		held(b)
		anew := keyed(invoice)
		anew.RetryPolicy = "reevaluate"
		b.ask(wf, "transfer", anew)
		b.done(wf)
		if got := b.ask(wf, "transfer", keyed(invoice)); got.Decision != gate.RequireApproval || got.RetryContext.PriorCompletionStatus != gate.PriorCompleted {
			t.Errorf("a completion cleared the hold: %+v", got)
		}
		if _, err := b.gate.Approve(t.Context(), alice, wf, "transfer", why); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := b.ask(wf, "transfer", keyed(invoice)); got.Decision != gate.Allow || got.LeaseGranted {
			t.Errorf("what was done is lent again: %+v", got.Lease)
		}
	})
}
