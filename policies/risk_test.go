package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/readback-go/readback/intent"
)

func wire() intent.WriteIntent {
	return intent.WriteIntent{Tool: "bank.wire", Destination: "bank/eu", Kind: "transfer", Write: intent.Create}
}

func TestClassify(t *testing.T) {
	day := 24 * time.Hour
	asks := func(w intent.WriteIntent, r intent.Risk) intent.WriteIntent { w.Risk = r; return w }
	for name, c := range map[string]struct {
		rules  []RiskRule
		w      intent.WriteIntent
		want   Hold
		reason string
	}{
		"nothing asked":     {nil, wire(), Hold{Class: intent.RiskAuto, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny}, "the defaults"},
		"the intent itself": {nil, asks(wire(), intent.RiskApprove), Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny}, "its own class counts"},
		"a word that is none": {nil, asks(wire(), "wild"), Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny},
			"what is not understood is held"},
		"a bare rule": {[]RiskRule{{}}, wire(), Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"1"}},
			"the zero rule is the careful one"},
		"raised": {[]RiskRule{{Name: "log", Class: intent.RiskLog}}, wire(), Hold{Class: intent.RiskLog, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"log"}}, "log is more than auto"},
		"not lowered": {[]RiskRule{{Name: "lax", Class: intent.RiskAuto}}, asks(wire(), intent.RiskApprove),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"lax"}}, "no rule lowers"},
		"not lowered by a later rule": {[]RiskRule{{Name: "a"}, {Name: "b", Class: intent.RiskAuto}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"a", "b"}}, "nor what another rule says"},
		"most of all": {[]RiskRule{{Name: "a", Approvers: 2, Within: time.Hour, OnTimeout: OnTimeoutEscalate}, {Name: "b", Approvers: 1, Within: 2 * time.Hour, OnTimeout: OnTimeoutDeny}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 2, Within: time.Hour, OnTimeout: OnTimeoutDeny, Rules: []string{"a", "b"}}, "most reviewers, least time, deny"},
		"escalate": {[]RiskRule{{Name: "a", OnTimeout: OnTimeoutEscalate}, {Name: "b", Class: intent.RiskLog}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutEscalate, Rules: []string{"a", "b"}}, "a rule that only logs says nothing about holds"},
		"silence denies": {[]RiskRule{{Name: "a", OnTimeout: OnTimeoutEscalate}, {Name: "b"}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"a", "b"}}, "the zero value is deny"},
		"longer than the default": {[]RiskRule{{Name: "a", Within: 72 * time.Hour}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: 72 * time.Hour, OnTimeout: OnTimeoutDeny, Rules: []string{"a"}}, "configuration may give more time than the default"},
		"others' rules": {[]RiskRule{{Tool: "crm.*"}, {Destination: "bank"}, {Kind: "order"}, {Writes: []intent.WriteType{intent.Delete}}}, wire(),
			Hold{Class: intent.RiskAuto, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny}, "none of them is for it"},
		"patterns": {[]RiskRule{{Name: "t", Tool: "bank.*", Destination: "bank/?u", Kind: "trans[a-f]er", Writes: []intent.WriteType{intent.Update, intent.Create}}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"t"}}, "all of them fit"},
		"a slash is a letter": {[]RiskRule{{Name: "all", Destination: "*"}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"all"}}, "a rule for everything is for everything"},
		"no pattern": {[]RiskRule{{Name: "bad", Tool: "["}}, wire(),
			Hold{Class: intent.RiskApprove, Approvers: 1, Within: day, OnTimeout: OnTimeoutDeny, Rules: []string{"bad"}}, "what is not understood is held"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Classify(c.rules, c.w)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestRiskRuleCheck(t *testing.T) {
	for name, c := range map[string]struct {
		rule  RiskRule
		names string
	}{
		"bare":       {RiskRule{}, ""},
		"whole":      {RiskRule{Name: "a", Tool: "x*", Writes: []intent.WriteType{intent.Delete}, Class: intent.RiskLog, Approvers: 2, Within: time.Hour, OnTimeout: OnTimeoutEscalate}, ""},
		"pattern":    {RiskRule{Kind: "[a"}, "kind"},
		"write type": {RiskRule{Writes: []intent.WriteType{"merge"}}, "writes"},
		"class":      {RiskRule{Class: "high"}, "class"},
		"approvers":  {RiskRule{Approvers: -1}, "approvers"},
		"a crowd":    {RiskRule{Approvers: 99}, "approvers"},
		"within":     {RiskRule{Within: -time.Second}, "within"},
		"timeout":    {RiskRule{OnTimeout: "allow"}, "on timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.rule.Check()
			if (err == nil) != (c.names == "") || err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v, want an error that names %q", err, c.names)
			}
		})
	}
}

func drawRule(t *rapid.T) RiskRule {
	pattern := rapid.SampledFrom([]string{"", "*", "bank.*", "[", "other", "bank/eu", "trans?er"})
	return RiskRule{
		Tool: pattern.Draw(t, "tool"), Destination: pattern.Draw(t, "destination"), Kind: pattern.Draw(t, "kind"),
		Class:     rapid.SampledFrom([]intent.Risk{"", intent.RiskAuto, intent.RiskLog, intent.RiskApprove, "wild"}).Draw(t, "class"),
		Approvers: rapid.IntRange(-1, 4).Draw(t, "approvers"),
		Within:    time.Duration(rapid.IntRange(-1, 48).Draw(t, "hours")) * time.Hour,
		OnTimeout: rapid.SampledFrom([]Timeout{"", OnTimeoutDeny, OnTimeoutEscalate, "allow"}).Draw(t, "timeout"),
	}
}

// For any rules, one more rule never permits more, and their order does not matter.
func TestRulesNeverLower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := wire()
		w.Risk = rapid.SampledFrom([]intent.Risk{"", intent.RiskAuto, intent.RiskLog, intent.RiskApprove, "wild"}).Draw(t, "risk")
		rules := rapid.SliceOfN(rapid.Custom(drawRule), 0, 5).Draw(t, "rules")
		more := drawRule(t)
		before, after := Classify(rules, w), Classify(append(slices.Clone(rules), more), w)
		timed := slices.ContainsFunc(rules, func(r RiskRule) bool { return r.Within > 0 && r.fits(w) })
		switch {
		case careful(before.Class) < careful(w.Risk):
			t.Fatalf("the intent asks for %q and gets %q", w.Risk, before.Class)
		case careful(after.Class) < careful(before.Class), after.Approvers < before.Approvers:
			t.Fatalf("lowered from %+v to %+v", before, after)
		case timed && after.Within > before.Within:
			t.Fatalf("given more time: %+v, then %+v", before, after)
		case before.Approvers < 1, before.Within <= 0, before.OnTimeout != OnTimeoutDeny && before.OnTimeout != OnTimeoutEscalate:
			t.Fatalf("not filled in: %+v", before)
		}
		slices.Reverse(rules)
		turned := Classify(rules, w)
		turned.Rules, before.Rules = nil, nil
		if diff := cmp.Diff(before, turned); diff != "" {
			t.Fatalf("the order of rules counts: %s", diff)
		}
	})
}
