package verifytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/verify"
)

// TestAudit: the real verifier accepts nothing wrong and refuses nothing right, at any class of
// destination.
func TestAudit(t *testing.T) {
	all := options()
	for _, name := range sorted(all) {
		t.Run(name, func(t *testing.T) {
			tally := Audit(t, onOrders(all[name]))
			if tally.Total() < 80 || tally.Legitimate < 40 {
				t.Errorf("%d wrong states and %d legitimate differences were judged; the audit has lost some", tally.Total(), tally.Legitimate)
			}
		})
	}
}

// broken are verifiers that accept too much, and the state that exposes each.
var broken = map[string]struct {
	change func(c *verify.Case)                                                              // before it is judged
	after  func(c verify.Case, j verify.Judgement) verify.Judgement                          // once it is judged
	before func(judge func(verify.Case) verify.Judgement) func(verify.Case) verify.Judgement // instead of JudgeBefore
	states []State
	reason string
}{
	"nodder": {
		after: func(_ verify.Case, _ verify.Judgement) verify.Judgement {
			return verify.Judgement{Verdict: verify.Verified}
		},
		states: States(), reason: "everything is verified"},
	"first-record": {
		change: func(c *verify.Case) { c.Seen.Records = c.Seen.Records[:min(len(c.Seen.Records), 1)] },
		states: []State{Duplicate}, reason: "records are not counted: each field is right, and there are two"},
	"too-few": {
		change: func(c *verify.Case) { c.Intent.Count = 0 },
		states: []State{Duplicate}, reason: "fewer records than declared will do"},
	"stamp-ignored": {
		change: func(c *verify.Case) { c.Profile.Stamped = false },
		states: []State{Foreign}, reason: "whose record it is does not count"},
	"no-read-before": {
		before: func(func(verify.Case) verify.Judgement) func(verify.Case) verify.Judgement {
			return func(verify.Case) verify.Judgement { return verify.Judgement{} }
		},
		states: []State{Foreign}, reason: "a record of another actor's is not in the way of a create"},
	"collateral-off": {
		change: func(c *verify.Case) {
			if c.Intent.Write != intent.Create {
				c.Before = nil
			}
		},
		states: []State{Collateral}, reason: "what changed besides does not count"},
	"collateral-allowed": {
		after:  passing(verify.Collateral),
		states: []State{Collateral}, reason: "a collateral change is called verified"},
	"all-alike": {
		change: func(c *verify.Case) { c.Intent.Expect = nil },
		states: []State{WrongValue, DroppedField, Swapped, OldVersion}, reason: "the comparison always finds values equal"},
	"absent-counts-as-right": {
		change: func(c *verify.Case) { c.Intent.Expect = whatIsThere(c) },
		states: []State{DroppedField}, reason: "only fields that are there are compared"},
	"key-ignored": {
		change: func(c *verify.Case) { c.Intent.Key = nil },
		states: []State{WrongRecord}, reason: "a record under another key is taken for ours"},
	"absent-fields-ignored": {
		change: func(c *verify.Case) { c.Intent.Absent = nil },
		states: []State{DroppedField}, reason: "what must not be there may be"},
	"stale-believed": {
		after:  passing(verify.Stale),
		states: []State{OldVersion, WrongRecord}, reason: "the state from before the write is called verified"},
	"absent-believed": {
		after:  passing(verify.Absent),
		states: []State{OldVersion, WrongRecord}, reason: "no record is called verified"},
	"letter-case": {
		change: loose(intent.RuleFold), states: []State{WrongValue}, reason: "letter case never counts"},
	"blanks": {
		change: loose(intent.RuleTrim), states: []State{WrongValue}, reason: "blanks never count"},
	"numbers-as-text": {
		change: loose(intent.RuleString), states: []State{WrongValue}, reason: "a number and its text are the same"},
	"sets": {
		change: loose(intent.RuleSet), states: []State{WrongValue}, reason: "the order of a list never counts"},
	"null-is-nothing": {
		change: loose(intent.RuleEmpty), states: []State{DroppedField}, reason: "null, missing and empty are one"},
}

// passing treats one more verdict as verified.
func passing(v verify.Verdict) func(verify.Case, verify.Judgement) verify.Judgement {
	return func(_ verify.Case, j verify.Judgement) verify.Judgement {
		if j.Verdict == v {
			j.Verdict = verify.Verified
		}
		return j
	}
}

// loose compares every field by one more rule.
func loose(rule intent.RuleName) func(c *verify.Case) {
	return func(c *verify.Case) {
		compare := map[string]intent.Comparison{}
		for name, v := range c.Intent.Expect {
			compare["/"+name] = append(intent.Comparison{{Name: rule}}, c.Profile.Compare["/"+name]...)
			if object, ok := v.(map[string]any); ok {
				delete(compare, "/"+name)
				for member := range object {
					compare["/"+name+"/"+member] = intent.Comparison{{Name: rule}}
				}
			}
		}
		c.Profile.Compare = compare
	}
}

func whatIsThere(c *verify.Case) intent.Fields {
	there := intent.Fields{}
	for name, v := range c.Intent.Expect {
		for _, r := range c.Seen.Records {
			if _, ok := r.Fields[name]; ok {
				there[name] = v
			}
		}
	}
	return there
}

// TestAuditFindsBroken: each broken verifier is exposed, by the states that it concerns.
func TestAuditFindsBroken(t *testing.T) {
	for _, name := range sorted(broken) {
		t.Run(name, func(t *testing.T) {
			c := broken[name]
			v := verifier{judge: verify.Judge, before: verify.JudgeBefore}
			v.judge = func(k verify.Case) verify.Judgement {
				seen := k
				if c.change != nil {
					c.change(&seen)
				}
				j := verify.Judge(seen)
				if c.after != nil {
					j = c.after(k, j)
				}
				return j
			}
			if c.before != nil {
				v.before = c.before(verify.JudgeBefore)
			}
			r := onOrders(orders.Plain.Options()).examine(t, v)
			for _, s := range c.states {
				if !slices.ContainsFunc(r.accepted, func(why string) bool { return strings.HasPrefix(why, string(s)+"/") }) {
					t.Errorf("no state %q was accepted by a verifier for which %s; the audit does not see it", s, c.reason)
				}
			}
		})
	}
}

// TestAuditFindsRefusal: a verifier that refuses too much is no better.
func TestAuditFindsRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *verify.Case)
		reason string
	}{
		"never":             {func(c *verify.Case) { c.Seen.Records = nil }, "nothing is ever found"},
		"rules-ignored":     {func(c *verify.Case) { c.Profile.Compare = nil }, "what the destination normalises is held against it"},
		"volatile-counted":  {func(c *verify.Case) { c.Profile.Volatile = nil }, "what the destination changes by itself is held against it"},
		"ignore-ignored":    {func(c *verify.Case) { c.Intent.Ignore = nil }, "what the intent ignores is compared"},
		"stamp-not-ours":    {func(c *verify.Case) { c.Stamp = "rb-other" }, "our own stamp is called another's"},
		"no-record-unasked": {func(c *verify.Case) { c.Intent.Absent = []string{"/updated_at"} }, "a field that the destination adds is held against it"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier{judge: func(k verify.Case) verify.Judgement { c.change(&k); return verify.Judge(k) }, before: verify.JudgeBefore}
			if r := onOrders(orders.Plain.Options()).examine(t, v); len(r.refused) == 0 {
				t.Errorf("no legitimate difference was refused by a verifier for which %s", c.reason)
			}
		})
	}
}

// TestFailures: an audit that judged too little is none.
func TestFailures(t *testing.T) {
	full := func() *report {
		r := &report{tally: Tally{Wrong: map[State]int{}, Legitimate: 1}}
		for _, s := range States() {
			r.tally.Wrong[s] = 1
		}
		return r
	}
	for name, c := range map[string]struct {
		change func(r *report, h *Harness)
		want   int
		reason string
	}{
		"whole": {func(*report, *Harness) {}, 0, "every state was judged"},
		"state": {func(r *report, _ *Harness) { delete(r.tally.Wrong, Swapped) }, 1, "a state is missing in silence"},
		"declared": {func(r *report, h *Harness) {
			delete(r.tally.Wrong, Swapped)
			h.Lacks = map[State]string{Swapped: "no two"}
		}, 0, "it is declared"},
		"nothing":     {func(r *report, _ *Harness) { clear(r.tally.Wrong) }, len(States()) + 1, "nothing was judged"},
		"unrefusable": {func(r *report, _ *Harness) { r.tally.Legitimate = 0 }, 1, "nothing right was judged"},
		"accepted":    {func(r *report, _ *Harness) { r.accepted = []string{"x"} }, 1, "a wrong state was accepted"},
		"refused":     {func(r *report, _ *Harness) { r.refused = []string{"x"} }, 1, "a right one was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r, h := full(), Harness{}
			c.change(r, &h)
			if got := h.failures(r); len(got) != c.want {
				t.Errorf("%d failures %q, want %d: %s", len(got), got, c.want, c.reason)
			}
		})
	}
}
