package gate_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/verify"
)

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		first := b.ask(wf, "a", asking{StepType: "tool_call", LeaseSeconds: 30})
		time.Sleep(10*time.Second + time.Millisecond)
		second := b.ask(wf, "a", call())
		same(t, "decision of the second", second.Decision, gate.Allow)
		same(t, "lease of the second", second.Lease, &gate.Lease{LeaseID: first.LeaseID, LeaseHolder: "agent-1", LeaseExpiresAt: first.LeaseExpiresAt})
		same(t, "when to ask again", second.RetryAfterSeconds, 20)
		time.Sleep(20*time.Second - time.Millisecond)
		third := b.ask(wf, "a", call()) // at the very moment
		if !third.LeaseGranted || third.Fence != 2 || third.LeaseID == first.LeaseID {
			t.Fatalf("after the lease had ended: %+v", third.Lease)
		}
		same(t, "prior status of the third", third.RetryContext.PriorCompletionStatus, gate.PriorNotCompleted)
		same(t, "length of a lease that was not reported", time.Until(third.LeaseExpiresAt), time.Minute)
	})
}

func TestStaleFence(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		fence  int64
		want   gate.Code
	}{
		"stale":         {"the step went to another actor since", 1, gate.StaleFence},
		"granted":       {"it is the one that was granted", 2, ""},
		"not given":     {"clients of the published gate know no fence", 0, ""},
		"never granted": {"it was never issued", 3, gate.BadRequest},
		"nonsense":      {"fences begin with 1", -1, gate.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				b.ask(wf, "a", call())
				time.Sleep(time.Minute)
				b.ask(wf, "a", call())
				before := b.view(wf)
				_, err := b.gate.CompleteStep(t.Context(), agent, wf, "a", gate.CompleteRequest{Fence: tt.fence})
				if tt.want == "" {
					if err != nil || b.view(wf).Steps[0].CompletedAt == nil {
						t.Errorf("refused or not done (%v): %s", err, tt.reason)
					}
					return
				}
				if e := asError(t, err); e.Code != tt.want {
					t.Errorf("%v, want %s: %s", e, tt.want, tt.reason)
				}
				same(t, "the workflow after a refusal", b.view(wf), before)
			})
		})
	}
}

func withIntent() asking { return asking{StepType: "tool_call", Intent: order} }

func TestVerificationDecidesAboutTheNextLease(t *testing.T) {
	after := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for name, tt := range map[string]struct {
		reason      string
		found       func() engine.ReadResult
		fails       error
		granted     bool
		effect      string
		verdict     string
		retryAfter  int
		differently func(gate.GateResponse) bool
	}{
		"present": {
			reason: "what is there is completed, and not done again",
			found: func() engine.ReadResult {
				return engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Verified, Ref: "o-1", URL: "https://shop.example/o-1"}
			},
			effect: "present", verdict: "verified",
		},
		"absent": {
			reason: "what is known not to be there can be done",
			found: func() engine.ReadResult {
				return engine.ReadResult{Effect: engine.EffectAbsent, Verdict: verify.Absent}
			},
			granted: true, effect: "absent", verdict: "absent",
		},
		"unknown": {
			reason: "while neither is known no caller does it",
			found: func() engine.ReadResult {
				return engine.ReadResult{Verdict: verify.Absent, After: after(90 * time.Second)}
			},
			effect: "unknown", verdict: "absent", retryAfter: 90,
		},
		"unknown without an end": {
			reason: "then it is asked again soon",
			found:  func() engine.ReadResult { return engine.ReadResult{Verdict: verify.Indeterminate} },
			effect: "unknown", verdict: "indeterminate", retryAfter: 5,
		},
		"a read that fails": {
			reason: "nothing is known then",
			found:  func() engine.ReadResult { return engine.ReadResult{} },
			fails:  errBoom,
			effect: "unknown", verdict: "unavailable", retryAfter: 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.dest.set(engine.ReadResult{Seen: []byte(`{"records":[]}`)})
				wf := b.begin()
				began := time.Now()
				if got := b.ask(wf, "a", withIntent()); !got.LeaseGranted || got.RetryContext.Verification != nil {
					t.Fatalf("first gate: %+v, %+v", got.Lease, got.RetryContext.Verification)
				}
				ended := time.Now().Add(time.Minute)
				time.Sleep(2 * time.Minute)
				b.dest.set(tt.found())
				b.dest.fails = tt.fails
				got := b.ask(wf, "a", withIntent())
				same(t, "the reads", b.dest.reads(), []engine.ReadBackCase{{}, {Began: began, Ended: ended, Before: []byte(`{"records":[]}`)}})
				v := got.RetryContext.Verification
				if v == nil {
					t.Fatal("no verification")
				}
				same(t, "effect and verdict", []string{v.Effect, v.Verdict}, []string{tt.effect, tt.verdict})
				same(t, "granted: "+tt.reason, got.LeaseGranted, tt.granted)
				same(t, "when to ask again", got.RetryAfterSeconds, tt.retryAfter)
				same(t, "ask_after is there when it is unknown", v.AskAfter != nil, tt.effect == "unknown")
			})
		})
	}
}

func TestAbsenceDuringALeaseIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		first := b.ask(wf, "a", withIntent())
		b.dest.set(engine.ReadResult{Effect: engine.EffectAbsent, Verdict: verify.Absent})
		time.Sleep(time.Second)
		got := b.ask(wf, "a", withIntent())
		v := got.RetryContext.Verification
		if got.LeaseGranted || v == nil || v.Effect != "unknown" || !v.AskAfter.Equal(first.LeaseExpiresAt) {
			t.Errorf("granted %v, %+v", got.LeaseGranted, v)
		}
		reads := len(b.dest.reads())
		time.Sleep(20 * time.Second)
		b.ask(wf, "a", withIntent())
		same(t, "reads before the time to ask again", len(b.dest.reads()), reads)
		b.dest.set(engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Verified})
		time.Sleep(time.Minute)
		if got = b.ask(wf, "a", withIntent()); got.LeaseGranted || got.RetryContext.Verification.Effect != "present" {
			t.Errorf("granted %v, %+v", got.LeaseGranted, got.RetryContext.Verification)
		}
	})
}

func TestAWriteOfReadbackAnswersForTheStep(t *testing.T) {
	for name, tt := range map[string]struct {
		reason  string
		found   engine.ReadResult
		granted bool
	}{
		"verified":    {"it is done", engine.ReadResult{Effect: engine.EffectPresent, Write: "wr_1"}, false},
		"under way":   {"it continues by itself", engine.ReadResult{Write: "wr_1"}, false},
		"not applied": {"nothing was done", engine.ReadResult{Effect: engine.EffectAbsent, Write: "wr_1"}, true},
		"fulfilled":   {"the wish was fulfilled before", engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Vacuous}, false},
		"nothing yet": {"it is to be done", engine.ReadResult{Effect: engine.EffectAbsent}, true},
		"not known":   {"it was not begun here", engine.ReadResult{Verdict: verify.Mismatched}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.dest.set(tt.found)
				wf := b.begin()
				got := b.ask(wf, "a", withIntent())
				same(t, tt.reason, got.LeaseGranted, tt.granted)
				if v := got.RetryContext.Verification; !tt.granted && (v == nil || v.WriteID != string(tt.found.Write)) {
					t.Errorf("the write is not named: %+v", v)
				}
			})
		})
	}
}

func TestAReadOfAnotherAttemptDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		r := withIntent()
		r.LeaseSeconds = 1
		b.ask(wf, "a", r)
		time.Sleep(time.Minute)
		b.dest.set(engine.ReadResult{Effect: engine.EffectAbsent})
		b.dest.slow = 5 * time.Second
		slow := make(chan gate.GateResponse)
		go func() { slow <- b.ask(wf, "a", r) }() // its read takes longer than the next attempt
		time.Sleep(time.Second)
		b.dest.mu.Lock()
		b.dest.slow = 0
		b.dest.mu.Unlock()
		other := gate.New(b.store, &gate.Options{Reader: b.dest}) // shares no reads with the first
		if got, err := other.Gate(t.Context(), bob, wf, "a", r); err != nil || !got.LeaseGranted {
			t.Fatalf("the quick one: %+v, %v", got.Lease, err)
		}
		time.Sleep(2 * time.Second)
		b.dest.set(engine.ReadResult{Effect: engine.EffectPresent}) // bob did it, and died
		if got := <-slow; got.LeaseGranted || got.RetryContext.Verification.Effect != "present" {
			t.Errorf("lent on a read from before the last attempt: %+v, %+v", got.Lease, got.RetryContext.Verification)
		}
	})
}

func TestASlowReadDelaysNoOtherStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wf := b.begin()
		b.dest.slow = time.Hour
		began := time.Now()
		done := make(chan gate.GateResponse)
		go func() { done <- b.ask(wf, "slow", withIntent()) }()
		synctest.Wait()
		for _, id := range []string{"x", "y"} {
			b.ask(wf, id, call())
		}
		same(t, "time that other steps waited", time.Since(began), time.Duration(0))
		got := <-done
		same(t, "time that the step waited", time.Since(began), 12*time.Second)
		same(t, "lent without a pre-state", got.LeaseGranted, true)
	})
}

func TestTheIntentStaysWhileAnAttemptIsOpen(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "a", withIntent())
	for name, r := range map[string]asking{
		"left out":              {StepType: "tool_call", RetryPolicy: "reevaluate"},
		"left out, not anew":    {StepType: "tool_call"},
		"another":               {StepType: "tool_call", RetryPolicy: "reevaluate", Intent: replaced(order, `"A-1"`, `"A-2"`)},
		"another, and no input": {StepType: "tool_call", RetryPolicy: "reevaluate", StepInput: raw(map[string]any{}), Intent: replaced(order, `"A-1"`, `"A-2"`)},
	} {
		if e := b.refused(wf, "a", r); e.Code != gate.InputMismatch || e.Field != "intent" {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestCompletionSettlesTheOperation(t *testing.T) {
	for name, tt := range map[string]struct {
		reason     string
		intent     bool
		found      engine.ReadResult
		fails      error
		state      ledger.State
		settlement ledger.Status
	}{
		"no intent":   {"it cannot be read", false, engine.ReadResult{}, nil, ledger.Settled, ledger.Reported},
		"present":     {"it was seen", true, engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Verified}, nil, ledger.Settled, ledger.Verified},
		"absent":      {"the caller and the destination disagree", true, engine.ReadResult{Effect: engine.EffectAbsent, Verdict: verify.Absent}, nil, ledger.Review, ""},
		"mismatched":  {"the caller and the destination disagree", true, engine.ReadResult{Verdict: verify.Mismatched}, nil, ledger.Review, ""},
		"duplicated":  {"it was done twice", true, engine.ReadResult{Verdict: verify.Duplicated}, nil, ledger.Review, ""},
		"not yet":     {"destinations lag", true, engine.ReadResult{Verdict: verify.Absent}, nil, ledger.Settled, ledger.Reported},
		"unreachable": {"the caller's report is kept", true, engine.ReadResult{}, errBoom, ledger.Settled, ledger.Reported},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			wf := b.begin()
			r := asking{StepType: "tool_call", IdempotencyKey: "k"}
			if tt.intent {
				r.Intent = order
			}
			b.ask(wf, "a", r)
			b.dest.set(tt.found)
			b.dest.fails = tt.fails
			before := b.store.commits.Load()
			b.complete(wf, "a", gate.CompleteRequest{IdempotencyKey: "k"})
			same(t, "commits of a completion", b.store.commits.Load()-before, int64(1))
			rec := b.operation(wf, "a")
			same(t, tt.reason, []any{rec.State, rec.Settlement}, []any{tt.state, tt.settlement})
			same(t, "what the step says", b.view(wf).Steps[0].CompletedAt != nil, true)
			b.complete(wf, "a", gate.CompleteRequest{IdempotencyKey: "k"}) // and once more
			same(t, "the write after a second completion", b.operation(wf, "a").Phase(), rec.Phase())
		})
	}
}

func TestEachAttemptIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.dest.set(engine.ReadResult{Effect: engine.EffectAbsent})
		wf := b.begin()
		b.ask(wf, "a", withIntent())
		time.Sleep(time.Minute)
		second := b.ask(wf, "a", withIntent())
		same(t, "second attempt", []any{second.Fence, second.RetryContext.Verification.Effect}, []any{int64(2), "absent"})
		time.Sleep(time.Second)
		third := b.ask(wf, "a", withIntent())
		if v := third.RetryContext.Verification; v == nil || v.Effect != "unknown" {
			t.Errorf("the second attempt shows what was known of the first: %+v", v)
		}
		reads := b.dest.reads()
		same(t, "since when it may have been sent", reads[len(reads)-1].Began, time.Now().Add(-61*time.Second))
	})
}

func TestAnotherIntentIsReadAgain(t *testing.T) {
	b := newBench(t, nil)
	b.dest.set(engine.ReadResult{Effect: engine.EffectPresent, Write: "wr_1"})
	wf := b.begin()
	if got := b.ask(wf, "a", withIntent()); got.LeaseGranted {
		t.Fatal("what is done was lent")
	}
	b.dest.set(engine.ReadResult{})
	other := asking{StepType: "tool_call", RetryPolicy: "reevaluate", Intent: replaced(order, `"A-1"`, `"A-2"`)}
	if got := b.ask(wf, "a", other); !got.LeaseGranted || got.RetryContext.Verification != nil {
		t.Errorf("what is known of one record is reported about another: %+v", got.RetryContext.Verification)
	}
}

// wild panics.
type wild struct{ gate.Reader }

func TestAReadThatPanics(t *testing.T) {
	b := newBench(t, func(o *gate.Options) { o.Reader = wild{} })
	if got := b.ask(b.begin(), "a", withIntent()); !got.LeaseGranted {
		t.Errorf("%+v", got.Lease)
	}
}

// TestACompletionIsHeldAgainstTheDestination: a completion returns what the destination shows of
// the step, and so does every later request for it.
func TestACompletionIsHeldAgainstTheDestination(t *testing.T) {
	for name, tt := range map[string]struct {
		reason          string
		key             string
		found           engine.ReadResult
		fails           error
		effect, verdict string
		state           ledger.State
		again           bool // the next gate reads once more
	}{
		"there":              {"it was done", "wire:1", engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Verified, Ref: "o-1"}, nil, "present", "verified", ledger.Settled, false},
		"not there":          {"its caller says what is not so", "wire:1", engine.ReadResult{Effect: engine.EffectAbsent, Verdict: verify.Absent}, nil, "absent", "absent", ledger.Review, true},
		"another":            {"nor is what is there what it declared", "wire:1", engine.ReadResult{Verdict: verify.Mismatched}, nil, "unknown", "mismatched", ledger.Review, true},
		"cannot be read":     {"nothing is known", "wire:1", engine.ReadResult{}, errBoom, "unknown", "unavailable", ledger.Settled, true},
		"not there, unnamed": {"without a business operation no review can be recorded", "", engine.ReadResult{Effect: engine.EffectAbsent, Verdict: verify.Absent}, nil, "absent", "absent", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				wf := b.begin()
				r := withIntent()
				r.IdempotencyKey = tt.key
				b.ask(wf, "a", r)
				b.dest.set(tt.found)
				b.dest.fails = tt.fails
				committed := b.store.commits.Load()
				seen := b.complete(wf, "a", gate.CompleteRequest{IdempotencyKey: tt.key})
				if seen == nil || seen.Effect != tt.effect || seen.Verdict != tt.verdict {
					t.Fatalf("%s: the answer to the completion has %+v", tt.reason, seen)
				}
				same(t, "commits", b.store.commits.Load()-committed, int64(1))
				if tt.key != "" {
					same(t, tt.reason, b.operation(wf, "a").State, tt.state)
				}
				reads := len(b.dest.reads())
				got := b.ask(wf, "a", r)
				same(t, "the next gate", []any{got.RetryContext.PriorCompletionStatus, got.LeaseGranted, got.RetryContext.Verification},
					[]any{gate.PriorCompleted, false, seen})
				same(t, "completed once more", b.complete(wf, "a", gate.CompleteRequest{IdempotencyKey: tt.key}), seen)
				same(t, "reads right after", len(b.dest.reads()), reads)

				b.dest.set(engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Verified, Ref: "o-1"})
				b.dest.fails = nil
				time.Sleep(time.Minute)
				got = b.ask(wf, "a", r)
				if v := got.RetryContext.Verification; v == nil || v.Effect != "present" || got.LeaseGranted {
					t.Errorf("what came later is not reported: %+v", v)
				}
				same(t, "reads a minute later", len(b.dest.reads()) > reads, tt.again)
			})
		})
	}
}

// TestAReadBeforeACompletionIsNotReportedForIt: the gate of a step that reads no destination now
// cannot confirm what was done since.
func TestAReadBeforeACompletionIsNotReportedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ledger.NewMemory()
		b := benchOn(t, m, nil)
		b.dest.set(engine.ReadResult{Effect: engine.EffectPresent, Verdict: verify.Vacuous})
		wf := b.begin()
		if got := b.ask(wf, "a", withIntent()); got.RetryContext.Verification == nil {
			t.Fatal("nothing was seen before")
		}
		unseeing := benchOn(t, m, func(o *gate.Options) { o.Reader = nil })
		if seen := unseeing.complete(wf, "a", gate.CompleteRequest{}); seen != nil {
			t.Errorf("%+v, want nothing", seen)
		}
	})
}

// The result of a read that contradicts a completion is in the ledger: after a restart the next
// gate returns it too.
func TestFalseCompletionOutlivesTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "readback.db")
	at := time.Now()
	absent := engine.ReadResult{Verdict: verify.Absent, Reason: "no record matches the business key", At: at, After: at.Add(time.Hour)}
	var wf string
	var before *gate.Verification
	for restarted := range 2 {
		book, err := sqlite.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := benchOn(t, book, nil)
		b.dest.set(absent)
		if restarted == 0 {
			wf = b.begin()
			b.ask(wf, "a", withIntent())
			before = b.complete(wf, "a", gate.CompleteRequest{})
		} else {
			got := b.ask(wf, "a", withIntent()).RetryContext
			same(t, "the status", got.PriorCompletionStatus, gate.PriorCompleted)
			same(t, "the verification", got.Verification, before)
			same(t, "reads", len(b.dest.reads()), 0)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if before == nil || before.Verdict != "absent" || before.Effect != "unknown" {
		t.Errorf("the answer to the completion: %+v", before)
	}
}
