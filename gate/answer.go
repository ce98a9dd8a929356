package gate

import (
	"encoding/json"
	"slices"
	"time"
)

// facts returns what rules may test, without the request itself.
func (q gating) facts(d documents, s step, previous Decision) Facts {
	c := s.retryContext(previous, false)
	f := Facts{
		Tenant: d.wf.Tenant, WorkflowID: q.workflowID, WorkflowName: d.flow.Name, Source: d.flow.Source,
		StepID: s.ID, StepName: s.Name, StepType: s.Type, Model: s.Model, Provider: s.Provider,
		Tool: s.Asked.toolName(s.ID, q.ask.intent), RetryPolicy: q.ask.RetryPolicy, Risk: string(q.opts.hold(s, q.ask.intent).Class),
		Cost: s.Cost, TokensIn: s.Tokens[0], TokensOut: s.Tokens[1],
		GateCount: c.GateCount, CompletionCount: c.CompletionCount, PriorCompletionStatus: c.PriorCompletionStatus,
		PriorOutputAvailable: c.PriorOutputAvailable, LastDecision: c.LastDecision,
		FirstAttemptAge: d.now.Sub(s.First), IdempotencyKey: s.Key, Verification: c.Verification,
	}
	if s.Asked.Tool != nil {
		f.ToolType = s.Asked.Tool.ToolType
	}
	return f
}

// with adds the request to the facts.
func (f Facts) with(a asked) Facts {
	f.Input, f.Intent = members(a.Input), members(a.Intent)
	if a.Tool != nil {
		f.ToolInput = members(a.Tool.ToolInput)
	}
	return f
}

func members(raw json.RawMessage) (m map[string]any) {
	if len(raw) == 0 {
		return nil
	}
	_ = json.Unmarshal(raw, &m) // it was an object on arrival
	return m
}

// retryContext describes earlier attempts at the step.
func (s step) retryContext(previous Decision, output bool) RetryContext {
	c := RetryContext{
		GateCount: s.Gates, CompletionCount: s.Completions, PriorCompletionStatus: PriorNotCompleted,
		FirstAttemptAt: s.First, LastAttemptAt: s.LastGate, LastDecision: previous, IdempotencyKey: s.Key,
		PriorCompletionAt: s.CompletedAt,
	}
	switch {
	case s.Gates <= 1:
		c.PriorCompletionStatus = PriorNone
	case s.completed():
		c.PriorCompletionStatus, c.PriorOutputAvailable = PriorCompleted, true
	}
	if output && c.PriorOutputAvailable && len(s.Output) > 0 && s.Output[0] == '{' {
		c.PriorOutput = s.Output
	}
	c.Verification = s.verification()
	return c
}

// verification is what the destination showed of the last attempt, nil if it was not read.
func (s step) verification() *Verification {
	if s.Read == nil || s.Read.Fence != s.Lent.Fence {
		return nil
	}
	v := s.Read.Verification
	return &v
}

// response builds the gate's wire response.
func (q gating) response(s step, decision Decision, reason string, previous Decision, granted, cached bool, now time.Time) GateResponse {
	if previous == "" {
		previous = decision
	}
	r := GateResponse{
		Decision: decision, StepID: s.ID, DecisionID: "dec_" + q.workflowID + "_" + s.ID, Reason: reason,
		PolicyIDs: policyIDs(s.Matched), PoliciesEvaluated: s.Evaluated, PoliciesMatched: s.Matched,
		Cached: cached, DecisionSource: "fresh", RetryContext: s.retryContext(previous, q.ask.IncludePriorOutput), Prior: s.Prior,
	}
	if cached {
		r.DecisionSource = "cached"
	}
	if s.status() != "" {
		r.ApprovalID = approvalID(q.workflowID, s.ID, s.Hold.Number)
		r.ApprovalURL = q.opts.approvalURL(q.workflowID, s.ID)
	}
	if s.status() == Pending {
		r.ReviewURL = q.opts.reviewURL(q.workflowID, s.ID)
	}
	switch {
	case decision == Allow:
		r.Lease = s.lease(granted)
		if !granted {
			r.RetryAfterSeconds = s.retryAfter(now)
		}
	case s.Prior != nil:
		r.RetryAfterSeconds = priorAgain(s.Prior.PriorState)
	}
	return r
}

func policyIDs(matched []PolicyMatch) (ids []string) {
	seen := make(map[string]bool)
	for _, m := range matched {
		if !seen[m.PolicyID] {
			seen[m.PolicyID] = true
			ids = append(ids, m.PolicyID)
		}
	}
	return ids
}

// remember keeps a gate for later trials of new rules. Gates with the same request share one copy
// of it.
func (s step) remember(g gated) step {
	g.Facts.Verification = shown(g.Facts.Verification)
	all := append(slices.Clone(s.Gated), g)
	known := map[string]bool{s.Asked.Digest: true}
	for _, e := range s.Earlier {
		known[e.Digest] = true
	}
	all = slices.DeleteFunc(all, func(g gated) bool { return !known[g.Digest] })
	s.Gated = all[max(0, len(all)-maxGated):]
	return s
}

// shown is a verification without the parts too long to keep many times.
func shown(v *Verification) *Verification {
	if v == nil {
		return nil
	}
	short := *v
	short.Mismatches, short.NotChecked = nil, nil
	return &short
}

// keepEarlier keeps the request before it changes.
func (s *step) keepEarlier() {
	byDigest := make(map[string]asked)
	for _, a := range append(slices.Clone(s.Earlier), s.Asked) {
		byDigest[a.Digest] = a
	}
	var kept []asked
	budget := maxEarlier
	for _, g := range slices.Backward(s.Gated) { // newest first
		a, there := byDigest[g.Digest]
		if !there {
			continue
		}
		delete(byDigest, g.Digest)
		if budget -= a.bytes(); budget < 0 {
			break
		}
		kept = append(kept, a)
	}
	s.Earlier = kept
}
