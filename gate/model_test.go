package gate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
)

// act is one action on a workflow of two steps, of which the first declares an intent.
type act struct {
	Kind   string
	Step   int
	Key    bool // with the idempotency key
	Input  int
	Anew   bool
	Says   gate.Decision // the rules' decision
	Who    string
	Fence  int64
	Pass   time.Duration
	Effect engine.Effect // at the destination
}

func drawAct(t *rapid.T) act {
	return act{
		Kind:  rapid.SampledFrom([]string{"gate", "gate", "gate", "gate", "gate", "complete", "pass", "pass", "approve", "approve", "reject", "abort", "resume"}).Draw(t, "kind"),
		Step:  rapid.IntRange(0, 1).Draw(t, "step"),
		Key:   rapid.IntRange(0, 9).Draw(t, "key") > 0,
		Input: max(0, rapid.IntRange(-6, 1).Draw(t, "input")),
		Anew:  rapid.IntRange(0, 2).Draw(t, "anew") == 0,
		Says:  rapid.SampledFrom([]gate.Decision{gate.Allow, gate.Allow, gate.Block, gate.RequireApproval}).Draw(t, "says"),
		Who:   rapid.SampledFrom([]string{"ann", "ann", "ann", "ben", "cat", "dee"}).Draw(t, "who"),
		Fence: int64(rapid.IntRange(0, 3).Draw(t, "fence")),
		Pass:  rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 2 * time.Hour}).Draw(t, "pass"),
		Effect: rapid.SampledFrom([]engine.Effect{engine.EffectAbsent, engine.EffectAbsent, engine.EffectPresent,
			engine.EffectUnknown}).Draw(t, "effect"),
	}
}

// reply is what a caller receives.
type reply struct {
	Code     gate.Code
	Decision gate.Decision
	Cached   bool
	Granted  bool
	Fence    int64
	Effect   string
	Approval gate.ApprovalStatus
	Context  gate.RetryContext
}

// modelStep is the state of a step.
type modelStep struct {
	there, key  bool
	allowed     bool // once, by a gate or by reviewers
	input       int
	ruled       gate.Decision
	answered    gate.Decision
	gates, done int
	first, last time.Time
	doneAt      *time.Time
	// The hold.
	hold    gate.ApprovalStatus
	until   time.Time
	asked   map[string]bool
	agreed  map[string]bool
	holding int // the input that it is about
	// The lease, and the last read's result for that attempt.
	fence    int64
	leaseEnd time.Time
	effect   string
	about    int64
	readAt   time.Time
	askAfter time.Time
}

// model is a simple model of the gate: one workflow, no store, no concurrency.
type model struct {
	now     time.Time
	aborted bool
	steps   [2]modelStep
	order   []int
	effect  engine.Effect
}

const modelPeople, modelWithin = 2, 3 * time.Hour

func (m *model) lapse() {
	for i := range m.steps {
		if s := &m.steps[i]; s.hold == gate.Pending && !m.now.Before(s.until) {
			s.hold = gate.Expired
		}
	}
}

func (m *model) play(a act) reply {
	m.lapse()
	s := &m.steps[a.Step]
	switch a.Kind {
	case "gate":
		return m.gate(a, s)
	case "complete":
		return m.complete(a, s)
	case "approve", "reject":
		return m.judge(a, s)
	case "abort":
		if m.aborted {
			return reply{Code: gate.Terminal}
		}
		m.abort()
	case "resume":
		return m.resume()
	}
	return reply{}
}

func (m *model) gate(a act, s *modelStep) reply {
	switch {
	case m.aborted:
		return reply{Code: gate.Terminal}
	case s.there && s.key != a.Key:
		return reply{Code: gate.KeyMismatch}
	case s.there && s.input != a.Input && !a.Anew:
		return reply{Code: gate.InputMismatch}
	case s.there && a.Anew && (s.hold == gate.Pending || s.hold == gate.Expired || s.hold == gate.Rejected):
		return reply{Code: gate.ApprovalHold}
	}
	evaluated := !s.there || a.Anew
	if evaluated && m.otherWaits(a.Step) {
		return reply{Code: gate.ApprovalPending}
	}
	if !s.there {
		*s = modelStep{there: true, key: a.Key, first: m.now}
		m.order = append(m.order, a.Step)
	}
	previous := s.answered
	s.gates, s.last = s.gates+1, m.now
	if evaluated {
		s.input = a.Input
		m.rule(a, s)
	}
	m.readBack(a, s)
	answer := s.ruled
	switch s.hold {
	case gate.Approved:
		answer = gate.Allow
	case gate.Expired, gate.Rejected:
		answer = gate.Block
	}
	if s.asked == nil {
		s.asked = map[string]bool{}
	}
	s.asked[a.Who] = true
	if previous == "" {
		previous = answer
	}
	s.answered, s.allowed = answer, s.allowed || answer == gate.Allow
	t := reply{Decision: answer, Cached: !evaluated, Approval: s.hold, Context: m.context(s, previous)}
	if a.Step == 0 {
		if s.done == 0 && s.fence == 0 && s.effect == "" && answer == gate.Allow && m.effect == engine.EffectPresent {
			s.effect, s.readAt = "present", m.now // the expected state was already there
		}
		t.Effect = s.effect
	}
	if answer == gate.Allow && s.done == 0 && !m.now.Before(s.leaseEnd) && (t.Effect == "" || t.Effect == "absent") {
		s.fence++
		s.leaseEnd = m.now.Add(time.Minute)
		t.Granted, t.Fence = true, s.fence
	}
	return t
}

func (m *model) rule(a act, s *modelStep) {
	approved := s.hold == gate.Approved && s.holding == a.Input
	s.ruled = a.Says
	switch {
	case a.Says != gate.RequireApproval:
		s.hold = ""
	case !approved:
		s.hold, s.until, s.holding = gate.Pending, m.now.Add(modelWithin), a.Input
		s.agreed = map[string]bool{}
	}
}

// readBack is the known state of an attempt: a recent result still serves, and an absent effect is
// unknown while a caller may be carrying the step out.
func (m *model) readBack(a act, s *modelStep) {
	if a.Step != 0 || s.done > 0 && s.effect == "present" {
		return
	}
	if s.fence == 0 && s.done == 0 {
		if s.effect != "" && m.now.Sub(s.readAt) >= 2*time.Second {
			s.effect, s.readAt = "", m.now
			if m.effect == engine.EffectPresent {
				s.effect = "present"
			}
		}
		return
	}
	if s.about == s.fence && (m.now.Sub(s.readAt) < 2*time.Second || m.now.Before(s.askAfter)) {
		return
	}
	m.see(s)
}

func (m *model) see(s *modelStep) {
	s.about, s.readAt, s.askAfter = s.fence, m.now, time.Time{}
	switch {
	case m.effect == engine.EffectPresent:
		s.effect = "present"
	case m.effect == engine.EffectAbsent && (s.done > 0 || !m.now.Before(s.leaseEnd)):
		s.effect = "absent"
	case m.effect == engine.EffectAbsent:
		s.effect, s.askAfter = "unknown", s.leaseEnd
	default:
		s.effect, s.askAfter = "unknown", m.now.Add(5*time.Second)
	}
}

func (m *model) otherWaits(step int) bool {
	other := m.steps[1-step]
	return other.there && other.hold == gate.Pending
}

func (m *model) context(s *modelStep, previous gate.Decision) gate.RetryContext {
	c := gate.RetryContext{GateCount: s.gates, CompletionCount: s.done, PriorCompletionStatus: gate.PriorNotCompleted,
		PriorCompletionAt: s.doneAt, FirstAttemptAt: s.first, LastAttemptAt: s.last, LastDecision: previous}
	if s.key {
		c.IdempotencyKey = "k"
	}
	if s.gates <= 1 {
		c.PriorCompletionStatus = gate.PriorNone
	} else if s.done > 0 {
		c.PriorCompletionStatus, c.PriorOutputAvailable = gate.PriorCompleted, true
		c.PriorOutput = []byte(fmt.Sprintf(`{"n":%d}`, s.done))
	}
	return c
}

func (m *model) complete(a act, s *modelStep) reply {
	switch {
	case !s.there:
		return reply{Code: gate.NotFound}
	case s.key != a.Key:
		return reply{Code: gate.KeyMismatch}
	case a.Fence > s.fence:
		return reply{Code: gate.BadRequest}
	case a.Fence > 0 && a.Fence < s.fence:
		return reply{Code: gate.StaleFence}
	case s.allowed: // it may have been carried out before it was held
	case s.hold == gate.Pending:
		return reply{Code: gate.ApprovalPending}
	case s.hold == gate.Rejected:
		return reply{Code: gate.StepRejected}
	case s.hold == gate.Expired:
		return reply{Code: gate.ApprovalExpired}
	}
	at := m.now
	s.done, s.doneAt = s.done+1, &at
	if a.Step == 0 && s.done == 1 {
		m.see(s)
	}
	return reply{}
}

func (m *model) judge(a act, s *modelStep) reply {
	switch {
	case !s.there:
		return reply{Code: gate.NotFound}
	case s.hold == "":
		return reply{Code: gate.NoApprovalNeeded}
	case s.hold == gate.Expired:
		return reply{Code: gate.ApprovalExpired}
	case m.aborted:
		return reply{Code: gate.Terminal}
	case s.hold != gate.Pending:
		return reply{Code: gate.NotPending}
	case a.Kind == "reject":
		s.hold = gate.Rejected
		m.abort()
		return reply{Decision: gate.Block, Approval: gate.Rejected}
	case s.agreed[a.Who], s.asked[a.Who]:
		return reply{Code: gate.Forbidden}
	}
	s.agreed[a.Who] = true
	if len(s.agreed) < modelPeople {
		return reply{Decision: gate.RequireApproval, Approval: gate.Pending}
	}
	s.hold, s.allowed = gate.Approved, true
	return reply{Decision: gate.Allow, Approval: gate.Approved}
}

func (m *model) abort() {
	m.aborted = true
	for i := range m.steps {
		if m.steps[i].hold == gate.Pending {
			m.steps[i].hold = gate.Rejected
		}
	}
}

func (m *model) resume() reply {
	if m.aborted {
		return reply{Code: gate.Terminal}
	}
	if len(m.order) == 0 {
		return reply{}
	}
	switch m.steps[m.order[len(m.order)-1]].hold {
	case gate.Pending:
		return reply{Code: gate.ApprovalPending}
	case gate.Expired:
		return reply{Code: gate.StepRejected}
	}
	return reply{}
}

// real applies the same action to a gate.
func (b *bench) real(wf string, a act, done *[2]int) reply {
	id := []string{"first", "second"}[a.Step]
	who := gate.Caller{Tenant: tenant, Name: a.Who}
	key := ""
	if a.Key {
		key = "k"
	}
	b.rules.says = a.Says
	var err error
	t := reply{}
	switch a.Kind {
	case "gate":
		r := asking{StepType: "tool_call", IdempotencyKey: key, IncludePriorOutput: true, StepInput: raw(map[string]any{"n": a.Input})}
		if a.Anew {
			r.RetryPolicy = "reevaluate"
		}
		if a.Step == 0 {
			r.Intent = order
		}
		var got gate.GateResponse
		if got, err = b.gate.Gate(b.t.Context(), who, wf, id, r); err == nil {
			t = reply{Decision: got.Decision, Cached: got.Cached, Context: got.RetryContext}
			if got.Lease != nil {
				t.Granted, t.Fence = got.LeaseGranted, got.Fence
			}
			if v := got.RetryContext.Verification; v != nil {
				t.Effect, t.Context.Verification = v.Effect, nil
			}
			t.Approval = b.view(wf).Steps[b.at(wf, id)].ApprovalStatus
		}
	case "complete":
		_, err = b.gate.CompleteStep(b.t.Context(), who, wf, id, gate.CompleteRequest{IdempotencyKey: key, Fence: a.Fence, Output: raw(map[string]any{"n": done[a.Step] + 1})})
		if err == nil {
			done[a.Step]++
		}
	case "approve", "reject":
		do := map[string]judge{"approve": b.gate.Approve, "reject": b.gate.Reject}[a.Kind]
		var got gate.ApprovalResult
		if got, err = do(b.t.Context(), who, wf, id, why); err == nil {
			t = reply{Decision: got.Decision, Approval: got.ApprovalStatus}
		}
	case "abort":
		_, err = b.gate.Abort(b.t.Context(), who, wf, "")
	case "resume":
		_, err = b.gate.Resume(b.t.Context(), who, wf, "")
	}
	if err != nil {
		t.Code = asError(b.t, err).Code
	}
	return t
}

func (b *bench) at(wf, id string) int {
	for i, s := range b.view(wf).Steps {
		if s.StepID == id {
			return i
		}
	}
	return -1
}

// The gate's answers equal the model's, whatever was done before. Run more of it with -run
// ModelOfTheGate -rapid.checks=10000.
func TestModelOfTheGate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		acts := rapid.SliceOfN(rapid.Custom(drawAct), 1, 30).Draw(rt, "acts")
		worker := rapid.Bool().Draw(rt, "worker")
		bad := ""
		synctest.Test(t, func(t *testing.T) { bad = compare(t, acts, worker) })
		if bad != "" {
			rt.Fatal(bad)
		}
	})
}

func compare(t *testing.T, acts []act, worker bool) string {
	b := newBench(t, func(o *gate.Options) {
		o.Approvals = gate.Approvals{Approvers: modelPeople, Within: modelWithin}
	})
	wf := b.begin()
	if worker {
		go func() { _ = b.gate.Work(t.Context()) }()
	}
	m := &model{now: time.Now()}
	var done [2]int
	for i, a := range acts {
		if a.Kind == "pass" {
			time.Sleep(a.Pass)
			synctest.Wait()
			m.now, m.effect = time.Now(), a.Effect
			b.dest.set(engine.ReadResult{Effect: a.Effect})
		}
		want, got := m.play(a), b.real(wf, a, &done)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Sprintf("%d: %+v (-want +got):\n%s", i, a, diff)
		}
	}
	return ""
}
