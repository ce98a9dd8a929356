package intent

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known wherever an intent is validated

	"github.com/go-playground/validator/v10"
)

// checkCompare checks every comparison of the intent.
func checkCompare(r reporter, w WriteIntent) {
	if len(w.Compare) > MaxPaths {
		r.reportf("/compare", fmt.Sprintf("at most %d", MaxPaths), "has %d members", len(w.Compare))
		return
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
		return problems
	}
	for i, rule := range rules {
		problems = append(problems, structProblems(element(at, i), rule)...)
		if rule.compares() && i < len(rules)-1 {
			problems = append(problems, Problem{string(element(at, i)), fmt.Sprintf("is %s before the end of the list", rule.Name), "it as the last rule: it compares"})
		}
	}
	return problems
}

// Validate checks the rules of one comparison, for profiles with their own: known rules,
// parameters only on the rule that uses them, and numeric, time and set only at the end. The
// error is an [InvalidError] whose paths begin at the list.
func (c Comparison) Validate() error { return invalid(comparisonProblems("", c)) }

// compares reports whether the rule must end a list.
func (r Rule) compares() bool {
	return r.Name == RuleNumeric || r.Name == RuleTime || r.Name == RuleSet
}

// checkRule: each parameter is on its own rule, and is meaningful.
func checkRule(level validator.StructLevel) {
	rule := level.Current().Interface().(Rule)
	r := reporter{level}
	for _, p := range []struct {
		name, value string
		owner       RuleName
		valid       func(string) bool
		want        string
	}{
		{"tolerance", rule.Tolerance, RuleNumeric, toleranceExpr.MatchString, `a decimal that is not negative ("0.005")`},
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

// Patterns of the parameters. They are in the JSON Schema too.
const (
	tolerancePattern = `^(0|[1-9][0-9]*)(\.[0-9]+)?$`
	precisionPattern = `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	zonePattern      = `^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`
)

var (
	toleranceExpr = regexp.MustCompile(tolerancePattern)
	precisionExpr = regexp.MustCompile(precisionPattern)
	zoneExpr      = regexp.MustCompile(zonePattern)
)

func isPrecision(s string) bool {
	d, err := time.ParseDuration(s)
	return err == nil && d > 0 && precisionExpr.MatchString(s)
}

// isZone refuses "Local", which is another zone on every machine.
func isZone(s string) bool {
	if s == "Local" || !zoneExpr.MatchString(s) {
		return false
	}
	_, err := time.LoadLocation(s)
	return err == nil
}

// plainComparisons gives equivalent rules one form, for the digest.
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

// plain writes the parameters in their shortest form, without defaults.
func (r Rule) plain() Rule {
	if strings.Contains(r.Tolerance, ".") {
		r.Tolerance = strings.TrimRight(strings.TrimRight(r.Tolerance, "0"), ".")
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
