package intent

import (
	stdjson "encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known wherever an intent is validated

	"github.com/go-playground/validator/v10"
)

// checkCompare looks at every comparison of the intent.
func checkCompare(r reporter, w WriteIntent) {
	if len(w.Compare) > MaxPaths {
		r.reportf("/compare", fmt.Sprintf("at most %d", MaxPaths), "has %d members", len(w.Compare))
	}
	for path, rules := range w.Compare {
		at := Pointer("/compare").AppendToken(path)
		if len(path) > MaxPointer || !pointerExpr.MatchString(path) {
			r.reportf("/compare", `JSON Pointers to members ("/amount") as names`, "has the member name %q", clip(path))
		}
		for _, p := range comparisonProblems(at, rules) {
			r.report(Pointer(p.Path), p.Problem, p.Want)
		}
	}
}

func comparisonProblems(at Pointer, rules Comparison) []Problem {
	var problems []Problem
	if len(rules) > MaxRules {
		problems = append(problems, Problem{string(at), fmt.Sprintf("has %d rules", len(rules)), fmt.Sprintf("at most %d", MaxRules)})
	}
	for i, rule := range rules {
		problems = append(problems, structProblems(element(at, i), rule)...)
		if rule.compares() && i < len(rules)-1 {
			problems = append(problems, Problem{string(element(at, i)), fmt.Sprintf("is %s before the end of the list", rule.Name), "it as the last rule: it compares"})
		}
	}
	return problems
}

// Validate checks the rules of one comparison, for profiles that bring their
// own: known rules, parameters only on the rule that uses them, and numeric,
// time and set only at the end. The error is an [InvalidError] whose paths
// begin at the list.
func (c Comparison) Validate() error { return invalid(comparisonProblems("", c)) }

// compares reports whether the rule ends a list.
func (r Rule) compares() bool {
	return r.Name == RuleNumeric || r.Name == RuleTime || r.Name == RuleSet
}

// checkRule: each parameter on its own rule, and meaning something.
func checkRule(level validator.StructLevel) {
	rule := level.Current().Interface().(Rule)
	r := reporter{level}
	for _, p := range []struct {
		name, value string
		owner       RuleName
		valid       func(string) bool
		want        string
	}{
		{"tolerance", rule.Tolerance, RuleNumeric, isTolerance, `a decimal that is not negative ("0.005")`},
		{"precision", rule.Precision, RuleTime, isPrecision, `a Go duration above zero ("1s", "1ms")`},
		{"zone", rule.Zone, RuleTime, isZone, `an IANA zone ("UTC", "Europe/Berlin")`},
	} {
		at := Pointer("").AppendToken(p.name)
		switch {
		case p.value == "":
		case rule.Name != p.owner:
			r.reportf(at, fmt.Sprintf("it only on %s", p.owner), "is set on %q, which does not use it", clip(string(rule.Name)))
		case len(p.value) > MaxRuleText || !p.valid(p.value):
			r.reportf(at, p.want, "is %q", clip(p.value))
		}
	}
}

func isTolerance(s string) bool {
	d, ok := parseDecimal(stdjson.Number(s))
	return ok && !strings.HasPrefix(s, "-") && !strings.ContainsAny(s, "eE") && !d.negative
}

func isPrecision(s string) bool {
	d, err := time.ParseDuration(s)
	return err == nil && d > 0
}

// isZone refuses "Local", which means something else on every machine.
func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil && s != "Local"
}

// plainComparisons gives rules that mean the same one form, for the digest.
func plainComparisons(m map[string]Comparison) map[string]Comparison {
	if len(m) == 0 {
		return nil
	}
	plain := make(map[string]Comparison, len(m))
	for path, rules := range m {
		list := make(Comparison, len(rules))
		for i, rule := range rules {
			list[i] = rule.plain()
		}
		plain[path] = list
	}
	return plain
}

func (r Rule) plain() Rule {
	if t, ok := new(big.Rat).SetString(r.Tolerance); ok && isTolerance(r.Tolerance) {
		r.Tolerance = t.RatString()
	}
	if r.Tolerance == "0" {
		r.Tolerance = ""
	}
	if d, err := time.ParseDuration(r.Precision); err == nil {
		r.Precision = d.String()
	}
	if r.Precision == "1ns" {
		r.Precision = ""
	}
	if r.Zone == "UTC" {
		r.Zone = ""
	}
	return r
}
